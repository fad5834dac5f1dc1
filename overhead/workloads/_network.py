"""A small network with separate weights for each element: on arrays, and as statements of every
language.

The statements have no loops and no arrays, so the position of each weight is a constant. Then
libraries add no bounds checks, and compilers need not unroll loops. The compilers behind Vulkan did
not unroll them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from overhead.workloads.base import Array, Field, Workload

Activation = Literal["tanh", "relu", "none"]
_TEXT: dict[Activation, str] = {"tanh": "tanh({})", "relu": "max({}, 0.0)", "none": "{}"}


def weight_fields(widths: Sequence[int]) -> tuple[Field, ...]:
    """The fields for the weights ``w1``, ``b1``, ``w2``, ... of a network with these layer
    widths.
    """
    layers = enumerate(itertools.pairwise(widths), 1)
    return tuple(
        f
        for i, (wide, out) in layers
        for f in (Field(f"w{i}", (wide, out)), Field(f"b{i}", (out,)))
    )


class NetworkWorkload(Workload):
    """A workload in which each element has the weights of its own network."""

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Random weights, with a standard deviation of 0.5; none for what all elements share."""
        return {
            f.name: rng.normal(0, 0.5, (elements, *f.shape)) for f in self.fixed if not f.shared
        }


def network_text(
    seen: Sequence[str],
    widths: Sequence[int],
    hidden: Activation = "tanh",
    last: Activation = "tanh",
) -> str:
    """Statements that compute ``out0``, ``out1``, ... from the input expressions ``seen``, one
    statement a neuron.

    ``hidden``, ``last``: the functions of the hidden layers and of the last one.
    """
    lines = [f"seen{j} = {value}" for j, value in enumerate(seen)]
    below = [f"seen{j}" for j in range(len(seen))]
    for i, width in enumerate(widths[1:], 1):
        at_end = i == len(widths) - 1
        names = [f"out{k}" if at_end else f"layer{i}_{k}" for k in range(width)]
        for k, name in enumerate(names):
            sum_of = dot_text(below, [f"w{i}({j * width + k}u)" for j in range(len(below))])
            lines.append(
                f"{name} = {_TEXT[last if at_end else hidden].format(f'b{i}({k}u) + {sum_of}')}"
            )
        below = names
    return "\n".join(lines)


def dot_text(left: Sequence[str], right: Sequence[str]) -> str:
    """Source text for the sum of the products of two lists of expressions."""
    return " + ".join(f"{a} * {b}" for a, b in zip(left, right, strict=True))


def network_on_arrays(
    xp: Any,
    x: Any,
    fixed: dict[str, Any],
    layers: int,
    hidden: Activation = "tanh",
    last: Activation = "tanh",
) -> Any:
    """The outputs (elements, outputs) for the inputs ``x`` (elements, inputs); each element has its
    own weights.
    """
    for i in range(1, layers + 1):
        x = (x[:, None, :] @ fixed[f"w{i}"])[:, 0, :] + fixed[f"b{i}"]
        function = last if i == layers else hidden
        x = xp.tanh(x) if function == "tanh" else xp.clip(x, 0.0, None) if function == "relu" else x
    return x
