"""The profiles ``contention`` and ``node`` of a run."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from overhead.profiles import Plan, register_profile


def _measure(measuring: Any, *, node: bool) -> None:
    from overhead.contention.measuring import measure_contention
    from overhead.contention.plan import NODE, ContentionPlan

    measure_contention(
        replace(NODE, seconds=measuring.request.plan.more_s) if node else ContentionPlan(),
        measuring,
    )


register_profile(
    "node",
    Plan(
        help="a minute with one or two GPUs, for overhead fleet",
        processes=3,
        target=0.10,
        sampling_s=10.0,
        wall_s=30.0,
        case_s=0.15,
        far=False,
        all_cases=False,
        role="node",
        gpus=2,
        more=functools.partial(_measure, node=True),
        more_s=25.0,
        folder_per_node=True,
    ),
)
register_profile(
    "contention",
    Plan(
        help="many callers at once", processes=1, target=0.10, sampling_s=None, wall_s=None,
        case_s=0.0, role="contention", cases=False, more=functools.partial(_measure, node=False),
    ),
)  # fmt: skip
