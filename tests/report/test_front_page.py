"""The front page: order, the headline figure, the script of its table, links to the glossary, and
its limits.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from pathlib import Path

import msgspec
import pytest

from overhead.blocks.parts import Drawing, Table, cell_text
from overhead.reading.dispatch_costs import ROW_GROUPS, DispatchCosts, dispatch_costs
from overhead.reading.view import View
from overhead.report import render
from overhead.report.core import draw
from overhead.report.core.headline_figure import headline_figure, rows_drawn
from overhead.report.core.pages import GlossaryLinks
from overhead.report.sections.front import headline
from overhead.report.sections.stacks import stacks
from overhead.results import Figure, Gpu
from overhead.words.dispatch_costs import GROUP_TITLES
from overhead.words.glossary import GLOSSARY
from overhead.words.headline import lead_sentences
from overhead.words.next_run import next_run_text
from overhead.words.report.headline_figure import HOLLOW, ONLY_NOISY, TWO_SPEEDS, without_picture
from overhead.words.report.stacks import called
from tests.fakes.report import H200, fingerprint, record
from tests.reading.test_dispatch_costs import GPU, VULKAN, gpu_run, met
from tests.report.report_page import Page, numbers

pytestmark = pytest.mark.needs("matplotlib", "seaborn", "jinja2")


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Page:
    out = tmp_path_factory.mktemp("front")
    return Page(render([fingerprint(*gpu_run())], out).read_text(encoding="utf-8"))


def test_each_row_of_the_table_of_stacks_holds_one_case() -> None:
    """Dawn from Python is noisy and host-bound, from compiled code balanced: no row mixes them."""
    python = record(
        "dawn", each=26_600.0, status="noisy", more=(met(25_000.0, 35_000.0),), **VULKAN
    )
    compiled = record(
        "dawn", each=11_730.0, caller="native", more=(met(12_100.0, 13_600.0),), **VULKAN
    )
    h100 = msgspec.structs.replace(H200, gpus=[Gpu(name="NVIDIA H100 80GB HBM3")])
    view = View(
        fingerprint(python, msgspec.structs.replace(compiled, bound="balanced"), machine=h100)
    )
    table = next(part for part in stacks(view) if isinstance(part, Table))
    texts = [[cell_text(cell) for cell in row] for row in table.rows]
    next_run, met_by_fresh = (
        table.columns.index(heading) for heading in ("run-to-run, µs", "unpinned, µs")
    )
    limit = met_by_fresh + 1
    first, second, _ = texts
    assert first[1] == called("python", python)
    assert first[next_run] == next_run_text(python, h100)
    assert numbers(first[met_by_fresh]) == ["25", "35"]
    assert (
        second[next_run]
        == next_run_text(msgspec.structs.replace(compiled, bound="balanced"), h100)
        != ""
    )
    assert numbers(second[met_by_fresh]) == ["12.1", "13.6"]
    assert (first[limit], second[limit]) == ("host", "balanced")


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


def test_the_front_page_of_a_run_without_a_resolved_cost_has_the_reasons(tmp_path: Path) -> None:
    noisy = render([fingerprint(record("dawn", status="noisy", **VULKAN))], tmp_path).read_text(
        encoding="utf-8"
    )
    words = re.sub("<[^>]*>", "", noisy)
    assert ONLY_NOISY in words
    assert {"19.6", "20.4"} <= {*numbers(words)}
    assert "figures/headline.svg" in noisy
    failed = record("dawn", each=None, status="failed", reason="out of memory", **VULKAN)
    text = render([fingerprint(failed)], tmp_path).read_text(encoding="utf-8")
    assert "out of memory" in re.sub("<[^>]*>", "", text)
    assert "figures/headline.svg" not in text


def test_a_run_of_a_plugins_stack_alone_counts_as_measured_on_the_front_page(
    tmp_path: Path,
) -> None:
    run = fingerprint(record("my-stack", api="CPU", adapter="CPU"))
    text = render([run], tmp_path).read_text(encoding="utf-8")
    nothing = without_picture(None, measured_elsewhere=False)
    assert nothing not in "".join(p.read_text() for p in tmp_path.rglob("*.html"))
    costs = dispatch_costs(View(run))
    assert costs is not None
    assert "my-stack" in lead_sentences(costs)[0]
    assert lead_sentences(costs)[0] in re.sub("<[^>]*>", "", text)


STACKS = (
    *("torch", "torch-compile", "jax", "cupy", "mlx"),
    *("cuda-driver", "cuda-core", "numba-cuda", "triton", "warp", "cute-dsl", "pyopencl"),
    *("vulkan", "dawn", "wgpu-native", "chromium", "firefox"),
    "my-stack",
)


def many_stacks() -> DispatchCosts:
    """The costs of 18 stacks on one GPU, of all groups in turn."""
    records = [
        record(name, each=2_000.0 + 500 * (7 * i % 18), **GPU) for i, name in enumerate(STACKS)
    ]
    found = dispatch_costs(View(fingerprint(*records)))
    assert found is not None
    return found


def test_of_many_stacks_the_figure_has_the_most_chosen_and_cheapest_and_the_table_has_all() -> None:
    costs = many_stacks()
    drawn = rows_drawn(costs)
    sizes = [sum(row.group == group for row in drawn) for group in ROW_GROUPS]
    cheapest = [next(row for row in costs.rows if row.group == group) for group in ROW_GROUPS]
    assert (sum(sizes), sizes[-1], max(sizes)) == (12, 1, 4)
    assert all(row in drawn for row in cheapest)
    assert {"torch", "jax", "cuda-driver", "triton", "warp", "dawn", "wgpu-native"} <= {
        row.stack for row in drawn
    }
    table = next(part for part in stacks(costs.view) if isinstance(part, Table))
    assert len({str(row[0]) for row in table.rows}) == len(costs.rows) == len(STACKS)
    caption = next(part.caption for part in headline(costs.view) if isinstance(part, Drawing))
    assert all(row.label in caption for row in costs.rows if row not in drawn)


def test_rows_without_a_cost_leave_the_figure_first_and_the_cheapest_from_python_stays() -> None:
    failed = ("torch", "jax", "cupy", "triton", "warp", "cute-dsl")
    records = [
        record(name, each=1_000.0, caller="native", **GPU)
        if name == "cuda-driver"
        else record(name, each=None, status="failed", reason="out of memory", **GPU)
        if name in failed
        else record(name, each=2_000.0 if name == "pyopencl" else 4_000.0, **GPU)
        for name in STACKS
    ]
    costs = dispatch_costs(View(fingerprint(*records)))
    assert costs is not None
    drawn = {row.stack for row in rows_drawn(costs)}
    assert len(drawn) == 12
    assert drawn == {*STACKS} - {*failed}


def test_the_rows_of_one_group_have_no_title() -> None:
    costs = dispatch_costs(View(fingerprint(record("dawn", **VULKAN), record("vulkan", **VULKAN))))
    assert costs is not None
    labels = [label.get_text() for label in headline_figure(costs).axes[0].get_yticklabels()]
    assert sorted(labels) == sorted(row.label for row in costs.rows)
    assert len(labels) == 2
    assert set(GROUP_TITLES.values()) < {
        label.get_text() for label in headline_figure(many_stacks()).axes[0].get_yticklabels()
    }


@pytest.mark.parametrize("many", [False, True])
def test_the_values_in_the_headline_figure_do_not_overlap_and_none_is_cut_off(many: bool) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    near = [
        record("cuda-driver", each=4_000.0, more=(met(3_900.0, 4_400.0),), **GPU),
        record("cuda-driver", each=3_990.0, caller="native", **GPU),
        record(
            "cuda-graph", "replay", 3_980.0, params={"maker": "driver"}, **{**GPU, "unit": "node"}
        ),
    ]
    costs = many_stacks() if many else dispatch_costs(View(fingerprint(*near, *gpu_run()[:6])))
    assert costs is not None
    with draw.style():
        figure = headline_figure(costs)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        texts = [
            t for t in [*figure.axes[0].texts, *figure.axes[0].get_yticklabels()] if t.get_text()
        ]
        found = [(t.get_text(), t.get_window_extent(canvas.get_renderer())) for t in texts]
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for _, box in found)
    boxes = [box for text, box in found if many or re.match(r"[\d.]+$", text)]
    assert len(boxes) >= 8
    assert not [1 for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]


def leftmost_batch_with_two_speeds() -> DispatchCosts:
    """Two stacks of one group; the leftmost value of the first is as wide as a range and has two
    marks.
    """
    both = Figure(
        name="complete",
        value=960.0,
        low=900.0,
        high=1_150.0,
        status="bimodal",
        modes=[960.0, 1_100.0],
    )
    batch = record(
        "cuda-graph", "replay", 960.0, params={"maker": "driver"}, **{**GPU, "unit": "node"}
    )
    figures = [both if one.name == "complete" else one for one in batch.figures]
    records = [
        record("cuda-driver", each=4_280.0, **GPU),
        msgspec.structs.replace(batch, figures=figures),
        record("torch", each=6_500.0, **GPU),
    ]
    costs = dispatch_costs(View(fingerprint(*records)))
    assert costs is not None
    return costs


def test_the_value_of_a_leftmost_mark_with_two_speeds_does_not_lie_over_the_name_of_its_stack() -> (
    None
):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with draw.style():
        figure = headline_figure(leftmost_batch_with_two_speeds())
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        ax = figure.axes[0]
        (value,) = [text for text in ax.texts if text.get_text() == "0.96 or 1.1"]
        left = value.get_window_extent(canvas.get_renderer()).x0
        names = [
            label.get_window_extent(canvas.get_renderer())
            for label in ax.get_yticklabels()
            if label.get_text()
        ]
    assert names
    assert left > max(name.x1 for name in names)


def test_every_entry_of_the_legend_has_a_symbol_and_two_speeds_are_not_drawn_as_noise() -> None:
    from matplotlib.lines import Line2D

    with draw.style():
        figure = headline_figure(leftmost_batch_with_two_speeds())
    (legend,) = [
        one for one in figure.legends if TWO_SPEEDS in [text.get_text() for text in one.get_texts()]
    ]
    assert HOLLOW not in [text.get_text() for text in legend.get_texts()]
    lines = [handle for handle in legend.legend_handles if isinstance(handle, Line2D)]
    assert lines
    assert not [line for line in lines if line.get_marker() in ("", "None", None)]
