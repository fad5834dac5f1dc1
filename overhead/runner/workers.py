"""Control one worker process from the parent: start it, read its lines within limits, find out why it died.

Also the note: a file in which a worker writes its next step, and which the parent reads if the worker dies.
"""

from __future__ import annotations

import contextlib
import mmap
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from overhead import scratch
from overhead.child import LimitExceeded, SupervisedProcess
from overhead.probes import usable_entry_points
from overhead.results import JournalLine
from overhead.runner.interpreter import HERE, Interpreter
from overhead.runner.protocol import GO, Job, Message, UnknownLine, decode, encode

RELEASE_S = 5.0
"""How long a worker may take to release its objects. Workers released together share this time."""
_POLL_S = 1.0
"""Seconds between two checks of the worker's resident memory while the parent waits for its next line."""
_EXIT_S = 10.0
"""How long a worker may take to exit after its last line."""
_NOTE_BYTES = 4096


class WorkerNote:
    """Writes the note, in the worker. It is a mapped file, because writing to it wakes no other process."""

    def __init__(self, path: Path) -> None:
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), _NOTE_BYTES)

    def write(self, index: int, what: str) -> None:
        """Write the next step, and the index of its assignment (-1: none)."""
        body = f"{index} {what}".encode()[: _NOTE_BYTES - 1]
        self._map[: len(body) + 1] = body + b"\0"


class NoteReader:
    """The note of one worker, in the parent. It stays readable if someone deletes its file."""

    def __init__(self) -> None:
        descriptor, name = tempfile.mkstemp(prefix="doing-", dir=scratch.folder())
        self.path = Path(name)
        with open(descriptor, "r+b") as file:
            file.write(b"-1 starting\0".ljust(_NOTE_BYTES, b"\0"))
            file.flush()
            self._map = mmap.mmap(file.fileno(), _NOTE_BYTES)

    def read(self) -> tuple[int, str]:
        """The index of the assignment (-1: none), and the last step that the worker wrote."""
        text = self._map[:].split(b"\0", 1)[0].decode(errors="replace")
        index, _, what = text.partition(" ")
        try:
            return int(index), what
        except ValueError:  # the worker overwrote the mapped memory
            return -1, "doing something unknown"

    def close(self) -> None:
        """Remove the file."""
        self._map.close()
        with contextlib.suppress(OSError):
            self.path.unlink()


class WorkerDied(Exception):
    """The worker ended too early. ``index``: the assignment that it worked on (-1: none). ``reason``: in words."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index, self.reason = index, reason


class WorkerProcess:
    """A running worker. It is killed if it sends no line for ``silence_s`` seconds.

    Tests replace ``start`` and ``clock`` (s).
    """

    def __init__(
        self,
        job: Job,
        environment: Mapping[str, str],
        *,
        silence_s: float,
        memory_bytes: int,
        interpreter: Interpreter = HERE,
        start: Callable[..., SupervisedProcess] = SupervisedProcess,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.silence_s, self._clock = silence_s, clock
        self._release_until = 0.0
        self._note = NoteReader()
        self.job = msgspec.structs.replace(job, doing_file=str(self._note.path), entry_points=usable_entry_points())
        self._process = start(
            interpreter.command,
            {**interpreter.environment, **environment},
            memory_bytes=memory_bytes,
            poll_s=_POLL_S,
        )
        self._process.send(encode(self.job))

    def go(self) -> None:
        """Let the worker start its turn, or continue after a pause."""
        self._process.send(GO)

    def release(self) -> None:
        """Let the worker release its objects and exit, after it has done its job."""
        self._release_until = self._clock() + RELEASE_S
        self._process.send(GO)

    def listen(self) -> Message | JournalLine | None:
        """The next line of the worker; None when it has ended normally. Raises ``WorkerDied``."""
        try:
            raw = self._process.receive(self.silence_s)
        except LimitExceeded as exceeded:
            raise self._death(self._limit_words(exceeded)) from None
        if not raw:
            self._check_exit()
            return None
        try:
            return decode(raw)
        except UnknownLine as error:
            raise self._death(f"answered with rubbish: {error}") from None

    def _limit_words(self, exceeded: LimitExceeded) -> str:
        if exceeded.limit == "time":
            return f"gave no answer for {self.silence_s:.0f} s and was ended"
        return (
            f"took {exceeded.used / 2**30:.1f} GiB of memory, over its limit of "
            f"{self._process.memory_bytes / 2**30:.1f} GiB, and was ended"
        )

    def _check_exit(self) -> None:
        code = self._process.exit_code(_EXIT_S)
        if code is None:
            raise self._death("closed its answers and hung")
        if code == 0:
            return
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        raise self._death(f"{how}{self._process.last_words()}")

    def _death(self, reason: str) -> WorkerDied:
        index, what = self._note.read()
        self._process.kill()
        return WorkerDied(index, f"the worker {reason} (while {what})")

    def kill(self) -> None:
        """Kill the worker; any thread may do this. ``end`` must follow."""
        self._process.kill()

    def end(self) -> None:
        """End the worker. After ``release`` it gets the rest of its time to exit; otherwise it is killed at once."""
        self._process.end(max(0.0, self._release_until - self._clock()))
        self._note.close()
