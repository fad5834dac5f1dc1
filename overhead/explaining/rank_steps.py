"""Pair the steps of several ranks where their traces number them differently. Pure.

All ranks leave a collective at the same moment. So the times from the end of one collective to the
end of the next are the same in all ranks, whatever their clocks say; a wrong pairing shows by times
that differ.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overhead.results import Reason, because
from overhead.traces.trace import StepTrace, Trace

_MOST_SHIFT = 3
"""Steps are tried so far apart. Chosen, not measured: profilers are started together, and a rank
counts from another number or has missed few steps.
"""
_LEAST_STEPS = 3
"""So many steps must have collectives in two ranks; fewer agree by chance."""
_CLEARLY = 5
"""Another pairing is certain if its times are so many times closer. Chosen, not measured."""
_CLOSE = 0.01
"""And if they differ by less than this share of a step. Chosen, not measured."""


@dataclass(frozen=True)
class PairedSteps:
    """The traces with numbers by which their steps belong together, and what must be said of
    them.
    """

    traces: Sequence[Trace]
    said: Sequence[Reason]


def paired_steps(traces: Sequence[Trace]) -> PairedSteps:
    """The traces of several ranks, with the steps of each numbered as those of the first one.

    The numbers of the marks count, unless the ends of collectives show surely that a rank numbers
    its steps otherwise. Where they do not show it, different first numbers are said.
    """
    numbered = [_numbered(trace) for trace in traces]
    first = numbered[0]
    paired = [first]
    said = []
    for trace in numbered[1:]:
        shift = _shift(first, trace)
        if shift:
            said.append(because("steps-numbered-otherwise", rank=trace.rank, shift=shift))
        elif shift is None and _starts_elsewhere(first, trace):
            said.append(
                because(
                    "steps-begin-elsewhere",
                    rank=trace.rank,
                    number=trace.steps[0].number,
                    other=first.rank,
                    other_number=first.steps[0].number,
                )
            )
        paired.append(_shifted(trace, shift or 0))
    return PairedSteps(paired, said)


def _numbered(trace: Trace) -> Trace:
    """The trace with a number for each step: its position where its mark has none."""
    steps = []
    for index, step in enumerate(trace.steps):
        number = index if step.number is None else step.number
        steps.append(dataclasses.replace(step, number=number))
    return dataclasses.replace(trace, steps=steps)


def _shifted(trace: Trace, shift: int) -> Trace:
    """The trace with numbers that are larger by ``shift``."""
    if not shift:
        return trace
    steps = []
    for step in trace.steps:
        steps.append(dataclasses.replace(step, number=(step.number or 0) + shift))
    return dataclasses.replace(trace, steps=steps)


def _starts_elsewhere(first: Trace, other: Trace) -> bool:
    """Whether two traces begin with steps of different numbers."""
    if not first.steps or not other.steps:
        return False
    return first.steps[0].number != other.steps[0].number


def _shift(first: Trace, other: Trace) -> int | None:
    """By how much the numbers of the other trace must grow; 0 if they are right, None if the
    collectives do not show it.
    """
    first_ends = _ends_by_number(first)
    other_ends = _ends_by_number(other)
    differences: dict[int, float] = {}
    for shift in range(-_MOST_SHIFT, _MOST_SHIFT + 1):
        difference_ns = _difference_ns(first_ends, other_ends, shift)
        if difference_ns is not None:
            differences[shift] = difference_ns
    if not differences:
        return None
    best = min(differences, key=lambda shift: (differences[shift], abs(shift)))
    step_ns = float(np.median([step.end - step.start for step in first.steps]))
    if differences[best] > _CLOSE * step_ns:
        return None
    others = [difference for shift, difference in differences.items() if shift != best]
    # If all pairings are alike, as with steps that all take the same time, none is certain.
    clear = all(difference > _CLEARLY * max(differences[best], 1.0) for difference in others)
    if not others or not clear:
        return None
    return best


def _ends_by_number(trace: Trace) -> dict[int, NDArray[np.float64]]:
    """By the number of a step when its collectives end, in order."""
    ends: dict[int, NDArray[np.float64]] = {}
    for step in trace.steps:
        ends[step.number or 0] = np.array(_ends(step))
    return ends


def _ends(step: StepTrace) -> list[float]:
    return sorted(work.end for work in step.device if work.communicates)


def _difference_ns(
    first: dict[int, NDArray[np.float64]], other: dict[int, NDArray[np.float64]], shift: int
) -> float | None:
    """How much the ends of collectives differ in this pairing, once the difference of the clocks is
    taken off; the median, ns. None if the pairing has too few steps, or other collectives.
    """
    apart = []
    steps = 0
    for number, ends in first.items():
        others = other.get(number - shift)
        if others is None or not len(ends):
            continue
        if len(others) != len(ends):
            return None
        steps += 1
        apart.append(others - ends)
    if steps < _LEAST_STEPS:
        return None
    differences = np.concatenate(apart)
    return float(np.median(np.abs(differences - np.median(differences))))
