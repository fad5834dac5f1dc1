"""The operations of PyTorch: views, which cost nothing, and those that become dispatches."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Protocol

import torch

from overhead.lowering import elementwise_table as table
from overhead.lowering.buffers import Number, View
from overhead.lowering.operation import SHARED_NUMBERS, THREADS, Operation, UnsupportedOperation
from overhead.lowering.templates.argmax import Argmax
from overhead.lowering.templates.attention import Attention
from overhead.lowering.templates.concat import Concat
from overhead.lowering.templates.elementwise import Elementwise
from overhead.lowering.templates.gather import Gather
from overhead.lowering.templates.gemv import Gemv, Product
from overhead.lowering.templates.index_write import IndexWrite
from overhead.lowering.templates.norm import Norm
from overhead.lowering.templates.row_reduction import RowReduction
from overhead.lowering.templates.softmax import Softmax
from overhead.lowering.tensors import number_of, row_last, viewed

IGNORED = {"_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range_for_size"}
"""Checks that compute nothing."""
_VIEWS = {
    "view", "reshape", "_unsafe_view", "transpose", "permute", "unsqueeze", "squeeze", "expand", "slice", "select", "t",
    "alias", "detach", "flatten", "unflatten", "contiguous", "split", "split_with_sizes", "chunk", "unbind", "narrow",
    "movedim", "expand_as", "view_as", "numpy_T",
}  # fmt: skip


class Sink(Protocol):
    """What receives buffers and dispatches: the reader of the graph."""

    place: str

    def view(self, value: Any) -> View: ...
    def temporary(self, number: Number, shape: Any) -> View: ...
    def dispatch(self, operation: Operation) -> None: ...


def lowered(sink: Sink, target: Any, result: Any, arguments: dict[str, Any]) -> Any:
    """The value of a call of ``target``, after appending its dispatches. ``result``: its shape and type.

    Raises ``UnsupportedOperation``.
    """
    name = name_of(target)
    if name in _VIEWS:
        return _view(sink, target, arguments)
    if name in _OWN:
        return _OWN[name](sink, result, arguments)
    kind = name.removesuffix("_")
    if kind in table.ARITHMETIC or kind in table.REAL or kind in table.COMPARISONS:
        return _elementwise(sink, kind, result, arguments, in_place=name.endswith("_"))
    raise _refused(sink, name, "is not supported")


def name_of(target: Any) -> str:
    """The name of an operation without its overload, such as ``add``."""
    return str(target._schema.name).removeprefix("aten::")


def _refused(sink: Sink, name: str, why: str) -> UnsupportedOperation:
    return UnsupportedOperation(f"{sink.place}: the operation aten.{name} {why}")


def _view(sink: Sink, target: Any, arguments: dict[str, Any]) -> Any:
    source, *others = arguments.values()
    rest = [torch.empty(v.shape, device="meta") if isinstance(v, View) else v for v in others]
    names = [a.name for a in target._schema.arguments if a.kwarg_only]
    named = dict(zip(names, rest[len(rest) - len(names) :], strict=True))
    positional = rest[: len(rest) - len(names)]

    def change(tensor: Any) -> Any:
        return target(tensor, *positional, **named)

    source = sink.view(source)
    found = viewed(source, change)
    return viewed(_copied(sink, source), change) if found is None else found


def _copied(sink: Sink, source: View) -> View:
    made = sink.temporary(source.number, source.shape)
    sink.dispatch(Elementwise(kind="copy", expression="x0", inputs=(source,), output=made))
    return made


def _converted(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    source, wanted = sink.view(arguments["self"]), number_of(result.dtype, sink.place)
    if source.number == wanted:
        return source
    made = sink.temporary(wanted, source.shape)
    expression = table.converted("x0", source.number, wanted)
    sink.dispatch(Elementwise(kind="convert", expression=expression, inputs=(source,), output=made))
    return made


def _elementwise(sink: Sink, kind: str, result: Any, arguments: dict[str, Any], *, in_place: bool) -> View:
    if arguments.get("alpha", 1) != 1 or arguments.get("rounding_mode"):
        raise _refused(sink, kind, "is supported only without alpha and rounding_mode")
    operands = [arguments[name] for name in ("self", "other", "src") if name in arguments]
    made = number_of(result.dtype, sink.place)
    if kind in table.COMPARISONS:
        tensors = [_example(sink, operand) for operand in operands]
        taken = number_of(torch.result_type(*tensors), sink.place)
        left, right = "{0}", "{1}"
        form = f"select(0u, 1u, {left} {table.COMPARISONS[kind]} {right})"
    else:
        taken = "f32" if kind in table.REAL else made
        form = table.REAL.get(kind) or table.ARITHMETIC[kind]
    if kind == "copy":  # copy_(self, src) reads only src
        form = "{1}"
    return _expressed(sink, kind, form, operands, taken, result, operands[0] if in_place else None)


def _expressed(
    sink: Sink, kind: str, form: str, operands: list[Any], taken: Number, result: Any, into: Any = None
) -> View:
    """The result of an expression whose operands are tensors or numbers, converted to the type ``taken``."""
    inputs: list[View] = []
    texts, scalars = [], []
    for position, operand in enumerate(operands):
        if isinstance(operand, int | float):
            texts.append(table.literal(operand, taken))
            scalars.append(float(operand))
        elif f"{{{position}}}" not in form:
            texts.append("")
        else:
            view = sink.view(operand)
            texts.append(table.converted(f"x{len(inputs)}", view.number, taken))
            inputs.append(view)
    output = sink.temporary(number_of(result.dtype, sink.place), result.shape) if into is None else sink.view(into)
    if any(view.buffer == output.buffer and view != output for view in inputs):
        raise _refused(sink, kind, "writes into a tensor that it reads in another order")
    expression = form.format(*texts)
    sink.dispatch(
        Elementwise(kind=kind, expression=expression, inputs=tuple(inputs), output=output, scalars=tuple(scalars))
    )
    return output


def _example(sink: Sink, operand: Any) -> Any:
    if isinstance(operand, int | float):
        return operand
    view = sink.view(operand)
    dtype = {"f32": torch.float32, "i32": torch.int64, "u32": torch.bool}[view.number]
    return torch.empty(view.shape, dtype=dtype, device="meta")


def _power(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    exponent = arguments["exponent"]
    if not isinstance(exponent, int | float):
        raise _refused(sink, "pow", "is supported only with a constant exponent")
    return _expressed(sink, "pow", table.power(float(exponent)), [arguments["self"], exponent], "f32", result)


def _gelu(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    kind = "tanh_gelu" if arguments["approximate"] == "tanh" else "erf_gelu"
    return _expressed(sink, kind, table.REAL[kind], [arguments["self"]], "f32", result)


def _linear(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    return _product(sink, arguments["input"], sink.view(arguments["weight"]), arguments["bias"], result)


def _matrix_product(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    """``mm(self, mat2)``, ``matmul(self, other)`` and ``addmm(self, mat1, mat2)`` with a matrix on the right."""
    bias = arguments["self"] if "mat1" in arguments else None
    left = arguments.get("mat1", arguments["self"])
    right = sink.view(arguments.get("mat2", arguments.get("other")))
    if len(right.shape) != 2 or arguments.get("alpha", 1) != 1 or arguments.get("beta", 1) != 1:
        raise _refused(sink, "matmul", "is supported only with a matrix on the right, without alpha and beta")
    return _product(sink, left, row_last(right, 0), bias, result)


def _product(sink: Sink, x: Any, matrix: View, bias: Any, result: Any) -> View:
    output = sink.temporary("f32", result.shape)
    added = sink.view(bias) if bias is not None else None
    sink.dispatch(Gemv(x=sink.view(x), products=(Product(matrix, added, output),)))
    return output


def _reduction(kind: Any) -> Callable[[Sink, Any, dict[str, Any]], View]:
    def reduced(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
        x, dimensions = sink.view(arguments["self"]), arguments["dim"]
        if x.number != "f32" or not dimensions or len(dimensions) != 1:
            raise _refused(sink, kind, "is supported only for f32 along one dimension")
        output = sink.temporary("f32", result.shape)
        sink.dispatch(RowReduction(kind=kind, x=row_last(x, dimensions[0]), output=output))
        return output

    return reduced


def _softmax(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    x, output = sink.view(arguments["self"]), sink.temporary("f32", result.shape)
    along = arguments["dim"]
    sink.dispatch(Softmax(x=row_last(x, along), output=row_last(output, along)))
    return output


def _norm(sink: Sink, result: Any, arguments: dict[str, Any], *, centred: bool) -> View:
    if len(arguments["normalized_shape"]) != 1:
        raise _refused(sink, "norm", "is supported only over the last dimension")
    weight, bias = (
        None if arguments.get(name) is None else sink.view(arguments[name]) for name in ("weight", "bias")
    )
    epsilon = arguments["eps"]
    epsilon = torch.finfo(torch.float32).eps if epsilon is None else float(epsilon)
    output, x = sink.temporary("f32", result.shape), sink.view(arguments["input"])
    sink.dispatch(Norm(x=x, weight=weight, bias=bias, epsilon=epsilon, centred=centred, output=output))
    return output


def _concat(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    inputs = tuple(sink.view(part) for part in arguments["tensors"])
    output = sink.temporary(inputs[0].number, result.shape)
    sink.dispatch(Concat(inputs=inputs, dimension=arguments["dim"] % len(result.shape), output=output))
    return output


def _embedding(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    table_view = sink.view(arguments.get("weight", arguments.get("self")))
    index = arguments.get("indices", arguments.get("index"))
    if arguments.get("dim", 0) != 0:
        raise _refused(sink, "index_select", "is supported only along the first dimension")
    output = sink.temporary(table_view.number, result.shape)
    sink.dispatch(Gather(table=table_view, index=sink.view(index), output=output))
    return output


def _index_copy(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    return _index_written(sink, arguments["self"], arguments["dim"], arguments["index"], arguments["source"])


def _index_put(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    given = [(i, index) for i, index in enumerate(arguments["indices"]) if index is not None]
    if len(given) != 1 or arguments["accumulate"]:
        raise _refused(sink, "index_put_", "is supported only with one index tensor, without accumulate")
    ((dimension, index),) = given
    target, index_view = sink.view(arguments["self"]), sink.view(index)
    shape = (*target.shape[:dimension], *index_view.shape, *target.shape[dimension + 1 :])
    if len(index_view.shape) != 1 or index_view.number != "i32":
        raise _refused(sink, "index_put_", "is supported only with an index of one dimension")
    return _index_written(sink, target, dimension, index_view, sink.view(arguments["values"]).broadcast(shape))


def _index_written(sink: Sink, target: Any, dimension: int, index: Any, source: Any) -> View:
    into, taken = sink.view(target), sink.view(source)
    if into.number != taken.number:
        raise _refused(sink, "index_copy_", "is supported only for tensors of one type")
    along = dimension % len(into.shape)
    sink.dispatch(IndexWrite(target=into, dimension=along, index=sink.view(index), source=taken))
    return into


def _attention(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    name = "scaled_dot_product_attention"
    query, key, value = (sink.view(arguments[part]) for part in ("query", "key", "value"))
    if len(query.shape) != 4 or arguments["dropout_p"] or key.shape[2] > SHARED_NUMBERS - THREADS:
        most = SHARED_NUMBERS - THREADS
        raise _refused(sink, name, f"is supported only with four dimensions, without dropout, to {most} keys")
    output = sink.temporary("f32", result.shape)
    scale = arguments.get("scale")
    sink.dispatch(
        Attention(
            query=query,
            key=key,
            value=value,
            mask=None if arguments["attn_mask"] is None else sink.view(arguments["attn_mask"]),
            scale=1 / math.sqrt(query.shape[-1]) if scale is None else float(scale),
            causal=bool(arguments["is_causal"]),
            output=output,
        )
    )
    return output


def _argmax(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    x, along = sink.view(arguments["self"]), arguments["dim"]
    if along is None:
        if len(x.shape) != 1:
            raise _refused(sink, "argmax", "is supported only along one dimension")
        along = 0
    if x.shape[along] > 1 << 24:
        raise _refused(sink, "argmax", "is supported only to 2^24 columns")
    output = sink.temporary("i32", result.shape)
    sink.dispatch(Argmax(x=row_last(x, along), output=output))
    return output


def _unchanged(sink: Sink, result: Any, arguments: dict[str, Any]) -> View:
    name = "input" if "input" in arguments else "self"
    if arguments.get("train"):
        raise _refused(sink, "dropout", "is supported only in evaluation")
    return sink.view(arguments[name])


_OWN: dict[str, Callable[[Sink, Any, dict[str, Any]], View]] = {
    "to": _converted,
    "_to_copy": _converted,
    "type_as": _converted,
    "pow": _power,
    "gelu": _gelu,
    "linear": _linear,
    "mm": _matrix_product,
    "matmul": _matrix_product,
    "addmm": _matrix_product,
    "mean": _reduction("mean"),
    "sum": _reduction("sum"),
    "amax": _reduction("max"),
    "softmax": _softmax,
    "_softmax": _softmax,
    "layer_norm": functools.partial(_norm, centred=True),
    "rms_norm": functools.partial(_norm, centred=False),
    "cat": _concat,
    "embedding": _embedding,
    "index_select": _embedding,
    "index_copy_": _index_copy,
    "index_put_": _index_put,
    "scaled_dot_product_attention": _attention,
    "argmax": _argmax,
    "dropout": _unchanged,
}
