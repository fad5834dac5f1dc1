"""A note of what a worker is about to do, readable after its death: a mapped file, so that writing wakes nobody."""

from __future__ import annotations

import mmap
from pathlib import Path

_SIZE = 4096


class DoingNote:
    """The worker's side. ``case`` is the index of the assignment, or -1."""

    def __init__(self, path: Path) -> None:
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)

    def write(self, case: int, what: str) -> None:
        body = f"{case} {what}".encode()[: _SIZE - 1]
        self._map[: len(body) + 1] = body + b"\0"


def create(path: Path) -> None:
    """The parent's side, before the worker starts."""
    path.write_bytes(b"-1 starting\0".ljust(_SIZE, b"\0"))


def read(path: Path) -> tuple[int, str]:
    """The last note: index of the assignment (-1 for none) and what was being done."""
    text = path.read_bytes().split(b"\0", 1)[0].decode(errors="replace")
    index, _, what = text.partition(" ")
    try:
        return int(index), what
    except ValueError:  # a worker gone wild wrote over it
        return -1, "doing something unknown"
