"""A small network with separate weights for each element: on arrays, and as source text for WGSL and CUDA C.

The text has no loops and no arrays, so the position of each weight is a constant. Then libraries add no bounds checks,
and compilers need not unroll loops. The compilers behind Vulkan did not unroll them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal

from overhead.workloads.base import Field

Language = Literal["wgsl", "cuda"]
DECLARE = {"wgsl": "let", "cuda": "const float"}
_TANH = {"wgsl": "tanh", "cuda": "tanhf"}


def weight_fields(widths: Sequence[int]) -> tuple[Field, ...]:
    """The fields for the weights ``w1``, ``b1``, ``w2``, ... of a network with these layer widths."""
    layers = enumerate(itertools.pairwise(widths), 1)
    return tuple(f for i, (wide, out) in layers for f in (Field(f"w{i}", (wide, out)), Field(f"b{i}", (out,))))


def network_text(language: Language, seen: Sequence[str], widths: Sequence[int]) -> str:
    """Source text that computes ``out0``, ``out1``, ... from the input expressions ``seen``, one statement a neuron."""
    lines = [f"{DECLARE[language]} seen{j} = {value};" for j, value in enumerate(seen)]
    below = [f"seen{j}" for j in range(len(seen))]
    for i, width in enumerate(widths[1:], 1):
        names = [f"out{k}" if i == len(widths) - 1 else f"layer{i}_{k}" for k in range(width)]
        for k, name in enumerate(names):
            sum_of = dot_text(below, [f"w{i}({j * width + k}u)" for j in range(len(below))])
            lines.append(f"{DECLARE[language]} {name} = {_TANH[language]}(b{i}({k}u) + {sum_of});")
        below = names
    return "\n".join(lines)


def dot_text(left: Sequence[str], right: Sequence[str]) -> str:
    """Source text for the sum of the products of two lists of expressions."""
    return " + ".join(f"{a} * {b}" for a, b in zip(left, right, strict=True))


def network_on_arrays(xp: Any, x: Any, fixed: dict[str, Any], layers: int) -> Any:
    """The outputs (elements, outputs) for the inputs ``x`` (elements, inputs); each element has its own weights."""
    for i in range(1, layers + 1):
        x = xp.tanh((x[:, None, :] @ fixed[f"w{i}"])[:, 0, :] + fixed[f"b{i}"])
    return x
