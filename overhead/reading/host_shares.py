"""Who takes the host's time, as a ladder of paired differences, and the device's time beside it."""

from __future__ import annotations

import dataclasses

from overhead.named_comparisons import WEBGPU
from overhead.reading.format import valued
from overhead.reading.missing_values import why
from overhead.reading.view import CALLERS, TargetView, View, by_patterns, named
from overhead.results import Comparison, Figure, Record

RUNGS = {name: f"{name}-share" for name in ("binding", "interpreter", "framework", "api", "driver", "python")}
"""The rungs in their order, and the comparison that each is. ``python`` stands where it is not split."""
TITLES = {
    "binding": "binding", "interpreter": "interpreter", "framework": "framework", "api": "API", "driver": "driver",
    "python": "Python", "api and driver": "API and driver", "library": "library",
    "leaf": "leaf call", "rest": "unsplit rest",
}  # fmt: skip

BELOW_ZERO, UNCLEAR = "below zero", "not separable"
"""Why a rung with a value is not drawn: its interval lies below zero, or reaches it."""


@dataclasses.dataclass(frozen=True)
class Share:
    """One rung, ns per unit. ``of_host`` is the share of the ladder's host time (0.46), None where unknown.

    ``doubt``: ``BELOW_ZERO``, ``UNCLEAR``, or '' where its interval lies above zero or it has no value.
    """

    name: str
    figure: Figure
    of_host: float | None
    doubt: str = ""
    paired: bool = True

    @property
    def separable(self) -> bool:
        return valued(self.figure) is not None and not self.doubt

    @property
    def title(self) -> str:
        return TITLES.get(self.name, self.name)


@dataclasses.dataclass(frozen=True)
class Device:
    """The device's bar, ns per unit; ``holds_gaps`` where only the span is known. Parts are None where unknown."""

    figure: Figure | None
    exposed: float | None
    hidden: float | None
    holds_gaps: bool
    reason: str


@dataclasses.dataclass(frozen=True)
class HostShares:
    """A chain of callers and stacks, from what people write to the leaf call. ``validation`` is a part of the API."""

    target: TargetView
    top: Record
    host: Figure | None
    shares: tuple[Share, ...]
    validation: Figure | None
    device: Device

    @property
    def case(self) -> str:
        """The top's pattern and parameters, and its caller where that is not the stack's usual one."""
        caller = self.top.caller
        return self.target.pattern_label(self.top) + (f", {caller}" if caller != "binding" else "")

    @property
    def split(self) -> bool:
        """Whether the host's time is known and at least one difference stands clear of zero."""
        return valued(self.host) is not None and any(s.separable and s.paired for s in self.shares)

    @property
    def reason(self) -> str:
        """Why the host's time is not split, '' where it is."""
        return "" if self.shares else why(self.top, "host")


def ladders(view: View) -> list[HostShares]:
    """Every ladder of the targets that execute, longest first within a target, then by pattern."""
    below = {key for name in RUNGS.values() for c in view.comparisons(name) for key in c.against}
    tops = [
        record
        for target in view.executing
        for record in by_patterns(target.records)
        if record.key not in below and _next(view, record) is not None
    ]
    return [_ladder(view, record) for record in tops]


def _ladder(view: View, top: Record) -> HostShares:
    host = top.figure("host")
    whole = valued(host)
    shares: list[Share] = []
    record: Record | None = top
    seen = {top.key}
    while record is not None and (found := _next(view, record)) is not None and found[1].against[0] not in seen:
        name, comparison = found
        seen.add(comparison.against[0])
        shares.append(_share(name, _difference(comparison), whole))
        record = view.record(comparison.against[0])
    shares += _remainder(record, shares, whole) if record is not None else []
    validation = next((v for c in view.comparisons("validation-share") if _same_case(view, c, top)
                       if (v := named(c, "difference")) is not None), None)  # fmt: skip
    return HostShares(view.target(top), top, host, tuple(shares), validation, _device(top))


def _next(view: View, record: Record) -> tuple[str, Comparison] | None:
    """The rung below a record: its name and the comparison."""
    for name, share in RUNGS.items():
        comparison = view.comparison(share, record.key)
        if comparison is not None and comparison.against:
            return name, comparison
    return None


def _difference(comparison: Comparison) -> Figure:
    missing = Figure(name="difference", status="failed", reason="the comparison holds no difference")
    return named(comparison, "difference") or missing


def _remainder(last: Record, shares: list[Share], whole: float | None) -> list[Share]:
    """The host time of the last record, a measured figure and no difference."""
    figure = last.figure("host")
    if figure is None:
        return []
    taken = {s.name for s in shares}
    if "driver" in taken:
        name = "leaf"
    elif "api" in taken or last.stack in ("vulkan", "cuda-driver"):
        name = "driver"
    elif last.caller == "native":
        name = "api and driver" if last.stack in WEBGPU else "library"
    else:
        name = "rest"
    return [dataclasses.replace(_share(name, figure, whole), paired=False)]


def _share(name: str, figure: Figure, whole: float | None) -> Share:
    value = valued(figure)
    of_host = value / whole if value is not None and whole else None
    return Share(name, figure, of_host, _doubt(figure))


def _doubt(figure: Figure) -> str:
    value = valued(figure)
    if value is None or (value > 0 and (figure.low is None or figure.low > 0)):
        return ""
    return BELOW_ZERO if figure.high is not None and figure.high < 0 else UNCLEAR


def _same_case(view: View, comparison: Comparison, top: Record) -> bool:
    """Whether the comparison is of this ladder's native caller, or of its top."""
    of = view.record(comparison.of)
    same = of is not None and of.target_key == top.target_key and of.pattern == top.pattern and of.unit == top.unit
    return same and of is not None and (of.caller == "native" or of.key == top.key)


def _device(record: Record) -> Device:
    """Exposed = complete - host, hidden = busy - exposed; nothing where a part has no value."""
    busy, span = record.figure("device_busy"), record.figure("device_span")
    figure = next((f for f in (busy, span) if valued(f) is not None), busy or span)
    time = valued(figure)
    complete, host = record.value("complete"), record.value("host")
    exposed = complete - host if complete is not None and host is not None else None
    if time is None:
        return Device(figure, exposed, None, False, why(record, figure.name if figure else "device_busy"))
    hidden = time - max(exposed, 0.0) if exposed is not None else None
    return Device(figure, exposed, hidden, figure is span, "")


def staged(target: TargetView) -> list[tuple[Record, list[Figure]]]:
    """The target's records with figures of single calls (``stage:...``), in the order that the calls were made."""
    found = [(r, [f for f in r.figures if f.name.startswith("stage:")]) for r in target.records]
    return sorted(((r, f) for r, f in found if f), key=lambda pair: CALLERS.index(pair[0].caller))
