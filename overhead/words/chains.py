"""A workload and the variants of its chain, in words."""

from __future__ import annotations

from overhead.reading.chains import ArmFit, Group, bends_below_zero
from overhead.reading.missing_values import why
from overhead.reading.view import parameter_texts
from overhead.results import Record
from overhead.words.format import unresolved
from overhead.words.reasons import sentence, with_status

_BENDS_BELOW_ZERO = "nonlinear: on a line through the times, the one-off cost would be below zero"


def group_title(group: Group) -> str:
    """The name with the number of elements: ``recurrence, 4,096 elements``."""
    return f"{group.name}, {elements_text(group.elements)}"


def elements_text(elements: int) -> str:
    """``4,096 elements``."""
    noun = "elements" if elements > 1 else "element"
    return f"{elements:,} {noun}"


def arm_label(arm: ArmFit) -> str:
    """A variant of a workload in words: the stack, how it runs the steps, and the parameters that
    tell it from others, ``dawn, fused checks=off``, ``cuda-graph, replay made by the CUDA driver``.
    """
    # ``own``: the parameters that tell it from the variants beside it; the maker of a graph is none
    # of them, and follows.
    variant = [arm.record.pattern, *parameter_texts(dict(arm.own))]
    if "maker" in arm.record.params:
        variant.append(f"made by {arm.maker}")
    return f"{arm.short}, {' '.join(variant)}"


def why_no_speed(record: Record) -> str:
    """Why a measured variant of a workload has no time that can be compared: what is wrong with the
    line through its times, that its cost is not clearly above zero, or the reason in its record.
    """
    # The line says that a chain of no step takes less than no time, so the times are no line.
    if bends_below_zero(record):
        return _BENDS_BELOW_ZERO
    # It has a cost and is left out all the same: the interval reaches zero.
    if record.measured("complete") is not None:
        return unresolved(record.figure("complete"))
    if record.reason:
        return with_status(record.status, record.reason)
    return sentence(why(record, "complete"))
