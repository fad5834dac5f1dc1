"""Who takes the host's time, machine by machine: a bar each, a panel for every stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.reading import host_shares
from overhead.reading.format import MICRO, number, percent, plain
from overhead.report.core.across_registry import register_across
from overhead.report.core.draw import MUTED, PAPER, SMALL, canvas, unit_below
from overhead.report.core.machines import Machines
from overhead.report.core.palette import LAYER_COLOURS
from overhead.report.core.run_summary import HostTimeSplit, RunSummary

MOST_MACHINES_DRAWN = 10
"""Machines of a panel at most; the table holds all."""
_BAR_INCHES = 0.24
"""Inches of a bar."""


@register_across("across-ladders", "Who takes the host's time, by machine", 30)
def ladders(machines: Machines) -> Iterator[Part]:
    panels: dict[tuple[str, str, str], list[tuple[RunSummary, HostTimeSplit]]] = {}
    for summary in machines.summaries:
        for rungs in summary.rungs:
            panels.setdefault((rungs.stack, rungs.api, rungs.unit), []).append((summary, rungs))
    if not panels:
        yield Text(["No machine ran the same calls by several callers in one worker."])
        return
    drawn = {key: spread_out(machines, rows) for key, rows in panels.items() if key[1] != "CPU"}
    if drawn:
        yield _drawing(
            machines, drawn, whole=all(len(drawn[key]) == len(rows) for key, rows in panels.items() if key in drawn)
        )
    yield _table(machines, panels)


def spread_out(
    machines: Machines, rows: Sequence[tuple[RunSummary, HostTimeSplit]]
) -> list[tuple[RunSummary, HostTimeSplit]]:
    """Cheapest first; of many machines some, evenly from the cheapest to the dearest, the one shown in full among
    them."""
    ordered = sorted(rows, key=lambda one: one[1].host)
    if len(ordered) <= MOST_MACHINES_DRAWN:
        return ordered
    kept = {round(i * (len(ordered) - 1) / (MOST_MACHINES_DRAWN - 1)) for i in range(MOST_MACHINES_DRAWN)}
    own = next((i for i, (summary, _) in enumerate(ordered) if summary is machines.own), None)
    if own is not None and own not in kept:
        inner = kept - {0, len(ordered) - 1}
        kept = kept - {min(inner, key=lambda i: abs(i - own))} | {own}
    return [ordered[i] for i in sorted(kept)]


def _drawing(
    machines: Machines, panels: dict[tuple[str, str, str], list[tuple[RunSummary, HostTimeSplit]]], *, whole: bool
) -> Drawing:
    from matplotlib.patches import Patch

    figure, grid = canvas([_BAR_INCHES * len(rows) + 0.1 for rows in panels.values()], around=0.62)
    longest = max(rungs.host / 1e3 for rows in panels.values() for _, rungs in rows)
    for (ax,), ((stack, api, unit), rows) in zip(grid, panels.items(), strict=True):
        for y, (_, rungs) in enumerate(rows):
            at = 0.0
            for name, value in rungs.pieces:
                ax.barh(
                    y,
                    value / 1e3,
                    left=at,
                    height=0.7,
                    color=LAYER_COLOURS.get(name, MUTED),
                    edgecolor=PAPER,
                    linewidth=0.6,
                )
                at += value / 1e3
            ax.annotate(
                number(rungs.host / 1e3), (at, y), (4, 0), textcoords="offset points", va="center", fontsize=SMALL
            )
        names = [_name(machines, summary, rungs) for summary, rungs in rows]
        ax.set_yticks(range(len(rows)), names, fontsize=SMALL)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.set_xlim(0, 1.12 * longest)
        ax.tick_params(axis="y", length=0)
        ax.grid(False, axis="y")
        ax.set_title(plain(f"{stack}, {api}", 60), fontsize=8.5)
        unit_below(ax, f"{MICRO} of host time per {plain(unit, 20)}")
    shown = {name for rows in panels.values() for _, r in rows for name, _ in r.pieces}
    keys = [
        Patch(color=LAYER_COLOURS.get(n, MUTED), label=host_shares.TITLES.get(n, n))
        for n in host_shares.TITLES
        if n in shown
    ]
    figure.legend(handles=keys, loc="outside upper left", ncols=4)
    some = (
        ""
        if whole
        else (
            f" Of more than {MOST_MACHINES_DRAWN} machines, {MOST_MACHINES_DRAWN} are drawn, "
            "evenly from the cheapest to the dearest "
            "and this one among them; the table has all."
        )
    )
    return Drawing(
        "across-ladders",
        "Host time by layer, by machine",
        "Host time per unit by layer, a bar for each machine: "
        + "; ".join(_finding(*one) for one in panels.items())
        + ".",
        "From left to right: the host's time of the same calls from compiled code, from Python without wrapper "
        "objects, and from Python as usual. A layer is the difference of two of these, measured in one "
        "run. Where wrapper objects or interpreter come out below zero, Python is one piece; the table has all layers. "
        f"All panels share one scale.{some}",
        figure,
    )


def _finding(place: tuple[str, str, str], rows: Sequence[tuple[RunSummary, HostTimeSplit]]) -> str:
    least, most = rows[0][1].host / 1e3, rows[-1][1].host / 1e3
    ends = number(least) if len(rows) == 1 else f"{number(least)} to {number(most)}"
    return f"{plain(place[0], 40)} {ends} microseconds"


def _name(machines: Machines, summary: RunSummary, rungs: HostTimeSplit) -> str:
    own = " (this)" if summary is machines.own else ""
    return plain(summary.name, 32) + own + (" (software)" if rungs.software else "")


def _table(machines: Machines, panels: dict[tuple[str, str, str], list[tuple[RunSummary, HostTimeSplit]]]) -> Table:
    names = [
        n for n in host_shares.TITLES if any(n == s[0] for rows in panels.values() for _, r in rows for s in r.shares)
    ]
    rows: list[list[str | Cell]] = []
    for (stack, api, unit), group in panels.items():
        for summary, rungs in group:
            shares = {name: (value, of_host, doubt) for name, value, of_host, doubt in rungs.shares}
            cells = [_cell(*shares[n]) if n in shares else "" for n in names]
            head = Cell(_name(machines, summary, rungs), machine=summary.machine.id)
            rows.append([head, stack, api, unit, rungs.called, number(rungs.host / 1e3), *cells])
    columns = ["machine", "stack", "API", "unit", "called", f"host, {MICRO}", *(host_shares.TITLES[n] for n in names)]
    caption = f"The host's time, layer by layer: per cent of it, and {MICRO}"
    return Table(caption, columns, rows, numeric=range(5, 6 + len(names)), folded=len(rows) > 12)


def _cell(value: float, of_host: float, doubt: str) -> str:
    return ", ".join(part for part in (percent(of_host), number(value / 1e3), doubt) if part)
