"""The key figures: twelve lines, the same on every machine; a missing value has a reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from overhead.reading.format import MICRO, bounds, factor, has_value, listed, micro, percent, valued
from overhead.reading.intervals import ratio, span
from overhead.reading.missing_values import absent_stacks, missing_figure, why
from overhead.reading.next_run import next_run_text
from overhead.reading.view import TargetView, View, named
from overhead.results import Figure, Fingerprint, Record

_GPU_STACKS = ("wgpu-native", "dawn", "vulkan", "cuda-driver", "torch", "chromium", "firefox", "safari")
"""Where one stack stands for the machine: the first of these that was measured."""
_BROWSERS = ("chromium", "firefox", "safari")
_GRAPH_STACKS = ("cuda-graph", "vulkan")
_SMOKE_TEST = "a smoke test: on a software adapter the device's work shares cores with the caller"
_FUSED_STACKS = ("wgpu-native", "dawn", "triton", "cupy", "vulkan", "cuda-driver", *_BROWSERS)


@dataclasses.dataclass(frozen=True)
class KeyFigure:
    """One of the twelve lines. ``value``, ``low``, ``high`` in ``unit``: ``ns``, ``share`` (0.46 is 46 %) or ``ratio``.

    ``text`` is ready to print, "missing" where there is no value; then ``reason`` says why. ``record`` is the record's
    key, ``of`` the target's label. ``next_run``: where another run would put it, in microseconds without unit.
    """

    label: str
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = "ns"
    reason: str = ""
    record: str = ""
    of: str = ""
    next_run: str = ""


def key_figures(fingerprint: Fingerprint) -> list[KeyFigure]:
    """The twelve lines, in order, whatever the file holds."""
    return key_figures_of(View(fingerprint))


def key_figures_of(view: View) -> list[KeyFigure]:
    """The same, from a view."""
    return [make(view, label) for label, make in _LIST]


def _dispatch(*stacks: str) -> Callable[[View, str], KeyFigure]:
    def make(view: View, label: str) -> KeyFigure:
        targets = _stepped(view, stacks)
        if not targets:
            return _absent(view, label, stacks)
        return _time(label, targets[0], targets[0].base, "complete")

    return make


def _stepped(view: View, stacks: tuple[str, ...]) -> list[TargetView]:
    """The best target of each stack, if it ran the step. Other workloads say nothing general about a stack."""
    return [t for t in view.best_of(stacks) if t.stepped]


def _pattern(pattern: str, *stacks: str) -> Callable[[View, str], KeyFigure]:
    def make(view: View, label: str) -> KeyFigure:
        found = [
            (t, r) for t in view.best_of(stacks) for r in t.records if r.pattern == pattern and r.workload == "step"
        ]
        if not found:
            reason = _absent(view, label, stacks).reason
            return _missing(
                label, f"no {pattern} case of the step was measured here" if _stepped(view, stacks) else reason
            )
        valued = [(t, r) for t, r in found if has_value(r.figure("complete"))]
        target, record = (valued or found)[0]
        return _time(label, target, record, "complete")

    return make


def _submit(view: View, label: str) -> KeyFigure:
    found = [
        (target, record, figure)
        for target in view.best_of(_GPU_STACKS)
        for record in target.records
        if (comparison := view.comparison("marginal", record.key)) is not None
        and (figure := named(comparison, "per_submit")) is not None
    ]
    if not found:
        return _missing(
            label, "no target ran the patterns that the fit needs: per-submit, per-k, per-pass and one-pass"
        )
    return _of_figure(label, *next((f for f in found if has_value(f[2])), found[0]))


def _wait(view: View, label: str) -> KeyFigure:
    return _representative(view, label, "fixed")


def _python_share(view: View, label: str) -> KeyFigure:
    for target in sorted(view.best_of(_GPU_STACKS), key=lambda t: t.software):
        compared = [(r, c) for r in target.records if (c := view.comparison("python-share", r.key)) is not None]
        record, comparison = compared[0] if compared else (None, None)
        figure = named(comparison, "ratio") if comparison else None
        if record is None or figure is None:
            continue
        callers = span(figure)
        if callers is None:
            return _missing(label, missing_figure(figure).text, target, record)
        if callers.value <= 0:
            return _missing(label, "the ratio of the two callers is not positive", target, record)
        value, low, high = callers.share_saved.over(1)
        caution = "; ".join(c for c in (_caution(figure), _SMOKE_TEST if target.software else "") if c)
        text = percent(value, low, high)
        return KeyFigure(label, text, value, low, high, "share", caution, record.key, target.label)
    return _missing(label, "no stack ran both its Python binding and a loop without the interpreter")


def _overstatement(view: View, label: str) -> KeyFigure:
    for target in _stepped(view, _GPU_STACKS):
        found = overstatement(target.base, "naive")
        if found is not None:
            value, low, high = found
            text = factor(value, low, high)
            return KeyFigure(label, text, value, low, high, "ratio", "", target.base.key, target.label)
    return _missing(label, "no GPU stack gave both a slope and a single timed dispatch")


def overstatement(record: Record, figure: str) -> tuple[float, float | None, float | None] | None:
    """A one-shot figure (``naive``, ``naive_idle``, ``legacy``) over the slope: value, low, high, or None."""
    return ratio_of(record.figure(figure), record.figure("complete"))


def ratio_of(shot: Figure | None, slope: Figure | None) -> tuple[float, float | None, float | None] | None:
    """Value, low and high of the ratio, low and high None where unknown; None without two values above zero."""
    found = ratio(span(shot), span(slope))
    return None if found is None else found.two_sided.over(1)


def _representative(view: View, label: str, figure: str) -> KeyFigure:
    """The figure of the first GPU stack that has a value, else the first stack's reason."""
    targets = _stepped(view, _GPU_STACKS)
    for target in targets:
        if has_value(target.base.figure(figure)):
            return _time(label, target, target.base, figure)
    return _time(label, targets[0], targets[0].base, figure) if targets else _absent(view, label, _GPU_STACKS)


def _time(label: str, target: TargetView, record: Record, name: str) -> KeyFigure:
    figure = record.figure(name)
    if figure is None:
        return _missing(label, why(record, name), target, record)
    return dataclasses.replace(_of_figure(label, target, record, figure), next_run=next_run_text(record, name))


def _of_figure(label: str, target: TargetView, record: Record, figure: Figure) -> KeyFigure:
    value = valued(figure)
    if value is None:
        return _missing(label, missing_figure(figure, record).text, target, record)
    text = f"{micro(figure)} {MICRO}"
    return KeyFigure(label, text, value, *bounds(figure), "ns", _caution(figure), record.key, target.label)


def _caution(figure: Figure) -> str:
    return "" if figure.status == "ok" else figure.status + (f": {figure.reason}" if figure.reason else "")


def _missing(label: str, reason: str, target: TargetView | None = None, record: Record | None = None) -> KeyFigure:
    return KeyFigure(
        label, "missing", reason=reason.removesuffix(": "), record=record.key if record else "",
        of=target.label if target else "",
    )  # fmt: skip


def _absent(view: View, label: str, stacks: tuple[str, ...]) -> KeyFigure:
    """The line where none of the stacks has a target that ran the step, with the reason from the run."""
    if view.best_of(stacks):
        return _missing(label, "the step was not part of this run")
    known = absent_stacks(view.fingerprint, stacks)
    if known:
        mend = f"; {known[0].mend}" if known[0].mend else ""
        return _missing(label, f"{known[0].stack}: {known[0].reason}{mend}")
    return _missing(label, f"{listed(list(stacks[:3]), 'or')} was not part of this run")


_LIST: tuple[tuple[str, Callable[[View, str], KeyFigure]], ...] = (
    ("One operation, PyTorch", _dispatch("torch")),
    ("One launch, CUDA driver", _dispatch("cuda-driver")),
    ("One dispatch, raw Vulkan", _dispatch("vulkan")),
    ("One dispatch, wgpu-native", _dispatch("wgpu-native")),
    ("One dispatch, Dawn", _dispatch("dawn")),
    ("One dispatch, browser", _dispatch(*_BROWSERS)),
    ("One submit", _submit),
    ("One wait", _wait),
    ("Python's share of the host's time", _python_share),
    ("One graph node", _pattern("replay", *_GRAPH_STACKS)),
    ("One fused step", _pattern("fused", *_FUSED_STACKS)),
    ("A single timed dispatch overstates", _overstatement),
)
