"""The elementwise operations of PyTorch as dispatches: arithmetic, functions, comparisons, conversions, copies."""

from __future__ import annotations

from typing import Any

import torch

from overhead.decode.lowering import elementwise_table as table
from overhead.decode.lowering.buffers import NumberType, TensorView
from overhead.decode.lowering.sink import Sink, refused
from overhead.decode.lowering.templates.elementwise import Elementwise
from overhead.decode.lowering.tensors import number_of


def copied(sink: Sink, source: TensorView) -> TensorView:
    made = sink.temporary(source.number, source.shape)
    sink.dispatch(Elementwise(kind="copy", expression="x0", inputs=(source,), output=made))
    return made


def converted(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    source, wanted = sink.view(arguments["self"]), number_of(result.dtype, sink.place)
    if source.number == wanted:
        return source
    made = sink.temporary(wanted, source.shape)
    expression = table.converted("x0", source.number, wanted)
    sink.dispatch(Elementwise(kind="convert", expression=expression, inputs=(source,), output=made))
    return made


def elementwise(sink: Sink, kind: str, result: Any, arguments: dict[str, Any], *, in_place: bool) -> TensorView:
    if arguments.get("alpha", 1) != 1 or arguments.get("rounding_mode"):
        raise refused(sink, kind, "is supported only without alpha and rounding_mode")
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
    sink: Sink, kind: str, form: str, operands: list[Any], taken: NumberType, result: Any, into: Any = None
) -> TensorView:
    """The result of the expression on tensors or numbers. Operands are first converted to the type ``taken``."""
    inputs: list[TensorView] = []
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
        raise refused(sink, kind, "writes into a tensor that it reads in another order")
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


def power(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    exponent = arguments["exponent"]
    if not isinstance(exponent, int | float):
        raise refused(sink, "pow", "is supported only with a constant exponent")
    return _expressed(sink, "pow", table.power(float(exponent)), [arguments["self"], exponent], "f32", result)


def gelu(sink: Sink, result: Any, arguments: dict[str, Any]) -> TensorView:
    kind = "tanh_gelu" if arguments["approximate"] == "tanh" else "erf_gelu"
    return _expressed(sink, kind, table.REAL[kind], [arguments["self"]], "f32", result)
