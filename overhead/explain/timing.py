"""``overhead time``: what one call costs, by the suite's method, for a statement or a function of your own."""

from __future__ import annotations

import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from overhead import machine, results
from overhead.comparing import CaseVerdict, changed_versions, compare
from overhead.errors import BadFile, UsageError, check_text
from overhead.explain.call_spec import THREAD_VARIABLES, CallSpec, FoundCall, handing_over_spec, setup_of
from overhead.explain.record import missing
from overhead.explain.user_statement import SILENCE_S, try_statements
from overhead.measure.sampling.anchors import ANCHORS
from overhead.probes import unload_plugin
from overhead.profiles import Plan
from overhead.reading import format
from overhead.reading.next_run import next_run
from overhead.results import Figure, Fingerprint, Machine, Record, Scalar, WithFigures, ratio
from overhead.runner.campaign import WorkerLimits
from overhead.runner.interpreter import Interpreter, find_interpreters
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
_OF_RECORD = ("status", "reason", "bound", "flags", "figures")


class CallTiming(WithFigures, frozen=True, kw_only=True):
    """The figures of one statement, times in ns. ``wait``: how the end of the work is awaited. ``on``: the device.

    ``bound``: ``host``, ``device``, ``balanced`` or empty. ``flags``: remarks, such as ``values-not-checked``.
    ``next_run``: the range, ns, in which the next run should find ``complete``; None if there is none. ``varied``: the
    value of the variable, the number of threads or the interpreter, where these vary.
    """

    call: str
    varied: dict[str, str] = msgspec.field(default_factory=dict)
    status: results.Status
    reason: str
    wait: str
    on: str
    bound: str = ""
    flags: list[str]
    figures: list[Figure]
    next_run: list[float] | None = None

    def __str__(self) -> str:
        complete, met = self.figure("complete"), self.figure("met")
        name = ", ".join([self.call, *(f"{name} = {value}" for name, value in self.varied.items())])
        shown = [f"{name}: {format.time(complete) if complete else self.reason}"]
        if met and (free := met.measured) and not free.floor <= (self.value("complete") or 0.0) <= free.ceiling:
            shown.append(f"met {format.time(met)}")
        return ", ".join(shown)

    __repr__ = __str__


def untimed(tried: FoundCall, reason: str, figures: list[Figure]) -> CallTiming:
    """The result for a step that was not timed. ``reason``: why not."""
    return CallTiming(
        call="step()", status="unavailable", reason=reason, wait=tried.said, on=tried.adapter, flags=[], figures=figures
    )


class CallRatio(Struct, frozen=True, kw_only=True):
    """``complete`` of the row at ``position`` (from 1) over that of the row ``against``, measured in turn.

    ``difference``: None if they were measured in two processes. ``verdict``: of ``compare``, for two interpreters.
    """

    position: int
    against: int = 1
    difference: Figure | None = None
    ratio: Figure
    verdict: str = ""


class Timing(Struct, frozen=True, kw_only=True):
    """The result of ``time``. ``notes``: what disturbed the measurement, or what is missing, in sentences.

    As text: one line for each call with its cost; ``met`` beside it if the cost is outside its range. ``quick``: only
    first answers. ``versions``: of the first interpreter.
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


def time(  # noqa: PLR0913 - a public interface
    call: str | Callable[[], object],
    *others: str | Callable[[], object],
    setup: str = "",
    wait: str = "",
    listener: Listener | None = None,
    names: Sequence[str] = (),
    quick: bool = False,
    vary: str = "",
    threads: str = "",
    pythons: Sequence[str] = (),
) -> Timing:
    """Measure one call, or several in turn: the cost of one more call, and its parts.

    ``call``: a statement, or a function without arguments that other processes can import. ``setup``: a statement that
    runs in each process, once for each statement. ``wait``: a name of a library (``torch``, ``jax``, ...), ``none``, or
    a statement that returns when all work is done; without it the library in use is found. ``listener``: gets first
    answers within seconds. ``names``: what the calls are called. ``quick``: end after the first answers. ``vary``:
    ``NAME=VALUE,VALUE``, assignments before the setup. ``threads``: ``N,N``, numbers of library threads. ``pythons``:
    two interpreters, whose processes alternate. Takes up to a minute, twice that for two interpreters.
    Raises ``UsageError``, one line, for a statement that raises, cannot be repeated, hangs or takes too long.
    """
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
    spec = CallSpec(
        calls=texts,
        setup=setup,
        wait=wait,
        path=sys.path if texts != labels else [],
        vary=vary,
        threads=[*dict.fromkeys(threads.split(","))] if threads else [],
        pythons=[*pythons],
        first=True,
    )
    name, _, values = vary.partition("=")
    if vary and not (name.isidentifier() and all(map(str.strip, values.split(",")))):
        raise UsageError(f"--vary {vary}: not of the form NAME=VALUE,VALUE, such as n=64,256")
    if not all(number.isdecimal() and int(number) for number in spec.threads):
        raise UsageError(f"--threads {threads}: not numbers of 1 or more, such as 1,4")
    if threads and pythons:
        raise UsageError("--threads and --python: give one of them")
    if names and len(names) != len(calls):
        raise UsageError(f"--label: {len(names)} given for {len(calls)} calls; give one for each call, in order")
    return time_statements(spec, listener, labels=names or labels, quick=quick)


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
    check_text(*spec.calls, spec.setup, spec.wait, spec.vary, *labels)
    listener, rows, trials, began = listener or Listener(), [], [], monotonic()
    variants = _variants(spec)
    for varied, interpreter in variants:
        listener.working("a trial of each statement")
        trials.append(spec.found or try_statements(spec, interpreter, silence_s=silence_s).found)
        if [one.waits for one in trials[-1]] != [one.waits for one in trials[0]]:
            raise UsageError("the two interpreters need different waits, so nothing is compared; give --wait")
        for (position, given), one in zip(spec.cases, trials[-1], strict=True):
            row = CallTiming(
                call=(labels or spec.calls)[position],
                varied=varied | given,
                status="noisy",
                reason=one.first.reason if one.first else "",
                wait=one.said,
                on=one.adapter,
                flags=["values-not-checked"],
                figures=[one.first] if one.first else [],
            )
            rows.append(row)
            if one.first and not quick:
                listener.note(f"first answer, from one process: {row}")
    first = Timing(
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        setup=spec.setup,
        machine=machine.identity(),
        versions=variants[0][1].versions(sorted({package for one in trials[0] for package in one.packages})),
        calls=rows,
        quick=True,
    )
    if quick:
        return first
    if not spec.found:
        spec = replace(spec, found=trials[0])
        anchors_s = 3 * ANCHORS.longest_ns / 1e9
        slowest_s = max(one.one_ns for one in spec.found) / 1e9
        silence_s = min(silence_s, _LEAST_SILENCE_S + 3 * (monotonic() - began) + 100 * slowest_s + anchors_s)
    with handing_over_spec(spec), tempfile.TemporaryDirectory() as folder:  # ``measure`` empties ``scratch``
        try:
            plan = plan or sampling_plan(spec.found * max(1, len(spec.threads)))
            limits, plugins = WorkerLimits(silence_s=silence_s), [str(_STACK)]
            request = RunRequest(["call"], Choice(), "quick", plan, plugins, Path(folder), spec.pythons, limits=limits)
            outcome = measure(request, listener)
        except BadFile:
            raise UsageError(_MIXED) from None
        finally:
            unload_plugin(_STACK, "call")
        judged = compare(outcome.path, outcome.second.path).cases if outcome.second else ()
    return _timing(first, outcome, {case.case: case for case in judged}, others_may_fail)


def _variants(spec: CallSpec) -> list[tuple[dict[str, str], Interpreter]]:
    """What differs between processes, a number of threads or the interpreter, each with how to start one."""
    if spec.threads:
        return [({"threads": n}, Interpreter(environment=dict.fromkeys(THREAD_VARIABLES, n))) for n in spec.threads]
    named = [{"python": path} for path in spec.pythons] or [{}]
    return list(zip(named, find_interpreters(spec.pythons), strict=True))


def sampling_plan(found: Sequence[FoundCall]) -> Plan:
    """The plan of a run: 20 s of sampling in five processes; if calls are slow, three with at least 60 calls each."""
    slowest_s = max(one.one_ns for one in found) / 1e9
    slow = slowest_s > _SLOW_CALL_S
    processes = 3 if slow else 5
    case_s = max(20.0 / processes / len(found), _CALLS_PER_PROCESS * slowest_s if slow else 0.0)
    sampling_s = case_s * processes * len(found)
    wall_s = max(45.0, 1.5 * sampling_s)
    return Plan(processes=processes, target=0.03, sampling_s=1.001 * sampling_s, wall_s=wall_s, case_s=case_s)


def _timing(first: Timing, outcome: Outcome, judged: Mapping[str, CaseVerdict], others_may_fail: bool) -> Timing:
    sides = [one.fingerprint for one in (outcome, outcome.second) if one]
    records = [record for side in sides for record in side.records]
    for number, record in enumerate(records[: 1 if others_may_fail else None], 1):
        if record.status in ("failed", "unavailable", "unverified") and not record.figures:
            raise UsageError(f"statement {number}: {record.reason}" if len(records) > 1 else record.reason)
    calls = []
    for row, record in zip(first.calls, records, strict=True):
        again, known = next_run(record, first.machine), {name: getattr(record, name) for name in _OF_RECORD}
        calls.append(replace(row, **known, next_run=list(again) if again else None))
    notes = list(dict.fromkeys(flag for side in sides for flag in side.flags))
    if len(sides) > 1 and (changed := changed_versions(sides[0], sides[1])):
        said = "; ".join(f"{one.field} {one.base} and {one.new}" for one in changed)
        notes.append(f"versions of the first and the second interpreter: {said}")
    return replace(first, calls=calls, ratios=[*_ratios(sides, judged)], notes=notes, quick=False)


def _ratios(sides: Sequence[Fingerprint], judged: Mapping[str, CaseVerdict]) -> Iterator[CallRatio]:
    """The calls against the first one; the same case in other processes against the first of these."""
    records: list[Record] = []
    firsts: dict[tuple[Scalar, ...], int] = {}
    for side in sides:
        at = {record.key: number for number, record in enumerate(side.records, len(records) + 1)}
        records += side.records
        for one in side.comparisons:
            if one.name == "call-ratio":
                of = {figure.name: figure for figure in one.figures}
                position, against = at[one.of], at[one.against[0]]
                yield CallRatio(position=position, against=against, difference=of["difference"], ratio=of["ratio"])
    for number, record in enumerate(records, 1):
        against = firsts.setdefault(tuple(record.params.values()), number)
        if against < number:
            case, base = judged.get(record.key), records[against - 1]
            times = case.ratio if case else ratio(record.measured("complete"), base.measured("complete"))
            found = missing("ratio", (case and case.reason) or "one of them has no value", "ratio")
            if times is not None:
                found = Figure(name="ratio", unit="ratio", value=times.value, low=times.low, high=times.high)
            yield CallRatio(position=number, against=against, ratio=found, verdict=case.verdict if case else "")
