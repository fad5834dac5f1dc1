"""What a run of contention shows: the table, the sentences, the findings, and the page."""

from __future__ import annotations

import io
import itertools
from itertools import pairwise
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from rich.console import Console

from overhead.blocks import terminal
from overhead.blocks.parts import Drawing, Table, Text, cell_text
from overhead.contention.brief import brief
from overhead.contention.findings import DoLessTogether
from overhead.contention.rows import RatioAt, losses, meetings, most_peers, placing, rows_of
from overhead.contention.sections import section_of
from overhead.contention.show import finding_sentences, way_blocks
from overhead.reading.findings import Finding, findings_of
from overhead.reading.view import View
from overhead.report import render
from overhead.results import Contention, Limit, Placement, Way
from overhead.words.contention import peers as words
from overhead.words.findings import finding_words
from overhead.words.report.pages import from_run
from tests.fakes.contention import h100, peers
from tests.fakes.report import figure, fingerprint, record
from tests.terminal.test_goldens import printed


def view(*cases: list[Contention]) -> View:
    return View(fingerprint(contention=list(itertools.chain(*cases))))


def rows(shown: View, way: Way = "processes") -> list[dict[str, str]]:
    (table,) = [block for block in way_blocks(shown, way) if isinstance(block, Table)]
    return [dict(zip(table.columns, map(cell_text, row), strict=True)) for row in table.rows]


def notes(shown: View, way: Way = "processes") -> str:
    paragraphs: list[str] = []
    for block in way_blocks(shown, way):
        if isinstance(block, Text):
            paragraphs += block.paragraphs
    return " ".join(paragraphs)


def stacks(*of: RatioAt) -> list[str]:
    return [one.row.first.target.stack for one in of]


def found(*cases: list[Contention]) -> dict[str, Finding]:
    return {one.rule: one for one in findings_of(view(*cases))}


def test_a_case_and_placement_is_a_row_with_its_cost_for_each_number_of_peers() -> None:
    torch = {1: 9.3, 2: 9.1, 8: 19.3}
    shown = rows(view(peers("torch", torch, uneven=1.5), peers("torch", torch, placement="core")))
    assert [(row["K=1"], row["K=2"], row["K=8"]) for row in shown] == [("9.30", "9.10", "19.3")] * 2
    assert [bool(row[words.PINNED_COLUMN]) for row in shown] == [False, True]
    assert shown[0][words.ratio_column("processes")] == "3.85×"
    assert shown[0][words.EACH_PEER_COLUMN].split()[::2] == ["19.3", "28.9"]


def test_a_noisy_figure_is_a_range_and_a_failed_one_has_its_reason() -> None:
    shown = view(
        peers("dawn", {1: 28, 8: 600}, status="noisy", width=0.5), peers("jax", {1: None, 2: None})
    )
    (row,) = rows(shown)
    assert (row["K=1"], row["K=8"].split()[::2]) == ("28", ["300", "900"])
    _, failed = rows_of(shown, "processes")
    assert f"{words.case(failed, 1, 2)}: the process ran out of memory" in notes(shown)


def test_cases_that_differ_are_told_apart_by_adapter_api_and_parameters() -> None:
    both = view(
        peers("wgpu-native", {1: 9.0}, api="Vulkan"), peers("wgpu-native", {1: 9.0}, api="OpenGL")
    )
    assert len({row["stack"] for row in rows(both)}) == 2


@pytest.mark.parametrize("limit", get_args(Limit))
@pytest.mark.parametrize("placement", get_args(Placement))
def test_every_limit_and_placement_has_words(limit: Limit, placement: Placement) -> None:
    (row,) = rows(view(peers("torch", {1: 1.0, 2: 2.0}, limit=limit, placement=placement)))
    assert row[words.LIMIT_COLUMN]
    assert bool(row.get(words.PINNED_COLUMN)) == (placement != "free")


def test_the_most_peers_are_compared_for_one_caller_from_the_least_to_the_most_resolved() -> None:
    shown = view(
        peers("torch", {1: 9.3, 8: 19.3}),
        peers("cuda-graph", {1: 1.0, 8: 10.0}),
        peers("vulkan", {1: 1.0, 8: 80.0}, caller="native"),
        peers("dawn", {1: 1.0, 8: 80.0}, status="noisy"),
    )
    own = rows_of(shown, "processes")
    compared = most_peers("processes", own)
    assert compared is not None
    assert stacks(compared.least, compared.greatest) == ["cuda-graph", "torch"]
    assert compared.least.ratio.value == pytest.approx(0.8)
    assert compared.greatest.ratio.value == pytest.approx(3.85, abs=0.01)
    assert [row.first.target.stack for row in compared.noisy] == ["dawn"], (
        "a row that is left out is named"
    )
    said = finding_sentences("processes", own)[0]
    assert all(text in said for text in ("0.800×", "3.85×", *map(words.name, compared.noisy)))


def test_beside_busy_processors_the_slowdown_of_the_one_process_is_told() -> None:
    shown = view(peers("torch", {1: 9.5, 16: 19.0}, "busy"))
    assert "2.00×" in notes(shown, "busy")
    assert rows(shown, "busy")[0][words.ratio_column("busy")] == "2.00×"


def test_threads_doing_less_than_one_are_a_finding_and_processes_are_named_where_they_do_more() -> (
    None
):
    threads, processes = (
        peers("cuda-driver", {1: 4.2, 4: 31}, "threads"),
        peers("cuda-driver", {1: 5.0, 4: 9.2}),
    )
    alone, both = found(threads)["threads-together"], found(threads, processes)["threads-together"]
    assert alone.times == pytest.approx(31 / 4 / 4.2)
    assert "0.542" in finding_words(alone).title
    assert isinstance(alone.facts, DoLessTogether)
    assert isinstance(both.facts, DoLessTogether)
    assert alone.facts.processes is None
    assert both.facts.processes is not None
    assert both.facts.processes.value == pytest.approx(4 * 5.0 / 9.2)


def test_a_finding_needs_the_whole_interval_below_its_bound() -> None:
    assert "processes-together" in found(peers("torch", {1: 1.0, 2: 2.4}))
    assert not found(peers("torch", {1: 1.0, 2: 2.4}, width=0.2))
    assert not found(peers("torch", {1: 1.0, 2: 2.4}, status="noisy"))
    assert not found(peers("torch", {1: 1.0, 2: 2.4}, "threads")), (
        "0.83 of one is above the bound of threads"
    )


def test_a_software_adapter_decides_no_finding_beside_hardware() -> None:
    software = peers("vulkan", {1: 1.0, 2: 4.0}, software=True)
    assert found(software)
    assert not found(software, peers("torch", {1: 1.0, 2: 1.0}))


def test_a_row_is_one_line_of_a_terminal_of_120_columns() -> None:
    console = Console(width=120, file=io.StringIO())
    with console.capture() as shown:
        terminal.show(brief(View(h100())), console)
    found_rows = [
        line for line in shown.get().splitlines() if line[1:6] in ("torch", "cuda-", "dawn ")
    ]
    assert len(found_rows) == 8
    compiled = rows_of(View(h100()), "processes")[2]
    assert compiled.first.case.caller == "native"
    assert words.caller_cell(compiled) in found_rows[2]
    assert words.limit_cell(compiled.records[8]) in found_rows[2]


def test_the_names_of_lines_do_not_overlap_and_lie_inside_the_figure() -> None:
    drawn_text = pytest.importorskip("matplotlib.text").Text
    stacks = (
        "torch",
        "cuda-driver",
        "cuda-graph",
        "vulkan",
        "dawn",
        "wgpu-native",
        "cupy",
        "triton",
    )
    crowd = view(
        *(peers(stack, {1: 1 + i, 2: 8.0, 8: 9 + i / 99}) for i, stack in enumerate(stacks))
    )
    figure = next(
        part for part in section_of("processes")(crowd) if isinstance(part, Drawing)
    ).draw()
    figure.draw_without_rendering()
    for ax in figure.axes:
        boxes = sorted(
            (drawn_text.get_window_extent(name) for name in ax.texts), key=lambda box: box.y0
        )
        assert len(boxes) >= len(stacks)
        assert all(above.y0 >= below.y1 - 1 for below, above in pairwise(boxes))
        assert all(figure.bbox.x1 >= box.x1 and figure.bbox.y1 >= box.y1 for box in boxes)


def test_the_page_names_the_run_that_it_comes_from_and_other_runs_add_nothing_to_it(
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib")
    usual = fingerprint(record(), created="2026-01-05T03:04:05Z")
    assert not list(brief(View(usual)))
    page = (render([usual, h100()], tmp_path).parent / "pages/contention.html").read_text("utf-8")
    assert from_run(h100()) in page
    assert "figures/contention-threads.svg" in page


def limited(shown: View) -> list[list[tuple[str, Placement, int, float]]]:
    """Of each case with a limit: stack, placement, number of devices and slowdown, where it is
    slowest.
    """
    own = placing(rows_of(shown, "devices"))
    assert own is not None
    return [
        [
            (
                one.row.first.target.stack,
                one.row.first.placement,
                one.peers,
                round(one.ratio.value, 2),
            )
            for one in case.slowdowns
        ]
        for case in own.limited
    ]


def test_devices_that_slow_each_other_say_what_pinning_removes() -> None:
    free = peers("torch", {1: 5.0, 4: 50.0}, "devices", limit="processors")
    pinned = peers("torch", {1: 5.0, 4: 6.0}, "devices", placement="core")
    graph = peers("cuda-graph", {1: 1.0, 4: 1.0}, "devices")
    assert limited(view(free, pinned, graph)) == [
        [("torch", "free", 4, 10.0), ("torch", "core", 4, 1.2)]
    ]
    assert limited(view(graph)) == []
    assert placing([]) is None
    only_two = peers("torch", {1: 5.0, 2: 50.0}, "devices", limit="lock")
    assert limited(view(only_two, graph)) == [[("torch", "free", 2, 10.0)]]
    only_pinned = (
        peers("torch", {1: 5.0, 4: 5.0}, "devices"),
        peers("torch", {1: 5.0, 4: 50.0}, "devices", placement="core", limit="processors"),
    )
    assert limited(view(*only_pinned)) == [[("torch", "free", 4, 1.0), ("torch", "core", 4, 10.0)]]
    said = notes(view(free, pinned, graph), "devices")
    assert "10.0×" in said
    assert "1.20×" in said


def test_of_the_devices_alone_the_table_has_the_median() -> None:
    costs = (peers("torch", {1: cost}, "devices") for cost in (9.0, 5.0, 6.0))
    (row,) = rows(view(*costs), "devices")
    assert row["K=1"] == "6.00"


def test_a_process_a_device_is_judged_at_every_number_of_peers() -> None:
    widest_at_two = peers("torch", {1: 5.0, 2: 5.0, 4: 5.0}, "devices", width=0.01)
    at_two = widest_at_two[1]
    wide = [
        figure("slowdown", 1.3, "noisy", 0.4) if f.name == "slowdown" else f for f in at_two.figures
    ]
    widest_at_two[1] = msgspec.structs.replace(at_two, figures=wide)
    widest = placing(rows_of(view(widest_at_two), "devices"))
    assert widest is not None
    assert widest.highest == pytest.approx(1.82)
    assert "1.82" in notes(view(widest_at_two), "devices")
    slower_at_two = peers("torch", {1: 5.0, 2: 15.0, 4: 5.0}, "devices")
    slower_at_two[1] = msgspec.structs.replace(slower_at_two[1], limit="lock")
    assert limited(view(slower_at_two)) == [[("torch", "free", 2, 3.0)]]


def test_every_case_that_surely_does_less_than_one_alone_is_named() -> None:
    little, much = peers("cuda-graph", {1: 1.0, 2: 2.1}), peers("torch", {1: 1.0, 2: 2.4})
    worst = losses("processes", rows_of(view(little, much), "processes"))
    assert stacks(*worst) == ["torch", "cuda-graph"]
    assert worst[1].ratio.value == pytest.approx(0.952, abs=0.001)
    said = finding_sentences("processes", rows_of(view(little, much), "processes"))[-1]
    assert all(words.name(one.row) in said for one in worst)
    noisy = peers("cuda-graph", {1: 1.0, 2: 2.1}, width=0.2)
    assert losses("processes", rows_of(view(noisy, much[:1]), "processes")) == []


def test_stacks_that_meet_at_the_device_are_said_to() -> None:
    def meeting(stack: str, alone: float, each: float, limit: Limit = "device") -> list[Contention]:
        return peers(
            stack,
            {1: alone, 8: 8 * each},
            limit=limit,
            more=(figure("each", each * 1e3, "ok", 0.02),),
        )

    both = rows_of(view(meeting("torch", 5.0, 2.2), meeting("triton", 11.0, 2.1)), "processes")
    (met,) = meetings(both)
    assert [row.first.target.stack for row in met.rows] == ["torch", "triton"]
    assert (met.peers, round(met.low), round(met.high)) == (8, 2058, 2244)
    assert any(
        words.meeting("processes", met) == said for said in finding_sentences("processes", both)
    )
    apart = view(meeting("torch", 5.0, 2.2), meeting("triton", 11.0, 5.1))
    assert not list(meetings(rows_of(apart, "processes")))
    unknown = view(meeting("torch", 5.0, 2.2), meeting("triton", 11.0, 2.1, "unknown"))
    assert not list(meetings(rows_of(unknown, "processes")))


def test_a_range_above_k_times_is_explained() -> None:
    above = view(peers("torch", {1: 5.0, 4: 5.0}, "devices", status="noisy", width=0.4))
    assert [row.reaches_above for row in rows_of(above, "devices")] == [True]
    assert words.RANGE_ABOVE in notes(above, "devices")
    exact = view(peers("torch", {1: 5.0, 4: 5.0}, "devices", width=0.005))
    assert [row.reaches_above for row in rows_of(exact, "devices")] == [False]
    assert words.RANGE_ABOVE not in notes(exact, "devices")


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_the_limit_and_what_all_do_together_are_in_every_terminal(width: int) -> None:
    text = printed(way_blocks(View(h100()), "processes"), width)
    (table,) = (
        block for block in way_blocks(View(h100()), "processes") if isinstance(block, Table)
    )
    head = text.split("─")[0].split()
    assert {words.ratio_column("processes"), words.LIMIT_COLUMN} <= set(head)
    assert len(table.rows) == 5
