"""Findings on options of an API or a library, in words."""

from __future__ import annotations

from overhead.reading.findings.options import FreshBindGroupCosts, IndirectCosts, TinyCompiledCosts
from overhead.results import formed
from overhead.words.findings import FindingWords, words_for
from overhead.words.findings._changes import against, called, intervals, stack
from overhead.words.format import MICRO, cost_text, whole


@words_for(IndirectCosts)
def indirect(found: IndirectCosts) -> FindingWords:
    first = found.changes[0]
    return FindingWords(
        f"Avoid dispatchIndirect in {stack(first)}: {against(first)}.",
        f"{intervals(found.changes)}. It applies where the CPU knows the number of workgroups.",
    )


@words_for(FreshBindGroupCosts)
def fresh_bind_group(found: FreshBindGroupCosts) -> FindingWords:
    first = found.changes[0]
    return FindingWords(
        f"Keep bind groups: a new one for each dispatch in {stack(first)} costs {against(first)}.",
        f"{intervals(found.changes)}. It applies where the same buffers are bound again.",
    )


@words_for(TinyCompiledCosts)
def tiny_compiled(found: TinyCompiledCosts) -> FindingWords:
    slower = found.change
    pays_from = whole(found.pays_from, formed("ceil", found.change.times.origin))
    compiled, eager = cost_text(slower.before), cost_text(slower.after)
    return FindingWords(
        f"torch.compile pays from about {pays_from} tiny operations on: a compiled step {called(slower)} takes "
        f"{compiled} {MICRO}, one operation in eager mode {eager}.",
        f"{intervals([slower])}. Both were measured in turn, with one operation. Larger operations can gain from fused "
        "kernels earlier.",
    )
