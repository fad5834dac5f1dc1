"""RMSNorm with a residual, with 896 and 1,536 columns: as separate operations and as one kernel, in
two precisions.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from overhead.results import Scalar
from overhead.workloads import register
from overhead.workloads._rmsnorm_kernels import rmsnorm_kernels
from overhead.workloads.base import Array, Arrays, Field, Kernels, Workload

_COLUMNS = (896, 1536)
"""The widths of Qwen2.5-0.5B and Qwen2.5-1.5B."""
EPS = 1e-6


@register
class RmsNorm(Workload):
    """RMSNorm of rows of numbers, one of the operations of a transformer; a row is an element. A
    residual is added first, as in a transformer: without it, repeated norms change nothing.
    """

    name = "rmsnorm"
    title = "RMSNorm of 896 and 1,536 columns"
    about = (
        "a residual is added, then RMSNorm with a weight per column: 7 array operations or 6"
        " kernels one after another, the library's own call, or one kernel; sums are float32 in"
        " either precision"
    )
    variants: ClassVar = tuple(
        {"columns": columns, "precision": precision}
        for precision, columns in itertools.product(("float32", "float16"), _COLUMNS)
    )
    bodies: ClassVar = ("separate", "one", "library")
    turns = 64
    steps = 48
    elements = (1, 512)
    small = (1, 64)
    contracts = True
    by_element = True
    scale: ClassVar = {"x": 1.0}

    def __init__(self, columns: int = _COLUMNS[0], precision: str = "float32") -> None:
        """Set the fields that depend on the length of a row and on the precision."""
        self.columns = columns
        self.precision = "float16" if precision == "float16" else "float32"
        self.constants = {"EPS": EPS, "COLUMNS": float(columns)}  # type: ignore[misc]
        self.state = (Field("x", (columns,)),)
        self.fixed = (Field("residual", (columns,)), Field("weight", (columns,), shared=True))
        # Where the separate kernels keep what they compute in between: for each number of a row the
        # sum with the residual and its square, and for each row the mean and the root.
        self.scratch = 2 * columns + 2
        # A step reduces a difference to 0.78 of it (weights up to 1.1, divided by a root of 1.41).
        # So an error of 1 per step adds up to 1 / (1 - 0.78) = 4.5. In float32 the rounding error
        # of a mean of 1,536 squares is 1e-6 in any order. In float16 there are 6 roundings of
        # 4.9e-4, of values up to 5. The root halves half of them: at most 1e-2 per step.
        self.tolerance = 2e-5 if self.precision == "float32" else 4.5e-2

    def at(self, params: Mapping[str, Scalar]) -> RmsNorm:
        """The workload with this number of ``columns`` and this ``precision``."""
        return RmsNorm(int(params["columns"]), str(params["precision"]))

    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Normal numbers."""
        return {"x": rng.normal(0, 1, (elements, self.columns))}

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Normal residuals, and weights between 0.9 and 1.1."""
        return {
            "residual": rng.normal(0, 1, (elements, self.columns)),
            "weight": rng.uniform(0.9, 1.1, self.columns),
        }

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """A residual added, then the norm, by separate array operations."""
        y = state["x"] + fixed["residual"]
        mean_square = (y * y).mean(1)
        root = xp.sqrt(mean_square + EPS)
        return {"x": y / root[:, None] * fixed["weight"]}

    def library(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """A residual added, then the norm by one call of PyTorch."""
        y = state["x"] + fixed["residual"]
        x = xp.nn.functional.rms_norm(y, (self.columns,), fixed["weight"], EPS)
        return {"x": x}

    def kernels(self, language: str, elements: int) -> Kernels | None:
        """Kernels with a group of threads for each row."""
        return rmsnorm_kernels(language, elements, self.columns, self.precision, self.constants)
