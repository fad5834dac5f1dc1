"""RMSNorm with a residual, of 896 and 1,536 columns: separate array operations against one compiled kernel."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from overhead.workloads import register
from overhead.workloads.base import Array, Arrays, Field, Workload

_WHY = "a row of its own needs a group of threads, and the bodies are for one thread an element"


class RmsNorm(Workload):
    """An element is a row; the residual keeps rows from growing apart."""

    about = "one RMSNorm of a row plus a residual, times a weight a column: 8 array operations, or one kernel"
    constants: ClassVar = {"EPS": 1e-6}
    steps = 48
    elements = (1, 512)
    small = (1, 64)
    contracts = True
    # A mean of squares of 1,536 columns rounds by 1e-6 in any order; a step shrinks a difference to 0.7 of it.
    tolerance = 2e-5
    scale: ClassVar = {"x": 1.0}
    missing: ClassVar = {"wgsl": _WHY, "cuda": _WHY, "triton": _WHY}
    columns: ClassVar[int]

    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        return {"x": rng.normal(0, 1, (elements, self.columns))}

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        return {"residual": rng.normal(0, 1, (elements, self.columns)), "weight": rng.uniform(0.9, 1.1, self.columns)}

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        y = state["x"] + fixed["residual"]
        root = xp.sqrt((y * y).mean(1) + self.constants["EPS"])
        return {"x": y / root[:, None] * fixed["weight"]}


@register
class RmsNorm896(RmsNorm):
    """Qwen2.5-0.5B's width."""

    name = "rmsnorm-896"
    title = "RMSNorm of 896 columns"
    columns = 896
    state = (Field("x", (896,)),)
    fixed = (Field("residual", (896,)), Field("weight", (896,), shared=True))


@register
class RmsNorm1536(RmsNorm):
    """Qwen2.5-1.5B's width."""

    name = "rmsnorm-1536"
    title = "RMSNorm of 1,536 columns"
    columns = 1536
    state = (Field("x", (1536,)),)
    fixed = (Field("residual", (1536,)), Field("weight", (1536,), shared=True))
