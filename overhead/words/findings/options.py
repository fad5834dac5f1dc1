"""Findings on options of an API or a library, in words."""

from __future__ import annotations

from overhead.reading.findings.options import FreshBindGroupCosts, IndirectCosts, TinyCompiledCosts
from overhead.results import formed
from overhead.words.findings import FindingWords, words_for
from overhead.words.findings._changes import called, intervals, stack
from overhead.words.format import MICRO, cost_text, whole


@words_for(IndirectCosts)
def indirect(found: IndirectCosts) -> FindingWords:
    """The finding that a dispatch costs more if the device reads the number of workgroups from a
    buffer. In a change, ``before`` is with this option and ``after`` without it.
    """
    first = found.changes[0]
    unit = first.before.unit
    with_it, without = cost_text(first.before), cost_text(first.after)
    title = (
        f"Avoid dispatchIndirect in {stack(first)}: a {unit} {called(first)} costs"
        f" {with_it} {MICRO} with it, and {without} {MICRO} without it."
    )
    condition = "This applies if the CPU knows the number of workgroups."
    return FindingWords(title, f"{intervals(found.changes)}. {condition}")


@words_for(FreshBindGroupCosts)
def fresh_bind_group(found: FreshBindGroupCosts) -> FindingWords:
    """The finding that a dispatch costs more with a new bind group each time (``before``, in a
    change) than with a kept one (``after``).
    """
    first = found.changes[0]
    unit = first.before.unit
    fresh, kept = cost_text(first.before), cost_text(first.after)
    title = (
        f"Keep bind groups: in {stack(first)}, a {unit} {called(first)} costs"
        f" {fresh} {MICRO} with a new bind group each time, and {kept} {MICRO} with a kept one."
    )
    condition = "This applies if the same buffers are bound again."
    return FindingWords(title, f"{intervals(found.changes)}. {condition}")


@words_for(TinyCompiledCosts)
def tiny_compiled(found: TinyCompiledCosts) -> FindingWords:
    """The finding that torch.compile makes a step of one tiny operation slower than eager mode, and
    from about how many operations on it pays.
    """
    slower = found.change  # before: the compiled step; after: the operation in eager mode
    # The origin says how the number was formed, for the check of a page's numbers: it is the ratio
    # of both costs, rounded up.
    pays_from = whole(found.pays_from, formed("ceil", slower.times.origin))
    compiled, eager = cost_text(slower.before), cost_text(slower.after)
    title = (
        f"Use torch.compile only for steps of about {pays_from} tiny operations or more:"
        f" {called(slower)}, a compiled step of one operation takes {compiled} {MICRO}, and the"
        f" operation in eager mode takes {eager} {MICRO}."
    )
    condition = (
        "Both were measured in turn. If the operations are larger, kernel fusion can pay off with"
        " fewer of them."
    )
    return FindingWords(title, f"{intervals([slower])}. {condition}")
