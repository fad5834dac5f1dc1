"""The key figures: fourteen lines, each of one stack and one caller, the same on every machine.

A figure that a machine does not have is missing with a reason; no other stack or caller stands in
for it.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal

import msgspec

from overhead.reading.missing_values import missing_figure, missing_stack, why
from overhead.reading.next_run import FigureClass, class_of, next_run
from overhead.reading.precision import mode_of, two_speeds
from overhead.reading.view import TargetLabel, TargetView, View, parameter_texts, with_fields
from overhead.results import (
    Caller,
    Pattern,
    Record,
    Scalar,
    Value,
    Why,
    about,
    because,
    key_figure_lines,
    ratio,
)

NodeCondition = Literal["", "alone", "beside-others"]
"""Of a node of a graph, which has two speeds: whether other processes held the GPU while it was
measured.
"""


@dataclasses.dataclass(frozen=True)
class KeyFigure:
    """A key figure: one of the few numbers that sum up a run, the same on every machine. ``key``:
    its name. ``measured``: its value, with the unit ``ns`` or ``share`` (0.46 is 46 %).

    ``speeds``: both, in ns, of a figure with two. ``reason``: why there is no value; with one its
    status, if that is not ``ok``, and why. ``record`` is what was measured, ``of`` its target.
    ``next_run``: the figure with the range in which another run would put it, ns. ``spread_class``:
    the class of its spread between runs; None for differences and ratios. ``limit``: "host" or
    "device", what bounds a cost; '' for the rest.
    """

    key: str
    measured: Value | None = None
    speeds: tuple[Value, ...] = ()
    reason: Why = ""
    condition: NodeCondition = ""
    record: Record | None = None
    of: TargetLabel | None = None
    next_run: Value | None = None
    spread_class: FigureClass | None = None
    limit: str = ""


@dataclasses.dataclass(frozen=True)
class _Line:
    """A line of the list. Without ``pattern`` it is of the base case of the stack, with ``caller``.

    ``compared``: the figure is of this named comparison of the case with another, else of the case.
    """

    key: str
    stack: str
    caller: Caller = "binding"
    figure: str = "complete"
    pattern: Pattern | None = None
    workload: str = "step"
    params: dict[str, Scalar] = dataclasses.field(default_factory=dict)
    compared: str = ""


@functools.cache
def _lines() -> tuple[_Line, ...]:
    return msgspec.convert(key_figure_lines(), tuple[_Line, ...])


def key_figures(view: View) -> list[KeyFigure]:
    """All fourteen lines in their order, whatever the file holds."""
    return [_key_figure(view, line) for line in _lines()]


def overstatement(record: Record, figure: str) -> Value | None:
    """By which factor a single timing overstates the cost of a unit in this case: 4.0 is four
    times. ``figure``: the name of the timing, such as ``naive`` (one unit and its wait).

    None without two values above zero. It has no interval where an end of it is not known.
    """
    times = ratio(record.measured(figure), record.measured("complete"))
    # ``bounded``: both ends of the interval are known.
    if times is None or times.bounded:
        return times
    return dataclasses.replace(times, low=None, high=None)


def _key_figure(view: View, line: _Line) -> KeyFigure:
    """The key figure that this line of the list describes, of this run; one without a value says
    why.

    A line of a named comparison takes its value from there: what one case saves beside another.
    """
    # First the case that the line is of, ...
    target = view.best(line.stack)
    # ``step`` is the small kernel that all stacks run; other work says nothing general of a stack.
    if target is None or not target.has_step:
        why_missing = missing_stack(view.fingerprint, line.stack).why
        return KeyFigure(line.key, reason=about(line.stack, why_missing))
    record = _case_of_line(target, line)
    if record is None:
        return KeyFigure(line.key, of=target.named, reason=_not_measured(line))
    made = KeyFigure(line.key, record=record, of=target.named)
    # ... then its value: of the case itself, or of its comparison with another case ...
    source = view.comparison(line.compared, record.key) if line.compared else record
    if source is None:
        return dataclasses.replace(made, reason=because("not-compared-in-this-run"))
    figure = source.figure(line.figure)
    if figure is None:
        return dataclasses.replace(made, reason=why(record, line.figure))
    value = figure.measured
    if value is None:
        return dataclasses.replace(made, reason=missing_figure(figure, record).why)
    # The lines that compare tell a share that is saved, not how many times as long it takes.
    if value.unit == "ratio":
        value = value.share_saved
    # ... and last what a reader must know beside it, such as why it is noisy.
    reason = "" if value.status == "ok" else about(value.status, value.reason)
    # The two costs of a case that ran at two speeds; else empty.
    speeds = two_speeds(figure)
    condition: NodeCondition = ""
    # A node of a graph ran at one of its two speeds: which one depends on other processes.
    if line.pattern == "replay" and not speeds:
        condition = _condition(view, target)
    made = dataclasses.replace(made, measured=value, reason=reason, condition=condition)
    # How far two runs differ is known for figures of one case, not for differences and ratios.
    if line.compared:
        return made
    spread_class = class_of(record, line.figure)
    limit = ""
    if line.figure == "complete":
        # The classes are ``host``, ``device`` and ``submission`` (all units in one submission).
        limit = "host" if spread_class == "host" else "device"
    return dataclasses.replace(
        made,
        speeds=tuple(mode_of(figure, mode) for mode in speeds),
        next_run=next_run(record, view.fingerprint.machine, line.figure),
        spread_class=spread_class,
        limit=limit,
    )


def _condition(view: View, target: TargetView) -> NodeCondition:
    """Whether other stacks' processes were open on the GPU while this target was measured."""
    for other in view.executing:
        if other.key != target.key and other.first.api != "CPU" and not other.software:
            return "beside-others"
    return "alone"


def _not_measured(line: _Line) -> Why:
    """The reason of a key figure whose case was not measured: it names the caller, or the whole
    case, as the same pattern of another workload may have been measured.
    """
    if line.pattern is None:
        return because("caller-not-measured", caller=line.caller)
    case = " ".join([line.workload, line.pattern, *parameter_texts(line.params)])
    return because("case-not-measured", case=case, caller=line.caller)


def _case_of_line(target: TargetView, line: _Line) -> Record | None:
    """The measured case of the target that a key figure is of; None where it was not measured.

    A line without a pattern is of the target's base case, by its caller. Another is of the first
    case of its pattern and workload that has no parameter beside the line's.
    """
    by_caller = with_fields(target.records, caller=line.caller)
    if line.pattern is None:
        # The base case with another caller differs in nothing else (``varied`` is empty).
        for record in with_fields(by_caller, pattern=target.base.pattern):
            if not target.varied(record):
                return record
        return None
    for record in with_fields(by_caller, pattern=line.pattern, workload=line.workload):
        # Each of its parameters is among those of the line, with the same value.
        has_no_other_params = record.params.items() <= line.params.items()
        if has_no_other_params:
            return record
    return None
