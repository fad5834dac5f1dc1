"""The front page: order, the headline figure, the script of its table, links to the glossary, and its limits."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.reading.dispatch_costs import dispatch_costs
from overhead.reading.glossary import GLOSSARY
from overhead.reading.next_run import next_run_text
from overhead.reading.view import View
from overhead.results import Record
from tests.fakes.report import H200, figure, fingerprint, record, share
from tests.reading.test_dispatch_costs import GPU, VULKAN, gpu_run, met
from tests.report.report_page import Page

pytestmark = pytest.mark.needs("matplotlib", "seaborn", "jinja2")


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Page:
    from overhead.report import render

    out = tmp_path_factory.mktemp("front")
    return Page(render([fingerprint(*gpu_run())], out).read_text(encoding="utf-8"))


def test_each_row_of_the_table_of_stacks_holds_one_case() -> None:
    """Dawn from Python is noisy and host-bound, from compiled code balanced: no row mixes them."""
    from overhead.blocks.parts import Table, cell_text
    from overhead.report.sections.front import stacks

    python = record("dawn", each=26_600.0, status="noisy", more=(met(25_000.0, 35_000.0),), **VULKAN)
    compiled = record("dawn", each=11_730.0, caller="native", more=(met(12_100.0, 13_600.0),), **VULKAN)
    view = View(fingerprint(python, msgspec.structs.replace(compiled, bound="balanced"), machine=H200))
    table = next(part for part in stacks(view) if isinstance(part, Table))
    texts = [[cell_text(cell) for cell in row] for row in table.rows]
    first, second, _ = (dict(zip(table.columns, row, strict=True)) for row in texts)
    assert (first["called"], first["next run, µs"], first["met, µs"], first["bound"]) == (
        "from Python",
        "",
        "25 to 35",
        "host",
    )
    assert second["next run, µs"] == next_run_text(msgspec.structs.replace(compiled, bound="balanced"), H200) != ""
    assert (second["met, µs"], second["bound"]) == ("12.1 to 13.6", "balanced")


def test_the_front_page_calls_a_stack_device_bound_only_if_its_records_are() -> None:
    from overhead.report.sections.host_shares import device_limits

    made = {
        "vulkan": record("vulkan", each=11_430.0, caller="native", **VULKAN),
        "dawn": record("dawn", each=11_730.0, caller="native", **VULKAN),
        "wgpu-native": record("wgpu-native", each=15_400.0, caller="native", **VULKAN),
    }
    bounds = {"vulkan": "device", "dawn": "balanced", "wgpu-native": "host"}
    device, balanced = device_limits(
        View(fingerprint(*(msgspec.structs.replace(one, bound=bounds[stack]) for stack, one in made.items())))
    )
    assert "raw Vulkan 11.4" in device
    assert "Dawn" not in device
    assert "Dawn 11.7" in balanced
    assert "wgpu-native" not in device + balanced


def test_the_script_of_the_front_page_is_small_and_the_only_one_its_policy_allows(front: Page) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", front.text, re.DOTALL)
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{hashed}';" in front.text
    assert len(script) < 3_000
    assert "unsafe-inline" not in front.text.split("script-src")[1].split(";")[0]


def test_the_first_place_of_each_term_links_to_the_glossary(front: Page) -> None:
    links = [link for link in front.links if link.startswith("#term-")]
    assert len(links) == len(set(links)) > 5
    assert {term.id for term in GLOSSARY} <= set(front.ids)


def test_glossary_links_escape_the_text() -> None:
    from overhead.report.core.pages import GlossaryLinks

    link = GlossaryLinks("pages/cases.html")
    assert link("<b> from Python & noisy") == (
        '&lt;b&gt; <a class="term" href="../index.html#term-from-python">from Python</a> &amp; '
        '<a class="term" href="../index.html#term-noisy">noisy</a>'
    )
    assert link("from Python, noisy, denoisy") == "from Python, noisy, denoisy"


def test_the_front_page_of_a_run_without_a_resolved_cost_has_the_reasons(tmp_path: Path) -> None:
    from overhead.report import render

    noisy = render([fingerprint(record("dawn", status="noisy", **VULKAN))], tmp_path).read_text(encoding="utf-8")
    words = re.sub("<[^>]*>", "", noisy)
    assert "does not resolve the cost of a dispatch" in words
    assert "WebGPU, Dawn: from Python: noisy, 19.6 to 20.4" in words
    assert "overhead doctor names what disturbs" in words
    assert "No stack could be measured" not in noisy


@pytest.mark.parametrize(("width", "drawn"), [(0.02, True), (1.5, False)])
def test_the_cpu_time_by_layer_is_drawn_only_where_it_is_resolved(width: float, drawn: bool) -> None:
    from overhead.blocks.parts import Drawing
    from overhead.report.sections.host_shares import time_shares

    top, ffi = record("dawn", each=30e3, **VULKAN), record("dawn", each=20e3, caller="ffi", **VULKAN)
    native = record("dawn", each=10e3, caller="native", **VULKAN)
    figures = [f if f.name != "host" else figure("host", 8_000.0, width=width) for f in native.figures]
    native = msgspec.structs.replace(native, figures=figures)
    pairs = [share("binding-share", top, ffi, 8e3), share("python-share", top, native, 16e3)]
    parts = list(time_shares(View(fingerprint(top, ffi, native, comparisons=pairs))))
    assert any(isinstance(part, Drawing) for part in parts) == drawn


def test_a_run_of_a_plugins_stack_alone_counts_as_measured_on_the_front_page(tmp_path: Path) -> None:
    from overhead.report import render

    text = render([fingerprint(record("my-stack", api="CPU", adapter="CPU"))], tmp_path).read_text(encoding="utf-8")
    assert "No stack could be measured" not in "".join(p.read_text() for p in tmp_path.rglob("*.html"))
    assert "the cheapest unit of work here goes through my-stack (CPU)" in re.sub("<[^>]*>", "", text)


def drawn_boxes(*records: Record) -> list[tuple[str, Any]]:
    """The values and labels of the headline figure with their boxes; none is cut off."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from overhead.report.core import draw
    from overhead.report.core.headline_figure import headline_figure

    costs = dispatch_costs(View(fingerprint(*records)))
    assert costs is not None
    with draw.style():
        figure = headline_figure(costs)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        (ax,) = figure.axes
        found = [(t.get_text(), t.get_window_extent(canvas.get_renderer())) for t in [*ax.texts, *ax.get_yticklabels()]]
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for _, box in found)
    return found


def test_a_headline_row_with_only_the_range_of_unpinned_processes_is_drawn_and_its_label_fits() -> None:
    noisy = record("wgpu-native", status="noisy", api="Vulkan", software=True, more=(met(87_000.0, 151_000.0),))
    assert "met 87 to 151" in dict(drawn_boxes(record("numpy", each=500.0, api="CPU", adapter="CPU"), noisy))


def test_the_values_in_the_headline_figure_do_not_overlap() -> None:
    near = [
        record("cuda-driver", each=4_000.0, more=(met(3_900.0, 4_400.0),), **GPU),
        record("cuda-driver", each=3_990.0, caller="native", **GPU),
        record("cuda-graph", "replay", 3_980.0, params={"maker": "driver"}, **{**GPU, "unit": "node"}),
    ]
    found = drawn_boxes(*near, *gpu_run()[:6])
    boxes = [box for text, box in found if re.match(r"[\d.]+$|met ", text)]
    assert len(boxes) >= 10
    assert not [1 for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]
