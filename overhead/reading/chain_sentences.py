"""Sentences on chains of dependent steps: one kernel against a graph, and which way pays off when.

As in ``reading.chains``, an arm is a way to run a chain, as measured; a group holds the arms of one workload and size.
"""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.chains import COMPARED, ArmFit, Group, crossing, groups, steps_of
from overhead.reading.format import MICRO, factor_spread, listed, number, positive_spread
from overhead.reading.view import GRAPH_MAKERS, View

_GRAPHS = tuple(f"graph-{maker}" for maker in GRAPH_MAKERS)
_PLACES = {"gpu": "", "cpu": " (CPU)"}
_LANGUAGES = {"fused-cuda": "CUDA", "fused-wgsl": "WGSL"}


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
