"""Records of contention made up for tests, of the size that an H100 gave."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from overhead.results import (
    Caller,
    Case,
    Contention,
    Figure,
    Fingerprint,
    Limit,
    Placement,
    Status,
    Target,
    Way,
)
from tests.fakes.report import figure, fingerprint


def peers(
    stack: str,
    costs_us: Mapping[int, float | None],
    way: Way = "processes",
    *,
    caller: Caller = "binding",
    placement: Placement = "free",
    api: str = "CUDA",
    limit: Limit = "",
    why: str = "",
    status: Status = "ok",
    uneven: float = 1.0,
    software: bool = False,
    width: float = 0.02,
    more: tuple[Figure, ...] = (),
) -> list[Contention]:
    """A record for each number of peers. ``costs_us``: by this number, the cost of a unit of each
    peer; None: the record failed.

    ``status``, ``limit``, ``why``, ``more``: of the record with the most peers. ``uneven``: its
    dearest peer over the others. ``width``: relative half-width of the intervals.
    """
    target = Target(stack=stack, api=api, adapter="NVIDIA H100", software=software)
    unit = "node" if stack == "cuda-graph" else "launch"
    case, alone = Case(pattern="per-submit", caller=caller, unit=unit), costs_us.get(1) or 1.0
    made = []
    for k, cost in costs_us.items():
        one = Contention(way=way, peers=k, placement=placement, target=target, case=case)
        if cost is None:
            made.append(
                msgspec.structs.replace(
                    one, status="failed", reason="the process ran out of memory"
                )
            )
            continue
        values = {"cost": cost * 1e3, "slowdown": cost / alone, "work": k * alone / cost}
        figures = [
            figure(name, v, status if k == max(costs_us) else "ok", width)
            for name, v in values.items()
        ]
        each = [cost * 1e3] * (1 if way == "busy" else k)
        one = msgspec.structs.replace(one, figures=figures, costs=each)
        if k == max(costs_us):
            each[-1] *= uneven
            one = msgspec.structs.replace(one, figures=[*figures, *more], limit=limit, why=why)
        made.append(one)
    return made


def h100() -> Fingerprint:
    """A run of every way, with the throughput of processes and threads that an H100 gave."""
    slices, why = (figure("slice", 2.0e6), figure("hand_over", 1.2e5)), "others wait 2 ms at a time"
    contention = [
        *peers("torch", {1: 9.3, 2: 9.1, 4: 11.4, 8: 19.3}, limit="device"),
        *peers("torch", {1: 9.3, 2: 9.3, 4: 11.2, 8: 19.0}, placement="core", limit="device"),
        *peers("cuda-driver", {1: 5.0, 2: 5.5, 4: 9.2, 8: 18.3}, caller="native", limit="device"),
        *peers(
            "cuda-graph", {1: 1.01, 2: 2.61, 4: 5.22, 8: 10.4}, limit="slices", why=why, more=slices
        ),
        *peers(
            "dawn",
            {1: 28, 2: 42, 4: 70, 8: 634},
            status="noisy",
            limit="unknown",
            uneven=3.0,
            width=0.4,
        ),
        *peers("cuda-driver", {1: 4.2, 2: 7.8, 4: 31}, "threads", limit="lock"),
        *peers("torch", {1: 9.3, 2: 9.4, 4: 9.6, 8: 11.2}, "devices", limit="processors"),
        *peers("torch", {1: 9.5, 16: 13.7}, "busy", limit="processors"),
    ]
    return fingerprint(contention=contention, profile="contention")
