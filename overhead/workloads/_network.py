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
    """The read-only arrays of a network with these layer widths: for each layer the weights, ``w1``
    for the first one, and the biases, ``b1``.
    """
    fields = []
    for layer, (width_in, width_out) in enumerate(itertools.pairwise(widths), start=1):
        fields += [Field(f"w{layer}", (width_in, width_out)), Field(f"b{layer}", (width_out,))]
    return tuple(fields)


class NetworkWorkload(Workload):
    """A workload in which each element has the weights of its own network."""

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Random weights, with a standard deviation of 0.5; none for what all elements share."""
        own = [field for field in self.fixed if not field.shared]
        return {field.name: rng.normal(0, 0.5, (elements, *field.shape)) for field in own}


def network_text(
    seen: Sequence[str],
    widths: Sequence[int],
    hidden: Activation = "tanh",
    last: Activation = "tanh",
) -> str:
    """A network as statements without loops, one for each neuron, in the notation of the module
    ``_statements``. They set ``out0``, ``out1``, ..., the outputs of the network.

    ``seen``: the expressions of its inputs. ``widths``: the neurons of each layer, the inputs
    first. ``hidden``, ``last``: the functions after the sums of the hidden layers and of the last.
    """
    inputs = [f"seen{j}" for j in range(len(seen))]
    lines = [f"{name} = {value}" for name, value in zip(inputs, seen, strict=True)]
    layers = len(widths) - 1
    for layer, width in enumerate(widths[1:], start=1):
        is_last = layer == layers
        function = _TEXT[last if is_last else hidden]
        neurons = [f"out{k}" if is_last else f"layer{layer}_{k}" for k in range(width)]
        for k, neuron in enumerate(neurons):
            # The matrix has a row for each input, and a column for each neuron. ``w1(5u)`` is its
            # number 5, row after row.
            weights = [f"w{layer}({j * width + k}u)" for j in range(len(inputs))]
            # dot_text(): the sum of the products of inputs and weights.
            summed = f"b{layer}({k}u) + {dot_text(inputs, weights)}"
            lines.append(f"{neuron} = {function.format(summed)}")
        # The outputs of this layer are the inputs of the next one.
        inputs = neurons
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
    """The same network as that of ``network_text``, computed on arrays for all elements at once:
    from the inputs ``x``, of shape (elements, inputs), to its outputs, of shape (elements,
    outputs).

    ``xp``: the array library. ``fixed``: the weights; each element has weights of its own.
    """
    for layer in range(1, layers + 1):
        # A row vector times the weights of each element.
        # Shapes: (elements, 1, inputs) times (elements, inputs, neurons). The axis of length 1
        # makes a matrix of each row of inputs, and is taken off again.
        product = (x[:, None, :] @ fixed[f"w{layer}"])[:, 0, :]
        x = product + fixed[f"b{layer}"]
        function = last if layer == layers else hidden
        if function == "tanh":
            x = xp.tanh(x)
        elif function == "relu":
            x = xp.clip(x, 0.0, None)
        # Else it is "none": the sums themselves.
    return x
