"""Who takes the host's time: a bar of layers, the device's bar beside it, sentences, checks and a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from overhead.reading import checks, host_shares
from overhead.reading.format import (
    MICRO,
    bounds,
    count,
    micro,
    micro_of,
    micro_spread,
    number,
    percent,
    percent_spread,
    plain,
    spread,
    valued,
)
from overhead.reading.host_shares import Device, HostShares, Share
from overhead.reading.view import CALLER_WORDS, View
from overhead.report.core.draw import INK, MUTED, PAPER, canvas, unit_below
from overhead.report.core.palette import LAYER_COLOURS
from overhead.report.core.parts import Cell, Drawing, Part, Table, Text
from overhead.report.core.registry import register

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LADDERS_DRAWN = 14
"""Cases drawn at most; the table holds all."""
_BELOW_ZERO_HATCH = "////"
_USUAL_TITLE_LETTERS = 68
"""Longest panel title in the usual font size."""
_MOST_TITLE_LETTERS = 76
"""Longest panel title in the smaller font size; a longer one leaves out the device."""


@register("ladder", "CPU time by layer", 15, page="cases")
def who(view: View) -> Iterator[Part]:
    found = host_shares.ladders(view)
    if not found:
        yield Text([
            "The split needs the same calls from Python and from compiled code in one worker; this file holds no "
            "such comparison."
        ])  # fmt: skip
        return
    first = leading(found)
    rest = [f for f in found if f not in first]
    split = [f for f in (*first, *rest) if f.split]
    if split:
        yield _drawing(split[:_MOST_LADDERS_DRAWN], len(split))
    yield Text(host_shares.ladder_sentences(first))
    if checked := _checks(view, found):
        yield checked
    if others := host_shares.ladder_sentences([f for f in rest if not f.target.software]):
        yield Text(others, folded="Every other case in a sentence")
    yield _table(found)
    yield _devices(found)


def leading(found: list[HostShares]) -> list[HostShares]:
    """Of each target the ladder of its base case, else its first."""
    by_target: dict[str, HostShares] = {}
    for each in found:
        if each.target.key not in by_target or each.top is each.target.base:
            by_target[each.target.key] = each
    return list(by_target.values())


def _drawing(found: list[HostShares], of: int) -> Drawing:
    figure, grid = canvas([0.6 if f.minimal else 0.45 for f in found], around=0.55)
    for (ax,), each in zip(grid, found, strict=True):
        _bars(ax, each)
    from matplotlib.patches import Patch

    names = [n for n in host_shares.TITLES if any(s.name == n for f in found for s in f.shares)]
    keys = [Patch(color=LAYER_COLOURS.get(n, MUTED), label=host_shares.TITLES.get(n, n)) for n in names]
    if any(s.doubt == host_shares.BELOW_ZERO for f in found for s in f.shares):
        keys.append(Patch(facecolor=PAPER, edgecolor=INK, hatch=_BELOW_ZERO_HATCH, label="below zero"))
    if any(f.minimal for f in found):
        keys.append(Patch(facecolor=PAPER, edgecolor=INK, label="a minimal Vulkan program"))
    keys += [Patch(facecolor=MUTED, label="device, exposed"),
             Patch(facecolor=PAPER, edgecolor=MUTED, label="device, hidden")]  # fmt: skip
    figure.legend(handles=keys, loc="outside upper left", ncols=3)
    return Drawing(
        "ladder", "Host time by layer, device time beside it",
        f"Stacked bars for {count(len(found), 'case')}: library and driver, interpreter and wrapper objects in "
        "microseconds per unit, with a bar for the device; the numbers are in the table below.",
        "Upper bar: the host's time, from left to right as measured from compiled code, from Python without wrapper "
        "objects, and from Python as usual. A layer is the difference of two of these, so the bar ends at the whole. "
        "Lines at the boundaries are 95 % intervals of the measured times; a hatched layer goes back to the left, "
        "since the calls are faster with it. A minimal Vulkan program does the same work with the fewest calls; it is "
        "no layer. Lower bar: GPU time, hollow where the host's work overlaps it. Every panel has its own scale."
        + (f" Drawn: {len(found)} of {of}, one of each target first; the table has all." if of > len(found) else ""),
        figure,
    )  # fmt: skip


def _bars(ax: Axes, found: HostShares) -> None:
    at = 0.0
    for share in reversed(found.shares):
        value = valued(share.figure)
        if value is None:
            continue
        width = value / 1e3
        shade = LAYER_COLOURS.get(share.name, MUTED)
        if width >= 0:
            ax.barh(0, width, left=at, height=0.62, color=shade, edgecolor=PAPER, linewidth=0.8)
        else:
            ax.barh(0, -width, left=at + width, height=0.62, facecolor=PAPER, edgecolor=shade, linewidth=1,
                    hatch=_BELOW_ZERO_HATCH)  # fmt: skip
        at += width
        low, high = bounds(share.level)
        if low is not None and high is not None:
            ax.plot([low / 1e3, high / 1e3], [-0.02, -0.02], color=INK, linewidth=1.3)
    host = valued(found.host)
    if host is not None:
        ax.plot([host / 1e3] * 2, [-0.42, 0.42], color=INK, linewidth=1.2)
    rows = ["host"]
    if (minimal := valued(found.minimal)) is not None:
        ax.barh(1, minimal / 1e3, height=0.5, facecolor=PAPER, edgecolor=INK, linewidth=1)
        rows.append("minimal Vulkan")
    rows.append("device")
    _device_bar(ax, found.device, len(rows) - 1)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.5, -0.55)
    ax.set_xlim(0, None)
    ax.margins(x=0.06)
    ax.grid(False, axis="y")
    title = plain(f"{found.target.label}, {found.case}")
    if len(title) > _MOST_TITLE_LETTERS:
        software = " (software)" if found.target.software else ""
        title = plain(f"{found.target.stack}{software}, {found.case}", _MOST_TITLE_LETTERS)
    ax.set_title(title, fontsize=8 if len(title) <= _USUAL_TITLE_LETTERS else 6.8, pad=3)
    unit_below(ax, f"{MICRO} per {plain(found.top.unit, 20)}")


def _device_bar(ax: Axes, device: Device, row: int) -> None:
    time = valued(device.figure)
    exposed = max(device.exposed or 0.0, 0.0) / 1e3
    hidden = max(device.hidden or 0.0, 0.0) / 1e3
    if time is None:
        note = "no device time" + (f": {device.reason}" if device.reason else "")
        ax.text(0.01, row, plain(note, 90), transform=ax.get_yaxis_transform(), va="center", fontsize=7, color=MUTED)
        return
    ax.barh(row, hidden, height=0.5, facecolor=PAPER, edgecolor=MUTED, linewidth=1)
    ax.barh(row, exposed, left=hidden, height=0.5, color=MUTED, edgecolor=MUTED, linewidth=1)
    if device.holds_gaps:
        ax.annotate("span: holds gaps", (hidden + exposed, row), (4, 0), textcoords="offset points", va="center",
                    fontsize=7, color=MUTED)  # fmt: skip


def _table(found: list[HostShares]) -> Table:
    names = [n for n in host_shares.TITLES if any(s.name == n for f in found for s in f.shares)]
    rows: list[list[str | Cell]] = []
    for each in found:
        shares = {s.name: s for s in each.shares}
        python = each.python
        rows.append([
            Cell(each.target.label, each.target.stack), each.case, each.top.unit,
            micro_spread(each.host) if each.host is not None else "missing",
            percent_spread(*python.over(1)) if python is not None else "",
            *(_layer(each, shares[n]) if n in shares else "" for n in names),
            *(micro_spread(f) if f is not None else "" for f in (each.validation, each.minimal)), each.reason,
        ])  # fmt: skip
    columns = ["target", "pattern", "unit", "host", "Python's share", *(host_shares.TITLES[n] for n in names),
               "of it validation", "a minimal Vulkan program", "remark"]  # fmt: skip
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
                [Cell(each.target.label, each.target.stack), each.target.pattern_label(level),
                 CALLER_WORDS[level.caller], micro_of(check.measured), way, micro_of(check.predicted),
                 spread(*check.residual.over(1e3)), percent(check.residual.value / check.measured)]
                for way, check in ways.items() if check is not None and check.residual is not None
            ]  # fmt: skip
    columns = ["target", "pattern", "measured", f"host, {MICRO}", "second way", f"second way, {MICRO}",
               f"residual, {MICRO}", "of the host's time"]  # fmt: skip
    caption = "Each measured time beside a second way to it, and what that way leaves unexplained"
    return Table(caption, columns, rows, numeric=(3, 5, 6, 7)) if rows else None


def _devices(found: list[HostShares]) -> Table:
    rows: list[list[str | Cell]] = []
    for each in found:
        device = each.device
        kind = "span, holds gaps" if device.holds_gaps else "busy"
        time = f"{micro(device.figure)} ({kind})" if device.figure and valued(device.figure) is not None else "missing"
        rows.append([
            Cell(each.target.label, each.target.stack), each.case, each.top.overlap, time,
            _difference(device.exposed), _difference(device.hidden), _check(each), device.reason,
        ])  # fmt: skip
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
