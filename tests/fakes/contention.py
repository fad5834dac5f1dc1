"""Records of contention made up for tests, of the size that an H100 gave."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from overhead.results import Caller, Case, Contention, Figure, Fingerprint, Limit, Placement, Status, Target, Way
from tests.fakes.report import figure, fingerprint


def ratio(name: str, value: float, status: Status = "ok", width: float = 0.02) -> Figure:
    """A ratio with an interval of ``width`` (relative) on both sides."""
    return msgspec.structs.replace(figure(name, value, status, width), unit="ratio")


def peers(
    stack: str, costs: Mapping[int, float | None], way: Way = "processes", *,
    caller: Caller = "binding", placement: Placement = "free", api: str = "CUDA", limit: Limit = "", why: str = "",
    status: Status = "ok", uneven: float = 1.0, software: bool = False, width: float = 0.02,
    more: tuple[Figure, ...] = (),
) -> list[Contention]:  # fmt: skip
    """A record for each number of peers. ``costs``: us a unit and peer; None: the record failed.

    ``status``, ``limit``, ``why``, ``more``: of the record with the most peers. ``uneven``: its dearest peer over the
    others.
    """
    target = Target(stack=stack, api=api, adapter="NVIDIA H100", software=software)
    alone = costs.get(1) or 1.0
    made = []
    for k, cost in costs.items():
        last, own = k == max(costs), status if k == max(costs) else "ok"
        one = Contention(
            way=way, peers=k, placement=placement, target=target,
            case=Case(pattern="per-submit", caller=caller, unit="launch"),
            status="failed" if cost is None else "ok", reason="the process ran out of memory" if cost is None else "",
        )  # fmt: skip
        if cost is not None:
            figures = [figure("cost", cost * 1e3, own, width), ratio("slowdown", cost / alone, own, width),
                       ratio("work", k * alone / cost, own, width)]  # fmt: skip
            one = msgspec.structs.replace(
                one, figures=[*figures, *more] if last else figures, limit=limit if last else "",
                why=why if last else "", costs=[cost * 1e3] * (1 if way == "busy" else k),
            )  # fmt: skip
            one.costs[-1] *= uneven if last else 1.0
        made.append(one)
    return made


def h100() -> Fingerprint:
    """A run of every way with the throughputs that an H100 gave, and figures made up where it gave none."""
    slices = (figure("slice", 2.0e6), figure("hand_over", 1.2e5))
    others = "while one process runs its chains, the others get nothing for 2 ms at a time"
    one_lock = "CPU time a unit grows with the threads, and no processor is short"
    contention = [
        *peers("torch", {1: 9.3, 2: 9.1, 4: 11.4, 8: 19.3}, limit="device"),
        *peers("torch", {1: 9.3, 2: 9.3, 4: 11.2, 8: 19.0}, placement="core", limit="device"),
        *peers("cuda-driver", {1: 5.0, 2: 5.5, 4: 9.2, 8: 18.3}, limit="device"),
        *peers("cuda-driver", {1: 3.1, 2: 4.0, 4: 8.6, 8: 17.9}, caller="native", limit="device"),
        *peers("cuda-graph", {1: 1.01, 2: 2.61, 4: 5.22, 8: 10.4}, limit="slices", why=others, more=slices),
        *peers("vulkan", {1: 14.6, 2: 33, 4: 67, 8: 134}, caller="native", api="Vulkan", limit="slices", why=others,
               more=slices),
        *peers("dawn", {1: 28, 2: 42, 4: 70, 8: 634}, api="Vulkan", limit="unknown", status="noisy", uneven=3.0,
               width=0.4),
        *peers("triton", {1: 12.0, 2: 12.5, 4: None, 8: None}, limit="device"),
        *peers("jax", {1: None}),
        *peers("cuda-driver", {1: 4.2, 2: 7.8, 4: 31}, "threads", limit="lock", why=one_lock),
        *peers("cuda-driver", {1: 3.1, 2: 5.1, 4: 11.0}, "threads", caller="native", limit="lock", why=one_lock),
        *peers("torch", {1: 9.3, 2: 19.0, 4: 41.0}, "threads", limit="interpreter", uneven=1.2),
        *peers("cuda-graph", {1: 1.0, 2: 1.1, 4: 2.3}, "threads", limit="device"),
        *peers("torch", {1: 9.3, 2: 9.4, 4: 9.6, 8: 11.2}, "devices", limit="processors"),
        *peers("torch", {1: 9.5, 16: 13.7}, "busy", limit="processors"),
        *peers("cuda-driver", {1: 5.0, 16: 5.6}, "busy"),
    ]  # fmt: skip
    return fingerprint(contention=contention, profile="contention")
