"""The addition of a residual and the norm after it become one dispatch, which writes both results."""

from __future__ import annotations

import dataclasses

from overhead.lowering.rewriting import DataFlow, Replacement
from overhead.lowering.templates.elementwise import Elementwise
from overhead.lowering.templates.norm import Norm


def match(flow: DataFlow, position: int) -> Replacement | None:
    """The norm at this position, if what it reads is the sum of two tensors."""
    norm = flow.operations[position]
    if not isinstance(norm, Norm) or norm.residual is not None:
        return None
    before = flow.writer(norm.x)
    add = flow.operations[before] if before is not None else None
    if before is None or not isinstance(add, Elementwise) or add.kind != "add" or add.output != norm.x:
        return None
    if len(add.inputs) != 2 or any(view.shape != norm.x.shape or view.number != "f32" for view in add.inputs):
        return None
    new = dataclasses.replace(norm, x=add.inputs[0], residual=add.inputs[1], total=add.output)
    return Replacement(frozenset({before, position}), new, position)
