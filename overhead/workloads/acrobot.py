"""Acrobots (double pendulums) controlled by small networks: 4,096 individuals, 500 steps, explicit
Euler.

The arithmetic is our own.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from overhead.results import because
from overhead.workloads import _network, register
from overhead.workloads._statements import statements
from overhead.workloads.base import Arrays, Field

_LAYER_WIDTHS = (6, 16, 3)
_SEEN = ("cos1", "sin1", "cos2", "sin2", "omega1 / SPIN1", "omega2 / SPIN2")
_STATE = ("theta1", "theta2", "omega1", "omega2")
_STEP = f"""
sin1 = sin(theta1)
cos1 = cos(theta1)
sin2 = sin(theta2)
cos2 = cos(theta2)
{_network.network_text(_SEEN, _LAYER_WIDTHS)}
torque = 0.5 * (out2 - out0) * (1.0 + out1)
d1 = 3.5 + cos2
d2 = 1.25 + 0.5 * cos2
phi2 = 0.5 * GRAVITY * (sin1 * cos2 + cos1 * sin2)
phi1 = 1.5 * GRAVITY * sin1 + phi2 - sin2 * omega2 * (0.5 * omega2 + omega1)
push2 = (torque + d2 / d1 * phi1 - 0.5 * omega1 * omega1 * sin2 - phi2) / (1.25 - d2 * d2 / d1)
push1 = -(d2 * push2 + phi1) / d1
theta1 = theta1 + DT * omega1
theta2 = theta2 + DT * omega2
theta1 = theta1 - TURN * floor((theta1 + HALF) / TURN)
theta2 = theta2 - TURN * floor((theta2 + HALF) / TURN)
omega1 = min(max(omega1 + DT * push1, -SPIN1), SPIN1)
omega2 = min(max(omega2 + DT * push2, -SPIN2), SPIN2)
"""


@register
class Acrobot(_network.NetworkWorkload):
    """Acrobots, pendulums of two links: a small network, of 6, 16 and 3 neurons, sees the state of
    its acrobot and controls the torque on the second joint.

    The torque is a smooth function, so that single steps can be checked.
    """

    name = "acrobot"
    title = "4,096 acrobots, 500 steps"
    about = (
        "each element does one explicit Euler step (0.05 s) of a two-link pendulum whose torque a"
        " network 6-16-3 (tanh, 163 parameters) chooses continuously; sizes as published,"
        " arithmetic of our own"
    )
    constants: ClassVar = {
        "DT": 0.05,
        "GRAVITY": 9.8,
        "SPIN1": 4 * math.pi,
        "SPIN2": 9 * math.pi,
        "TURN": 2 * math.pi,
        "HALF": math.pi,
    }
    state = tuple(map(Field, _STATE))
    fixed = _network.weight_fields(_LAYER_WIDTHS)
    steps = 500
    elements = (4096,)
    usual = True
    small = (512,)
    contracts = False
    # Angular accelerations reach 1e3 per second squared. Their relative rounding error is 1e-6
    # (1e-5 with sin and tanh of WGSL). Multiplied by DT this is 5e-4 per second, for velocities of
    # the order of 10.
    tolerance = 1e-4
    scale: ClassVar = {"theta1": 3.0, "theta2": 3.0, "omega1": 10.0, "omega2": 10.0}
    periods: ClassVar = {"theta1": 2 * math.pi, "theta2": 2 * math.pi}
    missing: ClassVar = {"triton": because("language-has-no-tanh")}

    wgsl = statements("wgsl", _STEP, _STATE)
    cuda = statements("cuda", _STEP, _STATE)

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """One time step of all acrobots: their networks choose the torques, and the equations of
        motion give the new angles and speeds. These are the statements of ``_STEP`` on arrays.
        """
        c = self.constants
        dt, gravity = c["DT"], c["GRAVITY"]
        theta1, theta2, omega1, omega2 = (state[name] for name in _STATE)
        sin1 = xp.sin(theta1)
        cos1 = xp.cos(theta1)
        sin2 = xp.sin(theta2)
        cos2 = xp.cos(theta2)
        seen = xp.stack([cos1, sin1, cos2, sin2, omega1 / c["SPIN1"], omega2 / c["SPIN2"]], axis=1)
        out = _network.network_on_arrays(xp, seen, fixed, len(_LAYER_WIDTHS) - 1)
        # The difference of the outer outputs, scaled by the middle one. All are within -1 and 1.
        torque = 0.5 * (out[:, 2] - out[:, 0]) * (1.0 + out[:, 1])

        # The equations of motion of two links, as in ``_STEP``: ``d`` are moments of inertia,
        # ``phi`` moments of gravity and rotation, ``push`` angular accelerations.
        d1 = 3.5 + cos2
        d2 = 1.25 + 0.5 * cos2
        phi2 = 0.5 * gravity * (sin1 * cos2 + cos1 * sin2)
        coupling = sin2 * omega2 * (0.5 * omega2 + omega1)
        phi1 = 1.5 * gravity * sin1 + phi2 - coupling
        moment = torque + d2 / d1 * phi1 - 0.5 * omega1 * omega1 * sin2 - phi2
        push2 = moment / (1.25 - d2 * d2 / d1)
        push1 = -(d2 * push2 + phi1) / d1

        # Explicit Euler: the angles move by the old speeds. Speeds are limited.
        theta1 = self._within_a_turn(xp, theta1 + dt * omega1)
        theta2 = self._within_a_turn(xp, theta2 + dt * omega2)
        omega1 = xp.clip(omega1 + dt * push1, -c["SPIN1"], c["SPIN1"])
        omega2 = xp.clip(omega2 + dt * push2, -c["SPIN2"], c["SPIN2"])
        return {"theta1": theta1, "theta2": theta2, "omega1": omega1, "omega2": omega2}

    def _within_a_turn(self, xp: Any, angle: Any) -> Any:
        """The angle within half a turn of 0."""
        turn = self.constants["TURN"]
        return angle - turn * xp.floor((angle + self.constants["HALF"]) / turn)
