"""Rastrigin's function with 4,096 individuals in 2,000 dimensions: a parallel control case with
little to fuse.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from overhead.results import because
from overhead.workloads import register
from overhead.workloads._statements import DECLARE, Language
from overhead.workloads.base import Array, Arrays, Field, Workload

DIMENSIONS = 2000
AT_ONCE = 20
"""Genes per iteration of the loop. The compilers behind Vulkan do not unroll a loop with bounds
checks.
"""


def _terms(language: Language, cos: str, rounded: str) -> str:
    """Statements that add the terms of 20 genes to ``sum``, for one iteration of the loop over all
    genes, in WGSL or CUDA C. ``cos``, ``rounded``: the names of these functions in the language.

    All genes are loaded before the first is used, so that the loads do not wait for each other.
    """
    declare = DECLARE[language]  # the word before a new name
    ten = "10.0f" if language == "cuda" else "10.0"
    loads = [f"{declare} y{k} = genes(d + {k}u) + shift;" for k in range(AT_ONCE)]
    sums = []
    for k in range(AT_ONCE):
        # Whole turns do not change a cosine, so only what is left of y after rounding is taken. The
        # argument is then within -pi and pi, where the fast cosines are exact.
        cosine = f"{cos}(TURN * (y{k} - {rounded}(y{k})))"
        sums.append(f"sum = sum + y{k} * y{k} - {ten} * {cosine} + {ten};")
    return "\n    ".join(loads + sums)


@register
class Rastrigin(Workload):
    """An optimisation of Rastrigin's function, a usual test function, by individuals with 2,000
    genes. A step is one generation: evaluate each individual, keep its best value, and shift all of
    its genes by its result.
    """

    name = "rastrigin"
    title = "Rastrigin's function, 4,096 individuals in 2,000 dimensions"
    about = (
        "one generation: the mean of y*y - 10 cos(2 pi y) + 10 over 2,000 genes shifted by one"
        " number per individual; the best individual is kept and moves the shift; sizes as"
        " published, arithmetic of our own"
    )
    constants: ClassVar = {"TURN": 2 * math.pi, "KEPT": 0.5, "RATE": 0.01}
    state = (Field("shift"), Field("best"))
    fixed = (Field("genes", (DIMENSIONS,)),)
    turns = DIMENSIONS // AT_ONCE + 1
    steps = 100
    elements = (4096,)
    usual = True
    small = (128,)
    contracts = True
    # The rounding error of a sequential sum of 2,000 terms is at most 2000 * 6e-8 / 2 = 6e-5. In
    # WGSL the error of cos may be 5e-4 (times 10) in each term. It is random, so 1e-4 in the mean.
    # A generation halves a difference in the shift.
    tolerance = 5e-4
    scale: ClassVar = {"shift": 0.4, "best": 20.0}
    missing: ClassVar = {"triton": because("body-is-for-one-number", numbers=2_000)}

    wgsl = f"""
    var sum = 0.0;
    for (var d = 0u; d < {DIMENSIONS}u; d = d + {AT_ONCE}u) {{
    {_terms("wgsl", "cos", "round")}
    }}
    let value = sum / {DIMENSIONS}.0;
    best = min(best, value);
    shift = KEPT * shift + RATE * value;
    """
    # For arguments up to pi, the error of __cosf is 5e-7. cosf has a branch, which would delay the
    # loads after it.
    cuda = f"""
    float sum = 0.0f;
    for (unsigned int d = 0u; d < {DIMENSIONS}u; d += {AT_ONCE}u) {{
    {_terms("cuda", "__cosf", "rintf")}
    }}
    const float value = sum / {DIMENSIONS}.0f;
    best = fminf(best, value);
    shift = KEPT * shift + RATE * value;
    """

    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Shifts between -0.5 and 0.5; no best value yet."""
        return {"shift": rng.uniform(-0.5, 0.5, elements), "best": np.full(elements, 1000.0)}

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Random genes of every individual."""
        return {"genes": rng.uniform(-5.12, 5.12, (elements, DIMENSIONS))}

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """One generation of all individuals: Rastrigin's function of the shifted genes gives their
        values, the best value so far is kept, and the value changes the shift.
        """
        c = self.constants
        # A row for each individual, a column for each gene.
        y = fixed["genes"] + state["shift"][:, None]
        # As in the kernels: whole turns do not change a cosine.
        cosine = xp.cos(c["TURN"] * (y - xp.round(y)))
        value = (y * y - 10.0 * cosine + 10.0).mean(1)
        # ``KEPT``: how much of the old shift is kept. ``RATE``: how much of the value is added.
        shift = c["KEPT"] * state["shift"] + c["RATE"] * value
        return {
            "shift": shift,
            "best": xp.minimum(state["best"], value),
        }
