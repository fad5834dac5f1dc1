"""What a browser adds to the cost of its WebGPU library on the same adapter: the named comparison
``browser-tax``.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from overhead import results
from overhead.devices import same_device_if_ids_allow
from overhead.named_comparisons import NamedComparison, between_workers, is_comparable
from overhead.reading.missing_values import why
from overhead.reading.view import TargetView, View, by_patterns, first_with, with_fields
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
        browser = self.figure("complete")
        library = self.figure("complete", caller)
        for slope in (browser, library):
            if slope is not None and slope.low is not None and slope.low <= 0:
                return None
        return ratio(browser, library)

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
    found = []
    for target in view.executing:
        for named in between_workers():
            if named.of["stack"] == target.stack:
                for record in by_patterns(target.records):
                    found.append(_tax(view, target, record, named))
    return found


def _tax(view: View, target: TargetView, record: Record, named: NamedComparison) -> Tax:
    library = str(named.against["stack"])
    against: dict[Caller, Record] = {}
    refused: dict[Caller, Why] = {}
    for caller in LIBRARY_CALLERS:
        like = _like(view, record, named, library, caller)
        if like.record is not None:
            against[caller] = like.record
        if like.refused:
            refused[caller] = like.refused
    return Tax(target, record, library, against, refused)


class _Like(NamedTuple):
    """The library's case beside a browser's, and why the two may not be compared; '' if they
    may.
    """

    record: Record | None
    refused: Why = ""


def _like(
    view: View, record: Record, named: NamedComparison, library: str, caller: Caller
) -> _Like:
    """The library's case that may be compared with the browser's; or the reason why there is
    none.
    """
    measured = [target for target in view.executing if target.stack == library]
    if not measured:
        return _Like(None, because("library-not-measured", library=library))
    near = [target for target in measured if same_device_if_ids_allow(record, target.first)]
    if not near:
        adapter = measured[0].first.adapter
        return _Like(None, because("library-on-another-adapter", library=library, adapter=adapter))

    # A browser may name its adapter otherwise, so both cases get the name that the library has.
    place = near[0].first
    of_browser = (_as_target(record, place), record.case)
    comparable = []
    for target in near:
        for candidate in with_fields(target.records, caller=caller):
            of_library = (_as_target(candidate, place), candidate.case)
            if is_comparable(named, of_browser, of_library):
                comparable.append(candidate)
    if not comparable:
        return _Like(None, because("library-lacks-case", library=library, caller=caller))
    same_params = first_with(comparable, params=record.params)
    best = same_params if same_params is not None else comparable[0]
    difference = _window(record.window, best.window, named.differs)
    if difference:
        return _Like(None, difference)
    if best.value(named.figure) is None:
        lacking = why(best, named.figure)
        refused = because("library-lacks-value", library=library, caller=caller, why=lacking)
        return _Like(best, refused)
    return _Like(best)


def _as_target(record: Record, place: Record) -> results.Target:
    return results.Target(stack=record.stack, api=record.api, adapter=place.adapter)


def _window(browser: dict[str, Scalar], library: dict[str, Scalar], differs: frozenset[str]) -> Why:
    """The first field in which the windows must not differ and do; '' where there is none.
    ``differs``: fields that may.
    """
    for name in sorted({*browser, *library} - differs):
        if browser.get(name) != library.get(name):
            return because(
                "windows-differ",
                field=name,
                browser_has=browser.get(name, "absent"),
                library_has=library.get(name, "absent"),
            )
    return ""
