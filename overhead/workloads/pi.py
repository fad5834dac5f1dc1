"""Monte Carlo estimation of pi: 4,096 workers draw 100,000 points each, in 100 steps of 1,000
points.

The sizes and the generator (PCG's hash) are the published ones; the published kernel draws all
points in one step. With an array library every point of a step is in memory: in 100 steps an array
has 16 MB, which still keeps a GPU busy. Here the generator hashes a counter and coordinates are
integers, so that every language counts exactly the same points.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any, ClassVar

import numpy as np

from overhead.workloads import register
from overhead.workloads._statements import Language, statements
from overhead.workloads.base import Array, Arrays, Field, Workload

_STEPS, _POINTS = 100, 1000
_AT_ONCE = 4
"""Points per iteration of the loop, as in ``rastrigin``."""
_LOOPS: dict[Language, tuple[str, str]] = {
    "wgsl": (
        (
            f"let first = (u32(worker) * {_STEPS}u + t) * {2 * _POINTS}u;\n"
            f"var misses = 0u;\nfor (var k = 0u; k < {2 * _POINTS}u; k = k + {2 * _AT_ONCE}u) {{"
        ),
        "}\nhits = hits + (DRAWN - f32(misses));",
    ),
    "cuda": (
        (
            f"const unsigned int first = ((unsigned int)worker * {_STEPS}u + t) *"
            f" {2 * _POINTS}u;\nunsigned int misses = 0u;\nfor (unsigned int k = 0u; k <"
            f" {2 * _POINTS}u; k += {2 * _AT_ONCE}u) {{"
        ),
        "}\nhits = hits + (DRAWN - (float)misses);",
    ),
    "triton": (
        (
            f"first = (worker.to(tl.uint32) * {_STEPS} + t.to(tl.uint32)) * {2 * _POINTS}\n"
            f"misses = first * 0\nfor k in range(0, {2 * _POINTS}, {2 * _AT_ONCE}):"
        ),
        "hits = hits + (DRAWN - misses.to(tl.float32))",
    ),
}
"""The lines before and after the statements of an iteration, by language."""


def _body(language: Language) -> str:
    """The statements of one step in a language: a loop that draws points, 4 in each iteration, and
    counts those outside of the circle.

    A coordinate is the hash of a counter, made an odd number below 2^15: the middle of one of 2^14
    cells. PCG's hash ends with an operation that does not change the bits used here, so it is left
    out.
    """
    # Two coordinates for each point. The constants are those of PCG's hash.
    draws = []
    for k in range(2 * _AT_ONCE):
        draws.append(f"""\
mixed{k} = (first + k + {k}u) * 747796405u + 2891336453u
word{k} = ((mixed{k} >> ((mixed{k} >> 28u) + 4u)) ^ mixed{k}) * 277803737u
draw{k} = (word{k} >> 17u) | 1u""")
    # The sum of two squares is below 2^31, so bit 30 is 1 outside the circle of radius 2^15. Misses
    # are counted, because that bit is 1 for them; the step takes them off the points drawn.
    misses = []
    for x in range(0, 2 * _AT_ONCE, 2):
        y = x + 1
        squares = f"draw{x} * draw{x} + draw{y} * draw{y}"
        misses.append(f"misses = misses + (({squares}) >> 30u)")
    begin, end = _LOOPS[language]
    inner = statements(language, "\n".join(draws + misses), ("misses",), whole=True)
    return f"{begin}\n{indent(inner, '    ')}\n{end}"


@register
class Pi(Workload):
    """Workers that estimate pi: each draws random points in a square, and counts the ``hits``,
    those inside a quarter of a circle.
    """

    name = "pi"
    title = "pi by 4,096 workers of 100,000 points, 100 steps"
    about = (
        "1,000 points per worker, each from two hashes of a counter; the points inside the quarter"
        " circle are counted; sizes and generator (PCG) as published; a control with little to fuse"
    )
    constants: ClassVar = {"DRAWN": _POINTS}
    state = (Field("hits"),)
    fixed = (Field("worker"), Field("points", (_POINTS,), shared=True))
    turns = _POINTS // _AT_ONCE + 1
    steps = _STEPS
    elements = (4096,)
    small = (128,)
    # Counts are equal, and exact in float32 up to 2^24.
    contracts = True
    tolerance = 0.0
    scale: ClassVar = {"hits": 1.0}

    wgsl = _body("wgsl")
    cuda = _body("cuda")
    triton = _body("triton")

    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """No hits yet."""
        return {"hits": np.zeros(elements)}

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """The numbers of the workers in random order, and the numbers of the points, 0 to 999.
        Array libraries compute with the latter; kernels count them in a loop and do not read them.
        """
        return {
            "worker": rng.permutation(elements).astype(float),
            "points": np.arange(_POINTS, dtype=float),
        }

    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """One step of all workers: each draws its next 1,000 points, and adds those inside the
        circle to its hits. In int32, because torch computes with no unsigned integers of 32 bits.
        """
        worker = xp.asarray(fixed["worker"], dtype=xp.int32)
        points = xp.asarray(fixed["points"], dtype=xp.int32)
        t = xp.asarray(t, dtype=xp.int32)
        # Each worker and step has its own numbers of the counter, two for each point.
        first = (worker * _STEPS + t) * (2 * _POINTS)
        # A row for each worker, a column for each point.
        counter = first[:, None] + 2 * points
        x = _coordinate(counter)
        y = _coordinate(counter + 1)
        # Bit 30 is 1 outside the circle of radius 2^15.
        misses = ((x * x + y * y) >> 30).sum(1)
        # ``DRAWN``: the points of a step.
        hits = state["hits"]
        new_hits = self.constants["DRAWN"] - xp.asarray(misses, dtype=hits.dtype)
        return {"hits": hits + new_hits}


def _coordinate(counter: Any) -> Any:
    """The coordinates that belong to these counters: PCG's hash of each, the same numbers as the
    kernels draw (``_body``).

    Here numbers are int32, in the kernels unsigned. A shift of an int32 to the right fills with the
    sign instead of zeros, so masks clear what the sign filled.
    """
    # The constant 2891336453 as an int32. Products wrap around as in the kernels.
    mixed = counter * 747796405 + (2891336453 - 2**32)
    # PCG's hash shifts by a number that its four highest bits give.
    high = (mixed >> 28) & 15
    one = high * 0 + 1  # in the type of the array
    kept_bits = (one << (28 - high)) - 1
    shifted = (mixed >> (high + 4)) & kept_bits
    word = (shifted ^ mixed) * 277803737
    return ((word >> 17) & 32767) | 1
