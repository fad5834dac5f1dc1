"""A rotary embedding written as five operations (negate, concat, two products, sum) becomes one."""

from __future__ import annotations

import dataclasses

from overhead.lowering.buffers import TensorView
from overhead.lowering.rewriting import DataFlow, Replacement
from overhead.lowering.templates.concat import Concat
from overhead.lowering.templates.elementwise import Elementwise
from overhead.lowering.templates.rotary import Rotary


def match(flow: DataFlow, position: int) -> Replacement | None:
    """A rotary embedding whose concat is at this position."""
    concat = flow.operations[position]
    if not isinstance(concat, Concat) or len(concat.inputs) != 2:
        return None
    negated, first_half = concat.inputs
    negate, turned = flow.writer(negated), flow.only_reader(concat.output)
    if negate is None or turned is None or flow.only_reader(negated) != position:
        return None
    last = flow.only_reader(flow.operations[turned].writes[0])
    if last is None:
        return None
    total = flow.operations[last]
    straight = next(
        (flow.writer(view) for view in total.reads if view.buffer != flow.operations[turned].writes[0].buffer), None
    )
    if straight is None or flow.only_reader(flow.operations[straight].writes[0]) != last:
        return None
    steps = [flow.operations[i] for i in (negate, turned, straight, last)]
    if [getattr(step, "kind", "") for step in steps] != ["neg", "mul", "mul", "add"]:
        return None
    neg, sine, cosine, add = (step for step in steps if isinstance(step, Elementwise))
    found = _factors(cosine, first_half, neg.inputs[0])
    sin = next((view for view in sine.inputs if view.buffer != concat.output.buffer), None)
    if (
        found is None
        or sin is None
        or add.output.shape != found[0].shape
        or concat.dimension != len(add.output.shape) - 1
    ):
        return None
    x, cos = found
    new = Rotary(x=x, cos=cos, sin=sin, output=add.output, place=concat.place)
    return Replacement(frozenset({negate, position, turned, straight, last}), new, last)


def _factors(product: Elementwise, low_half: TensorView, high_half: TensorView) -> tuple[TensorView, TensorView] | None:
    """The rotated view and the other factor, if the halves are those of one of the two."""
    if len(product.inputs) != 2:
        return None
    for x, other in (product.inputs, product.inputs[::-1]):
        if not x.shape:
            continue
        half = x.shape[-1] // 2
        low = dataclasses.replace(x, shape=(*x.shape[:-1], half))
        high = dataclasses.replace(low, offset=x.offset + half * x.strides[-1])
        if x.shape[-1] % 2 == 0 and (low, high) == (low_half, high_half):
            return x, other
    return None
