"""Standard output and error that never raise (any encoding, closed pipes, full devices), and
completion in a shell.

A command writes as usual. If a stream fails, the rest of its output is discarded, so that a
measurement goes on and the verdict of a gate is not lost. ``Streams.exit_code`` then tells the
caller what happened to standard output.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, cast, get_args

from overhead.errors import require_extra

CANNOT_WRITE = 74
"""EX_IOERR of BSD's sysexits.h."""
BROKEN_PIPE = 141
"""What a shell reports for a program that SIGPIPE ended: 128 + 13."""


class Guarded:
    """A text stream that replaces what its encoding lacks, and discards everything after its first
    error.

    ``error``: the first error of the stream, or None. A stream of None was closed before the
    program started.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream or io.StringIO()
        self.error: OSError | None = None
        if not stream:
            self.error = OSError(errno.EBADF, os.strerror(errno.EBADF))
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the text, or discard it after an error; returns its length in both cases."""
        self._guard(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream; does nothing after an error."""
        self._guard(self._stream.flush)

    def _guard(self, call: Callable[[], object]) -> None:
        """Make the call, which writes or flushes. Its error is kept, and no further call is
        made.
        """
        if self.error is not None:
            return
        try:
            call()
        except OSError as error:
            self.error = error
            # What the stream still holds must go somewhere, or the interpreter fails when it
            # flushes it at its end.
            with contextlib.suppress(OSError, ValueError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, self._stream.fileno())
                os.close(null)
                self._stream.flush()

    def close(self) -> None:
        """Do nothing: the stream belongs to the interpreter and stays open."""


class Streams:
    """Replaces ``sys.stdout`` and ``sys.stderr`` by guarded streams in a ``with`` block."""

    def __enter__(self) -> Streams:
        _open_missing_descriptors()
        self._before = sys.stdout, sys.stderr
        self.out, self.err = map(Guarded, self._before)
        sys.stdout, sys.stderr = cast(TextIO, self.out), cast(TextIO, self.err)
        return self

    def __exit__(self, *_: object) -> None:
        self.out.flush()
        failed = self.out.error
        if failed is not None and not _is_broken_pipe(failed):
            print(f"overhead: standard output: {failed.strerror or failed}", file=sys.stderr)
        self.err.flush()
        sys.stdout, sys.stderr = self._before

    def exit_code(self, code: int) -> int:
        """``code``; if it is 0 and standard output failed, 141 for a pipe without a reader, else
        74.
        """
        if code or self.out.error is None:
            return code
        return BROKEN_PIPE if _is_broken_pipe(self.out.error) else CANNOT_WRITE


def _is_broken_pipe(error: OSError) -> bool:
    if isinstance(error, BrokenPipeError):
        return True
    # Windows reports EINVAL for a pipe whose reader is gone.
    return sys.platform == "win32" and error.errno == errno.EINVAL


def _open_missing_descriptors() -> None:
    """Open the null device for each of the descriptors 0 to 2 (standard input, output and error)
    that is closed, so that no other file gets its number, and what is printed.
    """
    with contextlib.suppress(OSError):
        # An opened file gets the lowest number that is free; above 2, none of the three is left.
        while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(opened, True)
        os.close(opened)


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """A script that completes the commands, options and names of ``overhead`` in this shell
    (``bash``, ``zsh``, ...).

    Raises ``MissingExtra`` without the package ``shtab``, which writes it.
    """
    from overhead.probes import registry
    from overhead.results import Pattern
    from overhead.workloads import stack_works, workloads

    require_extra("completion", "shtab")
    shtab: Any = importlib.import_module("shtab")
    # The values that an argument may have, by the word that stands for it in the help.
    names = {
        "STACK": sorted(registry()),
        "PATTERN": get_args(Pattern),
        "WORKLOAD": sorted({*stack_works(), *workloads()}),
    }
    # An argument with such a word completes these values, one of a path completes files.
    for action in _actions(parser):
        if action.metavar in names:
            action.choices = names[str(action.metavar)]
        elif action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell=shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
