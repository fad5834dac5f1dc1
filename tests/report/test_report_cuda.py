"""The sections on CUDA launches, graphs and synchronisations, from small made-up fingerprints."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from overhead.blocks.parts import Table, cell_text, without_pictures
from overhead.reading.graphs import graphs
from overhead.reading.synchronising import StepKind, Synchronised, synchronised
from overhead.reading.view import View
from overhead.report.core import draw
from overhead.report.core.registry import registered
from overhead.results import Comparison, Figure, Fingerprint, Record, Value
from overhead.words.report.launches import pays_off
from overhead.words.report.waiting import act_name, step_text, synchronised_remark
from tests.fakes.report import (
    MAKING,
    cuda_run,
    driver,
    figure,
    fingerprint,
    record,
    replay,
    torch,
    training_run,
)


def sections(file: Fingerprint) -> dict[str, list[Any]]:
    """The parts of the sections ``launches`` and ``synchronisation`` for this run."""
    pytest.importorskip("matplotlib")
    parts = {}
    with draw.style():
        for section in registered():
            if section.name in ("launches", "synchronisation"):
                parts[section.name] = list(section.build(View(file)))
    return parts


def value(of: Value | None) -> float | None:
    return None if of is None else of.value


def table_of_synchronisations(file: Fingerprint) -> Table:
    """The table of the section ``synchronisation``, which may stand below a drawing."""
    parts = without_pictures(sections(file)["synchronisation"])
    return next(part for part in parts if isinstance(part, Table))


def test_sums_and_quotients_of_values_have_the_widest_intervals() -> None:
    a = Value(10.0, low=8.0, high=12.0)
    b = Value(4.0, low=2.0, high=5.0)
    assert a + b == Value(14.0, low=8.0 + 2.0, high=12.0 + 5.0)
    assert a - b == Value(6.0, low=8.0 - 5.0, high=12.0 - 2.0)
    assert a / b == Value(2.5, low=8.0 / 5.0, high=12.0 / 2.0)
    may_be_zero = Value(1.0, low=-1.0, high=4.0)
    assert a / may_be_zero == Value(10.0, low=8.0 / 4.0, high=None)
    assert a - Value(1.0) == Value(9.0)


def test_a_graph_pays_off_after_its_making_time_divided_by_the_time_saved() -> None:
    (graph,) = graphs(View(cuda_run()))
    even = graph.break_even(nodes=100)
    # Capture, instantiate and upload take 2 + 2 + 1 us a node, and 10 + 20 + 10 us once.
    assert graph.making_time(nodes=100) == Value(540_000.0, low=540_000.0, high=540_000.0)
    assert even is not None
    # A launch costs 3 us, a node 1 us, each with 2 % to both sides: 100 nodes save 200 us.
    assert even.value == pytest.approx(540 / 200)
    assert even.low == pytest.approx(540 / (3.06 - 0.98) / 100)
    assert even.high == pytest.approx(540 / (2.94 - 1.02) / 100)


def test_a_graph_with_an_uncertain_saving_pays_off_after_a_number_without_upper_limit() -> None:
    # Both costs have an interval of 2 %: a node may well cost more than a launch.
    file = fingerprint(driver(each=3_000.0), replay(each=2_950.0))
    even = graphs(View(file))[0].break_even(nodes=100)
    assert even is not None
    assert even.high is None


@pytest.mark.parametrize(
    ("records", "code"),
    [
        ((driver(each=3_000.0), replay(each=3_100.0)), "saves-nothing"),
        ((replay(each=1_000.0),), "no-eager-launch"),
        # A launch through torch is no launch of the driver, which made this graph.
        ((replay(each=1_000.0), torch(each=5_000.0)), "no-eager-launch"),
        ((replay(each=1_000.0, more=()), driver(each=3_000.0)), "no-making-time"),
    ],
)
def test_the_table_of_a_graph_says_why_no_number_of_replays_is_known(
    records: tuple[Record, ...], code: str
) -> None:
    run = fingerprint(*records)
    (graph,) = graphs(View(run))
    assert graph.break_even(100) is None
    assert graph.no_break_even(100) == code
    (table,) = sections(run)["launches"]
    assert pays_off(graph, 100) in table.rows[0]


TORCH_MAKING = tuple(f for f in MAKING if "upload" not in f.name)


def test_the_making_time_of_a_torch_graph_includes_its_first_launch() -> None:
    making = (
        *TORCH_MAKING,
        figure("making:first_launch", 2_500.0, width=0),
        figure("making:first_launch:fixed", 70_000.0, width=0),
    )
    replayed = replay(each=1_000.0, more=making, maker="torch")
    file = fingerprint(driver(each=3_000.0), torch(each=5_000.0), replayed)
    (graph,) = graphs(View(file))
    assert graph.eager is not None
    assert graph.eager.stack == "torch"
    wait = graph.record.value("fixed")
    assert wait is not None
    # Of the first launch only what it takes beyond a replay, for each node and once.
    more_for_each_node = 2_500.0 - 1_000.0
    more_once = 70_000.0 - wait
    # Capture and instantiate take 2 + 2 us a node, and 10 + 20 us once.
    expected = 430_000.0 + 100 * more_for_each_node + more_once
    assert value(graph.making_time(100)) == pytest.approx(expected)
    assert list(graph.parts) == ["capture", "instantiate", "first_launch"]


def test_the_making_time_of_a_graph_is_unknown_if_a_part_is() -> None:
    without_first_launch = replay(each=1_000.0, more=TORCH_MAKING, maker="torch")
    (graph,) = graphs(View(fingerprint(torch(each=5_000.0), without_first_launch)))
    assert graph.making_time(100) is None
    assert graph.break_even(100) is None


def test_the_cost_of_a_synchronisation_is_its_time_less_that_of_the_steps() -> None:
    file = cuda_run()
    # A step alone takes 5 us, and 15 us with the synchronisation.
    once = synchronisation_of(file, "step", "item", every=1)
    assert value(once.cost) == 10_000
    assert value(once.slowdown) == 3
    assert once.cost is not None
    # Each time has an interval of 2 %.
    assert once.cost.low == pytest.approx(15_000 * 0.98 - 5_000 * 1.02)

    # Of ten steps with one synchronisation each step pays a tenth: 6 us in place of 5.
    tenth = synchronisation_of(file, "step", "item", every=10)
    assert value(tenth.cost) == 10_000
    assert value(tenth.slowdown) == pytest.approx(1.2)

    assert synchronisation_of(file, "step", "nonzero", every=1).cost is None
    forward = synchronisation_of(file, "mlp-forward", "item", every=1)
    assert value(forward.cost) == 40_000


def synchronisation_of(file: Fingerprint, workload: str, act: str, every: int) -> Synchronised:
    """The case of a run with this act after every so many steps."""
    (found,) = (
        one
        for one in synchronised(View(file))
        if (one.record.workload, one.act, one.every) == (workload, act, every)
    )
    return found


def with_differences(difference: Figure) -> Fingerprint:
    """A run that compares ``item`` after each step with the step alone, round by round."""
    file = cuda_run()
    ratio = Figure(name="ratio", unit="ratio", value=2.9, low=2.8, high=3.0, status="ok")
    read = synchronisation_of(file, "step", "item", every=1).record
    pair = Comparison(name="sync-cost", of=read.key, figures=[difference, ratio])
    return msgspec.structs.replace(file, comparisons=[pair])


def test_the_cost_of_a_synchronisation_is_the_difference_within_rounds_where_the_file_has_it() -> (
    None
):
    difference = Figure(name="difference", value=9_000.0, low=8_500.0, high=9_500.0, status="ok")
    found = synchronisation_of(with_differences(difference), "step", "item", every=1)
    assert found.cost == Value(9_000.0, 8_500.0, 9_500.0)
    assert found.slowdown == Value(2.9, 2.8, 3.0)


def test_a_difference_within_rounds_that_may_be_zero_is_remarked() -> None:
    unsure = Figure(name="difference", value=-1_000.0, low=-3_000.0, high=1_000.0, status="noisy")
    file = with_differences(unsure)
    found = synchronisation_of(file, "step", "item", every=1)
    assert found.doubt == "no-effect"
    rows = table_of_synchronisations(file).rows
    (row,) = [row for row in rows if "−3.0 to 1.0" in cell_text(row[5])]
    remark = row[-1]
    assert remark != ""
    assert remark == synchronised_remark(found)


def remark_without_a_cost(run: Fingerprint) -> str:
    """The remark of the only row of the table, in which no cost stands."""
    (found,) = synchronised(View(run))
    (row,) = table_of_synchronisations(run).rows
    *_, added, slowdown, remark = row
    assert added == ""
    assert slowdown == ""
    assert remark == synchronised_remark(found)
    return cell_text(remark)


def test_a_synchronisation_whose_step_alone_was_not_measured_has_a_table_row() -> None:
    run = fingerprint(torch(each=15_000.0, act="item"))
    (found,) = synchronised(View(run))
    assert found.alone is None
    assert "error 700" not in remark_without_a_cost(run)


def test_a_synchronisation_that_failed_has_a_table_row_with_the_reason() -> None:
    failed = torch(each=None, act="item", status="failed", reason="error 700")
    run = fingerprint(torch(each=5_000.0), failed)
    (found,) = synchronised(View(run))
    assert found.alone is not None
    assert "error 700" in remark_without_a_cost(run)


def test_a_run_without_cuda_has_no_sections_of_graphs_and_synchronisations() -> None:
    assert sections(fingerprint(record())) == {"launches": [], "synchronisation": []}


def test_the_synchronisations_of_a_training_step_are_compared_with_that_step() -> None:
    numbers_of_item = {}
    for row in table_of_synchronisations(training_run()).rows:
        _, step, act, _, alone, added, *_ = map(cell_text, row)
        if act == act_name("item"):
            numbers_of_item[step] = (alone.split()[0], added.split()[0])
    whole = step_text(StepKind("mlp-train", (), varying=False))
    forward = step_text(StepKind("mlp-forward", (), varying=False))
    assert numbers_of_item[whole] == ("900", "100")
    assert numbers_of_item[forward] == ("300", "40")
