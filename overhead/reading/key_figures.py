"""The key figures: fourteen lines, each of one stack and one caller, the same on every machine.

A figure that a machine does not have is missing with a reason; no other stack or caller stands in for it.
"""

from __future__ import annotations

import dataclasses
import functools

import msgspec

from overhead.reading.format import MICRO, micro, micro_of, percent, percent_spread, time_spread, two_speeds
from overhead.reading.missing_values import missing_figure, missing_stack, why
from overhead.reading.next_run import FigureClass, class_of, next_run
from overhead.reading.view import CALLER_WORDS, TargetView, View, with_fields, words
from overhead.results import Caller, Pattern, Record, Scalar, Value, Why, about, key_figure_lines, ratio, together


@dataclasses.dataclass(frozen=True)
class KeyFigure:
    """One line. ``measured``: its value, with the unit ``ns`` or ``share`` (0.46 is 46 %).

    ``text`` is ready to print, "missing" where there is no value; then ``reason`` says why. With a value, ``reason`` is
    its status or condition, a colon, and details. ``record`` is what was measured, ``of`` the target's label.
    ``next_run``: where another run would put it, ns. ``spread_class``: the class of its
    spread between runs; None for differences and ratios. ``limit``: "host" or "device", what bounds a cost; '' for the
    rest.
    """

    label: str
    text: str = "missing"
    measured: Value | None = None
    reason: Why = ""
    record: Record | None = None
    of: str = ""
    next_run: tuple[float, float] | None = None
    spread_class: FigureClass | None = None
    limit: str = ""

    @property
    def with_interval(self) -> str:
        """The text with its interval: ``26.3 µs (25.9 to 26.7)``; the text alone where there is not one value."""
        if self.measured is None or " or " in self.text:
            return self.text
        return (percent_spread if self.measured.unit == "share" else time_spread)(self.measured)


@dataclasses.dataclass(frozen=True)
class _Line:
    """A line of the list. Without ``pattern`` it is of the base case of the stack, with ``caller``.

    ``compared``: the figure is of this named comparison of the case with another, else of the case.
    """

    label: str
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
    """A single timing, such as ``naive`` (T(1), one unit and its wait), over the cost of a unit: 4.0 is four times.

    None without two values above zero. It has no interval where an end of it is not known.
    """
    found = ratio(record.measured(figure), record.measured("complete"))
    return found if found is None or found.bounded else dataclasses.replace(found, low=None, high=None)


def _key_figure(view: View, line: _Line) -> KeyFigure:
    target = view.best(line.stack)  # other workloads say nothing general about a stack
    if target is None or not target.has_step:
        return KeyFigure(line.label, reason=about(line.stack, missing_stack(view.fingerprint, line.stack).why))
    record = _record(target, line)
    source = view.comparison(line.compared, record.key) if record is not None and line.compared else record
    made = KeyFigure(line.label, record=record, of=target.label)
    if record is None or source is None:
        compared = "not compared with another case in this run"
        return dataclasses.replace(made, reason=compared if record else _not_measured(line))
    figure = source.figure(line.figure)
    if figure is None or (found := figure.measured) is None:
        return dataclasses.replace(
            made, reason=missing_figure(figure, record).why if figure else why(record, line.figure)
        )
    share = found.unit == "ratio"
    found = found.share_saved if share else found
    reasons = ["" if found.status == "ok" else about(found.status, found.reason)]
    if line.pattern == "replay" and not two_speeds(figure):
        others = any(t.key != target.key and t.first.api != "CPU" and not t.software for t in view.executing)
        condition = "beside other processes" if others else "alone on the GPU"
        reasons.append(about(condition, "a node has two speeds (docs/cuda.md)"))
    made = dataclasses.replace(made, measured=found, reason=together(*reasons))
    if share or line.compared:
        return dataclasses.replace(made, text=percent(found) if share else f"{micro(figure)} {MICRO}")
    own, speeds = class_of(record, line.figure), two_speeds(figure)
    return dataclasses.replace(
        made,
        text=f"{' or '.join(map(micro_of, speeds)) if speeds else micro(figure)} {MICRO}",
        next_run=next_run(record, view.fingerprint.machine, line.figure),
        spread_class=own,
        limit="" if line.figure != "complete" else "host" if own == "host" else "device",
    )


def _not_measured(line: _Line) -> str:
    """Which case of the line was not measured; the same pattern of another workload may have been."""
    if line.pattern is None:
        return f"not measured {CALLER_WORDS[line.caller]}"
    which = " ".join([line.workload, line.pattern, *words(line.params)])
    return f"the case {which} was not measured {CALLER_WORDS[line.caller]}"


def _record(target: TargetView, line: _Line) -> Record | None:
    """The record with no other parameters than the line's, or the base case's; None where it was not measured."""
    if line.pattern is None:
        same = with_fields(target.records, caller=line.caller, pattern=target.base.pattern)
        return next((r for r in same if not target.varied(r)), None)
    same = with_fields(target.records, caller=line.caller, pattern=line.pattern, workload=line.workload)
    return next((r for r in same if r.params.items() <= line.params.items()), None)
