"""The opening: what one dispatch costs here, and the key figures."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cards, Part, Text
from overhead.reading.dispatch_costs import dispatch_costs
from overhead.reading.dispatch_sentences import lead_sentences
from overhead.reading.key_figures import key_figures_of
from overhead.reading.next_run import next_run_sentence
from overhead.reading.summary import missing_stacks, software_sentence
from overhead.reading.view import View
from overhead.report.core.registry import register


@register("summary", "Key figures", 10, page="cases", brief=True)
def summary(view: View) -> Iterator[Part]:
    costs = view.once(dispatch_costs)
    lead = lead_sentences(costs) if costs is not None else []
    yield Text(lead or ["This run has no cost of a dispatch; the reasons are below."], lead=True)
    cards = key_figures_of(view)
    yield Cards(cards)
    if any(card.measured for card in cards):
        yield Text([next_run_sentence(view.fingerprint.machine)], quiet=True)
    if said := [text for text in (software_sentence(view), missing_stacks(view)) if text]:
        yield Text(said, quiet=True)
