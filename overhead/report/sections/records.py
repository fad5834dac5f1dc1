"""Every figure of every case, for those who look one up."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.format import micro_spread, spread
from overhead.reading.next_run import next_run_text
from overhead.reading.view import CALLER_WORDS, View
from overhead.report.core.registry import register
from overhead.results import Figure, Record

_FIGURE_COLUMNS = (
    "complete",
    "host",
    "issue",
    "fixed",
    "device_busy",
    "device_span",
    "empty_wait",
    "naive",
    "naive_idle",
    "legacy",
    "prepare",
    "first",
)


@register("records", "All cases", 98, page="cases")
def records(view: View) -> Iterator[Part]:
    if not view.fingerprint.records:
        yield Text(["The file holds no case."])
        return
    rows: list[list[str | Cell]] = []
    for record in view.fingerprint.records:
        target = view.target(record)
        params = record.case.key.split(" ", 3)[3]
        head = [
            Cell(target.label, target.stack),
            record.pattern,
            CALLER_WORDS[record.caller],
            params,
            record.unit,
            record.status,
        ]
        numbers = (_number(record.figure(name)) for name in _FIGURE_COLUMNS)
        next_run = next_run_text(record, view.fingerprint.machine)
        rows.append([*head, *numbers, next_run, record.bound, _others(record), _window(record)])
    yield Text(
        ["Times in microseconds, with 95 % intervals; per unit, except fixed, waits, T(1) (naive), prepare and first."],
        quiet=True,
    )
    columns = ["target", "pattern", "called", "dependency and parameters", "unit", "status", *_FIGURE_COLUMNS,
               "next run", "bound", "other figures", "window"]  # fmt: skip
    yield Table("All cases", columns, rows, numeric=range(6, 7 + len(_FIGURE_COLUMNS)), folded=True)


def _number(figure: Figure | None) -> str:
    if figure is None or (found := figure.measured) is None:
        return figure.status if figure is not None else ""
    return micro_spread(figure) if figure.unit == "ns" else spread(found)


def _others(record: Record) -> str:
    """The figures without a column, such as the calls timed one by one and the making of a graph."""
    return "; ".join(f"{f.name} {_number(f)}" for f in record.figures if f.name not in _FIGURE_COLUMNS)


def _window(record: Record) -> str:
    return " ".join(f"{k}={v}" for k, v in record.window.items())
