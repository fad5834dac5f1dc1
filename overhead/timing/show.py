"""The times of one call, or of several in turn, as blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from overhead.blocks.parts import Heading, InMicroseconds, Part, Table, Text
from overhead.reading.dispatch_costs import unpinned_range
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

_MOST_TEXT = 60
"""Longer names of the program are cut in a cell. Chosen, not measured."""
_OPTIONAL, _IMPORTANT = ("issue", "fixed", "naive"), ("device", "met")
"""The figures of a call that a narrow terminal hides, as ``Table`` says."""
_OVERSTATED = 1.2
"""A sentence names the time of a single call if it is this many times the cost or more. Chosen, not
measured.
"""
_UNPINNED_APART = 1.3
"""A sentence names the unpinned cost if unpinned and undisturbed cost differ by more than this
factor. Chosen, not measured; docs/time.md tells it.
"""


def timing_blocks(timing: Timing) -> Iterator[Part]:
    """The answer of ``overhead time`` as it is printed: the table of the statements, what its
    columns mean, how the statements compare, and what is missing.
    """
    # ``issue`` is the cost until a call returns. Without a wait that is the cost itself. Of the
    # other columns, those without any figure are left out.
    calls_wait = any(call.is_awaited for call in timing.calls)
    names = [name for name in words.MEANINGS if calls_wait or name != "issue"]
    yield _timing_table(timing, names).without_empty()
    yield Text([*_division_sentences(timing)])
    yield Heading("What the figures say")
    yield Text(timing_sentences(timing))


def _timing_table(timing: Timing, names: Sequence[str]) -> Table:
    """A row for each statement: its number, its text, the values that were varied, and its figures
    of these names, such as ``complete``, the cost of one more call with its work done.
    """
    calls = timing.calls
    varied = list(calls[0].varied)
    several = len(calls) > 1
    rows = []
    for number, call in enumerate(calls, 1):
        cells = [str(number) if several else "", plain(call.call, _MOST_TEXT)]
        cells += [plain(value, _MOST_TEXT) for value in call.varied.values()]
        cells += [_cell(call, name) for name in names]
        rows.append(cells)

    first_figure = 2 + len(varied)  # the place of the first column with a figure
    columns = ["#", "call", *varied]
    columns += [InMicroseconds(figure_column(name)) for name in names]
    places = {name: place for place, name in enumerate(names, first_figure)}
    meanings = {}
    # First answers come within seconds and have one figure; no legend stands below them.
    if not timing.quick:
        meanings = {places[name]: words.meaning(name) for name in names}
    # The title names the first library; two interpreters may have different versions of it.
    libraries = [] if "python" in varied else _libraries(calls[0])
    devices = listed(list(dict.fromkeys(call.on for call in calls)))
    return Table(
        words.title(timing, devices, libraries[0] if libraries else ""),
        columns,
        rows,
        numeric=range(2, len(columns)),
        # Where there is no room, a terminal hides the optional ones first, the important ones last.
        optional=[places[name] for name in _OPTIONAL if name in places],
        important=[places[name] for name in _IMPORTANT],
        meanings=meanings,
    )


def _division_sentences(timing: Timing) -> Iterator[str]:
    """How the host's time of each call divides into Python, libraries and so on: a sentence for
    each call that was sampled, and then what the words in these sentences mean.
    """
    divided = []
    beside_device = []
    for call in timing.calls:
        division = call.division
        if division is None:
            continue
        # The division is of the time until the call returns. Without a device that is the cost.
        on_device = call.on != "CPU"
        cost = call.figure("issue" if on_device else "complete")
        name = _name_with_varied(call)
        yield division_words.division_sentence(name, division, cost, on_device=on_device)
        # Without parts, the sentence has said why there are none, and has no words to explain.
        if division.parts:
            divided.append(division)
            if on_device:
                beside_device.append(division)
    if not divided:
        return

    samples = listed(list(dict.fromkeys(f"{division.samples:,}" for division in divided)))
    yield division_words.division_rule(samples)
    if any(division.part("binding") for division in divided):
        yield division_words.BINDING_MEANS
    if beside_device:
        yield division_words.DEVICE_APART
    if any(division.part("driver") for division in beside_device):
        yield division_words.WAIT_IN_DRIVER


def _name_with_varied(call: CallTiming) -> str:
    """A statement and the values that it was measured with: ``f(x), n = 10``."""
    texts = [call.call]
    texts += [f"{name} = {value}" for name, value in call.varied.items()]
    return ", ".join(plain(text, _MOST_TEXT) for text in texts)


def timing_sentences(timing: Timing) -> list[str]:
    """What the figures say, as sentences below the table: the ratios, what is doubtful about each
    statement, what timing a single call would say, how the end of its work is awaited, what is
    missing.
    """
    calls = timing.calls
    sentences = [_ratio_sentence(ratio) for ratio in timing.ratios]
    if any(_is_first_answer(call) for call in calls):
        sentences.append(words.ONE_PROCESS)
        interrupted = [
            note for note in timing.notes if code_of(note) == "interrupted-with-first-answers"
        ]
        # Only who asked for quick answers is told how to get better ones.
        if timing.quick and not interrupted:
            sentences.append(words.WITHOUT_QUICK)

    for taken in dict.fromkeys(words.taken_as_call(call) for call in calls):
        if taken:
            sentences.append(taken)

    # What several statements have in common is said once, with their numbers.
    numbers_by_wait: dict[Why, list[str]] = {}
    numbers_by_libraries: dict[str, list[str]] = {}
    for number, call in enumerate(calls, 1):
        sentences += _sentences_of_call(call, words.of_rows([str(number)], len(calls)))
        numbers_by_wait.setdefault(call.wait, []).append(str(number))
        libraries = listed(_libraries(call))
        numbers_by_libraries.setdefault(libraries, []).append(str(number))
    for libraries, numbers in numbers_by_libraries.items():
        if libraries:
            which = words.of_rows(numbers, len(calls))
            sentences.append(words.libraries_seen(libraries, which))
    for wait, numbers in numbers_by_wait.items():
        sentences.append(words.waits(wait, words.of_rows(numbers, len(calls))))

    sentences.append(words.NOT_CHECKED)
    sentences += [sentence(note) for note in timing.notes]
    return sentences


def _doubts_of_cost(call: CallTiming, which: str) -> Iterator[str]:
    """Why the cost of a statement is not sure, and from how many calls in a row on it holds.
    ``which``: the statement in words, `` of 2``; '' if there is only one.
    """
    complete = call.figure("complete")
    if complete is None or complete.measured is None:
        return
    # A first answer comes from one process, and says so in a sentence of its own.
    if complete.status == "noisy" and complete.processes > 1 and complete.reason:
        yield words.not_sure(complete, which)
    # ``holds_from``: the fewest calls in a row for which T(n) was seen to be a line.
    if complete.holds_from > 1:
        yield words.holds_from(complete, which)


def _sentences_of_call(call: CallTiming, which: str) -> Iterator[str]:
    """What is said of one statement: doubts about its cost, and what differs from it. ``which``:
    `` of 2`` where there are several statements.
    """
    if _is_first_answer(call):  # one sentence says of all such answers that they are of one process
        return
    yield from _doubts_of_cost(call, which)
    yield from _single_call_misleads(call, which)
    yield from _unpinned_differs(call, which)
    yield from _cost_falls(call, which)
    # The range in which 9 of 10 other runs should put the cost; '' if it is not known.
    next_run = range_text(_range(call.next_run))
    if next_run:
        yield words.next_run(next_run, which)
    # The device takes longer for the work than the host takes to submit it.
    if call.bound == "device":
        yield words.device_decides(which)
    if call.status != "ok" and call.value("complete") is not None:
        yield words.unclear_cost(call, which)
    # The sentence before has told the status of the cost already, if that is what is missing.
    for reason, names in _missing_figures(call).items():
        again_after = call.status if "complete" in names else ""
        yield words.no_figures(names, reason, which, again_after)


def _is_first_answer(call: CallTiming) -> bool:
    """Whether the cost is that of one process, which has no interval."""
    complete = call.figure("complete")
    return complete is not None and complete.processes == 1 and complete.low is None


def _libraries(call: CallTiming) -> list[str]:
    """The packages of a statement with their versions, those of its results first."""
    return [f"{name} {version}".rstrip() for name, version in call.libraries.items()]


def _single_call_misleads(call: CallTiming, which: str) -> Iterator[str]:
    """How many times the cost a single timed call takes (the figure ``naive``), where it is far
    more, and the cost is sure.
    """
    figure = call.figure("naive")
    complete = call.measured("complete")
    single_shot = figure.measured if figure is not None else None
    if call.status != "ok" or figure is None or single_shot is None or complete is None:
        return
    # Nothing can be divided by a cost of 0. And where all unpinned processes met far more than the
    # cost, ``_unpinned_differs`` says that instead.
    if complete.floor <= 0 or _unpinned_far_above(call):
        return
    # The ends of the ratio: the lowest time over the highest cost, and the other way round.
    least = single_shot.floor / complete.ceiling
    most = single_shot.ceiling / complete.floor
    if least >= _OVERSTATED:
        yield words.single_call(figure, least, most, which)


def _cost_falls(call: CallTiming, which: str) -> Iterator[str]:
    """Says so if fresh processes, which make few calls, met far more than a single call takes among
    many: the cost falls while a process runs, and so has no one value.
    """
    first = call.figure("met")
    later = call.figure("naive")
    # With a cost, ``_unpinned_differs`` says how the fresh processes differ from that.
    if call.value("complete") is not None or first is None or later is None:
        return
    unpinned = first.measured
    single_shot = later.measured
    if unpinned is None or single_shot is None:
        return
    if unpinned.floor > _UNPINNED_APART * single_shot.ceiling:
        yield words.cost_falls(first, later, which)


def _unpinned_far_above(call: CallTiming) -> bool:
    """Whether all processes that are not pinned met far more than the cost."""
    unpinned = call.measured("met")
    complete = call.measured("complete")
    if unpinned is None or complete is None:
        return False
    return unpinned.floor > _UNPINNED_APART * complete.ceiling


def _unpinned_differs(call: CallTiming, which: str) -> Iterator[str]:
    """What the call takes in processes that are not pinned to a processor (the figure ``met``),
    where that differs from the cost, which is measured in pinned ones.
    """
    unpinned_ns = call.value("met")
    complete = call.measured("complete")
    if not unpinned_ns or complete is None or complete.value <= 0:
        return
    # How many times the smaller one the larger one is, whichever that is.
    factor = max(unpinned_ns / complete.value, complete.value / unpinned_ns)
    if factor <= _UNPINNED_APART:
        return
    # The lowest and the highest of these processes; where that is not known, the value twice.
    low_us, high_us = unpinned_range(call) or (unpinned_ns / 1e3, unpinned_ns / 1e3)
    yield words.unpinned(low_us, high_us, which)
    if _unpinned_far_above(call):
        yield words.LEFT_OUT


def _figure(call: CallTiming, name: str) -> Figure | None:
    """The figure of a column: the column ``device`` shows how long the device is busy."""
    return call.figure("device_busy" if name == "device" else name)


def _cell(call: CallTiming, name: str) -> str:
    """The figure of a column with its interval, in µs, for the row of a statement; '' where it was
    not measured.
    """
    figure = _figure(call, name)
    if figure is None or not figure.measured:
        return ""
    if figure.processes == 1:  # its range has no width, which would look like precision
        figure = msgspec.structs.replace(figure, low=None, high=None)
    return micro_spread(figure)


def _ratio_sentence(ratio: CallRatio) -> str:
    """How two statements compare: no ratio was formed, or its interval holds 1 so that they do not
    differ, or one takes so many times as long.
    """
    times = ratio.ratio.measured
    if times is None or not times.bounded:
        return words.no_ratio(ratio)
    if times.floor <= 1 <= times.ceiling:
        return words.no_difference(ratio, times)
    return words.takes_as_long(ratio, times)


def _missing_figures(call: CallTiming) -> dict[Why, list[str]]:
    """The names of the figures that the table shows without a value, by the reason why they have
    none, so that one sentence tells each reason.
    """
    names: dict[Why, list[str]] = {}
    for name in words.MEANINGS:  # the columns
        # The figure of the column; that of ``device`` is ``device_busy``.
        figure = _figure(call, name)
        if figure is not None and not figure.measured:
            why = figure.reason or call.reason or figure.status
            names.setdefault(why, []).append(name)
    # A measured call that uses a device, and has no figure for how long that is busy.
    if call.on != "CPU" and call.figure("naive") is not None and call.figure("device_busy") is None:
        names.setdefault(_why_no_device_time(call), []).append("device")
    return names


def _why_no_device_time(call: CallTiming) -> Why:
    """Why it is not known how long the device of a call is busy: the library has no clock on the
    device, or the device waited between its pieces of work (the span has more than the work), or
    the span itself could not be measured.
    """
    span = call.figure("device_span")
    if span is None:
        return words.NO_CLOCK
    if span.measured:
        return words.device_waited(span)
    return span.reason or span.status


def _range(ends: list[float] | None) -> Value | None:
    """The ends of a range as a value; None for None."""
    if not ends:
        return None
    return Value(sum(ends) / 2, min(ends), max(ends))
