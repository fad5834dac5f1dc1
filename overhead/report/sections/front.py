"""A section of the front page: the picture of what one dispatch costs through each stack."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Drawing, Part, Text
from overhead.reading.dispatch_costs import DispatchCosts, DispatchRow, dispatch_costs
from overhead.reading.headline import further_stacks
from overhead.reading.view import View
from overhead.report.core.headline_figure import headline_figure, rows_drawn
from overhead.report.core.headline_narrow import narrow_headline_figure
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.words.headline import (
    answer_sentences,
    further_stacks_sentences,
    limit_sentences,
    trust_sentences,
)
from overhead.words.report.headline_figure import (
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


@register_across("headline", "What one kernel launch costs", 5, page="front", gpu=True)
def headline(machines: Machines) -> Iterator[Part]:
    """The first section of the first page, what one launch costs: the headline figure between
    sentences. Where the run has no cost to draw, the reasons.
    """
    view = machines.own
    costs = view.once(dispatch_costs)
    # A mark is a cost with its interval; a row, one stack, may have none.
    if costs is None or not any(row.marks for row in costs.rows):
        yield from without_costs(view, costs)
        return
    # All marks hollow: a sentence says first that every cost is uncertain.
    if not any(_has_solid_mark(row) for row in costs.rows):
        yield Text([ONLY_NOISY])
    answer = answer_sentences(costs, is_chosen=machines.is_chosen)
    yield Text(answer[:1], lead=True)
    if len(answer) > 1:
        yield Text(answer[1:])
    drawn = rows_drawn(costs)
    not_drawn = [row for row in costs.rows if row not in drawn]
    yield Drawing(
        name="headline",
        title=picture_title(costs),
        alt=alternative(costs),
        caption=caption(costs, not_drawn),
        draw=partial(headline_figure, costs),
        draw_narrow=partial(narrow_headline_figure, costs),
    )
    missing = missing_sentences(view, "on the page All cases")
    # How far to trust the costs, and warnings, each '' where nothing is to be said.
    remarks = [
        " ".join(limit_sentences(costs)),
        *trust_sentences(costs),
        *further_stacks_sentences(further_stacks(costs, machines.others)),
        software_sentence(view),
        speed_sentence(view),
        missing,
    ]
    said = [remark for remark in remarks if remark]
    if said:
        yield Text(said)


def _has_solid_mark(row: DispatchRow) -> bool:
    """Whether a cost of the row is resolved; others have hollow marks."""
    return any(row.is_resolved(kind) for kind in row.marks)


def without_costs(view: View, costs: DispatchCosts | None) -> Iterator[Part]:
    """Why the first page has no picture: a sentence, and below it the reason of each stack that was
    measured without a cost (``costs``) and of each stack that is missing.
    """
    elsewhere = _measured_elsewhere(view)
    yield Text([without_picture(costs, measured_elsewhere=elsewhere)], lead=True)

    # First stacks that were measured without a cost, then those that are missing.
    reasons = []
    if costs is not None:
        reasons += [row_reasons(row) for row in costs.rows]
    missing = view.fingerprint.unavailable
    reasons += [stack_reason(stack) for stack in missing[:_MOST_REASONS]]
    if len(missing) > _MOST_REASONS:
        reasons.append(more_missing(len(missing) - _MOST_REASONS))
    software = software_sentence(view)
    if software:
        reasons.append(software)
    if reasons:
        yield Text(reasons, quiet=True)


def _measured_elsewhere(view: View) -> bool:
    """Whether the run measured anything other than single dispatches, which another page then
    shows: processes that share a GPU (contention), or a case with a cost.
    """
    if view.fingerprint.contention:
        return True
    # ``executing``: the targets that run the work they get; ``complete``: the cost of a unit.
    for target in view.executing:
        if any(record.value("complete") for record in target.records):
            return True
    return False
