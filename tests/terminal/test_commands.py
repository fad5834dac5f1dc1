"""The reading commands: which run they take, what they print where, and what they say of wrong
names.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

from overhead.blocks.markdown import markdown
from overhead.blocks.parts import Drawing, InMicroseconds, Table
from overhead.cli import main
from overhead.comparing.pairing import why_incomparable
from overhead.comparing.sides import read_side
from overhead.errors import UsageError, unknown_name
from overhead.loading.reduce import load
from overhead.reading.view import TargetLabel, without_device
from overhead.report.brief import brief_blocks
from overhead.report.one_case import find_case
from overhead.results import Figure, MissingStack, Target
from overhead.runner.listing import Listed, listing_blocks
from overhead.words import runner as words
from overhead.words.blocks import hidden_columns
from overhead.words.glossary import figure_column
from overhead.words.report.brief import more_cases
from tests.fakes.report import fingerprint, record
from tests.fakes.runs import Made
from tests.terminal.test_goldens import printed

TABLE = Table(
    "",
    ["stack", "cost", "host"],
    [["wgpu-native", "41.9 (40.7 to 43.1)", "41.7 (40.8 to 42.6)"]],
    numeric=(1, 2),
    optional=(2,),
)


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty ``reports/local`` below the working directory."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "reports" / "local"
    folder.mkdir(parents=True)
    return folder


def test_show_without_a_file_takes_the_newest_run(
    local: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = Made(seed=1).write(local / "b.json")
    older = Made(seed=2).write(local / "a.json")
    os.utime(newest, (1_000_000_002, 1_000_000_002))
    os.utime(older, (1_000_000_001, 1_000_000_001))
    assert main(["show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["created"].endswith("12:00:01Z")


@pytest.mark.parametrize("name", ["wgpu", "WGPU-native", "wgpu_native"])
def test_the_error_on_a_wrong_name_proposes_the_nearest_one(name: str) -> None:
    error = unknown_name("stack", name, ["torch", "wgpu-native", "dawn"])
    assert "did you mean 'wgpu-native'?" in str(error)


def test_the_completion_script_lists_stacks_patterns_and_workloads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("shtab", reason="pip install shtab")
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in ("wgpu-native", "per-submit", "recurrence"))


def test_a_table_on_a_narrow_console_omits_optional_columns_and_never_wraps_a_number() -> None:
    wide = printed([TABLE], 100)
    assert "41.9 (40.7 to 43.1)   41.7 (40.8 to 42.6)" in wide
    assert hidden_columns(["host"]) not in wide
    narrow = printed([TABLE], 45)
    assert "wgpu-native  41.9 (40.7 to 43.1)" in narrow
    assert "41.7" not in narrow
    assert hidden_columns(["host"]) in narrow, "the column that is missing is named"


def test_a_renderer_of_text_shows_the_table_of_a_drawing_and_draws_nothing() -> None:
    folded = dataclasses.replace(TABLE, folded=True)

    def is_never_called() -> NoReturn:
        pytest.fail("drawn")

    drawing = Drawing(
        name="costs",
        title="Costs",
        alt="One stack.",
        caption="",
        draw=is_never_called,
        table=folded,
    )
    assert printed([drawing], 100) == printed([TABLE], 100)
    assert markdown([drawing]) == markdown([TABLE])
    assert markdown([dataclasses.replace(drawing, table=None)]) == "Costs: One stack.\n"


def test_labels_omit_a_device_that_all_of_them_share() -> None:
    nothing = TargetLabel("dawn", "Null backend", " (runs nothing)", runs_nothing=True)
    labels = [
        TargetLabel("torch"),
        TargetLabel("torch", "NVIDIA H200"),
        TargetLabel("dawn", "NVIDIA H200"),
        nothing,
    ]
    texts, shared_device = without_device(labels)
    assert texts == ["torch on CPU", "torch", "dawn", "dawn on Null backend (runs nothing)"]
    assert shared_device == "NVIDIA H200"
    texts, shared_device = without_device([TargetLabel("torch", "A"), TargetLabel("torch", "B")])
    assert texts == ["torch on A", "torch on B"]
    assert shared_device == "", "they share none"


def test_show_prints_base_cases_and_with_all_every_case() -> None:
    base, varied = record(each=20_000.0), record(each=24_000.0, params={"wait": "map"})
    run = fingerprint(base, varied)
    short = printed(brief_blocks(run))
    assert "wait=map" not in short
    assert more_cases(1, " --all") in short
    assert "wait=map" in printed(brief_blocks(run, all_cases=True))


def test_a_wrong_plural_in_an_older_file_does_not_prevent_a_comparison(tmp_path: Path) -> None:
    wrong = Made(seed=1, window={"captured": "kept as 1 nodes"}).write(tmp_path / "1.json")
    right = Made(seed=2, window={"captured": "kept as 1 node"}).write(tmp_path / "2.json")
    base = read_side("BASE", [wrong])
    new = read_side("NEW", [right])
    assert base.cases
    for key, case in base.cases.items():
        assert why_incomparable(case, new.cases[key]) == ""


def test_the_range_over_unpinned_processes_has_a_column_beside_complete(tmp_path: Path) -> None:
    run = load(Made().write(tmp_path / "run.json"))
    unpinned = InMicroseconds(figure_column("met"))
    assert unpinned not in printed(brief_blocks(run))
    met = Figure(name="met", value=56e3, low=29e3, high=70e3, processes=5)
    first, *others = run.records
    with_met = msgspec.structs.replace(first, figures=[*first.figures, met])
    text = printed(brief_blocks(msgspec.structs.replace(run, records=[with_met, *others])))
    cost = InMicroseconds(figure_column("complete"))
    cpu_time = InMicroseconds(figure_column("host"))
    heads = next(line for line in text.splitlines() if cost in line)
    assert heads.index(cost) < heads.index(unpinned) < heads.index(cpu_time)
    assert "29 to 70 " in text


def test_the_list_of_stacks_names_the_environment_in_which_a_stack_is_missing() -> None:
    missing = MissingStack(
        stack="dawn", reason="no adapter", environment={"ICD": "a.json", "SOFTWARE": "1"}
    )
    text = printed(listing_blocks([Listed(stack="dawn", title="Dawn", missing=[missing])]))
    (line,) = [line for line in text.splitlines() if "no adapter" in line]
    assert all(said in line for said in ("dawn", "ICD=a.json", "SOFTWARE=1"))


@pytest.mark.parametrize(
    ("driver", "shown"),
    [
        ("NVIDIA NVIDIA: 580.159.04 580.159.4.0", "NVIDIA 580.159.04"),
        ("3.3.0 NVIDIA 580.159.04", "3.3.0 NVIDIA 580.159.04"),
        ("CUDA 13.0", "CUDA 13.0"),
        ("Mesa 24.0.1 Mesa 24.1.0", "Mesa 24.0.1 24.1.0"),
        ("", ""),
    ],
)
def test_a_driver_that_names_itself_twice_is_listed_once(driver: str, shown: str) -> None:
    target = Target(stack="dawn", api="Vulkan", adapter="a GPU", driver=driver)
    assert words.driver(target) == shown


def test_show_finds_one_case_by_words_and_names_up_to_ten_where_there_are_several(
    local: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Made().write(local / "run.json")
    assert main(["show", "SMALL", "per-submit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["params"] == {"size": "small"}
    assert main(["show", str(local / "run.json"), "fake@CPU:A", "per-submit"]) == 2
    error = capsys.readouterr().err
    for size in ("small", "middle", "large"):
        assert f"size={size}" in error
    many = fingerprint(*(record(params={"size": n}) for n in range(12)))
    with pytest.raises(UsageError, match=r"12 cases .*; \.\.\.$"):
        find_case(many, "wgpu-native")
    assert find_case(many, many.records[1].key) is many.records[1], "a whole key is one case"


@pytest.mark.needs("matplotlib", "seaborn")
@pytest.mark.parametrize(
    ("file", "start"), [(["t.svg"], b"<?xml"), (["t.png"], b"\x89PNG"), ([], b"\x89PNG")]
)
def test_show_draws_a_case_into_a_file(
    local: Path, capsys: pytest.CaptureFixture[str], file: list[str], start: bytes
) -> None:
    Made().write(local / "run.json")
    assert main(["show", "small", "--plot", *file]) == 0
    lines = capsys.readouterr().out.splitlines()
    (said,) = [line for line in lines if line.startswith("plot: ")]
    drawn = Path(said.removeprefix("plot: "))
    assert drawn.read_bytes().startswith(start)
    assert main(["show", "small", "--plot", "t.txt"]) == 2
