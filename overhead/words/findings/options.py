"""Findings on options of an API or a library, in words."""

from __future__ import annotations

import math

from overhead.reading.findings.options import (
    CompiledStepsMeet,
    FreshBindGroupCosts,
    IndirectCosts,
    TinyCompiledCosts,
)
from overhead.results import Value, exactly, formed
from overhead.words.findings import FindingWords, words_for
from overhead.words.findings._changes import called, cost, intervals, others, sentences, stack
from overhead.words.format import MICRO, spread, whole
from overhead.words.printed import printed


@words_for(IndirectCosts)
def indirect(found: IndirectCosts) -> FindingWords:
    """The finding that a dispatch costs more if the device reads the number of workgroups from a
    buffer. In a change, ``before`` is with this option and ``after`` without it.
    """
    first = found.changes[0]
    unit = first.before.unit
    with_it, without = cost(first.before), cost(first.after)
    title = (
        f"Avoid dispatchIndirect in {stack(first)}: a {unit} {called(first)} costs"
        f" {with_it} {MICRO} with it, and {without} {MICRO} without it."
    )
    condition = "If the CPU knows the number of workgroups."
    return FindingWords(
        title, sentences(intervals(first, before_first=True), others(found.changes), condition)
    )


@words_for(FreshBindGroupCosts)
def fresh_bind_group(found: FreshBindGroupCosts) -> FindingWords:
    """The finding that a dispatch costs more with a new bind group each time (``before``, in a
    change) than with a kept one (``after``).
    """
    first = found.changes[0]
    unit = first.before.unit
    fresh, kept = cost(first.before), cost(first.after)
    title = (
        f"Keep bind groups: in {stack(first)}, a {unit} {called(first)} costs"
        f" {fresh} {MICRO} with a new bind group each time, and {kept} {MICRO} with a kept one."
    )
    condition = "If the same buffers are bound again."
    return FindingWords(
        title, sentences(intervals(first, before_first=True), others(found.changes), condition)
    )


_LARGER_OPERATIONS = "If the operations are larger, kernel fusion can pay off with fewer of them."


@words_for(CompiledStepsMeet)
def compiled_steps_meet(found: CompiledStepsMeet) -> FindingWords:
    """The finding from about how many operations on a step of torch.compile is faster than the same
    operations in eager mode.
    """
    # Each a step of one operation, and one of more.
    compiled_one, compiled_many = found.compiled
    eager_one, eager_many = found.eager
    operations = whole(found.operations, exactly(found.operations).origin)
    title = (
        f"Use torch.compile from about {_pays_from(found.meet_at)} small operations on: one takes"
        f" {cost(compiled_one)} {MICRO} compiled, {cost(eager_one)} {MICRO} in eager mode;"
        f" {operations} take {cost(compiled_many)} and {cost(eager_many)} {MICRO}."
    )
    meet_at = spread(found.meet_at)
    detail = f"The two lines meet at {meet_at} operations. {_LARGER_OPERATIONS}"
    return FindingWords(title, detail)


def _pays_from(meet_at: Value) -> str:
    """From how many operations on compiling pays: ``4 to 8``, the ends of the interval in whole
    operations; one number where both ends give it, or where there is no interval.
    """
    least, most = round(meet_at.floor), round(meet_at.ceiling)
    if not meet_at.bounded or least == most:
        return whole(math.ceil(meet_at.value), formed("ceil", meet_at.origin))
    return printed(f"{least:,} to {most:,}", meet_at)


@words_for(TinyCompiledCosts)
def tiny_compiled(found: TinyCompiledCosts) -> FindingWords:
    """The finding that torch.compile makes a step of one small operation slower than eager mode,
    and from about how many operations on it pays.
    """
    slower = found.change  # before: the compiled step; after: the operation in eager mode
    # The origin says how the number was formed, for the check of the page's numbers: it is the
    # ratio of both costs, rounded up.
    pays_from = whole(found.pays_from, formed("ceil", slower.times.origin))
    title = (
        f"Use torch.compile from about {pays_from} small operations on: one takes"
        f" {cost(slower.before)} {MICRO} compiled, {cost(slower.after)} {MICRO} in eager mode."
    )
    return FindingWords(title, sentences(intervals(slower, before_first=True), _LARGER_OPERATIONS))
