"""``overhead time``: what one call costs, by the suite's method, for a statement or a function of your own."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from msgspec import Struct

from overhead import machine, results, scratch
from overhead.errors import BadFile, UsageError, check_text
from overhead.explain.call_spec import CallSpec, FoundCall, handing_over_spec, setup_of
from overhead.explain.user_statement import SILENCE_S, try_statements
from overhead.measure.sampling.anchors import ANCHORS
from overhead.probes import unload_plugin
from overhead.profiles import Plan
from overhead.reading import format
from overhead.reading.next_run import next_run
from overhead.results import Comparison, Figure, Machine, Record, WithFigures
from overhead.runner.campaign import WorkerLimits
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


class CallTiming(WithFigures, frozen=True, kw_only=True):
    """The figures of one statement, times in ns. ``wait``: how the end of the work is awaited. ``on``: the device.

    ``bound``: ``host``, ``device``, ``balanced`` or empty. ``flags``: remarks, such as ``values-not-checked``.
    ``next_run``: the range, ns, in which the next run should find ``complete``; None if there is none.
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

    def __str__(self) -> str:
        shown = [f"{name} {format.time(f)}" for name in ("complete", "met") if (f := self.figure(name)) is not None]
        return f"{self.call}: {', '.join(shown) or self.reason}"


class CallRatio(Struct, frozen=True, kw_only=True):
    """``complete`` of the statement at ``position`` (from 1) against the first one, in the same processes."""

    position: int
    difference: Figure
    ratio: Figure


class Timing(Struct, frozen=True, kw_only=True):
    """The result of ``time``. ``notes``: what disturbed the measurement, or what is missing, in sentences.

    As text: one line for each statement, with ``complete`` and ``met`` in microseconds.
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

    def __str__(self) -> str:
        return "\n".join(map(str, self.calls))

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
) -> Timing:
    """Measure one call, or several in turn: the cost of one more call, and its parts.

    ``call``: a statement, or a function without arguments that other processes can import. ``setup``: a statement that
    runs in each process, once for each statement. ``wait``: a name of a library (``torch``, ``jax``, ...), ``none``, or
    a statement that returns when all work is done; without it the library in use is found. Takes up to a minute.
    Raises ``UsageError``, one line, for a statement that raises, cannot be repeated, hangs or takes too long.
    """
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
    return time_statements(CallSpec(calls=texts, setup=setup, wait=wait, path=path), listener, labels=labels)


def time_statements(
    spec: CallSpec,
    listener: Listener | None = None,
    *,
    silence_s: float = SILENCE_S,
    plan: Plan | None = None,
    labels: Sequence[str] = (),
    others_may_fail: bool = False,
) -> Timing:
    """Measure the statements of ``spec``; they are tried first unless ``spec.found`` has what a trial found out.

    ``silence_s``: the longest that SETUP or a call may take. ``plan``: None for that of ``overhead time``. ``labels``:
    what the reader sees instead of the statements. ``others_may_fail``: only the first one must give a figure.
    """
    if not 1 <= len(spec.calls) <= _MOST_CALLS:
        raise UsageError(f"{len(spec.calls)} statements given; 1 to {_MOST_CALLS} are measured in turn")
    check_text(*spec.calls, spec.setup, spec.wait)
    listener = listener or Listener()
    if not spec.found:
        listener.working("a trial of each statement")
        began = monotonic()
        spec = try_statements(spec, silence_s=silence_s)
        anchors_s = 3 * ANCHORS.longest_ns / 1e9
        slowest_s = max(one.one_ns for one in spec.found) / 1e9
        silence_s = min(silence_s, _LEAST_SILENCE_S + 3 * (monotonic() - began) + 100 * slowest_s + anchors_s)
    with handing_over_spec(spec), scratch.subfolder() as folder:
        try:
            plan = plan or sampling_plan(spec.found)
            limits, plugins = WorkerLimits(silence_s=silence_s), [str(_STACK)]
            request = RunRequest(["call"], Choice(), "quick", plan, plugins=plugins, out=Path(folder), limits=limits)
            outcome = measure(request, listener)
        except BadFile:
            raise UsageError(_MIXED) from None
        finally:
            unload_plugin(_STACK, "call")
    return _timing(spec, labels or spec.calls, outcome.fingerprint, others_may_fail)


def sampling_plan(found: Sequence[FoundCall]) -> Plan:
    """The plan of a run: 20 s of sampling in five processes; if calls are slow, three with at least 60 calls each."""
    slowest_s = max(one.one_ns for one in found) / 1e9
    slow = slowest_s > _SLOW_CALL_S
    processes = 3 if slow else 5
    least_s = _CALLS_PER_PROCESS * slowest_s if slow else 0.0
    case_s = max(20.0 / processes / len(found), least_s)
    return Plan(
        processes=processes,
        target=0.03,
        sampling_s=1.001 * case_s * processes * len(found),
        wall_s=max(45.0, 1.5 * case_s * processes * len(found)),
        case_s=case_s,
    )


def _timing(spec: CallSpec, labels: Sequence[str], fingerprint: results.Fingerprint, others_may_fail: bool) -> Timing:
    records = {int(record.params["position"]): record for record in fingerprint.records}
    for position, record in sorted(records.items())[: 1 if others_may_fail else None]:
        if record.status in ("failed", "unavailable", "unverified") and not record.figures:
            which = f"statement {position + 1}: " if len(spec.calls) > 1 else ""
            raise UsageError(f"{which}{record.reason}")
    packages = {package for found in spec.found for package in found.packages}
    return Timing(
        created=fingerprint.created,
        setup=spec.setup,
        machine=fingerprint.machine,
        versions=machine.versions(sorted(packages)),
        calls=[_call(call, spec.found[n], records[n], fingerprint.machine) for n, call in enumerate(labels)],
        ratios=[_ratio(one, fingerprint.records) for one in fingerprint.comparisons if one.name == "call-ratio"],
        notes=list(fingerprint.flags),
    )


def _call(call: str, found: FoundCall, record: Record, computer: Machine) -> CallTiming:
    return CallTiming(
        call=call,
        status=record.status,
        reason=record.reason,
        wait=found.said,
        on=found.adapter,
        bound=record.bound,
        flags=record.flags,
        prints=found.prints,
        figures=record.figures,
        next_run=list(again) if (again := next_run(record, computer)) else None,
    )


def _ratio(one: Comparison, records: Sequence[Record]) -> CallRatio:
    of = next(record for record in records if record.key == one.of)
    figures = {figure.name: figure for figure in one.figures}
    return CallRatio(position=int(of.params["position"]) + 1, difference=figures["difference"], ratio=figures["ratio"])
