"""The server for the page. It serves the files, checks a one-time token, and exchanges commands and
answers.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, NamedTuple

import msgspec

from overhead.probes.browser import messages
from overhead.probes.browser.page_files import TYPES, page_data, page_files

IDLE_SECONDS = 20.0
"""After this time without a command, s, the server answers "idle", and the page asks again."""
_READ_SECONDS = 5.0
"""Longest wait for the next bytes of a request, s."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Connection": "close",
}


class HttpBody(NamedTuple):
    """What the server sends to a client."""

    data: bytes
    media_type: str


class _Refusal(Exception):
    """A refused request: the HTTP status, and one line of plain text."""


class PageServer(ThreadingHTTPServer):
    """Serves the files of the page to every local client, and sends commands to one page: the first
    that shows the correct token, a random text in the address that the browser was started with.

    It listens on the loopback interface only. ``url`` is that address. The page gets a ``secret``
    for its token, which it shows with each later request. A page asks for its next command by the
    answer to the previous one.
    """

    request_queue_size = 256
    daemon_threads = True
    allow_reuse_address = False

    def __init__(self) -> None:
        """Listen on a free port (0 asks for one), and serve requests in a thread from now on."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, HttpBody] = {}
        for name, text in page_files().items():
            _, _, suffix = name.rpartition(".")
            self.files[f"/{name}"] = HttpBody(text.encode(), f"{TYPES[suffix]}; charset=utf-8")
        self.files["/"] = self.files["/index.html"]
        self.files["/page-data.json"] = HttpBody(messages.encode(page_data()), "application/json")
        self.host = f"127.0.0.1:{self.server_port}"
        self.origin = f"http://{self.host}"
        self._token = secrets.token_urlsafe(24)
        # Empty until a page has shown the token; then what that page must send with each request.
        self._secret = ""
        # Behind a #, which a browser sends to no server: only scripts of the page read it.
        self.url = f"{self.origin}/#token={self._token}"
        # What the threads of the requests and the caller of ``ask`` share, guarded by ``_changed``:
        # the newest command, and the answer to it. The first answer of a page, which is empty, is
        # to command 0.
        self._command = messages.Command(id=0, do="idle")
        self._changed = threading.Condition()
        self._page: messages.Page | None = None
        self._answer: messages.PageAnswer | None = None
        # True once the browser has ended, so that nobody waits for an answer.
        self._given_up = False
        # True after ``close``: the serving thread then ends.
        self._closed = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def server_bind(self) -> None:
        """Bind without a look-up of the host's name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name = "127.0.0.1"
        self.server_port = int(self.server_address[1])

    def _serve(self) -> None:
        # ``serve_forever`` would wake up twice a second while the page measures.
        while not self._closed:
            self.handle_request()

    def close(self) -> None:
        """Send the page the command to stop, which it does not answer, and stop listening. The
        requests that wait in ``exchange`` get that command.
        """
        with self._changed:
            self._command = messages.Command(id=self._command.id + 1, do="end")
            self._changed.notify_all()
        self._closed = True
        # The serving thread waits for a connection. Any one lets it see that it has to end.
        connection = socket.create_connection(("127.0.0.1", self.server_port))
        connection.close()
        self._thread.join()
        self.server_close()

    def give_up(self) -> None:
        """Let ``wait_for_page`` and ``ask`` return None at once, now and later, because the browser
        has ended.
        """
        with self._changed:
            self._given_up = True
            self._changed.notify_all()

    def wait_for_page(self, seconds: float) -> messages.Page | None:
        """Wait until the page has connected. Returns its description; None if it has not within
        this time.
        """
        with self._changed:
            self._wait(lambda: self._page is not None, seconds)
            return self._page

    def ask(self, do: Any, seconds: float, **fields: Any) -> messages.PageAnswer | None:
        """Send a command with these fields to the page. Returns its answer; None if there is none
        within this time, or the browser has ended.
        """
        with self._changed:
            self._command = messages.Command(id=self._command.id + 1, do=do, **fields)
            # The page is waiting in ``exchange``, which now returns this command to it, and later
            # stores the answer here.
            self._answer = None
            self._changed.notify_all()
            # Until there is an answer, the browser has ended, or the time is over.
            self._wait(lambda: self._answer is not None, seconds)
            return self._answer

    def _wait(self, done: Callable[[], bool], seconds: float) -> None:
        self._changed.wait_for(lambda: done() or self._given_up, seconds)

    def accept_hello(self, hello: messages.Hello) -> dict[str, str]:
        """Take the first message of a page. Returns its ``secret`` for later requests. Raises
        ``_Refusal`` for a wrong token, and for a second page: one page alone is measured.
        """
        # ``compare_digest`` takes as long for every wrong token, so that none can be guessed.
        if not hmac.compare_digest(hello.token.encode(), self._token.encode()):
            raise _Refusal(401, "wrong token")
        with self._changed:
            if self._secret:
                raise _Refusal(409, "this link has been used")
            self._secret = secrets.token_urlsafe(24)
            # Its description, for which ``wait_for_page`` waits.
            self._page = hello
            self._changed.notify_all()
        return {"secret": self._secret}

    def is_authorized(self, authorization: str) -> bool:
        """True if the value of this HTTP header contains the secret of the page."""
        expected = f"Bearer {self._secret}".encode()
        return bool(self._secret) and hmac.compare_digest(authorization.encode("latin-1"), expected)

    def exchange(self, answer: messages.PageAnswer) -> messages.Command:
        """Store the answer to the current command, then wait for the next command and return it;
        the command ``idle`` if none comes in time. Called for each request of the page.

        A repeated answer is ignored. Raises ``_Refusal`` for an answer to a command that was not
        given.
        """
        with self._changed:
            if answer.id > self._command.id:
                raise _Refusal(409, "an answer to a command that was not given")
            # Of a page's repeated answer, ``_answer`` is set already; of one to an earlier command,
            # the id is smaller.
            if answer.id == self._command.id and self._answer is None:
                self._answer = answer
                self._changed.notify_all()
            if self._changed.wait_for(lambda: self._command.id > answer.id, IDLE_SECONDS):
                return self._command
            # With the same id, so that the page sends its answer again, which asks for the next
            # command.
            return messages.Command(id=answer.id, do="idle")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error of a request, unless it is an ``OSError``, such as a client that closed
        the connection.
        """
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One HTTP request to the server of the page. Its head is checked before its body is read."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"
    timeout = _READ_SECONDS

    def do_GET(self) -> None:
        self._respond(self._file)

    def do_POST(self) -> None:
        self._respond(self._message)

    def log_message(self, format: str, *args: Any) -> None:
        """Do nothing."""

    def _respond(self, handle: Callable[[], HttpBody]) -> None:
        """Check the head of the request, and send what ``handle`` returns; if one of them refuses
        the request, send the text of the refusal.
        """
        status = 200
        try:
            self._check_head()
            body = handle()
        except _Refusal as refusal:
            status, text = refusal.args
            body = HttpBody(f"{text}\n".encode(), "text/plain; charset=utf-8")
        # Without the headers Server and Date, which ``send_response`` adds.
        self.send_response_only(status)
        # ``_HEADERS``: rules for the browser, such as cross-origin isolation, which gives the page
        # a fine clock.
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", body.media_type)
        self.send_header("Content-Length", str(len(body.data)))
        self.end_headers()
        self.wfile.write(body.data)

    def _check_head(self) -> None:
        """Raise ``_Refusal`` for a request that another web site may have sent: a browser lets any
        site send requests to this machine, but sets these headers itself.
        """
        # Of a repeated header, different programs may read different ones.
        names = [name.lower() for name in self.headers]
        if self.headers.defects or len(set(names)) != len(names):
            raise _Refusal(400, "a malformed or repeated header")
        # A site may let its own name lead to this machine; its requests then name that host.
        if self.headers.get("host") != self.server.host:
            raise _Refusal(403, "wrong host")
        # "none": a person or this program opened the address. A client that is no browser does not
        # send this header.
        if self.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise _Refusal(403, "wrong site")

    def _file(self) -> HttpBody:
        if self.path not in self.server.files:
            raise _Refusal(404, "no such file")
        return self.server.files[self.path]

    def _message(self) -> HttpBody:
        """Give the page's message to the server, and return the server's answer. ``/hello`` is the
        first message of a page, and ``/next`` each later one. Only the page of this server may
        send one.
        """
        # A browser tells here which site's script sends the request.
        if self.headers.get("origin") != self.server.origin:
            raise _Refusal(403, "wrong origin")
        if self.path not in ("/hello", "/next"):
            raise _Refusal(404, "no such place")
        # A script of another site cannot send this type without asking the server first.
        if self.headers.get("content-type") != "application/json":
            raise _Refusal(415, "send application/json")
        if self.path == "/next":
            authorization = self.headers.get("authorization", "")
            if not self.server.is_authorized(authorization):
                raise _Refusal(401, "no session of this server")
        sent = self._sent_bytes()
        answer: Any
        try:
            if self.path == "/hello":
                answer = self.server.accept_hello(messages.decode_hello(sent))
            else:
                answer = self.server.exchange(messages.decode_answer(sent))
        # ``RecursionError``: JSON that is nested too deeply.
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise _Refusal(400, f"not understood: {reason}") from None
        return HttpBody(messages.encode(answer), "application/json")

    def _sent_bytes(self) -> bytes:
        """The body of the request. Its length is checked before any of it is read. A request that
        does not tell the length (``Transfer-Encoding``: a body in parts) is refused.
        """
        length = self.headers.get("content-length", "")
        # ``isdigit`` alone also takes digits of other scripts.
        is_number = length.isascii() and length.isdigit()
        if "transfer-encoding" in self.headers or not is_number:
            raise _Refusal(411, "send a Content-Length")
        # So many digits are refused unread: ``int`` raises an error of its own for thousands.
        if len(length) > 12 or int(length) > messages.MAX_BODY_BYTES:
            raise _Refusal(413, f"the body is larger than {messages.MAX_BODY_BYTES} bytes")
        return self.rfile.read(int(length))
