"""A stack on a simulated clock. The cost of its large case differs between processes.

The environment variable ``WANDERS`` names a file with the costs of the next processes, one per
line. The reference loop of its workers is constant.
"""

from __future__ import annotations

import os
from pathlib import Path

from overhead.measure.sampling.clock import SystemClock
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space
from overhead.results import Case, Target
from tests.fakes.machine import CALM, FakeClock, FastFakeChain, Law


class _Wandering(FastFakeChain):
    clock_step_ns = 1


@register
class Wandering(Probe):
    name = "wandering"
    title = "a stack that no two processes agree on"

    def targets(self) -> list[Target]:
        return [Target(stack="wandering", api="CPU", adapter="A")]

    def space(self, target: Target) -> Space:
        return Space(
            base=Case(pattern="per-submit", params={"size": "small"}), axes={"size": ["large"]}
        )

    def open(self, target: Target, case: Case) -> Chain:
        setattr(SystemClock, "reference_loop", lambda clock: [50_000, 50_000])  # noqa: B010 - in this process alone
        cost = 1_000.0
        if case.params["size"] == "large":
            file = Path(os.environ["WANDERS"])
            cost, *later = map(float, file.read_text().split())
            file.write_text("\n".join(map(str, later)))
        return _Wandering(Law(host=cost, device=10.0), FakeClock(CALM))
