"""Test the figures as data frames."""

from __future__ import annotations

import msgspec
import pytest

from overhead.export import to_pandas
from overhead.reading.tables import COLUMNS
from tests.fakes.contention import h100
from tests.fakes.report import crowded, fingerprint, record

pytestmark = pytest.mark.needs("pandas")


def test_the_data_frame_has_a_row_for_each_figure_and_drops_none() -> None:
    run = crowded()
    frame, empty = to_pandas(run), to_pandas(fingerprint())
    assert tuple(frame.columns) == tuple(empty.columns) == COLUMNS
    assert len(empty) == 0
    cases = frame[frame["kind"] == "case"]
    assert len(cases) == sum(max(len(r.figures), 1) for r in run.records)
    compared = frame[frame["kind"] == "comparison"]
    assert len(compared) == sum(max(len(c.figures), 1) for c in run.comparisons) > 0
    failed = frame[(frame["stack"] == "chromium") & (frame.figure == "none")]
    assert list(failed.status) == ["failed"]
    assert "signal 11" in failed.reason.iloc[0]


def test_the_data_frame_has_values_and_parameters_in_their_columns() -> None:
    frame = to_pandas(
        fingerprint(record("dawn", "per-k", 20_000, params={"k": 16, "wait": "poll"}))
    )
    row = frame[frame.figure == "complete"].iloc[0]
    assert (row.stack, row.pattern, row.params, row.figure_unit) == (
        "dawn",
        "per-k",
        "k=16 wait=poll",
        "ns",
    )
    assert (row.value, row.low, row.high) == pytest.approx((20_000, 19_600, 20_400))
    assert frame.value.dtype.kind == "f"


def test_the_data_frame_has_the_figures_of_peers_and_how_far_a_cost_holds() -> None:
    frame = to_pandas(h100())
    peers = frame[frame["kind"] == "contention"]
    assert len(peers) == sum(len(one.figures) for one in h100().contention)
    torch = peers[
        (peers["stack"] == "torch") & (peers.way == "processes") & (peers.placement == "free")
    ]
    cost = torch[(torch.peers == 8) & (torch.figure == "cost")].iloc[0]
    assert (cost.value, cost.limit) == (pytest.approx(19_300), "device")
    assert [float(one) for one in cost.peer_costs.split()] == pytest.approx([19_300] * 8)
    held = record()
    complete = held.figure("complete")
    assert complete is not None
    held = msgspec.structs.replace(held, figures=[msgspec.structs.replace(complete, holds_to=500)])
    assert list(to_pandas(fingerprint(held)).holds_to) == [500]
