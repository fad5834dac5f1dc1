"""A small HTTP/1.1 server with one request per connection, and limits on the size and duration of every part."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

MAX_HEAD_BYTES = 16 << 10
MAX_UNREAD = 32
"""Most connections without a request. The server drops the oldest, so that silent connections cannot block the page."""
READ_SECONDS = 5.0

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Connection": "close",
}


class Refusal(Exception):
    """A refused request: the HTTP status, and one line of plain text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@dataclasses.dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclasses.dataclass(frozen=True)
class Response:
    body: bytes
    type: str
    status: int = 200


Handler = Callable[[Request], Awaitable[Response]]
Checker = Callable[[Request], None]


class HttpServer:
    """A server on the loopback interface only. ``check`` gets the head of a request before the body is read.

    It raises ``Refusal`` to refuse the request.
    """

    def __init__(self, handle: Handler, check: Checker, max_body: int) -> None:
        self._handle, self._check, self._max_body = handle, check, max_body
        self._open: set[asyncio.Task[None]] = set()
        self._unread: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        """Start to listen. Returns the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=MAX_HEAD_BYTES, backlog=256)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening and close every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self._unread[task] = writer
        if len(self._unread) > MAX_UNREAD:
            self._unread.pop(next(iter(self._unread))).transport.abort()
        try:
            await _send(writer, await self._answer(reader, task))
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError, asyncio.CancelledError):
            pass  # the client closed the connection or is too slow, or the server is stopping
        finally:
            self._open.discard(task)
            self._unread.pop(task, None)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, task: asyncio.Task[None]) -> Response:
        try:
            async with asyncio.timeout(READ_SECONDS):
                request = await self._read(reader)
            self._unread.pop(task, None)
            return await self._handle(request)
        except Refusal as refusal:
            return _text(refusal.status, refusal.text)
        except TimeoutError:
            return _text(408, "the request did not come in time")

    async def _read(self, reader: asyncio.StreamReader) -> Request:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise Refusal(431, f"the head is larger than {MAX_HEAD_BYTES} bytes") from None
        request = _parse(head)
        self._check(request)
        if request.method == "GET":
            return request
        if "transfer-encoding" in request.headers:
            raise Refusal(411, "send a Content-Length")
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()):
            raise Refusal(411, "send a Content-Length")
        if len(length) > 12 or int(length) > self._max_body:
            raise Refusal(413, f"the body is larger than {self._max_body} bytes")
        return dataclasses.replace(request, body=await reader.readexactly(int(length)))


def _parse(head: bytes) -> Request:
    first, *rest = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Refusal(400, "not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in rest:
        name, colon, value = line.partition(":")
        if not line:
            continue
        if not colon or not name or name != name.strip() or name.lower() in headers:
            raise Refusal(400, "a malformed or repeated header")
        headers[name.lower()] = value.strip()
    return Request(words[0], words[1], headers, b"")


def _text(status: int, text: str) -> Response:
    return Response(text.encode() + b"\n", "text/plain; charset=utf-8", status)


async def _send(writer: asyncio.StreamWriter, response: Response) -> None:
    lines = [f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"]
    headers = {**HEADERS, "Content-Type": response.type, "Content-Length": str(len(response.body))}
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + response.body)
    async with asyncio.timeout(READ_SECONDS):
        await writer.drain()
