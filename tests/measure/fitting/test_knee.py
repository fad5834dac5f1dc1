"""The knee of ``issue``, and the fit of a process below it."""

from __future__ import annotations

import numpy as np
import pytest

from overhead.measure.fitting.knee import find_knee
from overhead.measure.fitting.line import Floats
from overhead.measure.fitting.one_process import Process, Series, fit_process, slopes_by_round
from tests.fakes.chains import one_off_line, one_round


def issued(depth: int, host: float = 2_000.0, device: float = 5_000.0) -> tuple[Floats, Floats]:
    n = np.repeat([1, 64, 128, 256, 512, 1024, 1400, 1900, 2300, 2800, 3400], 9).astype(float)
    full = host + (n - depth) * device
    noise = np.random.default_rng(0).normal(0, 1, n.size)
    return n, np.maximum(n * host, full if depth else 0.0) * (1 + 0.002 * noise)


def test_a_full_queue_is_found_with_its_n_its_depth_and_both_slopes() -> None:
    knee = find_knee(*issued(1024))
    assert knee is not None
    assert knee.n == pytest.approx((1024 - 0.4) / 0.6, rel=0.01)
    assert knee.depth == pytest.approx(1024, rel=0.01)
    assert [knee.below, knee.above] == pytest.approx([2_000, 5_000], rel=0.02)


def test_times_on_one_line_show_no_full_queue() -> None:
    assert find_knee(*issued(0)) is None
    n, y = issued(1024)
    assert find_knee(n[n <= 128], y[n <= 128]) is None


def test_noise_at_two_small_n_is_not_taken_for_a_full_queue() -> None:
    ns = np.array([1.0, 2, 4, 8, 16, 100])
    rows = np.repeat(ns, 4), np.repeat(ns * 300.0, 4)
    wild = rows[1] * (
        1 + 0.5 * np.random.default_rng(3).standard_normal(rows[1].size) * (rows[0] < 5)
    )
    assert find_knee(rows[0], wild) is None


def test_a_process_is_fitted_below_the_n_that_fills_its_queue() -> None:
    n, issue = issued(1024)
    rows = [[int(k), round(i), round(20_000 + 5_000 * k)] for k, i in zip(n, issue, strict=True)]
    process = Process([one_round(rows)])
    found = fit_process(process, Series([process]))
    assert found.knee is not None
    assert found.value("issue") == pytest.approx(2_000, rel=0.01)
    assert found.value("complete") == pytest.approx(5_000, rel=0.01)
    assert found.value("fixed") == pytest.approx(20_000, rel=0.01)
    assert found.value("host") is None
    polled = Process(process.rounds, {"wait_quantum": one_off_line([1e6])})
    assert slopes_by_round(polled, Series([polled]), "issue", None) == {}
