"""Chains of dependent steps: the cheapest way of each workload on one page, and a page for each workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from overhead import devices
from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.reading import chains
from overhead.reading.chain_sentences import (
    break_even_sentences,
    chain_opening,
)
from overhead.reading.chains import COMPARED_LENGTHS, ArmFit, Group, steps_of, why_no_speed
from overhead.reading.format import MICRO, factor, listed, number, plain, spread
from overhead.reading.missing_values import why
from overhead.reading.view import View
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.page_list import slug
from overhead.report.core.palette import colour
from overhead.report.core.registry import register, register_each
from overhead.workloads import workloads

_METHOD_NOTE = (
    "Every way was compared with NumPy in float64 on fresh random inputs before it was timed, and the device counts "
    "its steps; a way with other values has no speed. A cost is fixed + slope × steps of the way's own fit: one chain "
    "and one wait, without recording and compiling. An asterisk marks a chain longer than any that was measured."
)
_WITHOUT_FIGURE = "no figure at this size"
_FIRST_WORKLOAD = "recurrence"
"""The workload that comes first."""
_MOST_OPEN_SENTENCES = 7
"""Sentences of a workload; more open on request."""
_LEAST_DRAWN = 3
"""With fewer ways the table says it all."""


@register("chains", "Chains of dependent steps", 45, page="chains", any_run=True)
def chains_section(view: View) -> Iterator[Part]:
    """A table with the cheapest way of each workload and size, or why no workload has a figure."""
    found = sorted(view.once(chains.groups), key=lambda g: g.workload != _FIRST_WORKLOAD)
    if not any(g.arms for g in found):
        reasons = [f"{r.stack} {r.workload}: {why(r, 'complete')}" for g in found for r in g.failed]
        yield Text(["No workload has a figure."] if found else ["No workload was measured."])
        if reasons:
            yield Text(reasons[:20], quiet=True)
        return
    if said := chain_opening(view):
        yield Text([said])
    yield _overview(view, found)
    yield Text([*_about(found), _METHOD_NOTE], quiet=True)


def _workload_pages(view: View) -> Iterator[tuple[str, str]]:
    """The name of each workload that was measured, as name and title of its page."""
    found = sorted(view.once(chains.groups), key=lambda g: g.workload != _FIRST_WORKLOAD)
    for name in dict.fromkeys(g.workload for g in found):
        yield name, plain(name, 40)


@register_each("chains", _workload_pages)
def workload_page(view: View, workload: str) -> Iterator[Part]:
    """The page of one workload: all its variants and sizes."""
    own = [g for g in view.once(chains.groups) if g.workload == workload]
    yield Text(_about(own))
    for name in dict.fromkeys(g.name for g in own):
        yield from _variant(view, [g for g in own if g.name == name])
    yield Text([_METHOD_NOTE], quiet=True)


def _variant(view: View, own: Sequence[Group]) -> Iterator[Part]:
    """One workload in one variant: sentences, the cheapest way by size and length, every way at one size, tables."""
    if said := break_even_sentences(own):
        yield Text(said, folded="" if len(said) <= _MOST_OPEN_SENTENCES else f"{own[0].name}: one way against another")
    drawn = [g for g in own if g.arms]
    if drawn:
        yield _cheapest(view, drawn)
        shown = max(drawn, key=lambda g: len(g.arms))
        if len(shown.arms) >= _LEAST_DRAWN:
            yield _costs(shown)
    yield from map(_table, own)


def without_figure(view: View, group: Group) -> list[str]:
    """The stacks that lack a figure in this group but have one of the workload at another size, or failed here.

    ``any GPU stack`` stands for those on the machine's GPU where none has a figure.
    """
    have = {(a.record.stack, a.processor) for a in group.arms}
    same = [g for g in view.once(chains.groups) if g.workload == group.workload]
    ran = {(a.record.stack, a.processor) for g in same for a in g.arms}
    lacking = (ran | {(r.stack, devices.processor_kind(r)) for r in group.failed}) - have
    no_gpu = not any(kind == "gpu" for _, kind in have) and (
        any(kind == "gpu" for _, kind in lacking) or any(not gpu.software for gpu in view.fingerprint.machine.gpus)
    )
    others = [
        plain(stack, 40) + ("" if kind == "gpu" else f" ({'CPU' if kind == 'cpu' else kind})")
        for stack, kind in sorted(lacking)
        if not (no_gpu and kind == "gpu")
    ]
    return ["any GPU stack", *others] if no_gpu else others


def _overview(view: View, found: Sequence[Group]) -> Table:
    """A row for each workload and size: the cheapest way at the workload's own length, and the next."""
    rows: list[list[str | Cell]] = []
    for group in (g for g in found if g.arms):
        steps = steps_of(group.workload)
        best, *others = group.by_kind(steps)
        nearest = [Cell(_way(others[0]), others[0].record.stack), _to(others[0], best, steps)] if others else ["", ""]
        size, cheapest = [group.name, f"{group.elements:,}", f"{steps:,}"], Cell(_way(best), best.record.stack)
        rows.append([*size, cheapest, _time(best, steps), *nearest, listed(without_figure(view, group))])
    return Table(
        "The cheapest of the ways that were measured, by workload and size, at the workload's own number of steps",
        ["workload", "elements", "steps", "cheapest way", MICRO, "next cheapest", "takes", _WITHOUT_FIGURE],
        rows, numeric=(1, 2, 4, 6),
    )  # fmt: skip


def _cheapest(view: View, found: Sequence[Group]) -> Part:
    """The cheapest way by elements and steps; a sentence where it is one way everywhere and no stack is missing."""
    lengths = sorted({*COMPARED_LENGTHS, steps_of(found[0].workload)})
    orders = {(g.elements, n): g.by_kind(n) for g in found for n in lengths}
    name = found[0].name
    winners = {_way(order[0]) for order in orders.values()}
    missing = {g.elements: listed(without_figure(view, g)) for g in found}
    if len(winners) == 1 and not any(missing.values()) and all(_clear(o, n) for (_, n), o in orders.items()):
        return Text([f"{name}: at every size and length the cheapest way is {winners.pop()}."])

    def cell(elements: int, n: int) -> Cell:
        order = orders[elements, n]
        star = "*" if order[0].is_extrapolated(n) else ""
        tie = "" if _clear(order, n) else f", about as cheap as {order[1].kind.title}"
        took = f"{number(order[0].cost(n) / 1e3)} {MICRO}{star}"
        return Cell(f"{_way(order[0])}, {took}{tie}", order[0].record.stack)

    return Table(
        f"{name}: the cheapest of the ways that were measured, by elements and dependent steps",
        ["elements", *(f"{n:,} step{'s' if n > 1 else ''}" for n in lengths), _WITHOUT_FIGURE],
        [[f"{g.elements:,}", *(cell(g.elements, n) for n in lengths), missing[g.elements]] for g in found],
    )


def _clear(order: Sequence[ArmFit], steps: int) -> bool:
    """Whether the first way is cheaper than the next whatever the intervals allow."""
    return len(order) < 2 or order[1].cost(steps).floor > order[0].cost(steps).ceiling


def _way(arm: ArmFit) -> str:
    return arm.kind.title + (" (CPU)" if arm.processor == "cpu" else "")


def _time(arm: ArmFit, steps: int) -> str:
    return number(arm.cost(steps) / 1e3) + ("*" if arm.is_extrapolated(steps) else "")


def _costs(group: Group) -> Drawing:
    """A row for each way, the cheapest first: the time of the chain at the full length of the workload."""
    steps = steps_of(group.workload)
    arms = sorted(group.arms, key=lambda a: a.cost(steps).value)
    rows = {"": [DotRow(a.label, [_mark(a, steps)]) for a in arms]}
    best, last = arms[0], arms[-1]
    return Drawing(
        f"chains-{slug(group.name)}-ways",
        f"{steps:,} steps by each way: {group.title}",
        f"Of {len(arms)} ways to run {steps:,} steps the cheapest is {best.label}, {_time(best, steps)} microseconds, "
        f"and the dearest {last.label}, {_time(last, steps)}.",
        "One chain and one wait, from the fits; recording and compiling not counted. Hollow: noisy or with two speeds.",
        partial(dot_figure, rows, f"{MICRO} for {steps:,} steps"),
    )


def _mark(arm: ArmFit, steps: int) -> Mark:
    return Mark(replace(arm.cost(steps) / 1e3, status=arm.record.status), colour(arm.record.stack))


def _about(found: Sequence[Group]) -> list[str]:
    known = workloads()
    names = [n for n in dict.fromkeys(g.workload for g in found) if n in known]
    return [f"{n}: {known[n].about}." for n in names]


def _to(arm: ArmFit, fastest: ArmFit, steps: int) -> str:
    """The arm's time over that of the fastest arm."""
    if arm is fastest:
        return "1"
    return factor(arm.cost(steps) / fastest.cost(steps)) + ("*" if arm.is_extrapolated(steps) else "")


def _table(group: Group) -> Table:
    steps = steps_of(group.workload)
    arms = sorted(group.arms, key=lambda a: a.cost(steps).value)
    rows: list[list[str | Cell]] = []
    for arm in arms:
        cost, star = arm.cost(steps), "*" if arm.is_extrapolated(steps) else ""
        name, total, ratio = (
            Cell(plain(arm.label, 90), arm.record.stack),
            spread(cost / 1e3) + star,
            _to(arm, arms[0], steps),
        )
        rows.append([name, number(arm.slope / 1e3), total, ratio, spread(arm.fixed / 1e3)])
    for record in group.failed:
        reason = plain(why_no_speed(record), 120)
        rows.append([Cell(f"{record.stack}, {record.pattern}", record.stack), reason, "", "", ""])
    columns = [
        "way",
        f"{MICRO} a step",
        f"{steps:,} steps, {MICRO}",
        "to the fastest",
        f"fixed, {MICRO}",
    ]
    return Table(f"{group.title}, {steps:,} steps", columns, rows, numeric=range(1, 5), folded=True)
