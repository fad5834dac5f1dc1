"""Who takes the host's time: of the base cases a bar of layers and a table, and a table of every other case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.named_comparisons import WEBGPU_STACKS
from overhead.reading.dispatch_costs import dispatch_costs, targets_shown
from overhead.reading.format import MICRO, listed, micro, micro_spread, percent_spread, resolved
from overhead.reading.host_shares import TITLES, HostShares, bar_pieces, host_ns, host_shares, layer_text
from overhead.reading.view import View, stack_name
from overhead.report.core.bars import BarRow, bar_figure
from overhead.report.core.draw import MUTED
from overhead.report.core.palette import LAYER_COLOURS
from overhead.report.core.registry import register


@register("time-shares", "Who takes the time", 15)
def time_shares(view: View) -> Iterator[Part]:
    """The CPU time of the base cases by layer: a sentence, a bar for each stack, a table; else why it is not split."""
    found, limits = _base_cases(view), device_limits(view)
    if not found:
        none = "No CPU time is split here: that needs a resolved time both from Python and from compiled code."
        yield Text([none, *limits])
        return
    if said := [sentence for sentence in (_sentence(found), *limits) if sentence]:
        yield Text(said)
    yield _drawing(found)


@register("ladder", "CPU time by layer, other cases", 15, page="cases")
def other_cases(view: View) -> Iterator[Part]:
    """A table of the CPU time by layer of every other case; nothing without such a case."""
    shown = {each.top.key for each in _base_cases(view)}
    if found := [each for each in view.once(host_shares) if each.top.key not in shown]:
        yield layers_table("The host's time of the other cases, layer by layer", found)


def _drawing(found: Sequence[HostShares]) -> Drawing:
    """A bar for each stack on one axis."""
    rows = [
        BarRow(
            stack_name(each.target),
            [(TITLES[name], ns / 1e3, LAYER_COLOURS.get(name, MUTED)) for name, ns in bar_pieces(each.shares)],
            f"{micro(each.host)} {MICRO}" if each.host is not None else "",
        )
        for each in found
    ]
    return Drawing(
        "time-shares",
        "CPU time of one dispatch, by layer",
        f"Microseconds of CPU time from Python: {listed([f'{row.label} {row.note}' for row in rows])}.",
        "From left to right: library and driver (the same calls from compiled code), then what the interpreter and the "
        "library's wrapper objects add. The bar ends at the CPU time from Python. Where the two parts of Python cannot "
        "be told apart they are one piece. All cases has the other patterns.",
        partial(bar_figure, rows, f"{MICRO} of CPU time per dispatch or launch"),
        table=layers_table("The CPU time of the base cases, layer by layer", found),
    )


def _sentence(found: Sequence[HostShares]) -> str:
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
    """Up to two sentences on calls from compiled code: the stacks that the device limits, and those that both limit."""
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
    keys = {target.key for target in targets_shown(view)[0]}
    found = [
        each
        for each in view.once(host_shares)
        if each.target.key in keys
        and each.top.key == each.target.base.key
        and each.is_split
        and resolved(each.host)
        and resolved(each.levels[-1].figure("host"))
    ]
    return sorted(found, key=host_ns)


def layers_table(caption: str, found: Sequence[HostShares]) -> Table:
    """A row for each case, a column for each layer."""
    names = [n for n in TITLES if any(s.name == n for f in found for s in f.shares)]
    rows: list[list[str | Cell]] = []
    for each in found:
        shares = {s.name: layer_text(s) for s in each.shares}
        host = micro_spread(each.host) if each.host is not None else "missing"
        name, head = Cell(each.target.short, each.target.stack), [each.case, each.top.unit, host]
        rest = [micro_spread(each.validation), micro_spread(each.minimal), each.reason]
        rows.append([name, *head, percent_spread(each.python), *(shares.get(n, "") for n in names), *rest])
    columns = ["target", "pattern", "unit", f"host, {MICRO}", "Python's share", *(TITLES[n] for n in names),
               "of it validation", "a minimal Vulkan program", "remark"]  # fmt: skip
    return Table(f"{caption}: per cent and {MICRO}", columns, rows, numeric=range(3, 7 + len(names)))
