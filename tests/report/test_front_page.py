"""The front page: order, the headline figure, the script of its table, links to the glossary, and
its limits.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from overhead.blocks.parts import Drawing, Table, cell_text
from overhead.loading.files import read_fingerprint
from overhead.reading import typical_run
from overhead.reading.dispatch_costs import ROW_GROUPS, DispatchCosts, dispatch_costs
from overhead.reading.next_run import case_of, committed_table, kind_of
from overhead.reading.view import View
from overhead.report import render
from overhead.report.core import draw
from overhead.report.core.headline_figure import headline_figure, rows_drawn
from overhead.report.core.headline_narrow import narrow_headline_figure
from overhead.report.core.machines import from_fingerprints
from overhead.report.core.pages import GlossaryLinks
from overhead.report.sections.front import headline
from overhead.report.sections.stacks import stacks
from overhead.results import BOARD, Figure as RunFigure, Gpu, Record
from overhead.words.dispatch_costs import GROUP_TITLES
from overhead.words.format import costs_text
from overhead.words.glossary import GLOSSARY
from overhead.words.headline import lead_sentences
from overhead.words.next_run import next_run_text
from overhead.words.report.headline_figure import (
    HOLLOW,
    ONLY_NOISY,
    OTHER_BOARDS,
    TWO_SPEEDS,
    without_picture,
)
from overhead.words.report.stacks import called
from tests.fakes.report import H200, fingerprint, record, share
from tests.reading.test_dispatch_costs import GPU, VULKAN, gpu_run, met
from tests.report.report_page import Page, numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

DATA = Path(__file__).parents[2] / "reports" / "data"

pytestmark = pytest.mark.needs("matplotlib", "seaborn", "jinja2")


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Page:
    out = tmp_path_factory.mktemp("front")
    return Page(render([fingerprint(*gpu_run())], out).read_text(encoding="utf-8"))


def table_of_stacks(view: View) -> Table:
    return next(part for part in stacks(view) if isinstance(part, Table))


def row_texts(table: Table) -> list[dict[str, str]]:
    """The cells of each row by the headings of their columns."""
    rows = []
    for row in table.rows:
        texts = [cell_text(cell) for cell in row]
        rows.append(dict(zip(table.columns, texts, strict=True)))
    return rows


def test_each_row_of_the_table_of_stacks_holds_one_case() -> None:
    """Dawn from Python is noisy and host-bound, from compiled code balanced: no row mixes them."""
    python = record(
        "dawn",
        each=26_600.0,
        status="noisy",
        more=(met(low_ns=25_000.0, high_ns=35_000.0),),
        **VULKAN,
    )
    host_bound = record(
        "dawn",
        each=11_730.0,
        caller="native",
        more=(met(low_ns=12_100.0, high_ns=13_600.0),),
        **VULKAN,
    )
    compiled = msgspec.structs.replace(host_bound, bound="balanced")
    h100 = msgspec.structs.replace(H200, gpus=[Gpu(name="NVIDIA H100 80GB HBM3")])
    view = View(fingerprint(python, compiled, machine=h100))
    of_python, of_compiled, _ = row_texts(table_of_stacks(view))

    assert of_python["called"] == called("python", python)
    assert of_python["run-to-run, µs"] == next_run_text(python, h100)
    assert numbers(of_python["unpinned, µs"]) == ["25", "35"]
    assert of_python["limit"] == "host"

    assert of_compiled["run-to-run, µs"] == next_run_text(compiled, h100)
    assert of_compiled["run-to-run, µs"] != ""
    assert numbers(of_compiled["unpinned, µs"]) == ["12.1", "13.6"]
    assert of_compiled["limit"] == "balanced"


def test_the_script_of_the_front_page_is_small_and_the_only_one_its_policy_allows(
    front: Page,
) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", front.text, re.DOTALL)
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{hashed}';" in front.text
    assert len(script) < 3_000
    assert "unsafe-inline" not in front.text.split("script-src")[1].split(";")[0]


def test_the_first_place_of_each_term_links_to_the_glossary(front: Page) -> None:
    links = [link for link in front.links if "#term-" in link]
    assert len(links) == len(set(links)) > 5
    assert set(links) <= {f"pages/method.html#{term.id}" for term in GLOSSARY}


def test_glossary_links_escape_the_text() -> None:
    link = GlossaryLinks("pages/cases.html")
    assert (
        link("<b> from Python & noisy")
        == '&lt;b&gt; <a class="term" href="../pages/method.html#term-from-python">from Python</a>'
        ' &amp; <a class="term" href="../pages/method.html#term-noisy">noisy</a>'
    )
    assert link("from Python, noisy, denoisy") == "from Python, noisy, denoisy"


def front_page(record: Record, folder: Path) -> str:
    """The first page of a report on a run with this case alone."""
    return render([fingerprint(record)], folder).read_text(encoding="utf-8")


def without_tags(page: str) -> str:
    return re.sub("<[^>]*>", "", page)


def test_the_front_page_of_noisy_costs_draws_them_and_says_so(tmp_path: Path) -> None:
    page = front_page(record("dawn", status="noisy", **VULKAN), tmp_path)
    assert ONLY_NOISY in without_tags(page)
    assert {"19.6", "20.4"} <= {*numbers(without_tags(page))}
    assert "figures/headline.svg" in page


def test_the_front_page_of_failed_cases_has_the_reasons_and_no_figure(tmp_path: Path) -> None:
    failed = record("dawn", each=None, status="failed", reason="out of memory", **VULKAN)
    page = front_page(failed, tmp_path)
    assert "out of memory" in without_tags(page)
    assert "figures/headline.svg" not in page


def test_a_run_of_a_plugins_stack_alone_counts_as_measured_on_the_front_page(
    tmp_path: Path,
) -> None:
    case = record("my-stack", api="CPU", adapter="CPU")
    page = front_page(case, tmp_path)
    nothing_measured = without_picture(None, measured_elsewhere=False)
    for path in tmp_path.rglob("*.html"):
        assert nothing_measured not in path.read_text()
    costs = dispatch_costs(View(fingerprint(case)))
    assert costs is not None
    first_sentence = lead_sentences(costs)[0]
    assert "my-stack" in first_sentence
    assert first_sentence in without_tags(page)


STACKS = (
    *("torch", "torch-compile", "jax", "cupy", "mlx"),
    *("cuda-driver", "cuda-core", "numba-cuda", "triton", "warp", "cute-dsl", "pyopencl"),
    *("vulkan", "dawn", "wgpu-native", "chromium", "firefox"),
    "my-stack",
)


def costs_of(*records: Record) -> DispatchCosts:
    """The costs of a run with these cases."""
    costs = dispatch_costs(View(fingerprint(*records)))
    assert costs is not None
    return costs


def many_stacks() -> DispatchCosts:
    """The costs of 18 stacks on one GPU, of all groups in turn."""
    records = []
    for i, name in enumerate(STACKS):
        place = 7 * i % 18  # each place once, and neighbours far apart
        records.append(record(name, each=2_000.0 + 500 * place, **GPU))
    return costs_of(*records)


def test_of_many_stacks_the_figure_has_the_most_chosen_and_cheapest() -> None:
    costs = many_stacks()
    drawn = rows_drawn(costs)
    sizes = Counter(row.group for row in drawn)
    assert sizes.total() == 12
    assert max(sizes.values()) == 4
    others = ROW_GROUPS[-1]
    assert sizes[others] == 1
    for group in ROW_GROUPS:
        cheapest = next(row for row in costs.rows if row.group == group)
        assert cheapest in drawn
    most_chosen = {"torch", "jax", "cuda-driver", "triton", "warp", "dawn", "wgpu-native"}
    assert most_chosen <= {row.stack for row in drawn}


def drawing_of(costs: DispatchCosts) -> Drawing:
    """The headline figure as the front page has it."""
    machines = from_fingerprints([costs.view.fingerprint])
    (drawing,) = [part for part in headline(machines) if isinstance(part, Drawing)]
    return drawing


def test_of_many_stacks_the_table_has_all_and_the_caption_those_that_are_not_drawn() -> None:
    costs = many_stacks()
    table = table_of_stacks(costs.view)
    assert len({str(row[0]) for row in table.rows}) == len(STACKS)
    assert len(costs.rows) == len(STACKS)
    caption = drawing_of(costs).caption
    for row in costs.rows:
        if row not in rows_drawn(costs):
            assert row.label in caption


def test_rows_without_a_cost_leave_the_figure_first_and_the_cheapest_from_python_stays() -> None:
    failed = {"torch", "jax", "cupy", "triton", "warp", "cute-dsl"}
    records = []
    for name in STACKS:
        if name in failed:
            records.append(record(name, each=None, status="failed", reason="out of memory", **GPU))
        elif name == "cuda-driver":
            records.append(record(name, each=1_000.0, caller="native", **GPU))
        else:
            cost = 2_000.0 if name == "pyopencl" else 4_000.0
            records.append(record(name, each=cost, **GPU))
    drawn = {row.stack for row in rows_drawn(costs_of(*records))}
    assert len(drawn) == 12
    assert drawn == {*STACKS} - failed


def labels_of(costs: DispatchCosts) -> list[str]:
    """The labels of rows and groups in the headline figure."""
    ax = headline_figure(costs).axes[0]
    return [label.get_text() for label in ax.get_yticklabels()]


def test_the_rows_of_one_group_have_no_title() -> None:
    costs = costs_of(record("dawn", **VULKAN), record("vulkan", **VULKAN))
    labels = labels_of(costs)
    assert len(labels) == 2
    assert sorted(labels) == sorted(row.label for row in costs.rows)
    assert set(GROUP_TITLES.values()) < {*labels_of(many_stacks())}


NODE: dict[str, Any] = {**GPU, "unit": "node", "params": {"maker": "driver"}}
"""The fields of a case that replays a CUDA graph."""


def near_costs() -> DispatchCosts:
    """Costs of one stack that differ by less than a hundredth, among those of other stacks."""
    return costs_of(
        record("cuda-driver", each=4_000.0, more=(met(low_ns=3_900.0, high_ns=4_400.0),), **GPU),
        record("cuda-driver", each=3_990.0, caller="native", **GPU),
        record("cuda-graph", "replay", 3_980.0, **NODE),
        *gpu_run()[:6],
    )


@dataclasses.dataclass(frozen=True)
class DrawnText:
    """A text of a figure, and the pixels that it takes."""

    text: str
    box: Bbox


def drawn_texts(figure: Figure) -> list[DrawnText]:
    """The values and labels of the headline figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    ax = figure.axes[0]
    found = []
    for text in [*ax.texts, *ax.get_yticklabels()]:
        if text.get_text():
            box = text.get_window_extent(canvas.get_renderer())
            found.append(DrawnText(text.get_text(), box))
    return found


def overlap(boxes: Iterable[Bbox]) -> bool:
    return any(box.overlaps(other) for box, other in itertools.combinations(boxes, 2))


def test_the_texts_of_a_headline_figure_of_many_stacks_do_not_overlap_and_none_is_cut_off() -> None:
    with draw.style():
        figure = headline_figure(many_stacks())
        texts = drawn_texts(figure)
    assert len(texts) >= 8
    assert all(text.box.x0 >= 0 and text.box.x1 <= figure.bbox.width for text in texts)
    assert not overlap(text.box for text in texts)


@pytest.mark.parametrize("costs", [many_stacks(), near_costs()])
def test_on_a_phone_the_texts_of_the_headline_figure_do_not_overlap_and_none_is_cut_off(
    costs: DispatchCosts,
) -> None:
    with draw.style():
        figure = narrow_headline_figure(costs)
        texts = drawn_texts(figure)
    assert figure.get_figwidth() == draw.NARROW_INCHES
    labels = {text.text for text in texts}
    assert {row.label for row in rows_drawn(costs)} <= labels
    assert all(text.box.x0 >= 0 and text.box.x1 <= figure.bbox.width for text in texts)
    assert not overlap(text.box for text in texts)
    (legend,) = figure.legends
    assert not overlap([legend.get_window_extent(), *[text.box for text in texts]])


def test_on_a_phone_a_noisy_cost_is_told_as_such_and_no_axis_has_numbers_above_the_costs() -> None:
    made = [record("torch", each=7_000.0, **GPU), record("dawn", status="noisy", **VULKAN)]
    found = dispatch_costs(View(fingerprint(*made)))
    assert found is not None
    with draw.style():
        figure = narrow_headline_figure(found)
        ax: Any = figure.axes[0]
        figure.draw_without_rendering()
    texts = [text.get_text() for text in ax.texts]
    assert costs_text(found.rows[0].marks["python"]) in texts
    assert f"({costs_text(found.rows[1].marks['python'])})" in texts
    assert ax.get_xticklabels()
    assert not any(tick.label2.get_visible() for tick in ax.xaxis.get_major_ticks())


def test_each_mark_has_the_range_of_the_other_boards_and_the_legend_and_caption_tell_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = [record("cuda-driver", each=4_000.0, **GPU), record("torch", each=7_000.0, **GPU)]
    found = dispatch_costs(View(fingerprint(*made, machine=H200)))
    assert found is not None
    by_board = {"1" * BOARD: 3_700.0, "2" * BOARD: 5_100.0, "3" * BOARD: 4_400.0}
    known = {kind_of(H200): {case_of(made[0]): by_board}}
    table = msgspec.structs.replace(committed_table(), costs=known)
    monkeypatch.setattr(typical_run, "committed_table", lambda: table)
    with draw.style():
        figure = headline_figure(found)
    (band,) = figure.axes[0].collections
    (path,) = band.get_paths()
    outline: Any = path.vertices
    places = {round(float(x), 3) for x, _ in outline}
    assert places == {3.7, 5.1}
    (legend,) = figure.legends
    assert OTHER_BOARDS in [text.get_text() for text in legend.get_texts()]
    assert "3" in numbers(drawing_of(found).caption)


def test_python_s_share_stands_outside_of_the_bar_and_the_cpu_time_at_its_other_end() -> None:
    python = record("dawn", each=30e3, **VULKAN)
    compiled = record("dawn", each=28e3, caller="native", **VULKAN)
    split = share("python-share", python, compiled, difference=3e3)
    found = dispatch_costs(View(fingerprint(python, compiled, comparisons=[split])))
    assert found is not None
    with draw.style():
        figure = headline_figure(found)
        figure.draw_without_rendering()
        of_costs, of_shares = figure.axes
        share_text, time_text = of_shares.texts
        patches: Any = of_shares.patches
        bars = [bar.get_window_extent() for bar in patches if bar.get_width() > 0]
    assert "%" in share_text.get_text()
    assert numbers(time_text.get_text())
    for text in (share_text, time_text):
        assert not overlap([text.get_window_extent(), *bars[:1]])
        assert not overlap([text.get_window_extent(), *bars[1:]])
    assert len(of_costs.get_xticks()) >= 3


def test_the_values_of_near_costs_do_not_overlap_and_no_text_is_cut_off() -> None:
    with draw.style():
        figure = headline_figure(near_costs())
        texts = drawn_texts(figure)
    assert all(text.box.x0 >= 0 and text.box.x1 <= figure.bbox.width for text in texts)
    values = [text.box for text in texts if re.match(r"[\d.]+$", text.text)]
    assert len(values) >= 8
    assert not overlap(values)


def leftmost_batch_with_two_speeds() -> DispatchCosts:
    """Two stacks of one group; the leftmost value of the first is as wide as a range and has two
    marks.
    """
    two_speeds = RunFigure(
        name="complete",
        value=960.0,
        low=900.0,
        high=1_150.0,
        status="bimodal",
        modes=[960.0, 1_100.0],
    )
    batch = record("cuda-graph", "replay", 960.0, **NODE)
    others = [figure for figure in batch.figures if figure.name != "complete"]
    return costs_of(
        record("cuda-driver", each=4_280.0, **GPU),
        msgspec.structs.replace(batch, figures=[two_speeds, *others]),
        record("torch", each=6_500.0, **GPU),
    )


def test_the_value_of_a_leftmost_mark_with_two_speeds_does_not_lie_over_the_name_of_its_stack() -> (
    None
):
    costs = leftmost_batch_with_two_speeds()
    with draw.style():
        texts = drawn_texts(headline_figure(costs))
    (value,) = [text for text in texts if text.text == "0.96 or 1.1"]
    labels = {row.label for row in costs.rows}
    names = [text for text in texts if text.text in labels]
    assert len(names) == len(costs.rows)
    assert value.box.x0 > max(name.box.x1 for name in names)


def test_the_legend_of_a_run_with_all_signs_is_not_cut_off() -> None:
    view = View(read_fingerprint(DATA / "nvidia-h100-all.json"))
    costs = dispatch_costs(view)
    assert costs is not None
    with draw.style():
        figure = headline_figure(costs)
        figure.draw_without_rendering()
        (legend,) = figure.legends
        box = legend.get_window_extent()
    assert len(legend.get_texts()) >= 10
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width


def test_every_entry_of_the_legend_has_a_symbol_and_two_speeds_are_not_drawn_as_noise() -> None:
    from matplotlib.lines import Line2D

    with draw.style():
        figure = headline_figure(leftmost_batch_with_two_speeds())
    entries = {}
    for legend in figure.legends:
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            entries[text.get_text()] = handle
    assert TWO_SPEEDS in entries
    assert HOLLOW not in entries
    lines = [handle for handle in entries.values() if isinstance(handle, Line2D)]
    assert lines
    assert not [line for line in lines if line.get_marker() in ("", "None", None)]
