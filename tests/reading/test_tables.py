"""Test the figures as data frames."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from overhead.export import to_pandas
from overhead.reading.tables import COLUMNS
from overhead.results import Comparison, Record
from tests.fakes.contention import h100
from tests.fakes.report import crowded, fingerprint, record

pytestmark = pytest.mark.needs("pandas")


def test_the_data_frame_has_a_row_for_each_figure_and_drops_none() -> None:
    run = crowded()
    frame = to_pandas(run)
    assert tuple(frame.columns) == COLUMNS
    cases = frame[frame["kind"] == "case"]
    assert len(cases) == rows_for(run.records)
    compared = frame[frame["kind"] == "comparison"]
    assert len(compared) == rows_for(run.comparisons) > 0
    of_chromium = frame[frame["stack"] == "chromium"]
    failed = of_chromium[of_chromium.figure == "none"]
    assert list(failed.status) == ["failed"]
    assert "signal 11" in failed.reason.iloc[0]


def rows_for(measured: Sequence[Record | Comparison]) -> int:
    """A row for each figure, and one for what has none."""
    return sum(max(len(each.figures), 1) for each in measured)


def test_the_data_frame_of_an_empty_run_has_the_columns_alone() -> None:
    empty = to_pandas(fingerprint())
    assert tuple(empty.columns) == COLUMNS
    assert len(empty) == 0


def test_the_data_frame_has_values_and_parameters_in_their_columns() -> None:
    made = record("dawn", "per-k", 20_000, params={"k": 16, "wait": "poll"})
    frame = to_pandas(fingerprint(made))
    row = frame[frame.figure == "complete"].iloc[0]
    assert row.stack == "dawn"
    assert row.pattern == "per-k"
    assert row.params == "k=16 wait=poll"
    assert row.figure_unit == "ns"
    assert row.value == pytest.approx(20_000)
    assert row.low == pytest.approx(19_600)
    assert row.high == pytest.approx(20_400)
    assert frame.value.dtype.kind == "f"


def test_the_data_frame_has_the_figures_of_peers() -> None:
    run = h100()
    frame = to_pandas(run)
    peers = frame[frame["kind"] == "contention"]
    assert len(peers) == sum(len(each.figures) for each in run.contention)
    torch = peers[peers["stack"] == "torch"]
    free = torch[(torch.way == "processes") & (torch.placement == "free")]
    cost = free[(free.peers == 8) & (free.figure == "cost")].iloc[0]
    assert cost.value == pytest.approx(19_300)
    assert cost.limit == "device"
    assert [float(ns) for ns in cost.peer_costs.split()] == pytest.approx([19_300] * 8)


def test_the_data_frame_has_how_far_a_cost_holds() -> None:
    made = record()
    complete = made.figure("complete")
    assert complete is not None
    held = msgspec.structs.replace(complete, holds_to=500)
    frame = to_pandas(fingerprint(msgspec.structs.replace(made, figures=[held])))
    assert list(frame.holds_to) == [500]
