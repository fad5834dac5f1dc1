"""The page of chains: the cheapest way to run each workload, and every way that was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.chains import Group, groups, steps_of
from overhead.reading.graph_or_fused import rows
from overhead.reading.plain_text import plain
from overhead.reading.view import View
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.words.chains import arm_label, why_no_speed
from overhead.words.format import MICRO, number, run_time, spread
from overhead.words.report.chains import (
    CHEAPEST,
    METHOD_NOTE,
    about,
    beyond,
    case_reason,
    columns,
    failed_way,
    more_cases,
    of_two_runs,
    relative,
    table_title,
    time,
    way,
    without_figure,
    without_gpu,
)

_MOST_REASONS = 20


@register_across("chains", "The fastest way to run many steps", 10, page="chains")
def chains_section(machines: Machines) -> Iterator[Part]:
    """The cheapest way of each workload and size, or why there is no figure; then a table of all
    ways for each.
    """
    found = _chosen((machines.own, *machines.others))
    own = machines.own.fingerprint
    with_arms = [(view, group) for view, group in found if group.arms]
    if not with_arms:
        failed = [record for _, group in found for record in group.failed]
        more = len(failed) - _MOST_REASONS
        left = [more_cases(more)] if more > 0 else []
        reasons = map(case_reason, failed[:_MOST_REASONS])
        yield Text([without_figure(measured=bool(found)), *reasons, *left])
        return
    on_gpu = [(view, group) for view, group in with_arms if group.on_gpu]
    yield _overview(on_gpu or with_arms, own.created)
    names = dict.fromkeys(group.workload for _, group in found)
    computed = filter(None, map(about, names))
    alone = len(with_arms) - len(on_gpu) if on_gpu else 0
    missing = [without_gpu(alone)] if alone else []
    yield Text([*missing, *computed, METHOD_NOTE, *_other_runs(machines, found)], quiet=True)
    for view, group in found:
        created = view.fingerprint.created
        yield _table(group, "" if created == own.created else created)


def _chosen(views: Sequence[View]) -> list[tuple[View, Group]]:
    """All groups of each workload from one run: that with the most ways on a GPU, else with the
    most.

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
    """A sentence on the workloads that the picture of the first page takes from another run than
    this page.
    """
    here = {group.workload: view.fingerprint.created for view, group in found}
    first = {
        row.name: row.shown_run for row in rows(machines.own, machines.others) if row.shown_run
    }
    differ = [name for name in here if name in first and first[name] != here[name]]
    return [of_two_runs(differ)] if differ else []


def _overview(found: Sequence[tuple[View, Group]], own: str) -> Table:
    """A row for each workload and size: the cheapest way at the workload's own length, and that of
    the next stack.
    """
    rows: list[list[str | Cell]] = []
    for view, group in found:
        steps, created = steps_of(group.workload), view.fingerprint.created
        best, *arms = sorted(group.arms, key=lambda arm: arm.cost(steps).value)
        others = [arm for arm in arms if arm.record.stack != best.record.stack]
        nearest = (
            [Cell(way(others[0]), others[0].record.stack), relative(others[0], best, steps)]
            if others
            else ["", ""]
        )
        size, cheapest = (
            [group.name, f"{group.elements:,}", f"{steps:,}"],
            Cell(way(best), best.record.stack),
        )
        more = [f"{len(group.arms):,}", "" if created == own else run_time(created)]
        rows.append([*size, cheapest, time(best, steps), *nearest, *more])
    return Table(
        CHEAPEST,
        [
            "workload",
            "elements",
            "steps",
            "fastest variant",
            MICRO,
            "fastest of another stack",
            "takes",
            "variants",
            "run",
        ],
        rows,
        numeric=(1, 2, 4, 6, 7),
    ).without_empty(7)


def _table(group: Group, run: str) -> Table:
    """All ways of a workload. ``run``: when their run was made, if that is not the run of the
    page.
    """
    steps = steps_of(group.workload)
    arms = sorted(group.arms, key=lambda a: a.cost(steps).value)
    rows: list[list[str | Cell]] = []
    for arm in arms:
        name = Cell(plain(arm_label(arm), 90), arm.record.stack)
        total = beyond(arm, steps) + spread(arm.cost(steps) / 1e3)
        rows.append(
            [
                name,
                number(arm.slope / 1e3),
                total,
                relative(arm, arms[0], steps),
                spread(arm.fixed / 1e3),
            ]
        )
    for record in group.failed:
        reason = plain(why_no_speed(record), 120)
        rows.append([Cell(failed_way(record), record.stack), reason, "", "", ""])
    title = table_title(group, steps, run)
    return Table(title, columns(steps), rows, numeric=range(1, 5), folded=True)
