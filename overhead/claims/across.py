"""The page of published claims and what these measurements say of them."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Part
from overhead.claims.judging import gather_evidence, judge_evidence
from overhead.claims.show import page_blocks
from overhead.report.core.machines import Machines
from overhead.report.core.page_list import register_page
from overhead.report.core.registry import register_across
from overhead.words import claims as words

register_page("claims", words.CLAIMS_PAGE, 80, words.ABOUT_CLAIMS)


@register_across("claims", words.CLAIMS_JUDGED, 70, page="claims")
def claim_verdicts(machines: Machines) -> Iterator[Part]:
    """The verdict on each claim from all runs, with its reasons."""
    judged_claims = judge_evidence([run.once(gather_evidence) for run in machines.runs])
    yield from page_blocks(judged_claims)
