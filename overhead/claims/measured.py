"""From the records of one run to the quantity that a claim is about."""

from __future__ import annotations

from dataclasses import dataclass, replace

from overhead.claims.registry import Check
from overhead.claims.select import against_of, pairs
from overhead.reading.format import plain, valued
from overhead.reading.view import View, named, why
from overhead.results import Figure, Record, Status

_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(frozen=True)
class Measured:
    """A quantity on one machine, in the test's unit; without ``value`` the ``reason`` says why.

    ``of`` and ``against`` are record keys; ``label`` says in words what was measured, ``machine`` on what; ``status``
    is that of the case.
    """

    machine: str
    label: str
    of: str
    against: str
    software: bool
    status: Status
    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class _Range:
    value: float
    low: float | None
    high: float | None

    def times(self, by: float) -> _Range:
        low, high = (None if v is None else v * by for v in (self.low, self.high))
        return _Range(self.value * by, low, high)


class _Missing(Exception):
    """There is no value; the message says why."""


def measure(test: Check, view: View) -> list[Measured]:
    """The quantity on every target of the run that has the records for it."""
    own = view.fingerprint.machine
    machine = plain(", ".join(gpu.name for gpu in own.gpus) or own.cpu)
    found = []
    for of, against in pairs(test, view):
        records = [of] if against is None else [of, against]
        known = Measured(
            machine=machine,
            label=_label(view, of, against),
            of=of.key,
            against=against.key if against else "",
            software=any(record.software for record in records),
            status=of.status,
        )
        try:
            got = _quantity(test, view, of, against).times(test.scale)
        except _Missing as missing:
            found.append(replace(known, reason=str(missing)))
        else:
            found.append(replace(known, value=got.value, low=got.low, high=got.high))
    return found


def _quantity(test: Check, view: View, of: Record, against: Record | None) -> _Range:
    figure = test.of.figure or "complete"
    if test.kind == "stage-share":
        return _stage_share(of, figure)
    if test.kind == "value":
        return _range(of, figure).times(1 / _NS[test.unit])
    if test.via:
        ratio = _by_comparison(test.via, view, of)
    elif against is None:
        raise _Missing("the test names nothing to set it against")
    else:
        other = against_of(test)
        ratio = _ratio(_range(of, figure), _range(against, (other and other.figure) or figure))
    return _without(ratio) if test.kind == "share" else ratio


def _range(record: Record, figure: str) -> _Range:
    found = record.figure(figure)
    value = valued(found)
    if found is None or value is None:
        raise _Missing(f"{figure}: {why(record, figure)}")
    return _Range(value, found.low, found.high)


def _ratio(first: _Range, second: _Range) -> _Range:
    """The ratio with the widest interval that both intervals allow."""
    if first.value <= 0 or second.value <= 0:
        raise _Missing("a figure that is not positive has no ratio")
    low = first.low / second.high if first.low is not None and second.high else None
    high = first.high / second.low if first.high is not None and second.low and second.low > 0 else None
    return _Range(first.value / second.value, low, high)


def _without(ratio: _Range) -> _Range:
    """The part of the first that the second is without."""
    low, high = (None if v is None or v <= 0 else 1 - 1 / v for v in (ratio.low, ratio.high))
    return _Range(1 - 1 / ratio.value, low, high)


def _by_comparison(name: str, view: View, of: Record) -> _Range:
    comparison = view.comparison(name, of.key)
    figure = named(comparison, "ratio") if comparison else None
    value = valued(figure)
    if figure is None or value is None or value <= 0:
        raise _Missing(f"{name}: {_reason(figure)}")
    return _Range(value, figure.low, figure.high)


def _reason(figure: Figure | None) -> str:
    return f"{figure.status}: {figure.reason}" if figure else "the two cases did not alternate in one worker here"


def _stage_share(record: Record, figure: str) -> _Range:
    stages = [value for f in record.figures if f.name.startswith("stage:") and (value := valued(f)) is not None]
    found = record.figure(figure)
    value, total = valued(found), sum(stages)
    if found is None or value is None or total <= 0:
        raise _Missing(f"{figure}: the calls of this case were not timed one by one")
    return _Range(value, found.low, found.high).times(1 / total)


def _label(view: View, of: Record, against: Record | None) -> str:
    """Targets and cases in words, what both share said once."""

    def case(record: Record) -> str:
        return f"{view.target(record).pattern_label(record)}, {record.caller}"

    where, other = view.target(of).label, against and view.target(against).label
    if against is None or against.key == of.key:
        return plain(f"{where} ({case(of)})")
    if other == where:
        return plain(f"{where} ({case(of)} against {case(against)})", 300)
    return plain(f"{where} ({case(of)}) against {other} ({case(against)})", 300)
