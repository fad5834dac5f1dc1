"""Who takes the time, in short: the CPU time of one dispatch through each stack, by layer, on one axis."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.named_comparisons import WEBGPU_STACKS
from overhead.reading import host_shares
from overhead.reading.dispatch_costs import dispatch_costs, targets_shown
from overhead.reading.format import MICRO, listed, micro, micro_spread, percent_spread, resolved
from overhead.reading.host_shares import HostShares
from overhead.reading.stack_names import stack_name
from overhead.reading.view import View
from overhead.report.core.bars import BarRow, bar_figure
from overhead.report.core.draw import MUTED
from overhead.report.core.palette import LAYER_COLOURS
from overhead.report.core.registry import register
from overhead.results import Figure as Number


@register("time-shares", "Who takes the time", 15)
def time_shares(view: View) -> Iterator[Part]:
    found, limits = _base_cases(view), device_limits(view)
    if not found:
        none = "No CPU time is split here: that needs a resolved time both from Python and from compiled code."
        yield Text([none, *limits])
        return
    if said := [sentence for sentence in (_sentence(found), *limits) if sentence]:
        yield Text(said)
    rows = [
        BarRow(
            stack_name(each.target),
            [
                (host_shares.TITLES[name], value / 1e3, LAYER_COLOURS.get(name, MUTED))
                for name, value in host_shares.drawn(each.shares)
            ],
            f"{micro_spread(each.host).split(' ')[0]} {MICRO}" if each.host is not None else "",
        )
        for each in found
    ]
    yield Drawing(
        "time-shares",
        "CPU time of one dispatch, by layer",
        "Stacked bars of the CPU time per dispatch or launch, from the cheapest stack to the dearest; the table below "
        "has the numbers.",
        "From left to right: library and driver (the same calls from compiled code), then what the interpreter and the "
        "library's wrapper objects add. The bar ends at the CPU time from Python. All cases has every pattern.",
        bar_figure([(f"{MICRO} of CPU time per dispatch or launch", rows)]),
    )
    yield _table(found)


def _sentence(found: list[HostShares]) -> str:
    """Python's share of the CPU time through WebGPU, else through the stack where it is largest."""
    shares = {each.target.stack: (each, share) for each in found if (share := each.python) is not None}
    of_webgpu = [shares[stack] for stack in sorted(WEBGPU_STACKS & shares.keys())]
    told = of_webgpu or sorted(shares.values(), key=lambda one: -one[1].value)[:1]
    if not told:
        return ""
    said = [f"{percent_spread(share)} through {stack_name(each.target)}" for each, share in told]
    unit = told[0][0].top.unit
    return f"Of the CPU time of a {unit}, Python takes {listed(said)}; the rest is the library and the driver."


def device_limits(view: View) -> list[str]:
    """Why a dispatch from compiled code may take longer than its CPU time: a sentence for each bound that holds."""
    costs = view.once(dispatch_costs)
    told: dict[str, list[str]] = {"device": [], "balanced": []}
    for row in costs.rows if costs is not None and costs.hardware else ():
        record = row.records.get("compiled")
        if record is None or "compiled" not in row.marks or record.bound not in told:
            continue
        complete, host = record.figure("complete"), record.figure("host")
        if complete is not None and host is not None:
            told[record.bound].append(f"{row.name} {micro(complete)} {MICRO}, CPU busy for {micro(host)}")
    words = {
        "device": "the device is the limit",
        "balanced": "CPU and device work at the same time and neither clearly sets the pace",
    }
    return [f"From compiled code, {words[bound]}: {'; '.join(said)}." for bound, said in told.items() if said]


def _base_cases(view: View) -> list[HostShares]:
    """The split CPU times of the base cases of the targets shown, the cheapest first; only resolved ones."""
    keys = {target.key: target for target in targets_shown(view)[0]}
    found = [
        each
        for each in view.once(host_shares.ladders)
        if each.target.key in keys
        and each.top.key == each.target.base.key
        and each.split
        and resolved(each.host)
        and resolved(_compiled(each))
    ]
    return sorted(found, key=host_shares.host_ns)


def _compiled(each: HostShares) -> Number:
    """The CPU time from compiled code."""
    return each.levels[-1].figure("host") or each.shares[-1].figure


def _table(found: list[HostShares]) -> Table:
    rows: list[list[str | Cell]] = [
        [
            Cell(stack_name(each.target), each.target.stack),
            each.top.unit,
            micro_spread(each.host) if each.host is not None else "",
            percent_spread(each.python) if each.python is not None else "",
            micro_spread(_compiled(each)),
        ]
        for each in found
    ]
    columns = [
        "stack",
        "unit",
        f"CPU time from Python, {MICRO}",
        "Python's share",
        f"CPU time from compiled code, {MICRO}",
    ]
    return Table("CPU time and Python's share of it", columns, rows, numeric=(2, 3, 4))
