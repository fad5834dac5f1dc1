"""A workload in one file: the Lorenz attractor, whose state after a few hundred steps depends on
every rounding.

    overhead run --plugin docs/examples/my_workload.py --workload lorenz

Every stack that runs one of its languages measures it, with every pattern that the stack has for
workloads.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from overhead.workloads import register
from overhead.workloads.base import Array, Arrays, Field, Workload


@register
class Lorenz(Workload):
    """Explicit Euler."""

    name = "lorenz"
    title = "Lorenz' attractor"
    about = "one explicit Euler step of Lorenz' equations an element"
    constants: ClassVar = {"H": 0.01, "SIGMA": 10.0, "RHO": 28.0, "BETA": 8.0 / 3.0}
    state = (Field("x"), Field("y"), Field("z"))
    steps = 1000
    elements = (65_536,)
    small = (4096,)
    contracts = False
    # One step rounds values of 50 by a few units in the last place: 50 * 4 * 6e-8 = 1.2e-5, on the
    # scale 20.
    tolerance = 5e-6
    scale: ClassVar = {"x": 20.0, "y": 20.0, "z": 20.0}

    wgsl = """
    let dx = SIGMA * (y - x);
    let dy = x * (RHO - z) - y;
    let dz = x * y - BETA * z;
    x = x + H * dx;
    y = y + H * dy;
    z = z + H * dz;
    """
    cuda = """
    const float dx = SIGMA * (y - x);
    const float dy = x * (RHO - z) - y;
    const float dz = x * y - BETA * z;
    x += H * dx;
    y += H * dy;
    z += H * dz;
    """
    triton = """
    dx = SIGMA * (y - x)
    dy = x * (RHO - z) - y
    dz = x * y - BETA * z
    x = x + H * dx
    y = y + H * dy
    z = z + H * dz
    """

    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        return {name: rng.uniform(1, 10, elements) for name in "xyz"}

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        c, x, y, z = self.constants, state["x"], state["y"], state["z"]
        return {
            "x": x + c["H"] * (c["SIGMA"] * (y - x)),
            "y": y + c["H"] * (x * (c["RHO"] - z) - y),
            "z": z + c["H"] * (x * y - c["BETA"] * z),
        }
