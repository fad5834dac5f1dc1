"""Test the key figures of a run beside those of another run, and where another run of the machine may lie."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from overhead.reading.beside import Beside, beside, spreads_of, version_changes
from overhead.reading.next_run import half_width
from overhead.reading.view import View
from overhead.results import Params
from tests.fakes.report import H200, fingerprint, record

DAWN, LAUNCH = "One dispatch, Dawn, from Python", "One launch, CUDA driver, from Python"


def run(each: float, day: int = 1, params: Params | None = None, **fields: Any) -> View:
    dawn, launch = record("dawn", "per-submit", each, 3 * each), record("cuda-driver", each=each / 5, params=params)
    return View(fingerprint(dawn, launch, created=f"2026-01-{day:02d}T00:00:00Z", **fields))


def set_beside(view: View, other: View, *own: View) -> Beside:
    return beside(view, other, spreads_of(view, own))


def test_a_pair_is_the_ratio_of_this_run_to_the_other_with_all_that_both_intervals_allow() -> None:
    pair = set_beside(run(30_000), run(20_000)).pairs[DAWN]
    assert pair.limit == "host"
    assert (pair.ratio.value, pair.ratio.low, pair.ratio.high) == pytest.approx(
        (1.5, 1.5 * 0.98 / 1.02, 1.5 * 1.02 / 0.98)
    )


def test_figures_with_other_parameters_or_of_a_software_adapter_are_no_pair() -> None:
    found = set_beside(run(30_000, params={"arguments": 1}), run(20_000, params={"arguments": 8}))
    assert LAUNCH in found.left_out
    assert DAWN in found.pairs
    soft = View(fingerprint(msgspec.structs.replace(record("dawn"), software=True)))
    assert set_beside(soft, run(20_000)).pairs == {}


def test_the_band_is_that_of_the_kind_of_machine_where_the_table_knows_it() -> None:
    view = run(30_000, machine=H200)
    spreads = spreads_of(view, [])
    band = set_beside(view, run(20_000)).pairs[DAWN].band
    assert band == pytest.approx(math.exp(half_width(spreads["host"])))
    assert set_beside(run(20_000), run(30_000)).pairs[DAWN].band is None


def test_else_the_band_is_from_the_other_runs_of_the_machine_or_from_this_and_one_other() -> None:
    earlier = [run(20_000 * k, day) for day, k in enumerate((1.0, 1.02, 1.04), 2)]
    pair = set_beside(run(26_000, 9), earlier[-1], *earlier).pairs[DAWN]
    assert pair.outside
    assert spreads_of(run(26_000, 9), earlier)["host"].s == pytest.approx(0.0196, rel=0.02)
    assert not set_beside(run(26_000, 9), earlier[0], earlier[0]).pairs[DAWN].outside


def test_only_versions_that_both_runs_name_can_change() -> None:
    before, after = fingerprint(versions={"torch": "2.1", "cupy": "1"}), fingerprint(versions={"torch": "2.2"})
    assert version_changes(before, msgspec.structs.replace(after, method_version=2)) == "method 1 → 2; torch 2.1 → 2.2"
