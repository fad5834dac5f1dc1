"""What a synchronisation costs: each way in which a host waits for torch or reads a value, on each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.reading.format import MICRO, factor_spread, listed, number, percent, percent_spread, plain, spread
from overhead.reading.host_shares import BELOW_ZERO
from overhead.reading.missing_values import why
from overhead.reading.synchronising import Synchronised, synchronised
from overhead.reading.training import Training, trainings
from overhead.reading.view import View
from overhead.report.core.dots import DotRow, Mark, dot_rows, mark, shared_axis
from overhead.report.core.draw import INK, ONE_LINE_INCHES, canvas, marker_legend, small_titles, unit_below
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Record, Value

_ACT_TITLES = {
    "item": ".item()",
    "cpu": ".cpu()",
    "cpu-pinned": "copy to pinned memory",
    "branch": "a branch on a value",
    "nonzero": "nonzero",
    "stream": "stream synchronize",
    "device": "device synchronize",
    "event": "spinning event synchronize",
    "event-blocking": "blocking event synchronize",
    "h2d": "copy to the device",
    "h2d-pinned": "pinned copy to the device",
}
_STEP_TITLES = {"step": "256-element step", "mlp-forward": "MLP forward pass", "mlp-train": "MLP training step"}
_RHYTHM_MARKERS = {1: "o", 4: "v", 10: "s", 100: "D"}
_OTHER_MARKER = "^"
_NO_EFFECT = "adds nothing measurable"
_SHAPES_MARKERS = {"fixed": "o", "varying": "s"}
_LEAST_ACTS_DRAWN = 2
"""Acts of a panel at least; the sentence says the same of one."""
_Groups = dict[tuple[str, str], list[Synchronised]]
"""By target and step."""


@register("synchronisation", "What a synchronisation costs", 65, page="synchronisation", any_run=True)
def synchronisation(view: View) -> Iterator[Part]:
    found = synchronised(view)
    groups: _Groups = {}
    for s in found:
        groups.setdefault((s.target.short, step_of(s.record)), []).append(s)
    costed = {key: group for key, group in groups.items() if any(s.cost for s in group)}
    if costed:
        yield Text([sentence(*key, group) for key, group in costed.items()])
    clear = {key: [s for s in group if _resolved(s)] for key, group in costed.items()}
    if drawn := {key: group for key, group in clear.items() if len({s.act for s in group}) >= _LEAST_ACTS_DRAWN}:
        yield _drawing(drawn)
    if unclear := _unresolved(costed):
        yield Text(unclear)
    training = trainings(found)
    if drawn_training := [t for t in training if t.forward and t.forward_alone is not None and t.alone is not None]:
        yield Text(apart(drawn_training))
        yield _training_drawing(drawn_training)
    if found:
        yield _table(groups)
    if training:
        yield _training_table(training)
    captured = [r for t in view.executing for r in t.records if t.stack == "cuda-graph" and verdicts(r)]
    if captured:
        yield Text([in_graph(verdicts(captured[0]))])
        yield Table(
            "Synchronisations in a captured step",
            ["act", "in a CUDA graph"],
            [[_act(name), plain(text)] for name, text in verdicts(captured[0]).items()],
            folded=True,
        )


def step_of(record: Record) -> str:
    """The step in words: workload, shapes where they vary, and what else of it is a choice."""
    name = _STEP_TITLES.get(record.workload, plain(record.workload, 40))
    chosen = [str(record.params[k]) for k in ("alloc", "operand") if record.params.get(k) in ("allocating", "tensor")]
    varying = ["varying shapes"] if record.params.get("shapes") == "varying" else []
    return ", ".join([name, *chosen, *varying])


def sentence(target: str, step: str, group: list[Synchronised]) -> str:
    """The cheapest and the dearest act after every step, and what doing it more rarely leaves of it."""
    costs = [(s, s.cost, slow) for s in group if s.cost is not None and (slow := s.slowdown) is not None]
    each = sorted((c for c in costs if c[0].every == 1), key=lambda c: c[1].value)
    if not each:
        costs.sort(key=lambda c: c[0].every)
    shown = each[:1] + each[-1:] if len(each) > 1 else each or costs[:1]
    parts = [
        f"{_act(s.act)} {_when(s.every)} {_adds(cost, f' and makes it {factor_spread(slow)} as long')}"
        for s, cost, slow in shown
    ]
    last = shown[-1][0]
    rarely = [
        f"{_when(s.every)} {factor_spread(slow)}"
        for s, _, slow in sorted(costs, key=lambda c: c[0].every)
        if s.act == last.act and s.every > last.every
    ]
    more = f" Done more rarely, {_act(last.act)} makes it, {listed(rarely)} as long." if rarely else ""
    return f"{target}, {step}: {listed(parts)}.{more}"


def _when(every: int) -> str:
    return "after every step" if every == 1 else f"after every {every} steps"


def verdicts(record: Record) -> dict[str, str]:
    """What becomes of each act in a capture, by its name."""
    start = "captured "
    return {k.removeprefix(start): str(v) for k, v in record.window.items() if k.startswith(start)}


def in_graph(found: dict[str, str]) -> str:
    """Which synchronisations a CUDA graph removes, leaves and forbids."""
    kinds = {"removes": "removed", "keeps as nodes": "kept", "forbids": "forbidden"}
    said = [
        f"{verb} {listed(acts)}"
        for verb, start in kinds.items()
        if (acts := [_act(name) for name, text in found.items() if text.startswith(start)])
    ]
    return f"Captured in a step, a CUDA graph {'; '.join(said)}." if said else "No verdict of a capture is known."


def _resolved(s: Synchronised) -> bool:
    """Whether the interval of what the act adds lies above zero."""
    return s.cost is not None and s.cost.resolved


def _unresolved(groups: _Groups) -> list[str]:
    """A sentence for each step on the acts whose cost cannot be told from zero."""
    said = []
    for (target, step), group in groups.items():
        acts = [f"{_act(s.act)} {_when(s.every)}" for s in group if s.cost is not None and not _resolved(s)]
        if acts:
            said.append(f"{target}, {step}: no measurable cost of {listed(acts)}.")
    return said


def _drawing(groups: _Groups) -> Drawing:
    acts = [list(dict.fromkeys(s.act for s in group)) for group in groups.values()]
    figure, grid = canvas([ONE_LINE_INCHES * len(a) for a in acts], 2, around=0.75)
    panels: dict[str, list[list[DotRow]]] = {"cost": [], "slowdown": []}
    for axes, ((target, step), group), own in zip(grid, groups.items(), acts, strict=True):
        for ax, name, unit in zip(axes, ("cost", "slowdown"), (1e3, 1.0), strict=True):
            rows = [_row(act, [s for s in group if s.act == act], name, unit) for act in own]
            dot_rows(ax, rows, values=name == "slowdown")
            panels[name].append(rows)
        small_titles(axes[0], f"{target}: {step}", f"{MICRO} an act")
        unit_below(axes[1], "times the step alone")
        axes[1].axvline(1, color=INK, linewidth=0.8, zorder=1)
        axes[1].set_yticklabels([])
    for index, rows_of in enumerate(panels.values()):
        shared_axis([axes[index] for axes in grid], rows_of)
    rhythms = sorted({s.every for group in groups.values() for s in group})
    marker_legend(figure, {_when(k): _RHYTHM_MARKERS.get(k, _OTHER_MARKER) for k in rhythms})
    return Drawing(
        "synchronisation",
        "One synchronisation, and what it makes of the step",
        " ".join(sentence(*key, group) for key, group in groups.items()),
        "Left: the time of the steps and one act, less that of the steps alone. Right: their ratio. Both are formed "
        "round by round in one process, where the file has such pairs. The panels of a side share an axis. Hollow: the "
        "interval of the ratio reaches one, or a figure behind it is noisy.",
        figure,
    )


def apart(found: Sequence[Training]) -> list[str]:
    """By target and shapes: what of a training step is the forward pass, and what each act adds to either."""
    groups: dict[tuple[str, str], list[Training]] = {}
    for t in found:
        groups.setdefault((t.target.short, t.shapes), []).append(t)
    return [_apart(*place, group) for place, group in groups.items()]


def _apart(target: str, shapes: str, group: list[Training]) -> str:
    first = group[0]
    start = f"{target}, MLP with {plain(shapes, 20)} shapes"
    whole, forward = first.alone, first.forward_alone
    if whole is None or forward is None:
        return f"{start}: the step alone has no figure."
    of = [f"{number(part / 1e3)} {MICRO}" for part in (whole, forward)]
    said = f"{start}: of the {of[0]} of a training step, {of[1]} are the forward pass."
    for t in group:
        cost, share, other = t.whole.cost, t.share, t.forward.cost if t.forward else None
        if cost is None or share is None:
            continue
        beside = f", and {_micro(other)} {MICRO} to the forward pass alone" if other is not None else ""
        part = f", {percent(share)} of the step with it"
        said += f" {_act(t.act)} after each {_adds(cost, part)}{beside}."
    return said


def _training_drawing(found: Sequence[Training]) -> Drawing:
    groups: dict[str, list[Training]] = {}
    for t in found:
        groups.setdefault(t.target.short, []).append(t)
    acts = [list(dict.fromkeys(t.act for t in group)) for group in groups.values()]
    figure, grid = canvas([ONE_LINE_INCHES * 2 * (1 + len(own)) for own in acts], around=0.75)
    for (ax,), (target, group), own in zip(grid, groups.items(), acts, strict=True):
        by_shapes = {t.shapes: t for t in group}.values()
        rows = []
        for name, which in (("forward pass", "forward"), ("training step", "whole")):
            plain_marks = [m for t in by_shapes for m in _step_mark(getattr(t, which), t.shapes, alone=True)]
            rows.append(DotRow(name, plain_marks))
            for act in own:
                marks = [m for t in group if t.act == act for m in _step_mark(getattr(t, which), t.shapes, alone=False)]
                rows.append(DotRow(f"{name}, {_act(act)}", marks, "" if marks else "no figure"))
        dot_rows(ax, rows, log=False)
        ax.set_xlim(left=0)
        small_titles(ax, target, f"{MICRO} a step")
    marker_legend(
        figure,
        {
            f"{plain(s, 20)} shapes": _SHAPES_MARKERS.get(s, _OTHER_MARKER)
            for s in dict.fromkeys(t.shapes for t in found)
        },
    )
    return Drawing(
        "training",
        "Training work and synchronisation",
        " ".join(apart(found)),
        "The forward pass runs in inference mode. What the whole step takes beyond it is training; what a step with a "
        "synchronisation takes beyond the same step without is the synchronisation. Drawn: the acts that were measured "
        "on both; the table has all.",
        figure,
    )


def _step_mark(s: Synchronised | None, shapes: str, *, alone: bool) -> list[Mark]:
    record = None if s is None else s.plain if alone else s.record
    return (
        []
        if s is None or record is None
        else mark(record.figure("complete"), colour(s.target.stack), _SHAPES_MARKERS.get(shapes, _OTHER_MARKER))
    )


def _training_table(found: Sequence[Training]) -> Table:
    rows: list[list[str | Cell]] = []
    for t in found:
        spans = (t.forward_alone, t.rest, t.alone, t.forward.cost if t.forward else None, t.whole.cost)
        share = "" if t.share is None else percent_spread(t.share)
        numbers = [_micro(value) if value else "" for value in spans]
        rows.append([Cell(t.target.short, t.target.stack), plain(t.shapes, 20), _act(t.act), *numbers, share])
    return Table(
        "Training and synchronisation",
        ["target", "shapes", "act after each step", f"forward pass, {MICRO}", f"rest of the training, {MICRO}",
         f"whole step, {MICRO}", f"the act adds to the forward pass, {MICRO}", f"to the whole step, {MICRO}",
         "of the step with it"],
        rows, numeric=(3, 4, 5, 6, 7, 8), folded=True,
    )  # fmt: skip


def _row(act: str, group: list[Synchronised], name: str, unit: float) -> DotRow:
    marks = [_mark(s, value, unit, 0.0 if name == "cost" else 1.0) for s in group if (value := getattr(s, name))]
    return DotRow(_act(act), marks, "" if marks else "no figure")


def _mark(s: Synchronised, value: Value, unit: float, nothing: float) -> Mark:
    figures = [r.figure("complete") for r in (s.record, s.plain) if r is not None]
    clear = all(f is not None and f.status == "ok" for f in figures)
    reaches = value.low is not None and value.low <= nothing
    at = replace(value / unit, status="noisy" if reaches or not clear else "ok")
    return Mark(at, colour(s.target.stack), _RHYTHM_MARKERS.get(s.every, _OTHER_MARKER), of=_when(s.every))


def _table(groups: _Groups) -> Table:
    rows: list[list[str | Cell]] = []
    for (target, step), group in groups.items():
        for s in group:
            cost, slow = s.cost, s.slowdown
            numbers = [_micro(cost) if cost else "", factor_spread(slow) if slow else ""]
            rows.append([Cell(target, s.target.stack), step, _act(s.act), _when(s.every), *numbers, _remark(s)])
    return Table(
        "Synchronisations",
        ["target", "step", "act", "when", f"adds, {MICRO}", "the step takes", "remark"],
        rows,
        numeric=(4, 5),
        folded=True,
    )


def _remark(s: Synchronised) -> str:
    if s.plain is None:
        return "the step alone was not measured"
    parts = {"with the act": s.record, "alone": s.plain}
    lacking = [f"{name}: {why(r, 'complete')}" for name, r in parts.items() if r.value("complete") is None]
    unclear = [f"{name} {f.status}" for name, r in parts.items() if (f := r.figure("complete")) and f.status != "ok"]
    doubt = [word] if s.cost is not None and (word := _doubt(s.cost)) else []
    return "; ".join(lacking or [*doubt, *unclear])


def _act(name: str) -> str:
    return _ACT_TITLES.get(name, plain(name, 40))


def _adds(cost: Value, more: str) -> str:
    """What an act adds, and ``more`` of it where that is above zero."""
    if _doubt(cost) == _NO_EFFECT:
        return f"{_NO_EFFECT} {_micro(cost).partition(' ')[2].removesuffix(')')} {MICRO})"
    return f"adds {_micro(cost)} {MICRO}{more}"


def _doubt(cost: Value) -> str:
    """``_NO_EFFECT`` if the interval holds zero, ``BELOW_ZERO`` if it ends below zero, otherwise an empty string."""
    if cost.ceiling < 0:
        return BELOW_ZERO
    return _NO_EFFECT if cost.low is not None and cost.high is not None and cost.low <= 0 else ""


def _micro(value: Value) -> str:
    return spread(value / 1e3)
