"""Select the records of a run that a test needs, and compute the quantity that the claim is
about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import msgspec

from overhead.claims.registry import ClaimTest, Selector
from overhead.decode.reading import MeasuredVariant, decoder_results, slope_over_dispatches
from overhead.devices import Processor, processor_kind, same_device_across_apis
from overhead.reading.missing_values import missing_figure, why
from overhead.reading.plain_text import plain
from overhead.reading.view import TargetLabel, View, parameter_texts
from overhead.results import (
    Caller,
    Reason,
    Record,
    Status,
    Value,
    Why,
    WithFigures,
    about,
    because,
    exactly,
    ratio,
)
from overhead.workloads import UNROLLED

_NS_PER_UNIT = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


FailedBy = Literal["", "RecursionError", "memory", "time"]
"""By what a case failed: by an error of Python or by too little memory, or since the suite ended
it.
"""
_FAILURES: dict[str, FailedBy] = {"compile-memory-limit": "memory", "compile-time-limit": "time"}
"""By the code of a reason."""
_FAILURES_IN_TEXT: dict[str, FailedBy] = {
    "RecursionError": "RecursionError",
    "out of memory": "memory",
}
"""By what Python, PyTorch and drivers say, which no code tells. A reason of the suite is not looked
at for these.
"""


@dataclass(frozen=True)
class LineOfCases:
    """A line through several cases. ``intercept_ms``: where it begins."""

    intercept_ms: Value
    cases: int


@dataclass(frozen=True)
class MeasuredCase:
    """A case that was measured for a claim. ``pattern``: with what differs; ``caller``: None but of
    the step.
    """

    target: TargetLabel
    pattern: str
    caller: Caller | None


@dataclass(frozen=True)
class ClaimValue:
    """A quantity that a claim is about, measured on one machine, or the reason why it was not.
    ``machine``: its GPUs, or its CPU. ``of``, ``against``: keys of the records that it is computed
    from.

    ``cases``: what these records are of, without the second where it is the first. ``status``: of
    the case. ``measured``: in the unit of the test; ``reason``: why it is None. ``line``: of a
    slope. ``failure``: by what the case failed. ``profile``, ``created``: of the run. ``on``: what
    did the work.
    """

    machine: str
    cases: tuple[MeasuredCase, ...]
    of: str
    against: str
    software: bool
    status: Status
    measured: Value | None = None
    reason: Why = ""
    profile: str = ""
    created: str = ""
    line: LineOfCases | None = None
    failure: FailedBy = ""
    on: Processor = "gpu"

    def to_dict(self) -> dict[str, Any]:
        """The fields of the value as a dict, for ``--json``: the measured quantity as ``value``,
        ``low`` and ``high``, without the parts that are shown in words.
        """
        fields = dict(vars(self))
        for name in ("measured", "line", "cases"):
            del fields[name]
        measured = self.measured
        fields["value"] = measured.value if measured else None
        fields["low"] = measured.low if measured else None
        fields["high"] = measured.high if measured else None
        return fields


class _Missing(Exception):
    """The quantity has no value."""

    def __init__(self, reason: Why) -> None:
        super().__init__(str(reason))
        self.reason = reason


class RecordPair(NamedTuple):
    """The record that a test is about, and the one to set it against; None if the test has one."""

    of: Record
    against: Record | None


def measure(test: ClaimTest, view: View) -> list[ClaimValue]:
    """One value, or the reason for none, for each target of the run that has the test's records; []
    if none has.
    """
    return [_measured(test, view, pair) for pair in record_pairs(test, view)]


def _measured(test: ClaimTest, view: View, pair: RecordPair) -> ClaimValue:
    """The value of one test from one pair of records of a run, or the reason why there is none; in
    any case with the names of the machine, the cases and the run.
    """
    machine = view.fingerprint.machine
    gpus = ", ".join(gpu.name for gpu in machine.gpus)
    of = pair.of
    records = [of] if pair.against is None else [of, pair.against]
    # All that names the value; the value itself, or the reason, is added below. ``created``: the
    # date and the time of the run, up to the minute.
    without_value = ClaimValue(
        machine=plain(gpus or machine.cpu),
        cases=_cases(view, records),
        of=of.key,
        against=pair.against.key if pair.against else "",
        software=any(record.software for record in records),
        status=of.status,
        on=processor_kind(of),
        failure=failure_of(of.reason) if of.status == "failed" else "",
        profile=view.fingerprint.profile,
        created=view.fingerprint.created[:16],
    )
    try:
        # ``scale``: a factor that the test has for its result. A slope also has the line that it
        # was taken from. Without a value the functions called here raise ``_Missing``.
        if test.kind == "slope":
            slope = _slope(test, view, of)
            scaled = slope.per_dispatch * test.scale
            return replace(without_value, measured=scaled, line=slope.line)
        return replace(without_value, measured=_quantity(test, view, pair) * test.scale)
    except _Missing as missing:
        return replace(without_value, reason=missing.reason)


def failure_of(reason: Why) -> FailedBy:
    """By what a case failed (an error of Python, too little memory, or time): from the code of its
    reason, or from what a library or a driver said; else ''. A reason may contain others, which are
    searched too. The claim that a case fails is tested with it.
    """
    # Text is from a library or a driver; reasons of the suite have codes.
    if isinstance(reason, str):
        for text, failure in _FAILURES_IN_TEXT.items():
            if text in reason:
                return failure
        return ""
    if reason.code in _FAILURES:
        return _FAILURES[reason.code]

    # Reasons inside this one: of what it is about (``values``), and that hold too (``also``).
    inner = [value for value in reason.values.values() if isinstance(value, str | Reason)]
    for part in [*inner, *reason.also]:
        failure = failure_of(part)
        if failure:
            return failure
    return ""


def _quantity(test: ClaimTest, view: View, pair: RecordPair) -> Value:
    """What the test computes from its records (a figure, a count, a ratio or a share), in the unit
    of the test. Raises ``_Missing`` with the reason if a figure has no value.
    """
    of = pair.of
    # One record alone: a share, a count, a rate, or a time in the unit of the test. ``_amount`` is
    # a time in ns. A claim that a case ``fails`` has its time too, if it does not fail.
    if test.kind == "stage-share":
        return _stage_share(of, test.of.figure or "complete")
    if test.kind == "count":
        return _count(of)
    if test.unit == "1/s":
        # How often the time fits into a second, which is 1e9 ns.
        return exactly(1e9, "1/s") / _amount(of, test.of)
    if test.kind in ("value", "fails"):
        return _amount(of, test.of) * (1 / _NS_PER_UNIT.get(test.unit, 1.0))

    # Two records: their ratio, or the share that the one saves beside the other. A named comparison
    # (``via``) was formed in each round, so it is surer than a ratio of two figures.
    if test.via:
        ratio_of_both = _by_comparison(test.via, view, of)
    else:
        ratio_of_both = _ratio(test, pair)
    # ``share_saved``: of a ratio r of ``of`` to ``against`` the saved part is 1 - 1 / r.
    if test.kind == "share-left":
        return exactly(1.0) - ratio_of_both.share_saved
    if test.kind == "share":
        return ratio_of_both.share_saved
    return ratio_of_both


def _ratio(test: ClaimTest, pair: RecordPair) -> Value:
    """The figure (or the time of a chain) of one record over that of the other. Raises ``_Missing``
    without a second record, or if it is zero.
    """
    if pair.against is None:
        raise _Missing(because("nothing-to-set-against"))
    # Both in ns. ``against_of``: the selector ``test.against``, in which fields that it leaves out
    # are those of ``test.of``. The ``or`` never applies: with a second record there is a selector.
    amount_of = _amount(pair.of, test.of)
    amount_against = _amount(pair.against, against_of(test) or test.of)
    ratio_of_both = ratio(amount_of, amount_against)
    if ratio_of_both is None:
        raise _Missing(because("no-ratio-of-zero"))
    return ratio_of_both


def _count(record: Record) -> Value:
    """How many dispatches a unit of the record is, as the program that ran was counted."""
    dispatches = record.window.get("dispatches")
    if not isinstance(dispatches, int):
        raise _Missing(because("no-dispatches-counted", why=record.reason or record.status))
    return exactly(dispatches)


class _DispatchSlope(NamedTuple):
    """The time of one dispatch, in the unit of the test, and the line that it is the slope of."""

    per_dispatch: Value
    line: LineOfCases


def _slope(test: ClaimTest, view: View, of: Record) -> _DispatchSlope:
    """The time of one dispatch as the slope of a line through decode cases (tokens of a language
    model) that differ in the number of dispatches alone, by ``test.over`` (padding or fusions), and
    that line. ``of``: one of them. Raises ``_Missing`` with too few cases.
    """
    variants = _variants_with(test, view, of)
    line = slope_over_dispatches(variants)
    if line is None:
        raise _Missing(because("too-few-cases-for-line", over=test.over))
    # From ns to the unit of the test. ``points``: how many cases the line goes through. It begins
    # at ``intercept``, the time of a token without dispatches.
    per_dispatch = line.slope * (1 / _NS_PER_UNIT[test.unit])
    intercept_ms = line.intercept / _NS_PER_UNIT["ms"]
    return _DispatchSlope(per_dispatch, LineOfCases(intercept_ms, line.points))


def _variants_with(test: ClaimTest, view: View, of: Record) -> list[MeasuredVariant]:
    """The measured variants of a decoder (a language model as a workload) that differ from each
    other in ``test.over`` alone, padding or fusions, and that the record ``of`` is one of; empty if
    there are none.
    """
    variants: list[MeasuredVariant] = []
    for decoder in decoder_results(view):
        # Lists of variants that differ in nothing but fusions (dispatches merged into one), or in
        # nothing but padding (dispatches added that do nearly nothing).
        groups = decoder.levels if test.over == "fusions" else decoder.padded
        for group in groups:
            keys = [variant.record.key for variant in group]
            if of.key in keys:
                variants = list(group)
                break
    return variants


def _amount(record: Record, selector: Selector) -> Value:
    """The selected figure in ns. With ``steps``: the time in ns of a chain of that many steps,
    including its wait.
    """
    if selector.steps is None:
        return _figure(record, selector.figure or "complete")
    return _figure(record, "fixed") + _figure(record, "complete") * selector.steps


def _figure(record: Record, name: str) -> Value:
    """The figure of a record, ns. Raises ``_Missing``."""
    # Without the board, which the two sides of a ratio may name differently.
    value = WithFigures.measured(record, name)
    if not value:
        raise _Missing(about(name, why(record, name)))
    return value


def _by_comparison(name: str, view: View, of: Record) -> Value:
    """The ratio of a named comparison, whose cases alternated in the same processes, for the record
    ``of``. Raises ``_Missing`` if the run has none, or without a value above zero.
    """
    comparison = view.comparison(name, of.key)
    figure = comparison.figure("ratio") if comparison else None
    if figure is None:
        raise _Missing(about(name, because("did-not-alternate")))
    value = figure.measured
    if value is None or value.value <= 0:
        raise _Missing(about(name, missing_figure(figure).why))
    return value


def _stage_share(record: Record, figure: str) -> Value:
    """The share of one stage in the sum of all stages: the calls of a unit, timed one by one.
    ``figure``: the name of the stage. Raises ``_Missing`` if the calls were not timed.
    """
    # ``stage:NAME``: the time of one kind of call in a unit.
    stages = [stage for stage in record.figures if stage.name.startswith("stage:")]
    values = [stage.measured for stage in stages]
    total = sum(value.value for value in values if value)
    of_stage = record.measured(figure)
    if of_stage is None or total <= 0:
        raise _Missing(about(figure, because("calls-not-timed-alone")))
    return of_stage / total


def _cases(view: View, records: Sequence[Record]) -> tuple[MeasuredCase, ...]:
    """The names of the cases that a value is computed from, for showing, each record once. A step
    is named by its pattern and caller; another workload by its name, pattern and parameters.
    """
    by_key = {record.key: record for record in records}
    cases: list[MeasuredCase] = []
    for record in by_key.values():
        target = view.target(record)
        if record.workload == "step":
            pattern = target.pattern_label(record)
            cases.append(MeasuredCase(target.named, pattern, record.caller))
        else:
            pattern = " ".join([record.workload, record.pattern, *parameter_texts(record.params)])
            cases.append(MeasuredCase(target.named, pattern, None))
    return tuple(cases)


def against_of(test: ClaimTest) -> Selector | None:
    """The selector of the record to set ``of`` against, complete: fields that it does not name are
    those of ``of``. None if the test has no ``against``.
    """
    if test.against is None:
        return None
    # Fields that ``against`` names replace those of ``of``; a field that it leaves out is None.
    fields = {name: getattr(test.against, name) for name in Selector.__struct_fields__}
    named = {name: value for name, value in fields.items() if value is not None}
    return msgspec.structs.replace(test.of, **named)


def record_pairs(test: ClaimTest, view: View) -> Iterator[RecordPair]:
    """The pairs of records of a run that a test is computed from, one for each stack and device
    that has them: on one device and with equal parameters.

    Two records of one target (a stack on a device) also have the same pattern and caller, unless
    the selectors name others.
    """
    # ``wanted``: the selector of the second record, None where the test has only one.
    wanted = against_of(test)
    for of in plainest_records(test.of, view):
        if wanted is None or test.against is None:
            yield RecordPair(of, None)
        # Another stack or API is another target, which is on the same device all the same. Two APIs
        # name a device differently, so ``same_device_across_apis`` compares words of the names.
        elif test.against.stack is not None or test.against.api is not None:
            for against in plainest_records(wanted, view, of):
                if same_device_across_apis(of, against):
                    yield RecordPair(of, against)
        else:
            # The same target: pattern and caller as in the first record, unless a selector names
            # them.
            alike = msgspec.structs.replace(
                wanted,
                pattern=wanted.pattern or of.pattern,
                caller=wanted.caller or of.caller,
            )
            for against in plainest_records(alike, view, of):
                if against.target_key == of.target_key:
                    yield RecordPair(of, against)


def plainest_records(selector: Selector, view: View, like: Record | None = None) -> list[Record]:
    """For each target (a stack on a device) the record that a selector of a test selects. Of
    several that match it is the plainest: that with the fewest parameters, and of these the first.

    ``like``: parameters that it shares with this record must be equal, except those that the
    selector names.
    """
    plainest: dict[str, Record] = {}
    for record in view.fingerprint.records:
        if not _matches(selector, record):
            continue
        if like is not None and not _has_equal_params(record, like, selector):
            continue
        # Fewer parameters: a plainer case.
        best = plainest.setdefault(record.target_key, record)
        if len(record.params) < len(best.params):
            plainest[record.target_key] = record
    return list(plainest.values())


def _has_equal_params(record: Record, like: Record, selector: Selector) -> bool:
    """Whether a record can be set against ``like``: the parameters that both have are equal, except
    those that the selector names, which are what a claim compares.
    """
    named = selector.params or {}
    for name, value in like.params.items():
        if name not in named and record.params.get(name, value) != value:
            return False
    return True


def _matches(selector: Selector, record: Record) -> bool:
    """Whether the selector of a test selects this record. A field that it does not name may be
    anything, but for the workload (the step), the dependency (chained), and that the work runs: a
    null backend, which runs nothing, must be named.
    """
    if selector.stack is not None and record.stack not in selector.stack:
        return False
    # Fields with a usual value, which must be named to select another one. ``chained``: all units
    # work on the same data.
    if record.workload != (selector.workload or "step"):
        return False
    if record.dependency != (selector.dependency or "chained"):
        return False
    if not record.executes and selector.api != "Null":
        return False
    # Fields without one: any value, unless the selector names it.
    if selector.pattern and record.pattern != selector.pattern:
        return False
    if selector.caller and record.caller != selector.caller:
        return False
    if selector.api and record.api != selector.api:
        return False
    params = selector.params or {}
    return all(record.params.get(name) == value for name, value in params.items())


@dataclass(frozen=True)
class MeasuringCommand:
    """How to measure what a claim needs: the command, and the APIs that the machine must have.

    ``command`` is '' where only an older version could measure it.
    """

    command: str = ""
    apis: tuple[str, ...] = ()


NO_COMMAND = MeasuringCommand()


def how_to_measure(*tests: ClaimTest | None) -> MeasuringCommand:
    """The command that measures what the tests of a claim need, for a reader whose run lacks it:
    all stacks, patterns and workloads that they select. ``NO_COMMAND`` for a workload that only an
    older version measured.
    """
    # All records that the tests need.
    selectors: list[Selector] = []
    for test in tests:
        if test is None:
            continue
        selectors.append(test.of)
        against = against_of(test)
        if against is not None:
            selectors.append(against)
    # ``UNROLLED``: the workload that only an older version measured.
    if any(selector.workload == UNROLLED for selector in selectors):
        return NO_COMMAND

    # What these select, each once, as options of the command.
    stacks: list[str] = []
    for selector in selectors:
        stacks += selector.stack or ()
    patterns = [selector.pattern for selector in selectors if selector.pattern]
    workloads = _once([selector.workload or "step" for selector in selectors])
    # Every machine has a CPU, so that API is not told.
    apis = [selector.api for selector in selectors if selector.api and selector.api != "CPU"]

    # The workload ``step`` is measured without being named. The APIs are told beside the command,
    # which has no option for them: the machine must have them.
    words = ["overhead run"]
    words += [f"-p {stack}" for stack in _once(stacks)]
    words += [f"--pattern {pattern}" for pattern in _once(patterns)]
    if workloads != ["step"]:
        words += [f"--workload {workload}" for workload in workloads]
    return MeasuringCommand(" ".join(words), tuple(_once(apis)))


def _once(names: Sequence[str]) -> list[str]:
    """Each name once, in the order of the first."""
    return list(dict.fromkeys(names))
