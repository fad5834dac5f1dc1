"""Compare the text of all sections for a made-up fingerprint with a golden file.

Other tests need not repeat this text. After an intended change of wording: ``python -m tests.report.test_page_text``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from overhead.reading.view import View
from overhead.results import Fingerprint
from tests.fakes.report import crowded, cuda_run, training_run

pytestmark = pytest.mark.needs("matplotlib", "seaborn")

GOLDEN = Path(__file__).parents[1] / "data" / "report_text.txt"


def everything() -> Fingerprint:
    """A fingerprint that fills almost every section: WebGPU and Vulkan targets, CUDA launches, training."""
    run = crowded()
    records = {r.key: r for r in (*run.records, *cuda_run().records, *training_run().records)}
    return msgspec.structs.replace(run, records=list(records.values()))


def page_text() -> str:
    """All sections of a machine's pages and of the method's page, one paragraph or table row a line."""
    from overhead.report.core import draw
    from overhead.report.core.method import method
    from overhead.report.core.registry import registered

    view = View(everything())
    with draw.style():
        sections = [(s.name, s.title, list(s.build(view))) for s in registered()] + method(view)
        return "\n".join(line for section in sections for line in _lines(*section)) + "\n"


def _lines(name: str, title: str, parts: Sequence[object]) -> Iterator[str]:
    from overhead.report.core.parts import Cards, Cell, Listing, Table, Terms, Text

    yield f"== {name}: {title}"
    for part in parts:
        if isinstance(part, Text):
            yield from (part.folded, *part.paragraphs) if part.folded else part.paragraphs
        elif isinstance(part, Cards):
            yield from (f"{card.label}: {card.text}" for card in part.figures)
        elif isinstance(part, Listing):
            yield from (line for item in part.items for line in item)
        elif isinstance(part, Terms):
            yield from (f"{term.name}: {term.meaning}" for term in part.terms)
        elif isinstance(part, Table):
            cells = [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in part.rows]
            yield from (part.caption, *(" | ".join(row) for row in (part.columns, *cells)))
        else:
            yield from (getattr(part, field) for field in ("title", "alt", "caption"))


def test_the_text_of_the_page_is_unchanged() -> None:
    assert page_text() == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.slow
def test_drawing_a_figure_twice_gives_the_same_bytes() -> None:
    from overhead.report.core import draw
    from overhead.report.core.parts import Drawing
    from overhead.report.core.registry import registered

    def drawings() -> dict[str, str]:
        view = View(everything())
        with draw.style():
            parts = [
                part
                for s in registered()
                if s.name in ("axes", "waits", "curves", "synchronisation")
                for part in s.build(view)
            ]
            return {p.name: draw.svg(p.figure) for p in parts if isinstance(p, Drawing)}

    first = drawings()
    assert {"axes", "waits", "curves", "training"} <= set(first)
    assert drawings() == first


if __name__ == "__main__":
    GOLDEN.write_text(page_text(), encoding="utf-8")
