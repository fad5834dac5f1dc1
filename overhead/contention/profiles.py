"""The profiles ``contention`` and ``node`` of a run."""

from __future__ import annotations

from typing import Any

from overhead.contention import NODE_STACKS, STACKS
from overhead.profiles import Plan, register_profile


def _contention(measuring: Any) -> None:
    from overhead.contention.measuring import measure_contention
    from overhead.contention.plan import ContentionPlan

    measure_contention(ContentionPlan(), measuring)


def _node(measuring: Any) -> None:
    from overhead.contention.measuring import measure_contention
    from overhead.contention.plan import NODE

    measure_contention(NODE, measuring)


_NOT_IN_TURN = Plan(
    processes=1, target=0.10, sampling_s=None, wall_s=None, case_s=0.0, stacks=STACKS, cases=False, more=_contention
)
register_profile(
    "node",
    Plan(
        processes=3, target=0.10, sampling_s=10.0, wall_s=30.0, case_s=0.15, far=False, all_cases=False,
        stacks=NODE_STACKS, more=_node, folder_per_node=True,
    ),
)  # fmt: skip
register_profile("contention", _NOT_IN_TURN)
