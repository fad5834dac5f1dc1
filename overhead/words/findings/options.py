"""Findings on options of an API or a library, in words."""

from __future__ import annotations

from overhead.reading.findings.options import FreshBindGroupCosts, IndirectCosts, TinyCompiledCosts
from overhead.results import formed
from overhead.words.findings import FindingWords, words_for
from overhead.words.findings._changes import called, intervals, stack
from overhead.words.format import MICRO, cost_text, whole


@words_for(IndirectCosts)
def indirect(found: IndirectCosts) -> FindingWords:
    first = found.changes[0]
    return FindingWords(
        f"Avoid dispatchIndirect in {stack(first)}: a {first.before.unit} {called(first)} costs"
        f" {cost_text(first.before)} {MICRO} with it, and {cost_text(first.after)} {MICRO}"
        " without it.",
        f"{intervals(found.changes)}. This applies if the CPU knows the number of workgroups.",
    )


@words_for(FreshBindGroupCosts)
def fresh_bind_group(found: FreshBindGroupCosts) -> FindingWords:
    first = found.changes[0]
    return FindingWords(
        f"Keep bind groups: in {stack(first)}, a {first.before.unit} {called(first)} costs"
        f" {cost_text(first.before)} {MICRO} with a new bind group each time, and"
        f" {cost_text(first.after)} {MICRO} with a kept one.",
        f"{intervals(found.changes)}. This applies if the same buffers are bound again.",
    )


@words_for(TinyCompiledCosts)
def tiny_compiled(found: TinyCompiledCosts) -> FindingWords:
    slower = found.change
    pays_from = whole(found.pays_from, formed("ceil", found.change.times.origin))
    compiled, eager = cost_text(slower.before), cost_text(slower.after)
    return FindingWords(
        f"Use torch.compile only for steps of about {pays_from} tiny operations or more:"
        f" {called(slower)}, a compiled step of one operation takes {compiled} {MICRO}, and the"
        f" operation in eager mode takes {eager} {MICRO}.",
        f"{intervals([slower])}. Both were measured in turn. If the operations are larger, kernel"
        " fusion can pay off with fewer of them.",
    )
