"""From how many dependent steps on one way to run a chain beats another, by machine."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table
from overhead.reading import chains
from overhead.reading.chains import Crossing
from overhead.reading.format import number, spread
from overhead.reading.view import View
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across

_SIZE = 4096
"""Elements: of each workload the size nearest to it is compared."""


@register_across("across-crossings", "Where one way passes another", 60)
def crossings(machines: Machines) -> Iterator[Part]:
    """A table with the number of steps from which one way beats another; nothing without two ways to compare."""
    found: dict[tuple[str, str], dict[View, Crossing]] = {}
    for view in machines.views:
        for title, which, one in _crossings(view):
            found.setdefault((title, which), {})[view] = one
    if not found:
        return
    rows: list[list[str | Cell]] = [
        [title, which, str(len(group)), _own(group.get(machines.own)), _over(list(group.values()))]
        for (title, which), group in found.items()
    ]
    columns = ["workload", "which", "machines", "this machine, steps", "all: steps, median and range"]
    yield Table("From how many steps on, by each machine's own fits", columns, rows, numeric=(2, 3))


def _crossings(view: View) -> Iterator[tuple[str, str, Crossing]]:
    """Workload, the two ways in words, and where the second passes the first."""
    groups = view.once(chains.groups)
    for name in dict.fromkeys(g.workload for g in groups):
        group = min((g for g in groups if g.workload == name), key=lambda g: abs(g.elements - _SIZE))
        for pair in chains.COMPARED:
            rivals = group.rivals(*pair, chains.steps_of(name))
            if rivals is not None:
                first, second = (arm.kind.title for arm in rivals)
                yield group.title, f"{second} passes {first}", chains.crossing(*rivals)


def _own(found: Crossing | None) -> str:
    if found is None:
        return ""
    return found.verdict if found.steps is None else spread(found.steps.at_least(1.0))


def _over(group: list[Crossing]) -> str:
    """Median and range of the machines on which one passes the other, and the verdicts on the others."""
    values = [max(one.steps.value, 1.0) for one in group if one.steps is not None]
    over = f"{number(statistics.median(values))} ({number(min(values))} to {number(max(values))})" if values else ""
    verdicts = [one.verdict for one in group if one.steps is None]
    return "; ".join(part for part in (over, *(f"{v} ({verdicts.count(v)})" for v in dict.fromkeys(verdicts))) if part)
