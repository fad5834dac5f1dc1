"""The page of chains: the cheapest way to run each workload, and every way that was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.chains import ArmFit, Group, groups, steps_of
from overhead.reading.format import MICRO, count, factor, listed, number, plain, run_time, spread
from overhead.reading.graph_or_fused import rows
from overhead.reading.missing_values import why
from overhead.reading.view import View
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.words.chains import arm_label, group_title, why_no_speed
from overhead.words.reasons import one_line
from overhead.workloads import workloads

_METHOD_NOTE = (
    "Every way was compared with NumPy in float64 before it was timed; one with other values has no speed. A cost is "
    "the measured time of one chain and one wait, without recording and compiling. An asterisk marks a time "
    "that is read off the way's line, fixed + slope × steps, since the sizes of n end below it."
)


@register_across("chains", "The cheapest way to run a chain", 10, page="chains")
def chains_section(machines: Machines) -> Iterator[Part]:
    """The cheapest way of each workload and size, or why there is no figure; then a table of all ways for each."""
    found = _chosen((machines.own, *machines.others))
    own = machines.own.fingerprint
    with_arms = [(view, group) for view, group in found if group.arms]
    if not with_arms:
        reasons = [f"{r.stack} {r.workload}: {one_line(why(r, 'complete'))}" for _, g in found for r in g.failed]
        left = [f"{count(len(reasons) - 20, 'more case')}: under All cases."] if len(reasons) > 20 else []
        yield Text(["No workload has a figure." if found else "No workload was measured.", *reasons[:20], *left])
        return
    on_gpu = [(view, group) for view, group in with_arms if group.on_gpu]
    yield _overview(on_gpu or with_arms, own.created)
    known = workloads()
    about = [f"{n}: {known[n].about}." for n in dict.fromkeys(g.workload for _, g in found) if n in known]
    alone = len(with_arms) - len(on_gpu) if on_gpu else 0
    missing = [f"{count(alone, 'size')} without a figure on a GPU: only in the tables below."] if alone else []
    yield Text([*missing, *about, _METHOD_NOTE, *_other_runs(machines, found)], quiet=True)
    for view, group in found:
        created = view.fingerprint.created
        yield _table(group, "" if created == own.created else f", run of {run_time(created)}")


def _chosen(views: Sequence[View]) -> list[tuple[View, Group]]:
    """All groups of each workload from one run: that with the most ways on a GPU, else with the most.

    The run shown, which is the first, needs half as many.
    """
    every = [(view, group) for view in views for group in view.once(groups)]

    def ways(one: tuple[View, Group]) -> tuple[bool, int]:
        return one[1].on_gpu, len(one[1].arms) * (2 if one[0] is views[0] else 1)

    found = []
    for name in dict.fromkeys(group.workload for _, group in every):
        own = [one for one in every if one[1].workload == name]
        shown, _ = max(own, key=ways)
        found += [one for one in own if one[0] is shown]
    return found


def _other_runs(machines: Machines, found: Sequence[tuple[View, Group]]) -> list[str]:
    """A sentence on the workloads that the picture of the first page takes from another run than this page."""
    here = {group.workload: view.fingerprint.created for view, group in found}
    first = {row.name: row.shown_run for row in rows(machines.own, machines.others) if row.shown_run}
    differ = [name for name in here if name in first and first[name] != here[name]]
    if not differ:
        return []
    return [
        "This page shows the run that has most ways of a workload, the first page the newest with a fused kernel. So "
        f"the times of {listed(differ)} are of two runs and differ."
    ]


def _overview(found: Sequence[tuple[View, Group]], own: str) -> Table:
    """A row for each workload and size: the cheapest way at the workload's own length, and that of the next stack."""
    rows: list[list[str | Cell]] = []
    for view, group in found:
        steps, created = steps_of(group.workload), view.fingerprint.created
        best, *arms = sorted(group.arms, key=lambda arm: arm.cost(steps).value)
        others = [arm for arm in arms if arm.record.stack != best.record.stack]
        nearest = [Cell(_way(others[0]), others[0].record.stack), _to(others[0], best, steps)] if others else ["", ""]
        size, cheapest = [group.name, f"{group.elements:,}", f"{steps:,}"], Cell(_way(best), best.record.stack)
        more = [f"{len(group.arms):,}", "" if created == own else run_time(created)]
        rows.append([*size, cheapest, _time(best, steps), *nearest, *more])
    return Table(
        "The cheapest of the ways that were measured, at the workload's own number of steps",
        ["workload", "elements", "steps", "cheapest way", MICRO, "cheapest of another stack", "takes", "ways",
         "run"],
        rows, numeric=(1, 2, 4, 6, 7),
    ).without_empty(7)  # fmt: skip


def _way(arm: ArmFit) -> str:
    return plain(arm_label(arm), 60) + (" (CPU)" if arm.processor == "cpu" and not arm.names_processor else "")


def _time(arm: ArmFit, steps: int) -> str:
    return number(arm.cost(steps) / 1e3) + ("*" if arm.is_extrapolated(steps) else "")


def _to(arm: ArmFit, fastest: ArmFit, steps: int) -> str:
    """The arm's time over that of the fastest arm."""
    if arm is fastest:
        return "1"
    return factor(arm.cost(steps) / fastest.cost(steps)) + ("*" if arm.is_extrapolated(steps) else "")


def _table(group: Group, run: str) -> Table:
    steps = steps_of(group.workload)
    arms = sorted(group.arms, key=lambda a: a.cost(steps).value)
    rows: list[list[str | Cell]] = []
    for arm in arms:
        name, total = Cell(plain(arm_label(arm), 90), arm.record.stack), spread(arm.cost(steps) / 1e3)
        star = "*" if arm.is_extrapolated(steps) else ""
        rows.append([name, number(arm.slope / 1e3), total + star, _to(arm, arms[0], steps), spread(arm.fixed / 1e3)])
    for record in group.failed:
        reason = plain(why_no_speed(record), 120)
        rows.append([Cell(f"{record.stack}, {record.pattern}", record.stack), reason, "", "", ""])
    columns = ["way", f"{MICRO} a step", f"{steps:,} steps, {MICRO}", "to the fastest", f"fixed, {MICRO}"]
    return Table(f"{group_title(group)}, {steps:,} steps{run}", columns, rows, numeric=range(1, 5), folded=True)
