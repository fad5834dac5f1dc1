"""The ranges of a program by their names: which repeat, and which one a person means."""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from overhead.traces.events import TraceEvent
from overhead.traces.marks import COLLECTIVES, family
from overhead.traces.spans import start_of
from overhead.traces.steps_taken import RepeatedRange

_MOST_OTHERS = 6
_LEAST_SHARE = 0.02
"""Ranges are listed that take this share of the time of the longest ones, so many at most. Chosen,
not measured.
"""
_OF_LIBRARIES = re.compile(
    r"::|^##|Backward\d*$|^autograd|^triton_|^Torch-Compiled|^CompiledFunction|^PythonDispatchMode"
    r"|dynamo|AOTDispatcher|AotAutograd|^record_param_comms|inductor|^cuda|^hip|^detach_?$"
)
"""Operations and ranges that a library names; the program itself named the others."""
_PART_OF_A_STEP = re.compile(
    r"optim|zero_grad|dataload|distributeddataparallel|\bbackward\b|\btrain|\bloss\b"
    r"|^(?:run_)?forward(?:_pass| pass)?$",
    re.I,
)
"""Ranges that a step has once, and a layer of a model has not."""
_PART_OF_A_MODEL = re.compile(r"layer|block|attn|attention|mlp|moe|expert|norm|embed|head", re.I)
"""Such parts repeat within a step."""


def by_family(events: Iterable[TraceEvent]) -> dict[str, list[TraceEvent]]:
    """The ranges by their name with ``N`` for its numbers, by start: those of one thread that lie
    in no other of their family.

    Where ranges of several threads overlap, they are those of the thread with the longest ones.
    """
    grouped: dict[str, list[TraceEvent]] = defaultdict(list)
    for event in events:
        grouped[family(event.name)].append(event)
    return {name: _side_by_side(ranges) for name, ranges in grouped.items()}


def _side_by_side(ranges: Sequence[TraceEvent]) -> list[TraceEvent]:
    """These ranges by start, without those that overlap another one."""
    outermost = _outermost(ranges)
    if _apart(outermost):
        return outermost
    by_thread: dict[str, list[TraceEvent]] = defaultdict(list)
    for event in ranges:
        by_thread[event.thread].append(event)
    busiest = max(by_thread.values(), key=together_ns)
    return _outermost(busiest)


def _outermost(ranges: Iterable[TraceEvent]) -> list[TraceEvent]:
    """The ranges that lie in no other one, by start. Of equal ones, which a file may have twice,
    one is kept.
    """
    kept: list[TraceEvent] = []
    for event in sorted(ranges, key=_start_and_longest):
        if kept and event.end <= kept[-1].end:
            continue
        kept.append(event)
    return kept


def _start_and_longest(event: TraceEvent) -> tuple[float, float]:
    return event.start, -event.end


def _apart(ranges: Sequence[TraceEvent]) -> bool:
    """Whether each range ends before the next one starts."""
    ends = [event.end for event in ranges[:-1]]
    starts = [event.start for event in ranges[1:]]
    return all(end <= start for end, start in zip(ends, starts, strict=True))


def together_ns(ranges: Iterable[TraceEvent]) -> float:
    """How long these ranges take together."""
    return sum(event.end - event.start for event in ranges)


@functools.lru_cache(maxsize=100_000)
def is_of_program(name: str) -> bool:
    """Whether the program named a range so, and not a library its operation or exchange."""
    return not _OF_LIBRARIES.search(name) and not name.startswith(COLLECTIVES)


def may_be_a_step(name: str) -> bool:
    """Whether a range that repeats may be a step by its name, and not a part of a model."""
    return is_of_program(name) and not _PART_OF_A_MODEL.search(name)


def is_part_of_a_step(name: str) -> bool:
    """Whether a range of this name runs once in each step, and not in each layer of a model."""
    return _PART_OF_A_STEP.search(name) is not None


def others_that_repeat(
    families: Mapping[str, Sequence[TraceEvent]], taken: str
) -> list[RepeatedRange]:
    """The families that repeat, without the one that was taken as the steps, the longest first.
    Ranges that take little time beside the longest ones are left out.
    """
    found = []
    for name, ranges in families.items():
        if len(ranges) > 1 and is_of_program(ranges[0].name):
            found.append(name)
    found.sort(key=lambda name: -together_ns(families[name]))
    longest_ns = together_ns(families[found[0]]) if found else 0.0
    others = []
    for name in found:
        if name != taken and together_ns(families[name]) >= _LEAST_SHARE * longest_ns:
            ranges = families[name]
            others.append(RepeatedRange(name=_shown(ranges), times=len(ranges)))
    return others[:_MOST_OTHERS]


def _shown(ranges: Sequence[TraceEvent]) -> str:
    """The name of these ranges: as it is where all have the same, else with ``N`` for numbers."""
    names = {event.name for event in ranges}
    return (names.pop() if len(names) == 1 else family(ranges[0].name))[:200]


def shown_name(ranges: Sequence[TraceEvent]) -> str:
    """What ranges of one family are called: their name, with ``N`` for numbers that differ."""
    if len(ranges) == 1:
        return ranges[0].name[:200]
    return _shown(ranges)


def ranges_called(name: str, events: Iterable[TraceEvent]) -> list[TraceEvent]:
    """The ranges that a person means by a name: of exactly this name; else of this name up to its
    numbers; else of a name that begins so. By start, none inside another one; empty without any.
    """
    ranges = list(events)
    wanted = family(name)
    exact = [event for event in ranges if event.name == name]
    if len(exact) > 1:
        return _side_by_side(exact)
    alike = [event for event in ranges if family(event.name) == wanted]
    if alike:
        return _side_by_side(alike)
    # ``ProfilerStep`` for ``ProfilerStep#12``, and ``ProfilerStep#N`` as the output writes it.
    begins = [event for event in ranges if family(event.name).startswith(wanted)]
    if not begins:
        return []
    most = Counter(family(event.name) for event in begins).most_common(1)[0][0]
    return _side_by_side([event for event in begins if family(event.name) == most])


def sequences(events: Iterable[TraceEvent]) -> list[list[TraceEvent]]:
    """The ranges of the thread with the longest ones, by how deep they lie in each other: first
    those that lie in no other one, then those in these, and so on; each by start.
    """
    by_thread: dict[str, list[TraceEvent]] = defaultdict(list)
    for event in events:
        by_thread[event.thread].append(event)
    if not by_thread:
        return []
    ranges = max(by_thread.values(), key=together_ns)
    levels: list[list[TraceEvent]] = []
    around: list[TraceEvent] = []  # the ranges that hold the current one
    for event in sorted(ranges, key=_start_and_longest):
        while around and around[-1].end <= event.start:
            around.pop()
        if len(around) == len(levels):
            levels.append([])
        levels[len(around)].append(event)
        around.append(event)
    return [sorted(level, key=start_of) for level in levels]
