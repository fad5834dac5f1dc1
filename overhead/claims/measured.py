"""Compute the quantity that a claim is about, from the records of one run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from overhead.claims.registry import ClaimTest, Selector
from overhead.claims.select import against_of, pairs
from overhead.decode.reading import DecodeArm, decoded, slope_over_dispatches
from overhead.devices import Processor, processor_kind
from overhead.reading.format import plain, spread
from overhead.reading.missing_values import missing_figure, why
from overhead.reading.view import CALLER_WORDS, View, words
from overhead.results import Record, Status, Value, WithFigures, exactly, ratio

_NS_PER_UNIT = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(frozen=True)
class ClaimValue:
    """A quantity measured on one machine.

    ``of`` and ``against``: keys of the records. ``label``: target and case in words. ``machine``: its GPUs, or its CPU.
    ``status``: the status of the case. ``measured``: in the unit of the test; ``reason``: why it is None.
    ``note``: what belongs to the value, such as the intercept of a slope. ``run``: the profile and the time of the run.
    ``on``: what did the work.
    """

    machine: str
    label: str
    of: str
    against: str
    software: bool
    status: Status
    measured: Value | None = None
    reason: str = ""
    run: str = ""
    note: str = ""
    on: Processor = "gpu"

    def to_dict(self) -> dict[str, Any]:
        """The same data as plain fields, the value as ``value``, ``low`` and ``high``."""
        fields = dict(vars(self))
        of = fields.pop("measured")
        return {**fields, "value": of and of.value, "low": of and of.low, "high": of and of.high}


class _Missing(Exception):
    """The quantity has no value; the message gives the reason."""


def measure(test: ClaimTest, view: View) -> list[ClaimValue]:
    """The values of the quantity, one for each target of the run that has the records for the test."""
    own = view.fingerprint.machine
    machine = plain(", ".join(gpu.name for gpu in own.gpus) or own.cpu)
    found = []
    for of, against in pairs(test, view):
        records = [of] if against is None else [of, against]
        known = ClaimValue(
            machine=machine,
            label=_label(view, of, against),
            of=of.key,
            against=against.key if against else "",
            software=any(record.software for record in records),
            status=of.status,
            on=processor_kind(of),
            run=plain(f"{view.fingerprint.profile} run of {view.fingerprint.created[:16]}"),
        )
        try:
            got, note = _slope(test, view, of) if test.kind == "slope" else (_quantity(test, view, of, against), "")
        except _Missing as missing:
            found.append(replace(known, reason=str(missing)))
        else:
            found.append(replace(known, measured=got * test.scale, note=note))
    return found


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
        raise _Missing("the test names nothing to set it against")
    else:
        amounts = ratio(_amount(of, test.of), _amount(against, against_of(test) or test.of))
        if amounts is None:
            raise _Missing("a figure that is not positive has no ratio")
        found = amounts
    if test.kind == "share-left":
        return exactly(1.0) - found.share_saved
    return found.share_saved if test.kind == "share" else found


def _count(record: Record) -> Value:
    found = record.window.get("dispatches")
    if not isinstance(found, int):
        raise _Missing(f"no dispatches were counted: {record.reason or record.status}")
    return exactly(found)


def _slope(test: ClaimTest, view: View, of: Record) -> tuple[Value, str]:
    """The slope of the line through the decode cases that differ from ``of`` in ``test.over`` alone, and a note."""
    arms: list[DecodeArm] = []
    for decoder in decoded(view):
        levels = [[arm for _, arm in own.arms] for own in decoder.levels]
        groups = levels if test.over == "fusions" else decoder.padded
        arms = next((list(group) for group in groups if any(arm.record.key == of.key for arm in group)), arms)
    line = slope_over_dispatches(arms)
    if line is None:
        raise _Missing(f"fewer than three cases of other {test.over} have a time and a count of dispatches")
    intercept = spread(line.intercept / _NS_PER_UNIT["ms"])
    return line.slope * (1 / _NS_PER_UNIT[test.unit]), f"intercept {intercept} ms, {line.points} cases"


def _amount(record: Record, selector: Selector) -> Value:
    """The selected figure in ns. With ``steps``: the time in ns of a chain of that many steps, including its wait."""
    if selector.steps is None:
        return _figure(record, selector.figure or "complete")
    return _figure(record, "fixed") + _figure(record, "complete") * selector.steps


def _figure(record: Record, name: str) -> Value:
    # Without the board: the two sides of a claim may name it differently.
    found = WithFigures.measured(record, name)
    if found is None:
        raise _Missing(f"{name}: {why(record, name)}")
    return found


def _by_comparison(name: str, view: View, of: Record) -> Value:
    comparison = view.comparison(name, of.key)
    figure = comparison.figure("ratio") if comparison else None
    found = figure.measured if figure else None
    if found is None or found.value <= 0:
        reason = missing_figure(figure).text if figure else "the two cases did not alternate in one worker here"
        raise _Missing(f"{name}: {reason}")
    return found


def _stage_share(record: Record, figure: str) -> Value:
    total = sum(of.value for f in record.figures if f.name.startswith("stage:") and (of := f.measured))
    found = record.measured(figure)
    if found is None or total <= 0:
        raise _Missing(f"{figure}: the calls of this case were not timed one by one")
    return found / total


def _label(view: View, of: Record, against: Record | None) -> str:
    """The two targets and cases in words. A target or case that both share appears once."""

    def case(record: Record) -> str:
        target = view.target(record)
        if record.workload == "step":
            return f"{target.pattern_label(record)}, {CALLER_WORDS[record.caller]}"
        return " ".join([record.workload, record.pattern, *words(record.params)])

    where, other = view.target(of).label, against and view.target(against).label
    if against is None or against.key == of.key:
        return plain(f"{where} ({case(of)})")
    if other == where:
        return plain(f"{where} ({case(of)} against {case(against)})", 300)
    return plain(f"{where} ({case(of)}) against {other} ({case(against)})", 300)
