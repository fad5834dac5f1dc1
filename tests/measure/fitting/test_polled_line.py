"""Lines through times that a polling wait has rounded up."""

from __future__ import annotations

import numpy as np
import pytest

from overhead.measure.fitting.polled_line import censored_line


def test_the_slope_is_right_although_a_polling_wait_rounds_times_up() -> None:
    quantum = 1e8
    slope = 5_000.0
    done = 3e6
    draw = np.random.default_rng(0)
    near_first_edge = draw.uniform(0.97, 1.03, 12) * 19_400
    near_third_edge = draw.uniform(0.97, 1.03, 12) * 59_400
    n = np.concatenate([[1, 5_000, 10_000], near_first_edge, near_third_edge])
    polls = np.ceil((done + slope * n) / quantum)
    total = polls * quantum + draw.gamma(2, 2e4, n.size)
    line = censored_line(n, total, quantum=quantum * 1.01)
    assert line is not None
    assert line.slope == pytest.approx(slope, rel=0.01)
    assert line.intercept == pytest.approx(done, abs=1.5e6)
    squares = np.polyfit(n, total, 1)
    assert abs(squares[0] / slope - 1) > 0.02


def test_samples_of_one_unit_and_of_a_whole_poll_determine_the_line() -> None:
    """T(1) is not rounded if the window opens just before a poll; a busy thread polls when its work
    ends.
    """
    quantum = 1e8
    slope = 50_000.0
    start = 1.5e6
    draw = np.random.default_rng(1)
    near_edge = draw.uniform(0.9, 1.1, 20) * 1_970
    n = np.concatenate([[1, 1], near_edge]).round()
    done = (start + slope * n) * draw.normal(1, 0.02, n.size)
    total = np.ceil(done / quantum) * quantum
    total[:2] = [2.0e6, 2.4e6]
    of_busy_thread = np.where(n > 1, np.maximum(done, quantum), total)
    for measured in (total, of_busy_thread):
        line = censored_line(n, measured, quantum=quantum)
        assert line is not None
        assert line.slope == pytest.approx(slope, rel=0.02)
        assert line.intercept == pytest.approx(start, abs=1e6)


def test_samples_that_all_end_at_the_same_poll_give_no_line() -> None:
    assert censored_line(np.array([1.0, 2, 3]), np.array([1e8, 1e8, 1e8]), quantum=1e8) is None
