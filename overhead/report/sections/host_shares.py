"""Who takes the host's time: a bar of layers, the device's bar beside it, sentences, checks and a table."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.reading import checks, host_shares
from overhead.reading.format import MICRO, micro, micro_of, micro_spread, number, percent, percent_spread, plain, spread
from overhead.reading.host_shares import HostShares, Share
from overhead.reading.view import CALLER_WORDS, View
from overhead.report.core.bars import BarPiece, BarRow, bar_figure
from overhead.report.core.draw import MUTED, PAPER
from overhead.report.core.palette import LAYER_COLOURS
from overhead.report.core.registry import register


@register("ladder", "CPU time by layer", 15, page="cases")
def who(view: View) -> Iterator[Part]:
    found = view.once(host_shares.ladders)
    if not found:
        yield Text(
            [
                "The split needs the same calls from Python and from compiled code in one worker; this file holds no "
                "such comparison."
            ]
        )
        return
    first = leading(found)
    drawn = [f for f in first if f.split and f.target.first.api != "CPU"]
    if drawn := [f for f in drawn if not f.target.software] or drawn:
        yield _drawing(drawn)
    if said := host_shares.ladder_sentences(first):
        yield Text(said, folded="In sentences")
    others = [f for f in found if f not in first and not f.target.software]
    if said := host_shares.ladder_sentences(others):
        yield Text(said, folded="Every other case in a sentence")
    yield _table(found)
    if checked := _checks(view, found):
        yield checked
    yield _devices(found)


def leading(found: list[HostShares]) -> list[HostShares]:
    """Of each target the ladder of its base case, else its first."""
    by_target: dict[str, HostShares] = {}
    for each in found:
        if each.target.key not in by_target or each.top is each.target.base:
            by_target[each.target.key] = each
    return list(by_target.values())


def _drawing(found: list[HostShares]) -> Drawing:
    """A row for each stack on one axis, the cheapest first: the host's time by layer, and the GPU's below it."""
    ordered = sorted(found, key=host_shares.host_ns)
    figure = bar_figure([(f"{MICRO} a dispatch or launch", [_bar(each) for each in ordered])])
    return Drawing(
        "ladder",
        "The host's time by layer, and the GPU's time below it",
        _finding(ordered),
        "One axis for all stacks; the base case of each. Upper bar: the host's time per dispatch or launch. From left "
        "to right: library and driver as measured from compiled code, the interpreter, the wrapper objects; the whole "
        "is what the same calls take from Python. Where the two parts of Python cannot be told apart they are one "
        "piece. Lower bar: GPU time.",
        figure,
    )


def _called(found: HostShares) -> str:
    return "" if found.top.caller == "binding" else f", {CALLER_WORDS[found.top.caller]}"


def _finding(ordered: list[HostShares]) -> str:
    """What the drawing shows, in words."""
    said = []
    for each in ordered:
        share = each.python
        python = f", {percent(share)} of it Python" if share is not None else ""
        called = CALLER_WORDS[each.top.caller]
        said.append(f"{each.target.short} {micro(each.host) if each.host else 'unknown'} {called}{python}")
    return f"Host time in microseconds per dispatch or launch: {'; '.join(said)}."


def _bar(found: HostShares) -> BarRow:
    device = found.device
    gpu: list[BarPiece] = []
    if device.figure and device.figure.measured:
        gpu = [
            ("GPU time overlapped by the CPU", max(device.hidden or 0.0, 0.0) / 1e3, PAPER),
            ("GPU time you wait for", max(device.exposed or 0.0, 0.0) / 1e3, MUTED),
        ]
    busy = micro(device.figure) if device.figure else ""
    return BarRow(
        f"{found.target.short}, a {plain(found.top.unit, 20)}{_called(found)}",
        [
            (host_shares.TITLES.get(name, name), value / 1e3, LAYER_COLOURS.get(name, MUTED))
            for name, value in host_shares.drawn(found.shares)
        ],
        micro(found.host) if found.host is not None and found.host.measured else "",
        gpu,
        f"{busy}, idle time included" if device.holds_gaps else busy,
    )


def _table(found: list[HostShares]) -> Table:
    names = [n for n in host_shares.TITLES if any(s.name == n for f in found for s in f.shares)]
    rows: list[list[str | Cell]] = []
    for each in found:
        shares = {s.name: s for s in each.shares}
        python = each.python
        rows.append(
            [
                Cell(each.target.short, each.target.stack),
                each.case,
                each.top.unit,
                micro_spread(each.host) if each.host is not None else "missing",
                percent_spread(python) if python is not None else "",
                *(_layer(each, shares[n]) if n in shares else "" for n in names),
                *(micro_spread(f) if f is not None else "" for f in (each.validation, each.minimal)),
                each.reason,
            ]
        )
    columns = [
        "target",
        "pattern",
        "unit",
        "host",
        "Python's share",
        *(host_shares.TITLES[n] for n in names),
        "of it validation",
        "a minimal Vulkan program",
        "remark",
    ]
    caption = f"The host's time, layer by layer: per cent of the host's time and {MICRO} per unit"
    return Table(caption, columns, rows, numeric=range(3, 7 + len(names)))


def _layer(found: HostShares, share: Share) -> str:
    parts = [host_shares.share_of_host(found, share), micro_spread(share.figure)]
    return ", ".join(p for p in (*parts, share.doubt) if p)


def _checks(view: View, found: list[HostShares]) -> Table | None:
    """The levels of each case measured in a second, independent way; None where the file has no second way."""
    rows: list[list[str | Cell]] = []
    for each in (f for f in found if not f.target.software):
        for level in each.levels:
            ways = {
                "its calls, timed one by one": checks.staged_check(level),
                "Dawn's Null backend and a minimal Vulkan program": checks.null_check(view, level),
            }
            rows += [
                [
                    Cell(each.target.short, each.target.stack),
                    each.target.pattern_label(level),
                    CALLER_WORDS[level.caller],
                    micro_of(check.measured),
                    way,
                    micro_of(check.predicted),
                    spread(check.residual / 1e3),
                    percent(check.residual.value / check.measured),
                ]
                for way, check in ways.items()
                if check is not None and check.residual is not None
            ]
    columns = [
        "target",
        "pattern",
        "measured",
        f"host, {MICRO}",
        "second way",
        f"second way, {MICRO}",
        f"residual, {MICRO}",
        "of the host's time",
    ]
    caption = "Each measured time beside a second way to it, and what that way leaves unexplained"
    return Table(caption, columns, rows, numeric=(3, 5, 6, 7)) if rows else None


def _devices(found: list[HostShares]) -> Table:
    rows: list[list[str | Cell]] = []
    for each in found:
        device = each.device
        kind = "span, holds gaps" if device.holds_gaps else "busy"
        time = f"{micro(device.figure)} ({kind})" if device.figure and device.figure.measured else "missing"
        rows.append(
            [
                Cell(each.target.short, each.target.stack),
                each.case,
                each.top.overlap,
                time,
                _difference(device.exposed),
                _difference(device.hidden),
                _check(each),
                device.reason,
            ]
        )
    columns = [
        "target",
        "pattern",
        "overlap",
        f"device, {MICRO}",
        f"exposed, {MICRO}",
        f"hidden, {MICRO}",
        f"complete by the overlap rule, {MICRO}",
        "remark",
    ]
    return Table("The device's time", columns, rows, numeric=(3, 4, 5), folded=True)


def _check(found: HostShares) -> str:
    check = checks.overlap_check(found.top)
    return f"{number(check.predicted / 1e3)}, {checks.verdict(check)}" if check is not None else ""


def _difference(value: float | None) -> str:
    return number(value / 1e3) if value is not None else ""
