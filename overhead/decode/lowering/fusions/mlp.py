"""The gated half of an MLP becomes one dispatch: two products with one input, the activation, and their product."""

from __future__ import annotations

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.elementwise_table import REAL
from overhead.decode.lowering.rewriting import DataFlow, Replacement, other_input, require
from overhead.decode.lowering.templates.elementwise import Elementwise
from overhead.decode.lowering.templates.gated_gemv import GatedGemv
from overhead.decode.lowering.templates.gemv import Gemv


def match_gated_mlp(flow: DataFlow, position: int) -> Replacement:
    """A gated MLP whose activation is at this position."""
    activation = flow.at(position, Elementwise)
    require(activation.kind in REAL and len(activation.inputs) == 1)
    last = flow.only_reader(activation.output)
    product = flow.at(last, Elementwise)
    other = other_input(product, activation.output)
    require(product.kind == "mul" and other.shape == activation.output.shape == product.output.shape)
    gate, up = _product(flow, activation.inputs[0], position), _product(flow, other, last)
    first, second = flow.at(gate, Gemv), flow.at(up, Gemv)
    require(gate != up and first.x == second.x)
    require(first.products[0].matrix.shape == second.products[0].matrix.shape)
    new = GatedGemv(
        x=first.x,
        gate=first.products[0].matrix,
        up=second.products[0].matrix,
        activation=activation.expression,
        output=product.output,
        place=activation.place,
    )
    return Replacement(frozenset({position, last, gate, up}), new, last)


def _product(flow: DataFlow, view: TensorView, reader: int) -> int:
    """The position of the product without bias whose whole output is this view, read only by ``reader``."""
    found = flow.writer(view)
    products = flow.at(found, Gemv).products
    require(len(products) == 1 and flow.only_reader(view) == reader)
    require(products[0].bias is None and products[0].output == view)
    return found
