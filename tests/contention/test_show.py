"""What a run of contention shows: the table, the sentences, the findings, and the page."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from rich.console import Console

from overhead.blocks import terminal
from overhead.blocks.parts import Drawing, Table, Text, cell_text
from overhead.contention.brief import brief
from overhead.contention.sections import section_of
from overhead.contention.show import finding_sentences, rows_of, way_blocks
from overhead.reading.findings import Finding, findings_of
from overhead.reading.view import View
from overhead.report import render
from overhead.results import Contention, Limit, Placement, Way
from overhead.words.findings import finding_words
from tests.fakes.contention import h100, peers
from tests.fakes.report import figure, fingerprint, record
from tests.terminal.test_goldens import printed


def view(*cases: list[Contention]) -> View:
    return View(fingerprint(contention=[one for case in cases for one in case]))


def rows(shown: View, way: Way = "processes") -> list[dict[str, str]]:
    (table,) = [block for block in way_blocks(shown, way) if isinstance(block, Table)]
    return [dict(zip(table.columns, map(cell_text, row), strict=True)) for row in table.rows]


def notes(shown: View, way: Way = "processes") -> str:
    return " ".join(p for block in way_blocks(shown, way) if isinstance(block, Text) for p in block.paragraphs)


def found(*cases: list[Contention]) -> dict[str, Finding]:
    return {one.rule: one for one in findings_of(view(*cases))}


def test_a_case_and_placement_is_a_row_with_its_cost_for_each_number_of_peers() -> None:
    torch = {1: 9.3, 2: 9.1, 8: 19.3}
    shown = rows(view(peers("torch", torch, uneven=1.5), peers("torch", torch, placement="core")))
    assert [(row["K=1"], row["K=2"], row["K=8"]) for row in shown] == [("9.30", "9.10", "19.3")] * 2
    assert [row["pinned to"] for row in shown] == ["", "a core"]
    assert shown[0]["together"] == "3.85×"
    assert shown[0]["each peer"] == "19.3 to 28.9"


def test_a_noisy_figure_is_a_range_and_a_failed_one_has_its_reason() -> None:
    shown = view(peers("dawn", {1: 28, 8: 600}, status="noisy", width=0.5), peers("jax", {1: None, 2: None}))
    (row,) = rows(shown)
    assert (row["K=1"], row["K=8"]) == ("28", "300 to 900")
    assert "JAX from Python (K=1, 2): the process ran out of memory" in notes(shown)


def test_cases_that_differ_are_told_apart_by_adapter_api_and_parameters() -> None:
    both = view(peers("wgpu-native", {1: 9.0}, api="Vulkan"), peers("wgpu-native", {1: 9.0}, api="OpenGL"))
    assert len({row["stack"] for row in rows(both)}) == 2


@pytest.mark.parametrize("limit", get_args(Limit))
@pytest.mark.parametrize("placement", get_args(Placement))
def test_every_limit_and_placement_has_words(limit: Limit, placement: Placement) -> None:
    (row,) = rows(view(peers("torch", {1: 1.0, 2: 2.0}, limit=limit, placement=placement)))
    assert row["limit"]
    assert bool(row.get("pinned to")) == (placement != "free")


def test_a_sentence_has_one_caller_and_the_least_and_the_most_of_all_that_is_resolved() -> None:
    shown = view(
        peers("torch", {1: 9.3, 8: 19.3}),
        peers("cuda-graph", {1: 1.0, 8: 10.0}),
        peers("vulkan", {1: 1.0, 8: 80.0}, caller="native"),
        peers("dawn", {1: 1.0, 8: 80.0}, status="noisy"),
    )
    said = finding_sentences("processes", rows_of(shown, "processes"))[0]
    assert "0.800×" in said
    assert "3.85×" in said
    assert "compiled" not in said
    assert "(Dawn)" not in said
    assert "Dawn" in said, "a row that is left out is named"


def test_beside_busy_processors_the_slowdown_of_the_one_process_is_told() -> None:
    shown = view(peers("torch", {1: 9.5, 16: 19.0}, "busy"))
    assert "2.00×" in notes(shown, "busy")
    assert rows(shown, "busy")[0]["against alone"] == "2.00×"


def test_threads_that_do_less_than_one_are_a_finding_that_names_processes_only_where_they_do_more() -> None:
    threads, processes = peers("cuda-driver", {1: 4.2, 4: 31}, "threads"), peers("cuda-driver", {1: 5.0, 4: 9.2})
    alone, both = found(threads)["threads-together"], found(threads, processes)["threads-together"]
    assert alone.times == pytest.approx(31 / 4 / 4.2)
    assert "0.542" in finding_words(alone).title
    assert "or processes" not in finding_words(alone).title
    assert "or processes" in finding_words(both).title


def test_a_finding_needs_the_whole_interval_below_its_bound() -> None:
    assert "processes-together" in found(peers("torch", {1: 1.0, 2: 2.4}))
    assert not found(peers("torch", {1: 1.0, 2: 2.4}, width=0.2))
    assert not found(peers("torch", {1: 1.0, 2: 2.4}, status="noisy"))
    assert not found(peers("torch", {1: 1.0, 2: 2.4}, "threads")), "0.83 of one is above the bound of threads"


def test_a_software_adapter_decides_no_finding_beside_hardware() -> None:
    software = peers("vulkan", {1: 1.0, 2: 4.0}, software=True)
    assert found(software)
    assert not found(software, peers("torch", {1: 1.0, 2: 1.0}))


def test_a_row_is_one_line_of_a_terminal_of_120_columns() -> None:
    console = Console(width=120, file=io.StringIO())
    with console.capture() as shown:
        terminal.show(brief(View(h100())), console)
    found_rows = [line for line in shown.get().splitlines() if line[1:6] in ("torch", "cuda-", "dawn ")]
    assert len(found_rows) == 8
    assert "compiled code" in found_rows[2]
    assert found_rows[2].rstrip().endswith("the device")


def test_the_names_of_lines_do_not_overlap_and_lie_inside_the_figure() -> None:
    drawn_text = pytest.importorskip("matplotlib.text").Text
    stacks = ("torch", "cuda-driver", "cuda-graph", "vulkan", "dawn", "wgpu-native", "cupy", "triton")
    crowd = view(*(peers(stack, {1: 1 + i, 2: 8.0, 8: 9 + i / 99}) for i, stack in enumerate(stacks)))
    figure = next(part for part in section_of("processes")(crowd) if isinstance(part, Drawing)).draw()
    figure.draw_without_rendering()
    for ax in figure.axes:
        boxes = sorted((drawn_text.get_window_extent(name) for name in ax.texts), key=lambda box: box.y0)
        assert len(boxes) >= len(stacks)
        assert all(above.y0 >= below.y1 - 1 for below, above in pairwise(boxes))
        assert all(figure.bbox.x1 >= box.x1 and figure.bbox.y1 >= box.y1 for box in boxes)


def test_the_page_names_the_run_that_it_comes_from_and_other_runs_add_nothing_to_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    usual = fingerprint(record(), created="2026-01-05T03:04:05Z")
    assert not list(brief(View(usual)))
    page = (render([usual, h100()], tmp_path).parent / "pages/contention.html").read_text("utf-8")
    assert "contention run of 2026-01-02" in page
    assert "figures/contention-threads.svg" in page


def test_devices_that_slow_each_other_say_what_pinning_removes() -> None:
    free = peers("torch", {1: 5.0, 4: 50.0}, "devices", limit="processors")
    pinned = peers("torch", {1: 5.0, 4: 6.0}, "devices", placement="core")
    graph = peers("cuda-graph", {1: 1.0, 4: 1.0}, "devices")
    said = notes(view(free, pinned, graph), "devices")
    assert "10.0×" in said
    assert "pinned to a core 1.20×" in said
    assert "graphs from Python 1.0" not in said
    assert "No case" in notes(view(graph), "devices")
    assert "No case" not in notes(view(peers("torch", {1: 5.0, 4: 5.0})))
    assert "10.0×" in notes(view(peers("torch", {1: 5.0, 2: 50.0}, "devices", limit="lock"), graph), "devices")
    only_pinned = peers("torch", {1: 5.0, 4: 5.0}, "devices"), peers("torch", {1: 5.0, 4: 50.0}, "devices",
                                                                     placement="core", limit="processors")  # fmt: skip
    assert "pinned to a core 10.0×" in notes(view(*only_pinned), "devices")


def test_of_the_devices_alone_the_table_has_the_median() -> None:
    costs = (peers("torch", {1: cost}, "devices") for cost in (9.0, 5.0, 6.0))
    (row,) = rows(view(*costs), "devices")
    assert row["K=1"] == "6.00"


def test_a_process_a_device_is_judged_at_every_number_of_peers() -> None:
    widest_at_two = peers("torch", {1: 5.0, 2: 5.0, 4: 5.0}, "devices", width=0.01)
    at_two = widest_at_two[1]
    wide = [figure("slowdown", 1.3, "noisy", 0.4) if f.name == "slowdown" else f for f in at_two.figures]
    widest_at_two[1] = msgspec.structs.replace(at_two, figures=wide)
    assert "1.82" in notes(view(widest_at_two), "devices")
    slower_at_two = peers("torch", {1: 5.0, 2: 15.0, 4: 5.0}, "devices")
    slower_at_two[1] = msgspec.structs.replace(slower_at_two[1], limit="lock")
    said = notes(view(slower_at_two), "devices")
    assert "3.00×" in said
    assert "K=2" in said
    assert "No case" not in said


def test_every_case_that_surely_does_less_than_one_alone_is_named() -> None:
    little, much = peers("cuda-graph", {1: 1.0, 2: 2.1}), peers("torch", {1: 1.0, 2: 2.4})
    said = " ".join(finding_sentences("processes", rows_of(view(little, much), "processes")))
    assert "CUDA graphs" in said
    assert "PyTorch" in said
    assert said.count("0.952×") == 2
    noisy = peers("cuda-graph", {1: 1.0, 2: 2.1}, width=0.2)
    assert "less than one" not in " ".join(finding_sentences("processes", rows_of(view(noisy, much[:1]), "processes")))


def test_stacks_that_meet_at_the_device_are_said_to() -> None:
    def meeting(stack: str, alone: float, each: float, limit: Limit = "device") -> list[Contention]:
        return peers(stack, {1: alone, 8: 8 * each}, limit=limit, more=(figure("each", each * 1e3, "ok", 0.02),))

    both = view(meeting("torch", 5.0, 2.2), meeting("triton", 11.0, 2.1))
    said = " ".join(finding_sentences("processes", rows_of(both, "processes")))
    assert "limits PyTorch and Triton" in said
    assert "2.06 to 2.24" in said
    apart = view(meeting("torch", 5.0, 2.2), meeting("triton", 11.0, 5.1))
    assert "limits PyTorch" not in " ".join(finding_sentences("processes", rows_of(apart, "processes")))
    unknown = view(meeting("torch", 5.0, 2.2), meeting("triton", 11.0, 2.1, "unknown"))
    assert "limits PyTorch" not in " ".join(finding_sentences("processes", rows_of(unknown, "processes")))


def test_a_range_above_k_times_is_explained() -> None:
    above = peers("torch", {1: 5.0, 4: 5.0}, "devices", status="noisy", width=0.4)
    assert "at most K times" in notes(view(above), "devices")
    exact = peers("torch", {1: 5.0, 4: 5.0}, "devices", width=0.005)
    assert "at most K times" not in notes(view(exact), "devices")


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_the_limit_and_what_all_do_together_are_in_every_terminal(width: int) -> None:
    text = printed(way_blocks(View(h100()), "processes"), width)
    (table,) = (block for block in way_blocks(View(h100()), "processes") if isinstance(block, Table))
    head = text.split("─")[0].split()
    assert {"together", "limit"} <= set(head)
    assert len(table.rows) == 5
