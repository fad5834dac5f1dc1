"""Prose made from the figures: every number in it comes from the file, none is typed."""

from __future__ import annotations

from overhead.reading import chains
from overhead.reading.checks import Agreement
from overhead.reading.format import MICRO, bounds, count, factor, has_value, listed, micro, percent, time, valued
from overhead.reading.host_shares import BELOW_ZERO, HostShares, Share, ladders
from overhead.reading.key_figures import overstatement
from overhead.reading.missing_values import missing_figure, why
from overhead.reading.view import TargetView, View
from overhead.results import Record

OBJECTS = {
    "wgpu-native": "wgpu-py objects", "dawn": "wgpu-py objects", "torch": "Python binding of torch",
    "cupy": "CuPy objects", "cuda-driver": "cuda-bindings calls", "numpy": "Python binding of NumPy",
}  # fmt: skip
"""What the rung ``binding`` (or ``python``) is, by stack."""
STEADY = 1.05
"""A processor whose slowest process took up to so many times its fastest's time held its speed."""
HEADLINE = ("dawn", "wgpu-native", "chromium", "firefox", "safari", "vulkan", "cuda-driver", "torch", "numpy")
"""Whose figure the page opens with: the first that has a clear one on hardware, else on what there is."""


def opening(view: View) -> list[str]:
    """What one unit costs here per stack, how far a single timed one misleads, and what is missing."""
    best = [t for stack in view.stacks if (t := view.best(stack)) is not None and t.stepped]
    said = [costs(target) for target in best]
    return [s for s in [chain_opening(view), *said, overstated(best), only_software(view), missing(view)] if s]


def headline(view: View) -> list[str]:
    """What the page opens with: a graph against fused WGSL where both are, one unit of the most telling stack, and who
    takes that time."""
    targets = [t for t in view.best_of(HEADLINE) if has_value(t.base.figure("complete"))]
    if not targets:
        return [s for s in (only_software(view), missing(view)) if s]
    first = min(targets, key=lambda t: (t.first.api == "CPU", t.software, t.base.status != "ok"))
    own = [f for f in view.once(ladders) if f.target.key == first.key and f.split and not first.software]
    said = [chain_opening(view), costs(first), *map(_ladder, own[:1]), overstated([first]), only_software(view)]
    return [s for s in said if s]


def pace(view: View) -> str:
    """How far the processor's own speed moved while the run was taken, or '' where it held or is not known."""
    state = view.fingerprint.volatile
    least, most = state.get("canary_us_least"), state.get("canary_us_most")
    if not isinstance(least, float | int) or not isinstance(most, float | int) or not 0 < least * STEADY < most:
        return ""
    return (
        f"The processor's own speed moved by {percent(most / least - 1)} from process to process: a fixed loop beside "
        f"every sample, the canary, took {least:.4g} to {most:.4g} {MICRO}. What the host bounds moved with it."
    )


def chain_opening(view: View) -> str:
    """A CUDA graph against fused WGSL on this machine's GPU, or '' where both were not measured."""
    found = chains.graph_against_wgsl(view.once(chains.groups))
    if found is None:
        return ""
    group, graph, wgsl = found
    steps = chains.steps_of(group.workload)
    slow, fast = sorted((graph, wgsl), key=lambda a: -a.cost(steps).value)
    ratio = slow.cost(steps) / fast.cost(steps)
    each = {a.kind.name: f"{micro_of(a.slope.value)} {MICRO} a step" for a in (graph, wgsl)}
    verdict = (
        f"{fast.kind.title} is {factor(*ratio.over(1))} as fast" if ratio.floor > 1 else "the two are not told apart"
    )
    beyond = "; longer than the longest chain measured" if any(a.extrapolated(steps) for a in (graph, wgsl)) else ""
    return (
        f"{steps:,} dependent steps of {group.elements:,} elements ({group.workload}{beyond}): a CUDA graph takes "
        f"{micro_of(graph.cost(steps).value)} {MICRO} ({each['graph']}), fused WGSL through {wgsl.way} "
        f"{micro_of(wgsl.cost(steps).value)} {MICRO} ({each['fused-wgsl']}): {verdict}."
    )


def micro_of(ns: float) -> str:
    """Nanoseconds in microseconds, to three digits."""
    return f"{ns / 1e3:#,.3g}".rstrip(".") if ns < 999_500 else f"{ns / 1e3:,.0f}"


def costs(target: TargetView) -> str:
    """``One dispatch through dawn on ... costs 26.3 us (25.9 to 26.7), ...``."""
    base, figure = target.base, target.base.figure("complete")
    pattern = "" if base.pattern == "per-submit" else f" ({base.pattern})"
    where = f"One {base.unit}{pattern} through {target.label}"
    if figure is None or valued(figure) is None:
        return f"{where} has no figure here: {why(base, 'complete')}."
    state = "" if figure.status == "ok" else f"; this figure is {figure.status}"
    return f"{where} costs {time(figure)}{_host_part(base)}{state}."


def _host_part(record: Record) -> str:
    complete, host, figure = record.value("complete"), record.value("host"), record.figure("host")
    if (
        record.software
        or record.api == "CPU"
        or complete is None
        or host is None
        or figure is None
        or record.bound == ""
    ):
        return ""
    busy = "all" if host >= complete else time(figure)
    return f", and keeps the host busy for {busy} of it; it is {record.bound}-bound"


def overstated(targets: list[TargetView]) -> str:
    """By how much T(1), the figure that most benchmarks print, lies over the slope; of devices where there are any, and
    of ratios that have an upper end."""
    targets = [t for t in targets if t.first.api != "CPU"] or targets
    found = [(ratio, t) for t in targets if (ratio := overstatement(t.base, "naive")) is not None]
    found = [f for f in found if f[0][2] is not None] or found
    if not found:
        return ""
    (low, least), (high, most) = min(found, key=lambda f: f[0][0]), max(found, key=lambda f: f[0][0])
    start = "Timing a single unit and its wait, as most benchmarks do, would have given"
    if least is most:
        return f"{start} {factor(*low)} that for {most.label}."
    return f"{start} {factor(*low)} ({least.label}) to {factor(*high)} ({most.label}) as much."


def only_software(view: View) -> str:
    """Said where every adapter is a software one."""
    devices = [t for t in view.stacked if t.first.api != "CPU"]
    if not devices or not all(t.software for t in devices):
        return ""
    return (
        "Every adapter here is a software one: it computes on the caller's own cores, so these figures show that the "
        "measurement works and say nothing of a GPU."
    )


def missing(view: View) -> str:
    """Which stacks have no device here at all, and the commands that add them."""
    absent = [u for u in view.fingerprint.unavailable if u.stack not in {t.stack for t in view.targets}]
    if not absent:
        return ""
    stacks = list(dict.fromkeys(u.stack for u in absent))
    mends = list(dict.fromkeys(u.mend for u in absent if u.mend))
    adds = f" What adds them: {'; '.join(mends)}." if mends else ""
    return f"Missing on this machine: {listed(stacks)}; the reasons are below.{adds}"


def ladder_sentences(found: list[HostShares]) -> list[str]:
    """A sentence per ladder on hardware; one for all on software adapters, whose shares are never put in prose."""
    said = [_ladder(f) for f in found if not f.target.software]
    smoke = list(dict.fromkeys(f.target.label for f in found if f.target.software))
    return said + ([f"A smoke test, no statement of who takes the time, because a software adapter's work runs on the "
                    f"caller's own cores: {listed(smoke)}."] if smoke else [])  # fmt: skip


def _ladder(found: HostShares) -> str:
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
    what = OBJECTS.get(found.target.stack, "binding's objects") if share.name in ("binding", "python") else share.title
    verb = (" take" if what.endswith("s") or " and " in what else " takes") if first else ""
    per_cent, value = share_of_host(found, share), f"{micro(share.figure)} {MICRO}"
    return f"the {what}{verb} {per_cent} ({value})" if per_cent else f"the {what}{verb} {value}"


def share_of_host(found: HostShares, share: Share) -> str:
    """The rung in per cent of the ladder's host time, or '' where either has no value."""
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


def verdict(check: Agreement) -> str:
    """``agrees`` or by how much not."""
    if check.agrees:
        return "agrees"
    return f"differs by {percent(check.predicted / check.measured - 1)}" if check.measured else "differs"


def left_out(number_of: int) -> str:
    return f"The planner left out {count(number_of, 'case')}." if number_of else "The planner left nothing out."
