"""The shape of the published financial simulation: 10,000 policies of 246 parameters trade 16 assets for 1,500 steps.

The sizes are the published ones, the arithmetic is ours: nobody is liquidated, so every arm takes every step.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from overhead.workloads import register
from overhead.workloads.base import Array, Arrays, Field, Workload

DAYS, ASSETS, SIGNALS = 1500, 16, 6


@register
class Simulation(Workload):
    """A network 8-16-6 a step; two of its outputs are inputs of the next."""

    name = "simulation"
    title = "10,000 trading policies, 1,500 steps"
    about = (
        "a network 8-16-6 (tanh) sees 6 signals and its own 2 memories, holds 4 positions in 16 assets; wealth, its "
        "peak and its largest fall are kept; the sizes are the published ones, the arithmetic is ours"
    )
    constants: ClassVar = {"SHARE": 0.25}
    state = (Field("memory", (2,)), Field("wealth"), Field("peak"), Field("fall"))
    fixed = (
        Field("w1", (8, 16)), Field("b1", (16,)), Field("w2", (16, 6)), Field("b2", (6,)),
        Field("signals", (DAYS, SIGNALS), shared=True), Field("returns", (DAYS, ASSETS), shared=True),
    )  # fmt: skip
    turns = 300
    steps = DAYS
    elements = (10_000,)
    small = (512,)
    contracts = False
    # WGSL allows tanh an absolute error of 1e-5; the second layer (16 weights of 0.5) makes 5e-5 of it at worst.
    tolerance = 1e-4
    scale: ClassVar = {"memory": 1.0, "wealth": 0.3, "peak": 0.3, "fall": 0.3}
    missing: ClassVar = {"triton": "its blocks hold one number an element, not the 16 of a hidden layer"}

    wgsl = """
    let day = t % 1500u;
    var seen: array<f32, 8>;
    for (var j = 0u; j < 6u; j = j + 1u) { seen[j] = signals(day * 6u + j); }
    seen[6] = memory[0];
    seen[7] = memory[1];
    var hidden: array<f32, 16>;
    for (var h = 0u; h < 16u; h = h + 1u) {
      var sum = b1(h);
      for (var j = 0u; j < 8u; j = j + 1u) { sum = sum + seen[j] * w1(j * 16u + h); }
      hidden[h] = tanh(sum);
    }
    var out: array<f32, 6>;
    for (var o = 0u; o < 6u; o = o + 1u) {
      var sum = b2(o);
      for (var h = 0u; h < 16u; h = h + 1u) { sum = sum + hidden[h] * w2(h * 6u + o); }
      out[o] = tanh(sum);
    }
    var gain = 0.0;
    for (var a = 0u; a < 16u; a = a + 1u) { gain = gain + returns(day * 16u + a) * out[a % 4u]; }
    wealth = wealth + SHARE * gain;
    peak = max(peak, wealth);
    fall = max(fall, peak - wealth);
    memory[0] = out[4];
    memory[1] = out[5];
    """
    cuda = """
    const unsigned int day = t % 1500u;
    float seen[8];
    for (int j = 0; j < 6; ++j) seen[j] = signals(day * 6u + j);
    seen[6] = memory[0];
    seen[7] = memory[1];
    float hidden[16];
    #pragma unroll
    for (int h = 0; h < 16; ++h) {
      float sum = b1(h);
      #pragma unroll
      for (int j = 0; j < 8; ++j) sum += seen[j] * w1(j * 16 + h);
      hidden[h] = tanhf(sum);
    }
    float out[6];
    #pragma unroll
    for (int o = 0; o < 6; ++o) {
      float sum = b2(o);
      #pragma unroll
      for (int h = 0; h < 16; ++h) sum += hidden[h] * w2(h * 6 + o);
      out[o] = tanhf(sum);
    }
    float gain = 0.0f;
    #pragma unroll
    for (int a = 0; a < 16; ++a) gain += returns(day * 16u + a) * out[a % 4];
    wealth = wealth + SHARE * gain;
    peak = fmaxf(peak, wealth);
    fall = fmaxf(fall, peak - wealth);
    memory[0] = out[4];
    memory[1] = out[5];
    """

    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        zero = np.zeros(elements)
        return {"memory": rng.uniform(-0.5, 0.5, (elements, 2)), "wealth": zero, "peak": zero, "fall": zero}

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        genes = {f.name: rng.normal(0, 0.5, (elements, *f.shape)) for f in self.fixed if not f.shared}
        market = {"signals": rng.uniform(-1, 1, (DAYS, SIGNALS)), "returns": rng.normal(0, 0.01, (DAYS, ASSETS))}
        return {**genes, **market}

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        day, memory = t % DAYS, state["memory"]
        seen = xp.broadcast_to(fixed["signals"][day], (memory.shape[0], SIGNALS))
        hidden = layer(xp, xp.concatenate([seen, memory], axis=1), fixed["w1"], fixed["b1"])
        out = layer(xp, hidden, fixed["w2"], fixed["b2"])
        held = xp.concatenate([out[:, :4]] * 4, axis=1)
        wealth = state["wealth"] + self.constants["SHARE"] * (fixed["returns"][day] * held).sum(1)
        peak = xp.maximum(state["peak"], wealth)
        return {
            "memory": out[:, 4:],
            "wealth": wealth,
            "peak": peak,
            "fall": xp.maximum(state["fall"], peak - wealth),
        }


def layer(xp: Any, x: Any, weights: Any, bias: Any) -> Any:
    """tanh of a dense layer, each element with weights of its own."""
    return xp.tanh((x[:, None, :] @ weights)[:, 0, :] + bias)
