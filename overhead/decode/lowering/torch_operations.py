"""The operations of PyTorch: views, which cost nothing, and those that become dispatches.

Shapes and strides come from PyTorch itself, by tensors without data.
"""

from __future__ import annotations

import dataclasses
import functools
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
WHOLE_MODULE = "the module"
"""The place of what has no submodule of its own."""


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
    """What an operation of PyTorch that only looks at a tensor differently (``change``, such as a
    transpose) makes of this view: one view or several. None if PyTorch would have to copy numbers.
    """
    # PyTorch changes a tensor on the device "meta", which has a shape and strides, but no numbers.
    # It must be as large as the position of the view's last element says.
    last = view.offset
    for size, stride in zip(view.shape, view.strides, strict=True):
        last += (size - 1) * stride
    base = torch.empty(max(last + 1, 1), device="meta")
    changed = change(base.as_strided(view.shape, view.strides, view.offset))

    tensors = list(changed) if isinstance(changed, list | tuple) else [changed]
    # A result in other memory is a copy.
    storage = base.untyped_storage()._cdata
    if any(tensor.untyped_storage()._cdata != storage for tensor in tensors):
        return None
    views = []
    for tensor in tensors:
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        offset = tensor.storage_offset()
        views.append(dataclasses.replace(view, shape=shape, strides=strides, offset=offset))
    return views if isinstance(changed, list | tuple) else views[0]


def _with_rows_along(view: TensorView, dimension: int) -> TensorView:
    """The view with this dimension moved to the end, as the kernels on rows want it: a row is what
    the last dimension spans.
    """
    moved = dimension % len(view.shape)  # a negative dimension counts from the end
    order = [i for i in range(len(view.shape)) if i != moved]
    order.append(moved)
    shape = tuple(view.shape[i] for i in order)
    strides = tuple(view.strides[i] for i in order)
    return dataclasses.replace(view, shape=shape, strides=strides)


@dataclasses.dataclass(frozen=True)
class Folded:
    """A tensor whose values are known when the module is lowered, such as ``torch.arange(64)``."""

    tensor: Any


class OperationReader:
    """Turns calls of PyTorch's operations into dispatches (GPU launches), and collects these and
    their buffers. In the methods, ``given`` has the arguments of a call by name: views (tensors in
    buffers), ``Folded`` tensors (whose values are known already) and plain values. ``result`` is an
    example of the call's result, with its shape and type.

    ``place``: the submodule whose forward is being read, for messages.
    """

    def __init__(self) -> None:
        self.place = WHOLE_MODULE
        self._buffers: dict[str, Buffer] = {}
        self._operations: list[Operation] = []
        self._numbered = itertools.count()

    def as_view(self, value: Any) -> TensorView:
        """The tensor ``value`` as a view of a buffer, as a dispatch needs it. Known values get a
        new buffer that holds them as a constant. Raises ``UnsupportedOperation`` for what is no
        tensor.
        """
        if isinstance(value, TensorView):
            return value
        if not isinstance(value, Folded):
            raise UnsupportedOperation(f"{self.place}: {value!r} is no tensor")
        tensor = value.tensor
        # The counter gives each buffer of the program another name.
        name = f"constant_{next(self._numbered)}"
        number = number_type(tensor.dtype, self.place)
        values = tuple(tensor.reshape(-1).tolist())
        return self._buffer(name, number, tuple(tensor.shape), "constant", values)

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
        """A view of a new buffer in row-major order, which is added to the program."""
        view = packed_view(name, number, shape)
        self._buffers[name] = Buffer(name, number, view.count, role, values)
        return view

    def append_dispatch(self, operation: Operation) -> None:
        """Append a dispatch, which comes from ``place``."""
        self._operations.append(dataclasses.replace(operation, place=self.place))

    def lower_call(self, target: Any, result: Any, given: CallArguments) -> Any:
        """What a call of the operation ``target`` of PyTorch gives, as a view of a buffer (or a
        list of views), after appending the dispatches that compute it. Raises
        ``UnsupportedOperation`` for an operation that no kernel computes.
        """
        name = operation_name(target)
        if name in _VIEWS:
            return self._view(target, given)
        # Operations that have a kernel of their own, such as a matrix product.
        if name in _METHODS:
            return _METHODS[name](self, result, given)
        # ``add_`` is ``add`` in place. The tables have the source text of each operation that
        # computes element by element.
        kind = name.removesuffix("_")
        if kind in table.ARITHMETIC or kind in table.REAL or kind in table.COMPARISONS:
            return self._elementwise(kind, result, given, in_place=name.endswith("_"))
        raise self._refused(name, "is not supported")

    def copied(self, source: TensorView) -> TensorView:
        """A view of a new temporary buffer with the numbers of this view in row-major order, after
        appending the dispatch that copies them.
        """
        copy = self.new_temporary(source.number, source.shape)
        self.append_dispatch(
            Elementwise(kind="copy", expression="x0", inputs=(source,), output=copy)
        )
        return copy

    def _refused(self, name: str, why: str) -> UnsupportedOperation:
        return UnsupportedOperation(f"{self.place}: the operation aten.{name} {why}")

    def _view(self, target: Any, given: CallArguments) -> Any:
        """What ``target``, an operation that only looks at its first argument differently, makes of
        it: another view of the same buffer, or several. No dispatch is needed.
        """
        # The arguments are in the order of the operation, so the first is the tensor itself.
        (_, source), *others = given.items()
        options = {}
        for name, value in others:
            # ``view_as`` and ``expand_as`` take another tensor, of which they use the shape alone.
            is_view = isinstance(value, TensorView)
            options[name] = torch.empty(value.shape, device="meta") if is_view else value
        return self._viewed(self.as_view(source), functools.partial(_called_with, target, options))

    def _viewed(self, source: TensorView, change: Callable[[Any], Any]) -> Any:
        """What the operation makes of the view, after a copy where it would need one."""
        changed = _changed_view(source, change)
        if changed is None:
            changed = _changed_view(self.copied(source), change)
        return changed

    def _converted(self, result: Any, given: CallArguments) -> TensorView:
        """The tensor as another type. No dispatch if the numbers on the device have that type
        already, as int64 and int32 have, unless the call asks for a copy.
        """
        source = self.as_view(given["self"])
        wanted = number_type(result.dtype, self.place)
        if source.number == wanted:
            return self.copied(source) if given.get("copy") else source
        output = self.new_temporary(wanted, source.shape)
        expression = table.converted("x0", source.number, wanted)
        self.append_dispatch(
            Elementwise(kind="convert", expression=expression, inputs=(source,), output=output)
        )
        return output

    def _elementwise(
        self, kind: str, result: Any, given: CallArguments, *, in_place: bool
    ) -> TensorView:
        """The result of an operation that computes each element by the same expression.

        ``kind``: its name, such as ``mul``. ``in_place``: it writes into its first operand.
        """
        # PyTorch's ``alpha`` is a factor of the second operand, which the expressions do not have.
        if given.get("alpha", 1) != 1 or given.get("rounding_mode"):
            raise self._refused(kind, "is supported only without alpha and rounding_mode")
        # PyTorch calls the operands ``self`` and ``other``, or ``src`` in a copy.
        operands = [given[name] for name in ("self", "other", "src") if name in given]
        form, taken = self._form(kind, operands, result)
        into = operands[0] if in_place else None
        return self._expressed(kind, form, operands, taken, result, into)

    def _form(self, kind: str, operands: list[Any], result: Any) -> tuple[str, NumberType]:
        """The source text that computes one element, with ``{0}`` and ``{1}`` for the operands, and
        the type to which the operands must be converted first.
        """
        if kind in table.REAL:
            return table.REAL[kind], "f32"
        number = number_type(result.dtype, self.place)
        if kind in table.COMPARISONS:
            # The result is a truth value, 1 or 0, which ``select`` chooses (the second if the
            # comparison holds); so the type is the one that PyTorch compares in.
            # ``_example``: the operand without data, as PyTorch needs only its type.
            compared = torch.result_type(*map(self._example, operands))
            sign = table.COMPARISONS[kind]
            return f"select(0u, 1u, {{0}} {sign} {{1}})", number_type(compared, self.place)
        # The sum of truth values is true if one of them is; 1 + 1 would be no truth value.
        if kind == "add" and result.dtype == torch.bool:
            return "{0} | {1}", number
        if kind == "copy":  # copy_(self, src) reads only src
            return "{1}", number
        return table.ARITHMETIC[kind], number

    def _example(self, operand: Any) -> Any:
        """The operand for ``torch.result_type``: a number, or a tensor of its type without data."""
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
        """The result of an operation that computes each element by the expression ``form``, after
        appending its dispatch.

        ``form``: source text, with ``{0}`` and ``{1}`` for the operands, which are tensors or
        numbers. ``taken``: the type to which they are converted first. ``into``: the tensor that
        gets the result, where the operation works in place.
        """
        # In the expression, inputs are named x0, x1, ... and numbers are written out.
        inputs: list[TensorView] = []
        scalars: list[float] = []
        texts: list[str] = []
        for position, operand in enumerate(operands):
            if isinstance(operand, int | float):
                texts.append(table.literal(operand, taken))
                scalars.append(float(operand))
            elif f"{{{position}}}" not in form:
                # The operation does not read this operand, so it is no input.
                texts.append("")
            else:
                view = self.as_view(operand)
                texts.append(table.converted(f"x{len(inputs)}", view.number, taken))
                inputs.append(view)

        # ``_output``: a new temporary buffer of the type and the shape of the result.
        output = self._output(result) if into is None else self.as_view(into)
        # Each thread reads and writes one element. If it wrote into the buffer that it reads, but
        # at another place, it could overwrite what another thread has yet to read.
        for view in inputs:
            if view.buffer == output.buffer and view != output:
                raise self._refused(kind, "writes into a tensor that it reads in another order")
        expression = form.format(*texts)
        self.append_dispatch(
            Elementwise(
                kind=kind,
                expression=expression,
                inputs=tuple(inputs),
                output=output,
                scalars=tuple(scalars),
            )
        )
        return output

    def _output(self, result: Any) -> TensorView:
        return self.new_temporary(number_type(result.dtype, self.place), result.shape)

    def _power(self, result: Any, given: CallArguments) -> TensorView:
        exponent = given["exponent"]
        if not isinstance(exponent, int | float):
            raise self._refused("pow", "is supported only with a constant exponent")
        form = table.power(float(exponent))
        return self._expressed("pow", form, [given["self"], exponent], "f32", result)

    def _gelu(self, result: Any, given: CallArguments) -> TensorView:
        kind = "tanh_gelu" if given["approximate"] == "tanh" else "erf_gelu"
        return self._expressed(kind, table.REAL[kind], [given["self"]], "f32", result)

    def _linear(self, result: Any, given: CallArguments) -> TensorView:
        return self._product(given["input"], self.as_view(given["weight"]), given["bias"], result)

    def _matmul(self, result: Any, given: CallArguments) -> TensorView:
        right = self.as_view(given["other"])
        if len(right.shape) != 2:
            raise self._refused("matmul", "is supported only with a matrix on the right")
        # A product takes the columns of the matrix as rows, as ``linear`` has them.
        return self._product(given["self"], _with_rows_along(right, 0), None, result)

    def _product(self, x: Any, matrix: TensorView, bias: Any, result: Any) -> TensorView:
        added = self._optional(bias)
        output = self._output(result)
        product = MatrixProduct(matrix, added, output)
        self.append_dispatch(Gemv(x=self.as_view(x), products=(product,)))
        return output

    def _optional(self, value: Any) -> TensorView | None:
        return None if value is None else self.as_view(value)

    def _mean(self, result: Any, given: CallArguments) -> TensorView:
        return self._reduced("mean", result, given)

    def _sum(self, result: Any, given: CallArguments) -> TensorView:
        return self._reduced("sum", result, given)

    def _largest(self, result: Any, given: CallArguments) -> TensorView:
        return self._reduced("max", result, given)

    def _reduced(
        self, kind: Literal["sum", "mean", "max"], result: Any, given: CallArguments
    ) -> TensorView:
        """The sum, mean or maximum (``kind``) along one dimension, or of all numbers, after
        appending its dispatch. The kernel reduces rows, so the dimension is made the last one.
        """
        x = self.as_view(given["self"])
        if 0 in x.shape:
            raise self._refused(kind, "is not supported for an empty tensor")
        # A tensor without dimensions is a row of one number.
        if not x.shape:
            x = self._viewed(x, _as_row)
        # ``dim``: a list of dimensions; None or an empty one stands for all.
        along = given.get("dim") or range(len(x.shape))
        is_real = x.number == "f32" and result.dtype == torch.float32
        if not is_real or len(along) not in (1, len(x.shape)):
            raise self._refused(kind, "is supported only for f32, along one dimension or all")
        # Along all dimensions: all numbers are one row.
        if len(along) > 1:
            x = self._viewed(x, _as_row)
            along = (0,)

        output = self._output(result)
        rows = _with_rows_along(x, along[0])
        self.append_dispatch(RowReduction(kind=kind, x=rows, output=output))
        return output

    def _layer_norm(self, result: Any, given: CallArguments) -> TensorView:
        return self._norm(result, given, centred=True)

    def _rms_norm(self, result: Any, given: CallArguments) -> TensorView:
        return self._norm(result, given, centred=False)

    def _norm(self, result: Any, given: CallArguments, *, centred: bool) -> TensorView:
        """The norm of each row, after appending its dispatch. ``centred``: the mean of the row is
        subtracted first, as in LayerNorm.
        """
        if len(given["normalized_shape"]) != 1:
            raise self._refused("norm", "is supported only over the last dimension")
        # As views; None for an argument that the call leaves out.
        weight = self._optional(given.get("weight"))
        bias = self._optional(given.get("bias"))
        # ``rms_norm`` without an epsilon takes the smallest step of its type.
        epsilon = torch.finfo(torch.float32).eps
        if given["eps"] is not None:
            epsilon = float(given["eps"])
        output = self._output(result)
        x = self.as_view(given["input"])
        self.append_dispatch(
            Norm(x=x, weight=weight, bias=bias, epsilon=epsilon, centred=centred, output=output)
        )
        return output

    def _concat(self, result: Any, given: CallArguments) -> TensorView:
        inputs = tuple(self.as_view(tensor) for tensor in given["tensors"])
        output = self._output(result)
        dimension = given["dim"] % len(result.shape)
        self.append_dispatch(Concat(inputs=inputs, dimension=dimension, output=output))
        return output

    def _embedding(self, result: Any, given: CallArguments) -> TensorView:
        rows = self.as_view(given["weight"])
        output = self._output(result)
        index = self.as_view(given["indices"])
        self.append_dispatch(Gather(table=rows, index=index, output=output))
        return output

    def _index_copy(self, result: Any, given: CallArguments) -> TensorView:
        """The tensor into which ``index_copy_`` has written rows of another one, such as the new
        key into the cache of keys, after appending the dispatch that writes them.
        """
        into = self.as_view(given["self"])
        source = self.as_view(given["source"])
        if into.number != source.number:
            raise self._refused("index_copy_", "is supported only for tensors of one type")
        # A negative dimension counts from the end.
        dimension = given["dim"] % len(into.shape)
        index = self.as_view(given["index"])
        self.append_dispatch(
            IndexWrite(target=into, dimension=dimension, index=index, source=source)
        )
        return into

    def _attention(self, result: Any, given: CallArguments) -> TensorView:
        """The result of ``scaled_dot_product_attention``, after appending its dispatch."""
        query = self.as_view(given["query"])
        key = self.as_view(given["key"])
        value = self.as_view(given["value"])
        self._check_attention(query, key, value, given["dropout_p"])

        output = self._output(result)
        mask = self._optional(given["attn_mask"])
        # Without a scale PyTorch takes the usual one of attention, 1 / sqrt(width of a head).
        scale = 1 / math.sqrt(query.shape[-1])
        if given.get("scale") is not None:
            scale = float(given["scale"])
        self.append_dispatch(
            Attention(
                query=query,
                key=key,
                value=value,
                mask=mask,
                scale=scale,
                causal=bool(given["is_causal"]),
                output=output,
            )
        )
        return output

    def _check_attention(
        self, query: TensorView, key: TensorView, value: TensorView, dropout: float
    ) -> None:
        """Raise ``UnsupportedOperation`` for an attention that the kernel does not compute. Shapes
        are (batch, heads, rows, width).
        """
        # A group of threads keeps a score for each key in the memory that it shares, beside one
        # number for each thread.
        most_keys = SHARED_NUMBERS - GROUP_THREADS
        if len(query.shape) != 4 or dropout or key.shape[2] > most_keys:
            raise self._refused(
                "scaled_dot_product_attention",
                f"is supported only with four dimensions, without dropout, to {most_keys} keys",
            )
        # Each head of keys is shared by the same number of heads of queries.
        has_whole_share = query.shape[1] % key.shape[1] == 0
        same_heads = key.shape[:2] == value.shape[:2]
        same_batch = key.shape[0] == query.shape[0]
        if not (has_whole_share and same_heads and same_batch):
            raise self._refused(
                "scaled_dot_product_attention", "is not supported for these batches and heads"
            )

    def _argmax(self, result: Any, given: CallArguments) -> TensorView:
        """The place of the largest number along a dimension, after appending its dispatch."""
        x = self.as_view(given["self"])
        along = given["dim"]
        # Without a dimension PyTorch counts over all numbers; with one dimension that is the same.
        takes_all = along is None and len(x.shape) != 1
        # The kernel keeps a column in a float32, which holds every integer up to 2^24.
        if not x.shape or takes_all or x.shape[along or 0] > 1 << 24:
            raise self._refused("argmax", "is supported only along one dimension, to 2^24 columns")
        output = self.new_temporary("i32", result.shape)
        self.append_dispatch(Argmax(x=_with_rows_along(x, along or 0), output=output))
        return output

    def _dropout(self, result: Any, given: CallArguments) -> TensorView:
        if given["train"]:
            raise self._refused("dropout", "is supported only in evaluation")
        return self.as_view(given["input"])


def _called_with(target: Any, options: dict[str, Any], tensor: Any) -> Any:
    return target(tensor, **options)


def _as_row(tensor: Any) -> Any:
    """All numbers of a tensor in one dimension."""
    return tensor.reshape(-1)


_METHODS: dict[str, Callable[[OperationReader, Any, CallArguments], TensorView]] = {
    "to": OperationReader._converted,
    "_to_copy": OperationReader._converted,
    "pow": OperationReader._power,
    "gelu": OperationReader._gelu,
    "linear": OperationReader._linear,
    "matmul": OperationReader._matmul,
    "mean": OperationReader._mean,
    "sum": OperationReader._sum,
    "amax": OperationReader._largest,
    "layer_norm": OperationReader._layer_norm,
    "rms_norm": OperationReader._rms_norm,
    "cat": OperationReader._concat,
    "embedding": OperationReader._embedding,
    "index_copy_": OperationReader._index_copy,
    "scaled_dot_product_attention": OperationReader._attention,
    "argmax": OperationReader._argmax,
    "dropout": OperationReader._dropout,
}
"""The methods that lower operations with a template of their own, by the operation's name."""
