"""A made-up result of ``overhead time``: two statements on a GPU, the second with a cost that is no
line.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from overhead.results import Figure, Machine
from overhead.timing.timing import CallRatio, CallTiming, Timing
from tests.fakes.report import H200


def figure(name: str, value: float, low: float, high: float, unit: str = "ns") -> Figure:
    return Figure(name=name, unit=unit, value=value, low=low, high=high, processes=5)


def missing(name: str, reason: str) -> Figure:
    return Figure(name=name, status="nonlinear", reason=reason)


def call(text: str, figures: list[Figure], **more: object) -> CallTiming:
    """A timed statement; ``more``: other values of its fields."""
    found = CallTiming(
        call=text,
        libraries={"torch": "2.13.0"},
        status="ok",
        reason="",
        wait="torch.cuda.synchronize()",
        on="NVIDIA H200",
        bound="host",
        flags=["values-not-checked"],
        figures=figures,
    )
    return msgspec.structs.replace(found, **more)


def timing(*calls: CallTiming, ratios: Sequence[CallRatio] = ()) -> Timing:
    """The result of a run that timed these statements in turn."""
    return Timing(
        created="2026-11-23T12:00:00Z",
        setup="",
        machine=Machine(id="0123456789ab", cpu="a processor", cores=16, memory_gib=128),
        versions={"torch": "2.13.0"},
        calls=list(calls),
        ratios=list(ratios),
        notes=[],
    )


def two_calls() -> Timing:
    """One statement with all figures, and one that has no line, and is bounded by the device."""
    first = [
        figure("complete", 6_790.0, 6_620.0, 6_950.0),
        figure("met", 7_900.0, 6_900.0, 12_100.0),
        figure("issue", 6_780.0, 6_610.0, 6_940.0),
        figure("device_busy", 1_510.0, 1_500.0, 1_520.0),
        figure("fixed", 9_800.0, 9_000.0, 10_600.0),
        figure("naive", 17_500.0, 16_800.0, 18_200.0),
    ]
    bend = "T(512) lies +152% of the ladder's rise off the line, beyond its own spread"
    second = [
        missing("complete", bend),
        missing("fixed", bend),
        figure("naive", 41_000.0, 39_000.0, 43_000.0),
    ]
    difference = figure("difference", 2_000.0, 1_000.0, 3_000.0)
    ratio = figure("ratio", 1.3, 1.15, 1.45, unit="ratio")
    made = timing(
        call("x.add_(1)", first, next_run=[5_700.0, 8_100.0]),
        call("x = x * x; print(x)", second, status="nonlinear", reason=bend, bound="device"),
        ratios=[CallRatio(position=2, difference=difference, ratio=ratio)],
    )
    return msgspec.structs.replace(
        made,
        setup="import torch; x = torch.zeros(256, device='cuda')",
        machine=H200,
        versions={"python": "CPython 3.12.1", "torch": "2.13.0"},
        notes=["call@CUDA:NVIDIA H200: 4 of 5 processes measured"],
    )
