"""What a run of contention shows: the table, the sentences, the findings, and the page."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec
import pytest
from rich.console import Console

from overhead.blocks import terminal
from overhead.blocks.parts import Drawing, Table, Text, cell_text
from overhead.contention.brief import brief
from overhead.contention.evidence import evidence
from overhead.contention.findings import DoLessTogether
from overhead.contention.rows import (
    RatioAt,
    losses,
    meetings,
    not_judged,
    pinning,
    placing,
    rows_of,
    verdicts,
)
from overhead.contention.sections import section_of
from overhead.contention.show import answer, finding_sentences, way_blocks
from overhead.reading.findings import Finding, RunsAtHand, findings_of
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
    return {one.rule: one for one in findings_of(RunsAtHand(view(*cases)))}


def test_a_case_is_a_row_with_its_cost_for_each_number_of_peers() -> None:
    (row,) = rows(view(peers("torch", costs_us={1: 9.3, 2: 9.1, 8: 19.3}, uneven=1.5)))
    assert (row["K=1"], row["K=2"], row["K=8"]) == ("9.30", "9.10", "19.3")
    # Eight times the work in 19.3 µs in place of 9.3 µs: 8 * 9.3 / 19.3.
    assert row[words.ratio_column("processes")] == "3.85×"
    # "19.3 to 28.9": the dearest of the eight peers costs 1.5 times as much as the others.
    assert row[words.EACH_PEER_COLUMN].split()[::2] == ["19.3", "28.9"]


def placed(pinned_us: float, *, free_limit: Limit, pinned_limit: Limit) -> View:
    """Eight unpinned peers that cost 20 µs each, and as many pinned ones; intervals of 2 %."""
    return view(
        peers("torch", costs_us={1: 5.0, 8: 20.0}, limit=free_limit),
        peers("torch", costs_us={1: 5.0, 8: pinned_us}, placement="core", limit=pinned_limit),
    )


def test_a_pinned_row_is_shown_only_if_pinning_changed_a_cost_beyond_the_intervals() -> None:
    same = placed(20.3, free_limit="device", pinned_limit="device")
    other = placed(25.0, free_limit="device", pinned_limit="device")
    assert [bool(row.get(words.PINNED_COLUMN)) for row in rows(same)] == [False]
    assert [bool(row.get(words.PINNED_COLUMN)) for row in rows(other)] == [False, True]
    assert len(pinning(rows_of(same, "processes")).same) == 1
    assert len(pinning(rows_of(other, "processes")).other) == 1
    # Once, in a sentence.
    assert notes(same) != notes(other)


def test_a_pinned_row_that_alone_is_surely_slower_is_shown_beside_one_with_wide_intervals() -> None:
    """The costs overlap, and still only the pinned callers are surely slower than alone."""
    free = peers("torch", costs_us={1: 5.0, 8: 10.0}, way="busy", width=0.6)
    pinned = peers("torch", costs_us={1: 5.0, 8: 10.0}, way="busy", placement="core", width=0.3)
    shown = rows_of(view(free, pinned), "busy")
    judged = verdicts("busy", shown)
    assert judged is not None
    assert [found.row.first.placement for found in judged.more] == ["core"]
    assert len(pinning(shown).other) == 1


def test_pinned_peers_without_an_interval_are_not_said_to_be_the_same() -> None:
    shown = placed(20.0, free_limit="device", pinned_limit="device")
    without = []
    for one in shown.fingerprint.contention:
        figures = [msgspec.structs.replace(figure, low=None, high=None) for figure in one.figures]
        without.append(msgspec.structs.replace(one, figures=figures))
    assert len(rows(view(without))) == 2


@pytest.mark.parametrize(
    ("free", "pinned", "shown"),
    [
        # What one placement leaves open, the other tells: the costs are the same.
        ("unknown", "slices", "slices"),
        ("device", "unknown", "device"),
        # Two limits of one case with one cost: neither is sure.
        ("lock", "slices", "unknown"),
        # Not clearly slower: there is nothing to explain.
        ("", "processors", ""),
    ],
)
def test_a_case_with_the_same_costs_in_two_placements_has_one_limit(
    free: Limit, pinned: Limit, shown: Limit
) -> None:
    (row,) = rows(placed(20.3, free_limit=free, pinned_limit=pinned))
    assert row[words.LIMIT_COLUMN] == words.limit_name(shown, "processes")


def test_limits_of_placements_with_other_costs_stay_apart() -> None:
    both = rows(placed(40.0, free_limit="unknown", pinned_limit="slices"))
    limits = [words.limit_name(limit, "processes") for limit in ("unknown", "slices")]
    assert [row[words.LIMIT_COLUMN] for row in both] == limits


@pytest.mark.parametrize("way", ["processes", "devices", "busy"])
def test_processes_share_no_lock_of_a_library(way: Way) -> None:
    assert words.limit_name("lock", way) != words.limit_name("lock", "threads")


def test_a_noisy_figure_is_a_range_and_a_failed_one_has_its_reason() -> None:
    shown = view(
        peers("dawn", costs_us={1: 28, 8: 600}, status="noisy", width=0.5),
        peers("jax", costs_us={1: None, 2: None}),
    )
    (row,) = rows(shown)
    assert row["K=1"] == "28"
    # The interval of the record with the most peers: 600 µs less and more its half.
    assert row["K=8"].split()[::2] == ["300", "900"]
    _, failed = rows_of(shown, "processes")
    assert f"{words.case(failed, 1, 2)}: the process ran out of memory" in notes(shown)


def test_cases_that_differ_are_told_apart_by_adapter_api_and_parameters() -> None:
    both = view(
        peers("wgpu-native", costs_us={1: 9.0}, api="Vulkan"),
        peers("wgpu-native", costs_us={1: 9.0}, api="OpenGL"),
    )
    assert len({row["stack"] for row in rows(both)}) == 2


@pytest.mark.parametrize("limit", get_args(Limit))
@pytest.mark.parametrize("placement", get_args(Placement))
def test_every_limit_and_placement_has_words(limit: Limit, placement: Placement) -> None:
    (row,) = rows(view(peers("torch", costs_us={1: 1.0, 2: 2.0}, limit=limit, placement=placement)))
    assert row[words.LIMIT_COLUMN]
    assert bool(row.get(words.PINNED_COLUMN)) == (placement != "free")


def test_cases_are_more_or_less_than_one_alone_by_their_intervals() -> None:
    shown = view(
        peers("torch", costs_us={1: 9.3, 8: 19.3}),
        peers("cuda-graph", costs_us={1: 1.0, 8: 10.0}),
        # Its interval reaches from 0.75 to 1.35 times as much.
        peers("dawn", costs_us={1: 10.0, 8: 76.2}, status="noisy", width=0.3),
        # A case of fewer peers is not compared.
        peers("cupy", costs_us={1: 1.0, 4: 80.0}),
        peers("vulkan", costs_us={1: 1.0, 8: 80.0}, caller="native"),
    )
    found = verdicts("processes", rows_of(shown, "processes"))
    assert found is not None
    assert found.peers == 8
    assert stacks(*found.more) == ["torch"]
    assert stacks(*found.less) == ["vulkan", "cuda-graph"]
    assert stacks(*found.even) == ["dawn"]


def test_the_answer_has_the_outermost_ends_and_names_the_smaller_groups() -> None:
    shown = view(
        peers("torch", costs_us={1: 10.0, 8: 20.0}, limit="device"),
        peers("triton", costs_us={1: 10.0, 8: 40.0}, limit="device"),
        peers("cuda-graph", costs_us={1: 1.0, 8: 16.0}, limit="slices"),
    )
    own = rows_of(shown, "processes")
    said = answer("processes", own)
    # 2 and 4 times as much, each with 2 % on both sides; half as much.
    assert "2.0 to 4.1×" in said
    assert "0.490 to 0.510×" in said
    names = {row.first.target.stack: words.name(row) for row in own}
    assert names["cuda-graph"] in said
    assert names["torch"] not in said


def test_the_answer_says_that_it_leaves_out_what_runs_on_the_cpu() -> None:
    torch = peers("torch", costs_us={1: 10.0, 8: 20.0})
    numpy = peers("numpy", costs_us={1: 1.0, 8: 1.0}, api="CPU")
    both = rows_of(view(torch, numpy), "processes")
    left_out = not_judged("processes", both)
    assert [row.first.target.stack for row in left_out] == ["numpy"]
    opening = next(iter(way_blocks(view(torch, numpy), "processes")))
    assert isinstance(opening, Text)
    assert words.without(left_out) in opening.paragraphs[0]
    assert not_judged("processes", rows_of(view(torch), "processes")) == []


def test_stacks_of_one_api_and_unit_share_the_time_slices_of_their_device() -> None:
    slices = (figure("slice", 1e6), figure("hand_over", 1e5))
    costs_us = {1: 10.0, 8: 90.0}
    dawn = peers("dawn", costs_us, api="Vulkan", limit="slices", more=slices)
    wgpu = peers("wgpu-native", costs_us, api="Vulkan", limit="device")
    other_api = peers("torch", costs_us, api="CUDA", limit="device")
    limits = {}
    for row in rows_of(view(dawn, wgpu, other_api), "processes"):
        limits[row.first.target.stack] = row.limited(8).limit
    assert limits == {"dawn": "slices", "wgpu-native": "slices", "torch": "device"}


def test_where_nothing_is_clear_the_answer_says_how_far_the_intervals_reach() -> None:
    wide = peers("dawn", costs_us={1: 10.0, 16: 20.0}, way="busy", status="noisy", width=0.6)
    said = answer("busy", rows_of(view(wide), "busy"))
    # Twice as slow, with 60 % on both sides.
    assert "0.8 to 3.2×" in said


def test_without_an_interval_nothing_is_answered() -> None:
    once = peers("torch", costs_us={1: 10.0, 8: 20.0})
    for i, one in enumerate(once):
        figures = [msgspec.structs.replace(figure, low=None, high=None) for figure in one.figures]
        once[i] = msgspec.structs.replace(one, figures=figures)
    assert answer("processes", rows_of(view(once), "processes")) == ""


def test_a_ratio_that_noise_puts_above_k_has_no_upper_end() -> None:
    wide = peers("torch", costs_us={1: 5.0, 4: 5.0}, way="devices", status="noisy", width=0.4)
    (row,) = rows(view(wide), "devices")
    # Four times as much, less 40 %.
    assert "2.4" in row[words.ratio_column("devices")]
    assert "5.6" not in row[words.ratio_column("devices")]


def test_each_limit_has_one_line_with_the_figures_that_show_it() -> None:
    def limited(stack: str, limit: Limit, issue_us: float) -> list[Contention]:
        made = peers(stack, {1: 5.0, 8: 20.0}, limit=limit, more=(figure("issue", issue_us * 1e3),))
        alone = made[0]
        made[0] = msgspec.structs.replace(alone, figures=[*alone.figures, figure("issue", 4e3)])
        return made

    shown = view(
        limited("torch", "device", 4.0),
        limited("triton", "device", 6.0),
        limited("dawn", "lock", 16),
    )
    device, lock = evidence(rows_of(shown, "processes"))
    assert stacks(*device.slowdowns) == ["torch", "triton"]
    assert [round(one.ratio.value, 3) for one in device.enqueue] == [1.0, 1.5]
    assert stacks(*lock.slowdowns) == ["dawn"]
    judged = [*device.slowdowns, *lock.slowdowns]
    assert words.limit_line("processes", device, judged) in notes(shown)


def test_beside_busy_processors_the_slowdown_of_the_one_process_is_told() -> None:
    shown = view(peers("torch", costs_us={1: 9.5, 16: 19.0}, way="busy"))
    assert "1.96 to 2.04×" in notes(shown, "busy")
    assert rows(shown, "busy")[0][words.ratio_column("busy")] == "2.00×"


def test_threads_doing_less_than_one_are_a_finding_and_processes_are_named_where_they_do_more() -> (
    None
):
    threads = peers("cuda-driver", costs_us={1: 4.2, 4: 31}, way="threads")
    processes = peers("cuda-driver", costs_us={1: 5.0, 4: 9.2}, way="processes")
    of_threads = found(threads)["threads-together"]
    of_both = found(threads, processes)["threads-together"]
    assert of_threads.times == pytest.approx(31 / 4 / 4.2)
    # Four threads together do 4 * 4.2 / 31 of what one does.
    assert "0.542" in finding_words(of_threads).title
    assert isinstance(of_threads.facts, DoLessTogether)
    assert isinstance(of_both.facts, DoLessTogether)
    assert of_threads.facts.processes is None
    assert of_both.facts.processes is not None
    assert of_both.facts.processes.value == pytest.approx(4 * 5.0 / 9.2)


def test_a_finding_needs_the_whole_interval_below_its_bound() -> None:
    assert "processes-together" in found(peers("torch", costs_us={1: 1.0, 2: 2.4}))
    assert not found(peers("torch", costs_us={1: 1.0, 2: 2.4}, width=0.2))
    assert not found(peers("torch", costs_us={1: 1.0, 2: 2.4}, status="noisy"))
    assert not found(peers("torch", costs_us={1: 1.0, 2: 2.4}, way="threads")), (
        "0.83 of one is above the bound of threads"
    )


def test_a_software_adapter_decides_no_finding_beside_hardware() -> None:
    software = peers("vulkan", costs_us={1: 1.0, 2: 4.0}, software=True)
    assert found(software)
    assert not found(software, peers("torch", costs_us={1: 1.0, 2: 1.0}))


def test_a_row_is_one_line_of_a_terminal_of_120_columns() -> None:
    console = Console(width=120, file=io.StringIO())
    with console.capture() as shown:
        terminal.show(brief(View(h100())), console)
    found_rows = [
        line for line in shown.get().splitlines() if line[1:6] in ("torch", "cuda-", "dawn ")
    ]
    assert len(found_rows) == 7, "one line for each row of each way"
    compiled = rows_of(View(h100()), "processes")[2]
    assert compiled.first.case.caller == "native"
    assert words.caller_cell(compiled) in found_rows[1]
    assert words.limit_name("device", "processes") in found_rows[1]


@pytest.mark.parametrize("narrow", [False, True])
def test_the_texts_of_a_figure_do_not_overlap_and_lie_inside_it(narrow: bool) -> None:
    pytest.importorskip("matplotlib")
    crowd = []
    for i, stack in enumerate(("torch", "cuda-driver", "cuda-graph", "vulkan", "dawn", "cupy")):
        # At eight peers all are at one rate.
        crowd.append(peers(stack, {1: 1 + i, 2: 8.0, 8: 9 + i / 99}, limit="processors"))
    parts = section_of("processes")(view(*crowd))
    (drawing,) = [part for part in parts if isinstance(part, Drawing)]
    draw = drawing.draw_narrow if narrow else drawing.draw
    assert draw is not None
    shown = draw()
    shown.draw_without_rendering()
    boxes = []
    for ax in shown.axes:
        texts = list(ax.texts)
        if ax.axison:
            texts += [*ax.get_xticklabels(), *ax.get_yticklabels()]
        boxes += [text.get_window_extent() for text in texts if text.get_text()]
    assert len(boxes) >= len(crowd)
    for one, other in itertools.combinations(boxes, 2):
        assert not one.shrunk(0.9, 0.9).overlaps(other.shrunk(0.9, 0.9))
    assert max(box.x1 for box in boxes) <= shown.bbox.x1


def test_a_figure_shows_where_the_device_limits_and_a_case_of_one_number_is_left_out() -> None:
    pytest.importorskip("matplotlib")
    torch = on_device("torch", alone_us=5.0, each_us=2.2)
    triton = on_device("triton", alone_us=11.0, each_us=2.1)
    lone = peers("cupy", costs_us={1: 5.0})
    (drawing,) = [
        part
        for part in section_of("processes")(view(torch, triton, lone))
        if isinstance(part, Drawing)
    ]
    ax = drawing.draw().axes[0]
    assert len(ax.get_yticks()) == 2
    # In µs: the lower end of the one interval, and the upper end of the other.
    areas = [patch.get_paths()[0].get_extents() for patch in ax.collections]
    assert {(round(area.x0, 3), round(area.x1, 3)) for area in areas} == {(2.058, 2.244)}


def test_the_page_names_the_run_that_it_comes_from_and_other_runs_add_nothing_to_it(
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib")
    usual = fingerprint(record(), created="2026-01-05T03:04:05Z")
    assert not list(brief(View(usual)))
    page = (render([usual, h100()], tmp_path).parent / "pages/contention.html").read_text("utf-8")
    assert from_run(h100()) in page
    assert "figures/contention-threads.svg" in page


class Slowed(NamedTuple):
    """Where a case is slowest beside others, and how many times as slow it is there."""

    stack: str
    placement: Placement
    devices: int
    slowdown: float


def limited(shown: View) -> list[list[Slowed]]:
    """Of each case with a limit, where it is slowest: for each placement."""
    own = placing(rows_of(shown, "devices"))
    assert own is not None
    cases = []
    for case in own.limited:
        slowed = []
        for one in case.slowdowns:
            first = one.row.first
            slowdown = round(one.ratio.value, 2)
            slowed.append(Slowed(first.target.stack, first.placement, one.peers, slowdown))
        cases.append(slowed)
    return cases


def test_devices_that_slow_each_other_say_what_pinning_removes() -> None:
    free = peers("torch", costs_us={1: 5.0, 4: 50.0}, way="devices", limit="processors")
    pinned = peers("torch", costs_us={1: 5.0, 4: 6.0}, way="devices", placement="core")
    graph = peers("cuda-graph", costs_us={1: 1.0, 4: 1.0}, way="devices")
    shown = view(free, pinned, graph)
    assert limited(shown) == [
        [
            Slowed("torch", "free", devices=4, slowdown=10.0),
            Slowed("torch", "core", devices=4, slowdown=1.2),
        ]
    ]
    said = notes(shown, "devices")
    assert "10.0×" in said
    assert "1.20×" in said


def test_devices_that_do_not_slow_each_other_have_no_limited_case() -> None:
    assert limited(view(peers("cuda-graph", costs_us={1: 1.0, 4: 1.0}, way="devices"))) == []
    assert placing([]) is None


def test_a_case_that_ran_on_two_devices_alone_is_limited_there() -> None:
    only_two = peers("torch", costs_us={1: 5.0, 2: 50.0}, way="devices", limit="lock")
    graph_on_four = peers("cuda-graph", costs_us={1: 1.0, 4: 1.0}, way="devices")
    assert limited(view(only_two, graph_on_four)) == [
        [Slowed("torch", "free", devices=2, slowdown=10.0)]
    ]


def test_a_case_that_only_pinning_slows_is_limited() -> None:
    free = peers("torch", costs_us={1: 5.0, 4: 5.0}, way="devices")
    pinned = peers(
        "torch", costs_us={1: 5.0, 4: 50.0}, way="devices", placement="core", limit="processors"
    )
    assert limited(view(free, pinned)) == [
        [
            Slowed("torch", "free", devices=4, slowdown=1.0),
            Slowed("torch", "core", devices=4, slowdown=10.0),
        ]
    ]


def test_of_the_devices_alone_the_table_has_the_median() -> None:
    costs = (peers("torch", costs_us={1: cost}, way="devices") for cost in (9.0, 5.0, 6.0))
    (row,) = rows(view(*costs), "devices")
    assert row["K=1"] == "6.00"


def test_the_highest_slowdown_of_devices_is_taken_over_every_number_of_peers() -> None:
    records = peers("torch", costs_us={1: 5.0, 2: 5.0, 4: 5.0}, way="devices", width=0.01)
    at_two = records[1]
    noisy = figure("slowdown", 1.3, status="noisy", width=0.4)
    figures = [noisy if one.name == "slowdown" else one for one in at_two.figures]
    records[1] = msgspec.structs.replace(at_two, figures=figures)
    own = placing(rows_of(view(records), "devices"))
    assert own is not None
    # The upper end of the interval at two peers: 1.3 and 40 % of it.
    assert own.highest == pytest.approx(1.82)
    assert "1.82" in notes(view(records), "devices")


def test_a_process_a_device_is_judged_at_every_number_of_peers() -> None:
    slower_at_two = peers("torch", costs_us={1: 5.0, 2: 15.0, 4: 5.0}, way="devices")
    slower_at_two[1] = msgspec.structs.replace(slower_at_two[1], limit="lock")
    assert limited(view(slower_at_two)) == [[Slowed("torch", "free", devices=2, slowdown=3.0)]]


def test_every_case_that_surely_does_less_than_one_alone_is_named() -> None:
    little = peers("cuda-graph", costs_us={1: 1.0, 2: 2.1})
    much = peers("torch", costs_us={1: 1.0, 2: 2.4})
    own = rows_of(view(little, much), "processes")
    worst = losses("processes", own)
    assert stacks(*worst) == ["torch", "cuda-graph"]
    assert worst[1].ratio.value == pytest.approx(2 * 1.0 / 2.1, abs=0.001)
    said = answer("processes", own)
    assert "0.8" in said
    assert "0.9" in said
    # With an interval of 20 % two may do as much as one; and of the other stack one ran alone.
    noisy = peers("cuda-graph", costs_us={1: 1.0, 2: 2.1}, width=0.2)
    much_alone = much[:1]
    assert losses("processes", rows_of(view(noisy, much_alone), "processes")) == []


def on_device(
    stack: str, *, alone_us: float, each_us: float, limit: Limit = "device"
) -> list[Contention]:
    """One process alone, and eight that together take ``each_us`` a unit."""
    each = figure("each", 1e3 * each_us, width=0.02)
    return peers(stack, costs_us={1: alone_us, 8: 8 * each_us}, limit=limit, more=(each,))


def test_stacks_that_meet_at_the_device_are_said_to() -> None:
    torch = on_device("torch", alone_us=5.0, each_us=2.2)
    triton = on_device("triton", alone_us=11.0, each_us=2.1)
    both = rows_of(view(torch, triton), "processes")
    (met,) = meetings(both)
    assert [row.first.target.stack for row in met.rows] == ["torch", "triton"]
    assert met.peers == 8
    # In ns, from the lower end of the one interval to the upper end of the other: 2 %.
    assert round(met.low) == 2058
    assert round(met.high) == 2244
    assert any(
        words.meeting("processes", met) == said for said in finding_sentences("processes", both)
    )


def test_stacks_with_other_times_on_the_device_do_not_meet() -> None:
    torch = on_device("torch", alone_us=5.0, each_us=2.2)
    slower = on_device("triton", alone_us=11.0, each_us=5.1)
    assert not list(meetings(rows_of(view(torch, slower), "processes")))


def test_stacks_that_the_device_does_not_limit_do_not_meet() -> None:
    torch = on_device("torch", alone_us=5.0, each_us=2.2)
    unknown = on_device("triton", alone_us=11.0, each_us=2.1, limit="unknown")
    assert not list(meetings(rows_of(view(torch, unknown), "processes")))


def test_a_range_above_k_times_is_explained() -> None:
    # Four do exactly as much as four alone; an interval of 40 % reaches above that.
    above = view(
        peers("torch", costs_us={1: 5.0, 4: 5.0}, way="devices", status="noisy", width=0.4)
    )
    assert [row.reaches_above for row in rows_of(above, "devices")] == [True]
    assert words.RANGE_ABOVE in notes(above, "devices")
    exact = view(peers("torch", costs_us={1: 5.0, 4: 5.0}, way="devices", width=0.005))
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
    assert len(table.rows) == 4, "the cases of processes in this run"
