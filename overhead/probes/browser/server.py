"""The server for the page. It serves the files, checks a one-time token, and exchanges commands and answers."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from typing import Any

import msgspec

from overhead.probes.browser import messages
from overhead.probes.browser.http import HttpServer, Refusal, Request, Response
from overhead.probes.browser.page_files import TYPES, page_data, page_files

IDLE_SECONDS = 20.0
"""After this time without a command the server answers "idle", and the page asks again."""


class PageServer:
    """Serves the files to every local client. Only the first page with the correct token gets commands."""

    def __init__(self) -> None:
        self._files = {f"/{name}": _static(name, text) for name, text in page_files().items()}
        self._files["/"] = self._files["/index.html"]
        self._files["/page-data.json"] = Response(messages.encode(page_data()), "application/json")
        self._http = HttpServer(self._handle, self._check, messages.MAX_BODY_BYTES)
        self._token, self._secret = secrets.token_urlsafe(24), ""
        self._command = messages.Command(id=0, do="idle")
        self._changed = asyncio.Condition()
        self._origin = ""
        self._pages: list[messages.Page] = []
        self._answers: list[messages.PageAnswer] = []

    async def start(self) -> str:
        """Listen on a free port. Returns the URL for the browser, which contains the token."""
        port = await self._http.start()
        self._origin = f"http://127.0.0.1:{port}"
        return f"{self._origin}/#token={self._token}"

    async def stop(self) -> None:
        await self._http.stop()

    async def hello(self) -> messages.Page:
        """Wait until the page has connected. Returns its description."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._pages)
        return self._pages[0]

    async def ask(self, do: Any, **fields: Any) -> messages.PageAnswer:
        """Send a command to the page. Returns its answer."""
        async with self._changed:
            self._command = messages.Command(id=self._command.id + 1, do=do, **fields)
            self._answers.clear()
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._answers)
        return self._answers[0]

    async def end(self) -> None:
        """Send the page the command to stop. The page sends no answer."""
        async with self._changed:
            self._command = messages.Command(id=self._command.id + 1, do="end")
            self._changed.notify_all()

    def _check(self, request: Request) -> None:
        """Raise ``Refusal`` unless the head of the request comes from this page."""
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
        if request.path == "/next" and not self._authorized(headers.get("authorization", "")):
            raise Refusal(401, "no session of this server")

    def _authorized(self, authorization: str) -> bool:
        expected = f"Bearer {self._secret}".encode()
        return bool(self._secret) and hmac.compare_digest(authorization.encode("latin-1"), expected)

    async def _handle(self, request: Request) -> Response:
        if request.method == "GET":
            return self._files[request.path]
        try:
            if request.path == "/hello":
                return await self._accept_hello(messages.decode_hello(request.body))
            return _json(await self._exchange(messages.decode_answer(request.body)))
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise Refusal(400, f"not understood: {' '.join(str(error).split())[:200]}") from None

    async def _accept_hello(self, hello: messages.Hello) -> Response:
        if not hmac.compare_digest(hello.token.encode(), self._token.encode()):
            raise Refusal(401, "wrong token")
        if self._secret:
            raise Refusal(409, "this link has been used")
        self._secret = secrets.token_urlsafe(24)
        fields = {name: getattr(hello, name) for name in messages.Page.__struct_fields__}
        async with self._changed:
            self._pages.append(messages.Page(**fields))
            self._changed.notify_all()
        return _json({"secret": self._secret})

    async def _exchange(self, answer: messages.PageAnswer) -> messages.Command:
        """Store the answer to the current command, then wait for the next command. A repeated answer is ignored."""
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
                return messages.Command(id=answer.id, do="idle")
            return self._command


def _static(name: str, text: str) -> Response:
    return Response(text.encode(), f"{TYPES[name.rpartition('.')[2]]}; charset=utf-8")


def _json(value: Any) -> Response:
    return Response(messages.encode(value), "application/json")
