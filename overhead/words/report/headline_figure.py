"""What one dispatch costs through each stack: the sentences, title and caption of the picture."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.dispatch_costs import DispatchCosts, DispatchRow, Kind
from overhead.reading.headline import has_unpinned_apart
from overhead.reading.plain_text import plain
from overhead.reading.typical_run import other_boards
from overhead.results import Fingerprint, MissingStack, Value, formed
from overhead.words.dispatch_costs import KIND_TITLES, device_name, remarks
from overhead.words.format import MICRO, costs_text, count, listed, number, percent
from overhead.words.reasons import sentence

LIMIT_WORDS = {
    "device": "ring: device-bound",
    "balanced": "half ring: CPU or device, not clear",
}
_NOT_RESOLVED = "All costs of this run are too uncertain to draw."
ONLY_NOISY = (
    "All costs of this run are noisy. overhead doctor names what disturbs a measurement on this"
    " machine."
)
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
    return f"The page All cases lists {count(number, 'more missing stack')}."


def picture_title(costs: DispatchCosts) -> str:
    """What the picture shows."""
    return f"Cost of one more launch on {device_name(costs)}, {MICRO}"


def alternative(costs: DispatchCosts) -> str:
    """The finding of the picture, for screen readers: each row with its first cost."""
    rows = []
    # ``marks``: by kind of caller the costs that are drawn, one or both of two speeds. ``first``:
    # the kind by which rows are sorted, calls from Python where there are any.
    for row in costs.rows:
        if row.marks:
            rows.append(f"{row.label} {costs_text(row.marks[row.first])} {KIND_TITLES[row.first]}")
    return f"{picture_title(costs)}, from the cheapest to the most expensive: {listed(rows)}."


def caption(costs: DispatchCosts, not_drawn: Sequence[DispatchRow]) -> str:
    """The text below the headline figure: how to read it, and which stacks it has no room for
    (``not_drawn``), so that only the table has them.
    """
    sentences = [f"All values are from one run{_where(costs)}"]
    sentences += _strips(costs, not_drawn)
    sentences.append(
        "From compiled code: the same calls from a C program. A line with ends: the interval of a"
        " cost. A thin line: from a batch to a single launch by the same caller."
    )
    if has_unpinned_apart(costs):
        sentences.append(
            "A tick: the median cost in processes that are not pinned to a CPU core, where it"
            " clearly differs."
        )
    # ``python``: the share of the CPU time of a call that Python takes, where it is known.
    if any(row.python for row in costs.rows):
        sentences.append(
            "A bar: the CPU time of a call from Python, and Python's share in per cent, where the"
            " run could split it."
        )
    if not_drawn:
        sentences.append(
            f"The table of stacks also has {listed([row.label for row in not_drawn])}."
        )
    return " ".join(sentences)


def _strips(costs: DispatchCosts, not_drawn: Sequence[DispatchRow]) -> list[str]:
    """What the strips are, and of how many boards; [] without one."""
    boards: set[str] = set()
    origins = []
    for row in costs.rows:
        if row in not_drawn:
            continue
        for kind in row.marks:
            record = row.records[kind]
            of_others = other_boards(costs.view, record)
            cost = record.measured("complete")
            if of_others is not None and cost is not None:
                boards |= of_others.costs_us.keys()
                origins.append(cost.origin)
    if not boards:
        return []
    others = count(len(boards), "other board", formed("boards", *origins))
    return [f"A strip: the same cost in published runs on up to {others} of this kind."]


def _where(costs: DispatchCosts) -> str:
    """The end of the sentence that says which run the values are from."""
    if costs.hardware:
        return " on one GPU."
    return " without a GPU: software adapters and the CPU do the work."


AXIS_TITLE = f"Cost of one more launch, {MICRO} (log scale)"
"""What the marks are."""
SHARES_TITLE = "CPU time from Python"
BAR = "bar"
CPU_TIME = "CPU time"
"""What a note names as divided between Python and the rest."""
HOLLOW = "hollow: noisy"
HOLLOW_NARROW = "hollow, in brackets: noisy"
"""The same in the narrow figure, whose columns of costs stand apart from their marks."""
TWO_SPEEDS = "two marks in one colour: two speeds"
OTHER_BOARDS = "strip: the same on other boards"
UNPINNED_TICK = "tick: unpinned cost"
"""What marks, strips and ticks mean, in the legend."""


def about(run: Fingerprint) -> str:
    """What a cost is, and of which run: below the picture, which may be shown without its page."""
    source = f"overhead, {run.profile} run of {run.created[:10]}, {plain(run.machine.cpu, 40)}."
    return (
        "The cost is the time that one more launch adds to a chain, without the wait at the end."
        f" {source}"
    )


COLUMN_TITLES: dict[Kind, str] = {
    "python": "Python",
    "compiled": "compiled",
    "browser": "browser",
    "batched": "batched",
}
"""Who calls, above a column of costs in the narrow figure."""


COLUMNS_TITLE = f"Cost, {MICRO}"


def stacked_costs_text(costs_us: Sequence[Value], *, is_noisy: bool) -> str:
    """``costs_text`` with a line for each of two speeds, for a narrow column; a noisy cost
    stands in brackets.
    """
    text = " or\n".join(number(cost) for cost in costs_us)
    return f"({text})" if is_noisy else text


def share_note(share: Value, cpu_time: Value) -> str:
    """The CPU time of a call from Python and Python's share of it."""
    return f"Python: {percent(share)} of {number(cpu_time)} {MICRO} of CPU time"


def part_of_bar(layer: str) -> str:
    """The entry of the legend for a part of a bar of CPU time."""
    return f"bar: {layer}"
