"""Test the page over all machines and the page of the method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.blocks.parts import Drawing, Text, cell_text
from overhead.claims.registry import claims
from overhead.errors import UsageError
from overhead.loading.files import write_fingerprint
from overhead.reading.published import publications
from overhead.report import build, render
from overhead.report.across.beside import fingerprint as beside
from overhead.report.across.over_time import over_time
from overhead.report.across.vendors import vendor, vendors
from overhead.report.core.machines import from_fingerprints, from_paths
from overhead.results import Fingerprint, Gpu, Machine, Record
from overhead.words.format import run_time
from overhead.words.report.machines import listed_name, shown_runs
from overhead.words.report.pages import from_run
from overhead.words.report.vendors import devices_at_end, row_name
from tests.fakes.report import crowded, figure, fingerprint, record, share
from tests.report.report_page import Page, numbers

pytestmark = pytest.mark.needs("matplotlib", "seaborn", "jinja2")


def machine(index: int, gpu: str = "NVIDIA H200") -> Machine:
    return Machine(
        id=f"{index:012x}", cpu=f"Fake CPU {index}", cores=2, memory_gib=8, gpus=[Gpu(name=gpu)]
    )


def run(index: int, gpu: str = "NVIDIA H200", each: float = 20_000.0, day: int = 1) -> Fingerprint:
    """A run on a machine where a dispatch costs ``each`` ns, with three callers and a graph
    node.
    """
    top = record(each=each, adapter=gpu)
    ffi = record(each=each / 2, caller="ffi", adapter=gpu)
    native = record(each=each / 4, caller="native", adapter=gpu)
    node = record("cuda-graph", "replay", each / 10, api="CUDA", unit="node", adapter=gpu)
    pairs = [
        share("binding-share", top, ffi, each * 0.4),
        share("python-share", top, native, each * 0.6),
    ]
    numpy = record("numpy", each=400.0, api="CPU", adapter="CPU", unit="launch")
    return fingerprint(
        *(top, ffi, native, node, numpy),
        comparisons=pairs,
        machine=machine(index, gpu),
        created=morning_of(day),
    )


def morning_of(day: int) -> str:
    """A day of January."""
    return f"2026-01-{day:02d}T00:00:00Z"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on eleven NVIDIA machines, one AMD machine and one with software adapters."""
    folder = tmp_path_factory.mktemp("across")
    others = [run(i, each=10_000.0 + 1_000 * i, day=i + 1) for i in range(10)]
    amd = run(20, "AMD Radeon RX 7900 XTX", each=15_000.0, day=20)
    software = msgspec.structs.replace(crowded(), created="2026-01-25T00:00:00Z")
    dawn = record("dawn", adapter="NVIDIA H200")
    added = fingerprint(dawn, machine=machine(30), created="2026-01-02T00:00:00Z")
    own = run(30, each=30_000.0, day=28)
    render([own, *others, amd, software, added], folder)
    return folder


@pytest.fixture(scope="module")
def side(out: Path) -> Page:
    return Page((out / "pages" / "machines.html").read_text(encoding="utf-8"))


def test_every_machine_and_every_published_point_with_a_link_to_its_source_is_on_the_page(
    side: Page,
) -> None:
    assert listed_name(machine(30), is_own=True) in side.text
    assert shown_runs(13) in side.text
    for point in publications().point:
        assert f"{point.value:,.10g}" in side.text, point.id
        assert publications().source[point.source].where[0] in side.links, point.id


def test_only_figures_of_the_cost_of_one_more_share_a_panel_with_measured_ones() -> None:
    runs = [run(i, each=10_000.0 * (i + 1), day=i + 1) for i in range(3)]
    parts = list[Any](vendors(from_fingerprints(runs)))
    measured = parts[-1]
    both, only_published = [part for part in parts if isinstance(part, Drawing)]
    name = row_name("dispatch", "Vulkan", "wgpu-native", "binding")
    dispatch = [row for row in measured.rows if row[:3] == ["dispatch", "slope", name]]
    assert [row[5] for row in dispatch] == [
        "10.0 (9.8 to 10.2)",
        "20.0 (19.6 to 20.4)",
        "30.0 (29.4 to 30.6)",
    ]
    one_more, _ = both.draw().axes
    small = set()
    for ax in only_published.draw().axes:
        small.update(mark_sizes(ax))
    assert len(small) == 1, "only published marks, which are small"
    assert max(mark_sizes(one_more)) > max(small)


def mark_sizes(ax: Any) -> list[float]:
    """The sizes of the marks of a panel."""
    return [line.get_markersize() for line in ax.lines if len(line.get_xdata()) == 1]


def test_a_kernel_without_arguments_has_a_row_of_its_own() -> None:
    """The published launch of an empty kernel stands beside ours without arguments, not beside ours
    with one array.
    """
    launch: dict[str, Any] = {"api": "CUDA", "unit": "launch"}
    one = record("numba-cuda", each=16_500.0, params={"arguments": 1}, **launch)
    none = record("numba-cuda", each=11_000.0, params={"arguments": 0}, **launch)
    *_, published, measured = list[Any](vendors(from_fingerprints([fingerprint(one, none)])))
    rows = {row[2]: numbers(row[5])[0] for row in measured.rows if row[:2] == ["launch", "slope"]}
    with_array = row_name("launch", "CUDA", "numba-cuda", "binding")
    empty = row_name("launch", "CUDA", "numba-cuda", "binding", with_arguments=False)
    assert rows == {with_array: "16.5", empty: "11.0"}
    assert empty in [row[2] for row in published.rows]
    assert with_array not in [row[2] for row in published.rows]


def test_a_machine_without_a_gpu_is_not_set_beside_one_unless_asked_to() -> None:
    without_gpu = msgspec.structs.replace(fingerprint().machine, id="f" * 12, gpus=[])
    numpy = record("numpy", api="CPU", adapter="CPU")
    own = fingerprint(numpy, machine=without_gpu, created="2026-03-01T00:00:00Z")
    machines = from_fingerprints([own, run(0, each=10_000.0, day=1)])
    assert machines.own.fingerprint.machine.id == "f" * 12
    assert machines.reference is None


def test_a_run_with_other_environment_variables_is_no_source_of_sections() -> None:
    plain = run(0, each=10_000.0, day=1)
    changed = msgspec.structs.replace(run(0, each=20_000.0, day=2), environment={"A": "1"})
    machines = from_fingerprints([changed, plain])
    assert machines.own.fingerprint.created == plain.created
    assert machines.others == []


def test_the_page_of_claims_has_a_verdict_on_every_claim(out: Path) -> None:
    from markupsafe import escape

    text = (out / "pages" / "claims.html").read_text(encoding="utf-8")
    for claim in claims():
        assert str(escape(claim.said)) in text, claim.id


@pytest.mark.parametrize(
    ("adapter", "api", "expected"),
    [
        ("NVIDIA GeForce RTX 4090", "Vulkan", "NVIDIA"),
        ("AMD Radeon 780M (RADV PHOENIX)", "Vulkan", "AMD"),
        ("Intel(R) Arc(tm) A770 Graphics (DG2)", "Vulkan", "Intel"),
        ("Apple M3 Max", "Metal", "Apple"),
        ("Adreno (TM) 740", "Vulkan", "Qualcomm"),
        ("Something new", "Vulkan", "another vendor"),
        ("CPU", "CPU", "Intel CPU"),
        ("AMD llvmpipe", "Vulkan", "software"),
    ],
)
def test_the_vendor_follows_from_the_adapter_name(adapter: str, api: Any, expected: str) -> None:
    case = record(adapter=adapter, api=api, software=expected == "software")
    assert vendor(case, "Intel(R) Xeon(R) Processor") == expected


def test_a_section_that_the_shown_run_lacks_comes_whole_from_another_run_which_is_named(
    tmp_path: Path,
) -> None:
    browser = record("chromium", each=50_000.0, caller="browser", adapter="NVIDIA H200")
    own_machine = machine(1)
    of_browser = fingerprint(browser, created=morning_of(1), machine=own_machine)
    of_workload = fingerprint(
        simulation("wgpu-native", 9.0), created=morning_of(3), machine=own_machine
    )
    write_fingerprint(tmp_path / "1.json", of_browser)
    write_fingerprint(tmp_path / "2.json", run(1, each=20_000.0, day=2))
    write_fingerprint(tmp_path / "3.json", of_workload)
    machines = from_paths([tmp_path])
    assert len(machines.views) == 1
    assert machines.own.fingerprint.created[:10] == "2026-01-02"
    assert len(machines.runs) == 3
    out = tmp_path / "out"
    build([tmp_path], out)
    texts = {path.name: path.read_text("utf-8") for path in out.rglob("*.html")}
    assert run_time(morning_of(3)) in texts["chains.html"]
    assert from_run(of_browser) in texts["machines.html"]
    sources = [from_run(view.fingerprint) for view in machines.runs]
    for name in ("index.html", "cases.html"):
        assert not [source for source in sources if source in texts[name]]


def simulation(stack: str, each: float) -> Record:
    """A chain of steps of a workload."""
    step = record(stack, each=each, adapter="NVIDIA H200", unit="step", params={"elements": 4096})
    return msgspec.structs.replace(step, workload="simulation")


def test_the_reference_is_another_kind_of_machine_or_the_one_that_is_named(tmp_path: Path) -> None:
    for i, gpu in enumerate(("NVIDIA A10", "NVIDIA H100", "AMD Radeon")):
        write_fingerprint(tmp_path / f"{i}.json", run(i, gpu, day=9 - i))
    paths = [tmp_path / "0.json", tmp_path]

    def gpu_of_reference(named: str) -> str:
        reference = from_paths(paths, named).reference
        assert reference is not None
        return reference.fingerprint.machine.gpus[0].name

    assert gpu_of_reference("") == "NVIDIA H100"
    assert gpu_of_reference("radeon") == "AMD Radeon"
    assert gpu_of_reference(str(tmp_path / "2.json")) == "AMD Radeon"
    with pytest.raises(UsageError, match=r"--reference nothing: .* the others here: "):
        from_paths(paths, "nothing")


def test_the_key_figures_are_drawn_beside_the_reference_and_over_time() -> None:
    runs = [run(1, each=20_000.0 * day, day=day) for day in (1, 2, 3)]
    machines = from_fingerprints([*runs, run(2, "NVIDIA H100")])
    (picture,) = [part for part in beside(machines) if isinstance(part, Drawing)]
    assert "NVIDIA H100" in picture.title
    (over_all,) = [part for part in over_time(machines) if isinstance(part, Drawing)]
    # Relative to the first of the three runs.
    assert set(marks(over_all)) >= {2.0, 3.0}
    assert over_all.table is not None
    ratios = [cell_text(row[-2]) for row in over_all.table.rows]
    assert any("3.00" in ratio for ratio in ratios), "the last run costs three times as much"


def marks(drawing: Drawing) -> list[float]:
    """The values of all marks of the first panel, from the left."""
    values = []
    for line in drawing.draw().axes[0].lines:
        x: Any = line.get_xdata()
        if len(x) == 1:
            values.append(float(x[0]))
    return values


def test_a_change_beyond_run_to_run_variation_is_said_and_one_within_is_not() -> None:
    runs = [run(1, each=cost, day=day) for day, cost in enumerate((20e3, 20.2e3, 19.9e3, 90e3), 1)]
    changed = [part for part in over_time(from_fingerprints(runs)) if isinstance(part, Text)]
    steady = [part for part in over_time(from_fingerprints(runs[:3])) if isinstance(part, Text)]
    # The newest over the first.
    assert "4.5" in changed[0].paragraphs[0]
    assert "×" not in steady[0].paragraphs[0]


def test_a_picture_over_time_has_three_ticks_and_the_newest_runs() -> None:
    runs = [run(1, each=20_000.0 + day, day=day) for day in range(1, 12)]
    parts = list(over_time(from_fingerprints(runs)))
    (drawing,) = [part for part in parts if isinstance(part, Drawing)]
    figure = drawing.draw()
    figure.draw_without_rendering()
    (ax,) = figure.axes
    low, high = ax.get_xlim()
    assert sum(low <= tick <= high for tick in ax.get_xticks()) >= 3
    (answer,) = [part for part in parts if isinstance(part, Text)]
    assert "11" in answer.paragraphs[0], "the runs that are not drawn are counted"


def test_the_vendors_answer_does_not_rest_on_a_noisy_cost() -> None:
    steady = record("dawn", adapter="NVIDIA H200", each=20_000.0)
    wide = figure("complete", 900_000.0, width=0.5)
    noisy = record("wgpu-native", adapter="NVIDIA H200", each=None, more=(wide,))
    parts = list[Any](vendors(from_fingerprints([fingerprint(steady, noisy)])))
    answer = parts[0].paragraphs[0]
    assert "20.0" in answer
    assert "900" not in answer


def test_the_vendors_answer_divides_measured_costs_through_one_stack_alone() -> None:
    """Twice as much on another GPU through Dawn; the other stack is on one GPU only."""
    here = fingerprint(
        record("dawn", adapter="NVIDIA H200", each=20_000.0),
        record("wgpu-native", adapter="NVIDIA H200", each=90_000.0),
    )
    there = fingerprint(record("dawn", adapter="NVIDIA H100", each=40_000.0))
    other_machine = msgspec.structs.replace(there.machine, id="other")
    there = msgspec.structs.replace(there, machine=other_machine)
    parts = list[Any](vendors(from_fingerprints([here, there])))
    assert "2.0" in parts[0].paragraphs[0]
    assert "4.5" not in parts[0].paragraphs[0]


def test_the_pictures_by_vendor_and_over_time_have_a_layout_for_a_phone() -> None:
    dawn = record("dawn", adapter="NVIDIA H200", each=20_000.0)
    by_vendor = list[Any](vendors(from_fingerprints([fingerprint(dawn)])))
    runs = [run(1, each=20_000.0 * day, day=day) for day in (1, 2)]
    drawings = [part for part in by_vendor if isinstance(part, Drawing)]
    drawings += [part for part in over_time(from_fingerprints(runs)) if isinstance(part, Drawing)]
    assert len(drawings) == 3
    for drawing in drawings:
        assert drawing.draw_narrow is not None
        figure = drawing.draw_narrow()
        figure.draw_without_rendering()
        # All of the width but the margins is for the marks.
        for ax in figure.axes:
            assert ax.get_window_extent().width > 0.85 * figure.bbox.width


def test_the_devices_of_a_row_that_do_not_fit_are_counted() -> None:
    named = [f"a device with a long name {i} 1.00" for i in range(5)]
    assert devices_at_end(named[:2]) == " · ".join(named[:2])
    assert devices_at_end(named).endswith("3 more")


def comparison() -> Drawing:
    """The picture that compares a run with a reference and with an earlier run."""
    runs = [run(1, each=20_000.0 * day, day=day) for day in (1, 2)]
    machines = from_fingerprints([*runs, run(2, "NVIDIA H100", each=90_000.0)])
    (picture,) = [part for part in beside(machines) if isinstance(part, Drawing)]
    return picture


def test_each_panel_of_the_comparison_has_three_ticks_with_labels() -> None:
    figure = comparison().draw()
    figure.draw_without_rendering()
    assert len(figure.axes) > 1
    for ax in figure.axes:
        low, high = ax.get_xlim()
        shown = []
        for place, text in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True):
            if low <= place <= high and text.get_visible() and text.get_text():
                shown.append(place)
        assert len(shown) >= 3


def test_the_columns_of_the_comparison_are_headed_by_the_runs_in_their_colours() -> None:
    picture = comparison()
    first = picture.draw().axes[0]
    heads = [text for text in first.texts if "NVIDIA H100" in text.get_text()]
    marks = [line.get_color() for line in first.lines if line.get_marker() in ("o", "s")]
    assert [head.get_color() for head in heads] == [marks[0]]
    assert picture.draw_narrow is not None
    narrow = picture.draw_narrow()
    in_legend = [text.get_text() for text in narrow.legends[0].get_texts()]
    assert [text for text in in_legend if "NVIDIA H100" in text]


def test_one_run_is_not_drawn_over_time() -> None:
    assert list(over_time(from_fingerprints([run(1)]))) == []


def test_a_chain_is_shown_with_all_ways_of_all_runs_each_with_its_run(tmp_path: Path) -> None:
    stacks_by_day = {
        1: ["cuda-graph", "cuda-driver", "torch"],
        2: ["cuda-graph"],
        3: ["cuda-graph", "cuda-driver"],
    }
    for day, stacks in stacks_by_day.items():
        chains = [cuda_chain(stack, 9.0 * day + i) for i, stack in enumerate(stacks)]
        torch = record("torch", adapter="NVIDIA H200", api="CUDA")
        made = fingerprint(torch, *chains, created=morning_of(day), machine=machine(1))
        write_fingerprint(tmp_path / f"{day}.json", made)
    paths = [tmp_path / f"{day}.json" for day in stacks_by_day]

    # The newest run has two of the ways, and the third comes from the first day. Of the second
    # day, whose only way is in a newer run, there is nothing.
    tables = tables_of_chains(paths, tmp_path / "out")
    assert run_time(morning_of(1)) in tables
    assert run_time(morning_of(2)) not in tables


def cuda_chain(stack: str, each: float) -> Record:
    return msgspec.structs.replace(simulation(stack, each), api="CUDA")


def tables_of_chains(paths: Sequence[Path], out: Path) -> str:
    """The tables of the page of chains, and what follows."""
    build(paths, out)
    text = (out / "pages" / "chains.html").read_text("utf-8")
    table = text[text.index("<table") :]
    assert {"4,096", "1,500"} <= {*numbers(table)}
    return table
