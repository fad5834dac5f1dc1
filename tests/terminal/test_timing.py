"""What ``overhead time`` says below its table."""

from __future__ import annotations

import pytest

from overhead.explain.show_timing import sentences
from overhead.explain.timing import CallTiming, Timing
from overhead.results import Figure, Machine


@pytest.mark.parametrize(("met", "told"), [(5840.0, True), (2400.0, False)])
def test_a_met_cost_far_above_the_quiet_one_is_told(met: float, told: bool) -> None:
    figures = [Figure(name="complete", value=2360.0, low=2300.0, high=2420.0, processes=5)]
    figures += [Figure(name="met", value=met, low=met * 0.9, high=met * 1.2, processes=5)]
    call = CallTiming(
        call="f()",
        status="ok",
        reason="",
        wait="nothing",
        on="CPU",
        bound="host",
        flags=[],
        prints=False,
        figures=figures,
    )
    result = Timing(
        created="",
        setup="",
        machine=Machine(id="", cpu="", cores=1, memory_gib=1, gpus=[]),
        versions={},
        calls=[call],
        ratios=[],
        notes=[],
    )
    said = [line for line in sentences(result) if "met" in line and "complete" in line]
    assert bool(said) is told
    assert all("2.5" in line for line in said)
