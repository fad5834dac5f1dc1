"""Whether a machine's figures agree with one another, by ways that could have come out otherwise."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from overhead.reading.format import bounds, valued
from overhead.reading.view import TargetView, View, named
from overhead.results import Figure, Record

TOLERANCE = 0.05


@dataclasses.dataclass(frozen=True)
class Agreement:
    """Whether two ways to the same time agree within the larger of 5 % and their combined interval; ns per unit."""

    measured: float
    predicted: float
    agrees: bool


@dataclasses.dataclass(frozen=True)
class CheckedRecord:
    """A check by its kind, of a record of a target."""

    kind: str
    target: TargetView
    record: Record
    check: Agreement


def found(view: View) -> Iterator[CheckedRecord]:
    """Every check that the view's records allow, targets that run nothing left out."""
    for target in view.executing:
        for record in target.records:
            for kind, check in (
                ("fused" if record.pattern == "fused" else record.overlap, overlap_check(record)),
                ("stages", stages_check(record)),
                ("null", null_check(view, record)),
            ):
                if check is not None:
                    yield CheckedRecord(kind, target, record, check)


def overlap_check(record: Record) -> Agreement | None:
    """``complete`` against the declared overlap: pipelined, the larger of host and device; serial, their sum; fused,
    the device alone, since the host makes one call whatever n.
    """
    names = ("complete", "device_busy") if record.pattern == "fused" else ("complete", "device_busy", "host")
    parts = [f for name in names if (f := record.figure(name)) is not None]
    values = [v for f in parts if (v := valued(f)) is not None]
    if len(values) < len(names):
        return None
    complete, device, *hosts = values
    host = sum(hosts)
    return _check(complete, host + device if record.overlap == "serial" else max(host, device), parts)


def stages_check(record: Record) -> Agreement | None:
    """The calls timed one by one against the same chain without a clock inside, paired in the rounds."""
    whole, gap = record.figure("unstaged"), record.figure("stages_gap")
    measured, over = valued(whole), valued(gap)
    if gap is None or measured is None or over is None:
        return None
    return _check(measured, measured + over, [gap])


def null_check(view: View, record: Record) -> Agreement | None:
    """Dawn's host time on Null against that on Vulkan less the driver's share, for native callers."""
    if (record.stack, record.api, record.caller) != ("dawn", "Vulkan", "native"):
        return None
    twins = (r for r in view.fingerprint.records if r.stack == "dawn" and r.api == "Null")
    null = next((r for r in twins if r.case == record.case), None)
    raw = (r for r in view.fingerprint.records if r.stack == "vulkan" and r.adapter == record.adapter)
    minimal = next((r for r in raw if r.case == record.case), None)
    share = view.comparison("driver-share", minimal.key) if minimal is not None else None
    if null is None or share is None:
        return None
    parts = [null.figure("host"), record.figure("host"), named(share, "difference")]
    figures = [f for f in parts if f is not None]
    values = [v for f in figures if (v := valued(f)) is not None]
    if len(values) < 3:
        return None
    return _check(values[0], values[1] - values[2], figures)


def _check(measured: float, predicted: float, parts: list[Figure]) -> Agreement:
    halves = [(high - low) / 2 for low, high in map(bounds, parts) if low is not None and high is not None]
    return Agreement(
        measured, predicted, abs(measured - predicted) <= max(TOLERANCE * abs(measured), math.hypot(*halves))
    )
