"""Test the key figures of a run beside those of another run, and where another run of the machine
may lie.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from overhead.reading.beside import beside, spreads_of
from overhead.reading.next_run import half_width, spread_of
from overhead.reading.view import View
from overhead.results import Params
from tests.fakes.report import H200, figure, fingerprint, record

DAWN, LAUNCH = "dispatch-dawn", "launch-cuda"


def run(each: float, day: int = 1, params: Params | None = None, **fields: Any) -> View:
    dawn, launch = (
        record("dawn", "per-submit", each, 3 * each),
        record("cuda-driver", each=each / 5, params=params),
    )
    return View(fingerprint(dawn, launch, created=f"2026-01-{day:02d}T00:00:00Z", **fields))


def test_a_pair_is_the_ratio_of_this_run_to_the_other_with_all_that_both_intervals_allow() -> None:
    found = beside(run(30_000), run(20_000), {}).pairs[DAWN]
    assert found.limit == "host"
    assert (found.ratio.value, found.ratio.low) == pytest.approx((1.5, 1.5 * 0.98 / 1.02))


def test_figures_with_other_parameters_or_of_a_software_adapter_are_no_pair() -> None:
    found = beside(run(30_000, params={"arguments": 1}), run(20_000, params={"arguments": 8}), {})
    assert LAUNCH in found.left_out
    assert DAWN in found.pairs
    soft = View(fingerprint(msgspec.structs.replace(record("dawn"), software=True)))
    assert beside(soft, run(20_000), {}).pairs == {}


def test_the_band_is_from_the_table_or_from_the_other_runs_or_from_this_and_one_other() -> None:
    known, new, earlier = (
        run(30_000, machine=H200),
        run(26_000, 9),
        [run(20_000 * k) for k in (1.0, 1.02, 1.04)],
    )
    band = beside(known, new, spreads_of(known, [])).pairs[DAWN].band
    spread = spread_of("host", H200)
    assert spread is not None
    assert band == pytest.approx(math.exp(half_width(spread)))
    assert spreads_of(new, []) == {}
    assert spreads_of(new, earlier)["host"].s == pytest.approx(0.0196, rel=0.02)
    assert beside(new, earlier[0], spreads_of(new, earlier)).pairs[DAWN].outside
    assert not beside(new, earlier[0], spreads_of(new, earlier[:1])).pairs[DAWN].outside


def test_a_figure_of_another_profile_is_judged_by_its_interval_and_not_by_its_status() -> None:
    """A default run calls 5 % noisy, a quick run calls 9 % ok: side by side both are judged
    alike.
    """
    dawn = record("dawn", each=None, more=(figure("complete", 30_000.0, "noisy", width=0.05),))
    wide = record("dawn", each=None, more=(figure("complete", 30_000.0, "ok", width=0.2),))
    usual = View(fingerprint(record("dawn", each=20_000.0), machine=H200))
    spreads = spreads_of(usual, [])
    for other, judged in ((dawn, True), (wide, False)):
        pair = beside(usual, View(fingerprint(other, machine=H200)), spreads).pairs[DAWN]
        assert (pair.band is not None) == judged
        assert (pair.ratio.status == "ok") == judged
