"""RMSNorm written as six operations (square, mean, add, root, two products) becomes one."""

from __future__ import annotations

from overhead.decode.lowering.rewriting import DataFlow, Replacement, other_input, require
from overhead.decode.lowering.templates.elementwise import Elementwise
from overhead.decode.lowering.templates.norm import Norm
from overhead.decode.lowering.templates.row_reduction import RowReduction


def match_norm(flow: DataFlow, position: int) -> Replacement:
    """A norm whose mean is at this position."""
    mean = flow.at(position, RowReduction)
    require(mean.kind == "mean" and flow.only_reader(mean.x) == position)
    positions = [flow.writer(mean.x), position]
    for _ in range(4):
        positions.append(flow.only_reader(flow.operations[positions[-1]].writes[0]))
    square, epsilon, root, scaled, weighed = (flow.at(i, Elementwise) for i in positions if i != position)
    require(len(square.inputs) > 0)
    x = square.inputs[0]
    require((square.kind, square.scalars) == ("pow", (2.0,)) or (square.kind, square.inputs) == ("mul", (x, x)))
    require([step.kind for step in (epsilon, root, scaled, weighed)] == ["add", "rsqrt", "mul", "mul"])
    weight = other_input(weighed, scaled.output)
    require(len(epsilon.scalars) == 1 and other_input(scaled, root.output) == x)
    require(scaled.output.shape == x.shape and weight.shape == x.shape[-1:])
    new = Norm(
        x=x,
        weight=weight,
        bias=None,
        epsilon=epsilon.scalars[0],
        centred=False,
        output=weighed.output,
        place=mean.place,
    )
    return Replacement(frozenset(positions), new, positions[-1])
