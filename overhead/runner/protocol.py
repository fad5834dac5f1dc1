"""The protocol between parent and worker, one JSON object per line.

The parent sends one job. The worker sends journal lines and a few messages.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from overhead.measure.sampling.events import Settings
from overhead.results import Case, JournalLine, Target


class Assignment(Struct, frozen=True, forbid_unknown_fields=True):
    """One chain to open: a case on a target. For a companion, this is not the worker's own target."""

    target: Target
    case: Case

    @property
    def key(self) -> str:
        return f"{self.target.key} {self.case.key}"


class Job(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole task of one worker process.

    If ``stack`` is set, the worker finds the targets of that stack. Otherwise it measures ``assignments``.
    """

    worker: str
    process: int = 0
    stack: str = ""
    assignments: list[Assignment] = []
    settings: Settings = Settings(0.0)
    plugins: list[str] = []
    entry_points: list[str] = []
    """The entry points of installed packages that the parent could load. The worker loads no others."""
    doing_file: str = ""
    """The file in which the worker notes its next step. The parent reads it only if the worker dies."""


class FoundTargets(Struct, frozen=True, tag="found", tag_field="type"):
    """The targets of a stack in the worker's environment, or the reason why there are none."""

    targets: list[Target] = []
    reason: str = ""
    mend: str = ""


class Ready(Struct, frozen=True, tag="ready", tag_field="type"):
    """The worker has imported, compiled and opened everything, and waits for its turn."""


class Pause(Struct, frozen=True, tag="pause", tag_field="type"):
    """The worker has sent all measured lines, and waits until they are saved and its next turn begins.

    ``others``: a waiting worker on the same device must measure first.
    """

    others: bool = False


Message = FoundTargets | Ready | Pause
GO = b"go\n"

_encoder = msgspec.json.Encoder()
_answers: msgspec.json.Decoder[Message | JournalLine] = msgspec.json.Decoder(Message | JournalLine)
_jobs = msgspec.json.Decoder(Job)


class UnknownLine(ValueError):
    """A worker sent a line that is neither a message nor a journal line."""


def encode(message: Message | Job) -> bytes:
    return _encoder.encode(message) + b"\n"


def decode_job(raw: bytes) -> Job:
    return _jobs.decode(raw)


def decode(raw: bytes) -> Message | JournalLine:
    """The message or journal line in one line of a worker. Raises ``UnknownLine``."""
    try:
        return _answers.decode(raw)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise UnknownLine(f"{raw[:80]!r}: {error}") from None
