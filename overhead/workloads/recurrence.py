"""Damped driven oscillators: a very small simulation step. Its rounding errors decay."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from overhead.workloads import register
from overhead.workloads.base import Array, Arrays, Field, Workload


@register
class Recurrence(Workload):
    """Damped oscillators, each driven by a constant force: a very small step, of 8 operations per
    element.
    """

    name = "recurrence"
    title = "dependent steps of independent oscillators"
    about = (
        "each element does one semi-implicit Euler step of a damped driven oscillator, 8 operations"
    )
    constants: ClassVar = {"H": 0.1, "K": 1.0, "C": 0.4}
    state = (Field("x"), Field("v"))
    fixed = (Field("force"),)
    steps = 1500
    elements = (4096, 65_536, 256, 1_000_000)
    small = (4096, 65_536, 256)
    heavy = False
    contracts = True
    lasts = 2000
    # A step reduces a difference to 0.98 of it. So rounding errors of at most 4 units in the last
    # place (6e-8) per step add up to 4 * 6e-8 / 0.02 = 1.2e-5, with or without fused multiply-adds.
    tolerance = 5e-5
    scale: ClassVar = {"x": 1.0, "v": 1.0}

    wgsl = """
    v = v + H * (force - K * x - C * v);
    x = x + H * v;
    """
    cuda = wgsl
    triton = """
    v = v + H * (force - K * x - C * v)
    x = x + H * v
    """

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """A constant force for each oscillator."""
        return {"force": rng.uniform(-1, 1, elements)}

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """One time step of all oscillators by semi-implicit Euler: first the velocity changes, then
        the new velocity moves the place.
        """
        h = self.constants["H"]
        x = state["x"]
        v = state["v"]
        # Driving force, spring and damping.
        acceleration = fixed["force"] - self.constants["K"] * x - self.constants["C"] * v
        v = v + h * acceleration
        return {"x": x + h * v, "v": v}
