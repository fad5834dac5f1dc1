"""Bodies in a frozen field: 512 bodies, 200 steps, each attracted by 512 masses that do not move.

The sizes and constants are the published ones. The published field is the start of the bodies
themselves, and each leaves out its own place. Here the places of the masses are drawn apart, and
all of them attract every body. Bodies that attract each other need all positions after every step,
which one fused kernel without a barrier cannot have.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any, ClassVar

import numpy as np

from overhead.workloads import register
from overhead.workloads._statements import Language, statements
from overhead.workloads.base import Array, Arrays, Field, Workload

_MASSES = 512
_AT_ONCE = 8
"""Masses per iteration of the loop, as in ``rastrigin``."""
_STATE = ("x", "y", "vx", "vy")
_SUMS = ("pull_x", "pull_y")
_LOOPS: dict[Language, tuple[str, str]] = {
    "wgsl": (
        (
            f"var pull_x = 0.0;\nvar pull_y = 0.0;\nfor (var j = 0u; j < {2 * _MASSES}u; j = j +"
            f" {2 * _AT_ONCE}u) {{"
        ),
        "}",
    ),
    "cuda": (
        (
            f"float pull_x = 0.0f, pull_y = 0.0f;\nfor (unsigned int j = 0u; j < {2 * _MASSES}u; j"
            f" += {2 * _AT_ONCE}u) {{"
        ),
        "}",
    ),
    "triton": (
        f"pull_x = 0.0 * x\npull_y = 0.0 * x\nfor j in range(0, {2 * _MASSES}, {2 * _AT_ONCE}):",
        "",
    ),
}
"""By language the start of the loop over the masses, and its end."""


def _body(language: Language) -> str:
    """The statements of one step in a language: a loop that adds up the pull of all masses on the
    body, 8 masses in each iteration, and then the move of the body.

    All positions of an iteration are loaded before the first is used, so that the loads do not wait
    for each other.
    """
    loads = []
    pulls = []
    for k in range(_AT_ONCE):
        # A mass has two numbers: its x and its y.
        loads.append(f"dx{k} = masses(j + {2 * k}u) - x")
        loads.append(f"dy{k} = masses(j + {2 * k + 1}u) - y")
        pulls.append(f"""\
near{k} = rsqrt(dx{k} * dx{k} + dy{k} * dy{k} + SOFT)
weight{k} = near{k} * near{k} * near{k}
pull_x = pull_x + dx{k} * weight{k}
pull_y = pull_y + dy{k} * weight{k}""")
    begin, end = _LOOPS[language]
    move = """\
vx = vx + DT * G * pull_x
vy = vy + DT * G * pull_y
x = x + DT * vx
y = y + DT * vy"""
    # ``_SUMS`` and ``_STATE``: the variables that are there before, and get new values.
    inner = statements(language, "\n".join(loads + pulls), _SUMS)
    return f"{begin}\n{indent(inner, '    ')}\n{end}\n{statements(language, move, _STATE)}"


@register
class NBody(Workload):
    """Bodies in two dimensions, each attracted by the same 512 masses, which do not move, but not
    by each other.
    """

    name = "nbody"
    title = "512 bodies in a frozen field, 200 steps"
    about = (
        "one semi-implicit Euler step (0.01 s) of a body that 512 resting masses attract, in two"
        " dimensions; the sizes are the published ones"
    )
    constants: ClassVar = {"DT": 0.01, "G": 6.674e-3, "SOFT": 0.01}
    state = tuple(map(Field, _STATE))
    fixed = (Field("masses", (_MASSES, 2), shared=True),)
    turns = _MASSES // _AT_ONCE + 1
    steps = 200
    elements = (512,)
    small = (512,)
    contracts = False
    # The terms of a pull are at most 38, and their absolute values add up to about 2,000. So a sum
    # of 512 terms is off by at most 512 * 6e-8 * 2000 / 2 = 0.03, and a velocity by DT * G times
    # that: 2e-6.
    tolerance = 1e-5
    scale: ClassVar = {"x": 1.0, "y": 1.0, "vx": 1.0, "vy": 1.0}

    wgsl = _body("wgsl")
    cuda = _body("cuda")
    triton = _body("triton")

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Random positions of the masses."""
        return {"masses": rng.uniform(-1, 1, (_MASSES, 2))}

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """One time step of all bodies: the pull of all masses on each of them changes its velocity,
        which then moves it (semi-implicit Euler).
        """
        c = self.constants
        dt = c["DT"]
        x, y, vx, vy = (state[name] for name in _STATE)
        masses = fixed["masses"]
        # From each body (rows) to each mass (columns).
        dx = masses[:, 0] - x[:, None]
        dy = masses[:, 1] - y[:, None]
        # Gravity: distance / |distance|^3. ``SOFT`` keeps it finite where both are at one place.
        near = 1.0 / xp.sqrt(dx * dx + dy * dy + c["SOFT"])
        weight = near * near * near
        pull_x = (dx * weight).sum(1)
        pull_y = (dy * weight).sum(1)
        vx = vx + dt * c["G"] * pull_x
        vy = vy + dt * c["G"] * pull_y
        return {"x": x + dt * vx, "y": y + dt * vy, "vx": vx, "vy": vy}
