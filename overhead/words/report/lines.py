"""T(n) behind a figure: how to read its panel, and what a case says of its own line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from overhead.results import Figure, Record, Status, codes_of
from overhead.words.format import MICRO, count, listed, micro_spread
from overhead.words.printed import of_the_method
from overhead.words.reasons import sentence

QUARTILES_ONLY = "medians of all processes"
"""In a panel whose dots are no medians of single processes."""
NO_FIGURE = "dashed: a line through the medians; no cost can be stated"
NOTHING_TIMED = "no chain of this case was timed"
"""In a panel without any dot."""
ONLY_WITH_SAMPLES = (
    "The times of single processes are not drawn: they are in the samples file, which is missing"
    " beside this file."
)
LINES_READ_AS = (
    (
        "A chain of n dispatches, launches or calls is timed for several n. T(n) is the time of the"
        " chain. The cost is what one more of them adds to T(n). The flat part at the left is the"
        " one-off cost. Both axes are logarithmic, so a straight line looks bent."
    ),
    (
        "Each dot is the median of one process. Each cross is a longer chain, which tests whether"
        " long chains have the same cost. The lower panel shows the distance from the line, in % of"
        " T(n), with one thin line for each process. The grey area is the distance from the line"
        " that the method accepts. A case is called nonlinear if most processes lie outside of the"
        " grey area by more than the processes vary. A cross can lie outside because the CPU was"
        " slower at that moment; the check takes that into account."
    ),
    f'Where a panel says "{QUARTILES_ONLY}", a vertical line shows the quartiles of the processes.',
    "A dashed line goes through the medians: no cost can be stated for this case.",
)


NO_INTERVAL = "no cost with an interval"
HOW_TO_READ_PANELS = "How to read the panels of T(n)"
PRECISION_TITLE = "How precise each cost is"
PRECISION_AXIS = "half of the interval, in % of the cost"
PRECISION_CAPTION = (
    "A mark per case: half of the 95 % interval of its cost, in % of the cost. Dashed line: the"
    " profile of the run wants no more. Hollow: not ok. A hollow mark left of the dashed line"
    " has another reason, such as a cost that was not seen to hold for long chains. A case without"
    " a mark has no cost with an interval. The axis is logarithmic."
)
WIDEST_CASES = "The noisy cases with the widest intervals"
_WHY_NOISY = {
    "too-wide": "the interval is too wide",
    "too-wide-beside-zero": "the interval is too wide",
    "two-speeds": "the cost has two speeds",
    "two-long-speeds": "the cost has two speeds",
    "two-speeds-one-long": "the cost has two speeds",
    "drifts-in-rounds": "the cost changes within a process",
    "drifts-after-rounds": "the cost changes within a process",
    "not-checked-beyond": "the cost was not seen to hold for long chains",
    "slow-samples-are-work": "slow samples add to the cost",
}
"""Why a case is noisy, by the code of its reason. Of several the first in this order is named."""
_OTHER_REASON = "another reason"


def sure_cases(statuses: Mapping[Status, int], precision: float) -> str:
    """How many cases are ``ok``, and how many are not. ``statuses``: the number of cases with each;
    ``precision``: the half-width that the run wants, as a share.
    """
    total = sum(statuses.values())
    others = [f"{number:,} {status}" for status, number in statuses.items() if status != "ok"]
    doubts = f" The others: {listed(others)}." if others else ""
    wanted = of_the_method(f"{100 * precision:.0f} %")
    return (
        f"{statuses.get('ok', 0):,} of {count(total, 'case')} are ok: fresh processes put the cost"
        f" within \u00b1{wanted}, and long chains have the same cost.{doubts}"
    )


def why_noisy(records: Sequence[Record]) -> str:
    """Why the noisy cases are noisy; '' for none."""
    numbers = Counter(_cause(record) for record in records)
    causes = [f"{cause} ({number:,})" for cause, number in numbers.most_common()]
    return f"Why a case is noisy: {listed(causes)}." if causes else ""


def _cause(record: Record) -> str:
    """Why this case is noisy."""
    codes = codes_of(record.reason)
    for code, cause in _WHY_NOISY.items():
        if code in codes:
            return cause
    return _OTHER_REASON


def at_end(statuses: Mapping[Status, int]) -> str:
    """How many cases of a stack are ``ok``, noisy and so on: ``3 of 6 ok, 3 noisy``."""
    total = sum(statuses.values())
    texts = [f"{statuses.get('ok', 0):,} of {total:,} ok"]
    texts += [f"{number:,} {status}" for status, number in statuses.items() if status != "ok"]
    return ", ".join(texts)


def more_in_doubt(number: int) -> str:
    """How many cases in doubt have no panel, and what draws them."""
    return (
        f"{count(number, 'more case')} in doubt. To draw any case: overhead show FILE CASE --plot."
    )


def alternative(record: Record) -> str:
    """The panel for screen readers."""
    return f"T(n) of a case that is {record.status}, and its distance from the line."


def caption(record: Record) -> str:
    """The text below the panel of a case: its status, its cost, for which n (launches in a row)
    that was seen to hold, and the reason for the status.
    """
    complete = record.figure("complete")  # the cost of one more launch with its work done
    texts = []
    if complete is not None and complete.measured is not None:
        texts.append(f"{micro_spread(complete)} {MICRO} for each {record.unit}")
    # ``holds_to``: the largest such n; 0 where that was not looked at.
    if complete is not None and complete.holds_to:
        texts.append(_held(complete))
    texts.append(sentence(record.reason))
    return f"{record.status}: {'; '.join(filter(None, texts))}."


def _held(figure: Figure) -> str:
    """Between which n the times were seen to lie on the figure's line."""
    if figure.holds_from > 1:
        return f"holds from n = {figure.holds_from:,} up to n = {figure.holds_to:,}"
    return f"holds up to n = {figure.holds_to:,}"


def beyond_axis(number: int, percent: float) -> str:
    """How many residuals lie beyond the axis, which ends at this percent; '' for none."""
    return f"{number} more dots are beyond ±{percent:.0f} %" if number else ""
