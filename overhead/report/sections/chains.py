"""Chains of dependent steps: which way to run them, in short, and a page for each workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.reading import chains
from overhead.reading.chains import ArmFit, Group, chain_opening, device_times, fusions, passings, steps_of
from overhead.reading.format import MICRO, factor, number, plain, spread
from overhead.reading.intervals import Span, ratio
from overhead.reading.missing_values import why
from overhead.reading.sources import apart
from overhead.reading.view import View
from overhead.report.core import chain_drawings
from overhead.report.core.parts import Cell, Part, Table, Text
from overhead.report.core.registry import register, register_each
from overhead.workloads import workloads

_METHOD_NOTE = (
    "Every arm was compared with NumPy in float64 on fresh random inputs before it was timed, and the device "
    "counts its steps; an arm that differs has no speed. Costs are fixed + slope x steps of the arm's own fit: "
    "one chain (a generation) and one wait, recording and compiling not counted. Arms of different stacks ran in "
    "different processes, so the interval of a ratio is over all that the intervals of both figures allow. An "
    "asterisk marks a length beyond the longest chain that was measured."
)

_FIRST_WORKLOAD = "recurrence"
"""The workload that comes first."""
_MOST_OPEN_SENTENCES = 7
"""Sentences of a workload; more open on request."""


@register("chains", "Chains of dependent steps", 45, page="chains")
def chains_section(view: View) -> Iterator[Part]:
    found = view.once(chains.groups)
    if not any(g.arms for g in found):
        reasons = [f"{r.stack} {r.workload}: {why(r, 'complete')}" for g in found for r in g.failed]
        yield Text(["No workload has a figure."] if found else ["No workload was measured."])
        if reasons:
            yield Text(reasons[:20], quiet=True)
        return
    if said := chain_opening(view):
        yield Text([said])
    yield Text([*_about(found), _METHOD_NOTE], quiet=True)


def _workload_pages(view: View) -> Iterator[tuple[str, str]]:
    """The name of each workload that was measured, as name and title of its page."""
    for name in dict.fromkeys(
        g.workload for g in sorted(view.once(chains.groups), key=lambda g: g.workload != _FIRST_WORKLOAD)
    ):
        yield name, plain(name, 40)


@register_each("chains", _workload_pages)
def workload_page(view: View, workload: str) -> Iterator[Part]:
    """All variants and sizes of one workload."""
    own = [g for g in view.once(chains.groups) if g.workload == workload]
    for name in dict.fromkeys(g.name for g in own):
        yield from _workload([g for g in own if g.name == name])
    yield Text([*_about(own), _METHOD_NOTE], quiet=True)


def _workload(own: Sequence[Group]) -> Iterator[Part]:
    """One workload in one variant: sentences, maps where it has several sizes, every arm drawn at the most telling,
    tables."""
    said = [*fusions(own), *device_times(own), *passings(own)]
    if said:
        yield Text(
            said, folded="" if len(said) <= _MOST_OPEN_SENTENCES else f"{own[0].name}: where one way passes another"
        )
    drawn = [g for g in own if g.arms]
    if len(drawn) > 1:
        yield chain_drawings.maps(drawn)
    if drawn:
        yield chain_drawings.costs(max((g.by_run()[0] for g in drawn), key=lambda g: len(g.arms)))
    yield from map(_table, own)


def _about(found: Sequence[Group]) -> list[str]:
    known = workloads()
    names = [n for n in dict.fromkeys(g.workload for g in found) if n in known]
    return [f"{n}: {known[n].about}." for n in names]


def _to_the_fastest(arm: ArmFit, fastest: ArmFit | None, steps: int) -> str:
    """The arm's time over that of the fastest arm of its run; of another run the reason why there is none."""
    if fastest is None or arm is fastest:
        return "1"
    times = ratio(arm.cost(steps), fastest.cost(steps))
    if times is None:
        return apart(arm.record, fastest.record)
    return factor(*times.over(1)) + ("*" if arm.extrapolated(steps) else "")


def _table(group: Group) -> Table:
    steps = steps_of(group.workload)
    arms = sorted(group.arms, key=lambda a: a.cost(steps).value)
    fastest = next(iter(group.by_kind(steps)), None)
    rows: list[list[str | Cell]] = []
    for arm in arms:
        cost, star = arm.cost(steps), "*" if arm.extrapolated(steps) else ""
        a_second = Span(1e9, 1e9, 1e9) / cost
        rows.append([
            Cell(plain(arm.label, 90), arm.record.stack), number(*arm.slope.over(1e3)),
            number(*a_second.over(1)) + star, spread(*cost.over(1e3)) + star,
            _to_the_fastest(arm, fastest, steps), spread(*arm.fixed.over(1e3)),
        ])  # fmt: skip
    for record in group.failed:
        reason = plain(f"{record.status}: {record.reason}" if record.reason else why(record, "complete"), 120)
        rows.append([Cell(f"{record.stack}, {record.pattern}", record.stack), reason, "", "", "", ""])
    return Table(
        f"{group.title}, {steps:,} steps",
        ["arm", f"{MICRO} a step", "generations a second", f"{steps:,} steps, {MICRO}", "to the fastest",
         f"fixed, {MICRO}"],
        rows, numeric=range(1, 6), folded=len(rows) > 12,
    )  # fmt: skip
