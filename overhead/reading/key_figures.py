"""The key figures: fourteen lines, each of one stack and one caller, the same on every machine.

A figure that a machine does not have is missing with a reason; no other stack or caller stands in for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from overhead.reading.format import (
    MICRO,
    factor,
    factor_spread,
    micro,
    micro_of,
    percent,
    percent_spread,
    time_spread,
    two_speeds,
)
from overhead.reading.host_shares import python_share
from overhead.reading.missing_values import absent_stacks, missing_figure, why
from overhead.reading.next_run import next_run_text
from overhead.reading.view import CALLER_WORDS, TargetView, View
from overhead.results import Caller, Figure, Fingerprint, Record, Value, ratio

_SMOKE_TEST = "a smoke test: on a software adapter the device's work shares cores with the caller"


@dataclasses.dataclass(frozen=True)
class KeyFigure:
    """One line. ``measured``: its unit is ``ns``, ``share`` (0.46 is 46 %) or ``ratio``.

    ``text`` is ready to print, "missing" where there is no value; then ``reason`` says why. ``record`` is the record's
    key, ``of`` the target's label. With a value, ``reason`` is its status or condition, a colon, and details.
    ``next_run``: where another run would put it, in microseconds without unit. ``bound``: that the device limits it,
    and the CPU time of it; '' where the host alone does.
    """

    label: str
    text: str
    measured: Value | None = None
    reason: str = ""
    record: str = ""
    of: str = ""
    next_run: str = ""
    bound: str = ""

    @property
    def with_interval(self) -> str:
        """The text with its interval, where the figure is one value with an interval."""
        if self.measured is None or " or " in self.text:
            return self.text
        shown = {"share": percent_spread, "ratio": factor_spread}.get(self.measured.unit, time_spread)
        return shown(self.measured)


def key_figures(fingerprint: Fingerprint) -> list[KeyFigure]:
    """All lines, in order, whatever the file holds."""
    return key_figures_of(View(fingerprint))


def key_figures_of(view: View) -> list[KeyFigure]:
    """The same, from a view."""
    return [make(view, label) for label, make in _LIST]


def _base(stack: str, caller: Caller, figure: str = "complete") -> Callable[[View, str], KeyFigure]:
    """A figure of the stack's base case by that caller."""

    def make(view: View, label: str) -> KeyFigure:
        target = _stepped(view, stack)
        if target is None:
            return _absent(view, label, stack)
        record = _by_caller(target, caller)
        return _not_by(label, target, caller) if record is None else _time(view, label, target, record, figure)

    return make


def _fused(stack: str, caller: Caller) -> Callable[[View, str], KeyFigure]:
    def make(view: View, label: str) -> KeyFigure:
        target = _stepped(view, stack)
        if target is None:
            return _absent(view, label, stack)
        found = [r for r in target.records if (r.pattern, r.workload, r.caller) == ("fused", "step", caller)]
        if not found:
            run = _to_measure(stack, "fused")
            return _missing(label, f"not measured {CALLER_WORDS[caller]} as one kernel; {run}", target)
        return _time(view, label, target, min(found, key=lambda r: bool(target.varied(r))), "complete")

    return make


def _submit(view: View, label: str) -> KeyFigure:
    target = _stepped(view, "vulkan")
    if target is None:
        return _absent(view, label, "vulkan")
    record = _by_caller(target, "native")
    comparison = view.comparison("marginal", record.key) if record is not None else None
    figure = comparison.figure("per_submit") if comparison is not None else None
    if record is None or figure is None:
        return _missing(label, f"not measured; {_to_measure('vulkan', 'per-submit', 'one-pass')}", target)
    return _of_figure(label, target, record, figure)


def _python_share(view: View, label: str) -> KeyFigure:
    target = _stepped(view, "dawn")
    if target is None:
        return _absent(view, label, "dawn")
    top, compiled = _by_caller(target, "binding"), _by_caller(target, "native")
    if top is None or compiled is None:
        return _not_by(label, target, "binding" if top is None else "native")
    lacking = next((r for r in (top, compiled) if not r.measured("host")), None)
    if lacking is not None:
        return _missing(label, why(lacking, "host"), target, lacking)
    found = python_share(top, compiled)
    if found is None:
        return _missing(label, "the two callers were measured on different boards, or one time is not positive", target)
    cautions = [_caution(host) for r in (top, compiled) if (host := r.measured("host"))]
    caution = "; ".join(dict.fromkeys(c for c in (*cautions, _SMOKE_TEST if target.software else "") if c))
    return KeyFigure(label, percent(found), found, caution, top.key, target.label)


def _node(view: View, label: str) -> KeyFigure:
    """A node of the driver's graph: both speeds where the run met both, else the condition that it was met in."""
    target = view.best("cuda-graph")
    if target is None:
        return _absent(view, label, "cuda-graph")
    found = [
        r
        for r in target.records
        if (r.pattern, r.workload) == ("replay", "step") and r.params.get("maker", "driver") == "driver"
    ]
    if not found:
        return _missing(label, f"not measured; {_to_measure('cuda-graph', 'replay')}", target)
    made = _time(view, label, target, found[0], "complete")
    figure = found[0].figure("complete")
    if figure is None or made.measured is None:
        return made
    if speeds := two_speeds(figure):
        return dataclasses.replace(made, text=f"{' or '.join(map(micro_of, speeds))} {MICRO}")
    others = any(t.key != target.key and t.first.api != "CPU" and not t.software for t in view.executing)
    condition = "beside other processes" if others else "alone on the GPU"
    reason = f"{condition}: a node has two speeds (docs/cuda.md), and a process alone meets the slower one more often"
    return dataclasses.replace(made, reason="; ".join(part for part in (made.reason, reason) if part))


def _overstatement(view: View, label: str) -> KeyFigure:
    target = _stepped(view, "dawn")
    if target is None:
        return _absent(view, label, "dawn")
    record = _by_caller(target, "binding")
    if record is None:
        return _not_by(label, target, "binding")
    found = overstatement(record, "naive")
    if found is None:
        return _missing(label, "no slope or no single timed dispatch has a value", target, record)
    return KeyFigure(label, factor(found), found, _caution(found), record.key, target.label)


def _stepped(view: View, stack: str) -> TargetView | None:
    """The stack's best target, if it ran the step. Other workloads say nothing general about a stack."""
    target = view.best(stack)
    return target if target is not None and target.stepped else None


def _by_caller(target: TargetView, caller: Caller) -> Record | None:
    """The target's base case by that caller, with the base's parameters; None where it was not measured."""
    base = target.base
    return next(
        (r for r in target.records if r.caller == caller and r.pattern == base.pattern and not target.varied(r)), None
    )


def _to_measure(stack: str, *patterns: str) -> str:
    """How to get the figure, in words: ``to measure it: overhead run -p STACK --pattern PATTERN``."""
    return " ".join([f"to measure it: overhead run -p {stack}", *(f"--pattern {name}" for name in patterns)])


def _not_by(label: str, target: TargetView, caller: Caller) -> KeyFigure:
    run = _to_measure(target.stack, "per-submit")
    return _missing(label, f"not measured {CALLER_WORDS[caller]}; {run}", target)


def overstatement(record: Record, figure: str) -> Value | None:
    """A one-shot figure (``naive``, ``naive_idle``, ``legacy``) over the slope; None without two values above zero."""
    return ratio_of(record.figure(figure), record.figure("complete"))


def ratio_of(shot: Figure | None, slope: Figure | None) -> Value | None:
    """The ratio of two figures of one record, without an interval where an end is not known."""
    found = ratio(shot.measured if shot else None, slope.measured if slope else None)
    return found if found is None or found.bounded else dataclasses.replace(found, low=None, high=None)


def _time(view: View, label: str, target: TargetView, record: Record, name: str) -> KeyFigure:
    figure = record.figure(name)
    if figure is None:
        return _missing(label, why(record, name), target, record)
    made, bound = _of_figure(label, target, record, figure), _bound(record) if name == "complete" else ""
    return dataclasses.replace(made, next_run=next_run_text(record, view.fingerprint.machine, name), bound=bound)


def _bound(record: Record) -> str:
    """``bound by the device, CPU time 5.10 µs``; '' where the host alone is the limit or no GPU does the work."""
    limit = {"device": "bound by the device", "balanced": "bound by the device and the CPU"}.get(record.bound, "")
    host = record.figure("host")
    if not limit or record.software or record.api == "CPU" or host is None or not host.measured:
        return ""
    return f"{limit}, CPU time {micro(host)} {MICRO}"


def _of_figure(label: str, target: TargetView, record: Record, figure: Figure) -> KeyFigure:
    found = figure.measured
    if found is None:
        return _missing(label, missing_figure(figure, record).text, target, record)
    return KeyFigure(label, f"{micro(figure)} {MICRO}", found, _caution(found), record.key, target.label)


def _caution(of: Value) -> str:
    return "" if of.status == "ok" else of.status + (f": {of.reason}" if of.reason else "")


def _missing(label: str, reason: str, target: TargetView | None = None, record: Record | None = None) -> KeyFigure:
    return KeyFigure(
        label,
        "missing",
        reason=reason.removesuffix(": "),
        record=record.key if record else "",
        of=target.label if target else "",
    )


def _absent(view: View, label: str, stack: str) -> KeyFigure:
    """The line where the stack has no target that ran the step, with the reason from the run."""
    if view.best(stack) is not None:
        return _missing(label, f"not part of this run; {_to_measure(stack)} --workload step")
    known = absent_stacks(view.fingerprint, (stack,))
    if known:
        mend = f"; {known[0].mend}" if known[0].mend else ""
        return _missing(label, f"{known[0].stack}: {known[0].reason}{mend}")
    return _missing(label, f"{stack} was not part of this run; {_to_measure(stack)}")


_LIST: tuple[tuple[str, Callable[[View, str], KeyFigure]], ...] = (
    ("One operation, PyTorch, from Python", _base("torch", "binding")),
    ("One launch, CUDA driver, from Python", _base("cuda-driver", "binding")),
    ("One dispatch, raw Vulkan, from compiled code", _base("vulkan", "native")),
    ("One dispatch, Dawn, from compiled code", _base("dawn", "native")),
    ("One dispatch, Dawn, from Python", _base("dawn", "binding")),
    ("One dispatch, wgpu-native, from Python", _base("wgpu-native", "binding")),
    ("One dispatch, Chromium, from JavaScript", _base("chromium", "browser")),
    ("One submit, raw Vulkan, from compiled code", _submit),
    ("One dispatch and its wait, Dawn, from Python", _base("dawn", "binding", "naive")),
    ("Python's share of the host's time, Dawn", _python_share),
    ("One node of a CUDA graph, CUDA driver", _node),
    ("One fused step, CUDA driver, from Python", _fused("cuda-driver", "binding")),
    ("One fused step, WebGPU (Dawn), from Python", _fused("dawn", "binding")),
    ("A single timed dispatch overstates, Dawn, from Python", _overstatement),
)
