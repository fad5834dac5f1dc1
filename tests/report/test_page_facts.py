"""Compare the numbers of all sections for a made-up fingerprint with a golden file: no words.

A line is section | number of its table | stack of the row | number of the column | numbers of the
cell, or whether it has a text. After an intended change of a figure: ``python -m
tests.report.test_page_facts``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from overhead.blocks.parts import Cell, Drawing, Part, Table, cell_text
from overhead.reading.view import View
from overhead.report.core import draw
from overhead.report.core.machines import from_fingerprints
from overhead.report.core.registry import registered
from overhead.report.sections.front import headline
from overhead.report.sections.waiting import synchronisation
from overhead.results import Fingerprint
from tests.fakes.report import crowded, cuda_run, training_run
from tests.report.report_page import numbers

pytestmark = pytest.mark.needs("matplotlib", "seaborn")

_REPEATS = ("records", "checks")
GOLDEN = Path(__file__).parents[1] / "data" / "report_facts.txt"


def everything() -> Fingerprint:
    """A fingerprint that fills almost every section: WebGPU and Vulkan targets, CUDA launches,
    training.
    """
    run = crowded()
    by_key = {}
    for record in (*run.records, *cuda_run().records, *training_run().records):
        by_key[record.key] = record
    return msgspec.structs.replace(run, records=list(by_key.values()))


def page_numbers() -> str:
    """The numbers in tables of all sections but those that repeat the input or other sections."""
    view = View(everything())
    lines = []
    with draw.style():
        for section in registered():
            if section.name not in _REPEATS:
                for number, table in enumerate(tables_with_numbers(section.build(view))):
                    for line in numbers_of(table):
                        lines.append(f"{section.name} | {number} | {line}\n")
    return "".join(lines)


def tables_with_numbers(parts: Iterable[Part]) -> Iterator[Table]:
    for part in parts:
        table = part.table if isinstance(part, Drawing) else part
        if isinstance(table, Table) and table.numeric:
            yield table


def numbers_of(table: Table) -> Iterator[str]:
    """For each filled cell of a column of numbers: stack of the row, column, and the numbers."""
    for row in table.rows:
        stacks = [cell.stack for cell in row if isinstance(cell, Cell) and cell.stack]
        stack = stacks[0] if stacks else ""
        for i in table.numeric:
            text = cell_text(row[i])
            if text:
                shown = " ".join(numbers(text)) or "text"
                yield f"{stack} | {i} | {shown}"


def test_the_numbers_of_all_pages_equal_the_recorded_ones() -> None:
    assert page_numbers() == GOLDEN.read_text(encoding="utf-8")


def drawings() -> dict[str, str]:
    """The SVG of each figure of two sections, by name."""
    machines = from_fingerprints([everything()])
    found = {}
    with draw.style():
        for part in [*headline(machines), *synchronisation(machines.own)]:
            if isinstance(part, Drawing):
                found[part.name] = draw.svg(part.draw())
                if part.draw_narrow is not None:
                    found[f"{part.name}, narrow"] = draw.svg(part.draw_narrow())
    return found


@pytest.mark.slow
def test_drawing_a_figure_twice_gives_the_same_bytes() -> None:
    first = drawings()
    assert {"headline", "headline, narrow", "synchronisation"} <= set(first)
    assert drawings() == first


if __name__ == "__main__":
    GOLDEN.write_text(page_numbers(), encoding="utf-8")
