"""The page's server: its own files, a one-time token, and one conversation of numbered commands and answers."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from typing import Any

import msgspec

from overhead.probes._support.browser import wire
from overhead.probes._support.browser.http import HttpServer, Refusal, Request, Response
from overhead.probes._support.browser.material import TYPES, material, page_files

IDLE_SECONDS = 20.0
"""A question without a command in this time is answered with "idle", and the page asks again."""


class PageServer:
    """Serves the page to whoever asks on loopback, and obeyed by the one page that presents the token first."""

    def __init__(self) -> None:
        self._files = {f"/{name}": _static(name, text) for name, text in page_files().items()}
        self._files["/"] = self._files["/index.html"]
        self._files["/material.json"] = Response(wire.encode(material()), "application/json")
        self._http = HttpServer(self._handle, self._check, wire.MAX_BODY_BYTES)
        self._token, self._secret = secrets.token_urlsafe(24), ""
        self._command = wire.Command(id=0, do="idle")
        self._changed = asyncio.Condition()
        self._origin = ""
        self._pages: list[wire.Page] = []
        self._answers: list[wire.PageAnswer] = []

    async def start(self) -> str:
        """Begin to listen on a free port; returns the address, token included, that the browser is to open."""
        port = await self._http.start()
        self._origin = f"http://127.0.0.1:{port}"
        return f"{self._origin}/#token={self._token}"

    async def stop(self) -> None:
        await self._http.stop()

    async def hello(self) -> wire.Page:
        """Who the page is, once it has presented itself."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._pages)
        return self._pages[0]

    async def ask(self, do: Any, **fields: Any) -> wire.PageAnswer:
        """Give the page a command and return its answer."""
        async with self._changed:
            self._command = wire.Command(id=self._command.id + 1, do=do, **fields)
            self._answers.clear()
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._answers)
        return self._answers[0]

    async def end(self) -> None:
        """Tell the page that it is done; it does not answer any more."""
        async with self._changed:
            self._command = wire.Command(id=self._command.id + 1, do="end")
            self._changed.notify_all()

    def _check(self, request: Request) -> None:
        """Refuse what is not this page's, by the head alone."""
        headers = request.headers
        if headers.get("host") != self._origin.removeprefix("http://"):
            raise Refusal(403, "wrong host")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Refusal(403, "wrong site")
        if request.method == "GET":
            if request.path not in self._files:
                raise Refusal(404, "no such file")
            return
        if request.method != "POST":
            raise Refusal(405, "GET or POST")
        if headers.get("origin") != self._origin:
            raise Refusal(403, "wrong origin")
        if request.path not in ("/hello", "/next"):
            raise Refusal(404, "no such place")
        if headers.get("content-type") != "application/json":
            raise Refusal(415, "send application/json")
        if request.path == "/next" and not self._knows(headers.get("authorization", "")):
            raise Refusal(401, "no session of this server")

    def _knows(self, authorization: str) -> bool:
        expected = f"Bearer {self._secret}".encode()
        return bool(self._secret) and hmac.compare_digest(authorization.encode("latin-1"), expected)

    async def _handle(self, request: Request) -> Response:
        if request.method == "GET":
            return self._files[request.path]
        try:
            if request.path == "/hello":
                return await self._greet(wire.decode_hello(request.body))
            return _json(await self._converse(wire.decode_answer(request.body)))
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise Refusal(400, f"not understood: {' '.join(str(error).split())[:200]}") from None

    async def _greet(self, hello: wire.Hello) -> Response:
        if not hmac.compare_digest(hello.token.encode(), self._token.encode()):
            raise Refusal(401, "wrong token")
        if self._secret:
            raise Refusal(409, "this link has been used")
        self._secret = secrets.token_urlsafe(24)
        fields = {name: getattr(hello, name) for name in wire.Page.__struct_fields__}
        async with self._changed:
            self._pages.append(wire.Page(**fields))
            self._changed.notify_all()
        return _json({"secret": self._secret})

    async def _converse(self, answer: wire.PageAnswer) -> wire.Command:
        """Take the answer to the command at hand (a repeated one changes nothing) and wait for the next command."""
        async with self._changed:
            if answer.id > self._command.id:
                raise Refusal(409, "an answer to a command that was not given")
            if answer.id == self._command.id and not self._answers:
                self._answers.append(answer)
                self._changed.notify_all()
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._changed.wait_for(lambda: self._command.id > answer.id)
            except TimeoutError:
                return wire.Command(id=answer.id, do="idle")
            return self._command


def _static(name: str, text: str) -> Response:
    return Response(text.encode(), f"{TYPES[name.rpartition('.')[2]]}; charset=utf-8")


def _json(value: Any) -> Response:
    return Response(wire.encode(value), "application/json")
