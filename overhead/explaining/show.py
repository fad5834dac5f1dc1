"""An explained step as blocks, for the terminal and for its page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from overhead.blocks.parts import InMicroseconds, Part, Table, Text
from overhead.explaining.record import NOT_IN_A_TRACE, NOT_MEASURED_MET, Alternative, Explanation
from overhead.explaining.verdict import resolved_times
from overhead.reading.plain_text import plain
from overhead.results import Figure, codes_of
from overhead.traces.trace import CallSite
from overhead.words.explaining.alternatives import (
    KIND_LABELS,
    SPEED,
    SPEED_MEANS,
    alternative_name,
    remark,
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
_COUNTS = {
    "launches": ("launch", "launches"),
    "copies": ("copy", "copies"),
    "fills": ("fill", "fills"),
    "allocations": ("allocation", "allocations"),
    "driver_allocations": ("allocation by the driver", "allocations by the driver"),
    "synchronisations": ("synchronisation", "synchronisations"),
}
"""The counts of a step, each with its name for one and for several."""
_ONLY_IF_ANY = ("fills", "driver_allocations")
"""Counts that are not shown as 0."""


def explanation_blocks(found: Explanation) -> Iterator[Part]:
    """What a terminal shows of the step."""
    on = device_of(found)
    yield Text([heading(found.program.function, found.program.file, on)], lead=True)
    if taken := taken_as_step(found.program):
        yield Text([taken])
    for part in (
        verdict_blocks,
        rank_blocks,
        alternative_blocks,
        condition_blocks,
        synchronisation_blocks,
        operation_blocks,
    ):
        yield from part(found)
    yield Text([sentence(why) for why in found.not_seen], quiet=True)


def verdict_blocks(found: Explanation) -> Iterator[Part]:
    """The verdict in words, the times of a step, and the calls that it makes."""
    first, *more = verdict_sentences(found)
    yield Text([first], lead=True)
    if more:
        yield Text(more)
    told = [row for row in _times_of(found) if _is_told(row, found)]
    rows = [[row.name, row.text(row.time), _time_remark(row)] for row in told]
    if found.replay.ratio is not None:
        rows[-1][2] = replay_remark(found.replay)
    yield Table("The times of a step", ["each step", MICRO, "remark"], rows, numeric=(1,))
    said = []
    for name, (one, many) in _COUNTS.items():
        figure = getattr(found.per_step, name)
        if (
            figure is None
            or not figure.measured
            or (name in _ONLY_IF_ANY and not (figure.high or figure.value))
        ):
            continue
        said.append(f"{_count(figure)} {one if figure.value == 1 else many}")
    if said:
        yield Text([f"Each step: {', '.join(said)}."])


@dataclass(frozen=True)
class _TimeRow:
    """A time of a step. ``from_running``: it needs the program, which a trace has not. ``remark``:
    where it is known.

    ``may_lack``: an older file has it without a value.
    """

    name: str
    time: Figure
    text: Callable[[Figure], str]
    from_running: bool = False
    may_lack: bool = False
    remark: str = ""


def _times_of(found: Explanation) -> list[_TimeRow]:
    """The times of a step; the last one is that of the replay."""
    step = found.step
    quoted = QUOTE_THIS if resolved_times(step.wall) else ""
    return [
        _TimeRow(
            "a step with its work done", step.wall, time_text, from_running=True, remark=quoted
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
        _TimeRow("device time", step.busy, micro_or_why),
        _TimeRow("as the profile explains it", found.replay.replayed, replayed_text),
    ]


def _is_told(row: _TimeRow, found: Explanation) -> bool:
    """Whether a time was looked for. An older file has a text in place of the code that says so."""
    if row.time.status != "unavailable":
        return True
    if isinstance(row.time.reason, str):
        return not (row.may_lack or (row.from_running and found.is_of_a_trace))
    return codes_of(row.time.reason).isdisjoint({NOT_IN_A_TRACE.code, NOT_MEASURED_MET.code})


def _time_remark(row: _TimeRow) -> str:
    if row.remark and row.time.measured:
        return row.remark
    return "" if row.time.measured and resolved_times(row.time) else sentence(row.time.reason)


def rank_blocks(found: Explanation) -> Iterator[Part]:
    """The ranks of a program beside each other: who waits for whom."""
    rows = [
        [
            plain(row.rank, 30),
            *map(micro_of, (row.step_ns, row.host_ns, row.device_ns, row.waits_ns)),
            percent(row.last_share),
        ]
        for row in found.ranks
    ]
    if rows:
        columns = [
            "rank",
            InMicroseconds("step"),
            "CPU works",
            "device computes",
            "waits for others",
            "others wait for it",
        ]
        _, step, host, device, waits, makes_wait = range(6)
        yield Table(
            "The ranks, and their waits in collectives",
            columns,
            rows,
            numeric=(step, host, device, waits, makes_wait),
            optional=(device, host, step),
        )


def alternative_blocks(found: Explanation) -> Iterator[Part]:
    """What was tried in place of the step, the surest gain first."""
    tried = [one for one in found.alternatives if one.kind != "condition"]
    rows = [
        [
            alternative_name(one) + KIND_LABELS[one.kind],
            *_times_cells(one),
            remark(one),
            f"{one.making.value / 1e9:,.2g} s" if one.making.value is not None else "",
            f"{value:,.0f} steps" if (value := one.repaid_after.value) is not None else "",
        ]
        for one in sorted(tried, key=lambda one: -(one.gain.low or 0.0))
    ]
    columns = [
        "what would change it",
        SPEED,
        InMicroseconds("step"),
        "remark",
        "making it",
        "pays off after",
    ]
    if rows:
        _, speed, step, _, making, pays_off = range(6)
        numeric, optional = (speed, step, making, pays_off), ((making, pays_off), step)
        meanings = {speed: SPEED_MEANS} if any(row[speed] for row in rows) else {}
        table = Table(
            "What was tried", columns, rows, numeric=numeric, optional=optional, meanings=meanings
        )
        yield table.without_empty()


def condition_blocks(found: Explanation) -> Iterator[Part]:
    """The step as the host runs it, and under other conditions on the host, in turn in one
    process.
    """
    tried = [one for one in found.alternatives if one.kind == "condition"]
    rows = [[alternative_name(one), *_times_cells(one), sentence(one.reason)] for one in tried]
    columns = ["the step in one process", SPEED, InMicroseconds("step"), "remark"]
    if rows:
        _, speed, step, _ = range(4)
        table = Table(
            "Under other conditions", columns, rows, numeric=(speed, step), optional=(step,)
        )
        yield table.without_empty(2)


def _times_cells(one: Alternative) -> list[str]:
    """The gain, if the times are known, and the time of a step."""
    gain = one.gain.measured
    known = gain is not None and resolved_times(one.step)
    return [factor_spread(gain) if known else "", time_text(one.step) if one.step.measured else ""]


def synchronisation_blocks(found: Explanation) -> Iterator[Part]:
    """The calls that wait for the device; for how long, where the profile can tell."""
    known = found.replay.ok
    rows = [
        [
            plain(sentence(one.what), 60),
            _where(one.site),
            f"{one.count:,.4g}",
            micro_of(one.blocked_ns) if known else "",
        ]
        for one in found.synchronisations
    ]
    if rows:
        columns = ["synchronisation", "line", "calls", InMicroseconds("waits")]
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


def operation_blocks(found: Explanation) -> Iterator[Part]:
    """What takes the CPU time; a sentence in its place where the profile cannot tell."""
    whole = sum(row.host_ns for row in found.operations) or 1.0
    rows = [
        [
            plain(operation_name(row.name), 60),
            _where(row.site),
            f"{row.count:,.4g}",
            micro_of(row.host_ns),
            percent(row.host_ns / whole),
            micro_of(row.device_ns) if row.device_ns else "",
        ]
        for row in found.operations
    ]
    if rows and not found.replay.ok:
        yield Text([UNRANKED])
    elif rows:
        columns = [
            "operation",
            "line",
            "calls",
            InMicroseconds("CPU time"),
            "share",
            InMicroseconds("device"),
        ]
        _, _, calls, host, share, device = range(6)
        yield Table(
            "Operations by CPU time",
            columns,
            rows,
            numeric=(calls, host, share, device),
            sortable=True,
            optional=(device, calls, share),
            most=_MOST_ROWS,
        ).without_empty()


def _count(figure: Figure) -> str:
    low, high = figure.low, figure.high
    span = (
        f" ({low:,.0f} to {high:,.0f})"
        if low is not None and high is not None and low != high
        else ""
    )
    return f"{figure.value:,.4g}{span}"


def _where(site: CallSite) -> str:
    return (
        f"{site.line}, in {site.inside}" if site.line and site.inside else site.line or site.inside
    )
