"""The pages of a machine without a GPU: what it measured, and nothing about hardware that is not
there.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from overhead.blocks.parts import Drawing
from overhead.blocks.terminal import show
from overhead.loading.files import read_fingerprint, write_fingerprint
from overhead.reading.dispatch_costs import dispatch_costs
from overhead.reading.view import View
from overhead.report import build, render
from overhead.report.across.without_gpu import without_gpu
from overhead.report.brief import brief_blocks
from overhead.report.core import machines as machines_module
from overhead.report.core.draw import NARROW_INCHES
from overhead.report.core.machines import EXAMPLE_FOLDER, from_fingerprints
from overhead.results import Fingerprint, MissingStack, Record, because
from overhead.words.dispatch_costs import device_name
from overhead.words.reasons import sentence
from overhead.words.report.machines import machine_name
from overhead.words.report.without_gpu import ON_CPU, ON_SOFTWARE
from tests.fakes.report import fingerprint, record
from tests.report.report_page import Page, numbers

ROOT = Path(__file__).parents[2]
DRIVER = because("install-nvidia-driver")

pytestmark = pytest.mark.needs("matplotlib", "seaborn", "jinja2")


def on_cpu(stack: str, each: float, **fields: Any) -> Record:
    return record(stack, each=each, api="CPU", adapter="CPU", unit="launch", **fields)


def run_without_gpu(**fields: Any) -> Fingerprint:
    """A run of a laptop: NumPy and PyTorch on its CPU, a software adapter, and a missing stack."""
    made = fingerprint(
        on_cpu("numpy", 441.0),
        on_cpu("torch", 1_900.0),
        on_cpu("torch", 1_500.0, caller="native"),
        record("dawn", each=40_000.0, software=True),
        record("dawn", "one-pass", each=20_000.0, software=True),
        unavailable=[
            MissingStack(stack="cuda-driver", reason=because("no-nvidia-driver"), mend=DRIVER)
        ],
        created="2027-01-01T00:00:00Z",
        **fields,
    )
    return msgspec.structs.replace(made, machine=msgspec.structs.replace(made.machine, gpus=[]))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its report, beside a machine whose four GPUs were measured together."""
    folder = tmp_path_factory.mktemp("without-gpu")
    others = ROOT / "reports" / "data" / "nvidia-h100-x4-contention-devices.json"
    render([run_without_gpu(), read_fingerprint(others)], folder)
    return folder


def ids_of(path: Path) -> list[str]:
    return Page(path.read_text(encoding="utf-8")).ids


def test_the_first_page_has_a_section_of_its_own_and_none_about_a_gpu(out: Path) -> None:
    ids = ids_of(out / "index.html")
    assert "without-gpu" in ids
    assert not {"headline", "graph-or-fused", "fingerprint", "waiting"} & set(ids)


def test_no_page_is_about_hardware_that_is_not_there(out: Path) -> None:
    pages = {path.stem for path in (out / "pages").glob("*.html")}
    assert not {"chains", "synchronisation", "contention"} & pages
    assert {"cases", "machines", "method"} <= pages


def test_a_machine_with_a_gpu_has_no_such_section(tmp_path: Path) -> None:
    render([fingerprint(record("dawn"))], tmp_path)
    ids = ids_of(tmp_path / "index.html")
    assert "headline" in ids
    assert "without-gpu" not in ids


def picture() -> Drawing:
    parts = list(without_gpu(from_fingerprints([run_without_gpu()])))
    (drawing,) = [part for part in parts if isinstance(part, Drawing)]
    return drawing


def test_software_adapters_have_a_panel_of_their_own_below_that_of_the_cpu() -> None:
    of_cpu, of_software = picture().draw().axes
    assert (of_cpu.get_title(loc="left"), of_software.get_title(loc="left")) == (
        ON_CPU,
        ON_SOFTWARE,
    )
    labels = [label.get_text() for label in of_cpu.get_yticklabels()]
    assert len(labels) == 3, "each caller of PyTorch has a row"
    assert len(of_software.get_yticklabels()) == 2


def test_the_costs_have_two_digits_because_the_speed_of_a_cpu_changes() -> None:
    texts = [text.get_text() for text in picture().draw().axes[0].texts]
    assert "0.44" in texts
    assert "0.441" not in picture().alt


def test_the_layout_for_a_phone_is_as_narrow_as_one_and_cuts_no_text_off() -> None:
    narrow = picture().draw_narrow
    assert narrow is not None
    figure = narrow()
    assert figure.get_figwidth() == NARROW_INCHES
    figure.draw_without_rendering()
    for ax in figure.axes:
        for text in ax.texts:
            box = text.get_window_extent()
            assert box.x0 >= 0, text.get_text()
            assert box.x1 <= figure.bbox.x1, text.get_text()


def test_a_run_whose_cases_failed_has_the_reasons_in_place_of_the_picture() -> None:
    failed = on_cpu("numpy", 1.0)
    failed = msgspec.structs.replace(failed, figures=[], status="failed", reason="no memory")
    run = msgspec.structs.replace(run_without_gpu(), records=[failed])
    parts = list(without_gpu(from_fingerprints([run])))
    assert not [part for part in parts if isinstance(part, Drawing)]
    assert "no memory" in str(parts)


def test_no_page_tells_to_install_the_driver_of_a_gpu_that_is_not_there(out: Path) -> None:
    for path in out.rglob("*.html"):
        assert sentence(DRIVER) not in path.read_text(encoding="utf-8"), path.name


def test_a_terminal_tells_no_command_for_a_stack_of_a_gpu_that_is_not_there() -> None:
    console = Console(width=120, record=True, file=io.StringIO())
    show(brief_blocks(run_without_gpu()), console)
    printed = console.export_text()
    assert "cuda-driver" in printed
    assert sentence(DRIVER) not in printed


def test_a_run_of_the_cpu_alone_does_not_say_that_the_machine_has_no_gpu() -> None:
    run = msgspec.structs.replace(run_without_gpu(), machine=fingerprint(record("dawn")).machine)
    cpu_alone = msgspec.structs.replace(run, records=[on_cpu("numpy", 441.0)])
    costs = dispatch_costs(View(cpu_alone))
    assert costs is not None
    assert device_name(costs) == costs.device


def test_a_changed_speed_of_the_cpu_is_said_once() -> None:
    volatile = {"canary_us_least": 80.0, "canary_us_most": 368.0}
    run = run_without_gpu(volatile=volatile)
    parts = list(without_gpu(from_fingerprints([run])))
    assert "4.6" in numbers(str(parts))


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fingerprint:
    """A small run in place of the example, whose pages take 10 s."""
    run = fingerprint(record("dawn"))
    path = tmp_path / "example-run.json"
    write_fingerprint(path, run)
    monkeypatch.setattr(machines_module, "example_path", lambda: path)
    return run


def test_beside_the_pages_stand_those_of_the_example_which_name_its_machine(
    tmp_path: Path, example: Fingerprint
) -> None:
    file = tmp_path / "run.json"
    write_fingerprint(file, run_without_gpu())
    front = build([file], tmp_path / "out", example=True)
    of_example = front.parent / EXAMPLE_FOLDER / "index.html"
    links = Page(front.read_text(encoding="utf-8")).links
    assert str(of_example.relative_to(front.parent)) in links
    # From every page of the example there is a way back.
    for page in (of_example, of_example.parent / "pages" / "cases.html"):
        text = page.read_text(encoding="utf-8")
        back = [link for link in Page(text).links if (page.parent / link).resolve() == front]
        assert back, page
        assert machine_name(example.machine) in text
    assert "without-gpu" not in ids_of(of_example)


@pytest.mark.usefixtures("example")
def test_a_machine_with_a_gpu_gets_no_example(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    write_fingerprint(file, fingerprint(record("wgpu-native")))
    front = build([file], tmp_path / "out", example=True)
    assert not (front.parent / EXAMPLE_FOLDER).exists()


def test_the_reference_that_the_user_names_is_compared_without_a_gpu_too(tmp_path: Path) -> None:
    file, other = tmp_path / "run.json", tmp_path / "other.json"
    write_fingerprint(file, run_without_gpu())
    write_fingerprint(other, fingerprint(on_cpu("numpy", 600.0)))
    front = build([file], tmp_path / "out", reference=str(other))
    assert "fingerprint" in ids_of(front)
