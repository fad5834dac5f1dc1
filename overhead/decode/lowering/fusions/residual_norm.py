"""The addition of a residual and the norm after it become one dispatch, which writes both results."""

from __future__ import annotations

import dataclasses

from overhead.decode.lowering.rewriting import DataFlow, Replacement, require
from overhead.decode.lowering.templates.elementwise import Elementwise
from overhead.decode.lowering.templates.norm import Norm


def match_residual_norm(flow: DataFlow, position: int) -> Replacement:
    """The norm at this position, if what it reads is the sum of two tensors."""
    norm = flow.at(position, Norm)
    before = flow.writer(norm.x)
    add = flow.at(before, Elementwise)
    require(norm.residual is None and add.kind == "add" and add.output == norm.x and len(add.inputs) == 2)
    require(all(view.shape == norm.x.shape and view.number == "f32" for view in add.inputs))
    new = dataclasses.replace(norm, x=add.inputs[0], residual=add.inputs[1], total=add.output)
    return Replacement(frozenset({before, position}), new, position)
