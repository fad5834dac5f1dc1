"""A worker process, the protocol between it and the parent, and what it did when it died.

The parent sends one job. The worker sends journal lines and a few messages, one JSON object per
line.
"""

from __future__ import annotations

import contextlib
import mmap
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overhead import scratch
from overhead.child import ChildEnded, ChildLimits, ChildProcess
from overhead.errors import WithReason
from overhead.measure.sampling.events import Settings
from overhead.probes import usable_entry_points
from overhead.results import Case, JournalEntry, Reason, Target, Why, because
from overhead.runner.interpreter import HERE, Interpreter

RELEASE_S = 5.0
"""How long a worker may take to release its objects. Workers released together share this time."""
_MEMORY_POLL_S = 1.0
_NOTE_BYTES = 4096


class Assignment(Struct, frozen=True, forbid_unknown_fields=True):
    """One chain to open: a case on a target. For a companion, this is not the worker's own
    target.
    """

    target: Target
    case: Case

    @property
    def key(self) -> str:
        """Target and case in one line, unique in a run."""
        return f"{self.target.key} {self.case.key}"

    def entry_fields(self, worker: str, process: int) -> dict[str, Any]:
        """The fields that each entry of the journal about this case has: they name its target, the
        case, the worker, and the number of the worker's process that measured it.
        """
        return {
            "target": self.target.key,
            "case": self.case.key,
            "worker": worker,
            "process": process,
        }


class Job(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole task of one worker process.

    If ``stack`` is set, the worker finds the targets of that stack. Otherwise it measures
    ``assignments``, whose keys stand for the cases in ``settings``.
    """

    worker: str
    process: int = 0
    stack: str = ""
    assignments: list[Assignment] = []
    settings: Settings = Settings(0.0)
    plugins: list[str] = []
    entry_points: list[str] = []
    """The entry points of installed packages that the parent could load. The worker loads no
    others.
    """
    doing_file: str = ""
    """The file in which the worker notes its next step. The parent reads it only if the worker
    dies.
    """


class FoundTargets(Struct, frozen=True, tag="found", tag_field="type"):
    """The targets of a stack in the worker's environment, or the reason why there are none.

    ``failed``: the stack raised an error other than ``Unavailable``.
    """

    targets: list[Target] = []
    reason: Why = ""
    mend: Why = ""
    failed: bool = False


class Ready(Struct, frozen=True, tag="ready", tag_field="type"):
    """The worker has imported, compiled and opened everything, and waits for its turn."""


class Pause(Struct, frozen=True, tag="pause", tag_field="type"):
    """The worker has sent all measured lines, and waits until they are saved and its next turn
    begins.

    ``others``: a waiting worker on the same device must measure first.
    """

    others: bool = False


Message = FoundTargets | Ready | Pause
GO = "go"
"""What the parent sends to let a worker go on."""

_answers: msgspec.json.Decoder[Message | JournalEntry] = msgspec.json.Decoder(
    Message | JournalEntry
)
decode = _answers.decode
"""The message or journal line in a line that a worker sent. Raises ``msgspec.DecodeError``."""


class Note:
    """A file in which a worker writes its next step, and which the parent reads if the worker dies.

    It is mapped, because writing to it then wakes no other process. It stays readable if someone
    deletes the file.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Map the file into memory. The parent gives no path and creates it; the worker gets its
        path.
        """
        if path is None:
            descriptor, name = tempfile.mkstemp(prefix="doing-", dir=scratch.folder())
            with open(descriptor, "wb") as file:
                # As ``read`` takes it apart: the index of a case (-1: none), the step, a zero byte.
                file.write(b"-1 starting\0".ljust(_NOTE_BYTES, b"\0"))
            path = Path(name)
        self.path = path
        # Mapped: to write then wakes no other process, and what is written can be read if somebody
        # deletes the file.
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), _NOTE_BYTES)

    def write(self, index: int, what: str) -> None:
        """Write the next step, and the index of its assignment (-1: none)."""
        body = f"{index} {what}".encode()[: _NOTE_BYTES - 1]
        self._map[: len(body) + 1] = body + b"\0"

    def read(self) -> tuple[int, str]:
        """What the worker wrote last: the index of the case that it was busy with (-1: none), and
        the step.
        """
        text = self._map[:].split(b"\0", 1)[0].decode(errors="replace")
        index, _, what = text.partition(" ")
        try:
            return int(index), what
        except ValueError:  # the worker overwrote the mapped memory
            return -1, "doing something unknown"

    def remove(self) -> None:
        """Remove the file."""
        self._map.close()
        with contextlib.suppress(OSError):
            self.path.unlink()


class WorkerDied(WithReason):
    """The worker ended too early. ``index``: the assignment that it worked on (-1: none)."""

    def __init__(self, index: int, reason: Reason) -> None:
        super().__init__(reason)
        self.index = index


class WorkerProcess:
    """A running worker. It is killed if it sends no line for ``silence_s`` seconds or takes more
    memory.
    """

    def __init__(
        self,
        job: Job,
        environment: Mapping[str, str],
        interpreter: Interpreter = HERE,
        *,
        silence_s: float,
        memory_bytes: int,
    ) -> None:
        self._note = Note()
        # Until when a released worker may take to exit, by ``time.monotonic``.
        self._release_until = 0.0
        # ``entry_points``: the stacks of installed packages that this process has tried; the worker
        # loads these without a trial.
        self._child = ChildProcess(
            "overhead.runner.worker",
            msgspec.structs.replace(
                job, doing_file=str(self._note.path), entry_points=usable_entry_points()
            ),
            decode,
            ChildLimits(silence_s, memory_bytes, poll_s=_MEMORY_POLL_S),
            {**interpreter.environment, **environment},
            interpreter.python_command,
        )

    def go(self) -> None:
        """Let the worker start its turn, or continue after a pause."""
        self._child.send(GO)

    def release(self) -> None:
        """Let the worker release its objects and exit, after it has done its job."""
        self._release_until = time.monotonic() + RELEASE_S
        self._child.send(GO)

    def receive(self) -> Message | JournalEntry:
        """The next line of the worker. Raises ``WorkerDied`` if none comes."""
        try:
            return self._child.receive()
        except ChildEnded as ended:
            index, what = self._note.read()
            raise WorkerDied(index, because("died-while", why=ended.reason, doing=what)) from None

    def end(self) -> None:
        """End the worker. After ``release`` it gets the rest of its time to exit; otherwise it is
        killed at once.
        """
        self._child.end(max(0.0, self._release_until - time.monotonic()))
        self._note.remove()
