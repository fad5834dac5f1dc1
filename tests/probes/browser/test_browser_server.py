"""The server refuses invalid requests, and the session with the page continues."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from overhead.probes.browser import messages, server
from overhead.probes.browser.page_files import kernel_hashes
from overhead.probes.browser.server import PageServer

PAGE = {"user_agent": "a test", "kernels": kernel_hashes()}


class Running:
    """A server, and a client for it."""

    def __init__(self) -> None:
        self.server = PageServer()
        self.origin, _, self.token = self.server.url.partition("/#token=")
        self.host, self.port = self.server.host, self.server.server_port
        self.secret = ""

    def close(self) -> None:
        self.server.close()

    def later(self, do: str, **fields: Any) -> Future[Any]:
        """The answer of the page to a command, when it comes."""
        found: Future[Any] = Future()
        before = self.server._command
        threading.Thread(
            target=lambda: found.set_result(self.server.ask(do, 20, **fields)), daemon=True
        ).start()
        while self.server._command is before:
            time.sleep(0.001)
        return found

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str | None
    ) -> tuple[int, Any, Any]:
        """Send a request and return status, headers and body. A header with the value None is not
        sent.
        """
        sent: dict[str, str | None] = {"Host": self.host}
        if method == "POST":
            sent |= {"Origin": self.origin, "Content-Type": "application/json"}
            sent |= {"Authorization": f"Bearer {self.secret}"} if self.secret else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        client.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        if body is not None and "Content_Length" not in headers:
            sent["Content-Length"] = str(len(body))
        for name, value in sent.items():
            if value is not None:
                client.putheader(name, value)
        client.endheaders(body)
        answer = client.getresponse()
        found = answer.status, dict(answer.headers), answer.read()
        client.close()
        return found

    def post(self, path: str, body: Any, **headers: str | None) -> tuple[int, Any]:
        status, _, raw = self.ask("POST", path, json.dumps(body).encode(), **headers)
        return status, json.loads(raw) if status == 200 else raw.decode()

    def hello(self) -> None:
        status, answer = self.post("/hello", {"token": self.token, **PAGE})
        assert status == 200
        self.secret = answer["secret"]

    def converse(self) -> None:
        """Exchange one command and its answer in the role of the page. This must still work after
        an attack.
        """
        asked = self.later("time", chain=1, ns=[7])
        status, command = self.post("/next", {"id": 0})
        assert (status, command["do"], command["ns"]) == (200, "time", [7])
        assert self.post("/next", {"id": command["id"], "samples": [[7, 1, 2]]})[0] == 200
        assert asked.result(timeout=20).samples == [[7, 1, 2]]


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr(server._Handler, "timeout", 1.0)
    one = Running()
    yield one
    one.close()


@pytest.fixture
def open_page(running: Running) -> Running:
    running.hello()
    return running


def test_the_server_sends_the_page_with_security_headers(running: Running) -> None:
    for path, kind in (
        ("/", "text/html"),
        ("/app.js", "text/javascript"),
        ("/style.css", "text/css"),
    ):
        status, headers, body = running.ask("GET", path)
        assert status == 200
        assert body
        assert headers["Content-Type"].startswith(kind)
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Embedder-Policy"] == "require-corp"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["X-Content-Type-Options"] == "nosniff"
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_the_server_listens_only_on_the_loopback_interface(running: Running) -> None:
    assert running.server.socket.getsockname()[0] == "127.0.0.1"


def test_the_server_accepts_the_token_only_once(running: Running) -> None:
    assert running.post("/hello", {"token": running.token, **PAGE})[0] == 200
    status, words = running.post("/hello", {"token": running.token, **PAGE})
    assert (status, words.strip()) == (409, "this link has been used")


@pytest.mark.parametrize(
    "body", [PAGE, {**PAGE, "token": ""}, {**PAGE, "token": "x" * 32}, {**PAGE, "token": 7}]
)
def test_the_server_refuses_a_missing_or_wrong_token(running: Running, body: Any) -> None:
    assert running.post("/hello", body)[0] in (400, 401)
    running.hello()
    running.converse()


@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer ", "Bearer wrong", "Basic eA==", "Bearer \xff"]
)
def test_the_server_refuses_an_answer_without_the_secret_of_the_page(
    open_page: Running, authorization: str | None
) -> None:
    assert open_page.post("/next", {"id": 0}, Authorization=authorization)[0] == 401
    open_page.converse()


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://localhost:1", "https://127.0.0.1"]
)
def test_the_server_refuses_a_request_with_a_wrong_origin(
    open_page: Running, origin: str | None
) -> None:
    for path in ("/hello", "/next"):
        assert open_page.post(path, {"id": 0}, Origin=origin)[0] == 403
    open_page.converse()


@pytest.mark.parametrize("host", [None, "evil.example", "localhost", "127.0.0.1", "127.0.0.1:1"])
def test_the_server_refuses_a_request_with_a_wrong_host(
    open_page: Running, host: str | None
) -> None:
    assert open_page.ask("GET", "/", Host=host)[0] == 403
    assert open_page.post("/next", {"id": 0}, Host=host)[0] == 403
    open_page.converse()


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/..%2fserver.py",
        "/%2e%2e/server.py",
        "/page/../../http.py",
        "//etc/passwd",
        "/etc/passwd",
        "/app.js/..",
        "/app.js?x",
        "/./app.js",
        "\\..\\server.py",
        "/index.html%00.js",
        "/__init__.py",
        "http://x/",
    ],
)
def test_the_server_refuses_paths_that_leave_its_folder(open_page: Running, path: str) -> None:
    assert open_page.ask("GET", path)[0] == 404
    open_page.converse()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"])
def test_the_server_refuses_http_methods_except_get_and_post(
    open_page: Running, method: str
) -> None:
    assert open_page.ask(method, "/next")[0] == 501


def test_the_server_refuses_a_misdirected_message(open_page: Running) -> None:
    assert open_page.post("/elsewhere", {})[0] == 404
    assert open_page.post("/next", {"id": 0}, Content_Type="text/plain")[0] == 415
    assert open_page.post("/next", {"id": 5})[0] == 409, (
        "an answer to a command that it did not give"
    )
    assert open_page.ask("GET", "/page-data.json", Sec_Fetch_Site="cross-site")[0] == 403
    assert open_page.ask("GET", "/", X_Long="x" * 70_000)[0] == 431
    open_page.converse()


@pytest.mark.parametrize(
    ("length", "status"),
    [
        (str(messages.MAX_BODY_BYTES + 1), 413),
        ("9" * 30, 413),
        *((length, 411) for length in (None, "", "-1", "x", "\xb2")),
    ],
)
def test_the_server_refuses_a_body_over_the_size_limit_or_without_a_valid_length(
    open_page: Running, length: str | None, status: int
) -> None:
    assert (
        open_page.ask("POST", "/next", None if status == 411 else b"{", Content_Length=length)[0]
        == status
    )
    assert (
        open_page.ask("POST", "/next", None, Transfer_Encoding="chunked", Content_Length=None)[0]
        == 411
    )
    open_page.converse()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"id": -1}',
        b'{"id": "0"}',
        b'{"id": 0, "more": 1}',
        b'{"id": 0.5}',
        b'{"id": 0, "samples": [[1, 2]]}',
        b'{"id": 0, "samples": [[1, 2, 3, 4]]}',
        b'{"id": 0, "samples": [[1, -2, 3]]}',
        b'{"id": 0, "values": [[1]]}',
        b'{"id": 0, "kind": "fine"}',
        b'{"id": 0, "error": 3}',
        b'{"id": 0, "data": 3}',
        b'{"id": 0, "data": "?"}',
        b'{"id": 0, "data": "AAA"}',
        b'{"id": 0, "data": ["AAAA"]}',
        b'{"id": 99999999999999999999}',
        b'{"id": NaN}',
        b"[" * 5000,
        b'{"id":' * 2000,
    ],
)
def test_the_server_refuses_a_body_that_does_not_match_the_schema(
    open_page: Running, body: bytes
) -> None:
    assert open_page.ask("POST", "/next", body)[0] == 400
    open_page.converse()


def test_the_server_ignores_an_answer_that_is_sent_again(open_page: Running) -> None:
    asked = open_page.later("time", chain=1, ns=[7])
    _, command = open_page.post("/next", {"id": 0})
    for total in (2, 3):
        open_page.post("/next", {"id": command["id"], "samples": [[7, 1, total]]})
    assert asked.result(timeout=20).samples == [[7, 1, 2]]


@pytest.mark.parametrize(
    "head",
    [
        b"rubbish\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\r\n\r\n",
        b"\0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: OWN\r\nHost: evil.example\r\n\r\n",
    ],
)
def test_the_server_refuses_a_request_that_is_not_http_or_repeats_a_header(
    open_page: Running, head: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", open_page.port), timeout=20) as raw:
        raw.sendall(head.replace(b"OWN", open_page.host.encode()))
        assert raw.recv(100).startswith((b"HTTP/1.1 400", b"HTTP/1.1 403"))
    open_page.converse()


def test_the_server_serves_the_page_while_other_connections_are_silent(open_page: Running) -> None:
    """Connections with half a request do not block the page, and are dropped."""
    crowd = [
        socket.create_connection(("127.0.0.1", open_page.port), timeout=20) for _ in range(100)
    ]
    try:
        for one in crowd:
            one.sendall(b"POST /next HTTP/1.1\r\n")
        open_page.converse()
        assert open_page.ask("GET", "/")[0] == 200
        crowd[0].settimeout(20)
        assert crowd[0].recv(1) == b""
    finally:
        for one in crowd:
            one.close()
    open_page.converse()
