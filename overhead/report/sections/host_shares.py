"""Who takes the host's time: the ladder of callers and stacks, the device's bar beside it, sentences and a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from overhead.reading import checks, host_shares
from overhead.reading.format import MICRO, bounds, count, micro, micro_spread, number, plain, valued
from overhead.reading.host_shares import Device, HostShares, Share
from overhead.reading.view import View
from overhead.report.core.draw import INK, MUTED, PAPER, canvas, unit_below
from overhead.report.core.palette import LAYER_COLOURS
from overhead.report.core.parts import Cell, Drawing, Part, Table, Text
from overhead.report.core.registry import register

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LADDERS_DRAWN = 14
"""Ladders drawn at most; the table holds all."""
_USUAL_TITLE_LETTERS = 68
"""Longest panel title in the usual font size."""
_MOST_TITLE_LETTERS = 84
"""Longest panel title in the smaller font size."""


@register("ladder", "Who takes the time", 15)
def who(view: View) -> Iterator[Part]:
    found = host_shares.ladders(view)
    if not found:
        yield Text([
            "The split needs the same calls by several callers (binding, ffi, native) in one worker, or the same "
            "pattern on raw Vulkan; this file holds no such comparison."
        ])  # fmt: skip
        return
    first = leading(found)
    rest = [f for f in found if f not in first]
    split = [f for f in (*first, *rest) if f.split]
    if split:
        yield _drawing(split[:_MOST_LADDERS_DRAWN], len(split))
    yield Text(host_shares.ladder_sentences(first))
    if others := host_shares.ladder_sentences([f for f in rest if not f.target.software]):
        yield Text(others, folded="Every other ladder in a sentence")
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
    figure, grid = canvas([0.45] * len(found), around=0.55)
    for (ax,), each in zip(grid, found, strict=True):
        _bars(ax, each)
    from matplotlib.patches import Patch

    names = [n for n in host_shares.TITLES if any(s.name == n and s.separable for f in found for s in f.shares)]
    keys = [Patch(color=LAYER_COLOURS.get(n, MUTED), label=host_shares.TITLES.get(n, n)) for n in names]
    keys += [Patch(facecolor=MUTED, label="device, exposed"),
             Patch(facecolor=PAPER, edgecolor=MUTED, label="device, hidden")]  # fmt: skip
    figure.legend(handles=keys, loc="outside upper left", ncols=3)
    return Drawing(
        "ladder", "Host time by rung, device time beside it",
        f"Stacked bars for {count(len(found), 'ladder')}: binding, interpreter, API and driver in microseconds per "
        "unit, with a second bar for the device; the numbers are in the table below.",
        "Upper bar: the host's time, split by paired differences of the same calls with and without each layer; the "
        "last rung is a measured figure. Lines at the boundaries are the rungs' 95 % intervals; rungs that do not "
        "lie above zero are not drawn but listed. Lower bar: the device, what the host's work hides of it hollow. "
        "The two are never stacked. Every ladder has a scale of its own."
        + (f" Drawn: {len(found)} of {of}, one of each target first; the table has all." if of > len(found) else ""),
        figure,
    )  # fmt: skip


def _bars(ax: Axes, found: HostShares) -> None:
    at = 0.0
    for share in found.shares:
        value = valued(share.figure)
        if value is None or not share.separable:
            continue
        width = value / 1e3
        ax.barh(
            0, width, left=at, height=0.62, color=LAYER_COLOURS.get(share.name, MUTED), edgecolor=PAPER, linewidth=0.8
        )
        at += width
        low, high = bounds(share.figure)
        if low is not None and high is not None:
            ax.plot([at + (low - value) / 1e3, at + (high - value) / 1e3], [-0.02, -0.02], color=INK, linewidth=1.3)
    host = valued(found.host)
    if host is not None:
        ax.plot([host / 1e3] * 2, [-0.42, 0.42], color=INK, linewidth=1.2)
    _device_bar(ax, found.device)
    ax.set_yticks([0, 1], ["host", "device"])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(1.5, -0.55)
    ax.set_xlim(0, None)
    ax.margins(x=0.06)
    ax.grid(False, axis="y")
    title = plain(f"{found.target.label}, {found.case}", _MOST_TITLE_LETTERS)
    ax.set_title(title, fontsize=8 if len(title) <= _USUAL_TITLE_LETTERS else 6.8, pad=3)
    unit_below(ax, f"{MICRO} per {plain(found.top.unit, 20)}")


def _device_bar(ax: Axes, device: Device) -> None:
    time = valued(device.figure)
    exposed = max(device.exposed or 0.0, 0.0) / 1e3
    hidden = max(device.hidden or 0.0, 0.0) / 1e3
    if time is None:
        note = "no device time" + (f": {device.reason}" if device.reason else "")
        ax.text(0.01, 1, plain(note, 90), transform=ax.get_yaxis_transform(), va="center", fontsize=7, color=MUTED)
        return
    ax.barh(1, hidden, height=0.5, facecolor=PAPER, edgecolor=MUTED, linewidth=1)
    ax.barh(1, exposed, left=hidden, height=0.5, color=MUTED, edgecolor=MUTED, linewidth=1)
    if device.holds_gaps:
        ax.annotate("span: holds gaps", (hidden + exposed, 1), (4, 0), textcoords="offset points", va="center",
                    fontsize=7, color=MUTED)  # fmt: skip


def _table(found: list[HostShares]) -> Table:
    names = [n for n in host_shares.TITLES if any(s.name == n for f in found for s in f.shares)]
    rows: list[list[str | Cell]] = []
    for each in found:
        shares = {s.name: s for s in each.shares}
        total = micro_spread(each.host) if each.host is not None else "missing"
        rungs = [_rung(each, shares[n]) if n in shares else "" for n in names]
        validation = micro_spread(each.validation) if each.validation is not None else ""
        reasons = [each.reason, *(f"{s.title}: {s.figure.reason}" for s in each.shares if valued(s.figure) is None)]
        head: list[str | Cell] = [
            Cell(each.target.label, each.target.stack),
            each.case,
            each.top.unit,
        ]
        rows.append([*head, total, *rungs, validation, "; ".join(r for r in reasons if r)])
    columns = [
        "target",
        "pattern",
        "unit",
        "host",
        *(host_shares.TITLES[n] for n in names),
        "of it validation",
        "remark",
    ]
    caption = f"The host's time, rung by rung: per cent of the host's time and {MICRO} per unit"
    return Table(caption, columns, rows, numeric=range(3, 5 + len(names)))


def _rung(found: HostShares, share: Share) -> str:
    parts = [host_shares.share_of_host(found, share), micro_spread(share.figure)]
    return ", ".join(p for p in (*parts, share.doubt) if p)


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
