"""Loops over n units: plain Python functions, and generated source code for Python and numba, with
or without clock readings.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

Action = Callable[[], object]
"""One launch, wait or read."""
Issue = Callable[[int], object]
"""Issues n units."""
Stages = Callable[[int], dict[str, NDArray[np.int64]]]
"""Issues n units with clock readings, and returns the durations of each stage (a named part of a
unit), ns.
"""
CLOCK = "clock"
"""The empty stage: its duration is the cost of one clock reading."""


def repeated(action: Action) -> Issue:
    """A function of n that runs the action n times. ``repeat(None, n)`` makes no number for each
    turn, so it costs less than ``range(n)``; the loop is timed with the actions.
    """

    def loop(n: int) -> None:
        for _ in repeat(None, n):
            action()

    return loop


def alternating(first: Action, second: Action) -> Issue:
    """A function of n that runs both actions in turn, n times, such as a launch and its wait. It
    returns the last result of ``second``, which may be an error code. ``repeat`` instead of
    ``range``: it makes no number for each turn.
    """

    def loop(n: int) -> object:
        result: object = None
        for _ in repeat(None, n):
            first()
            result = second()
        return result

    return loop


def in_sequence(first: Action, second: Action) -> Action:
    """An action that runs both, one after the other, and returns both results."""

    def both() -> tuple[object, object]:
        return first(), second()

    return both


def nothing() -> None:
    """Do nothing: the wait of a synchronous stack, or the launch of an empty recording."""


@dataclass(frozen=True)
class Statement:
    """One line of the loop, and the name of the stage (the named part of a unit) that it belongs
    to.
    """

    code: str
    stage: str


@dataclass(frozen=True)
class Script:
    """The text of a loop over n units, such as n launches, from which functions with and without
    clock readings are made. The units run in groups: for each group ``head`` once, ``body`` once
    per unit, then ``tail`` once.

    ``per``: units in a group; 0: all units are one group. The variable ``u`` is the index of the
    unit in ``body``, and of the first unit of the group in ``head`` and ``tail``. ``names`` become
    local variables.
    """

    head: tuple[Statement, ...] = ()
    body: tuple[Statement, ...] = ()
    tail: tuple[Statement, ...] = ()
    per: int = 1
    names: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sections(self) -> tuple[tuple[Statement, ...], ...]:
        """The parts that are timed separately: one part if a group is one unit, else head, body and
        tail.
        """
        if self.per == 1:
            return (self.head + self.body + self.tail,)
        return (self.head, self.body, self.tail)


@dataclass(frozen=True)
class _TimedStage:
    """Adjacent lines of one stage, which are timed together."""

    name: str
    lines: list[str]


def _timed_stages(section: Sequence[Statement]) -> list[_TimedStage]:
    stages = []
    for name, statements in itertools.groupby(section, key=lambda statement: statement.stage):
        stages.append(_TimedStage(name, [statement.code for statement in statements]))
    return stages


def stage_names(section: Sequence[Statement]) -> list[str]:
    """The names of the stages of a section (a part that is timed separately) in order, after
    ``clock``.

    Adjacent statements of one stage are timed together.
    """
    return [CLOCK, *(stage.name for stage in _timed_stages(section))]


def reading_counts(script: Script) -> list[int]:
    """For each section, the number of clock readings in one run of it: one at its start, and one
    after each stage, of which ``clock`` is the first.
    """
    return [1 + len(stage_names(section)) for section in script.sections]


def lines_without_clock(script: Script) -> list[str]:
    """The lines of the loop without clock readings."""
    blocks = []
    for section in script.sections:
        blocks.append([statement.code for statement in section])
    return _nest(script, blocks)


def lines_with_clock(
    script: Script, read: Callable[[int, int], str], keep: Callable[[int, int], str]
) -> list[str]:
    """The lines of the loop, with a clock reading before the first stage (a named part of a unit)
    and after each stage of a section (a part of the loop that is timed separately).

    The caller, which has its own clock and its own memory for readings, gives both statements:
    ``read(section, i)`` returns the one that takes reading i. ``keep(section, readings)`` returns
    the one that stores so many readings, at the end of the section.
    """
    # One block of lines for each section.
    blocks = []
    counts = reading_counts(script)
    for number, section in enumerate(script.sections):
        # Two readings with nothing between them: the cost of a reading, which is the stage clock.
        lines = [read(number, 0), read(number, 1)]
        after_those_two = 2
        # ``_timed_stages``: adjacent lines of one stage are timed together.
        for reading, stage in enumerate(_timed_stages(section), after_those_two):
            lines += [*stage.lines, read(number, reading)]
        lines.append(keep(number, counts[number]))
        blocks.append(lines)
    # With the ``for`` statements around the sections.
    return _nest(script, blocks)


def stage_durations(
    script: Script, readings: Sequence[NDArray[np.int64]]
) -> dict[str, NDArray[np.int64]]:
    """Durations by stage (a named part of a unit), ns. ``readings``: for each section of the loop
    the clock values that it stored, ns: an array with a row for each run of the section, and a
    column for each reading.

    Each duration includes the cost of one clock reading. A stage that occurs twice per unit has two
    durations per unit.
    """
    durations: dict[str, list[NDArray[np.int64]]] = {}
    for section, clock_values in zip(script.sections, readings, strict=True):
        between_readings = np.diff(clock_values, axis=1).T  # a row for each stage
        # By rows, in order. The first stage is ``clock``, the time between two readings with
        # nothing between them.
        for name, times in zip(stage_names(section), between_readings, strict=True):
            # ``clock``, and maybe other stages, are in several sections.
            durations.setdefault(name, []).append(times)
    return {name: np.concatenate(parts) for name, parts in durations.items()}


def compile_python(script: Script) -> Issue:
    """A plain Python function ``issue(n)`` that runs the loop for n units and uses only local
    variables.
    """
    return _defined(lines_without_clock(script), script.names)


def compile_python_stages(script: Script) -> Stages:
    """A function ``stages(n)`` that runs the loop of ``compile_python`` with readings of
    ``time.perf_counter_ns`` around each stage (a named part of a unit), and returns the durations
    by stage, ns.
    """
    # Each run of a section (a part of the loop that is timed separately) appends its readings as a
    # row, with the function keep0, keep1, ...
    rows_of_sections: list[list[tuple[int, ...]]] = [[] for _ in script.sections]
    names = {**script.names, "clock": perf_counter_ns}
    for number, rows in enumerate(rows_of_sections):
        names[f"keep{number}"] = rows.append

    # Here reading i is the variable ``ti`` of the loop, whatever the section.
    def read(section: int, reading: int) -> str:
        return f"t{reading} = clock()"

    def keep(section: int, readings: int) -> str:
        values = ", ".join([f"t{reading}" for reading in range(readings)])
        return f"keep{section}(({values},))"

    # ``_defined``: the function whose text is these lines, with ``names`` as local variables.
    loop = _defined(lines_with_clock(script, read, keep), names)
    counts = reading_counts(script)

    def stages(n: int) -> dict[str, NDArray[np.int64]]:
        """Run n units, and return the durations by stage, ns."""
        for rows in rows_of_sections:
            rows.clear()  # what an earlier call of this function has left
        loop(n)
        readings = []
        for rows, count in zip(rows_of_sections, counts, strict=True):
            # A row for each run of the section; none if it did not run.
            readings.append(np.array(rows, np.int64).reshape(-1, count))
        return stage_durations(script, readings)

    return stages


def _nest(script: Script, blocks: Sequence[Sequence[str]]) -> list[str]:
    """The lines of the whole loop: the ``for`` statements around the lines of each section of the
    script, which are the ``blocks``.

    In the text, ``n`` is the number of units, ``u`` the index of a unit, and ``g`` that of the
    first unit of a group, which is also what ``u`` is in head and tail. The last group may be
    smaller than the others. ``pass`` makes a loop without statements valid.
    """
    # ``per``: units in a group; 0: all are one. Where each unit is a group, the script has one
    # section. ``_in`` indents lines.
    if script.per == 1:
        return ["for u in range(n):", *_in([*blocks[0], "pass"])]
    head, body, tail = blocks
    all_units_are_one_group = script.per == 0
    if all_units_are_one_group:
        units = ["for u in range(n):", *_in(body)] if body else []
        # Without a body the loop over units would do nothing, for n turns.
        return ["u = 0", *head, *units, "u = 0", *tail]
    group = [
        "u = g",
        *head,
        f"for u in range(g, min(g + {script.per}, n)):",
        *_in([*body, "pass"]),
        "u = g",
        *tail,
    ]
    return [f"for g in range(0, n, {script.per}):", *_in(group)]


def _in(lines: Sequence[str]) -> list[str]:
    """The lines, indented by one level."""
    return ["    " + line for line in lines]


def _defined(lines: Sequence[str], names: Mapping[str, Any]) -> Issue:
    """The function ``issue(n)`` that runs these lines. ``names``: the objects that the lines use.
    Each becomes a keyword parameter with the object as its default: so it is a local variable in
    the loop, which Python reads faster than a global one.
    """
    scope = dict(names)
    parameters = ["n"]
    if names:
        parameters += ["*", *(f"{name}={name}" for name in names)]
    text = "\n".join([f"def issue({', '.join(parameters)}):", *_in(lines)])
    # The name in <> stands for a file in tracebacks.
    exec(compile(text, "<overhead loop>", "exec"), scope)
    issue: Issue = scope["issue"]
    return issue
