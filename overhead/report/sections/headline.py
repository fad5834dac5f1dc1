"""The headline of the front page: what one dispatch costs through each stack, as a figure, after three sentences."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Drawing, Part, Text
from overhead.reading.dispatch_costs import KIND_TITLES, DispatchCosts, dispatch_costs
from overhead.reading.dispatch_sentences import lead_sentences, trust_sentence
from overhead.reading.format import MICRO, listed, number, plain
from overhead.reading.summary import missing_stacks, software_sentence, speed_change
from overhead.reading.view import View
from overhead.report.core.headline_figure import headline_figure
from overhead.report.core.registry import register

_MOST_REASONS = 12
"""Missing stacks whose reasons stand on the front page where nothing was measured."""


@register("headline", "What one dispatch costs", 5)
def headline(view: View) -> Iterator[Part]:
    costs = view.once(dispatch_costs)
    if costs is None or not any(row.marks for row in costs.rows):
        yield Text([_nothing(view, costs)], lead=True)
        rows = [f"{row.label}: {'; '.join(row.notes)}." for row in costs.rows] if costs is not None else []
        absent = [f"{plain(one.stack, 32)}: {one.reason}" for one in view.fingerprint.unavailable[:_MOST_REASONS]]
        if rows:
            rows.append("overhead doctor names what disturbs a measurement on this machine.")
        if said := [*rows, *absent, *filter(None, [software_sentence(view)])]:
            yield Text(said, quiet=True)
        return
    said = lead_sentences(costs)
    yield Text(said, lead=True)
    title = f"{costs.title}, {MICRO} per dispatch"
    yield Drawing("headline", title, _alternative(costs), _caption(costs), headline_figure(costs))
    if trust := trust_sentence(costs):
        yield Text([trust])
    remarks = (software_sentence(view), speed_change(view), missing_stacks(view, "under All cases"))
    yield Text([text for text in remarks if text], quiet=True)


def _nothing(view: View, costs: DispatchCosts | None) -> str:
    if costs is not None:
        return "This run does not resolve the cost of a dispatch through any stack."
    if any(r.value("complete") is not None for t in view.executing for r in t.records):
        return "No stack ran single dispatches here; what was measured is on the other pages."
    return "No stack could be measured on this machine."


def _alternative(costs: DispatchCosts) -> str:
    """The finding of the figure, for screen readers: each row with its first cost."""
    rows = [f"{row.label} {number(row.marks[row.first])} {KIND_TITLES[row.first]}" for row in costs.rows if row.marks]
    return f"{costs.title}, {MICRO} per dispatch, from the cheapest to the dearest: {listed(rows)}."


def _caption(costs: DispatchCosts) -> str:
    said = [
        "The cost of one more dispatch (the slope), without the wait at the end. All figures are of one run"
        + (" on one GPU." if costs.hardware else "; software adapters and the CPU do the work."),
        "From compiled code the same calls are made without Python.",
    ]
    if any(row.met for row in costs.rows):
        said.append("The band shows what fresh processes met that were not pinned to a quiet processor.")
    return " ".join(said)
