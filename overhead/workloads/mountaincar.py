"""Cars in a valley, driven by linear policies: 4,096 individuals, 200 steps.

The sizes are those of the published shader: 9 parameters. (The published table says 51, but the
shader reads 9.) The published step ends an episode at the goal, and its force is one of three. Here
no episode ends, so that every step is computed, and the force is continuous, so that single steps
can be checked.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from overhead.workloads import _network, register
from overhead.workloads._statements import statements
from overhead.workloads.base import Array, Arrays, Field

_LAYER_WIDTHS = (2, 3)
_STATE = ("position", "speed")
_STEP = f"""
{_network.network_text(_STATE, _LAYER_WIDTHS, last="none")}
push = min(max(out2 - out1, 0.0), 1.0) - min(max(out0 - out1, 0.0), 1.0)
fast = min(max(speed + FORCE * push - GRAVITY * cos(3.0 * position), -SPEED), SPEED)
reached = min(max(position + fast, LEFT), RIGHT)
speed = reached - position
position = reached
"""


@register
class MountainCar(_network.NetworkWorkload):
    """Cars in a valley: the policy of each, a network of one layer, sees its position and speed and
    adds force to the right or to the left. A wall at each end stops it.
    """

    name = "mountaincar"
    title = "4,096 cars in a valley, 200 steps"
    about = (
        "one step of a car in a valley that a linear policy (9 parameters) drives continuously; no"
        " episode ends; sizes as published, arithmetic of our own"
    )
    constants: ClassVar = {
        "FORCE": 0.001,
        "GRAVITY": 0.0025,
        "SPEED": 0.07,
        "LEFT": -1.2,
        "RIGHT": 0.6,
    }
    state = tuple(map(Field, _STATE))
    fixed = _network.weight_fields(_LAYER_WIDTHS)
    steps = 200
    elements = (4096,)
    small = (512,)
    contracts = False
    # Where cos has 40 % of the error that WGSL allows, 8 steps are 1.5e-4 off, and 48 steps 8e-3.
    checked = 8
    # WGSL allows an absolute error of 5e-4 for cos, which GRAVITY reduces to 1.3e-6. The speed is a
    # difference of two positions near 1, which adds up to 1.2e-7.
    tolerance = 5e-5
    scale: ClassVar = {"position": 1.0, "speed": 0.07}

    wgsl = statements("wgsl", _STEP, _STATE)
    cuda = statements("cuda", _STEP, _STATE)
    triton = statements("triton", _STEP)

    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Any position in the valley, at any speed."""
        c = self.constants
        return {
            "position": rng.uniform(c["LEFT"], c["RIGHT"], elements),
            "speed": rng.uniform(-c["SPEED"], c["SPEED"], elements),
        }

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """One step of all cars: their policies choose the forces, and these and the slope change
        speed and position. These are the statements of ``_STEP`` on arrays.
        """
        c = self.constants
        position = state["position"]
        speed = state["speed"]
        seen = xp.stack([position, speed], axis=1)
        out = _network.network_on_arrays(xp, seen, fixed, 1, last="none")

        # The policy rates three actions: left, no push, right. How much higher than no push it
        # rates one to the right, and one to the left, is the size of the push, at most 1.
        right = xp.clip(out[:, 2] - out[:, 1], 0.0, 1.0)
        left = xp.clip(out[:, 0] - out[:, 1], 0.0, 1.0)
        push = right - left
        slope = xp.cos(3.0 * position)
        fast = speed + c["FORCE"] * push - c["GRAVITY"] * slope
        fast = xp.clip(fast, -c["SPEED"], c["SPEED"])
        # At a wall the car has moved less than its speed, so it has become slower.
        reached = xp.clip(position + fast, c["LEFT"], c["RIGHT"])
        return {"position": reached, "speed": reached - position}
