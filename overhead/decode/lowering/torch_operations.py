"""The operations of PyTorch: views, which cost nothing, and those that become dispatches."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from overhead.decode.lowering import elementwise_table as table
from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.operation import GROUP_THREADS, SHARED_NUMBERS
from overhead.decode.lowering.sink import Sink, refused
from overhead.decode.lowering.templates.argmax import Argmax
from overhead.decode.lowering.templates.attention import Attention
from overhead.decode.lowering.templates.concat import Concat
from overhead.decode.lowering.templates.gather import Gather
from overhead.decode.lowering.templates.gemv import Gemv, MatrixProduct
from overhead.decode.lowering.templates.index_write import IndexWrite
from overhead.decode.lowering.templates.norm import Norm
from overhead.decode.lowering.templates.row_reduction import RowReduction
from overhead.decode.lowering.templates.softmax import Softmax
from overhead.decode.lowering.tensors import row_last, viewed
from overhead.decode.lowering.torch_elementwise import converted, copied, elementwise, gelu, power

IGNORED = {"_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range_for_size"}
"""Checks that compute nothing."""
_VIEWS = {
    "view", "reshape", "_unsafe_view", "transpose", "permute", "unsqueeze", "squeeze", "expand", "slice", "select", "t",
    "alias", "detach", "flatten", "unflatten", "contiguous", "split", "split_with_sizes", "chunk", "unbind", "narrow",
    "movedim", "expand_as", "view_as", "numpy_T",
}  # fmt: skip


def name_of(target: Any) -> str:
    """The name of an operation without its overload, such as ``add``."""
    return str(target._schema.name).removeprefix("aten::")


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
        return elementwise(sink, kind, result, arguments, in_place=name.endswith("_"))
    raise refused(sink, name, "is not supported")


def _view(sink: Sink, target: Any, arguments: dict[str, Any]) -> Any:
    source, *others = arguments.values()
    rest = [torch.empty(v.shape, device="meta") if isinstance(v, TensorView) else v for v in others]
    names = [a.name for a in target._schema.arguments if a.kwarg_only]
    named = dict(zip(names, rest[len(rest) - len(names) :], strict=True))
    positional = rest[: len(rest) - len(names)]

    def change(tensor: Any) -> Any:
        return target(tensor, *positional, **named)

    return _viewed(sink, sink.view(source), change)


def _viewed(sink: Sink, source: TensorView, change: Callable[[Any], Any]) -> Any:
    """What the operation makes of the view, after a copy where it would need one."""
    found = viewed(source, change)
    return viewed(copied(sink, source), change) if found is None else found


def _linear(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    return _product(sink, arguments["input"], sink.view(arguments["weight"]), arguments["bias"], result)


def _matrix_product(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    """``mm(self, mat2)``, ``matmul(self, other)`` and ``addmm(self, mat1, mat2)`` with a matrix on the right."""
    bias = arguments["self"] if "mat1" in arguments else None
    left = arguments.get("mat1", arguments["self"])
    right = sink.view(arguments.get("mat2", arguments.get("other")))
    if len(right.shape) != 2 or arguments.get("alpha", 1) != 1 or arguments.get("beta", 1) != 1:
        raise refused(sink, "matmul", "is supported only with a matrix on the right, without alpha and beta")
    return _product(sink, left, row_last(right, 0), bias, result)


def _product(sink: Sink, x: Any, matrix: TensorView, bias: Any, result: Any) -> TensorView:
    output = sink.temporary("f32", result.shape)
    added = sink.view(bias) if bias is not None else None
    sink.dispatch(Gemv(x=sink.view(x), products=(MatrixProduct(matrix, added, output),)))
    return output


def _reduction(kind: Any) -> Callable[[Sink, Any, dict[str, Any]], TensorView]:
    def reduced(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
        x = sink.view(arguments["self"])
        along = arguments.get("dim") or range(len(x.shape))
        if (x.number, result.dtype) != ("f32", torch.float32) or len(along) not in (1, len(x.shape)):
            raise refused(sink, kind, "is supported only for f32, along one dimension or all")
        if len(along) != 1:
            x, along = _viewed(sink, x, lambda tensor: tensor.reshape(-1)), (0,)
        output = sink.temporary("f32", result.shape)
        sink.dispatch(RowReduction(kind=kind, x=row_last(x, along[0]), output=output))
        return output

    return reduced


def _softmax(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    x, output = sink.view(arguments["self"]), sink.temporary("f32", result.shape)
    along = arguments["dim"]
    sink.dispatch(Softmax(x=row_last(x, along), output=row_last(output, along)))
    return output


def _norm(sink: Sink, result: Any, arguments: dict[str, Any], *, centred: bool) -> TensorView:
    if len(arguments["normalized_shape"]) != 1:
        raise refused(sink, "norm", "is supported only over the last dimension")
    weight, bias = (None if arguments.get(name) is None else sink.view(arguments[name]) for name in ("weight", "bias"))
    epsilon = arguments["eps"]
    epsilon = torch.finfo(torch.float32).eps if epsilon is None else float(epsilon)
    output, x = sink.temporary("f32", result.shape), sink.view(arguments["input"])
    sink.dispatch(Norm(x=x, weight=weight, bias=bias, epsilon=epsilon, centred=centred, output=output))
    return output


def _concat(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    inputs = tuple(sink.view(part) for part in arguments["tensors"])
    output = sink.temporary(inputs[0].number, result.shape)
    sink.dispatch(Concat(inputs=inputs, dimension=arguments["dim"] % len(result.shape), output=output))
    return output


def _embedding(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    table_view = sink.view(arguments.get("weight", arguments.get("self")))
    index = arguments.get("indices", arguments.get("index"))
    if arguments.get("dim", 0) != 0:
        raise refused(sink, "index_select", "is supported only along the first dimension")
    output = sink.temporary(table_view.number, result.shape)
    sink.dispatch(Gather(table=table_view, index=sink.view(index), output=output))
    return output


def _index_copy(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    return _index_written(sink, arguments["self"], arguments["dim"], arguments["index"], arguments["source"])


def _index_put(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    given = [(i, index) for i, index in enumerate(arguments["indices"]) if index is not None]
    if len(given) != 1 or arguments["accumulate"]:
        raise refused(sink, "index_put_", "is supported only with one index tensor, without accumulate")
    ((dimension, index),) = given
    target, index_view = sink.view(arguments["self"]), sink.view(index)
    shape = (*target.shape[:dimension], *index_view.shape, *target.shape[dimension + 1 :])
    if len(index_view.shape) != 1 or index_view.number != "i32":
        raise refused(sink, "index_put_", "is supported only with an index of one dimension")
    return _index_written(sink, target, dimension, index_view, sink.view(arguments["values"]).broadcast(shape))


def _index_written(sink: Sink, target: Any, dimension: int, index: Any, source: Any) -> TensorView:
    into, taken = sink.view(target), sink.view(source)
    if into.number != taken.number:
        raise refused(sink, "index_copy_", "is supported only for tensors of one type")
    along = dimension % len(into.shape)
    sink.dispatch(IndexWrite(target=into, dimension=along, index=sink.view(index), source=taken))
    return into


def _attention(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    name = "scaled_dot_product_attention"
    query, key, value = (sink.view(arguments[part]) for part in ("query", "key", "value"))
    if len(query.shape) != 4 or arguments["dropout_p"] or key.shape[2] > SHARED_NUMBERS - GROUP_THREADS:
        most = SHARED_NUMBERS - GROUP_THREADS
        raise refused(sink, name, f"is supported only with four dimensions, without dropout, to {most} keys")
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


def _argmax(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    x, along = sink.view(arguments["self"]), arguments["dim"]
    if along is None:
        if len(x.shape) != 1:
            raise refused(sink, "argmax", "is supported only along one dimension")
        along = 0
    if x.shape[along] > 1 << 24:
        raise refused(sink, "argmax", "is supported only to 2^24 columns")
    output = sink.temporary("i32", result.shape)
    sink.dispatch(Argmax(x=row_last(x, along), output=output))
    return output


def _unchanged(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    name = "input" if "input" in arguments else "self"
    if arguments.get("train"):
        raise refused(sink, "dropout", "is supported only in evaluation")
    return sink.view(arguments[name])


_OWN: dict[str, Callable[[Sink, Any, dict[str, Any]], TensorView]] = {
    "to": converted,
    "_to_copy": converted,
    "type_as": converted,
    "pow": power,
    "gelu": gelu,
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
