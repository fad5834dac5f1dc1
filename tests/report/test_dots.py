"""Test rows of dots: what is printed, what goes on beyond the drawing, and what is no mark."""

from __future__ import annotations

from typing import Any

import pytest

from overhead.blocks.parts import Drawing, Part
from overhead.reading.view import TargetLabel, View
from overhead.report.core.dots import DotLook, DotRow, Head, Mark, dot_figure, narrow_dot_figure
from overhead.report.core.draw import new_figure, plain_log_ticks, wrapped_label
from overhead.report.core.registry import registered, registered_each
from overhead.results import Value
from tests.report.test_page_facts import everything

pytestmark = pytest.mark.needs("matplotlib", "seaborn")


PIXELS_A_POINT = 672 / (5.6 * 72)
"""A page draws a figure of 5.6 inches 672 px wide."""


def dot(value: float, low: float | None = None, high: float | None = None) -> Mark:
    return Mark(Value(value, low, high), "#0067a5")


def drawn(*rows: DotRow) -> Any:
    """The axes of a figure of these rows."""
    (ax,) = dot_figure({"": rows}, "us").axes
    return ax


def laid_out(figure: Any) -> None:
    """Draw the figure, so that everything has its place."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).draw()


def texts_of(ax: Any) -> list[str]:
    return [text.get_text() for text in [*ax.get_yticklabels(), *ax.texts]]


def arrows(ax: Any) -> list[str]:
    return [line.get_marker() for line in ax.lines if line.get_marker() in ("<", ">")]


def test_a_row_of_dots_has_its_values_at_the_end() -> None:
    row = DotRow("torch", [dot(4.12, 4.06, 4.17), dot(3.44, 3.3, 3.6)])
    assert "4.12 · 3.44" in texts_of(drawn(row))


def test_an_interval_that_is_longer_than_drawn_has_an_arrow() -> None:
    short = DotRow("row", [dot(10.0, 9.0, 11.0)])
    long_below = DotRow("row", [dot(10.0, 0.001, 11.0)])
    long_on_both_sides = DotRow("row", [dot(10.0, 0.001, 10_000.0)])
    assert arrows(drawn(short)) == []
    assert arrows(drawn(long_below)) == ["<"]
    assert arrows(drawn(long_on_both_sides)) == ["<", ">"]


def test_a_row_with_a_value_below_zero_has_a_note_and_no_dot() -> None:
    row = DotRow("row", [dot(-3.0, -4.0, -2.0)])
    assert "not above zero" in texts_of(drawn(row))


def test_panels_of_dots_share_one_axis_and_a_short_axis_has_ticks_between_powers_of_ten() -> None:
    panels = {"a": [DotRow("row", [dot(30.0)])], "b": [DotRow("row", [dot(1500.0)])]}
    first, second = dot_figure(panels, "us").axes
    low, high = first.get_xlim()
    assert (low, high) == second.get_xlim()
    assert len([tick for tick in second.get_xticks() if low <= tick <= high]) > 2


@pytest.mark.parametrize(
    ("low", "high"),
    [(5.9, 10.1), (4.1, 4.4), (8.0, 12.0), (1.0, 1000.0), (0.7, 150.0), (2.0, 1e9), (99.0, 101.0)],
)
def test_an_axis_has_at_least_three_ticks_however_short_or_long_it_is(
    low: float, high: float
) -> None:
    ax = drawn(DotRow("row", [dot(low), dot(high)]))
    left, right = ax.get_xlim()
    ticks = [tick for tick in ax.get_xticks() if left <= tick <= right]
    assert 3 <= len(ticks) <= 10
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert len(set(labels)) == len(labels), "no two ticks have the same label"


def test_an_axis_of_many_rows_has_its_ticks_at_both_ends() -> None:
    few = drawn(DotRow("row", [dot(3.0)]))
    many = drawn(*[DotRow(f"row {i}", [dot(1.0 + i)]) for i in range(15)])
    at_top = [ax.xaxis.get_tick_params()["labeltop"] for ax in (few, many)]
    assert at_top == [False, True]


def test_the_values_of_a_row_stand_in_columns_below_their_heads() -> None:
    rows = [DotRow("a", [dot(3.0)], columns=["3", "4"]), DotRow("b", [dot(5.0)], columns=["5", ""])]
    heads = [Head("first", "", "black"), Head("second", "", "black")]
    (ax,) = dot_figure({"": rows}, "us", look=DotLook(heads)).axes
    laid_out(ax.figure)
    places: dict[str, float] = {}
    for text in ax.texts:
        places[text.get_text()] = text.get_window_extent().x0
    assert places["3"] == pytest.approx(places["first"], abs=1)
    assert places["5"] == pytest.approx(places["first"], abs=1)
    assert places["4"] == pytest.approx(places["second"], abs=1)
    assert places["first"] < places["second"]


def test_on_a_phone_the_label_of_a_row_stands_above_its_marks_and_leaves_them_the_width() -> None:
    label = "a label of thirty letters, or so"
    rows = [DotRow(label, [dot(3.0)]), DotRow("b", [dot(70.0, 60.0, 80.0)])]
    figure = narrow_dot_figure({"": rows}, "us", look=DotLook(line_at=10.0, joined=True))
    ax: Any = figure.axes[0]
    laid_out(figure)
    assert ax.get_window_extent().width > 0.8 * figure.bbox.width
    (text,) = [text for text in ax.texts if text.get_text() == label]
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    (place,) = ax.transData.transform([(3.0, dots[0].get_ydata()[0])])
    assert text.get_window_extent().y0 > place[1], "above the mark"


def test_on_a_phone_the_values_of_a_row_have_the_colours_of_its_marks_and_do_not_overlap() -> None:
    marks = [Mark(Value(1.3), "#ff0000", "o"), Mark(Value(1.1), "#0000ff", "s")]
    row = DotRow("a", marks, columns=["10", "11", "12"])
    heads = [Head("this", "", "black"), Head("b", "o", "#00ff00"), Head("c", "s", "#0000ff")]
    figure = narrow_dot_figure({"": [row]}, "us", look=DotLook(heads))
    laid_out(figure)
    values = [text for text in figure.axes[0].texts if text.get_text()[-2:] in ("10", "11", "12")]
    own, first, second = sorted(values, key=lambda text: text.get_text()[-2:])
    assert (first.get_color(), second.get_color()) == ("#ff0000", "#0000ff")
    boxes = [text.get_window_extent() for text in (own, first, second)]
    assert boxes[0].x1 < boxes[1].x0
    assert boxes[1].x1 < boxes[2].x0
    assert boxes[0].y0 == pytest.approx(boxes[2].y0, abs=2)


@pytest.mark.parametrize(("low", "high"), [(5.9, 10.1), (4.1, 4.4), (99.0, 101.0)])
def test_a_short_axis_has_three_ticks_without_being_made_longer(low: float, high: float) -> None:
    _, (ax,) = new_figure([2.0])
    ax.set(xscale="log", xlim=(low, high))
    plain_log_ticks(ax.xaxis)
    ticks = [tick for tick in ax.get_xticks() if low <= tick <= high]
    assert 3 <= len(ticks) <= 10
    assert ax.get_xlim() == (low, high)


def parts_of_all_pages(view: View) -> list[Part]:
    parts: list[Part] = []
    for section in registered():
        parts += section.build(view)
    for each in registered_each():
        for name, _ in each.names(view):
            parts += each.build(view, name)
    return parts


def test_every_text_of_a_figure_is_at_least_12_px_as_drawn() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    parts = parts_of_all_pages(View(everything()))
    drawings = [part for part in parts if isinstance(part, Drawing)][:8]
    assert len(drawings) >= 4
    for drawing in drawings:
        figure = drawing.draw()
        FigureCanvasAgg(figure).draw()
        texts = [text for text in figure.findobj(Text) if text.get_text().strip()]
        smallest_points = min(float(text.get_fontsize()) for text in texts)
        assert smallest_points * PIXELS_A_POINT >= 12, drawing.name


def test_a_figure_of_very_many_rows_has_the_first_and_the_last_and_the_number_of_the_others() -> (
    None
):
    rows = [DotRow(f"way {i}", [dot(1.0 + i)]) for i in range(100)]
    texts = texts_of(drawn(*rows))
    shown = [int(text.removeprefix("way ")) for text in texts if text.startswith("way ")]
    assert shown == [*range(20), *range(80, 100)], "the first 20 and the last 20 of 100"
    assert "60 more" in texts


def test_the_device_of_a_target_begins_a_line_and_an_on_of_another_name_does_not() -> None:
    target = TargetLabel("dawn", "NVIDIA H200").followed_by(": MLP training step")
    assert wrapped_label(target, 40) == "dawn\nNVIDIA H200: MLP training step"
    assert wrapped_label(target.text, 60) == target.text
    assert wrapped_label(TargetLabel("dawn", "H200"), 40) == "dawn on H200"
