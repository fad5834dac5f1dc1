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
        f"{intervals(found.changes)}. This applies where the CPU knows the number of workgroups.",
    )


@words_for(FreshBindGroupCosts)
def fresh_bind_group(found: FreshBindGroupCosts) -> FindingWords:
    first = found.changes[0]
    return FindingWords(
        f"Keep bind groups. In {stack(first)}, with a new one each time and with one that is kept: {against(first)}.",
        f"{intervals(found.changes)}. This applies where the same buffers are bound again.",
    )


@words_for(TinyCompiledCosts)
def tiny_compiled(found: TinyCompiledCosts) -> FindingWords:
    slower = found.change
    pays_from = whole(found.pays_from, formed("ceil", found.change.times.origin))
    compiled, eager = cost_text(slower.before), cost_text(slower.after)
    return FindingWords(
        f"torch.compile pays off from about {pays_from} tiny operations on: {called(slower)}, a compiled step takes "
        f"{compiled} {MICRO}, and one operation in eager mode takes {eager}.",
        f"{intervals([slower])}. Both were measured in turn, with one operation. With larger operations, kernel fusion "
        "can pay off earlier.",
    )
