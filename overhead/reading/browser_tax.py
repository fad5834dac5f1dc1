"""What a browser adds to the cost of its WebGPU library on the same adapter: the named comparison
``browser-tax``.
"""

from __future__ import annotations

import dataclasses

from overhead import results
from overhead.devices import same_device_if_ids_allow
from overhead.named_comparisons import NamedComparison, between_workers, is_comparable
from overhead.reading.missing_values import why
from overhead.reading.view import TargetView, View, by_patterns
from overhead.results import Caller, Record, Scalar, Value, Why, because, ratio

LIBRARY_CALLERS: tuple[Caller, ...] = ("binding", "native")
"""Callers of the library that a browser is compared with: from Python, and from compiled code."""


@dataclasses.dataclass(frozen=True)
class Tax:
    """A browser's case beside the same case of the library inside the browser.

    ``against``: the library's case by caller; ``refused``: by caller, why there is none or it may
    not be compared.
    """

    target: TargetView
    record: Record
    library: str
    against: dict[Caller, Record]
    refused: dict[Caller, Why]

    def figure(self, name: str, caller: Caller = "browser") -> Value | None:
        """A figure in ns of the browser's case, or of the library's case by ``caller``; None
        without a value.
        """
        record = self.record if caller == "browser" else self.against.get(caller)
        return record.measured(name) if record else None

    def slope_ratio(self, caller: Caller) -> Value | None:
        """The browser's slope over the library's; None where the interval of either reaches
        zero.
        """
        slopes = self.figure("complete"), self.figure("complete", caller)
        reaches_zero = any(s is not None and s.low is not None and s.low <= 0 for s in slopes)
        return None if reaches_zero else ratio(*slopes)

    @property
    def single_ratio(self) -> Value | None:
        """T(1) over the slope: the factor by which timing one unit overstates its cost.

        None where one has no value, or where the device bounds the slope, which then says nothing
        of the CPU's cost.
        """
        if self.record.bound in ("device", "balanced"):
            return None
        return ratio(self.figure("naive"), self.figure("complete"))


def taxes(view: View) -> list[Tax]:
    """Each case of each browser, beside its library's, in the order of the patterns; [] without a
    browser.
    """
    return [
        _tax(view, target, record, named)
        for target in view.executing
        for named in between_workers()
        if named.of["stack"] == target.stack
        for record in by_patterns(target.records)
    ]


def _tax(view: View, target: TargetView, record: Record, named: NamedComparison) -> Tax:
    library = str(named.against["stack"])
    against: dict[Caller, Record] = {}
    refused: dict[Caller, Why] = {}
    for caller in LIBRARY_CALLERS:
        found, reason = _like(view, record, named, library, caller)
        if found is not None:
            against[caller] = found
        if reason:
            refused[caller] = reason
    return Tax(target, record, library, against, refused)


def _like(
    view: View, record: Record, named: NamedComparison, library: str, caller: Caller
) -> tuple[Record | None, Why]:
    """The library's case that may be compared with the browser's; or None and the reason."""
    stacks = [t for t in view.executing if t.stack == library]
    if not stacks:
        return None, because("library-not-measured", library=library)
    near = [t for t in stacks if same_device_if_ids_allow(record, t.first)]
    if not near:
        return None, because(
            "library-on-another-adapter", library=library, adapter=stacks[0].first.adapter
        )
    place = near[0].first
    here = _as_target(record, place)
    alike = [
        r
        for t in near
        for r in t.records
        if r.caller == caller
        and is_comparable(named, (here, record.case), (_as_target(r, place), r.case))
    ]
    if not alike:
        return None, because("library-lacks-case", library=library, caller=caller)
    best = min(alike, key=lambda r: r.params != record.params)
    difference = _window(record.window, best.window, named.differs)
    if difference:
        return None, difference
    if best.value(named.figure) is not None:
        return best, ""
    return best, because(
        "library-lacks-value", library=library, caller=caller, why=why(best, named.figure)
    )


def _as_target(record: Record, place: Record) -> results.Target:
    return results.Target(stack=record.stack, api=record.api, adapter=place.adapter)


def _window(one: dict[str, Scalar], other: dict[str, Scalar], differs: frozenset[str]) -> Why:
    """The first field in which the windows must not differ and do; '' where there is none."""
    for name in sorted({*one, *other} - differs):
        if one.get(name) != other.get(name):
            browser_has, library_has = (window.get(name, "absent") for window in (one, other))
            return because(
                "windows-differ", field=name, browser_has=browser_has, library_has=library_has
            )
    return ""
