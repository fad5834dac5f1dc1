"""The knee of ``issue``, and the fit of a process below it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from overhead.measure.fitting.knee import find_knee
from overhead.measure.fitting.line import Floats
from overhead.measure.fitting.one_process import Process, Series, fit_process, slopes_by_round
from tests.fakes.chains import one_off_line, one_round


class Enqueued(NamedTuple):
    """Samples of the time until ``issue`` returns, ns."""

    n: Floats
    times: Floats


def enqueued(depth: int, host: float = 2_000.0, device: float = 5_000.0) -> Enqueued:
    """Times where a queue of this depth fills; 0 for one that never does. A unit takes the host
    and the device these times.
    """
    n = np.repeat([1, 64, 128, 256, 512, 1024, 1400, 1900, 2300, 2800, 3400], 9).astype(float)
    times = n * host
    if depth:
        while_full = host + (n - depth) * device
        times = np.maximum(times, while_full)
    noise = np.random.default_rng(0).normal(0, 1, n.size)
    return Enqueued(n, times * (1 + 0.002 * noise))


def test_a_full_queue_is_found_with_its_n_its_depth_and_both_slopes() -> None:
    knee = find_knee(*enqueued(depth=1024))
    assert knee is not None
    assert knee.n == pytest.approx((1024 - 0.4) / 0.6, rel=0.01)
    assert knee.depth == pytest.approx(1024, rel=0.01)
    assert [knee.below, knee.above] == pytest.approx([2_000, 5_000], rel=0.02)


def test_times_on_one_line_show_no_full_queue() -> None:
    assert find_knee(*enqueued(depth=0)) is None
    n, times = enqueued(depth=1024)
    before_full = n <= 128
    assert find_knee(n[before_full], times[before_full]) is None


def test_noise_at_two_small_n_is_not_taken_for_a_full_queue() -> None:
    n = np.repeat([1.0, 2, 4, 8, 16, 100], 4)
    noise = 0.5 * np.random.default_rng(3).standard_normal(n.size)
    at_small_n = np.where(n < 5, noise, 0.0)
    assert find_knee(n, n * 300.0 * (1 + at_small_n)) is None


def test_a_process_is_fitted_below_the_n_that_fills_its_queue() -> None:
    rows: list[list[int]] = []
    for n, time in zip(*enqueued(depth=1024), strict=True):
        rows.append([int(n), round(time), round(20_000 + 5_000 * n)])
    process = Process([one_round(rows)])
    found = fit_process(process, Series([process]))
    assert found.knee is not None
    assert found.value("issue") == pytest.approx(2_000, rel=0.01)
    assert found.value("complete") == pytest.approx(5_000, rel=0.01)
    assert found.value("fixed") == pytest.approx(20_000, rel=0.01)
    assert found.value("host") is None
    polled = Process(process.rounds, one_off={"wait_quantum": one_off_line([1e6])})
    assert slopes_by_round(polled, Series([polled]), "issue", None) == {}
