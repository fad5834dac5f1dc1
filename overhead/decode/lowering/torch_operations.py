"""The operations of PyTorch: views, which cost nothing, and those that become dispatches.

Shapes and strides come from PyTorch itself, by tensors without data.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch

from overhead.decode.lowering.buffers import Buffer, NumberType, Role, TensorView, packed_view
from overhead.decode.lowering.operation import (
    GROUP_THREADS,
    SHARED_NUMBERS,
    Operation,
    UnsupportedOperation,
)
from overhead.decode.lowering.templates import elementwise as table
from overhead.decode.lowering.templates.attention import Attention
from overhead.decode.lowering.templates.elementwise import Concat, Elementwise, Gather, IndexWrite
from overhead.decode.lowering.templates.gemv import Gemv, MatrixProduct
from overhead.decode.lowering.templates.row_reduction import Argmax, Norm, RowReduction

IGNORED = {
    "_assert_tensor_metadata",
    "_assert_scalar",
    "_assert_async",
    "sym_constrain_range_for_size",
}
"""Checks that compute nothing."""
_VIEWS = {
    "view", "reshape", "_unsafe_view", "transpose", "permute", "unsqueeze", "squeeze", "expand",
    "slice", "select", "t", "alias", "detach", "flatten", "unflatten", "contiguous", "split",
    "split_with_sizes", "chunk", "unbind", "narrow", "movedim", "expand_as", "view_as", "numpy_T",
}  # fmt: skip
_NUMBERS: dict[Any, NumberType] = {
    torch.float32: "f32",
    torch.int64: "i32",
    torch.int32: "i32",
    torch.bool: "u32",
}
_DTYPES = {"f32": torch.float32, "i32": torch.int64, "u32": torch.bool}
CallArguments = dict[str, Any]


def operation_name(target: Any) -> str:
    """The name of an operation without its overload, such as ``add``."""
    return str(target._schema.name).removeprefix("aten::")


def number_type(dtype: Any, place: str) -> NumberType:
    """The type of the numbers of a tensor on the device. Integers are kept as 32 bits."""
    if dtype not in _NUMBERS:
        raise UnsupportedOperation(
            f"{place}: tensors of {dtype} cannot be lowered; float32, int64 and bool can"
        )
    return _NUMBERS[dtype]


def _changed_view(
    view: TensorView, change: Callable[[Any], Any]
) -> TensorView | list[TensorView] | None:
    """What an operation of PyTorch that returns views makes of this view; None if it would have to
    copy.
    """
    last = view.offset + sum(
        (size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True)
    )
    base = torch.empty(max(last + 1, 1), device="meta")
    changed = change(base.as_strided(view.shape, view.strides, view.offset))
    parts = list(changed) if isinstance(changed, list | tuple) else [changed]
    if any(part.untyped_storage()._cdata != base.untyped_storage()._cdata for part in parts):
        return None
    views = [
        dataclasses.replace(
            view, shape=tuple(p.shape), strides=tuple(p.stride()), offset=p.storage_offset()
        )
        for p in parts
    ]
    return views if isinstance(changed, list | tuple) else views[0]


def _with_rows_along(view: TensorView, dimension: int) -> TensorView:
    """The view with this dimension moved to the end, so that it spans the rows."""
    order = [i for i in range(len(view.shape)) if i != dimension % len(view.shape)] + [
        dimension % len(view.shape)
    ]
    shape, strides = (tuple(values[i] for i in order) for values in (view.shape, view.strides))
    return dataclasses.replace(view, shape=shape, strides=strides)


@dataclasses.dataclass(frozen=True)
class Folded:
    """A tensor whose values are known when the module is lowered, such as ``torch.arange(64)``."""

    tensor: Any


class OperationReader:
    """Turns calls of PyTorch's operations into dispatches, and collects these and their buffers.

    ``place``: the submodule whose forward is being read. In the methods, ``result`` is an example
    of the operation's result, and ``given`` has its arguments by name.
    """

    def __init__(self) -> None:
        self.place = "the module"
        self._buffers: dict[str, Buffer] = {}
        self._operations: list[Operation] = []
        self._numbered = itertools.count()

    def as_view(self, value: Any) -> TensorView:
        """The value as a view; known values are written into a new constant. Raises
        ``UnsupportedOperation``.
        """
        if isinstance(value, TensorView):
            return value
        if not isinstance(value, Folded):
            raise UnsupportedOperation(f"{self.place}: {value!r} is no tensor")
        tensor, name = value.tensor, f"constant_{next(self._numbered)}"
        values = tuple(tensor.reshape(-1).tolist())
        return self._buffer(
            name, number_type(tensor.dtype, self.place), tuple(tensor.shape), "constant", values
        )

    def new_temporary(self, number: NumberType, shape: Iterable[int]) -> TensorView:
        """A view of a new temporary buffer in row-major order."""
        return self._buffer(f"t{next(self._numbered)}", number, tuple(shape), "temporary")

    def _buffer(
        self,
        name: str,
        number: NumberType,
        shape: tuple[int, ...],
        role: Role,
        values: tuple[Any, ...] = (),
    ) -> TensorView:
        view = packed_view(name, number, shape)
        self._buffers[name] = Buffer(name, number, view.count, role, values)
        return view

    def append_dispatch(self, operation: Operation) -> None:
        """Append a dispatch, which comes from ``place``."""
        self._operations.append(dataclasses.replace(operation, place=self.place))

    def lower_call(self, target: Any, result: Any, given: CallArguments) -> Any:
        """The value of a call of ``target``, after appending its dispatches. Raises
        ``UnsupportedOperation``.
        """
        name = operation_name(target)
        if name in _VIEWS:
            return self._view(target, given)
        if name in _OWN:
            return _OWN[name](self, result, given)
        kind = name.removesuffix("_")
        if kind in table.ARITHMETIC or kind in table.REAL or kind in table.COMPARISONS:
            return self._elementwise(kind, result, given, in_place=name.endswith("_"))
        raise self._refused(name, "is not supported")

    def copied(self, source: TensorView) -> TensorView:
        """A new temporary with the numbers of this view, after appending the dispatch that copies
        them.
        """
        copy = self.new_temporary(source.number, source.shape)
        self.append_dispatch(
            Elementwise(kind="copy", expression="x0", inputs=(source,), output=copy)
        )
        return copy

    def _refused(self, name: str, why: str) -> UnsupportedOperation:
        return UnsupportedOperation(f"{self.place}: the operation aten.{name} {why}")

    def _view(self, target: Any, given: CallArguments) -> Any:
        (_, source), *others = given.items()
        rest = {
            name: torch.empty(v.shape, device="meta") if isinstance(v, TensorView) else v
            for name, v in others
        }
        return self._viewed(self.as_view(source), lambda tensor: target(tensor, **rest))

    def _viewed(self, source: TensorView, change: Callable[[Any], Any]) -> Any:
        """What the operation makes of the view, after a copy where it would need one."""
        found = _changed_view(source, change)
        return _changed_view(self.copied(source), change) if found is None else found

    def _converted(self, result: Any, given: CallArguments) -> TensorView:
        source, wanted = self.as_view(given["self"]), number_type(result.dtype, self.place)
        if source.number == wanted:
            return self.copied(source) if given.get("copy") else source
        made = self.new_temporary(wanted, source.shape)
        expression = table.converted("x0", source.number, wanted)
        self.append_dispatch(
            Elementwise(kind="convert", expression=expression, inputs=(source,), output=made)
        )
        return made

    def _elementwise(
        self, kind: str, result: Any, given: CallArguments, *, in_place: bool
    ) -> TensorView:
        if given.get("alpha", 1) != 1 or given.get("rounding_mode"):
            raise self._refused(kind, "is supported only without alpha and rounding_mode")
        operands = [given[name] for name in ("self", "other", "src") if name in given]
        taken = "f32" if kind in table.REAL else number_type(result.dtype, self.place)
        form = table.REAL.get(kind) or table.ARITHMETIC.get(kind, "")
        if kind in table.COMPARISONS:
            taken = number_type(torch.result_type(*map(self._example, operands)), self.place)
            form = f"select(0u, 1u, {{0}} {table.COMPARISONS[kind]} {{1}})"
        if kind == "add" and result.dtype == torch.bool:
            form = "{0} | {1}"
        if kind == "copy":  # copy_(self, src) reads only src
            form = "{1}"
        return self._expressed(
            kind, form, operands, taken, result, operands[0] if in_place else None
        )

    def _example(self, operand: Any) -> Any:
        if isinstance(operand, int | float):
            return operand
        view = self.as_view(operand)
        return torch.empty(view.shape, dtype=_DTYPES[view.number], device="meta")

    def _expressed(
        self,
        kind: str,
        form: str,
        operands: list[Any],
        taken: NumberType,
        result: Any,
        into: Any = None,
    ) -> TensorView:
        """The result of the expression on tensors or numbers. Operands are first converted to the
        type ``taken``.
        """
        inputs: list[TensorView] = []
        texts, scalars = [], []
        for position, operand in enumerate(operands):
            if isinstance(operand, int | float):
                texts.append(table.literal(operand, taken))
                scalars.append(float(operand))
            elif f"{{{position}}}" not in form:
                texts.append("")
            else:
                view = self.as_view(operand)
                texts.append(table.converted(f"x{len(inputs)}", view.number, taken))
                inputs.append(view)
        output = self._output(result) if into is None else self.as_view(into)
        if any(view.buffer == output.buffer and view != output for view in inputs):
            raise self._refused(kind, "writes into a tensor that it reads in another order")
        new = Elementwise(
            kind=kind, expression=form.format(*texts), inputs=tuple(inputs), output=output
        )
        self.append_dispatch(dataclasses.replace(new, scalars=tuple(scalars)))
        return output

    def _output(self, result: Any) -> TensorView:
        return self.new_temporary(number_type(result.dtype, self.place), result.shape)

    def _power(self, result: Any, given: CallArguments) -> TensorView:
        exponent = given["exponent"]
        if not isinstance(exponent, int | float):
            raise self._refused("pow", "is supported only with a constant exponent")
        return self._expressed(
            "pow", table.power(float(exponent)), [given["self"], exponent], "f32", result
        )

    def _gelu(self, result: Any, given: CallArguments) -> TensorView:
        kind = "tanh_gelu" if given["approximate"] == "tanh" else "erf_gelu"
        return self._expressed(kind, table.REAL[kind], [given["self"]], "f32", result)

    def _linear(self, result: Any, given: CallArguments) -> TensorView:
        return self._product(given["input"], self.as_view(given["weight"]), given["bias"], result)

    def _matmul(self, result: Any, given: CallArguments) -> TensorView:
        right = self.as_view(given["other"])
        if len(right.shape) != 2:
            raise self._refused("matmul", "is supported only with a matrix on the right")
        return self._product(given["self"], _with_rows_along(right, 0), None, result)

    def _product(self, x: Any, matrix: TensorView, bias: Any, result: Any) -> TensorView:
        added, output = self._optional(bias), self._output(result)
        self.append_dispatch(
            Gemv(x=self.as_view(x), products=(MatrixProduct(matrix, added, output),))
        )
        return output

    def _optional(self, value: Any) -> TensorView | None:
        return None if value is None else self.as_view(value)

    def _reduced(
        self, kind: Literal["sum", "mean", "max"], result: Any, given: CallArguments
    ) -> TensorView:
        x = self.as_view(given["self"])
        if 0 in x.shape:
            raise self._refused(kind, "is not supported for an empty tensor")
        x = x if x.shape else self._viewed(x, lambda tensor: tensor.reshape(1))
        along = given.get("dim") or range(len(x.shape))
        if (x.number, result.dtype) != ("f32", torch.float32) or len(along) not in (
            1,
            len(x.shape),
        ):
            raise self._refused(kind, "is supported only for f32, along one dimension or all")
        if len(along) != 1:
            x, along = self._viewed(x, lambda tensor: tensor.reshape(-1)), (0,)
        output = self._output(result)
        self.append_dispatch(
            RowReduction(kind=kind, x=_with_rows_along(x, along[0]), output=output)
        )
        return output

    def _norm(self, result: Any, given: CallArguments, *, centred: bool) -> TensorView:
        if len(given["normalized_shape"]) != 1:
            raise self._refused("norm", "is supported only over the last dimension")
        weight, bias = (self._optional(given.get(name)) for name in ("weight", "bias"))
        epsilon = torch.finfo(torch.float32).eps if given["eps"] is None else float(given["eps"])
        output, x = self._output(result), self.as_view(given["input"])
        self.append_dispatch(
            Norm(x=x, weight=weight, bias=bias, epsilon=epsilon, centred=centred, output=output)
        )
        return output

    def _concat(self, result: Any, given: CallArguments) -> TensorView:
        inputs, output = tuple(map(self.as_view, given["tensors"])), self._output(result)
        self.append_dispatch(
            Concat(inputs=inputs, dimension=given["dim"] % len(result.shape), output=output)
        )
        return output

    def _embedding(self, result: Any, given: CallArguments) -> TensorView:
        rows, output = self.as_view(given["weight"]), self._output(result)
        self.append_dispatch(
            Gather(table=rows, index=self.as_view(given["indices"]), output=output)
        )
        return output

    def _index_copy(self, result: Any, given: CallArguments) -> TensorView:
        into, source = self.as_view(given["self"]), self.as_view(given["source"])
        if into.number != source.number:
            raise self._refused("index_copy_", "is supported only for tensors of one type")
        along, index = given["dim"] % len(into.shape), self.as_view(given["index"])
        self.append_dispatch(IndexWrite(target=into, dimension=along, index=index, source=source))
        return into

    def _attention(self, result: Any, given: CallArguments) -> TensorView:
        query, key, value = (self.as_view(given[part]) for part in ("query", "key", "value"))
        most = SHARED_NUMBERS - GROUP_THREADS
        if len(query.shape) != 4 or given["dropout_p"] or key.shape[2] > most:
            why = f"is supported only with four dimensions, without dropout, to {most} keys"
            raise self._refused("scaled_dot_product_attention", why)
        if (
            query.shape[1] % key.shape[1]
            or key.shape[:2] != value.shape[:2]
            or key.shape[0] != query.shape[0]
        ):
            raise self._refused(
                "scaled_dot_product_attention", "is not supported for these batches and heads"
            )
        output, mask, causal = (
            self._output(result),
            self._optional(given["attn_mask"]),
            bool(given["is_causal"]),
        )
        scale = (
            1 / math.sqrt(query.shape[-1]) if given.get("scale") is None else float(given["scale"])
        )
        self.append_dispatch(
            Attention(
                query=query,
                key=key,
                value=value,
                mask=mask,
                scale=scale,
                causal=causal,
                output=output,
            )
        )
        return output

    def _argmax(self, result: Any, given: CallArguments) -> TensorView:
        x, along = self.as_view(given["self"]), given["dim"]
        if not x.shape or (along is None and len(x.shape) != 1) or x.shape[along or 0] > 1 << 24:
            raise self._refused("argmax", "is supported only along one dimension, to 2^24 columns")
        output = self.new_temporary("i32", result.shape)
        self.append_dispatch(Argmax(x=_with_rows_along(x, along or 0), output=output))
        return output

    def _dropout(self, result: Any, given: CallArguments) -> TensorView:
        if given["train"]:
            raise self._refused("dropout", "is supported only in evaluation")
        return self.as_view(given["input"])


_OWN: dict[str, Callable[[OperationReader, Any, CallArguments], TensorView]] = {
    "to": OperationReader._converted,
    "_to_copy": OperationReader._converted,
    "pow": OperationReader._power,
    "gelu": OperationReader._gelu,
    "linear": OperationReader._linear,
    "matmul": OperationReader._matmul,
    "mean": lambda reader, *call: reader._reduced("mean", *call),
    "sum": lambda reader, *call: reader._reduced("sum", *call),
    "amax": lambda reader, *call: reader._reduced("max", *call),
    "layer_norm": lambda reader, *call: reader._norm(*call, centred=True),
    "rms_norm": lambda reader, *call: reader._norm(*call, centred=False),
    "cat": OperationReader._concat,
    "embedding": OperationReader._embedding,
    "index_copy_": OperationReader._index_copy,
    "scaled_dot_product_attention": OperationReader._attention,
    "argmax": OperationReader._argmax,
    "dropout": OperationReader._dropout,
}
