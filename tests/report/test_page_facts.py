"""Compare the numbers of all sections for a made-up fingerprint with a golden file: no words.

A line is section | number of its table | stack of the row | number of the column | numbers of the
cell, or whether it has a text. After an intended change of a figure: ``python -m
tests.report.test_page_facts``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from overhead.blocks.parts import Cell, Drawing, Table, cell_text
from overhead.reading.view import View
from overhead.report.core import draw
from overhead.report.core.registry import registered
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
    records = {r.key: r for r in (*run.records, *cuda_run().records, *training_run().records)}
    return msgspec.structs.replace(run, records=list(records.values()))


def page_facts() -> str:
    """The numbers in tables of all sections but those that repeat the input or other sections."""
    view = View(everything())
    lines = []
    with draw.style():
        for section in registered():
            if section.name in _REPEATS:
                continue
            parts = [
                part.table if isinstance(part, Drawing) else part for part in section.build(view)
            ]
            tables = [part for part in parts if isinstance(part, Table) and part.numeric]
            for number, table in enumerate(tables):
                lines += [f"{section.name} | {number} | {fact}\n" for fact in _facts(table)]
    return "".join(lines)


def _facts(table: Table) -> Iterator[str]:
    for row in table.rows:
        stack = next((cell.stack for cell in row if isinstance(cell, Cell) and cell.stack), "")
        for i in table.numeric:
            text = cell_text(row[i])
            if text:
                yield f"{stack} | {i} | {' '.join(numbers(text)) or 'text'}"


def test_the_numbers_of_all_pages_equal_the_recorded_ones() -> None:
    assert page_facts() == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.slow
def test_drawing_a_figure_twice_gives_the_same_bytes() -> None:
    def drawings() -> dict[str, str]:
        view = View(everything())
        with draw.style():
            parts = [
                part
                for s in registered()
                if s.name in ("headline", "synchronisation")
                for part in s.build(view)
            ]
            return {p.name: draw.svg(p.draw()) for p in parts if isinstance(p, Drawing)}

    first = drawings()
    assert {"headline", "synchronisation"} <= set(first)
    assert drawings() == first


if __name__ == "__main__":
    GOLDEN.write_text(page_facts(), encoding="utf-8")
