"""Fusions: each replaces several dispatches by one, and says how many it saved."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

from overhead.decode.lowering.buffers import TensorView, packed_view
from overhead.decode.lowering.program import Program, Saving
from overhead.decode.lowering.rewriting import (
    DataFlow,
    Match,
    NoMatch,
    Replacement,
    other_input,
    replace_matches,
    require,
)
from overhead.decode.lowering.templates.attention import Attention, CachedAttention
from overhead.decode.lowering.templates.elementwise import (
    REAL,
    Concat,
    Elementwise,
    IndexWrite,
    Rotary,
)
from overhead.decode.lowering.templates.gemv import GatedGemv, Gemv
from overhead.decode.lowering.templates.row_reduction import Norm, RowReduction
from overhead.errors import UsageError


def _norm(flow: DataFlow, position: int) -> Replacement:
    """The fusion of an RMSNorm that is written as six operations, of which the mean is at this
    position, into one norm. Raises ``NoMatch`` if the operations around it are others.

    In order they are a square, the mean, the sum with epsilon, the root, and the products with x
    and with the weight: ``x * rsqrt(mean(x^2) + epsilon) * weight``.
    """
    mean = flow.operation_at(position, RowReduction)
    require(mean.kind == "mean")
    require(flow.only_reader(mean.x) == position)

    # Go from each operation to the only reader of what it wrote: nothing else may need a result
    # that the fusion does away with.
    positions = [flow.writer(mean.x), position]
    for _ in range(4):
        last = flow.operations[positions[-1]]
        positions.append(flow.only_reader(last.writes[0]))
    # The second is the mean itself, whose position is known.
    at_square, _, at_add, at_root, at_scaled, at_weighed = positions
    square = flow.operation_at(at_square, Elementwise)
    add = flow.operation_at(at_add, Elementwise)
    root = flow.operation_at(at_root, Elementwise)
    scaled = flow.operation_at(at_scaled, Elementwise)
    weighed = flow.operation_at(at_weighed, Elementwise)
    kinds = (add.kind, root.kind, scaled.kind, weighed.kind)
    require(kinds == ("add", "rsqrt", "mul", "mul"))

    require(len(square.inputs) > 0)
    x = square.inputs[0]
    # PyTorch writes a square as ``x.pow(2)`` or as ``x * x``.
    is_power_of_two = square.kind == "pow" and square.scalars == (2.0,)
    is_product = square.kind == "mul" and square.inputs == (x, x)
    require(is_power_of_two or is_product)

    # Each reads the whole of what the one before it wrote, and not another view of the buffer.
    require(mean.x == square.output)
    require(add.inputs == (mean.output,))
    require(len(add.scalars) == 1)
    require(root.inputs == (add.output,))
    require(other_input(scaled, root.output) == x)
    weight = other_input(weighed, scaled.output)

    # The mean is over the last dimension, with one weight for each of its numbers, and nothing is
    # broadcast to a larger shape.
    require(mean.output.shape == (*x.shape[:-1], 1))
    require(weight.shape == x.shape[-1:])
    for step in (square, scaled, weighed):
        require(step.output.shape == x.shape)
    new = Norm(
        x=x,
        weight=weight,
        bias=None,
        epsilon=add.scalars[0],
        centred=False,
        output=weighed.output,
        place=mean.place,
    )
    return Replacement(frozenset(positions), new, at=at_weighed)


def _gated_mlp(flow: DataFlow, position: int) -> Replacement:
    """The fusion of the gated half of an MLP, ``act(gate x) * (up x)``, whose activation is at this
    position. Raises ``NoMatch`` if the operations around it are others.

    The four operations are two matrix products with the same input x, an activation of the first
    (``gate``), and the product of the activation with the second (``up``).
    """
    # First go on from the activation to the product that reads it; its other factor is ``up x``.
    activation = flow.operation_at(position, Elementwise)
    # ``REAL``: functions of one f32 number, such as ``exp``.
    require(activation.kind in REAL)
    require(len(activation.inputs) == 1)
    at_product = flow.only_reader(activation.output)
    product = flow.operation_at(at_product, Elementwise)
    up_output = other_input(product, activation.output)
    require(product.kind == "mul")
    require(up_output.shape == activation.output.shape)
    require(up_output.shape == product.output.shape)

    # Then back to the two matrix products, which must have the same input.
    at_gate = _product_of(flow, activation.inputs[0], position)
    at_up = _product_of(flow, up_output, at_product)
    require(at_gate != at_up)
    gate = flow.operation_at(at_gate, Gemv)
    up = flow.operation_at(at_up, Gemv)
    gate_matrix = gate.products[0].matrix
    up_matrix = up.products[0].matrix
    require(gate.x == up.x)
    require(gate_matrix.shape == up_matrix.shape)
    new = GatedGemv(
        x=gate.x,
        gate=gate_matrix,
        up=up_matrix,
        activation=activation.expression,
        output=product.output,
        place=activation.place,
    )
    return Replacement(frozenset({position, at_product, at_gate, at_up}), new, at=at_product)


def _product_of(flow: DataFlow, view: TensorView, reader: int) -> int:
    """The position of the matrix product that a gated MLP can take over: one without bias, whose
    whole output is this view, and only the operation at ``reader`` reads it. Raises ``NoMatch``.
    """
    at_product = flow.writer(view)
    products = flow.operation_at(at_product, Gemv).products
    require(len(products) == 1)
    require(flow.only_reader(view) == reader)
    require(products[0].bias is None)
    require(products[0].output == view)
    return at_product


def _projections(flow: DataFlow, position: int) -> Replacement:
    """The fusion of two matrix products with the same input into one dispatch: those that make the
    new key and the new value of the attention at this position. Raises ``NoMatch``.
    """
    attention = flow.operation_at(position, Attention)
    at_key = _projection(flow, attention.key, position)
    at_value = _projection(flow, attention.value, position)
    require(at_key != at_value)

    # In the order in which they stand in the program, where either may come first.
    at_first, at_second = sorted([at_key, at_value])
    first = flow.operation_at(at_first, Gemv)
    second = flow.operation_at(at_second, Gemv)
    require(first.x == second.x)
    require(len(first.products) == 1)
    require(len(second.products) == 1)
    new = Gemv(x=first.x, products=(*first.products, *second.products), place=first.place)
    # In place of the first one, because operations between both may read its result already.
    return Replacement(frozenset({at_first, at_second}), new, at=at_first)


def _projection(flow: DataFlow, view: TensorView, before: int) -> int:
    """The position of the matrix product from which the keys or values in this view come; of
    several the last one. Raises ``NoMatch`` if there is none.

    Between the product and the attention at ``before`` stand other operations, such as a rotary
    embedding and the write into the cache. So the search goes back from each view to the operations
    that wrote its buffer, and from these to the views that they read, up to the first product.
    """
    waiting = [view]
    seen: set[str] = set()
    products: list[int] = []
    while waiting:
        current = waiting.pop()
        if current.buffer in seen:
            continue
        seen.add(current.buffer)
        for position in flow.writers(current):
            # What is written after the attention has read it does not contribute.
            if position >= before:
                continue
            operation = flow.operations[position]
            if isinstance(operation, Gemv):
                products.append(position)
            else:
                waiting += operation.reads
    require(bool(products))
    return max(products)


def _residual_norm(flow: DataFlow, position: int) -> Replacement:
    """The fusion of the norm at this position with the sum before it (the input of a layer plus its
    output, the residual). Raises ``NoMatch`` if the norm does not read a sum of two tensors.

    The new dispatch writes both the norm and the sum, because later operations read the sum too.
    """
    norm = flow.operation_at(position, Norm)
    at_add = flow.writer(norm.x)
    add = flow.operation_at(at_add, Elementwise)
    # A norm that has its sum already cannot take a second one.
    require(norm.residual is None)
    require(add.kind == "add")
    require(add.output == norm.x)
    require(len(add.inputs) == 2)
    x, residual = add.inputs
    # The kernel of a norm adds f32 numbers of one shape, without broadcasting.
    for view in (x, residual):
        require(view.shape == norm.x.shape)
        require(view.number == "f32")
    new = dataclasses.replace(norm, x=x, residual=residual, total=add.output)
    return Replacement(frozenset({at_add, position}), new, at=position)


def _rotary(flow: DataFlow, position: int) -> Replacement:
    """The fusion of a rotary embedding, which is written as five operations: ``x * cos +
    concat(-high half of x, low half of x) * sin``. The concat is at this position. Raises
    ``NoMatch`` if the operations around it are others.
    """
    # First the operations beside the concat: the negation before it, and the product with sin after
    # it.
    concat = flow.operation_at(position, Concat)
    require(len(concat.inputs) == 2)
    require(flow.only_reader(concat.inputs[0]) == position)
    negated, low_half = concat.inputs
    at_negation = flow.writer(negated)
    at_sine = flow.only_reader(concat.output)
    negation = flow.operation_at(at_negation, Elementwise)
    sine = flow.operation_at(at_sine, Elementwise)

    # Then the sum, which reads that product and ``x * cos``.
    at_add = flow.only_reader(sine.output)
    add = flow.operation_at(at_add, Elementwise)
    cosine_output = other_input(add, sine.output)
    at_cosine = flow.writer(cosine_output)
    cosine = flow.operation_at(at_cosine, Elementwise)
    kinds = (negation.kind, sine.kind, cosine.kind, add.kind)
    require(kinds == ("neg", "mul", "mul", "add"))
    require(negation.output == negated)
    require(cosine.output == cosine_output)
    require(flow.only_reader(cosine.output) == at_add)

    # At last x itself, whose two halves the concat has exchanged.
    x, cos = _x_and_cos(cosine, low_half, negation.inputs[0])
    sin = other_input(sine, concat.output)
    require(add.output.shape == x.shape)
    require(concat.dimension == len(x.shape) - 1)
    new = Rotary(x=x, cos=cos, sin=sin, output=add.output, place=concat.place)
    removed = frozenset({at_negation, position, at_sine, at_cosine, at_add})
    return Replacement(removed, new, at=at_add)


def _x_and_cos(
    product: Elementwise, low_half: TensorView, high_half: TensorView
) -> tuple[TensorView, TensorView]:
    """The two factors of this product, ``x * cos`` or ``cos * x``: first x, then cos. Which is x is
    told by its halves, which are these views. Raises ``NoMatch`` if neither factor has them.
    """
    require(len(product.inputs) == 2)
    first, second = product.inputs
    for x, other in ((first, second), (second, first)):
        # Without an even number of columns there are no halves.
        if not x.shape or x.shape[-1] % 2:
            continue
        half = x.shape[-1] // 2
        low = dataclasses.replace(x, shape=(*x.shape[:-1], half))
        high = dataclasses.replace(low, offset=x.offset + half * x.strides[-1])
        if low == low_half and high == high_half:
            return x, other
    raise NoMatch


def _attention(flow: DataFlow, position: int) -> Replacement:
    """The fusion of the attention at this position with what stands between it and its cache of
    keys and values. Raises ``NoMatch`` if nothing does.

    That is first a copy that repeats heads of keys and values, because several heads of queries
    share one; the attention can find the shared head itself. And then the writes of the new key
    and value into the cache, which become part of the attention.
    """
    attention = flow.operation_at(position, Attention)
    # A ``CachedAttention``, which writes its cache itself, has taken over all of that already.
    require(not isinstance(attention, CachedAttention))
    # Each with the view that the copy repeats, and the position of the copy; none without a copy.
    key = _before_copy(flow, attention.key, position)
    value = _before_copy(flow, attention.value, position)
    removed = {position, *key.copies, *value.copies}
    new = dataclasses.replace(attention, key=key.view, value=value.view)

    # Without such writes, only the copies are saved.
    with contextlib.suppress(NoMatch):
        at_key, write_key = _write(flow, key.view, position)
        at_value, write_value = _write(flow, value.view, position)
        require(write_key.index == write_value.index)
        removed.update((at_key, at_value))
        # The same attention, with three fields more.
        fields = {field.name: getattr(new, field.name) for field in dataclasses.fields(new)}
        new = CachedAttention(
            **fields,
            new_key=write_key.source,
            new_value=write_value.source,
            index=write_key.index,
        )
    # Otherwise nothing was found beside the attention itself.
    require(len(removed) > 1)
    return Replacement(frozenset(removed), new, at=position)


class _Uncopied(NamedTuple):
    """A view of keys or values whose heads are not repeated, and the positions of the copies (one
    or none) that repeated them and that are not needed then.
    """

    view: TensorView
    copies: tuple[int, ...]


def _before_copy(flow: DataFlow, view: TensorView, reader: int) -> _Uncopied:
    """The view that a copy has read to make ``view``, in which each head occurs several times, once
    for each head of queries that shares it. Without such a copy it is ``view`` itself.

    ``reader``: the position of the attention, which must be the only reader of the copy.
    """
    with contextlib.suppress(NoMatch):
        at_copy = flow.writer(view)
        copy = flow.operation_at(at_copy, Elementwise)
        require(copy.kind == "copy")
        require(len(copy.inputs) == 1)
        require(flow.only_reader(view) == reader)
        source = copy.inputs[0]

        # The copy reads each head again and again by a dimension with stride 0 between the heads
        # and the rows. Its result has the repeated heads as one dimension.
        require(len(source.shape) == 5)
        require(source.strides[2] == 0)
        require(copy.output.count == view.count)
        batch, heads, repeats, rows, width = source.shape
        repeated = (batch, heads * repeats, rows, width)
        require(view == packed_view(view.buffer, view.number, repeated))
        strides = (*source.strides[:2], *source.strides[3:])
        shape = (batch, heads, rows, width)
        return _Uncopied(dataclasses.replace(source, shape=shape, strides=strides), (at_copy,))
    return _Uncopied(view, ())


def _write(flow: DataFlow, cache: TensorView, before: int) -> tuple[int, IndexWrite]:
    """The position of the operation that writes the new key or value, a single row, into this
    cache, and the operation. Raises ``NoMatch`` unless it is the cache's only writer and comes
    before the attention, which is at ``before``.
    """
    writers = flow.writers(cache)
    require(len(writers) == 1)
    require(writers[0] < before)
    write = flow.operation_at(writers[0], IndexWrite)
    require(write.target == cache)
    # Shapes are (batch, heads, rows, width): it writes into the rows, and one row alone.
    require(write.dimension == 2)
    require(write.source.shape[2] == 1)
    return writers[0], write


FUSIONS: dict[str, Match] = {
    "rms_norm": _norm,
    "mlp": _gated_mlp,
    "k_and_v": _projections,
    "residual_norm": _residual_norm,
    "rotary": _rotary,
    "attention": _attention,
}
"""The fusions by name, in the order in which they are applied. The first three are those of the
published work.
"""


def apply_fusions(program: Program, names: Iterable[str] = tuple(FUSIONS)) -> Program:
    """The program after the fusions with these names, applied in this order. Its ``savings`` says
    for each of them how many dispatches it saved, even if none. Raises ``UsageError`` for a name
    that no fusion has.
    """
    for name in names:
        if name not in FUSIONS:
            raise UsageError(f"no fusion is named {name!r}; there are {', '.join(FUSIONS)}")
        before = program
        program = replace_matches(before, FUSIONS[name])
        saving = Saving(name, len(before.operations), len(program.operations))
        program = program.with_operations(program.operations, saving)
    return program
