"""Sentences about chains: where one way passes another, what fusion saves, and what the device itself takes."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.chains import COMPARED, ArmFit, Group, crossing, steps_of
from overhead.reading.format import MICRO, listed, spread
from overhead.reading.intervals import Span

FUSIONS = (("wgsl", "fused-wgsl", "WGSL"), ("graph", "fused-cuda", "CUDA, against a graph"))
"""Per step and fused, and the language in words."""
FAR = 1e6
"""Steps by which what a chain costs besides them no longer counts."""
NEAR = 1.5
"""Times the fused CUDA kernel's device time within which fused WGSL is called near."""


def passings(found: Sequence[Group]) -> list[str]:
    """A sentence a group: which way beats which, and from how many steps on."""
    said = []
    for group in found:
        lines = [line for pair in COMPARED.values() if (line := _passing(group, *pair))]
        if lines:
            said.append(f"{group.title}: {'; '.join(lines)}.")
    return said


def _passing(group: Group, before: str, after: str) -> str:
    """``a CUDA graph passes eager operations from 3 steps on``: the cheapest arms on one kind of processor."""
    pair = group.rivals(before, after, steps_of(group.workload))
    if pair is None:
        return ""
    where = "" if pair[0].processor == "gpu" else f" ({pair[0].processor})"
    return f"{_passed(*pair)}{where}"


def _passed(first: ArmFit, second: ArmFit) -> str:
    found = crossing(first, second)
    ours, theirs = second.kind.title, first.kind.title
    if found.always:
        return f"{ours} beats {theirs} at any length"
    if found.never:
        return f"{ours} never beats {theirs}"
    if found.steps is None:
        gain = first.slope / second.slope
        if gain.floor > 1:
            return f"{ours} takes a step {times(gain)} as fast as {theirs}"
        return f"the intervals do not tell {ours} from {theirs}"
    at = found.steps
    if at.ceiling < 1:
        return f"{ours} beats {theirs} from the first step"
    beyond = ", longer than any chain measured" if at.value > min(first.longest, second.longest) else ""
    low = None if at.low is None else max(at.low, 1)
    return f"{ours} passes {theirs} from {spread(max(at.value, 1), low, at.high)} steps on{beyond}"


def fusions(found: Sequence[Group]) -> list[str]:
    """Where fusing the steps stops paying: a step's cost unfused over fused, from few elements to many."""
    said = []
    for name in dict.fromkeys(g.name for g in found):
        own = [g for g in found if g.name == name]
        for unfused, fused, language in FUSIONS:
            pairs = [(g, pair) for g in own if (pair := g.rivals(unfused, fused, FAR)) is not None]
            gains = [f"{times(a.slope / b.slope)} at {g.elements:,}" for g, (a, b) in pairs]
            if gains:
                said.append(
                    f"Fusing the steps of {name} in {language} makes a step faster by {listed(gains)} elements."
                )
    return said


def device_times(found: Sequence[Group]) -> list[str]:
    """What a fused step of WGSL takes of the device's own time, as a multiple of the fused CUDA kernel's."""
    said = []
    for group in (g.on("gpu") for g in found):
        base = min(_timed(group, "fused-cuda"), key=lambda pair: pair[1].value, default=None)
        others = _timed(group, "fused-wgsl")
        if base is None or not others:
            continue
        each = [f"through {arm.way} {times(took / base[1])} as long" for arm, took in others]
        near = [arm.way for arm, took in others if (took / base[1]).ceiling <= NEAR]
        one = f"{base[1].value / 1e3:.3g} {MICRO}"
        said.append(
            f"{group.title}: the device itself takes {one} for a step of the fused CUDA kernel "
            f"({base[0].way}), and for one of fused WGSL {listed(each)}; within {NEAR} times: {listed(near) or 'none'}."
        )
    return said


def _timed(group: Group, kind: str) -> list[tuple[ArmFit, Span]]:
    return [(a, took) for a in group.arms if a.kind.name == kind and (took := a.device) is not None and took.value > 0]


def times(found: Span) -> str:
    """A ratio, with its interval where it is known: ``2.9 times (2.7 to 3.1)``."""
    middle, _, rest = spread(*found.over(1)).partition(" (")
    return f"{middle} times" + (f" ({rest}" if rest else "")
