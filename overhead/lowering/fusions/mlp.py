"""The gated half of an MLP becomes one dispatch: two products with one input, the activation, and their product."""

from __future__ import annotations

from overhead.lowering.buffers import TensorView
from overhead.lowering.elementwise_table import REAL
from overhead.lowering.rewriting import DataFlow, Replacement
from overhead.lowering.templates.elementwise import Elementwise
from overhead.lowering.templates.gated_gemv import GatedGemv
from overhead.lowering.templates.gemv import Gemv


def match(flow: DataFlow, position: int) -> Replacement | None:
    """A gated MLP whose activation is at this position."""
    activation = flow.operations[position]
    if not isinstance(activation, Elementwise) or activation.kind not in REAL or len(activation.inputs) != 1:
        return None
    last = flow.only_reader(activation.output)
    product = flow.operations[last] if last is not None else None
    if last is None or not isinstance(product, Elementwise) or product.kind != "mul" or len(product.inputs) != 2:
        return None
    others = [view for view in product.inputs if view.buffer != activation.output.buffer]
    if len(others) != 1 or not others[0].shape == activation.output.shape == product.output.shape:
        return None
    gate, up = _product(flow, activation.inputs[0], position), _product(flow, others[0], last)
    if gate is None or up is None or gate == up:
        return None
    first, second = flow.operations[gate], flow.operations[up]
    assert isinstance(first, Gemv)
    assert isinstance(second, Gemv)
    if first.x != second.x or first.products[0].matrix.shape != second.products[0].matrix.shape:
        return None
    new = GatedGemv(
        x=first.x,
        gate=first.products[0].matrix,
        up=second.products[0].matrix,
        activation=activation.expression,
        output=product.output,
        place=activation.place,
    )
    return Replacement(frozenset({position, last, gate, up}), new, last)


def _product(flow: DataFlow, view: TensorView, reader: int) -> int | None:
    """The position of the product without bias whose whole output is this view, read only by ``reader``."""
    found = flow.writer(view)
    operation = flow.operations[found] if found is not None else None
    if not isinstance(operation, Gemv) or len(operation.products) != 1 or flow.only_reader(view) != reader:
        return None
    only = operation.products[0]
    return found if only.bias is None and only.output == view else None
