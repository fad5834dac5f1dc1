"""Steps that the host could run too, to measure the cost of alternating between host and device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from overhead.results import Scalar
from overhead.workloads import register
from overhead.workloads.base import Array, Arrays, Field, Workload


@register
class Hybrid(Workload):
    """The published function ``sin(x) + cos(x) * exp(-x)`` of each element, whose value follows a
    driving input.
    """

    name = "hybrid"
    title = "host and device in turn"
    about = "elementwise: y = x / 2 + drive, x = sin(y) + cos(y) exp(-y)"
    variants: ClassVar = ({"work": "elementwise"},)
    host_works = True
    constants: ClassVar = {"KEPT": 0.5}
    state = (Field("x"),)
    fixed = (Field("drive"),)
    steps = 100
    elements = (65_536, 4_194_304, 64, 1_048_576, 4096, 262_144, 1024, 16_384, 256)
    small = (65_536, 64, 4096, 262_144, 1024, 16_384, 256, 1_048_576, 4_194_304)
    contracts = True
    # WGSL allows an absolute error of 5e-4 for sin and for cos, and the error of cos is multiplied
    # by up to exp(1). This makes 1.9e-3 per step. The next step reduces an error to 0.7 of it.
    tolerance = 6e-3
    scale: ClassVar = {"x": 1.0}

    wgsl = """
    let y = KEPT * x + drive;
    x = sin(y) + cos(y) * exp(-y);
    """
    cuda = """
    const float y = KEPT * x + drive;
    x = sinf(y) + cosf(y) * expf(-y);
    """
    triton = """
    y = KEPT * x + drive
    x = tl.sin(y) + tl.cos(y) * tl.exp(-y)
    """

    def at(self, params: Mapping[str, Scalar]) -> Workload:
        """The workload itself; ``work`` has one value. Raises ``KeyError`` for another."""
        by_work = {"elementwise": self}
        return by_work[str(params["work"])]

    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """``x`` between 0 and 1."""
        return {"x": rng.uniform(0, 1, elements)}

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """A ``drive`` between -1 and 2.5 for each element."""
        return {"drive": rng.uniform(-1, 2.5, elements)}

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """``x`` from half of ``x`` and the drive."""
        y = self.constants["KEPT"] * state["x"] + fixed["drive"]
        x = xp.sin(y) + xp.cos(y) * xp.exp(-y)
        return {"x": x}
