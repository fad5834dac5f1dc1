"""Run a command where only the loopback device exists, and log the hosts that it looks up or asks a
proxy for.

``unshare --net --mount python no_network.py LOG COMMAND...``; ``LOG`` gets one host a line.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

UNSHARE = (
    "unshare",
    "--net",
    "--mount",
    *(("--map-root-user",) if hasattr(os, "geteuid") and os.geteuid() else ()),
)
"""The start of a command line that gives new namespaces to the rest of it."""
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_FILES = {
    "/etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_NO_SUCH_NAME, _BAD_GATEWAY = b"\x81\x83", b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"


def main(log: Path, command: list[str]) -> int:
    import fcntl

    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as names,
        socket.socket() as proxy,
        tempfile.TemporaryDirectory() as folder,
        open(log, "w", buffering=1) as file,
    ):
        fcntl.ioctl(names, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
        for path, text in _FILES.items():
            own = Path(folder, Path(path).name)
            own.write_text(text)
            subprocess.run(["mount", "--bind", own, path], check=True)
        names.bind(("127.0.0.1", 53))
        proxy.bind(("127.0.0.1", 0))
        proxy.listen()
        for serve in (_answer_name, _answer_proxy):
            one = names if serve is _answer_name else proxy
            threading.Thread(target=_forever, args=(serve, one, file.write), daemon=True).start()
        url = "http://{}:{}".format(*proxy.getsockname())
        proxies = {f"{scheme}_proxy": url for scheme in ("http", "https", "all")}
        return subprocess.run(
            command, env={**os.environ, **proxies}, stdin=subprocess.DEVNULL
        ).returncode


def _forever(
    serve: Callable[[socket.socket, Callable[[str], object]], None],
    one: socket.socket,
    log: Callable[[str], object],
) -> None:
    while True:
        serve(one, log)


def _answer_name(server: socket.socket, log: Callable[[str], object]) -> None:
    query, sender = server.recvfrom(4096)
    at, labels = 12, []
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode(errors="replace"))
        at += 1 + length
    log(".".join(labels) + "\n")
    server.sendto(query[:2] + _NO_SUCH_NAME + query[4:6] + bytes(6) + query[12 : at + 5], sender)


def _answer_proxy(server: socket.socket, log: Callable[[str], object]) -> None:
    connection, _ = server.accept()
    with connection:
        log(connection.recv(4096).decode(errors="replace").split("\r\n")[0] + "\n")
        connection.sendall(_BAD_GATEWAY)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
