"""This machine beside others: key figures as ratios to a reference run and to an earlier run of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.reading.beside import (
    Beside,
    Spreads,
    beside,
    beside_sentence,
    earlier_run,
    left_out_sentence,
    spreads_of,
    version_changes,
)
from overhead.reading.format import MICRO, factor_spread, plain
from overhead.reading.key_figures import key_figures
from overhead.reading.view import View, boards_of, without_device
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.draw import MUTED, WIDE_INCHES
from overhead.report.core.machines import Machines, machine_name
from overhead.report.core.registry import register_across

_TITLES = {"host": "Bound by the host", "device": "Bound by the device", "": "Waits, shares, and what differs in bound"}
_LOOKS, _OUTSIDE = (("#0b5394", "o"), (MUTED, "D")), "#b5432a"
"""Colour and marker of the first run beside this one and of the second; the colour of a ratio outside the band."""


@register_across("fingerprint", "This machine beside others", 7, page="front")
def fingerprint(machines: Machines) -> Iterator[Part]:
    """The picture and its table; a sentence where there is no run to set beside this one."""
    view, reference = machines.own, machines.reference
    spreads = spreads_of(view, machines.others)
    both = beside(view, reference, spreads) if reference else None, earlier_run(view, machines.others, spreads)
    found = [one for one in both if one is not None and one.pairs]
    if not found:
        yield Text(["No other run has a figure in common with this one. overhead report --reference names one."])
        return
    sentences = [beside_sentence(one, _name(one)) for one in found]
    yield Text(sentences)
    title = f"{machine_name(view.fingerprint.machine)} beside {_name(found[0])}"
    said = ["A pair has one stack, one caller and the same parameters.", _band_words(spreads)]
    for one in found:
        changes = plain(version_changes(one.other.fingerprint, view.fingerprint), 300)
        said += [f"Versions, from {_name(one)} to this run: {changes}." if changes else "", left_out_sentence(one)]
    shapes = {_name(one): (marker, own) for one, (own, marker) in zip(found, _LOOKS, strict=False)}
    unit, caption = "this run over the other; left of 1: faster here", " ".join(filter(None, said))
    draw = partial(dot_figure, _panels(found), unit, shapes, line_at_one=True, width=WIDE_INCHES)
    yield Drawing("fingerprint", title, " ".join(sentences), caption, draw, table=key_figure_table(view, found))


def _name(found: Beside) -> str:
    """The other run in words, with its board where that is known to be another."""
    own, run = found.view.fingerprint, found.other.fingerprint
    boards = boards_of(own.records)[:1], boards_of(run.records)[:1]
    board = ", other board" if all(boards) and boards[0] != boards[1] else ""
    name = f"this machine{board}" if own.machine.id == run.machine.id else machine_name(run.machine)
    return f"{name} ({run.created[:10]}, {run.profile} run, method {run.method_version})"


def _band_words(spreads: Spreads) -> str:
    if not spreads:
        return "No band shows how far another run here may lie: measure again to get one: make report."
    most = max(spreads.values(), key=lambda spread: spread.boards)
    source = f"{most.boards} {'runs of this machine' if most.kinds == 1 else 'boards'}"
    return f"Another run here lies in the band in 90 % of cases ({source}); a noisy figure has none."


def key_figure_table(view: View, found: Sequence[Beside] = ()) -> Table:
    """The key figures that have a value, with their intervals, and what stands beside them, or why nothing does."""
    known = [k for k in view.once(key_figures) if k.measured is not None]
    _, device = without_device([k.of for k in known])
    rows: list[list[str | Cell]] = []
    for k in known:
        row: list[str | Cell] = [k.label, k.with_interval, k.next_run]
        for one in found:
            pair = one.pairs.get(k.label)
            row += [pair.other.with_interval, factor_spread(pair.ratio)] if pair else ["", one.left_out[k.label]]
        rows.append([*row, "; ".join(filter(None, ("" if device else k.of, k.reason.partition(":")[0])))])
    columns = ["", "this run", f"next run, {MICRO}", *(c for one in found for c in (_name(one), "this over it")), ""]
    title, numeric = "Key figures" + (f", {device}" if device else ""), range(1, len(columns) - 1)
    return Table(title, columns, rows, numeric, folded=bool(found), optional={2: 1}).without_empty()


def _panels(found: Sequence[Beside]) -> dict[str, list[DotRow]]:
    """Rows by what bounds their figures: this run's value and the ratios, and behind them the values of the others."""
    panels: dict[str, list[DotRow]] = {}
    for k in found[0].view.once(key_figures):
        pairs = [(one.pairs[k.label], look) for one, look in zip(found, _LOOKS, strict=False) if k.label in one.pairs]
        if pairs:
            marks = [Mark(p.ratio, _OUTSIDE if p.outside else own, marker) for p, (own, marker) in pairs]
            values, band = " · ".join(p.other.text for p, _ in pairs), next((p.band for p, _ in pairs if p.band), None)
            row = DotRow(f"{k.label}: {k.text}", marks, end=values, band=band)
            panels.setdefault(pairs[0][0].limit, []).append(row)
    return {title: panels[limit] for limit, title in _TITLES.items() if limit in panels}
