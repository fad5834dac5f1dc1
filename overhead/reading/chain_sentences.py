"""Sentences on chains of dependent steps: one kernel against a graph, which way pays off when, and device times.

As in ``reading.chains``, an arm is a way to run a chain, as measured; a group holds the arms of one workload and size.
"""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.chains import COMPARED, ArmFit, Group, crossing, groups, steps_of
from overhead.reading.format import MICRO, factor, factor_spread, listed, micro_of, number, positive_spread
from overhead.reading.view import GRAPH_MAKERS, View
from overhead.results import Value, exactly

_GRAPHS = tuple(f"graph-{maker}" for maker in GRAPH_MAKERS)
_FUSIONS = (("wgsl", "fused-wgsl"), *((graph, "fused-cuda") for graph in _GRAPHS))
"""The kind with a dispatch or node per step, and the fused kind."""
_PLACES = {"gpu": "", "cpu": " (CPU)"}
_LANGUAGES = {"fused-cuda": "CUDA", "fused-wgsl": "WGSL"}
_LONG_CHAIN_STEPS = 1e6
"""A chain of so many steps costs its slope alone: the fixed cost is negligible."""
_NEAR_CUDA = 1.5
"""Fused WGSL counts as near CUDA up to this multiple of the fused CUDA kernel's device time."""


def graph_against_wgsl(found: Sequence[Group]) -> tuple[Group, ArmFit, ArmFit] | None:
    """The first group with both on a GPU: it, its cheapest CUDA graph, its cheapest fused WGSL kernel; else None.

    The recurrence is preferred, then the size nearest to 4,096 elements, then WGSL with the checks of its library.
    """
    for group in sorted(found, key=lambda g: (g.workload != "recurrence", abs(g.elements - 4096))):
        own, steps = group.on_processor("gpu"), steps_of(group.workload)
        graph = own.best(steps, _GRAPHS)
        wgsl = own.with_checks().best(steps, {"fused-wgsl"}) or own.best(steps, {"fused-wgsl"})
        if graph is not None and wgsl is not None:
            return own, graph, wgsl
    return None


def chain_opening(view: View) -> str:
    """Two sentences on one kernel for all steps against a CUDA graph of them; '' where the run lacks either."""
    found = graph_against_wgsl(view.once(groups))
    if found is None:
        return ""
    group, graph, wgsl = found
    steps = steps_of(group.workload)
    fused = [arm for arm in (group.best(steps, {"fused-cuda"}), wgsl) if arm is not None]
    faster = group.best(steps, {"fused-wgsl"})

    def took(arm: ArmFit) -> str:
        beyond = f" (extrapolated from {arm.longest:,} steps)" if arm.is_extrapolated(steps) else ""
        return f"{number(arm.cost(steps) / 1e3)} {MICRO}{beyond}"

    said = [f"{took(arm)} as {_LANGUAGES[arm.kind.name]} through {arm.way}" for arm in fused]
    if faster is not None and faster.cost(steps).ceiling < wgsl.cost(steps).floor:
        said[-1] += f" ({took(faster)} through {faster.way})"
    return (
        f"{steps:,} dependent steps of {group.elements:,} elements ({group.workload}) in one kernel take "
        f"{listed(said)}. As {graph.kind.title}, with nodes for every step, they take {took(graph)}."
    )


def break_even_sentences(found: Sequence[Group]) -> list[str]:
    """A sentence for each group: which way is cheaper than which, and from how many steps on."""
    said = []
    for group in found:
        pairs = (group.rivals(*kinds, steps_of(group.workload)) for kinds in COMPARED)
        if lines := [_passed(*pair) + _PLACES.get(pair[0].processor, " (software)") for pair in pairs if pair]:
            said.append(f"{group.title}: {'; '.join(lines)}.")
    return said


def _passed(first: ArmFit, second: ArmFit) -> str:
    """From how many steps on the second arm is cheaper than the first, in words."""
    found = crossing(first, second)
    ours, theirs = second.kind.title, first.kind.title
    if found.always:
        return f"{ours} is cheaper than {theirs} at any length"
    if found.never:
        return f"{ours} is never cheaper than {theirs}"
    if found.steps is None:
        gain = first.slope / second.slope
        if gain.floor > 1:
            return f"a step by {ours} is {factor_spread(gain)} faster than by {theirs}"
        return f"no measurable difference between {ours} and {theirs}"
    at = found.steps
    if at.ceiling < 1:
        return f"{ours} is cheaper than {theirs} from the first step on"
    beyond = ", longer than any chain measured" if at.value > min(first.longest, second.longest) else ""
    return f"{ours} pays off against {theirs} after about {positive_spread(at.at_least(1))} steps{beyond}"


def fusion_sentences(found: Sequence[Group]) -> list[str]:
    """Sentences on how much faster or slower a step is if all steps are one kernel, by number of elements."""
    said = []
    for name in dict.fromkeys(g.name for g in found):
        own = [g for g in found if g.name == name]
        for unfused, fused in _FUSIONS:
            pairs = [(g, pair) for g in own if (pair := g.rivals(unfused, fused, _LONG_CHAIN_STEPS)) is not None]
            gains = [f"{_gain(a.slope / b.slope)} at {g.elements:,}" for g, (a, b) in pairs]
            if gains:
                before, after = (arm.kind.title for arm in pairs[0][1])
                said.append(
                    f"{name}, {after} against {before}: a step is {listed(gains)} element"
                    f"{'' if pairs[-1][0].elements == 1 else 's'}."
                )
    return said


def _gain(of: Value) -> str:
    """A gain in words: ``2.9x (2.7 to 3.1) faster``, ``2.8x (2.6 to 3.0) slower`` or ``neither faster nor slower``."""
    if of.low is None or of.high is None or of.low <= 0:
        return f"{factor(of.value)} as fast"
    if of.low > 1:
        return f"{factor_spread(of)} faster"
    if of.high < 1:
        return f"{factor_spread(exactly(1.0) / of)} slower"
    return "neither measurably faster nor slower"


def device_time_sentences(found: Sequence[Group]) -> list[str]:
    """A sentence for each group: the device time of a fused WGSL step as a multiple of that of fused CUDA."""
    said = []
    for group in (g.on_processor("gpu") for g in found):
        base = min(_timed(group, "fused-cuda"), key=lambda pair: pair[1].value, default=None)
        others = _timed(group, "fused-wgsl")
        if base is None or not others:
            continue
        times = [(arm.way, took / base[1]) for arm, took in others]
        each = [f"{factor_spread(one)} as long through {way}" for way, one in times]
        near = [way for way, one in times if one.ceiling <= _NEAR_CUDA]
        unclear = [way for way, one in times if one.floor <= _NEAR_CUDA < one.ceiling]
        verdicts = [f"Within {_NEAR_CUDA}× of CUDA: {listed(near)}."] if near else []
        verdicts += [f"Too noisy to tell whether within {_NEAR_CUDA}× of CUDA: {listed(unclear)}."] if unclear else []
        within = " ".join(verdicts) or f"No WGSL version is within {_NEAR_CUDA}× of CUDA."
        said.append(
            f"{group.title}: the GPU takes {micro_of(base[1].value)} {MICRO} for a step of the fused CUDA kernel "
            f"({base[0].way}). A step of fused WGSL takes {listed(each)}. {within}"
        )
    return said


def _timed(group: Group, kind: str) -> list[tuple[ArmFit, Value]]:
    return [(a, took) for a in group.arms if a.kind.name == kind and (took := a.device) is not None and took.value > 0]
