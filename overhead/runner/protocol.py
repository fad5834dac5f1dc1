"""What parent and worker say to each other: a job in, journal lines and a few control messages out, one JSON a line."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from overhead.results import Case, JournalLine, Target


class Assignment(Struct, frozen=True, forbid_unknown_fields=True):
    """One chain to open: a case on a target. A companion belongs to another target than the worker's own."""

    target: Target
    case: Case

    @property
    def key(self) -> str:
        return f"{self.target.key} {self.case.key}"


class Job(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that one worker process does. ``stack`` set: look for that stack's targets; else measure ``assignments``."""

    worker: str
    process: int = 0
    stack: str = ""
    assignments: list[Assignment] = []
    firsts: list[str] = []
    """Of these the ones that get what is taken once a worker, the base case first; target and case, with a blank."""
    further: bool = False
    """Whether this process was not planned: the slopes of these cases are wanted, and nothing else."""
    ladders: dict[str, list[int]] = {}
    """By assignment the ladder of an earlier process."""
    plugins: list[str] = []
    seconds: float = 0.0
    """Sampling time of this process, all cases together."""
    min_rounds: int = 6
    max_rounds: int = 400
    target: float = 0.1
    """Relative half-width aimed at."""
    seed: int = 0
    doing_file: str = ""
    """Where the worker notes what it is about to do; read only after it died."""


class FoundTargets(Struct, frozen=True, tag="found", tag_field="type"):
    """The targets of a stack in the worker's environment, or why there is none."""

    targets: list[Target] = []
    reason: str = ""
    mend: str = ""


class Ready(Struct, frozen=True, tag="ready", tag_field="type"):
    """Everything is imported, compiled and open: the worker waits for the baton."""


class Pause(Struct, frozen=True, tag="pause", tag_field="type"):
    """What was measured is sent: the worker waits until it is safe and it is its turn; with ``others`` until another
    worker of its device has measured, if one waits."""

    others: bool = False


Message = FoundTargets | Ready | Pause
GO = b"go\n"

_encoder = msgspec.json.Encoder()
_messages: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
_lines: msgspec.json.Decoder[JournalLine] = msgspec.json.Decoder(JournalLine)
_jobs = msgspec.json.Decoder(Job)


class Rubbish(ValueError):
    """A line that is neither a message nor a journal line."""


def encode(message: Message | Job) -> bytes:
    return _encoder.encode(message) + b"\n"


def decode_job(raw: bytes) -> Job:
    return _jobs.decode(raw)


def decode(raw: bytes) -> Message | JournalLine:
    """What a worker said. Raises ``Rubbish``."""
    try:
        return _lines.decode(raw)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        why = error
    try:
        return _messages.decode(raw)
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise Rubbish(f"{raw[:80]!r}: {why}") from None
