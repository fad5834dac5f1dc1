"""Fusions: each replaces several dispatches by one, and says how many it saved."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable

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
    """RMSNorm written as six operations (square, mean, add, root, two products); its mean is at
    this position.
    """
    mean = flow.operation_at(position, RowReduction)
    require(mean.kind == "mean" and flow.only_reader(mean.x) == position)
    positions = [flow.writer(mean.x), position]
    for _ in range(4):
        positions.append(flow.only_reader(flow.operations[positions[-1]].writes[0]))
    square, epsilon, root, scaled, weighed = (
        flow.operation_at(i, Elementwise) for i in positions if i != position
    )
    require(len(square.inputs) > 0)
    x = square.inputs[0]
    require(
        (square.kind, square.scalars) == ("pow", (2.0,))
        or (square.kind, square.inputs) == ("mul", (x, x))
    )
    require(
        [step.kind for step in (epsilon, root, scaled, weighed)] == ["add", "rsqrt", "mul", "mul"]
    )
    weight = other_input(weighed, scaled.output)
    require(len(epsilon.scalars) == 1 and other_input(scaled, root.output) == x)
    require(
        mean.x == square.output
        and (mean.output,) == epsilon.inputs
        and (epsilon.output,) == root.inputs
    )
    require(mean.output.shape == (*x.shape[:-1], 1) and weight.shape == x.shape[-1:])
    require(square.output.shape == scaled.output.shape == weighed.output.shape == x.shape)
    epsilon_value, output = epsilon.scalars[0], weighed.output
    new = Norm(
        x=x,
        weight=weight,
        bias=None,
        epsilon=epsilon_value,
        centred=False,
        output=output,
        place=mean.place,
    )
    return Replacement(frozenset(positions), new, positions[-1])


def _gated_mlp(flow: DataFlow, position: int) -> Replacement:
    """The gated half of an MLP: two products with one input, an activation at this position, and
    their product.
    """
    activation = flow.operation_at(position, Elementwise)
    require(activation.kind in REAL and len(activation.inputs) == 1)
    last = flow.only_reader(activation.output)
    product = flow.operation_at(last, Elementwise)
    other = other_input(product, activation.output)
    require(
        product.kind == "mul" and other.shape == activation.output.shape == product.output.shape
    )
    gate, up = _product(flow, activation.inputs[0], position), _product(flow, other, last)
    first, second = flow.operation_at(gate, Gemv), flow.operation_at(up, Gemv)
    require(gate != up and first.x == second.x)
    require(first.products[0].matrix.shape == second.products[0].matrix.shape)
    matrices = {"gate": first.products[0].matrix, "up": second.products[0].matrix}
    output, act = product.output, activation.expression
    new = GatedGemv(x=first.x, **matrices, activation=act, output=output, place=activation.place)
    return Replacement(frozenset({position, last, gate, up}), new, last)


def _product(flow: DataFlow, view: TensorView, reader: int) -> int:
    """The position of the product without bias whose whole output is this view, read only by
    ``reader``.
    """
    found = flow.writer(view)
    products = flow.operation_at(found, Gemv).products
    require(len(products) == 1 and flow.only_reader(view) == reader)
    require(products[0].bias is None and products[0].output == view)
    return found


def _projections(flow: DataFlow, position: int) -> Replacement:
    """The projections to the new key and to the new value of the attention at this position, with
    their biases.
    """
    attention = flow.operation_at(position, Attention)
    found = {_projection(flow, view, position) for view in (attention.key, attention.value)}
    require(len(found) == 2)
    key, value = (flow.operation_at(i, Gemv) for i in sorted(found))
    require(key.x == value.x and len(key.products) == len(value.products) == 1)
    new = Gemv(x=key.x, products=(*key.products, *value.products), place=key.place)
    return Replacement(frozenset(found), new, min(found))


def _projection(flow: DataFlow, view: TensorView, before: int) -> int:
    """The position of the last product that contributes to this view; found by going back from
    writer to writer.
    """
    waiting, seen = [view], set[str]()
    products: list[int] = []
    while waiting:
        current = waiting.pop()
        if current.buffer in seen:
            continue
        seen.add(current.buffer)
        for i in flow.writers(current):
            if i < before and isinstance(flow.operations[i], Gemv):
                products.append(i)
            elif i < before:
                waiting += flow.operations[i].reads
    require(bool(products))
    return max(products)


def _residual_norm(flow: DataFlow, position: int) -> Replacement:
    """The norm at this position, if what it reads is the sum of two tensors. The new dispatch
    writes both results.
    """
    norm = flow.operation_at(position, Norm)
    before = flow.writer(norm.x)
    add = flow.operation_at(before, Elementwise)
    require(
        norm.residual is None
        and add.kind == "add"
        and add.output == norm.x
        and len(add.inputs) == 2
    )
    require(all(view.shape == norm.x.shape and view.number == "f32" for view in add.inputs))
    new = dataclasses.replace(norm, x=add.inputs[0], residual=add.inputs[1], total=add.output)
    return Replacement(frozenset({before, position}), new, position)


def _rotary(flow: DataFlow, position: int) -> Replacement:
    """The rotary embedding ``x * cos + concat(-high half of x, low half) * sin``; its concat is at
    this position.
    """
    concat = flow.operation_at(position, Concat)
    require(len(concat.inputs) == 2 and flow.only_reader(concat.inputs[0]) == position)
    negated, low_half = concat.inputs
    negate, turned = flow.writer(negated), flow.only_reader(concat.output)
    neg, sine = flow.operation_at(negate, Elementwise), flow.operation_at(turned, Elementwise)
    last = flow.only_reader(sine.output)
    add = flow.operation_at(last, Elementwise)
    product = other_input(add, sine.output)
    straight = flow.writer(product)
    cosine = flow.operation_at(straight, Elementwise)
    require(neg.output == negated and cosine.output == product)
    require([step.kind for step in (neg, sine, cosine, add)] == ["neg", "mul", "mul", "add"])
    require(flow.only_reader(cosine.output) == last)
    x, cos = _x_and_cos(cosine, low_half, neg.inputs[0])
    sin = other_input(sine, concat.output)
    require(add.output.shape == x.shape and concat.dimension == len(x.shape) - 1)
    new = Rotary(x=x, cos=cos, sin=sin, output=add.output, place=concat.place)
    return Replacement(frozenset({negate, position, turned, straight, last}), new, last)


def _x_and_cos(
    product: Elementwise, low_half: TensorView, high_half: TensorView
) -> tuple[TensorView, TensorView]:
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


def _attention(flow: DataFlow, position: int) -> Replacement:
    """The attention at this position takes over what stands between it and the cache.

    That is: the writes of the new key and value, and copies that repeat the heads of keys and
    values for the queries.
    """
    attention = flow.operation_at(position, Attention)
    require(not isinstance(attention, CachedAttention))
    key, key_copy = _before_copy(flow, attention.key, position)
    value, value_copy = _before_copy(flow, attention.value, position)
    removed = {position} | key_copy | value_copy
    new = dataclasses.replace(attention, key=key, value=value)
    with contextlib.suppress(NoMatch):
        at_key, write_key = _write(flow, key, position)
        at_value, write_value = _write(flow, value, position)
        require(write_key.index == write_value.index)
        removed |= {at_key, at_value}
        new = CachedAttention(
            **{field.name: getattr(new, field.name) for field in dataclasses.fields(new)},
            new_key=write_key.source,
            new_value=write_value.source,
            index=write_key.index,
        )
    require(len(removed) > 1)
    return Replacement(frozenset(removed), new, position)


def _before_copy(flow: DataFlow, view: TensorView, reader: int) -> tuple[TensorView, set[int]]:
    """The view whose heads were repeated to make this one, and the position of the copy; or else
    this view alone.
    """
    with contextlib.suppress(NoMatch):
        found = flow.writer(view)
        copy = flow.operation_at(found, Elementwise)
        require(copy.kind == "copy" and len(copy.inputs) == 1 and flow.only_reader(view) == reader)
        source = copy.inputs[0]
        require(
            len(source.shape) == 5 and source.strides[2] == 0 and copy.output.count == view.count
        )
        batch, heads, repeats, rows, width = source.shape
        require(
            view == packed_view(view.buffer, view.number, (batch, heads * repeats, rows, width))
        )
        strides = (*source.strides[:2], *source.strides[3:])
        return dataclasses.replace(source, shape=(batch, heads, rows, width), strides=strides), {
            found
        }
    return view, set()


def _write(flow: DataFlow, cache: TensorView, before: int) -> tuple[int, IndexWrite]:
    """The position of the only write of one row into this cache, if it comes before the attention;
    and the write.
    """
    writers = flow.writers(cache)
    require(len(writers) == 1 and writers[0] < before)
    write = flow.operation_at(writers[0], IndexWrite)
    require(write.target == cache and write.dimension == 2 and write.source.shape[2] == 1)
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
    """The program after these fusions. Its ``savings`` has one entry for each, even if it saved
    nothing.
    """
    for name in names:
        if name not in FUSIONS:
            raise UsageError(f"no fusion is named {name!r}; there are {', '.join(FUSIONS)}")
        before = program
        program = replace_matches(before, FUSIONS[name])
        saving = Saving(name, len(before.operations), len(program.operations))
        program = program.with_operations(program.operations, saving)
    return program
