"""A financial simulation: 10,000 policies with 246 parameters each trade 16 assets for 1,500 steps.

Only the sizes are published ones. The arithmetic is our own. No policy is liquidated, so every step
is computed.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from overhead.results import because
from overhead.workloads import _network, register
from overhead.workloads._statements import DECLARE, Language, statements
from overhead.workloads.base import Array, Arrays, Field

DAYS, ASSETS, SIGNALS, HELD = 1500, 16, 6, 4
_LAYER_WIDTHS = (8, 16, 6)


def _body(language: Language, larger: str) -> str:
    """The statements of one step (one day of trading) in a language: a network sees the signals of
    the day and its own two memories, and chooses four positions in the assets.

    ``larger``: the name of the language's function for the maximum of two numbers.
    """
    signals = [f"signals(day * {SIGNALS}u + {j}u)" for j in range(SIGNALS)]
    seen = [*signals, "memory[0]", "memory[1]"]
    returns = [f"returns(day * {ASSETS}u + {asset}u)" for asset in range(ASSETS)]
    # Each of the four positions holds for every fourth asset.
    positions = [f"out{asset % HELD}" for asset in range(ASSETS)]
    gain = _network.dot_text(returns, positions)
    day = {"wgsl": "let", "cuda": "const unsigned int"}[language]  # declares a whole number
    return f"""
{day} day = t % {DAYS}u;
{statements(language, _network.network_text(seen, _LAYER_WIDTHS))}
{DECLARE[language]} gain = {gain};
wealth = wealth + SHARE * gain;
peak = {larger}(peak, wealth);
fall = {larger}(fall, peak - wealth);
memory[0] = out{HELD};
memory[1] = out{HELD + 1};
"""


@register
class Simulation(_network.NetworkWorkload):
    """Trading policies, each a small network of 8, 16 and 6 neurons: on each day it sees signals of
    the market and chooses positions. Two of its outputs, its memories, are inputs of the next day.
    """

    name = "simulation"
    title = "10,000 trading policies, 1,500 steps"
    about = (
        "a network 8-16-6 (tanh) sees 6 signals and its own 2 memories, holds 4 positions in 16"
        " assets; wealth, its peak and its largest fall are kept; sizes as published, arithmetic of"
        " our own"
    )
    constants: ClassVar = {"SHARE": 0.25}
    state = (Field("memory", (2,)), Field("wealth"), Field("peak"), Field("fall"))
    fixed = (
        *_network.weight_fields(_LAYER_WIDTHS),
        Field("signals", (DAYS, SIGNALS), shared=True),
        Field("returns", (DAYS, ASSETS), shared=True),
    )
    steps = DAYS
    elements = (10_000,)
    usual = True
    small = (512,)
    contracts = False
    # WGSL allows an absolute error of 1e-5 for tanh. After the second layer (16 weights of 0.5) it
    # is at most 5e-5.
    tolerance = 1e-4
    scale: ClassVar = {"memory": 1.0, "wealth": 0.3, "peak": 0.3, "fall": 0.3}
    missing: ClassVar = {"triton": because("language-has-no-tanh")}

    wgsl = _body("wgsl", "max")
    cuda = _body("cuda", "fmaxf")

    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Random memories; no wealth yet."""
        zero = np.zeros(elements)
        return {
            "memory": rng.uniform(-0.5, 0.5, (elements, 2)),
            "wealth": zero,
            "peak": zero,
            "fall": zero,
        }

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """The read-only arrays: random weights of each policy's network (its ``genes``), and the
        signals and returns of the market for each day, which all policies share.
        """
        genes = super().inputs(elements, rng)
        market = {
            "signals": rng.uniform(-1, 1, (DAYS, SIGNALS)),
            "returns": rng.normal(0, 0.01, (DAYS, ASSETS)),
        }
        return {**genes, **market}

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """One day of all policies: from the signals and its memories each network chooses its
        positions and new memories, and the day's returns change its wealth.

        ``peak`` is the highest wealth so far, and ``fall`` the largest fall from a peak.
        """
        day = t % DAYS  # after the last day the first one comes again
        memory = state["memory"]
        # ``t`` has one number, so the signals of the day have the shape (1, 6): each policy sees
        # the same.
        signals = xp.broadcast_to(fixed["signals"][day], (memory.shape[0], SIGNALS))
        seen = xp.concatenate([signals, memory], axis=1)
        out = _network.network_on_arrays(xp, seen, fixed, len(_LAYER_WIDTHS) - 1)

        # The first ``HELD`` outputs are the positions, each of which holds for every fourth asset;
        # the others are the new memories.
        positions = xp.concatenate([out[:, :HELD]] * (ASSETS // HELD), axis=1)
        gain = (fixed["returns"][day] * positions).sum(1)
        wealth = state["wealth"] + self.constants["SHARE"] * gain
        peak = xp.maximum(state["peak"], wealth)
        fall = xp.maximum(state["fall"], peak - wealth)
        return {"memory": out[:, HELD:], "wealth": wealth, "peak": peak, "fall": fall}
