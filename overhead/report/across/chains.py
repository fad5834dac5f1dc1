"""The page of chains: the cheapest way to run each workload, and every way that was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.chains import ArmFit, Group, crossing, groups, steps_of, why_no_speed
from overhead.reading.format import MICRO, factor, listed, number, plain, positive_spread, run_time, spread
from overhead.reading.missing_values import why
from overhead.reading.view import View
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.workloads import workloads

_METHOD_NOTE = (
    "Every way was compared with NumPy in float64 on fresh random inputs before it was timed, and the device counts "
    "its steps; a way with other values has no speed. A cost is fixed + slope × steps of the way's own fit: one chain "
    "and one wait, without recording and compiling. An asterisk marks a chain longer than any that was measured."
)


@register_across("chains", "The cheapest way to run a chain", 10, page="chains")
def chains_section(machines: Machines) -> Iterator[Part]:
    """The cheapest way of each workload and size, or why there is no figure; then a table of all ways for each."""
    found = _chosen((machines.own, *machines.others))
    own = machines.own.fingerprint
    with_arms = [(view, group) for view, group in found if group.arms]
    if not with_arms:
        reasons = [f"{r.stack} {r.workload}: {why(r, 'complete')}" for _, g in found for r in g.failed]
        yield Text(["No workload has a figure." if found else "No workload was measured.", *reasons[:20]])
        return
    on_gpu = [(view, group) for view, group in with_arms if group.on_processor("gpu").arms]
    yield _overview(on_gpu or with_arms, own.created)
    known = workloads()
    about = [f"{n}: {known[n].about}." for n in dict.fromkeys(g.workload for _, g in found) if n in known]
    alone = [group.title for one in with_arms if on_gpu and one not in on_gpu for group in one[1:]]
    missing = [f"No GPU stack has a figure for {listed(alone)}, so the table leaves them out."] if alone else []
    yield Text([*missing, *about, _METHOD_NOTE], quiet=True)
    for view, group in found:
        created = view.fingerprint.created
        yield _table(group, "" if created == own.created else f", run of {run_time(created)}")


def _chosen(views: Sequence[View]) -> list[tuple[View, Group]]:
    """All groups of each workload from one run: the first with a figure on a GPU, else the first that has any."""
    by_workload: dict[str, list[tuple[View, list[Group]]]] = {}
    for view in views:
        for name in dict.fromkeys(group.workload for group in view.once(groups)):
            by_workload.setdefault(name, []).append((view, [g for g in view.once(groups) if g.workload == name]))
    found = []
    for runs in by_workload.values():
        view, own = max(runs, key=lambda run: max(_rank(group) for group in run[1]))
        found += [(view, group) for group in own]
    return found


def _rank(group: Group) -> tuple[bool, bool]:
    return bool(group.on_processor("gpu").arms), bool(group.arms)


def _overview(found: Sequence[tuple[View, Group]], own: str) -> Table:
    """A row for each workload and size: the cheapest way at the workload's own length, and the next."""
    rows: list[list[str | Cell]] = []
    for view, group in found:
        steps, created = steps_of(group.workload), view.fingerprint.created
        best, *others = group.by_kind(steps)
        nearest = [Cell(_way(others[0]), others[0].record.stack), _to(others[0], best, steps)] if others else ["", ""]
        size, cheapest = [group.name, f"{group.elements:,}", f"{steps:,}"], Cell(_way(best), best.record.stack)
        more = [f"{len(group.arms):,}", _from_step(group), "" if created == own else run_time(created)]
        rows.append([*size, cheapest, _time(best, steps), *nearest, *more])
    return Table(
        "The cheapest of the ways that were measured, at the workload's own number of steps",
        ["workload", "elements", "steps", "cheapest way", MICRO, "next cheapest", "takes", "ways",
         "steps from which fused WGSL is cheaper than the CUDA driver's graph", "run"],
        rows, numeric=(1, 2, 4, 6, 7),
    ).without_empty(7)  # fmt: skip


def _from_step(group: Group) -> str:
    """From how many steps on fused WGSL is cheaper than the graph that the CUDA driver makes; '' without both."""
    steps, own = steps_of(group.workload), group.on_processor("gpu").with_checks()
    graph, wgsl = own.best(steps, {"graph-driver"}), own.best(steps, {"fused-wgsl"})
    if graph is None or wgsl is None:
        return ""
    found = crossing(graph, wgsl)
    if found.steps is None:
        return "from the first" if found.always else "never" if found.never else "not told apart"
    return positive_spread(found.steps.at_least(1))


def _way(arm: ArmFit) -> str:
    return arm.kind.title + (" (CPU)" if arm.processor == "cpu" else "")


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
        name, total = Cell(plain(arm.label, 90), arm.record.stack), spread(arm.cost(steps) / 1e3)
        star = "*" if arm.is_extrapolated(steps) else ""
        rows.append([name, number(arm.slope / 1e3), total + star, _to(arm, arms[0], steps), spread(arm.fixed / 1e3)])
    for record in group.failed:
        reason = plain(why_no_speed(record), 120)
        rows.append([Cell(f"{record.stack}, {record.pattern}", record.stack), reason, "", "", ""])
    columns = ["way", f"{MICRO} a step", f"{steps:,} steps, {MICRO}", "to the fastest", f"fixed, {MICRO}"]
    return Table(f"{group.title}, {steps:,} steps{run}", columns, rows, numeric=range(1, 5), folded=True)
