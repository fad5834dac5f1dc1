"""Steps that the host could run too, to measure the cost of alternating between host and device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from overhead.results import Scalar
from overhead.workloads import register
from overhead.workloads.base import Array, Arrays, Field, Workload


@register
class Hybrid(Workload):
    """The published function ``sin(x) + cos(x) * exp(-x)`` of each element, whose value follows a driving input.

    With ``work=product`` a step is a product of square matrices instead. Their side is the number of elements.
    """

    name = "hybrid"
    title = "host and device in turn"
    about = (
        "elementwise: y = x / 2 + drive, x = sin(y) + cos(y) exp(-y); product: x = relu(x M + 1) with a fixed square "
        "matrix M, whose side is the number of elements"
    )
    variants: ClassVar = ({"work": "elementwise"}, {"work": "product"})
    host_works = True
    constants: ClassVar = {"KEPT": 0.5}
    state = (Field("x"),)
    fixed = (Field("drive"),)
    steps = 100
    elements = (65_536, 4_194_304, 64, 1_048_576, 4096, 262_144, 1024, 16_384, 256)
    small = (65_536, 64, 4096, 262_144, 1024, 16_384, 256, 1_048_576, 4_194_304)
    contracts = True
    # WGSL allows an absolute error of 5e-4 for sin and for cos, and the error of cos is multiplied by up to exp(1).
    # This makes 1.9e-3 per step. The next step reduces an error to 0.7 of it.
    tolerance = 6e-3
    scale: ClassVar = {"x": 1.0}

    wgsl = """
    let y = KEPT * x + drive;
    x = sin(y) + cos(y) * exp(-y);
    """
    cuda = """
    const float y = KEPT * x + drive;
    x = sinf(y) + cosf(y) * expf(-y);
    """
    triton = """
    y = KEPT * x + drive
    x = tl.sin(y) + tl.cos(y) * tl.exp(-y)
    """

    def at(self, params: Mapping[str, Scalar]) -> Workload:
        known: dict[Scalar, Callable[[], Workload]] = {
            "elementwise": Hybrid,
            "product": lambda: Product(int(params.get("elements", 1))),
        }
        return known[params["work"]]()

    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        return {"x": rng.uniform(0, 1, elements)}

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        return {"drive": rng.uniform(-1, 2.5, elements)}

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        y = self.constants["KEPT"] * state["x"] + fixed["drive"]
        return {"x": xp.sin(y) + xp.cos(y) * xp.exp(-y)}


_WHY = "matrix products depend on the library's kernel (cuBLAS), not on dispatch"


class Product(Workload):
    """``relu(x M + 1)``. An element is a row of the square matrix x."""

    name, title, about = Hybrid.name, Hybrid.title, Hybrid.about
    host_works = True
    constants: ClassVar = {"BIAS": 1.0}
    elements = (512, 2048, 64, 1024, 128, 256)
    small = (256, 64, 512, 128, 1024, 2048)
    steps = 100
    checked = 6
    contracts = True
    # M halves a difference. The rounding error of a sum of 2,048 products is 2048 ** 0.5 * 6e-8 * 2 in any order.
    tolerance = 5e-5
    scale: ClassVar = {"x": 1.0}
    missing: ClassVar = {"wgsl": _WHY, "cuda": _WHY, "triton": _WHY}

    def __init__(self, side: int) -> None:
        self.state = (Field("x", (side,)),)
        self.fixed = (Field("matrix", (side, side), shared=True),)

    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        return {"x": rng.uniform(0, 2, (elements, elements))}

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        # The largest singular value of a random matrix is 2 * standard deviation * sqrt(side).
        return {"matrix": rng.normal(0, 0.25 / elements**0.5, (elements, elements))}

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        return {"x": xp.clip(state["x"] @ fixed["matrix"] + self.constants["BIAS"], 0, None)}
