"""A rotary embedding written as five operations (negate, concat, two products, sum) becomes one."""

from __future__ import annotations

import dataclasses

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.rewriting import DataFlow, NoMatch, Replacement, other_input, require
from overhead.decode.lowering.templates.concat import Concat
from overhead.decode.lowering.templates.elementwise import Elementwise
from overhead.decode.lowering.templates.rotary import Rotary


def match_rotary(flow: DataFlow, position: int) -> Replacement:
    """The rotary embedding ``x * cos + concat(-high half of x, low half) * sin``; its concat is at this position."""
    concat = flow.at(position, Concat)
    require(len(concat.inputs) == 2 and flow.only_reader(concat.inputs[0]) == position)
    negated, low_half = concat.inputs
    negate, turned = flow.writer(negated), flow.only_reader(concat.output)
    neg, sine = flow.at(negate, Elementwise), flow.at(turned, Elementwise)
    last = flow.only_reader(sine.output)
    add = flow.at(last, Elementwise)
    straight = flow.writer(other_input(add, sine.output))
    cosine = flow.at(straight, Elementwise)
    require([step.kind for step in (neg, sine, cosine, add)] == ["neg", "mul", "mul", "add"])
    require(flow.only_reader(cosine.output) == last)
    x, cos = _x_and_cos(cosine, low_half, neg.inputs[0])
    sin = other_input(sine, concat.output)
    require(add.output.shape == x.shape and concat.dimension == len(x.shape) - 1)
    new = Rotary(x=x, cos=cos, sin=sin, output=add.output, place=concat.place)
    return Replacement(frozenset({negate, position, turned, straight, last}), new, last)


def _x_and_cos(product: Elementwise, low_half: TensorView, high_half: TensorView) -> tuple[TensorView, TensorView]:
    """The factor that has these two halves, and the other factor. Raises ``NoMatch``."""
    require(len(product.inputs) == 2)
    for x, other in (product.inputs, product.inputs[::-1]):
        if not x.shape or x.shape[-1] % 2:
            continue
        half = x.shape[-1] // 2
        low = dataclasses.replace(x, shape=(*x.shape[:-1], half))
        high = dataclasses.replace(low, offset=x.offset + half * x.strides[-1])
        if (low, high) == (low_half, high_half):
            return x, other
    raise NoMatch
