"""How the host's time (how long the CPU is busy with a unit) splits into layers, from measured
levels of one run.

A level is the host's time of the same calls of the library by one caller: from Python, from Python
without wrapper objects, from compiled code. What it leaves of the time from Python is the ratio of
the two, formed in each round of one process. A layer is what the next level leaves out, so the
layers add up to the time from Python.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from overhead.reading.view import CALLERS, TargetView, View, by_patterns, with_fields
from overhead.results import Comparison, Figure, Record, Value, are_apart, exactly

_NEXT_LEVEL = ("binding-share", "interpreter-share", "python-share")
"""The named comparisons of a level with one below it."""
_WHOLE = exactly(1.0, "share")
Layer = Literal["binding", "interpreter", "python", "api and driver", "driver", "library", "rest"]
ShareDoubt = Literal["", "below-zero", "unclear"]
"""Whether the interval of a share lies below zero, or reaches zero."""


@dataclasses.dataclass(frozen=True)
class Share:
    """One layer of the CPU time of a call, such as Python. ``figure``: its time in ns per unit,
    with all that the intervals of the whole time and of the share allow.

    ``of_host``: its share of the whole time (0.46), from ratios of cases that took turns.
    ``paired``: it is the difference of two such cases; False for the last layer, which is all that
    one case takes.
    """

    name: Layer
    figure: Figure
    of_host: Value
    paired: bool = True

    @property
    def doubt(self) -> ShareDoubt:
        """Why the layer is not told apart from nothing; '' where the interval of the share lies
        above zero.
        """
        if self.of_host.resolved:
            return ""
        return "below-zero" if self.of_host.ceiling < 0 else "unclear"


@dataclasses.dataclass(frozen=True)
class HostShares:
    """The host's time of the case ``top``, split into layers that add up to it.

    ``levels``: the records with a host time, from Python first; ``shares``: a layer for each, the
    last level whole. ``python``: Python's share (0 to 1), between the levels from Python and from
    compiled code; None without these. ``minimal``: the host's time of the same work in a minimal
    Vulkan program, of the same run; no layer. ``validation``: what Dawn spends on validation, where
    it was measured.
    """

    target: TargetView
    top: Record
    host: Figure | None
    levels: tuple[Record, ...]
    shares: tuple[Share, ...]
    python: Value | None
    minimal: Figure | None
    validation: Figure | None

    @property
    def is_split(self) -> bool:
        """Whether the host's time is known and the interval of at least one difference lies above
        zero.
        """
        if self.top.measured("host") is None:
            return False
        return any(share.paired and not share.doubt for share in self.shares)


def host_shares(view: View) -> list[HostShares]:
    """How the CPU time of a call splits into layers (Python, the library, the driver), for every
    case that was measured by several callers; sorted by target, pattern and caller.

    The calls from compiled code are compared with those from Python: what they save is Python's. So
    a case that others are compared with is no whole to split.
    """
    # Keys of cases that another case is compared with, from a level above.
    lower_levels: set[str] = set()
    # ``_NEXT_LEVEL``: the comparisons of callers, such as "python-share".
    for name in _NEXT_LEVEL:
        for comparison in view.comparisons(name):
            lower_levels.update(comparison.against)
    splits = []
    for target in view.executing:
        for record in by_patterns(target.records):
            # ``_compared``: the comparisons of the case with the levels below it; a case without is
            # not split.
            if record.key not in lower_levels and _compared(view, record):
                splits.append(_split(view, record))
    return splits


class _Level(NamedTuple):
    """The same calls by one caller, and their CPU time as a share of that of the top level: 1 for
    the top itself.
    """

    record: Record
    share_of_top: Value


def _split(view: View, top: Record) -> HostShares:
    """The CPU time of the case ``top``, split by its levels: the same calls with less and less
    between the program and the library. What one level takes more than the next is a layer.
    """
    # "host": the CPU time of a call.
    levels = _levels(view, top) if top.measured("host") else []
    minimal = None
    python = None
    if levels:
        # With less between than any other measured level.
        lowest = levels[-1]
        # The Vulkan program that does the work of a WebGPU case with the fewest calls; else None.
        program = minimal_program(view, lowest.record)
        if program is not None and program.measured("host"):
            minimal = program.figure("host")
        # "binding": called from Python; "native": from compiled code, which leaves Python out.
        if top.caller == "binding" and lowest.record.caller == "native":
            # What the lowest level leaves of the whole, which is 1.
            python = _WHOLE - lowest.share_of_top
    return HostShares(
        target=view.target(top),
        top=top,
        host=top.figure("host"),
        levels=tuple(level.record for level in levels),
        shares=tuple(_shares(view, levels)),
        python=python,
        minimal=minimal,
        validation=_validation(view, top),
    )


def _validation(view: View, top: Record) -> Figure | None:
    """The CPU time that Dawn, a WebGPU library, spends on validation in this case: the difference
    to a case that skips it. None where that was not measured.
    """
    for comparison in view.comparisons("validation-share"):
        if _same_case(view, comparison, top):
            # The difference of both CPU times, ns per unit.
            figure = comparison.figure("difference")
            if figure is not None:
                return figure
    return None


def _levels(view: View, top: Record) -> list[_Level]:
    """The case ``top`` and every level below it (the same calls by another caller, with less
    between), each with its share of the CPU time of the top; the calls from Python first.

    Only levels count that were compared with the top in one process, on the same board (GPU).
    """
    levels = {top.key: _Level(top, _WHOLE)}
    for comparison in _compared(view, top):
        # A comparison of two callers has one case on this side.
        record = view.record(comparison.against[0])
        # The top's CPU time over that of this level, from cases that took turns.
        times = comparison.measured("ratio")
        if record is None or times is None or times.value <= 0:
            continue
        # ``are_apart``: both are known to be on different boards.
        if record.measured("host") and not are_apart(record.device, top.device):
            # ``times``: the top over this level. A level that saves 0.3 takes 0.7 of the top.
            share_of_top = _WHOLE - times.share_saved
            levels.setdefault(record.key, _Level(record, share_of_top))
    # ``CALLERS``: Python first, compiled code last.
    return sorted(levels.values(), key=lambda level: CALLERS.index(level.record.caller))


def _compared(view: View, record: Record) -> list[Comparison]:
    """The comparisons of the record with the levels below it."""
    comparisons = [view.comparison(name, record.key) for name in _NEXT_LEVEL]
    return [each for each in comparisons if each is not None and each.against]


def _shares(view: View, levels: Sequence[_Level]) -> Iterator[Share]:
    """A layer of the CPU time for each level: what the level takes more than the next one, and all
    that the last level takes. So they add up to the time of the first, the top.
    """
    if not levels:
        return
    top = levels[0].record
    # Neighbours: what the upper takes more than the lower, as a share of the top.
    for upper, lower in itertools.pairwise(levels):
        left_out = upper.share_of_top - lower.share_of_top
        yield _share(top, _layer_between(upper.record, lower.record), left_out)
    lowest = levels[-1]
    last = _share(top, _last_layer(view, lowest.record), lowest.share_of_top)
    # The last layer is all that one case takes, and no difference of two (``paired``).
    yield dataclasses.replace(last, paired=False)


def _layer_between(upper: Record, lower: Record) -> Layer:
    """What the lower of two levels leaves out, by who calls the library in both."""
    if lower.caller == "ffi":
        return "binding"
    return "interpreter" if upper.caller == "ffi" else "python"


def _last_layer(view: View, last: Record) -> Layer:
    """The name of the layer that nothing below was measured of. Of calls from compiled code it is
    what they call: the driver, or the library; else all the rest.
    """
    if last.caller != "native":
        return "rest"
    roles = view.facts(last.stack).roles
    if "driver" in roles:
        return "driver"
    # Below WebGPU a driver does a part of the work that was not measured apart.
    return "api and driver" if "webgpu" in roles else "library"


def _share(top: Record, name: Layer, share: Value) -> Share:
    """A layer with its time: this share of the CPU time of the case ``top``.

    Its interval is the widest that the intervals of share and time allow. A share may be below
    zero, so any two ends may make the lowest product.
    """
    whole = top.measured("host") or exactly(0.0)
    low = None
    high = None
    share_ends = [end for end in (share.low, share.high) if end is not None]
    whole_ends = [end for end in (whole.low, whole.high) if end is not None]
    if len(share_ends) == len(whole_ends) == 2:
        # All four products of the ends: the lowest and the highest bound the time.
        products = [part * ns for part, ns in itertools.product(share_ends, whole_ends)]
        low = min(products)
        high = max(products)
    time = Figure(name="difference", value=share.value * whole.value, low=low, high=high)
    return Share(name, time, share)


def minimal_program(view: View, compiled: Record) -> Record | None:
    """For a WebGPU case called from compiled code: the case of the same run in which a Vulkan
    program does the same work with as few calls as possible. It shows what WebGPU itself adds.

    None where it was not measured on the same board (GPU), and for other cases.
    """
    facts = view.facts(compiled.stack)
    if "webgpu" not in facts.roles or compiled.caller != "native":
        return None
    # ``below``: the stack under this one, here the Vulkan program.
    same_work = with_fields(
        view.fingerprint.records, stack=facts.below, adapter=compiled.adapter, case=compiled.case
    )
    for record in same_work:
        if not are_apart(record.device, compiled.device):
            return record
    return None


def _same_case(view: View, comparison: Comparison, top: Record) -> bool:
    """Whether a comparison, of a case with validation and one without, tells what validation costs
    in the case ``top``: it is of the same target, pattern and unit.

    Of calls from compiled code (``native``) it serves for any caller, as the library then does the
    same work.
    """
    of = view.record(comparison.of)
    if of is None or of.target_key != top.target_key:
        return False
    if of.pattern != top.pattern or of.unit != top.unit:
        return False
    # ``of``: the case with validation.
    return of.caller == "native" or of.key == top.key
