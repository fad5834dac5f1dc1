"""A disk that is full from a chosen step on, and a process that ends at a chosen step.

A step is one change of a file: open for writing, write, truncate, sync, rename, remove, make a
folder.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Literal
from unittest import mock

from overhead.errors import BadFile
from overhead.loading import files
from overhead.results import HeaderEntry, encode_entry
from overhead.runner import output

Fault = Literal["kill", "full"]
_WRITERS = (files, output)


class Killed(BaseException):
    """The process has ended. Nothing that it does after this changes a file."""


def raise_killed() -> None:
    raise Killed


class Disk:
    """The files of a run. ``steps``: the names of the steps so far.

    ``at``: index of the step with the fault, or the name of such steps and the index among them.

    ``kill``: the process ends at that step (a write is cut in half); ``full``: no step that needs
    space succeeds from then on. ``end``: ends the process; the default raises ``Killed``, and
    further steps do nothing.
    """

    def __init__(
        self,
        at: int | tuple[str, int] | None = None,
        fault: Fault = "kill",
        end: Callable[[], None] = raise_killed,
    ) -> None:
        self.at, self.fault, self.end = at, fault, end
        self.steps: list[str] = []
        self.dead = self.full = False
        self._raw: list[_Raw] = []
        self._replace, self._unlink, self._mkdir = os.replace, os.unlink, os.mkdir

    @contextlib.contextmanager
    def installed(self) -> Iterator[Disk]:
        """Let the modules that write the files of a run use this disk."""
        with contextlib.ExitStack() as stack:
            for module in _WRITERS:
                stack.enter_context(mock.patch.object(module, "open", self.open, create=True))
            for name in ("fsync", "replace", "unlink", "mkdir"):
                stack.enter_context(mock.patch.object(os, name, getattr(self, name)))
            try:
                yield self
            finally:
                for raw in self._raw:  # a process that ends closes its files
                    if self.dead and not raw.closed:
                        raw.close()

    def open(self, path: str | Path | int, mode: str = "r", *more: Any, **options: Any) -> IO[Any]:
        if "b" not in mode or mode == "rb" or isinstance(path, int):
            return builtins.open(path, mode, *more, **options)
        self.step(f"open {Path(path).name}")
        if self.dead:
            raise Killed
        raw = _Raw(self, path, mode.replace("b", ""))
        self._raw.append(raw)
        return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

    def fsync(self, descriptor: int) -> None:
        self.step("sync")  # without the real call, which only a loss of power would need

    def replace(self, source: Path, target: Path) -> None:
        if self.step(f"rename to {Path(target).name}"):
            self._replace(source, target)

    def unlink(self, path: Path, **more: Any) -> None:
        if self.step(f"remove {Path(path).name}", needs_space=False):
            self._unlink(path, **more)

    def mkdir(self, path: Path, *more: Any, **options: Any) -> None:
        if self.step(f"folder {Path(path).name}"):
            self._mkdir(path, *more, **options)

    def step(
        self, name: str, *, needs_space: bool = True, cut: Callable[[], None] | None = None
    ) -> bool:
        """Count a step. Returns whether to do it. ``cut`` does half of it. Raises ``OSError`` on a
        full disk.
        """
        if self.dead:
            return False
        now = self.at in (len(self.steps), (name, self.steps.count(name)))
        self.steps.append(name)
        if now and self.fault == "kill":
            if cut:
                cut()
            self.dead = True
            self.end()
        if now and self.fault == "full":
            self.full = True
            if cut:
                cut()
        if self.full and needs_space:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return True


class _Raw(io.FileIO):
    """A file of the disk, without a buffer."""

    def __init__(self, disk: Disk, path: str | Path, mode: str) -> None:
        super().__init__(path, mode)
        self.disk, self.named = disk, Path(path).name

    def write(self, data: Any) -> int:
        view = memoryview(data)
        half = len(view) // 2

        def cut() -> None:
            super(_Raw, self).write(view[:half])

        return super().write(view) if self.disk.step(f"write {self.named}", cut=cut) else len(view)

    def truncate(self, size: int | None = None) -> int:
        if self.disk.step(f"truncate {self.named}", needs_space=False):
            return super().truncate(size)
        return size or 0


def measured_lines(path: Path) -> Counter[bytes]:
    """The whole lines in a journal, or in the samples where the journal has gone; none if there is
    neither.
    """
    paths = [
        p for p in (path, path.with_suffix(".samples.jsonl.gz")) if p.exists() and p.stat().st_size
    ]
    if not paths:
        return Counter()
    try:
        lines = list(files.read_journal(paths[0]))
    except BadFile:  # the first line is cut off
        return Counter()
    return Counter(encode_entry(line) for line in lines if not isinstance(line, HeaderEntry))
