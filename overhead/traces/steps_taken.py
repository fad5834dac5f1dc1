"""What of a recording was taken as its steps, and what was left out."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from overhead.results import Count, LongText

HowSteps = Literal[
    "marks", "named", "range", "ranges", "period", "operations", "between", "launches", "recording"
]
"""How the steps of a recording were found.

- ``marks``: ranges that say that they are steps, such as ``ProfilerStep#12``.
- ``named``: ranges of the name that the person gave.
- ``range``: a range that repeats, from one start to the next. ``ranges``: several of them in turn.
- ``period``: launches that repeat. ``operations``: operations of the host that repeat.
- ``between``: what lies between the times that the person gave, as one step.
- ``launches``: all from the first launch to the last device work, as one step.
- ``recording``: all of the recording, as one step.
"""


class RepeatedRange(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A range that could be named as the step. ``name``: numbers in it are ``N``. ``times``: how
    often it is in the recording.
    """

    name: LongText
    times: Count


class StepsTaken(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True, kw_only=True):
    """What was taken as the steps of a trace; times in ns.

    ``name``: of the marks or ranges, numbers in it are ``N``. ``found``: how many steps were found;
    ``without_work``: of these, how many are left out because they issued no device work.
    ``launches``: how many launches one repetition has, where launches repeat; ``may_be_parts``:
    nothing tells whether such a repetition is a whole step.

    ``before_ns``, ``after_ns``: how long the recording is before the first step and after the last
    one. ``recorded_ns``: how long it is. ``between_ns``: how long no step runs between two steps;
    ``joined``: the time after a mark, until the next one, is part of the step, because the program
    launches work in it. ``outside``: the share of all launches that is in no step.

    ``idle_between_ns``: how long no device works between two steps, of ``whole_ns`` from the start
    of the first step to the end of the last one; 0 if that is little. ``most_between``: the range
    of the program that takes most of the time between the steps, and how long (``.._ns``).

    ``shortest_ns``, ``longest_ns``: of the steps, on the host. ``behind_ns``: how long the device
    works after the last step has ended on the host; this work is part of the step.
    ``already_busy``: the device works on something earlier when the first step begins;
    ``earlier_ns``: by how much later that step ends for this reason, which is not counted.

    ``slow``: how many steps are left out because they take over three times as long as the others;
    ``slow_at_first``: these are the first ones; ``slow_number``: of the mark of the first of them;
    ``slow_shortest_ns``, ``slow_longest_ns``: how long they take until their device work has ended;
    ``usual_ns``: the median of the others.

    ``first_call``, ``first_call_ns``: the operation whose first call was left out, because it took
    far longer than the later ones. ``others``: ranges that could be named instead.
    """

    how: HowSteps
    name: LongText = ""
    found: Count = 1
    without_work: Count = 0
    launches: Count = 0
    may_be_parts: bool = False
    before_ns: float = 0.0
    after_ns: float = 0.0
    recorded_ns: float = 0.0
    between_ns: float = 0.0
    idle_between_ns: float = 0.0
    whole_ns: float = 0.0
    most_between: LongText = ""
    most_between_ns: float = 0.0
    joined: bool = False
    outside: float = 0.0
    shortest_ns: float = 0.0
    longest_ns: float = 0.0
    behind_ns: float = 0.0
    slow: Count = 0
    slow_at_first: bool = False
    slow_number: int | None = None
    slow_shortest_ns: float = 0.0
    slow_longest_ns: float = 0.0
    usual_ns: float = 0.0
    already_busy: bool = False
    earlier_ns: float = 0.0
    first_call: LongText = ""
    first_call_ns: float = 0.0
    others: Annotated[list[RepeatedRange], Meta(max_length=8)] = []
