"""How the host's time splits into layers (binding, interpreter, API, driver), and the device's time beside it.

Each layer is the difference of two cases that alternated in one process. A chain of such layers is a ladder.
"""

from __future__ import annotations

import dataclasses

from overhead.named_comparisons import WEBGPU_STACKS
from overhead.reading.format import MICRO, bounds, listed, micro, percent, time, valued
from overhead.reading.missing_values import missing_figure, why
from overhead.reading.view import CALLERS, TargetView, View, by_patterns, named
from overhead.results import Comparison, Figure, Record

RUNGS = {name: f"{name}-share" for name in ("binding", "interpreter", "framework", "api", "driver", "python")}
"""The named comparison of each rung, in the order of the ladder. ``python`` is ``binding`` plus ``interpreter``."""
TITLES = {
    "binding": "binding", "interpreter": "interpreter", "framework": "framework", "api": "API", "driver": "driver",
    "python": "Python", "api and driver": "API and driver", "library": "library",
    "leaf": "leaf call", "rest": "unsplit rest",
}  # fmt: skip

_BINDINGS = {
    "wgpu-native": "wgpu-py objects", "dawn": "wgpu-py objects", "torch": "Python binding of torch",
    "cupy": "CuPy objects", "cuda-driver": "cuda-bindings calls", "numpy": "Python binding of NumPy",
}  # fmt: skip
"""What the rung ``binding`` (or ``python``) consists of, in words, by stack."""
BELOW_ZERO, UNCLEAR = "below zero", "not separable"
"""Values of ``Share.doubt``: the interval lies below zero, or reaches zero."""


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
    """The device's time in ns per unit, split into the part that adds to the total and the part hidden behind the host.

    A part is None where it is unknown. ``holds_gaps``: only the span from first to last is known, idle time included.
    """

    figure: Figure | None
    exposed: float | None
    hidden: float | None
    holds_gaps: bool
    reason: str


@dataclasses.dataclass(frozen=True)
class HostShares:
    """One ladder: the host's time of the case ``top``, split rung by rung down to the leaf call.

    ``validation``: the part of the API rung that Dawn spends on validation, where it was measured.
    """

    target: TargetView
    top: Record
    host: Figure | None
    shares: tuple[Share, ...]
    validation: Figure | None
    device: Device

    @property
    def case(self) -> str:
        """Pattern and parameters of the top case, and its caller unless that is ``binding``."""
        caller = self.top.caller
        return self.target.pattern_label(self.top) + (f", {caller}" if caller != "binding" else "")

    @property
    def split(self) -> bool:
        """Whether the host's time is known and the interval of at least one difference lies above zero."""
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
    """The last rung: the host time of the last record, which is a measured figure and not a difference."""
    figure = last.figure("host")
    if figure is None:
        return []
    taken = {s.name for s in shares}
    if "driver" in taken:
        name = "leaf"
    elif "api" in taken or last.stack in ("vulkan", "cuda-driver"):
        name = "driver"
    elif last.caller == "native":
        name = "api and driver" if last.stack in WEBGPU_STACKS else "library"
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
    """Whether the comparison belongs to this ladder: same target, pattern and unit; native caller or the top case."""
    of = view.record(comparison.of)
    same = of is not None and of.target_key == top.target_key and of.pattern == top.pattern and of.unit == top.unit
    return same and of is not None and (of.caller == "native" or of.key == top.key)


def _device(record: Record) -> Device:
    """The device's time of the case: exposed = complete - host, hidden = busy - exposed."""
    busy, whole = record.figure("device_busy"), record.figure("device_span")
    figure = next((f for f in (busy, whole) if valued(f) is not None), busy or whole)
    taken = valued(figure)
    complete, host = record.value("complete"), record.value("host")
    exposed = complete - host if complete is not None and host is not None else None
    if taken is None:
        return Device(figure, exposed, None, False, why(record, figure.name if figure else "device_busy"))
    hidden = taken - max(exposed, 0.0) if exposed is not None else None
    return Device(figure, exposed, hidden, figure is whole, "")


def staged(target: TargetView) -> list[tuple[Record, list[Figure]]]:
    """The target's records with figures of single calls (``stage:...``), in the order that the calls were made."""
    found = [(r, [f for f in r.figures if f.name.startswith("stage:")]) for r in target.records]
    return sorted(((r, f) for r, f in found if f), key=lambda pair: CALLERS.index(pair[0].caller))


def ladder_sentences(found: list[HostShares]) -> list[str]:
    """A sentence for each ladder on hardware, and one for all ladders on software adapters, without their shares."""
    said = [ladder_sentence(f) for f in found if not f.target.software]
    smoke = list(dict.fromkeys(f.target.label for f in found if f.target.software))
    return said + ([f"A smoke test, no statement of who takes the time, because a software adapter's work runs on the "
                    f"caller's own cores: {listed(smoke)}."] if smoke else [])  # fmt: skip


def ladder_sentence(found: HostShares) -> str:
    """``Of 26 us of host time per dispatch through ... (per-submit), the wgpu-py objects take 46 % (12 us), ...``."""
    unit, host = found.top.unit, found.host
    place = f"through {found.target.label} ({found.case})"
    if host is None or valued(host) is None:
        return f"The host's time per {unit} {place} has no figure: {found.reason or why(found.top, 'host')}."
    clear = [s for s in found.shares if s.separable]
    parts = [_part(found, s, first=s is clear[0]) for s in clear]
    if not parts:
        return f"The {time(host)} of host time per {unit} {place} could not be split."
    said = f"Of {time(host)} of host time per {unit} {place}, {listed(parts)}."
    return " ".join([said, *(_unclear(s) for s in found.shares if not s.separable)])


def _part(found: HostShares, share: Share, *, first: bool) -> str:
    what = share.title
    if share.name in ("binding", "python"):
        what = _BINDINGS.get(found.target.stack, "binding's objects")
    verb = (" take" if what.endswith("s") or " and " in what else " takes") if first else ""
    per_cent, value = share_of_host(found, share), f"{micro(share.figure)} {MICRO}"
    return f"the {what}{verb} {per_cent} ({value})" if per_cent else f"the {what}{verb} {value}"


def share_of_host(found: HostShares, share: Share) -> str:
    """The rung as per cent of the host's time, ready to print; '' where either has no value."""
    whole = valued(found.host)
    if share.of_host is None or not whole:
        return ""
    low, high = (None if v is None else v / whole for v in bounds(share.figure))
    return percent(share.of_host, low, high)


def _unclear(share: Share) -> str:
    value = valued(share.figure)
    if value is None:
        return f"The share of the {share.title} is missing ({missing_figure(share.figure).text})."
    cheaper = ": the calls are cheaper with it" if share.doubt == BELOW_ZERO else ""
    return f"The {share.title} is {share.doubt}: {time(share.figure)}{cheaper}."
