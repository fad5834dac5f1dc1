"""The key figures: fourteen lines, each of one stack and one caller, the same on every machine.

A figure that a machine does not have is missing with a reason; no other stack or caller stands in for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from overhead.reading.format import (
    MICRO,
    factor_spread,
    micro,
    micro_of,
    percent,
    percent_spread,
    time_spread,
    two_speeds,
)
from overhead.reading.host_shares import host_shares
from overhead.reading.missing_values import absent_stacks, missing_figure, why
from overhead.reading.next_run import next_run_text
from overhead.reading.view import CALLER_WORDS, TargetView, View, with_fields
from overhead.results import Caller, Figure, Record, Scalar, Value, ratio

_SMOKE_TEST = "a smoke test: on a software adapter the device's work shares cores with the caller"


@dataclasses.dataclass(frozen=True)
class KeyFigure:
    """One line. ``measured``: its value, with the unit ``ns``, ``share`` (0.46 is 46 %) or ``ratio``.

    ``text`` is ready to print, "missing" where there is no value; then ``reason`` says why. ``record`` is the record's
    key, ``of`` the target's label. With a value, ``reason`` is its status or condition, a colon, and details.
    ``figure``: the name of the record's figure; '' for a difference or a ratio. ``next_run``: where another run would
    put it, in microseconds without unit. ``bound``: that the device limits it, and the CPU time of it; '' where the
    host alone does.
    """

    label: str
    text: str
    measured: Value | None = None
    reason: str = ""
    record: str = ""
    of: str = ""
    figure: str = ""
    next_run: str = ""
    bound: str = ""

    @property
    def with_interval(self) -> str:
        """The text with its interval: ``26.3 µs (25.9 to 26.7)``; the text alone where there is not one value."""
        if self.measured is None or " or " in self.text:
            return self.text
        shown = {"share": percent_spread, "ratio": factor_spread}.get(self.measured.unit, time_spread)
        return shown(self.measured)


def missing_key_figures(figures: Iterable[KeyFigure]) -> list[str]:
    """A sentence for each reason why figures have no value, with their labels."""
    by_reason: dict[str, list[str]] = {}
    for k in figures:
        if k.measured is None:
            by_reason.setdefault(k.reason, []).append(k.label)
    return [f"Missing: {'; '.join(labels)}: {reason}" for reason, labels in by_reason.items()]


@dataclasses.dataclass(frozen=True)
class _Line:
    """A line of the list: a label, and where its figure is.

    Without ``pattern`` it is a figure of the base case of the stack, with ``caller``. ``make`` forms what is no figure
    of a record.
    """

    label: str
    stack: str
    caller: Caller = "binding"
    figure: str = "complete"
    pattern: str = ""
    workload: str = "step"
    params: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)
    make: Callable[[View, TargetView], KeyFigure] | None = None


def key_figures(view: View) -> list[KeyFigure]:
    """All fourteen lines in their order, whatever the file holds."""
    made = []
    for line in _LIST:
        target = view.best(line.stack)  # other workloads say nothing general about a stack
        if target is None or not target.has_step:
            found = _absent(view, line.stack)
        else:
            found = line.make(view, target) if line.make is not None else _measured(view, target, line)
        made.append(dataclasses.replace(found, label=line.label))
    return made


def _measured(view: View, target: TargetView, line: _Line) -> KeyFigure:
    """The figure of the one record of that line."""
    record = _record(target, line)
    if record is None:
        return _not_by(target, line.caller, line.pattern or "per-submit")
    figure = record.figure(line.figure)
    if figure is None:
        return _missing(why(record, line.figure), target, record)
    made = _of_figure(target, record, figure)
    bound = _bound(record) if line.figure == "complete" else ""
    next_run = next_run_text(record, view.fingerprint.machine, line.figure)
    made = dataclasses.replace(made, figure=line.figure, next_run=next_run, bound=bound)
    return _with_speeds(view, target, made, figure) if line.pattern == "replay" else made


def _record(target: TargetView, line: _Line) -> Record | None:
    """The record with no other parameters than the line's, or the base case's; None where it was not measured."""
    if not line.pattern:
        return _by_caller(target, line.caller)
    same = with_fields(target.records, caller=line.caller, pattern=line.pattern, workload=line.workload)
    return next((r for r in same if r.params.items() <= line.params.items()), None)


def _submit(view: View, target: TargetView) -> KeyFigure:
    record = _by_caller(target, "native")
    comparison = view.comparison("marginal", record.key) if record is not None else None
    figure = comparison.figure("per_submit") if comparison is not None else None
    if record is None or figure is None:
        return _missing(f"not measured; {_to_measure('vulkan', 'per-submit', 'one-pass')}", target)
    return _of_figure(target, record, figure)


def _python_share(view: View, target: TargetView) -> KeyFigure:
    top, compiled = _by_caller(target, "binding"), _by_caller(target, "native")
    if top is None or compiled is None:
        return _not_by(target, "binding" if top is None else "native")
    for record in (top, compiled):
        if record.measured("host") is None:
            return _missing(why(record, "host"), target, record)
    found = next((each.python for each in view.once(host_shares) if each.top.key == top.key), None)
    if found is None:
        return _missing("the two callers have no rounds in common in this file", target)
    caution = "; ".join(filter(None, [_caution(found), _SMOKE_TEST if target.software else ""]))
    return KeyFigure("", percent(found), found, caution, top.key, target.label)


def _with_speeds(view: View, target: TargetView, made: KeyFigure, figure: Figure) -> KeyFigure:
    """A graph's node: both speeds where the run met both, else the condition that it was met in."""
    if made.measured is None:
        return made
    if speeds := two_speeds(figure):
        return dataclasses.replace(made, text=f"{' or '.join(map(micro_of, speeds))} {MICRO}")
    others = any(t.key != target.key and t.first.api != "CPU" and not t.software for t in view.executing)
    condition = "beside other processes" if others else "alone on the GPU"
    reason = f"{condition}: a node has two speeds (docs/cuda.md), and a process alone meets the slower one more often"
    return dataclasses.replace(made, reason="; ".join(part for part in (made.reason, reason) if part))


def _by_caller(target: TargetView, caller: Caller) -> Record | None:
    """The target's base case by that caller, with the base's parameters; None where it was not measured."""
    same = with_fields(target.records, caller=caller, pattern=target.base.pattern)
    return next((r for r in same if not target.varied(r)), None)


def _to_measure(stack: str, *patterns: str) -> str:
    """How to get the figure, in words: ``to measure it: overhead run -p STACK --pattern PATTERN``."""
    return " ".join([f"to measure it: overhead run -p {stack}", *(f"--pattern {name}" for name in patterns)])


def _not_by(target: TargetView, caller: Caller, pattern: str = "per-submit") -> KeyFigure:
    return _missing(f"not measured {CALLER_WORDS[caller]}; {_to_measure(target.stack, pattern)}", target)


def overstatement(record: Record, figure: str) -> Value | None:
    """A single timing, such as ``naive`` (T(1), one unit and its wait), over the cost of a unit: 4.0 is four times.

    None without two values above zero. It has no interval where an end of it is not known.
    """
    found = ratio(record.measured(figure), record.measured("complete"))
    return found if found is None or found.bounded else dataclasses.replace(found, low=None, high=None)


def _bound(record: Record) -> str:
    """``bound by the device, CPU time 5.10 µs``; '' where the host alone is the limit or no GPU does the work."""
    limit = {"device": "bound by the device", "balanced": "bound by the device and the CPU"}.get(record.bound, "")
    host = record.figure("host")
    if not limit or record.software or record.api == "CPU" or host is None or not host.measured:
        return ""
    return f"{limit}, CPU time {micro(host)} {MICRO}"


def _of_figure(target: TargetView, record: Record, figure: Figure) -> KeyFigure:
    found = figure.measured
    if found is None:
        return _missing(missing_figure(figure, record).text, target, record)
    return KeyFigure("", f"{micro(figure)} {MICRO}", found, _caution(found), record.key, target.label)


def _caution(of: Value) -> str:
    return "" if of.status == "ok" else of.status + (f": {of.reason}" if of.reason else "")


def _missing(reason: str, target: TargetView | None = None, record: Record | None = None) -> KeyFigure:
    key, of = record.key if record else "", target.label if target else ""
    return KeyFigure("", "missing", reason=reason.removesuffix(": "), record=key, of=of)


def _absent(view: View, stack: str) -> KeyFigure:
    """The line where the stack has no target that ran the step, with the reason from the run."""
    if view.best(stack) is not None:
        return _missing(f"not part of this run; {_to_measure(stack)} --workload step")
    for known in absent_stacks(view.fingerprint, (stack,)):
        return _missing(f"{known.stack}: {known.reason}{f'; {known.mend}' if known.mend else ''}")
    return _missing(f"{stack} was not part of this run; {_to_measure(stack)}")


_FUSED: dict[str, Any] = {"pattern": "fused", "workload": "recurrence", "params": {"elements": 4096}}
_LIST = (
    _Line("One operation, NumPy, from Python", "numpy"),
    _Line("One operation, PyTorch, from Python", "torch"),
    _Line("One launch, CUDA driver, from Python", "cuda-driver"),
    _Line("One dispatch, Dawn, from Python", "dawn"),
    _Line("One dispatch, wgpu-native, from Python", "wgpu-native"),
    _Line("One dispatch, Chromium, from JavaScript", "chromium", "browser"),
    _Line("One dispatch, Dawn, from compiled code", "dawn", "native"),
    _Line("One dispatch, raw Vulkan, from compiled code", "vulkan", "native"),
    _Line("One node of a CUDA graph, CUDA driver", "cuda-graph", pattern="replay", params={"maker": "driver"}),
    _Line("One step in a fused kernel, CUDA driver, from Python", "cuda-driver", **_FUSED),
    _Line("One step in a fused kernel, Dawn, from Python", "dawn", **_FUSED),
    _Line("One submit, raw Vulkan, from compiled code", "vulkan", make=_submit),
    _Line("One dispatch and its wait, Dawn, from Python", "dawn", figure="naive"),
    _Line("Python's share of the host's time, Dawn", "dawn", make=_python_share),
)
