"""What one dispatch costs through each stack: the sentences, title and caption of the picture."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.dispatch_costs import DispatchCosts, DispatchRow
from overhead.reading.plain_text import plain
from overhead.results import Fingerprint, MissingStack
from overhead.words.dispatch_costs import KIND_TITLES, mark_text, remarks, title
from overhead.words.format import MICRO, count, listed
from overhead.words.reasons import sentence

LIMIT_WORDS = {"device": "ring: device-bound", "balanced": "half ring: CPU or device, not clear"}
NO_SAVING = "No change was found here that makes a launch clearly cheaper (1.5 times, in some cases 1.2 times)."
_NOT_RESOLVED = "All costs of this run are too uncertain to show."
ONLY_NOISY = "All costs of this run are noisy. overhead doctor names what disturbs a measurement on this machine."
"""Above a picture of noisy costs."""


def without_picture(costs: DispatchCosts | None, *, measured_elsewhere: bool) -> str:
    """Why there is no picture: no cost is resolved, or no stack ran single dispatches (None)."""
    if costs is not None:
        return _NOT_RESOLVED
    if measured_elsewhere:
        return "This run has no single dispatches. The other pages show what was measured."
    return "No stack could be measured on this machine."


def row_reasons(row: DispatchRow) -> str:
    """Why the row has no cost."""
    return f"{row.label}: {remarks(row)}."


def stack_reason(missing: MissingStack) -> str:
    """Why a stack is missing."""
    return f"{plain(missing.stack, 32)}: {sentence(missing.reason)}"


def more_missing(number: int) -> str:
    """How many more stacks are missing, and where their reasons stand."""
    return f"{count(number, 'more missing stack')}: on the page All cases."


def picture_title(costs: DispatchCosts) -> str:
    """What the picture shows."""
    return f"{title(costs)}: cost of one more launch, {MICRO}"


def alternative(costs: DispatchCosts) -> str:
    """The finding of the picture, for screen readers: each row with its first cost."""
    rows = []
    for row in costs.rows:
        if row.marks:
            rows.append(f"{row.label} {mark_text(row.marks[row.first])} {KIND_TITLES[row.first]}")
    return f"{picture_title(costs)}, from the cheapest to the most expensive: {listed(rows)}."


def caption(costs: DispatchCosts, not_drawn: Sequence[DispatchRow]) -> str:
    """How to read the picture, and which rows only the table has."""
    said = ["All values are of one run" + _where(costs)]
    said += [
        "From compiled code: the same calls without Python (another operation, where the row says so).",
        "A line with ends is an interval. A thin line joins a batch to single dispatches by the same caller.",
    ]
    if costs.has_met:
        said.append(
            "A strip is the unpinned cost: the range over fresh processes that are not pinned to a processor, with the "
            "median."
        )
    if any(row.python for row in costs.rows):
        said.append(
            "CPU time is split where calls from Python and from compiled code were measured in turn in one process. "
            "The table of stacks has the times over all processes."
        )
    if not_drawn:
        said.append(f"The table of stacks also has {listed([row.label for row in not_drawn])}.")
    return " ".join(said)


def _where(costs: DispatchCosts) -> str:
    return " on one GPU." if costs.hardware else " without a GPU: software adapters and the CPU do the work."


AXIS_TITLE = f"Cost of one more launch, {MICRO}; sorted by cost from Python, else compiled code"
"""What the marks are, and how the rows of a group are sorted."""


def about(run: Fingerprint) -> str:
    """What a cost is, and of which run: below the picture, which may be shown without its page."""
    source = f"overhead, {run.profile} run of {run.created[:10]}, {plain(run.machine.cpu, 40)}."
    return f"The cost of one more dispatch in a chain; waiting is not included. {source}"
