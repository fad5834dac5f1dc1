"""The times of one call, or of several in turn, as blocks."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from overhead.blocks.parts import Heading, InMicroseconds, Part, Table, Text
from overhead.reading.dispatch_costs import met_range
from overhead.reading.plain_text import plain
from overhead.results import Figure, Value, Why, code_of
from overhead.timing.timing import CallRatio, CallTiming, Timing
from overhead.words.format import (
    listed,
    micro_spread,
)
from overhead.words.glossary import figure_column
from overhead.words.next_run import range_text
from overhead.words.reasons import sentence
from overhead.words.timing import division as division_words, timing as words

_OPTIONAL, _IMPORTANT = ("issue", "fixed", "naive"), ("device", "met")
"""The figures of a call that a narrow terminal hides, as ``Table`` says."""
_OVERSTATED = 1.2
"""A sentence names the time of a single call if it is this many times the cost or more."""
_MET_APART = 1.3
"""A sentence names the unpinned cost if unpinned and undisturbed cost differ by more than this
factor.
"""


def timing_blocks(timing: Timing) -> Iterator[Part]:
    """The table of the statements, what its columns mean, how the statements compare, and what is
    missing.
    """
    varied = list(timing.calls[0].varied)
    used = [] if "python" in varied else _libraries(timing.calls[0])
    library = used[0] if used else ""
    where = listed(list(dict.fromkeys(call.on for call in timing.calls)))
    calls_wait = any(call.is_awaited for call in timing.calls)
    names = [name for name in words.MEANINGS if calls_wait or name != "issue"]
    several = len(timing.calls) > 1
    rows = [
        [
            str(n) if several else "",
            *(plain(text, 60) for text in (call.call, *call.varied.values())),
            *(_cell(call, name) for name in names),
        ]
        for n, call in enumerate(timing.calls, 1)
    ]
    places = {name: 2 + len(varied) + at for at, name in enumerate(names)}
    columns = ["#", "call", *varied, *(InMicroseconds(figure_column(name)) for name in names)]
    explained = () if timing.quick else names
    yield Table(
        words.title(timing, where, library),
        columns,
        rows,
        numeric=range(2, len(columns)),
        optional=[places[name] for name in _OPTIONAL if name in places],
        important=[places[name] for name in _IMPORTANT],
        meanings={places[name]: words.meaning(name) for name in explained},
    ).without_empty()
    yield Text([*_divisions(timing)])
    yield Heading("What the figures say")
    yield Text(timing_sentences(timing))


def _divisions(timing: Timing) -> Iterator[str]:
    """How the host's time of each call divides: Python, or a library."""
    known = [(call, call.division) for call in timing.calls if call.division is not None]
    for call, division in known:
        name = ", ".join(
            [
                plain(call.call, 60),
                *(plain(f"{name} = {value}", 60) for name, value in call.varied.items()),
            ]
        )
        on_device = call.on != "CPU"
        cost = call.figure("issue" if on_device else "complete")
        yield division_words.division_sentence(name, division, cost, on_device=on_device)
    divided = [division for _, division in known if division.parts]
    if not divided:
        return
    samples = listed(list(dict.fromkeys(f"{division.samples:,}" for division in divided)))
    yield division_words.division_rule(samples)
    if any(division.part("binding") for division in divided):
        yield division_words.BINDING_MEANS
    beside_device = [division for call, division in known if division.parts and call.on != "CPU"]
    if beside_device:
        yield division_words.DEVICE_APART
    if any(division.part("driver") for division in beside_device):
        yield division_words.WAIT_IN_DRIVER


def timing_sentences(timing: Timing) -> list[str]:
    """What the figures say: the ratios, what timing a single call would say, how it waits, what is
    missing.
    """
    calls = timing.calls
    said = [*map(_ratio, timing.ratios)]
    if any(map(_is_first_answer, calls)):
        said.append(words.ONE_PROCESS)
        if timing.quick and not any(
            code_of(note) == "interrupted-with-first-answers" for note in timing.notes
        ):
            said.append(words.WITHOUT_QUICK)
    waits: dict[Why, list[str]] = {}
    libraries: dict[str, list[str]] = {}
    said += dict.fromkeys(filter(None, map(words.taken_as_call, calls)))
    for n, call in enumerate(calls, 1):
        said += _of_call(call, words.of_rows([str(n)], len(calls)))
        waits.setdefault(call.wait, []).append(str(n))
        libraries.setdefault(listed(_libraries(call)), []).append(str(n))
    for seen, which in libraries.items():
        if seen:
            said.append(words.libraries_seen(seen, words.of_rows(which, len(calls))))
    said += [words.waits(wait, words.of_rows(which, len(calls))) for wait, which in waits.items()]
    return [*said, words.NOT_CHECKED, *map(sentence, timing.notes)]


def _doubts_of(call: CallTiming, which: str) -> Iterator[str]:
    """Why the cost of a statement is not sure, and from how many calls on it holds."""
    complete = call.figure("complete")
    if complete is None or complete.measured is None:
        return
    # A first answer comes from one process, and says so in a sentence of its own.
    if complete.status == "noisy" and complete.processes > 1 and complete.reason:
        yield words.not_sure(complete, which)
    if complete.holds_from > 1:
        yield words.holds_from(complete, which)


def _of_call(call: CallTiming, which: str) -> Iterator[str]:
    """What is said of one statement. ``which``: `` of 2`` where there are several."""
    if _is_first_answer(call):
        return
    yield from _doubts_of(call, which)
    yield from _single_call(call, which)
    yield from _unpinned(call, which)
    yield from _falls(call, which)
    if again := range_text(_range(call.next_run)):
        yield words.next_run(again, which)
    if call.bound == "device":
        yield words.device_decides(which)
    if call.status != "ok" and call.value("complete") is not None:
        yield words.unclear_cost(call, which)
    for reason, names in _missing(call).items():
        again_after = call.status if "complete" in names else ""
        yield words.no_figures(names, reason, which, again_after)


def _is_first_answer(call: CallTiming) -> bool:
    """Whether the cost is that of one process, which has no interval."""
    complete = call.figure("complete")
    return complete is not None and complete.processes == 1 and complete.low is None


def _libraries(call: CallTiming) -> list[str]:
    """The packages of a statement with their versions, those of its results first."""
    return [f"{name} {version}".rstrip() for name, version in call.libraries.items()]


def _single_call(call: CallTiming, which: str) -> Iterator[str]:
    """How far a single timed call is from the cost, where that is far, and the cost holds."""
    single, complete = call.figure("naive"), call.measured("complete")
    naive = single.measured if single is not None else None
    if call.status != "ok" or single is None or naive is None or complete is None:
        return
    if complete.floor <= 0 or _lies_above(call):
        return
    least, most = naive.floor / complete.ceiling, naive.ceiling / complete.floor
    if least >= _OVERSTATED:
        yield words.single_call(single, least, most, which)


def _falls(call: CallTiming, which: str) -> Iterator[str]:
    """Says so if fresh processes, which make few calls, met far more than a single call takes among
    many.
    """
    first, later = call.figure("met"), call.figure("naive")
    if call.value("complete") is not None or first is None or later is None:
        return
    met, naive = first.measured, later.measured
    if met and naive and met.floor > _MET_APART * naive.ceiling:
        yield words.cost_falls(first, later, which)


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
    yield words.unpinned(low, high, which)
    if _lies_above(call):
        yield words.LEFT_OUT


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
        return words.no_ratio(ratio)
    if times.floor <= 1 <= times.ceiling:
        return words.no_difference(ratio, times)
    return words.takes_as_long(ratio, times)


def _missing(call: CallTiming) -> dict[Why, list[str]]:
    """The names of the figures without a value, by reason."""
    found: dict[Why, list[str]] = {}
    for name in words.MEANINGS:
        figure = _figure(call, name)
        if figure is not None and not figure.measured:
            found.setdefault(figure.reason or call.reason or figure.status, []).append(name)
    if call.on != "CPU" and call.figure("naive") is not None and call.figure("device_busy") is None:
        span = call.figure("device_span")
        why: Why = words.NO_CLOCK
        if span is not None:
            why = words.device_waited(span) if span.measured else span.reason or span.status
        found.setdefault(why, []).append("device")
    return found


def _range(ends: list[float] | None) -> Value | None:
    """The ends of a range as a value; None for None."""
    return Value(sum(ends) / 2, min(ends), max(ends)) if ends else None
