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
    """A browser's case beside the same case of the library inside the browser: what the browser
    adds is its tax. ``library``: its stack. ``against``: the library's case by caller (from Python,
    from compiled code); ``refused``: by caller, why there is none or it may not be compared.
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
        """How many times the library's cost of one dispatch (the slope of T(n), the time of n
        dispatches) the browser pays; None where either is missing or its interval reaches zero.
        """
        # "complete" is the slope of the time until the device has finished.
        browser = self.figure("complete")
        # Without a caller a figure is that of the browser.
        library = self.figure("complete", caller)
        # A slope that may be zero makes no ratio.
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
        # "balanced": the device and the CPU take as long as each other.
        if self.record.bound in ("device", "balanced"):
            return None
        # "naive" is the time of one unit with its wait, "complete" the slope.
        return ratio(self.figure("naive"), self.figure("complete"))


def taxes(view: View) -> list[Tax]:
    """Each case of each browser in the run, beside the same case of the library inside it, in the
    order of the patterns; [] without a browser.

    Which browser contains which library is in the table of named comparisons; those between two
    worker processes are the ones with a browser.
    """
    found = []
    # ``executing``: without targets that accept work and run nothing.
    for target in view.executing:
        for named in between_workers():
            # The comparison names the browser (``of``) and the library inside it (``against``).
            if named.of["stack"] == target.stack:
                for record in by_patterns(target.records):
                    found.append(_tax(view, target, record, named))
    return found


def _tax(view: View, target: TargetView, record: Record, named: NamedComparison) -> Tax:
    """The browser's case ``record`` beside the library's, for each caller of the library.
    ``named``: the comparison that names both. For a caller without such a case ``refused`` has the
    reason; a case without a value is in ``against`` too.
    """
    library = str(named.against["stack"])
    against: dict[Caller, Record] = {}
    refused: dict[Caller, Why] = {}
    for caller in LIBRARY_CALLERS:
        counterpart = _counterpart(view, record, named, library, caller)
        if counterpart.record is not None:
            against[caller] = counterpart.record
        if counterpart.refused:
            refused[caller] = counterpart.refused
    return Tax(target, record, library, against, refused)


class _Counterpart(NamedTuple):
    """The library's case beside a browser's, and why the two may not be compared; '' if they
    may.
    """

    record: Record | None
    refused: Why = ""


def _counterpart(
    view: View, record: Record, named: NamedComparison, library: str, caller: Caller
) -> _Counterpart:
    """The library's case, by this caller, that may be compared with the browser's case ``record``;
    or the reason why there is none.

    ``named``: which fields of the two cases must be alike.
    """
    # First the targets of the library, then those on the browser's device.
    measured = [target for target in view.executing if target.stack == library]
    if not measured:
        return _Counterpart(None, because("library-not-measured", library=library))
    near = [target for target in measured if same_device_if_ids_allow(record, target.first)]
    if not near:
        adapter = measured[0].first.adapter
        return _Counterpart(
            None, because("library-on-another-adapter", library=library, adapter=adapter)
        )

    # A browser may name its adapter otherwise, so both cases get the name that the library has.
    place = near[0].first
    # A target and a case: what ``is_comparable`` takes.
    of_browser = (_as_target(record, place), record.case)
    comparable = []
    for target in near:
        for candidate in with_fields(target.records, caller=caller):
            of_library = (_as_target(candidate, place), candidate.case)
            if is_comparable(named, of_browser, of_library):
                comparable.append(candidate)
    if not comparable:
        return _Counterpart(None, because("library-lacks-case", library=library, caller=caller))
    # Of several cases the one with the browser's own parameters, else the first.
    same_params = first_with(comparable, params=record.params)
    best = same_params if same_params is not None else comparable[0]
    # Last: both timed the same thing, and the library's case has the value.
    difference = _difference_of_windows(record.window, best.window, named.differs)
    if difference:
        return _Counterpart(None, difference)
    # ``named.figure``: the name of the value that the comparison is of.
    if best.value(named.figure) is None:
        lacking = why(best, named.figure)
        refused = because("library-lacks-value", library=library, caller=caller, why=lacking)
        return _Counterpart(best, refused)
    return _Counterpart(best)


def _as_target(record: Record, place: Record) -> results.Target:
    """The stack of the record as a target with the adapter name of ``place``."""
    return results.Target(stack=record.stack, api=record.api, adapter=place.adapter)


def _difference_of_windows(
    browser: dict[str, Scalar], library: dict[str, Scalar], differs: frozenset[str]
) -> Why:
    """Why two cases may not be compared: they timed different things. '' where they may.

    A window describes what is inside the timed part of a case. ``differs``: its fields that may
    differ; the first other one that does is named.
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
