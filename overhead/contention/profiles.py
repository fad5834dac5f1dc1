"""The profiles ``contention`` and ``node`` of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from overhead.contention import NODE_STACKS, STACKS
from overhead.profiles import Plan, register_profile


def _measure_all(measuring: Any) -> None:
    from overhead.contention.measuring import measure_contention
    from overhead.contention.plan import ContentionPlan

    measure_contention(ContentionPlan(), measuring)


def _measure_node(measuring: Any) -> None:
    from overhead.contention.measuring import measure_contention
    from overhead.contention.plan import NODE

    plan = measuring.request.plan
    times = plan.for_targets(measuring.targets).gpus / plan.gpus
    measure_contention(replace(NODE, seconds=NODE.seconds * times), measuring)


register_profile(
    "node",
    Plan(
        about="a minute with one or two GPUs, for overhead fleet", processes=3,
        target=0.10, sampling_s=10.0, wall_s=30.0, case_s=0.15, far=False, all_cases=False, stacks=NODE_STACKS, gpus=2,
        more=_measure_node, folder_per_node=True,
    ),
)  # fmt: skip
register_profile(
    "contention",
    Plan(
        about="many callers at once", processes=1, target=0.10, sampling_s=None, wall_s=None,
        case_s=0.0, stacks=STACKS, cases=False, more=_measure_all,
    ),
)  # fmt: skip
