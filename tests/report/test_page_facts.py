"""Compare the numbers of all sections for a made-up fingerprint with a golden file: no sentences.

A line is section | row | figure | number. After an intended change of a figure:
``python -m tests.report.test_page_facts``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from overhead.blocks.parts import Drawing, Table, cell_text
from overhead.reading.view import View
from overhead.report.core import draw
from overhead.report.core.registry import registered
from overhead.results import Fingerprint
from tests.fakes.report import crowded, cuda_run, training_run

pytestmark = pytest.mark.needs("matplotlib", "seaborn")

_REPEATS = ("records", "checks")
GOLDEN = Path(__file__).parents[1] / "data" / "report_facts.txt"


def everything() -> Fingerprint:
    """A fingerprint that fills almost every section: WebGPU and Vulkan targets, CUDA launches, training."""
    run = crowded()
    records = {r.key: r for r in (*run.records, *cuda_run().records, *training_run().records)}
    return msgspec.structs.replace(run, records=list(records.values()))


def page_facts() -> str:
    """The numbers in tables of all sections but those that repeat the input or other sections."""
    view = View(everything())
    with draw.style():
        return "".join(
            f"{section.name} | {fact}\n"
            for section in registered()
            if section.name not in _REPEATS
            for part in section.build(view)
            for fact in _facts(part)
        )


def _facts(part: object) -> Iterator[str]:
    table = part.table if isinstance(part, Drawing) else part
    if isinstance(table, Table) and table.numeric:
        for row in table.rows:
            cells = [cell_text(cell) for cell in row]
            label = ", ".join(cells[: min(table.numeric)])
            yield from (f"{label} | {table.columns[i]} | {cells[i]}" for i in table.numeric if cells[i])


def test_the_numbers_of_all_pages_equal_the_recorded_ones() -> None:
    assert page_facts() == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.slow
def test_drawing_a_figure_twice_gives_the_same_bytes() -> None:
    def drawings() -> dict[str, str]:
        view = View(everything())
        with draw.style():
            parts = [part for s in registered() if s.name in ("headline", "synchronisation") for part in s.build(view)]
            return {p.name: draw.svg(p.draw()) for p in parts if isinstance(p, Drawing)}

    first = drawings()
    assert {"headline", "synchronisation"} <= set(first)
    assert drawings() == first


if __name__ == "__main__":
    GOLDEN.write_text(page_facts(), encoding="utf-8")
