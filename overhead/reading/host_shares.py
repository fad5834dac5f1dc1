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
from collections.abc import Iterator
from typing import Literal

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
    """One layer: its time in ns per unit, with all that the intervals of the whole and of the share
    allow.

    ``of_host``: its share of the whole (0.46), formed within rounds. ``paired``: not the last
    level, whole.
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
        return self.top.measured("host") is not None and any(
            s.paired and not s.doubt for s in self.shares
        )


def host_shares(view: View) -> list[HostShares]:
    """The layers of every case that was measured by several callers, sorted by target, pattern and
    caller.
    """
    below = {key for name in _NEXT_LEVEL for c in view.comparisons(name) for key in c.against}
    return [
        _split(view, record)
        for target in view.executing
        for record in by_patterns(target.records)
        if record.key not in below and _compared(view, record)
    ]


def _split(view: View, top: Record) -> HostShares:
    levels = _levels(view, top) if top.measured("host") else []
    records = tuple(record for record, _ in levels)
    own = (
        c.figure("difference")
        for c in view.comparisons("validation-share")
        if _same_case(view, c, top)
    )
    validation = next(filter(None, own), None)
    program = minimal_program(view, records[-1]) if records else None
    minimal = program.figure("host") if program is not None and program.measured("host") else None
    shares = tuple(_shares(view, levels))
    ends = records and (top.caller, records[-1].caller) == ("binding", "native")
    python = _WHOLE - levels[-1][1] if ends else None
    return HostShares(
        view.target(top), top, top.figure("host"), records, shares, python, minimal, validation
    )


def _levels(view: View, top: Record) -> list[tuple[Record, Value]]:
    """The top and every level below it, with what each leaves of the host's time of the top: 1 for
    the top.
    """
    found = {top.key: (top, _WHOLE)}
    for comparison in _compared(view, top):
        record, times = view.record(comparison.against[0]), comparison.measured("ratio")
        if (
            record is None
            or times is None
            or times.value <= 0
            or are_apart(record.device, top.device)
        ):
            continue
        if record.measured("host"):
            found.setdefault(record.key, (record, _WHOLE - times.share_saved))
    return sorted(found.values(), key=lambda level: CALLERS.index(level[0].caller))


def _compared(view: View, record: Record) -> list[Comparison]:
    """The comparisons of the record with the levels below it."""
    found = (view.comparison(share, record.key) for share in _NEXT_LEVEL)
    return [c for c in found if c is not None and c.against]


def _shares(view: View, levels: list[tuple[Record, Value]]) -> Iterator[Share]:
    """A layer for each level: what the next leaves out, and all that the last leaves."""
    for (upper, more), (lower, less) in itertools.pairwise(levels):
        name: Layer = (
            "binding"
            if lower.caller == "ffi"
            else "interpreter"
            if upper.caller == "ffi"
            else "python"
        )
        yield _share(levels[0][0], name, more - less)
    for record, rest in levels[-1:]:
        yield dataclasses.replace(
            _share(levels[0][0], _last_layer(view, record), rest), paired=False
        )


def _last_layer(view: View, last: Record) -> Layer:
    """What the last level consists of: a measured time, not a difference."""
    if last.caller != "native":
        return "rest"
    roles = view.facts(last.stack).roles
    if "driver" in roles:
        return "driver"
    return "api and driver" if "webgpu" in roles else "library"


def _share(top: Record, name: Layer, share: Value) -> Share:
    whole = top.measured("host") or exactly(0.0)
    ends = itertools.product((share.low, share.high), (whole.low, whole.high))
    times = [one * ns for one, ns in ends if one is not None and ns is not None]
    low, high = (min(times), max(times)) if len(times) == 4 else (None, None)
    return Share(
        name, Figure(name="difference", value=share.value * whole.value, low=low, high=high), share
    )


def minimal_program(view: View, compiled: Record) -> Record | None:
    """Of a WebGPU case called from compiled code, the record of a Vulkan program with the same work
    in the same run.

    None where it was not measured on the same board, and for other cases.
    """
    facts = view.facts(compiled.stack)
    if "webgpu" not in facts.roles or compiled.caller != "native":
        return None
    like = with_fields(
        view.fingerprint.records, stack=facts.below, adapter=compiled.adapter, case=compiled.case
    )
    return next((r for r in like if not are_apart(r.device, compiled.device)), None)


def _same_case(view: View, comparison: Comparison, top: Record) -> bool:
    """Whether the comparison is of the same target, pattern and unit; and of the native caller or
    the top case.
    """
    of = view.record(comparison.of)
    if of is None or (of.target_key, of.pattern, of.unit) != (
        top.target_key,
        top.pattern,
        top.unit,
    ):
        return False
    return of.caller == "native" or of.key == top.key
