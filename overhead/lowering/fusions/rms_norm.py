"""RMSNorm written as six operations (square, mean, add, root, two products) becomes one."""

from __future__ import annotations

from overhead.lowering.buffers import TensorView
from overhead.lowering.rewriting import DataFlow, Replacement
from overhead.lowering.templates.elementwise import Elementwise
from overhead.lowering.templates.norm import Norm
from overhead.lowering.templates.row_reduction import RowReduction


def match(flow: DataFlow, position: int) -> Replacement | None:
    """A norm whose mean is at this position."""
    mean = flow.operations[position]
    if not isinstance(mean, RowReduction) or mean.kind != "mean":
        return None
    chain = [flow.writer(mean.x), position]
    for _ in range(4):
        last = chain[-1]
        if last is None:
            return None
        chain.append(flow.only_reader(flow.operations[last].writes[0]))
    positions = [i for i in chain if i is not None]
    operations = [flow.operations[i] for i in positions]
    steps = [operation for operation in operations if isinstance(operation, Elementwise)]
    if len(positions) != 6 or len(steps) != 5 or flow.only_reader(steps[0].output) != position:
        return None
    square, epsilon, root, scaled, weighed = steps
    x = square.inputs[0]
    squared = (square.kind == "pow" and square.scalars == (2.0,)) or (square.kind == "mul" and square.inputs == (x, x))
    if not squared or epsilon.kind != "add" or len(epsilon.scalars) != 1 or root.kind != "rsqrt":
        return None
    weight = _other(weighed, scaled.output)
    if (
        _other(scaled, root.output) != x
        or weight is None
        or weight.shape != x.shape[-1:]
        or scaled.output.shape != x.shape
    ):
        return None
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


def _other(product: Elementwise, one: TensorView) -> TensorView | None:
    """The other factor of a product of two views, of which one is in the buffer of ``one``."""
    if product.kind != "mul" or len(product.inputs) != 2:
        return None
    others = [view for view in product.inputs if view.buffer != one.buffer]
    return others[0] if len(others) == 1 else None
