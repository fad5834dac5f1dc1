"""The entries of a journal, which grows while a run goes on: one line of JSON for each event.

The field ``type`` of an entry says which of the types below it is.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from overhead.results.reason import Why
from overhead.results.records import Case, LeftOut, MissingStack, RunFacts, Target
from overhead.results.vocabulary import (
    Count,
    FigureName,
    LongText,
    Name,
    Nanoseconds,
    Overlap,
    Params,
    PeriodKind,
    Placement,
    Status,
    Way,
)

_PROCESSES_OF_METHOD_1 = 5


class _Entry(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True, tag_field="type"):
    pass


class _CaseEntry(_Entry, kw_only=True):
    """An entry about a case in one process. ``worker``: as in ``PlannedEntry``."""

    target: LongText
    case: LongText
    worker: LongText
    process: Count


class HeaderEntry(_Entry, RunFacts, kw_only=True, tag="header"):
    """The first entry of every journal.

    ``planned``: a number in journals of method 3, which nothing uses. It is here because the
    reader refuses unknown fields, and 13 committed journals have it.
    """

    planned: Count = 0


class PlannedEntry(_Entry, kw_only=True, tag="planned"):
    """A case that will be measured. Overlap and window follow in ``OpenedEntry`` once the chain is
    open.
    """

    worker: LongText
    """Key of the target whose worker measures the case: the case's own target, or the one it
    accompanies.
    """
    target: Target
    case: Case
    processes: Count = 0
    """Planned processes of the worker; 0 in two committed journals of method 1, which lack this
    field (tests/data/journals).
    """

    @property
    def planned_processes(self) -> int:
        """The number of planned processes; where the field is missing, that of the profile
        ``default`` of method 1.
        """
        return self.processes or _PROCESSES_OF_METHOD_1


class OpenedEntry(_CaseEntry, kw_only=True, tag="opened"):
    """A chain opened in a process, with its attributes."""

    overlap: Overlap
    synchronous: bool = False
    wait_spins: bool = False
    window: Params = {}
    kernels: Annotated[dict[Name, Name], Meta(max_length=32)] = {}
    flags: Annotated[list[Name], Meta(max_length=64)] = []


class RoundEntry(_CaseEntry, kw_only=True, tag="round"):
    """Samples of one case in one round of one process: emitted by the sampling, and the input of
    the fit.

    ``samples``: ``[n, issue_ns, total_ns]``, or ``[n, issue_ns, total_ns, wait_cpu_ns]`` if the
    thread's CPU clock was read twice too. ``canary``: ns of the fixed pure-Python loop and of the
    fixed native loop, which show the processor's speed, each the longer of two readings, before and
    after the samples. ``queued``: ns for which the thread waited for its processor during the
    samples of three values; 0 in older journals, and where it is unknown.
    """

    round: Count
    samples: Annotated[
        list[Annotated[list[Nanoseconds], Meta(min_length=3, max_length=4)]], Meta(max_length=4096)
    ]
    canary: Annotated[list[Nanoseconds], Meta(max_length=2)] = []
    queued: Nanoseconds = 0


class OneOffEntry(_CaseEntry, kw_only=True, tag="once"):
    """Values measured outside the ladder, ns unless the name says otherwise: ``first``,
    ``prepare``, ``naive``, ``naive_idle``, ``latency``, ``empty_wait``, ``clock``, ``device_busy``,
    ``met``, ``stage:...``.

    ``at``: the n of each value where the values depend on it. ``reason``: why values are missing,
    or what limited them.
    """

    name: FigureName
    values: Annotated[list[float], Meta(max_length=100_000)]
    at: Annotated[list[Count], Meta(max_length=100_000)] = []
    reason: Why = ""


class FailedEntry(_CaseEntry, kw_only=True, tag="failed"):
    """A case that failed in a process, with its status and reason. The other cases go on."""

    status: Status
    reason: Why


class MissingEntry(_Entry, kw_only=True, tag="missing"):
    """A stack or device that is not available."""

    unavailable: MissingStack


class OmittedEntry(_Entry, kw_only=True, tag="omitted"):
    """A case that was not planned."""

    left_out: LeftOut


class DiedEntry(_Entry, kw_only=True, tag="died"):
    """A worker's process that ended too early. Its cases were measured again in another process, or
    failed.
    """

    worker: LongText
    process: Count
    reason: Why


class EndedEntry(_Entry, kw_only=True, tag="ended"):
    """A worker's process that completed. ``rule``: why it stopped."""

    worker: LongText
    process: Count
    rule: Why = ""


class PeersEntry(_Entry, kw_only=True, tag="peers"):
    """A case that several peers will run at once (see ``Contention``). ``targets``: of each peer,
    or one for all.
    """

    way: Way
    targets: Annotated[list[Target], Meta(min_length=1, max_length=64)]
    case: Case


class PeriodEntry(_Entry, kw_only=True, tag="window"):
    """What peers did in one period of ``length`` ns, which began for all at the same moment.

    ``of``: target (of the first peer) and case in one line. ``process``: the number of the set of
    fresh processes. ``alone``: no other peer exists yet, and the figures are those that
    ``slowdown`` and ``work`` refer to. ``kind``: ``long`` chains for throughput, ``short`` ones for
    the issue; in ``slices`` the first peer runs short chains and the others long ones. ``units``:
    of a chain. ``chains``: by peer the rows ``[start_ns, issue_ns, total_ns]``, with the start
    after that of the period. ``cpu``, ``ready``: by peer the CPU time, and the time in which it was
    ready to run and had no processor, ns. ``reason``: why there is nothing, with ``status``.
    """

    way: Way
    of: LongText
    process: Count
    peers: Count
    placement: Placement = "free"
    alone: bool = False
    kind: PeriodKind = "long"
    units: Annotated[list[Count], Meta(max_length=256)] = []
    length: Nanoseconds = 0
    devices: Annotated[list[Name], Meta(max_length=64)] = []
    chains: Annotated[
        list[Annotated[list[list[Nanoseconds]], Meta(max_length=4096)]], Meta(max_length=256)
    ] = []
    cpu: Annotated[list[Nanoseconds], Meta(max_length=256)] = []
    ready: Annotated[list[Nanoseconds], Meta(max_length=256)] = []
    status: Status = "ok"
    reason: Why = ""


JournalEntry = (
    HeaderEntry
    | PlannedEntry
    | OpenedEntry
    | RoundEntry
    | OneOffEntry
    | FailedEntry
    | MissingEntry
    | OmittedEntry
    | DiedEntry
    | EndedEntry
    | PeersEntry
    | PeriodEntry
)

_decoder = msgspec.json.Decoder(JournalEntry)
_encoder = msgspec.json.Encoder()


def encode_entry(entry: JournalEntry) -> bytes:
    """The JSON text of one entry, newline included."""
    return _encoder.encode(entry) + b"\n"


def decode_entry(raw: bytes) -> JournalEntry:
    """The entry in this JSON text. Raises ``msgspec.DecodeError`` or
    ``msgspec.ValidationError``.
    """
    return _decoder.decode(raw)
