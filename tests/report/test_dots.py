"""Test rows of dots: what is printed, what a pointer shows, what leaves the axis, and what is no mark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from overhead.reading.view import View
from overhead.report.core.dots import DotRow, Mark, caller_row, dot_figure, dot_rows, mark, shared_axis
from overhead.results import Figure, Value
from tests.fakes.report import fingerprint, record

pytestmark = pytest.mark.needs("matplotlib", "seaborn")


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    from overhead.report.core import draw

    with draw.style():
        yield


def drawn(rows: list[DotRow], **options: Any) -> tuple[Any, Any]:
    from overhead.report.core import draw

    figure, [[ax]] = draw.canvas([1.0])
    dot_rows(ax, rows, **options)
    return figure, ax


def arrows(ax: Any) -> list[str]:
    return [line.get_marker() for line in ax.lines if line.get_label() == "arrow"]


def dot(value: float, low: float | None = None, high: float | None = None) -> Mark:
    return Mark(Value(value, low, high), "#0067a5")


def test_the_values_of_a_row_stand_at_its_end_and_the_interval_is_shown_on_hover() -> None:
    from overhead.report.core import draw

    figure, _ = drawn([DotRow("torch", [dot(4.12, 4.06, 4.17), dot(3.44, 3.3, 3.6)])])
    text = draw.svg(figure)
    assert "4.12 · 3.44" in text
    assert "<title>torch: 4.12 (4.06 to 4.17)</title>" in text


def test_names_from_files_are_escaped_in_the_text_on_hover() -> None:
    from overhead.report.core import draw

    figure, _ = drawn([DotRow("<script>", [dot(4.12)])])
    assert "<title>&lt;script&gt;: 4.1</title>" in draw.svg(figure)


def test_an_interval_that_leaves_the_axis_has_an_arrow() -> None:
    assert arrows(drawn([DotRow("row", [dot(10.0, 9.0, 11.0)])])[1]) == []
    assert arrows(drawn([DotRow("row", [dot(10.0, 0.001, 11.0)])])[1]) == ["<"]
    assert arrows(drawn([DotRow("row", [dot(10.0, -5.0, 900.0)])])[1]) == ["<", ">"]


def test_a_shared_axis_holds_the_marks_of_all_panels() -> None:
    from overhead.report.core import draw

    _, grid = draw.canvas([1.0, 1.0])
    axes, rows = [ax for (ax,) in grid], [[DotRow("a", [dot(1.0)])], [DotRow("b", [dot(500.0, 400.0, 90_000.0)])]]
    for ax, own in zip(axes, rows, strict=True):
        dot_rows(ax, own)
    shared_axis(axes, rows)
    assert axes[0].get_xlim() == axes[1].get_xlim()
    assert axes[0].get_xlim()[0] < 1.0 < 500.0 < axes[0].get_xlim()[1]
    assert arrows(axes[1]) == [">"]


@pytest.mark.parametrize("low", [-11_000.0, 0.0])
def test_a_figure_whose_interval_reaches_zero_is_no_mark(low: float) -> None:
    assert mark(Figure(name="complete", value=12_000.0, low=low, high=35_000.0, status="noisy"), "#0067a5") == []
    assert len(mark(Figure(name="complete", value=12_000.0, low=1.0, high=35_000.0, status="noisy"), "#0067a5")) == 1


def test_the_note_of_a_row_names_callers_without_a_mark() -> None:
    lost = record("dawn", each=None, status="failed", caller="native")
    view = View(fingerprint(record("dawn"), lost))
    row = caller_row("dawn", [(view.target(r), r) for r in view.fingerprint.records])
    assert len(row.marks) == 1
    assert row.note == "from compiled code: failed"


def test_every_text_of_a_figure_is_at_least_12_px_as_drawn() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    from overhead.blocks.parts import Drawing
    from overhead.report.core import draw
    from overhead.report.core.registry import registered
    from tests.report.test_page_facts import everything

    view, pixels = View(everything()), 672 / (5.6 * 72)
    drawings = [part for s in registered() for part in s.build(view) if isinstance(part, Drawing)]
    assert len(drawings) >= 8
    for part in drawings:
        if part.figure.get_figwidth() == 5.6:
            FigureCanvasAgg(part.figure).draw()
            sizes = [t.get_fontsize() for t in part.figure.findobj(Text) if t.get_text().strip()]
            assert min(map(float, sizes)) * pixels >= 12, part.name
    assert draw.SMALL * pixels >= 12


def test_of_very_many_rows_the_first_and_the_last_are_drawn_and_the_rest_are_counted() -> None:
    (ax,) = dot_figure([DotRow(f"way {i}", [dot(1.0 + i)]) for i in range(100)], "us").axes
    said = [text.get_text() for text in [*ax.get_yticklabels(), *ax.texts]]
    ways = [int(label.partition(" ")[2]) for label in said if label.startswith("way")]
    assert ways == [*range(20), *range(80, 100)]
    assert "60 more" in said
    assert "in the table" in said
