"""Checks that figures of one run agree: two independent ways to the same time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from overhead.reading.format import percent
from overhead.reading.host_shares import minimal_program
from overhead.reading.view import TargetView, View, first_with
from overhead.results import Record, Value

_TOLERANCE = 0.05
"""Relative difference up to which two ways agree, whatever their intervals."""


@dataclasses.dataclass(frozen=True)
class Agreement:
    """One time in two ways, ns per unit, and whether they agree within 5 % or within their combined interval."""

    measured: float
    predicted: float
    agrees: bool


@dataclasses.dataclass(frozen=True)
class CheckedRecord:
    """A check of one record; ``kind`` is ``pipelined``, ``serial``, ``fused``, ``stages`` or ``null``."""

    kind: str
    target: TargetView
    record: Record
    check: Agreement


def all_checks(view: View) -> Iterator[CheckedRecord]:
    """Every check that the records of this run allow, of the targets whose device runs the work."""
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
    """Check the cost (``complete``) against host and device time; None where one of these figures has no value.

    Pipelined: the larger of host and device; serial: their sum; fused: the device alone, since the host makes one call
    for any n.
    """
    names = ("complete", "device_busy") if record.pattern == "fused" else ("complete", "device_busy", "host")
    parts = [found for name in names if (found := record.measured(name)) is not None]
    if len(parts) < len(names):
        return None
    complete, device, *hosts = (part.value for part in parts)
    host = sum(hosts)
    return _check(complete, host + device if record.overlap == "serial" else max(host, device), parts)


def stages_check(record: Record) -> Agreement | None:
    """Check the sum of calls timed one by one against the same chain timed whole; None where one has no value."""
    whole, gap = record.measured("unstaged"), record.measured("stages_gap")
    return None if whole is None or gap is None else _check(whole.value, whole.value + gap.value, [gap])


def null_check(view: View, record: Record) -> Agreement | None:
    """Check Dawn's host time from compiled code against its Null backend plus a minimal Vulkan program, all of one run.

    None for other records, and where one of the three has no value.
    """
    if (record.stack, record.api, record.caller) != ("dawn", "Vulkan", "native"):
        return None
    own = view.fingerprint.records
    null = first_with(own, stack="dawn", api="Null", case=record.case)
    minimal = minimal_program(view, record)
    whole, library, driver = (r.measured("host") if r else None for r in (record, null, minimal))
    if whole is None or library is None or driver is None:
        return None
    return _check(whole.value, library.value + driver.value, [whole, library, driver])


def agreement_words(check: Agreement) -> str:
    """The result of the check in words: ``agrees``, or ``differs by 12 %``."""
    if check.agrees:
        return "agrees"
    return f"differs by {percent(check.predicted / check.measured - 1)}" if check.measured else "differs"


def _check(measured: float, predicted: float, parts: list[Value]) -> Agreement:
    halves = [(part.high - part.low) / 2 for part in parts if part.low is not None and part.high is not None]
    allowed = max(_TOLERANCE * abs(measured), math.hypot(*halves))
    return Agreement(measured, predicted, abs(measured - predicted) <= allowed)
