"""Sections of the front page: the picture of what one dispatch costs through each stack, and
findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Drawing, Listing, Part, Text
from overhead.reading.dispatch_costs import dispatch_costs
from overhead.reading.findings import findings_of
from overhead.reading.view import View
from overhead.report.core.headline_figure import headline_figure, rows_drawn
from overhead.report.core.registry import register
from overhead.words.findings import finding_words
from overhead.words.headline import lead_sentences, limit_sentences, trust_sentences
from overhead.words.report.headline_figure import (
    NO_SAVING,
    ONLY_NOISY,
    alternative,
    caption,
    more_missing,
    picture_title,
    row_reasons,
    stack_reason,
    without_picture,
)
from overhead.words.summary import missing_sentences, software_sentence, speed_sentence

_MOST_REASONS = 12
"""Missing stacks whose reasons stand on the front page where nothing was measured."""


@register("headline", "What one kernel launch costs", 5)
def headline(view: View) -> Iterator[Part]:
    """The headline figure between sentences; sentences on the reasons where no cost is resolved."""
    costs = view.once(dispatch_costs)
    if costs is None or not any(row.marks for row in costs.rows):
        yield Text(
            [without_picture(costs, measured_elsewhere=_measured_elsewhere(view))], lead=True
        )
        said = [row_reasons(row) for row in costs.rows] if costs is not None else []
        lacking = view.fingerprint.unavailable
        said += [stack_reason(one) for one in lacking[:_MOST_REASONS]]
        if len(lacking) > _MOST_REASONS:
            said.append(more_missing(len(lacking) - _MOST_REASONS))
        said += filter(None, [software_sentence(view)])
        if said:
            yield Text(said, quiet=True)
        return
    if not any(row.is_resolved(kind) for row in costs.rows for kind in row.marks):
        yield Text([ONLY_NOISY])
    yield Text(lead_sentences(costs), lead=True)
    drawn = rows_drawn(costs)
    read_as = caption(costs, [row for row in costs.rows if row not in drawn])
    yield Drawing(
        "headline",
        picture_title(costs),
        alternative(costs),
        read_as,
        partial(headline_figure, costs),
    )
    missing = missing_sentences(view, "on the page All cases")
    remarks = (*trust_sentences(costs), software_sentence(view), speed_sentence(view), missing)
    yield Text([*limit_sentences(costs), *filter(None, remarks)])


def _measured_elsewhere(view: View) -> bool:
    """Whether the run measured anything else than single dispatches."""
    costs = [record.value("complete") for target in view.executing for record in target.records]
    return bool(view.fingerprint.contention) or any(costs)


@register("to-do", "What to do here", 10)
def to_do(view: View) -> Iterator[Part]:
    """The findings as a list, those that save most first."""
    found = view.once(findings_of)
    if not found:
        yield Text([NO_SAVING])
        return
    said = [finding_words(finding) for finding in found]
    yield Listing([(one.title, one.detail) for one in said])
