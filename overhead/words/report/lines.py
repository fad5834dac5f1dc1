"""T(n) behind a figure: how to read its panel, and what a case says of its own line."""

from __future__ import annotations

from overhead.results import Record
from overhead.words.format import MICRO, count, micro_spread
from overhead.words.reasons import sentence

QUARTILES_ONLY = "processes: only with the samples file"
"""In a panel whose dots are no medians of single processes."""
NO_FIGURE = "dashed: through the medians, no figure"
ONLY_WITH_SAMPLES = "Processes: only with the samples file."
LINES_READ_AS = (
    "A chain of n units is timed for several n. The cost of one unit is the slope of the line through these times. The "
    "flat part at the left is what a chain costs once. Both axes are logarithmic, so the line looks bent.",
    "Dots: medians of a process. Open diamonds: anchors, longer chains that test the line beyond the n it was fitted "
    "to. Below: how far each of them lies off the line, in percent of T(n), joined within a process. Grey band: the "
    "method's tolerance. A case is called nonlinear where most processes lie outside it by more than their own spread. "
    "An anchor may be off where the processor was slower at that moment; the check allows for that.",
    f'Where a panel says "{QUARTILES_ONLY}", its dots are medians of all processes with their quartiles.',
)


def more_in_doubt(number: int) -> str:
    """How many cases in doubt have no panel, and what draws them."""
    return f"{count(number, 'more case')} in doubt: overhead show FILE CASE --plot draws any case."


def alternative(record: Record) -> str:
    """The panel for screen readers."""
    return f"T(n) and residuals of a case that is {record.status}."


def caption(record: Record) -> str:
    """The status of a case, its cost, up to which n it was seen to hold, and the reason for its status."""
    complete = record.figure("complete")
    value = f"{micro_spread(complete)} {MICRO} per {record.unit}" if record.measured("complete") else ""
    begins = f"from n = {complete.holds_from:,} " if complete and complete.holds_from > 1 else ""
    held = f"a line {begins}up to n = {complete.holds_to:,}" if complete and complete.holds_to else ""
    return f"{record.status}: {'; '.join(filter(None, [value, held, sentence(record.reason)]))}."


def beyond_axis(number: int, percent: float) -> str:
    """How many residuals lie beyond the axis, which ends at this percent; '' for none."""
    return f"{number} beyond ±{percent:.0f} %" if number else ""
