"""A stack on a simulated clock, to compare two builds of a library or two environments.

Its cost is set by the installed ``steadylib`` and the variable ``STEADY_FACTOR``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable
from overhead.results import Case, Target
from tests.fakes.machine import CALM, FakeClock, FastFakeChain, Law

SIZES = {"small": 1.0, "large": 8.0}


class _Steady(FastFakeChain):
    clock_step_ns = 1


@register
class Steady(Probe):
    name = "steady"
    title = "a library of two builds"
    mend = "pip install steadylib"
    distributions = ("steadylib",)

    def targets(self) -> list[Target]:
        try:
            importlib.import_module("steadylib")
        except ImportError:
            raise Unavailable("there is no steadylib", self.mend) from None
        return [Target(stack="steady", api="CPU", adapter="A")]

    def space(self, target: Target) -> Space:
        base = Case(pattern="per-submit", params={"size": "small"})
        return Space(base=base, axes={"size": [size for size in SIZES if size != "small"]})

    def open(self, target: Target, case: Case) -> Chain:
        library = importlib.import_module("steadylib")
        if os.environ.get("STEADY_DIES") == library.__version__ and case.params["size"] == "large":
            os._exit(3)
        cost = (
            library.COST
            * float(os.environ.get("STEADY_FACTOR", "1"))
            * SIZES[str(case.params["size"])]
        )
        return _Steady(Law(host=cost, device=10.0), FakeClock(CALM))
