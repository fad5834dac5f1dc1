"""How the host's time (how long the CPU is busy with a unit) splits into layers, from measured levels of one run.

A level is the host's time of the same calls by one caller: from Python, from Python without wrapper objects, from
compiled code. A layer is the difference of two levels, so the layers add up to the time measured from Python. All
levels of one case alternated in one process.
"""

from __future__ import annotations

import dataclasses
import itertools

from overhead.named_comparisons import WEBGPU_STACKS
from overhead.reading.format import micro_spread, percent
from overhead.reading.missing_values import why
from overhead.reading.view import CALLER_WORDS, CALLERS, TargetView, View, by_patterns, with_fields
from overhead.results import Comparison, Figure, Record, Value, ratio, why_apart

_NEXT_LEVEL = {name: f"{name}-share" for name in ("binding", "interpreter", "python")}
"""The layer and the named comparison that leads from a level to the next; ``python`` is the first two together."""
TITLES = {
    "binding": "wrapper objects",
    "interpreter": "interpreter",
    "python": "Python",
    "api and driver": "library and driver",
    "driver": "driver",
    "library": "library",
    "rest": "unsplit rest",
}
"""Layers as pages name them."""
_PYTHON_LAYERS = frozenset({"binding", "interpreter", "python"})
BELOW_ZERO, UNCLEAR = "below zero", "not separable"
"""Values of ``Share.doubt``: the interval lies below zero, or reaches zero."""


@dataclasses.dataclass(frozen=True)
class Share:
    """One layer, ns per unit. ``of_host`` is its share of the whole (0.46), None where unknown.

    ``doubt``: ``BELOW_ZERO``, ``UNCLEAR``, or '' where its interval lies above zero or it has no value.
    ``paired``: a difference of two levels.
    """

    name: str
    figure: Figure
    of_host: float | None
    doubt: str = ""
    paired: bool = True

    @property
    def is_separable(self) -> bool:
        """Whether the layer has a time whose interval lies above zero."""
        return self.figure.measured is not None and not self.doubt

    @property
    def title(self) -> str:
        """The layer as pages name it: ``wrapper objects``."""
        return TITLES.get(self.name, self.name)


@dataclasses.dataclass(frozen=True)
class HostShares:
    """The host's time of the case ``top``, split into layers that add up to it.

    ``levels``: the records with a host time, from Python first; ``shares``: a layer for each, the last level whole.
    ``minimal``: the host's time of the same work in a minimal Vulkan program, of the same run; no layer.
    ``validation``: what Dawn spends on validation, where it was measured.
    """

    target: TargetView
    top: Record
    host: Figure | None
    levels: tuple[Record, ...]
    shares: tuple[Share, ...]
    minimal: Figure | None
    validation: Figure | None

    @property
    def case(self) -> str:
        """The case in words: pattern, parameters, and the caller unless it is Python: ``per-k k=16``."""
        caller = self.top.caller
        return self.target.pattern_label(self.top) + (f", {CALLER_WORDS[caller]}" if caller != "binding" else "")

    @property
    def is_split(self) -> bool:
        """Whether the host's time is known and the interval of at least one difference lies above zero."""
        return self.top.measured("host") is not None and any(s.is_separable and s.paired for s in self.shares)

    @property
    def reason(self) -> str:
        """Why there is no layer; '' where there is one."""
        return "" if self.shares else why(self.top, "host")

    @property
    def python(self) -> Value | None:
        """``python_share`` of the first and the last level; None without levels."""
        return python_share(self.top, self.levels[-1]) if self.levels else None


def python_share(top: Record, compiled: Record) -> Value | None:
    """Python's share (0 to 1) of the host's time: ``1 - compiled / top``, of a case by these two callers.

    None where either has no host's time, where they ran on two boards, or where the callers are others.
    """
    if (top.caller, compiled.caller) != ("binding", "native"):
        return None
    callers = ratio(top.measured("host"), compiled.measured("host"))
    return None if callers is None else callers.share_saved


def host_ns(found: HostShares) -> float:
    """The host's time of the case in ns, to sort by; 0 where it has none."""
    host = found.top.measured("host")
    return host.value if host else 0.0


def host_shares(view: View) -> list[HostShares]:
    """The layers of every case that was measured by several callers, sorted by target, pattern and caller."""
    below = {key for name in _NEXT_LEVEL.values() for c in view.comparisons(name) for key in c.against}
    return [
        _split(view, record)
        for target in view.executing
        for record in by_patterns(target.records)
        if record.key not in below and _compared(view, record)
    ]


def bar_pieces(shares: tuple[Share, ...]) -> list[tuple[str, float]]:
    """Layer and its ns for each piece of a bar that ends at the whole, from left to right, none below zero.

    Where a part of Python is below zero its layers are one piece; a piece below zero is left out.
    """
    values = {s.name: found.value for s in shares if (found := s.figure.measured) is not None}
    if any(values[name] < 0 for name in _PYTHON_LAYERS & values.keys()):
        whole = sum(values.pop(name) for name in list(values) if name in _PYTHON_LAYERS)
        values = {"python": whole, **values}
    return [(name, value) for name, value in reversed(values.items()) if value > 0]


def _split(view: View, top: Record) -> HostShares:
    levels = [r for r in _levels(view, top) if r.measured("host")] if top.value("host") else []
    own = (c.figure("difference") for c in view.comparisons("validation-share") if _same_case(view, c, top))
    validation = next(filter(None, own), None)
    program = minimal_program(view, levels[-1]) if levels else None
    minimal = program.figure("host") if program is not None and program.measured("host") else None
    shares = tuple(_shares(levels))
    return HostShares(view.target(top), top, top.figure("host"), tuple(levels), shares, minimal, validation)


def _levels(view: View, top: Record) -> list[Record]:
    """The top, then every level below it, each called with less in between."""
    found = {top.key: top}
    waiting = [top]
    while waiting:
        for _, key in _compared(view, waiting.pop(0)):
            record = view.record(key)
            if record is not None and key not in found and not why_apart(record.device, top.device):
                found[key] = record
                waiting.append(record)
    return sorted(found.values(), key=lambda r: CALLERS.index(r.caller))


def _compared(view: View, record: Record) -> list[tuple[str, str]]:
    """Each layer below the record with the key of the level under it."""
    found = ((name, view.comparison(share, record.key)) for name, share in _NEXT_LEVEL.items())
    return [(name, c.against[0]) for name, c in found if c is not None and c.against]


def _shares(levels: list[Record]) -> list[Share]:
    """A layer for each level: its difference to the next, and the last level whole."""
    hosts = [figure for r in levels if (figure := r.figure("host")) is not None]
    if not hosts:
        return []
    found = [_share(_layer(*pair), _difference(*pair), hosts[0]) for pair in itertools.pairwise(levels)]
    last = _share(_last_layer(levels[-1]), hosts[-1], hosts[0])
    return [*found, dataclasses.replace(last, paired=False)]


def _layer(upper: Record, lower: Record) -> str:
    if lower.caller == "ffi":
        return "binding"
    return "interpreter" if upper.caller == "ffi" else "python"


def _last_layer(last: Record) -> str:
    """What the last level consists of: a measured time, not a difference."""
    if last.caller != "native":
        return "rest"
    if last.stack in ("vulkan", "cuda-driver", "cuda-graph"):
        return "driver"
    return "api and driver" if last.stack in WEBGPU_STACKS else "library"


def _difference(upper: Record, lower: Record) -> Figure:
    """The host's time of the upper level less that of the lower one, with all that both intervals allow."""
    first, second = upper.measured("host"), lower.measured("host")
    if first is None or second is None:
        return Figure(name="difference", status="failed", reason="a level has no host time")
    found = first - second
    return Figure(name="difference", value=found.value, low=found.low, high=found.high)


def _share(name: str, figure: Figure, whole: Figure) -> Share:
    of, host = figure.measured, whole.measured
    return Share(name, figure, of.value / host.value if of and host and host.value else None, _doubt(of))


def minimal_program(view: View, compiled: Record) -> Record | None:
    """Of a WebGPU case called from compiled code, the record of a Vulkan program with the same work in the same run.

    None where it was not measured on the same board, and for other cases.
    """
    if compiled.stack not in WEBGPU_STACKS or compiled.caller != "native":
        return None
    like = with_fields(view.fingerprint.records, stack="vulkan", adapter=compiled.adapter, case=compiled.case)
    return next((r for r in like if not why_apart(r.device, compiled.device)), None)


def _doubt(of: Value | None) -> str:
    if of is None or of.resolved:
        return ""
    return BELOW_ZERO if of.ceiling < 0 else UNCLEAR


def _same_case(view: View, comparison: Comparison, top: Record) -> bool:
    """Whether the comparison is of the same target, pattern and unit; and of the native caller or the top case."""
    of = view.record(comparison.of)
    if of is None or (of.target_key, of.pattern, of.unit) != (top.target_key, top.pattern, top.unit):
        return False
    return of.caller == "native" or of.key == top.key


def share_of_host(found: HostShares, share: Share) -> str:
    """The layer as per cent of the host's time: ``33 %``; '' where either has no value."""
    whole, part = found.host.measured if found.host else None, share.figure.measured
    return percent(part / whole.value) if part and whole and whole.value else ""


def layer_text(found: HostShares, share: Share) -> str:
    """The layer as per cent of the host's time and in µs, with its doubt: ``33 %, 8.0 (7.2 to 8.8), not separable``."""
    return ", ".join(part for part in (share_of_host(found, share), micro_spread(share.figure), share.doubt) if part)
