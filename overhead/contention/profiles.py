"""The profiles ``contention`` and ``node`` of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from overhead.contention import NODE_STACKS, STACKS
from overhead.profiles import Plan, register_profile

_GPUS = 2
"""A node with more GPUs gets more seconds."""


def _measure(measuring: Any) -> None:
    from overhead.contention.measuring import measure_contention
    from overhead.contention.plan import NODE, ContentionPlan

    plan = measuring.request.plan
    node = replace(NODE, seconds=NODE.seconds * max(1.0, plan.gpus / _GPUS))
    measure_contention(node if plan.folder_per_node else ContentionPlan(), measuring)


register_profile(
    "node",
    Plan(
        about="a minute with one or two GPUs, for overhead fleet", processes=3,
        target=0.10, sampling_s=10.0, wall_s=30.0, case_s=0.15, far=False, all_cases=False, stacks=NODE_STACKS,
        gpus=_GPUS, more=_measure, folder_per_node=True,
    ),
)  # fmt: skip
register_profile(
    "contention",
    Plan(
        about="many callers at once", processes=1, target=0.10, sampling_s=None, wall_s=None,
        case_s=0.0, stacks=STACKS, cases=False, more=_measure,
    ),
)  # fmt: skip
