"""Select the records of a run that a test needs, and compute the quantity that the claim is
about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from overhead.claims.registry import ClaimTest, Selector
from overhead.decode.reading import MeasuredVariant, decoder_results, slope_over_dispatches
from overhead.devices import Processor, processor_kind, same_device_across_apis
from overhead.reading.missing_values import missing_figure, why
from overhead.reading.plain_text import plain
from overhead.reading.view import TargetLabel, View, words
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
    """A quantity measured on one machine. ``machine``: its GPUs, or its CPU. ``of``, ``against``:
    keys of the records.

    ``cases``: these, without the second where it is the first. ``status``: of the case.
    ``measured``: in the unit of the test; ``reason``: why it is None. ``line``: of a slope.
    ``failure``: by what the case failed. ``profile``, ``created``: of the run. ``on``: what did the
    work.
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
        """The same data as plain fields, the value as ``value``, ``low`` and ``high``."""
        fields = dict(vars(self))
        of = fields.pop("measured")
        for name in ("line", "cases"):
            fields.pop(name)
        return {**fields, "value": of and of.value, "low": of and of.low, "high": of and of.high}


class _Missing(Exception):
    """The quantity has no value."""

    def __init__(self, reason: Why) -> None:
        super().__init__(str(reason))
        self.reason = reason


def measure(test: ClaimTest, view: View) -> list[ClaimValue]:
    """One value, or the reason for none, for each target of the run that has the test's records; []
    if none has.
    """
    own = view.fingerprint.machine
    machine = plain(", ".join(gpu.name for gpu in own.gpus) or own.cpu)
    found = []
    for of, against in record_pairs(test, view):
        records = [of] if against is None else [of, against]
        known = ClaimValue(
            machine=machine,
            cases=_cases(view, records),
            of=of.key,
            against=against.key if against else "",
            software=any(record.software for record in records),
            status=of.status,
            on=processor_kind(of),
            failure=failure_of(of.reason) if of.status == "failed" else "",
            profile=view.fingerprint.profile,
            created=view.fingerprint.created[:16],
        )
        try:
            line = None
            if test.kind == "slope":
                got, line = _slope(test, view, of)
            else:
                got = _quantity(test, view, of, against)
        except _Missing as missing:
            found.append(replace(known, reason=missing.reason))
        else:
            found.append(replace(known, measured=got * test.scale, line=line))
    return found


def failure_of(reason: Why) -> FailedBy:
    """By what a case failed, from the code of its reason, or from what a library or a driver said;
    else ''.
    """
    if isinstance(reason, str):
        return next((failure for text, failure in _FAILURES_IN_TEXT.items() if text in reason), "")
    if reason.code in _FAILURES:
        return _FAILURES[reason.code]
    inner = [value for value in reason.values.values() if isinstance(value, str | Reason)]
    found = (failure_of(one) for one in [*inner, *reason.also])
    return next((failure for failure in found if failure), "")


def _quantity(test: ClaimTest, view: View, of: Record, against: Record | None) -> Value:
    if test.kind == "stage-share":
        return _stage_share(of, test.of.figure or "complete")
    if test.kind == "count":
        return _count(of)
    if test.unit == "1/s":
        return exactly(1e9, "1/s") / _amount(of, test.of)
    if test.kind in ("value", "fails"):
        return _amount(of, test.of) * (1 / _NS_PER_UNIT.get(test.unit, 1.0))
    if test.via:
        found = _by_comparison(test.via, view, of)
    elif against is None:
        raise _Missing(because("nothing-to-set-against"))
    else:
        amounts = ratio(_amount(of, test.of), _amount(against, against_of(test) or test.of))
        if amounts is None:
            raise _Missing(because("no-ratio-of-zero"))
        found = amounts
    if test.kind == "share-left":
        return exactly(1.0) - found.share_saved
    return found.share_saved if test.kind == "share" else found


def _count(record: Record) -> Value:
    if isinstance(found := record.window.get("dispatches"), int):
        return exactly(found)
    raise _Missing(because("no-dispatches-counted", why=record.reason or record.status))


def _slope(test: ClaimTest, view: View, of: Record) -> tuple[Value, LineOfCases]:
    """The slope of the line through the decode cases that differ from ``of`` in ``test.over``
    alone, and the line.
    """
    arms: list[MeasuredVariant] = []
    for decoder in decoder_results(view):
        groups = decoder.levels if test.over == "fusions" else decoder.padded
        arms = next(
            (list(group) for group in groups if any(arm.record.key == of.key for arm in group)),
            arms,
        )
    line = slope_over_dispatches(arms)
    if line is None:
        raise _Missing(because("too-few-cases-for-line", over=test.over))
    held = LineOfCases(line.intercept / _NS_PER_UNIT["ms"], line.points)
    return line.slope * (1 / _NS_PER_UNIT[test.unit]), held


def _amount(record: Record, selector: Selector) -> Value:
    """The selected figure in ns. With ``steps``: the time in ns of a chain of that many steps,
    including its wait.
    """
    if selector.steps is None:
        return _figure(record, selector.figure or "complete")
    return _figure(record, "fixed") + _figure(record, "complete") * selector.steps


def _figure(record: Record, name: str) -> Value:
    if found := WithFigures.measured(
        record, name
    ):  # without the board, which the two sides may name differently
        return found
    raise _Missing(about(name, why(record, name)))


def _by_comparison(name: str, view: View, of: Record) -> Value:
    comparison = view.comparison(name, of.key)
    figure = comparison.figure("ratio") if comparison else None
    found = figure.measured if figure else None
    if found is None or found.value <= 0:
        reason = missing_figure(figure).why if figure else because("did-not-alternate")
        raise _Missing(about(name, reason))
    return found


def _stage_share(record: Record, figure: str) -> Value:
    total = sum(
        of.value for f in record.figures if f.name.startswith("stage:") and (of := f.measured)
    )
    found = record.measured(figure)
    if found is None or total <= 0:
        raise _Missing(about(figure, because("calls-not-timed-alone")))
    return found / total


def _cases(view: View, records: Sequence[Record]) -> tuple[MeasuredCase, ...]:
    """What the records are of, each record once."""
    found = []
    for record in {record.key: record for record in records}.values():
        target = view.target(record)
        if record.workload == "step":
            found.append(MeasuredCase(target.named, target.pattern_label(record), record.caller))
        else:
            pattern = " ".join([record.workload, record.pattern, *words(record.params)])
            found.append(MeasuredCase(target.named, pattern, None))
    return tuple(found)


def against_of(test: ClaimTest) -> Selector | None:
    """The ``against`` selector with missing fields copied from ``of``; None if the test has no
    ``against``.
    """
    if test.against is None:
        return None
    said = {
        name: value
        for name in Selector.__struct_fields__
        if (value := getattr(test.against, name)) is not None
    }
    return msgspec.structs.replace(test.of, **said)


def record_pairs(test: ClaimTest, view: View) -> Iterator[tuple[Record, Record | None]]:
    """Pairs of records to compare, on one device and with equal parameters; the second is None if
    the test has one.

    Two records of one target also have the same pattern and caller, unless the selectors name
    others.
    """
    wanted = against_of(test)
    for of in plainest_records(test.of, view):
        if wanted is None or test.against is None:
            yield of, None
        elif test.against.stack is not None or test.against.api is not None:
            yield from (
                (of, one)
                for one in plainest_records(wanted, view, of)
                if same_device_across_apis(of, one)
            )
        else:
            pattern, caller = wanted.pattern or of.pattern, wanted.caller or of.caller
            alike = msgspec.structs.replace(wanted, pattern=pattern, caller=caller)
            yield from (
                (of, one)
                for one in plainest_records(alike, view, of)
                if one.target_key == of.target_key
            )


def plainest_records(selector: Selector, view: View, like: Record | None = None) -> list[Record]:
    """For each target the first matching record with the fewest parameters.

    ``like``: parameters that it shares with this record must be equal, except those that the
    selector names.
    """
    equal = (
        {}
        if like is None
        else {k: v for k, v in like.params.items() if k not in (selector.params or {})}
    )
    found: dict[str, Record] = {}
    for record in view.fingerprint.records:
        if _matches(selector, record) and all(
            record.params.get(name, v) == v for name, v in equal.items()
        ):
            held = found.setdefault(record.target_key, record)
            if len(record.params) < len(held.params):
                found[record.target_key] = record
    return list(found.values())


def _matches(selector: Selector, record: Record) -> bool:
    return (
        (selector.stack is None or record.stack in selector.stack)
        and record.workload == (selector.workload or "step")
        and record.pattern == (selector.pattern or record.pattern)
        and record.caller == (selector.caller or record.caller)
        and record.dependency == (selector.dependency or "chained")
        and record.api == (selector.api or record.api)
        and (record.executes or selector.api == "Null")
        and all(record.params.get(name) == value for name, value in (selector.params or {}).items())
    )


@dataclass(frozen=True)
class MeasuringCommand:
    """How to measure what a claim needs: the command, and the APIs that the machine must have.

    ``command`` is '' where only an older version could measure it.
    """

    command: str = ""
    apis: tuple[str, ...] = ()


NO_COMMAND = MeasuringCommand()


def how_to_measure(*tests: ClaimTest | None) -> MeasuringCommand:
    """How to measure what the tests need."""
    selectors = [
        s
        for test in tests
        if test is not None
        for s in (test.of, against_of(test))
        if s is not None
    ]
    if any(selector.workload == UNROLLED for selector in selectors):
        return NO_COMMAND
    words = ["overhead run"]
    words += [
        f"-p {stack}"
        for stack in dict.fromkeys(stack for s in selectors for stack in s.stack or ())
    ]
    words += [
        f"--pattern {name}" for name in dict.fromkeys(s.pattern for s in selectors if s.pattern)
    ]
    workloads = dict.fromkeys(s.workload or "step" for s in selectors)
    words += [f"--workload {name}" for name in workloads if list(workloads) != ["step"]]
    apis = dict.fromkeys(s.api for s in selectors if s.api and s.api != "CPU")
    return MeasuringCommand(" ".join(words), tuple(apis))
