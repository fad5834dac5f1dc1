"""``overhead time``: what one call costs, by the suite's method, for a statement or a function of your own."""

from __future__ import annotations

import itertools
import sys
import tempfile
import textwrap
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, Unpack

import msgspec
from msgspec import Struct

from overhead import machine, results
from overhead.comparing import CaseVerdict, compare
from overhead.errors import BadFile, UsageError, check_text
from overhead.explain.call_spec import CallSpec, FoundCall, handing_over_spec, setup_of
from overhead.explain.user_statement import PACKAGES, SILENCE_S, try_statements
from overhead.explain.variants import Row, TimeOptions, common_found, rows_of, with_options
from overhead.measure.sampling.anchors import ANCHORS
from overhead.probes import unload_plugin
from overhead.profiles import Plan
from overhead.reading import format
from overhead.reading.next_run import next_run
from overhead.results import Figure, Fingerprint, Machine, Record, Scalar, Value, WithFigures, ratio
from overhead.runner.campaign import WorkerLimits
from overhead.runner.output import Outcome
from overhead.runner.progress import Listener
from overhead.runner.run import RunRequest, measure
from overhead.runner.schedule import Choice

_STACK = Path(__file__).with_name("call_stack.py")
_MIXED = (
    "the answers of a process cannot be read: the program writes to a file descriptor that it has not opened, or "
    "forks a child process that runs on (os.fork)"
)
_MOST_CALLS = 8
_SLOW_CALL_S = 0.03
_LEAST_SILENCE_S = 10.0
"""A process that measures may be silent for this long, and for three times the time of the trial."""
_CALLS_PER_PROCESS = 60
"""Calls of a slow statement that a process samples."""
_FIRST_S = 1.5
"""How long the trial samples for its first answers."""


class CallTiming(WithFigures, frozen=True, kw_only=True):
    """The figures of one statement, times in ns. ``wait``: how the end of the work is awaited. ``on``: the device.

    ``bound``: ``host``, ``device``, ``balanced`` or empty. ``flags``: remarks, such as ``values-not-checked``.
    ``next_run``: the range, ns, in which the next run should find ``complete``; None if there is none. ``varied``: the
    value of the variable, the number of threads, and the interpreter, where these vary.
    """

    call: str
    status: results.Status
    reason: str
    wait: str
    on: str
    bound: str = ""
    flags: list[str]
    prints: bool = False
    figures: list[Figure]
    next_run: list[float] | None = None
    varied: dict[str, Scalar] = msgspec.field(default_factory=dict)

    def __str__(self) -> str:
        complete, met = self.figure("complete"), self.figure("met")
        shown = [format.time(complete) if complete is not None else self.reason]
        if (
            met is not None
            and (free := met.measured)
            and not free.floor <= (self.value("complete") or 0) <= free.ceiling
        ):
            shown.append(f"met {format.time(met)}")
        return f"{self.name}: {', '.join(shown)}"

    @property
    def name(self) -> str:
        """The call with what is varied: ``x.add_(1), n = 64``."""
        return ", ".join([self.call, *(f"{name} = {value}" for name, value in self.varied.items())])

    __repr__ = __str__


class CallRatio(Struct, frozen=True):
    """``complete`` of the row at ``position`` (from 1) over that of the row ``against``, measured in turn.

    ``difference``: None if they were measured in two processes. ``verdict``: of ``compare``, for two interpreters.
    """

    position: int
    ratio: Figure
    difference: Figure | None = None
    against: int = 1
    verdict: str = ""


class Timing(Struct, frozen=True, kw_only=True):
    """The result of ``time``. ``notes``: what disturbed the measurement, or what is missing, in sentences.

    As text: one line for each statement with its cost and interval; ``met`` beside it if the cost is outside its range.
    ``quick``: only first answers, each from one process.
    """

    format: str = "overhead-time"
    version: int = 1
    created: str
    setup: str
    machine: Machine
    versions: dict[str, str]
    calls: list[CallTiming]
    ratios: list[CallRatio] = []
    notes: list[str] = []
    quick: bool = False

    def __str__(self) -> str:
        return "\n".join(map(str, self.calls))

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, for JSON."""
        found: dict[str, Any] = results.to_builtins(self)
        return found


def time(
    call: str | Callable[[], object],
    *others: str | Callable[[], object],
    setup: str = "",
    wait: str = "",
    listener: Listener | None = None,
    **options: Unpack[TimeOptions],
) -> Timing:
    """Measure one call, or several in turn: the cost of one more call, and its parts.

    ``call``: a statement, or a function without arguments that other processes can import. ``setup``: a statement that
    runs in each process, once for each statement. ``wait``: a name of a library (``torch``, ``jax``, ...), ``none``, or
    a statement that returns when all work is done; without it the library in use is found. ``listener``: gets a first
    answer within seconds. ``options``: see ``TimeOptions``. Takes up to a minute, twice that for two interpreters.
    Raises ``UsageError``, one line, for a statement that raises, cannot be repeated, hangs or takes too long.
    """
    if strange := options.keys() - TimeOptions.__annotations__.keys():
        raise TypeError(f"time() got an unexpected keyword argument {min(strange)!r}")
    check_text(setup, wait)
    calls, texts, labels = [call, *others], [], []
    for number, one in enumerate(calls):
        if isinstance(one, str):
            texts.append(one)
            labels.append(one)
        else:
            name = f"_overhead_call_{number}"
            setup = f"{setup_of(one, name)}\n{textwrap.dedent(setup)}"
            texts.append(f"{name}()")
            labels.append(f"{getattr(one, '__qualname__', type(one).__qualname__)}()")
    path = sys.path if texts != labels else []
    spec = with_options(CallSpec(calls=texts, setup=setup, wait=wait, path=path, first_s=_FIRST_S), options)
    labels = list(options.get("labels", ())) or labels
    return time_statements(spec, listener, labels=labels, quick=options.get("quick", False))


def time_statements(
    spec: CallSpec,
    listener: Listener | None = None,
    *,
    silence_s: float = SILENCE_S,
    plan: Plan | None = None,
    labels: Sequence[str] = (),
    others_may_fail: bool = False,
    quick: bool = False,
) -> Timing:
    """Measure the statements of ``spec``; they are tried first unless ``spec.found`` has what a trial found out.

    ``silence_s``: the longest that SETUP or a call may take. ``plan``: None for that of ``overhead time``. ``labels``:
    what the reader sees instead of the statements. ``others_may_fail``: only the first one must give a figure.
    ``quick``: end after the first answers.
    """
    if not 1 <= len(spec.cases) <= _MOST_CALLS:
        raise UsageError(f"{len(spec.cases)} statements given; 1 to {_MOST_CALLS} are measured in turn")
    check_text(*spec.calls, spec.setup, spec.wait)
    listener, rows = listener or Listener(), rows_of(spec, labels or spec.calls)
    if not spec.found:
        listener.working("a trial of each statement")
        began = monotonic()
        trials = _trials(spec, rows, silence_s, Listener() if quick else listener)
        spec = msgspec.structs.replace(spec, found=common_found(trials))
        if quick:
            return _first_timing(spec, rows, list(itertools.chain(*trials)))
        anchors_s = 3 * ANCHORS.longest_ns / 1e9
        slowest_s = max(one.one_ns for one in spec.found) / 1e9
        silence_s = min(silence_s, _LEAST_SILENCE_S + 3 * (monotonic() - began) + 100 * slowest_s + anchors_s)
    with handing_over_spec(spec), tempfile.TemporaryDirectory() as folder:  # ``measure`` empties ``scratch``
        try:
            request = RunRequest(
                ["call"],
                Choice(),
                "quick",
                plan or sampling_plan(spec.found, max(1, len(spec.threads))),
                plugins=[str(_STACK)],
                out=Path(folder),
                pythons=spec.pythons,
                limits=WorkerLimits(silence_s=silence_s),
            )
            outcome = measure(request, listener)
        except BadFile:
            raise UsageError(_MIXED) from None
        finally:
            unload_plugin(_STACK, "call")
        judged = compare(outcome.path, outcome.second.path).cases if outcome.second else ()
    return _timing(spec, rows, outcome, judged, others_may_fail)


def _trials(spec: CallSpec, rows: Sequence[Row], silence_s: float, listener: Listener) -> list[list[FoundCall]]:
    """What the trials found out about each case; the listener gets the first answers."""
    trials = []
    for start in range(0, len(rows), len(spec.cases)):

        def answered(number: int, found: FoundCall, start: int = start) -> None:
            if found.first is not None:
                listener.note(f"first answer, from one process: {_first(rows[start + number], found)}")

        trials.append(try_statements(spec, rows[start].interpreter, silence_s=silence_s, answered=answered).found)
    return trials


def _first_timing(spec: CallSpec, rows: Sequence[Row], found: Sequence[FoundCall]) -> Timing:
    return Timing(
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        setup=spec.setup,
        machine=machine.identity(),
        versions=machine.versions(sorted({package for one in found for package in one.packages})),
        calls=[_first(row, one) for row, one in zip(rows, found, strict=True)],
        notes=["Each cost is a first answer, from one process that is not pinned."],
        quick=True,
    )


def _first(row: Row, found: FoundCall) -> CallTiming:
    assert found.first is not None
    return _call(row, found, found.first, flags=["values-not-checked"], figures=[found.first])


def sampling_plan(found: Sequence[FoundCall], workers: int = 1) -> Plan:
    """The plan of a run: 20 s of sampling in five processes; if calls are slow, three with at least 60 calls each.

    ``workers``: the number of workers that each measure all calls for so long.
    """
    slowest_s = max(one.one_ns for one in found) / 1e9
    slow = slowest_s > _SLOW_CALL_S
    processes = 3 if slow else 5
    least_s = _CALLS_PER_PROCESS * slowest_s if slow else 0.0
    case_s = max(20.0 / processes / len(found), least_s)
    return Plan(
        processes=processes,
        target=0.03,
        sampling_s=1.001 * case_s * processes * len(found) * workers,
        wall_s=max(45.0, 1.5 * case_s * processes * len(found)) * workers,
        case_s=case_s,
    )


def _timing(
    spec: CallSpec, rows: Sequence[Row], outcome: Outcome, judged: Sequence[CaseVerdict], others_may_fail: bool
) -> Timing:
    sides = [outcome.fingerprint, *([outcome.second.fingerprint] if outcome.second else [])]
    records = [row.record(sides[row.side]) for row in rows]
    for row, record in list(zip(rows, records, strict=True))[: 1 if others_may_fail else None]:
        if record.status in ("failed", "unavailable", "unverified") and not record.figures:
            which = [f"statement {row.position + 1}"] if len(spec.calls) > 1 else []
            which += [f"{name} = {value}" for name, value in row.varied.items()]
            raise UsageError(f"{', '.join(which)}: {record.reason}" if which else record.reason)
    packages = {package for found in spec.found for package in found.packages}
    first = outcome.fingerprint
    return Timing(
        created=first.created,
        setup=spec.setup,
        machine=first.machine,
        versions={name: one for name, one in first.versions.items() if name in packages or name not in PACKAGES},
        calls=[
            _call(
                row,
                found,
                record,
                bound=record.bound,
                flags=record.flags,
                figures=record.figures,
                next_run=list(again) if (again := next_run(record, first.machine)) else None,
            )
            for row, record, found in zip(rows, records, itertools.cycle(spec.found))
        ],
        ratios=_ratios(rows, records, sides, judged),
        notes=[*dict.fromkeys(flag for side in sides for flag in side.flags), *_changed(sides, packages)],
    )


def _changed(sides: Sequence[Fingerprint], packages: Collection[str]) -> list[str]:
    """The versions that differ between the two interpreters."""
    base, new = sides[0].versions, sides[-1].versions
    names = [name for name in ("python", *sorted(packages)) if base.get(name) != new.get(name)]
    return [f"{name}: {base.get(name, 'none')} against {new.get(name, 'none')}" for name in names]


def _call(row: Row, found: FoundCall, of: Record | Figure, **more: Any) -> CallTiming:
    return CallTiming(
        call=row.label,
        varied=row.varied,
        status=of.status,
        reason=of.reason,
        wait=found.said,
        on=found.adapter,
        prints=found.prints,
        **more,
    )


def _ratios(
    rows: Sequence[Row], records: Sequence[Record], sides: Sequence[Fingerprint], judged: Sequence[CaseVerdict]
) -> list[CallRatio]:
    """The statements against the first; numbers of threads against the first one; two interpreters."""
    at = {(row.side, record.key): n for n, (row, record) in enumerate(zip(rows, records, strict=True), 1)}
    found = []
    for side, own in enumerate(sides):
        for one in own.comparisons:
            if one.name == "call-ratio":
                figures = {figure.name: figure for figure in one.figures}
                position, against = at[side, one.of], at[side, one.against[0]]
                found.append(CallRatio(position, figures["ratio"], figures["difference"], against))
    firsts: dict[tuple[int, ...], int] = {}
    for n, row in enumerate(rows, 1):
        against = firsts.setdefault((row.side, row.position, row.given), n)
        if against < n:
            costs = [WithFigures.measured(records[one - 1], "complete") for one in (n, against)]
            found.append(CallRatio(n, _ratio_figure(ratio(*costs)), against=against))
    for case in judged:
        if (0, case.case) in at and (1, case.case) in at:
            times = _ratio_figure(case.ratio, case.reason)
            found.append(CallRatio(at[1, case.case], times, against=at[0, case.case], verdict=case.verdict))
    return found


def _ratio_figure(of: Value | None, reason: str = "") -> Figure:
    if of is None:
        return Figure(name="ratio", unit="ratio", status="unavailable", reason=reason or "one of them has no value")
    return Figure(name="ratio", unit="ratio", value=of.value, low=of.low, high=of.high)
