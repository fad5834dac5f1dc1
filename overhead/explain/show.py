"""An explained step as blocks, for the terminal and for its page; the times of one call, or of several in turn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from overhead.blocks.parts import Heading, Part, Table, Text
from overhead.explain.record import KIND_LABELS, NOT_IN_A_TRACE, NOT_MEASURED_MET, Alternative, CallSite, Explanation
from overhead.explain.timing import CallRatio, CallTiming, Timing
from overhead.explain.verdict import UNRANKED, resolved_times, time_text, verdict_sentences
from overhead.explain.waits import NOTHING
from overhead.reading.dispatch_costs import met_range
from overhead.reading.format import (
    MICRO,
    TIMES,
    between,
    factor,
    factor_spread,
    listed,
    micro_of,
    micro_or_why,
    micro_spread,
    percent,
    plain,
    positive_spread,
    spread,
)
from overhead.reading.next_run import range_text
from overhead.results import Figure, Why
from overhead.words.reasons import sentence

AS_IT_RUNS = "the same, as the operating system runs it"
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
_WORDS = {
    "complete": "one more call with its work done, on an undisturbed processor",
    "met": "the same where the operating system chooses the processor: median and range of fresh processes",
    "issue": "the part of it until the call returns",
    "device": "the time that the device is busy with it",
    "fixed": "what any number of calls pays once, such as the wait",
    "naive": "a single call and its wait, timed as most benchmarks do",
}
_OPTIONAL = {"naive": 2, "fixed": 3, "issue": 4}
"""What a narrow terminal leaves out, the highest rank first."""
_OVERSTATED = 1.2
"""A sentence names the time of a single call if it is this many times the cost or more."""
_MET_APART = 1.3
"""A sentence names the met cost if it and the quiet cost differ by more than this factor."""
_ONE_PROCESS = (
    "One process measured this, and others may differ, on a busy machine by many times. A whole run, without --quick, "
    "measures several."
)
_NOT_CHECKED = "Nothing checks what a call computes: look at its result once, since a call that fails may look fast."
_NEXT_STEPS: Mapping[str, str] = {
    "noisy": "Run again while the machine is quiet; overhead doctor shows what disturbs it.",
    "bimodal": "Run again; if both come back, plan with the higher one.",
    "nonlinear": (
        "Run again; if it stays, the cost of a call depends on how many there are: time as many as your program makes."
    ),
}
"""What to do about a cost with this status."""


def explanation_blocks(found: Explanation) -> Iterator[Part]:
    """What a terminal shows of the step."""
    on = found.program.device or found.machine.cpu
    yield Text([f"{found.program.function} in {found.program.file}, on {on}"], lead=True)
    if taken := taken_text(found):
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
    yield Text([sentence(one) for one in found.not_seen], quiet=True)


def taken_text(found: Explanation) -> str:
    """What was taken as the step, in a sentence; empty where that is not known."""
    program = found.program
    name = plain(program.function, 60)
    if program.taken == "returned":
        return f"The step is the {plain(program.returned, 60)} that {name} returns."
    if program.taken == "itself":
        returned = f"a value of type {plain(program.returned, 60)}" if program.returned else "nothing"
        return f"The step is {name} itself, because it returns {returned} and not a function."
    return ""


def verdict_blocks(found: Explanation) -> Iterator[Part]:
    """The verdict in words, the times of a step, and the calls that it makes."""
    first, *more = verdict_sentences(found)
    yield Text([first], lead=True)
    if more:
        yield Text(more)
    step, replay = found.step, found.replay
    rows = [
        [name, text(figure), _time_remark(name, figure)]
        for name, figure, text in (
            ("a step with its work done", step.wall, time_text),
            (AS_IT_RUNS, step.met, micro_or_why),
            ("the mean of all measured steps", step.everything, _mean_text),
            ("until the step returns", step.issue, time_text),
            ("the device works", step.busy, micro_or_why),
            ("replayed from the profile", replay.replayed, micro_or_why),
        )
        if figure.reason not in (NOT_IN_A_TRACE, NOT_MEASURED_MET)
    ]
    if replay.ratio is not None:
        against = f"{micro_of(replay.measured.value or 0)} {MICRO} {sentence(replay.measured.rule)}"
        rows[-1][2] = f"{factor(replay.ratio)} the {against}{'' if replay.ok else ': not understood'}"
    yield Table("The times of a step", ["each step", MICRO, "remark"], rows, numeric=(1,))
    said = []
    for name, (one, many) in _COUNTS.items():
        figure = getattr(found.per_step, name)
        if figure is None or not figure.measured or (name in _ONLY_IF_ANY and not (figure.high or figure.value)):
            continue
        said.append(f"{_count(figure)} {one if figure.value == 1 else many}")
    if said:
        yield Text([f"Each step: {', '.join(said)}."])


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
        columns = ["rank", f"step, {MICRO}", "host works", "device computes", "waits for others", "others wait for it"]
        yield Table("The ranks, and their waits in collectives", columns, rows, numeric=range(1, 6))


def _mean_text(figure: Figure) -> str:
    """A mean in µs with its interval; few slow steps make it so wide that it may begin below zero."""
    found = figure.measured
    return positive_spread(found / 1e3) if found is not None else figure.status


def _time_remark(name: str, figure: Figure) -> str:
    if name == AS_IT_RUNS and figure.measured:
        return "median and range of fresh processes; nothing is left out"
    return "" if figure.measured and resolved_times(figure) else sentence(figure.reason)


def alternative_blocks(found: Explanation) -> Iterator[Part]:
    """What was tried in place of the step, the surest gain first."""
    tried = [one for one in found.alternatives if one.kind != "condition"]
    rows = [
        [
            plain(one.name, 60) + KIND_LABELS[one.kind],
            *_times_cells(one),
            f"{one.making.value / 1e9:,.2g} s" if one.making.value is not None else "",
            f"{value:,.0f} steps" if (value := one.repaid_after.value) is not None else "",
            _remark(one),
        ]
        for one in sorted(tried, key=lambda one: -(one.gain.low or 0.0))
    ]
    columns = ["what would change it", f"step, {MICRO}", "faster", "making it", "repaid after", "remark"]
    if rows:
        table = Table("What was tried", columns, rows, numeric=(1, 2, 3, 4), optional={3: 2, 4: 1})
        yield table.without_empty()


def condition_blocks(found: Explanation) -> Iterator[Part]:
    """The step as the host runs it, and under other conditions on the host, in turn in one process."""
    tried = [one for one in found.alternatives if one.kind == "condition"]
    rows = [[plain(one.name, 60), *_times_cells(one), sentence(one.reason)] for one in tried]
    columns = ["the step in one process", f"step, {MICRO}", "faster", "remark"]
    if rows:
        table = Table("Under other conditions on the host", columns, rows, numeric=(1, 2))
        yield table.without_empty(2)


def _times_cells(one: Alternative) -> list[str]:
    """The time of a step, and the gain if both are known."""
    gain = one.gain.measured
    known = gain is not None and resolved_times(one.step)
    return [time_text(one.step) if one.step.measured else "", factor_spread(gain) if known else ""]


def synchronisation_blocks(found: Explanation) -> Iterator[Part]:
    """The calls that wait for the device; for how long, where the profile can tell."""
    known = found.replay.ok
    rows = [
        [plain(one.what, 60), _where(one.site), f"{one.count:,.4g}", micro_of(one.blocked_ns) if known else ""]
        for one in found.synchronisations
    ]
    if rows:
        columns = ["synchronisation", "line", "calls", f"waits, {MICRO}"]
        table = Table("Calls that wait for the device, by line", columns, rows, numeric=(2, 3), most=_MOST_ROWS)
        yield table.without_empty()


def operation_blocks(found: Explanation) -> Iterator[Part]:
    """What takes the host's time; a sentence in its place where the profile cannot tell."""
    whole = sum(row.host_ns for row in found.operations) or 1.0
    rows = [
        [
            plain(row.name, 60),
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
        columns = ["operation", "line", "calls", f"host, {MICRO}", "share", f"device, {MICRO}"]
        yield Table(
            "Operations by host time",
            columns,
            rows,
            numeric=(2, 3, 4, 5),
            sortable=True,
            optional={2: 2, 4: 1, 5: 3},
            most=_MOST_ROWS,
        ).without_empty()


def _count(figure: Figure) -> str:
    low, high = figure.low, figure.high
    span = f" ({low:,.0f} to {high:,.0f})" if low is not None and high is not None and low != high else ""
    return f"{figure.value:,.4g}{span}"


def _where(site: CallSite) -> str:
    return f"{site.line}, in {site.inside}" if site.line and site.inside else site.line or site.inside


def _remark(one: Alternative) -> str:
    words = {"ok": one.verdict(), "refused": "not possible", "differs": one.verdict(), "failed": "failed"}[one.status]
    unclear = one.step.measured and not resolved_times(one.step)
    time = f"time not resolved: {sentence(one.step.reason)}".removesuffix(": ") if unclear else ""
    why = "; ".join(filter(None, (sentence(one.results or one.reason), time)))
    text = ("; " if one.same_results else ": ").join(filter(None, (words, why)))
    return f"{text} ({one.site.line})" if one.site.line else text


def timing_blocks(timing: Timing) -> Iterator[Part]:
    """The table of the statements, what its columns mean, how the statements compare, and what is missing."""
    varied = list(timing.calls[0].varied)
    used = [] if "python" in varied else _libraries(timing.calls[0])
    library = f", {used[0]}" if used else ""
    where = listed(list(dict.fromkeys(call.on for call in timing.calls)))
    calls_wait = any(call.wait != NOTHING.said for call in timing.calls)
    names = [name for name in _WORDS if calls_wait or name != "issue"]
    several = len(timing.calls) > 1
    rows = [
        [
            str(n) if several else "",
            *(plain(text, 60) for text in (call.call, *call.varied.values())),
            *(_cell(call, name) for name in names),
        ]
        for n, call in enumerate(timing.calls, 1)
    ]
    optional = {2 + len(varied) + names.index(name): rank for name, rank in _OPTIONAL.items() if name in names}
    columns = ["#", "call", *varied, *(f"{name}, {MICRO}" for name in names)]
    title = f"{'A first answer, from one process: the' if timing.quick else 'The'} cost of a call, {where}{library}"
    explained = () if timing.quick else names
    meanings = {2 + len(varied) + names.index(name): f"{name}: {_WORDS[name]}." for name in explained}
    numeric = range(2, len(columns))
    yield Table(title, columns, rows, numeric=numeric, optional=optional, meanings=meanings).without_empty()
    yield Heading("What the figures say")
    yield Text(timing_sentences(timing))


def timing_sentences(timing: Timing) -> list[str]:
    """What the figures say: the ratios, what timing a single call would say, how it waits, what is missing."""
    calls = timing.calls
    said = [*map(_ratio, timing.ratios)]
    if any(map(_is_first_answer, calls)):
        said.append(_ONE_PROCESS)
    waits: dict[str, list[str]] = {}
    libraries: dict[str, list[str]] = {}
    said += dict.fromkeys(filter(None, map(_taken, calls)))
    for n, call in enumerate(calls, 1):
        said += _of_call(call, _of([str(n)], calls))
        waits.setdefault(call.wait, []).append(str(n))
        libraries.setdefault(listed(_libraries(call)), []).append(str(n))
    said += [f"Libraries seen in the call{_of(which, calls)}: {seen}." for seen, which in libraries.items() if seen]
    said += [f"Wait{_of(which, calls)}: {wait}." for wait, which in waits.items()]
    return [*said, _NOT_CHECKED, *map(sentence, timing.notes)]


def _doubts_of(call: CallTiming, which: str) -> Iterator[str]:
    """Why the cost of a statement is not sure, and from how many calls on it holds."""
    complete = call.figure("complete")
    if complete is None or complete.measured is None:
        return
    # A first answer comes from one process, and says so in a sentence of its own.
    if complete.status == "noisy" and complete.processes > 1 and complete.reason:
        yield f"The cost{which} is not sure: {sentence(complete.reason)}."
    if complete.holds_from > 1:
        yield f"The cost{which} holds from {complete.holds_from:,} calls on; with fewer, the cost of a call differs."


def _of_call(call: CallTiming, which: str) -> Iterator[str]:
    """What is said of one statement. ``which``: `` of 2`` where there are several."""
    if _is_first_answer(call):
        return
    yield from _doubts_of(call, which)
    yield from _single_call(call, which)
    yield from _unpinned(call, which)
    yield from _falls(call, which)
    if again := range_text(call.next_run):
        yield (
            f"Next run: 9 of 10 runs on other machines of this kind should measure {again} {MICRO} for the quiet "
            f"cost (complete){which}. This assumes that it varies as the suite's cases do."
        )
    if call.bound == "device":
        yield f"The device decides the cost{which}: the host issues calls faster than the device finishes them."
    if call.status != "ok" and call.value("complete") is not None:
        yield f"The cost{which} is {call.status}: {_reason(call.reason)}. {_next_step(call.status)}"
    for reason, names in _missing(call).items():
        again = f" {_next_step(call.status)}" if "complete" in names else ""
        yield f"No {listed(names)}{which}: {_reason(reason)}.{again}"


def _taken(call: CallTiming) -> str:
    """What is timed of a function that was named; empty for a statement."""
    name, kind = plain(call.call, 60), plain(call.returned, 60)
    if call.taken == "returned":
        return f"Timed is the {kind} that {name} returns."
    if call.taken == "itself":
        returned = f"a value of type {kind}" if kind else "nothing"
        return f"Timed is {name} itself: it returns {returned}, and no function."
    return ""


def _is_first_answer(call: CallTiming) -> bool:
    """Whether the cost is that of one process, which has no interval."""
    complete = call.figure("complete")
    return complete is not None and complete.processes == 1 and complete.low is None


def _libraries(call: CallTiming) -> list[str]:
    """The packages of a statement with their versions, those of its results first."""
    return [f"{name} {version}".rstrip() for name, version in call.libraries.items()]


def _reason(reason: Why) -> str:
    """A reason of a figure with the unit sign of the table; files have ``us``, in ASCII."""
    return re.sub(r"(?<=\d) us\b", f" {MICRO}", sentence(reason))


def _next_step(status: str) -> str:
    return _NEXT_STEPS.get(status, _NEXT_STEPS["noisy"])


def _single_call(call: CallTiming, which: str) -> Iterator[str]:
    """How far a single timed call is from the cost, where that is far, and the cost holds."""
    naive, complete = call.measured("naive"), call.measured("complete")
    if call.status != "ok" or naive is None or complete is None or complete.floor <= 0 or _lies_above(call):
        return
    least, most = naive.floor / complete.ceiling, naive.ceiling / complete.floor
    if least >= _OVERSTATED:
        yield f"A single call{which} and its wait take {between(least, most)} times as long as one more call."


def _falls(call: CallTiming, which: str) -> Iterator[str]:
    """Says so if fresh processes, which make few calls, met far more than a single call takes among many."""
    met, naive = call.measured("met"), call.measured("naive")
    if call.value("complete") is None and met and naive and met.floor > _MET_APART * naive.ceiling:
        yield (
            f"The cost{which} falls as calls are made: met is that of the first calls of fresh processes, and a single "
            "call later takes less than it. Neither is the cost of one more call; put as many calls into --setup as "
            "your program makes before it matters."
        )


def _lies_above(call: CallTiming) -> bool:
    """Whether all processes that are not pinned met far more than the cost."""
    met, complete = call.measured("met"), call.measured("complete")
    return met is not None and complete is not None and met.floor > _MET_APART * complete.ceiling


def _unpinned(call: CallTiming, which: str) -> Iterator[str]:
    """What the call takes in processes that are not pinned, where that differs from the cost."""
    met, complete = call.value("met"), call.measured("complete")
    if not met or complete is None or complete.value <= 0:
        return
    if max(met / complete.value, complete.value / met) <= _MET_APART:
        return
    low, high = met_range(call) or (met / 1e3, met / 1e3)
    yield (
        f"In fresh processes that are not pinned the call{which} takes {between(low, high)} {MICRO}. "
        "Plan with this range, not with the quiet cost (complete)."
    )
    if _lies_above(call):
        yield (
            "Either other programs take the processor, or some calls cost much more than most, as when a container "
            "grows; the quiet cost leaves both out."
        )


def _of(which: Sequence[str], calls: Sequence[CallTiming]) -> str:
    """`` of 1 and 3`` where this is said of some statements only."""
    return f" of {listed(list(which))}" if len(which) < len(calls) else ""


def _figure(call: CallTiming, name: str) -> Figure | None:
    return call.figure("device_busy" if name == "device" else name)


def _cell(call: CallTiming, name: str) -> str:
    figure = _figure(call, name)
    if figure is None or not figure.measured:
        return ""
    if figure.processes == 1:  # its range has no width, which would look like precision
        figure = msgspec.structs.replace(figure, low=None, high=None)
    return micro_spread(figure)


def _ratio(ratio: CallRatio) -> str:
    times = ratio.ratio.measured
    if times is None or not times.bounded:
        return f"No ratio of {ratio.position} to {ratio.against}: {_reason(ratio.ratio.reason or ratio.ratio.status)}."
    verdict = f" Verdict: {ratio.verdict}." if ratio.verdict else ""
    if times.floor <= 1 <= times.ceiling:
        shown = between(times.floor, times.ceiling)
        return f"No measurable difference between {ratio.position} and {ratio.against}: {shown}{TIMES}.{verdict}"
    interval = spread(times).replace(" (", f"{TIMES} (", 1)
    turns = "in the same processes" if ratio.difference else "in processes that take turns"
    return f"{ratio.position} takes {interval} as long as {ratio.against}, measured in turn {turns}.{verdict}"


def _missing(call: CallTiming) -> dict[Why, list[str]]:
    """The names of the figures without a value, by reason."""
    found: dict[Why, list[str]] = {}
    for name in _WORDS:
        figure = _figure(call, name)
        if figure is not None and not figure.measured:
            found.setdefault(figure.reason or call.reason or figure.status, []).append(name)
    if call.on != "CPU" and call.figure("naive") is not None and call.figure("device_busy") is None:
        span = call.figure("device_span")
        why: Why = "this library has no clock of the device that is known here"
        if span is not None:
            waited = f"the device waited for work in between; at most {micro_spread(span)} {MICRO}"
            why = waited if span.measured else span.reason or span.status
        found.setdefault(why, []).append("device")
    return found
