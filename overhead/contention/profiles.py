"""The profiles ``contention`` and ``node`` of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from overhead.profiles import Plan, Scope, register_profile


def _measure_node(measuring: Any) -> None:
    """Measure all devices of this node at once, and beside busy CPU cores, after the cases.

    Imports here, so that a list of the profiles does not load what measures.
    """
    from overhead.contention.measuring import measure_contention
    from overhead.contention.plan import NODE

    measure_contention(replace(NODE, seconds=measuring.seconds), measuring)


def _measure_all(measuring: Any) -> None:
    """Measure what ``overhead contention`` measures without options."""
    from overhead.contention.measuring import measure_contention
    from overhead.contention.plan import ContentionPlan

    measure_contention(ContentionPlan(), measuring)


register_profile(
    "node",
    Plan(
        help="a minute with one or two GPUs, for overhead fleet",
        processes=3,
        precision=0.10,
        sampling_s=10.0,
        wall_s=30.0,
        case_s=0.15,
        far=False,
    ),
    Scope(
        role="node",
        cases="early",
        after=_measure_node,
        after_s=25.0,
        gpus=2,
        folder_per_node=True,
    ),
)
register_profile(
    "contention",
    Plan(
        help="many callers at once",
        processes=1,
        precision=0.10,
        sampling_s=None,
        wall_s=None,
        case_s=0.0,
    ),
    Scope(role="contention", cases="none", after=_measure_all),
)
