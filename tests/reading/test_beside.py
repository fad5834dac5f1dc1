"""Test the key figures of a run beside those of another run, and where another run of the machine
may lie.
"""

from __future__ import annotations

import math
import re
import statistics
from typing import Any

import msgspec
import pytest

from overhead.reading.beside import Pair, beside, spreads_of
from overhead.reading.next_run import half_width, spread_of
from overhead.reading.view import View
from overhead.results import Figure, Params
from overhead.words.beside import beside_sentence
from tests.fakes.report import H200, figure, fingerprint, record

DAWN = "dispatch-dawn"
LAUNCH = "launch-cuda"


def run(dispatch_ns: float, *, day: int = 1, params: Params | None = None, **fields: Any) -> View:
    """A run in which a dispatch of Dawn takes so long, and a launch of CUDA a fifth."""
    dawn = record("dawn", each=dispatch_ns, fixed=3 * dispatch_ns)
    launch = record("cuda-driver", each=dispatch_ns / 5, params=params)
    return View(fingerprint(dawn, launch, created=f"2026-01-{day:02d}T00:00:00Z", **fields))


def test_a_pair_is_the_ratio_of_this_run_to_the_other_with_all_that_both_intervals_allow() -> None:
    found = beside(run(30_000), run(20_000), {}).pairs[DAWN]
    assert found.limit == "host"
    assert found.ratio.value == pytest.approx(1.5)
    # Both costs have an interval of 2 % to both sides.
    assert found.ratio.low == pytest.approx(1.5 * 0.98 / 1.02)


def test_figures_with_other_parameters_are_no_pair() -> None:
    one_argument = run(30_000, params={"arguments": 1})
    eight_arguments = run(20_000, params={"arguments": 8})
    found = beside(one_argument, eight_arguments, {})
    assert LAUNCH in found.left_out
    assert DAWN in found.pairs


def test_a_figure_of_a_software_adapter_is_no_pair() -> None:
    software = msgspec.structs.replace(record("dawn"), software=True)
    assert beside(View(fingerprint(software)), run(20_000), {}).pairs == {}


def test_the_band_is_from_the_table_if_it_knows_the_kind_of_machine() -> None:
    known = run(30_000, machine=H200)
    band = beside(known, run(26_000, day=9), spreads_of(known, [])).pairs[DAWN].band
    spread = spread_of("host", H200)
    assert spread is not None
    assert band == pytest.approx(math.exp(half_width(spread)))


def test_the_band_of_an_unknown_machine_is_from_its_other_runs() -> None:
    new = run(26_000, day=9)
    earlier = [run(20_000), run(20_400), run(20_800)]
    assert spreads_of(new, []) == {}
    # The standard deviation of ln(cost) over the three earlier runs.
    logs = [math.log(cost_ns) for cost_ns in (20_000, 20_400, 20_800)]
    assert spreads_of(new, earlier)["host"].s == pytest.approx(statistics.stdev(logs), rel=0.02)
    of_three_runs = beside(new, earlier[0], spreads_of(new, earlier)).pairs[DAWN]
    assert of_three_runs.outside, "30 % above runs that differ by 2 %"
    of_one_run = beside(new, earlier[0], spreads_of(new, earlier[:1])).pairs[DAWN]
    assert not of_one_run.outside, "one earlier run does not tell how far runs differ"


def test_a_figure_of_another_profile_is_judged_by_its_interval_and_not_by_its_status() -> None:
    """A default run calls 5 % noisy, a quick run calls 9 % ok: side by side both are judged
    alike.
    """
    usual = View(fingerprint(record("dawn", each=20_000.0), machine=H200))
    spreads = spreads_of(usual, [])

    def pair_with(cost: Figure) -> Pair:
        other = fingerprint(record("dawn", each=None, more=(cost,)), machine=H200)
        return beside(usual, View(other), spreads).pairs[DAWN]

    narrow = pair_with(figure("complete", 30_000.0, status="noisy", width=0.05))
    assert narrow.band is not None
    assert narrow.ratio.status == "ok"
    wide = pair_with(figure("complete", 30_000.0, status="ok", width=0.2))
    assert wide.band is None
    assert wide.ratio.status != "ok"


def test_a_count_of_figures_says_where_noisy_ones_are_left_out() -> None:
    launch = record("cuda-driver", each=4_000.0)

    def told(width: float) -> str:
        dawn = figure("complete", 20_000.0, width=width)
        of_run = View(fingerprint(launch, record("dawn", each=None, more=(dawn,))))
        return beside_sentence(beside(of_run, of_run, {}), "another")

    assert "(2 figures)" in told(0.02)
    assert re.search(r"1 figure\b.*noisy", told(0.3))
