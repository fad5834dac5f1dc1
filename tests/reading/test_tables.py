"""Test the figures as data frames."""

from __future__ import annotations

import pytest

from overhead.reading.tables import COLUMNS, to_pandas
from tests.fakes.report import crowded, fingerprint, record

pytestmark = pytest.mark.needs("pandas")


def test_the_data_frame_has_a_row_for_each_figure_and_drops_none() -> None:
    run = crowded()
    frame, empty = to_pandas(run), to_pandas(fingerprint())
    assert tuple(frame.columns) == tuple(empty.columns) == COLUMNS
    assert len(empty) == 0
    assert len(frame) == sum(max(len(r.figures), 1) for r in run.records)
    failed = frame[(frame["stack"] == "chromium") & (frame.figure == "none")]
    assert list(failed.status) == ["failed"]
    assert "signal 11" in failed.reason.iloc[0]


def test_the_data_frame_has_values_and_parameters_in_their_columns() -> None:
    frame = to_pandas(fingerprint(record("dawn", "per-k", 20_000, params={"k": 16, "wait": "poll"})))
    row = frame[frame.figure == "complete"].iloc[0]
    assert (row.stack, row.pattern, row.params, row.figure_unit) == ("dawn", "per-k", "k=16 wait=poll", "ns")
    assert (row.value, row.low, row.high) == pytest.approx((20_000, 19_600, 20_400))
    assert frame.value.dtype.kind == "f"
