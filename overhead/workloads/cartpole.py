"""Poles on carts, balanced by small networks: 4,096 individuals, 500 steps, explicit Euler.

The sizes are the published ones: a network 4-8-2 with 58 parameters. The published step ends an
episode when the pole falls, and its force is one of two. Here no episode ends, so that every step
is computed, and the force is continuous, so that single steps can be checked.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from overhead.workloads import _network, register
from overhead.workloads._statements import statements
from overhead.workloads.base import Arrays, Field

_LAYER_WIDTHS = (4, 8, 2)
_STATE = ("x", "speed", "theta", "spin")
_STEP = f"""
sin1 = sin(theta)
cos1 = cos(theta)
{_network.network_text(("x", "speed", "sin1", "spin"), _LAYER_WIDTHS, "relu", "none")}
force = FORCE * min(max(out1 - out0, -1.0), 1.0)
push = (force + POLE * LENGTH * spin * spin * sin1) / MASS
twist = (GRAVITY * sin1 - cos1 * push) / (LENGTH * (4.0 / 3.0 - POLE * cos1 * cos1 / MASS))
pull = push - POLE * LENGTH * twist * cos1 / MASS
reached = min(max(x + DT * speed, -TRACK), TRACK)
speed = (reached - x) / DT + DT * pull
x = reached
theta = theta + DT * spin
theta = theta - TURN * floor((theta + HALF) / TURN)
spin = min(max(spin + DT * twist, -SPIN), SPIN)
"""


@register
class CartPole(_network.NetworkWorkload):
    """Poles on carts: a small network, of 4, 8 and 2 neurons, sees the state of its cart and pushes
    it. A wall at each end of the track stops it.
    """

    name = "cartpole"
    title = "4,096 poles on carts, 500 steps"
    about = (
        "one explicit Euler step (0.02 s) of a pole on a cart that a network 4-8-2 (ReLU, 58"
        " parameters) pushes continuously; no episode ends; sizes as published, arithmetic of"
        " our own"
    )
    constants: ClassVar = {
        "DT": 0.02,
        "GRAVITY": 9.8,
        "POLE": 0.1,
        "MASS": 1.1,
        "LENGTH": 0.5,
        "FORCE": 10.0,
        "TRACK": 2.4,
        "SPIN": 4 * math.pi,
        "TURN": 2 * math.pi,
        "HALF": math.pi,
    }
    state = tuple(map(Field, _STATE))
    fixed = _network.weight_fields(_LAYER_WIDTHS)
    steps = 500
    elements = (4096,)
    small = (512,)
    contracts = False
    # Where sin has 40 % of the error that WGSL allows, 8 steps are 9e-5 off, and 48 steps 6e-3.
    checked = 8
    # WGSL allows an absolute error of 5e-4 for sin and cos. In an angular acceleration, of at most
    # 40 per second squared, this makes 0.03. Multiplied by DT this is 6e-4 per second, for
    # velocities of the order of 10.
    tolerance = 1e-4
    scale: ClassVar = {"x": 2.0, "speed": 5.0, "theta": 3.0, "spin": 10.0}
    periods: ClassVar = {"theta": 2 * math.pi}

    wgsl = statements("wgsl", _STEP, _STATE)
    cuda = statements("cuda", _STEP, _STATE)
    triton = statements("triton", _STEP)

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """One time step of all carts: their networks choose the forces, and the equations of motion
        give the new places and speeds. These are the statements of ``_STEP`` on arrays.
        """
        c = self.constants
        dt, pole, length, mass = c["DT"], c["POLE"], c["LENGTH"], c["MASS"]
        x, speed, theta, spin = (state[name] for name in _STATE)
        sin1 = xp.sin(theta)
        cos1 = xp.cos(theta)
        seen = xp.stack([x, speed, sin1, spin], axis=1)
        out = _network.network_on_arrays(xp, seen, fixed, len(_LAYER_WIDTHS) - 1, "relu", "none")

        # The equations of motion of a pole on a cart, as in ``_STEP``: ``twist`` is the angular
        # acceleration of the pole, ``pull`` the acceleration of the cart. ``pole``: its mass;
        # ``mass``: of both together; ``length``: half of that of the pole.
        force = c["FORCE"] * xp.clip(out[:, 1] - out[:, 0], -1.0, 1.0)
        push = (force + pole * length * spin * spin * sin1) / mass
        leverage = length * (4.0 / 3.0 - pole * cos1 * cos1 / mass)
        twist = (c["GRAVITY"] * sin1 - cos1 * push) / leverage
        pull = push - pole * length * twist * cos1 / mass

        # A wall at each end of the track stops the cart: what it moved less is taken off its speed.
        reached = xp.clip(x + dt * speed, -c["TRACK"], c["TRACK"])
        new_speed = (reached - x) / dt + dt * pull
        theta = theta + dt * spin
        # Whole turns are taken off, so that the angle stays within half a turn of 0.
        turns = xp.floor((theta + c["HALF"]) / c["TURN"])
        new_spin = xp.clip(spin + dt * twist, -c["SPIN"], c["SPIN"])
        return {
            "x": reached,
            "speed": new_speed,
            "theta": theta - c["TURN"] * turns,
            "spin": new_spin,
        }
