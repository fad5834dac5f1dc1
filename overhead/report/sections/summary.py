"""The opening: what one unit costs here and who takes the time, the key figures, then a sentence for every stack."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cards, Part, Text
from overhead.reading.key_figures import key_figures_of
from overhead.reading.next_run import next_run_sentence
from overhead.reading.summary import headline, opening
from overhead.reading.view import View
from overhead.report.core.registry import register
from overhead.results import VALUED


@register("summary", "Key figures", 10, page="cases", brief=True)
def summary(view: View) -> Iterator[Part]:
    lead = headline(view)
    if not lead and any(record.status in VALUED for record in view.fingerprint.records):
        lead = opening(view)[:1]
    yield Text(lead or ["No stack could be measured on this machine; the reasons are below."], lead=True)
    cards = key_figures_of(view)
    yield Cards(cards)
    if any(card.measured for card in cards):
        yield Text([next_run_sentence(view.fingerprint.machine)], quiet=True)
    others = [sentence for sentence in opening(view) if sentence not in lead]
    if others:
        yield Text(others, folded="Every other stack in a sentence, and what is missing")
