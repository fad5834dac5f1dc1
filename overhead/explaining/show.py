"""An explained step as blocks, for the terminal and for its page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from overhead.blocks.parts import InMicroseconds, Part, Table, Text
from overhead.explaining.record import NOT_IN_A_TRACE, NOT_MEASURED_MET, Alternative, Explanation
from overhead.explaining.steps import steps_reasons
from overhead.explaining.verdict import resolved_times
from overhead.reading.plain_text import plain
from overhead.results import Figure, code_of, codes_of
from overhead.traces.trace import CallSite
from overhead.words.explaining.alternatives import (
    KIND_LABELS,
    SPEED,
    SPEED_MEANS,
    alternative_name,
    remark,
)
from overhead.words.explaining.device_time import (
    DEVICE_TIME_CAPTION,
    device_time_columns,
    device_time_meanings,
    device_time_name,
)
from overhead.words.explaining.step import (
    UNRANKED,
    device_of,
    heading,
    operation_name,
    taken_as_step,
)
from overhead.words.explaining.times import (
    QUOTE_THIS,
    device_text,
    given_text,
    mean_text,
    replay_remark,
    replayed_text,
    time_text,
)
from overhead.words.explaining.verdict import verdict_sentences
from overhead.words.format import (
    MICRO,
    factor_spread,
    micro_of,
    micro_or_why,
    percent,
)
from overhead.words.reasons import sentence

_MOST_ROWS = 5
_MOST_TRACKS = 16
"""Most devices and streams that a terminal shows: a host has at most 8 or 16 devices. Chosen, not
measured.
"""
_MOST_TEXT = 60
"""Longer names of the program are cut in a cell. Chosen, not measured."""


class _CountNames(NamedTuple):
    """The words for one and for several of what is counted."""

    one: str
    several: str


_COUNTS = {
    "launches": _CountNames("launch", "launches"),
    "copies": _CountNames("copy", "copies"),
    "fills": _CountNames("fill", "fills"),
    "allocations": _CountNames("allocation", "allocations"),
    "driver_allocations": _CountNames("allocation by the driver", "allocations by the driver"),
    "synchronisations": _CountNames("synchronisation", "synchronisations"),
}
"""The counts of a step in ``StepCounts``, in the order in which they are named."""
_ONLY_IF_ANY = ("fills", "driver_allocations")
"""Counts that are not shown as 0."""


def explanation_blocks(explanation: Explanation) -> Iterator[Part]:
    """What a terminal shows of an explained step, in order, as texts and tables. A table about
    which nothing is known is left out.
    """
    program = explanation.program
    yield Text([heading(program.function, program.file, device_of(explanation))], lead=True)
    taken = taken_as_step(program)
    if taken:
        yield Text([taken])
    yield from steps_blocks(explanation)
    yield from verdict_blocks(explanation)
    yield from device_time_blocks(explanation)
    yield from rank_blocks(explanation)
    yield from alternative_blocks(explanation)
    yield from condition_blocks(explanation)
    yield from synchronisation_blocks(explanation)
    yield from operation_blocks(explanation)
    yield Text([sentence(why) for why in explanation.not_seen], quiet=True)


def steps_blocks(explanation: Explanation) -> Iterator[Part]:
    """What of a trace was taken as its steps; nothing for a step that was run."""
    if explanation.steps_taken is not None:
        said = [sentence(reason) for reason in steps_reasons(explanation.steps_taken)]
        yield Text([" ".join(said)])


def verdict_blocks(explanation: Explanation) -> Iterator[Part]:
    """The verdict, what bounds the step, in words; the table of its times; and how many launches
    and other calls it makes.
    """
    first, *more = verdict_sentences(explanation)
    yield Text([first], lead=True)
    if more:
        yield Text(more)
    shown = [row for row in _times_of(explanation) if _was_looked_for(row, explanation)]
    # ``text``: a function that makes the text of the time.
    rows = [[row.name, row.text(row.time), _time_remark(row)] for row in shown]
    # The last row is the step as computed from the profile; it is compared with the measured one.
    if explanation.replay.ratio is not None:
        row_of_replay = rows[-1]
        row_of_replay[2] = replay_remark(explanation.replay)
    # ``numeric``: the columns of numbers, by index from 0.
    yield Table("The times of a step", ["each step", MICRO, "remark"], rows, numeric=(1,))
    counts = _counts_of(explanation)
    if counts:
        yield Text([f"Each step: {', '.join(counts)}."])


def _counts_of(explanation: Explanation) -> list[str]:
    """How many calls of each kind a step makes, in words: ``3 launches``. A kind that was not
    counted is left out.
    """
    texts = []
    for name, words in _COUNTS.items():
        # None: an older file did not count this kind apart.
        figure: Figure | None = getattr(explanation.per_step, name)
        if figure is None or not figure.measured:
            continue
        has_any = figure.high or figure.value  # in some step, or as the median
        # Fills and allocations by the driver, which most steps lack, are not shown as 0.
        if name in _ONLY_IF_ANY and not has_any:
            continue
        what = words.one if figure.value == 1 else words.several
        texts.append(f"{_count(figure)} {what}")
    return texts


@dataclass(frozen=True)
class _TimeRow:
    """A row of the table of times. ``text``: makes the text of the time. ``from_running``: the time
    needs the program, which a trace has not. ``may_lack``: an older file has it without a value.
    ``remark``: what is said beside a time that is known.
    """

    name: str
    time: Figure
    text: Callable[[Figure], str]
    from_running: bool = False
    may_lack: bool = False
    remark: str = ""


def _times_of(explanation: Explanation) -> list[_TimeRow]:
    """All rows of the table of times; the last one is the time of the replay, of a step as it is
    computed from the profile.
    """
    step = explanation.step
    # The main time is the one to quote, unless its interval is too wide.
    remark_of_main = QUOTE_THIS if resolved_times(step.wall) else ""
    text_of_main = time_text
    if code_of(step.wall.rule) == "given-by-step-ms":  # nothing was measured
        remark_of_main = sentence(step.wall.rule)
        text_of_main = given_text
    return [
        # ``from_running``: only running the program tells this time, a trace does not.
        # ``may_lack``: an older file has the row without a value.
        _TimeRow(
            "a step with its work done",
            step.wall,
            text_of_main,
            from_running=True,
            remark=remark_of_main,
        ),
        _TimeRow(
            "the same, unpinned",
            step.met,
            micro_or_why,
            from_running=True,
            may_lack=True,
            remark="median and range of fresh processes; no step is left out",
        ),
        _TimeRow(
            "the mean of all measured steps",
            step.everything,
            mean_text,
            from_running=True,
            may_lack=True,
        ),
        _TimeRow("until the step returns (enqueue time)", step.issue, time_text, from_running=True),
        _TimeRow("device time", step.busy, device_text),
        _TimeRow("rebuilt from the profile", explanation.replay.replayed, replayed_text),
    ]


def _was_looked_for(row: _TimeRow, explanation: Explanation) -> bool:
    """Whether the table shows a time: the run looked for it, even if it found none. A trace and an
    older version do not look for all of them; the code of the reason says so.
    """
    if row.time.status != "unavailable":
        return True
    # Older files have the reason as a text without a code. There, the kind of the row decides.
    if isinstance(row.time.reason, str):
        not_in_trace = row.from_running and explanation.is_of_a_trace
        return not row.may_lack and not not_in_trace
    return codes_of(row.time.reason).isdisjoint({NOT_IN_A_TRACE.code, NOT_MEASURED_MET.code})


def _time_remark(row: _TimeRow) -> str:
    """The remark beside a time: what is known of it, or why it is not told."""
    if row.remark and row.time.measured:
        return row.remark
    if row.time.measured and resolved_times(row.time):
        return ""
    return sentence(row.time.reason)


def rank_blocks(explanation: Explanation) -> Iterator[Part]:
    """The table of the ranks (processes) of a program beside each other: how long each works, and
    who waits for whom. None for a step of one process.
    """
    if not explanation.ranks:
        return
    rows = []
    for row in explanation.ranks:
        cells = [
            # A name from a file: without control characters, and cut.
            plain(row.rank, 30),
            micro_of(row.step_ns),
            micro_of(row.host_ns),
            micro_of(row.device_ns),
            micro_of(row.waits_ns),
            percent(row.last_share),
        ]
        rows.append(cells)
    columns = [
        "rank",
        # A heading with the unit of its column.
        InMicroseconds("step"),
        "CPU works",
        "device computes",
        "waits for others",
        "others wait for it",
    ]
    # The columns by their numbers. The optional ones are left out where space is short.
    _, step, host, device, waits, makes_wait = range(6)
    yield Table(
        "The ranks, and their waits in collectives",
        columns,
        rows,
        numeric=(step, host, device, waits, makes_wait),
        optional=(device, host, step),
    )


def device_time_blocks(explanation: Explanation) -> Iterator[Part]:
    """The table of where the time of each device goes in a mean step of a trace, with a row for
    each stream of a device that has several. None for a step that was not read from a trace.
    """
    if not explanation.device_time:
        return
    rows = []
    for row in explanation.device_time:
        # Of the parts of a stream, as of a device, one that is 0 in all rows has no column.
        waiting_ns = row.waiting_ns or 0.0
        cells = [
            device_time_name(plain(row.device, 30), plain(row.stream, 30)),
            _micro_if_any(row.compute_ns) if row.stream else micro_of(row.compute_ns),
            _micro_if_any(row.collective_ns),
            _micro_if_any(waiting_ns),
            _micro_if_any(row.copy_ns),
            _micro_if_any(row.fill_ns),
            micro_of(row.idle_ns),
            percent(row.idle_ns / row.step_ns),
            _micro_if_any(row.collective_overlapped_ns),
        ]
        rows.append(cells)
    # The columns by their numbers. The optional ones are left out where space is short.
    _, compute, collectives, waiting, copies, fills, idle, share, overlapped = range(9)
    waits_known = explanation.device_time[0].waiting_ns is not None
    table = Table(
        DEVICE_TIME_CAPTION,
        device_time_columns(waits_known=waits_known),
        rows,
        numeric=(compute, collectives, waiting, copies, fills, idle, share, overlapped),
        optional=(fills, overlapped, copies, idle, compute),
        meanings=device_time_meanings(waits_known=waits_known, collectives=collectives),
        most=_MOST_TRACKS,
    )
    yield table.without_empty()


def _micro_if_any(ns: float) -> str:
    """A time; '' for none."""
    return micro_of(ns) if ns else ""


def alternative_blocks(explanation: Explanation) -> Iterator[Part]:
    """The table of what was tried in place of the step, such as a CUDA graph: how many times as
    fast each is, its time, and after how many steps it pays off. The surest gain, whose interval
    begins highest, comes first.
    """
    # Conditions on the host have a table of their own (``condition_blocks``).
    tried = [each for each in explanation.alternatives if each.kind != "condition"]
    if not tried:
        return
    tried.sort(key=lambda alternative: -(alternative.gain.low or 0.0))
    rows = []
    for alternative in tried:
        # ``making``: how long it takes to make it, as to compile; ``repaid_after``: after so many
        # steps it has saved that time.
        making_ns = alternative.making.value
        repaid_after = alternative.repaid_after.value
        cells = [
            # The label of a bound is "(at most)", and that of a prediction "(predicted)".
            alternative_name(alternative) + KIND_LABELS[alternative.kind],
            _gain_cell(alternative),
            _step_cell(alternative),
            remark(alternative),
            f"{making_ns / 1e9:,.2g} s" if making_ns is not None else "",
            f"{repaid_after:,.0f} steps" if repaid_after is not None else "",
        ]
        rows.append(cells)
    columns = [
        "what would change it",
        SPEED,
        InMicroseconds("step"),
        "remark",
        "making it",
        "pays off after",
    ]
    # The columns by their numbers. The optional ones are left out where space is short, those of an
    # inner tuple together.
    _, speed, step, _, making, pays_off = range(6)
    has_gains = any(row[speed] for row in rows)
    table = Table(
        "What was tried",
        columns,
        rows,
        numeric=(speed, step, making, pays_off),
        optional=((making, pays_off), step),
        meanings={speed: SPEED_MEANS} if has_gains else {},
    )
    yield table.without_empty()


def condition_blocks(explanation: Explanation) -> Iterator[Part]:
    """The table of the step as the host runs it, and under other conditions on the host, such as
    without garbage collection: how many times as fast it is, and its time. These are stored as
    alternatives of the kind "condition".
    """
    rows = []
    for alternative in explanation.alternatives:
        if alternative.kind == "condition":
            name = alternative_name(alternative)
            why = sentence(alternative.reason)
            rows.append([name, _gain_cell(alternative), _step_cell(alternative), why])
    if not rows:
        return
    columns = ["the step in one process", SPEED, InMicroseconds("step"), "remark"]
    # The columns by their numbers. The optional one is left out where space is short.
    _, speed, step, _ = range(4)
    table = Table("Under other conditions", columns, rows, numeric=(speed, step), optional=(step,))
    # The first two columns stay even if they are empty.
    yield table.without_empty(2)


def _gain_cell(alternative: Alternative) -> str:
    """The gain of an alternative, if its times are known; else ''."""
    gain = alternative.gain.measured
    if gain is None or not resolved_times(alternative.step):
        return ""
    return factor_spread(gain)


def _step_cell(alternative: Alternative) -> str:
    """The time of a step of an alternative; '' if it was not measured."""
    return time_text(alternative.step) if alternative.step.measured else ""


def synchronisation_blocks(explanation: Explanation) -> Iterator[Part]:
    """The table of the calls that wait for the device, with the line of the program: how often a
    step makes each, and how long it waits.
    """
    if not explanation.synchronisations:
        return
    # If the profile does not explain the time of the step, its times are not shown, but its counts.
    times_are_right = explanation.replay.ok
    rows = []
    for row in explanation.synchronisations:
        cells = [
            plain(sentence(row.what), _MOST_TEXT),
            _where(row.site),
            f"{row.count:,.4g}",
            micro_of(row.blocked_ns) if times_are_right else "",
        ]
        rows.append(cells)
    columns = ["synchronisation", "line", "calls", InMicroseconds("waits")]
    # The columns by their numbers. The optional one is left out where space is short.
    _, _, calls, waits = range(4)
    table = Table(
        "Calls that wait for the device, by line",
        columns,
        rows,
        numeric=(calls, waits),
        optional=(calls,),
        most=_MOST_ROWS,
    )
    yield table.without_empty()


def operation_blocks(explanation: Explanation) -> Iterator[Part]:
    """The table of what takes the CPU time of a step: operations of the library, by line of the
    program. A sentence stands in its place if the profile does not explain the time of the step.
    """
    if not explanation.operations:
        return
    if not explanation.replay.ok:
        yield Text([UNRANKED])
        return

    # Of a trace without operations and ranges, the table shows the calls of the runtime.
    shown = explanation.calls or explanation.operations
    what = "call" if explanation.calls else "operation"
    # ``or 1.0``: no division by 0 where no row has host work.
    whole_ns = sum(row.host_ns for row in explanation.operations) or 1.0
    # Calls of several threads may take longer together than the host works.
    whole_ns = max(whole_ns, sum(row.host_ns for row in explanation.calls))
    rows = []
    for row in shown:
        cells = [
            plain(operation_name(row.name), _MOST_TEXT),
            _where(row.site),
            f"{row.count:,.4g}",
            micro_of(row.host_ns),
            percent(row.host_ns / whole_ns),
            micro_of(row.device_ns) if row.device_ns else "",
        ]
        rows.append(cells)
    columns = [
        what,
        "line",
        "calls",
        InMicroseconds("CPU time"),
        "share",
        InMicroseconds("device"),
    ]
    # The columns by their numbers. The optional ones are left out where space is short.
    _, _, calls, host, share, device = range(6)
    table = Table(
        "Runtime calls by CPU time" if explanation.calls else "Operations by CPU time",
        columns,
        rows,
        numeric=(calls, host, share, device),
        sortable=True,
        optional=(device, calls, share),
        most=_MOST_ROWS,
    )
    yield table.without_empty()


def _count(figure: Figure) -> str:
    """A count, and the fewest and the most of the profiled steps where they differ."""
    low = figure.low
    high = figure.high
    if low is None or high is None or low == high:
        return f"{figure.value:,.4g}"
    return f"{figure.value:,.4g} ({low:,.0f} to {high:,.0f})"


def _where(site: CallSite) -> str:
    """The line of the program, and that of the library below it, as far as they are known."""
    if site.line and site.inside:
        return f"{site.line}, in {site.inside}"
    return site.line or site.inside
