"""Read what ``torch.export`` makes of a module, and build the program."""

from __future__ import annotations

import collections
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from overhead.decode.lowering.buffers import Role, TensorView
from overhead.decode.lowering.fusions import FUSIONS, apply_fusions
from overhead.decode.lowering.operation import UnsupportedOperation
from overhead.decode.lowering.program import Program
from overhead.decode.lowering.torch_operations import (
    IGNORED,
    Folded,
    OperationReader,
    number_type,
    operation_name,
)
from overhead.errors import UsageError, one_line


def lower(
    module: Any, inputs: Sequence[Any] = (), *, fusions: Iterable[str] = tuple(FUSIONS)
) -> Program:
    """The program of ``module(*inputs)``. ``inputs``: example tensors; only their shapes and types
    matter.

    A tensor that the module changes in place should be a registered buffer. Otherwise its state
    starts at zero, because ``torch.export`` itself may have changed the tensor.

    ``fusions``: the names of the fusions to apply, in order; none of them with ``()``. Raises
    ``UnsupportedOperation``, and ``UsageError`` if ``module`` is no module or ``inputs`` no tuple.

    >>> print(overhead.lower(model, (token, position)))  # doctest: +SKIP
    """
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"lower: {type(module).__name__} is no torch.nn.Module")
    if not isinstance(inputs, tuple | list):
        raise UsageError(f"lower: inputs must be a tuple such as (x,), not {type(inputs).__name__}")
    try:
        with torch.no_grad():
            exported = torch.export.export(module, _apart(inputs), strict=False)
    except GuardOnDataDependentSymNode as error:
        raise UnsupportedOperation(
            f"{_line(error)}: a branch on the values of a tensor is not supported"
        ) from error
    except (Exception, SystemExit) as error:
        raise UnsupportedOperation(
            f"{_line(error)}: the module raises {one_line(error)}"
        ) from error
    return apply_fusions(GraphReader(exported).program(), fusions)


def _line(error: BaseException) -> str:
    """The innermost line outside PyTorch from which the error came, such as ``model.py:12, in
    forward``.
    """
    libraries = {"torch", *sys.stdlib_module_names}
    lines = [
        f"{os.path.basename(frame.f_code.co_filename)}:{line}, in {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in libraries
    ]
    return lines[-1] if lines[1:] else "the module"  # the first line is that of ``lower`` itself


def _apart(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The inputs with a copy of each tensor that occurs again: ``torch.export`` makes one input of
    equal tensors.
    """
    seen: set[int] = set()

    def own(value: Any) -> Any:
        again = id(value) in seen
        seen.add(id(value))
        return value.clone() if again and isinstance(value, torch.Tensor) else value

    return tuple(torch.utils._pytree.tree_map(own, tuple(inputs)))


class GraphReader(OperationReader):
    """Follows the exported graph node by node, and collects buffers and operations."""

    def __init__(self, exported: Any) -> None:
        super().__init__()
        self._exported = exported
        self._values: dict[Any, Any] = {}
        self._inputs: list[TensorView] = []
        self._written = _written_tensors(exported.graph)
        self._shared = collections.defaultdict[Any, set[Any]](set)

    def program(self) -> Program:
        """The program. Raises ``UnsupportedOperation``."""
        outputs: tuple[TensorView, ...] = ()
        specs = {spec.arg.name: spec for spec in self._exported.graph_signature.input_specs}
        for node in self._exported.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = self._placeholder(
                    node, specs[node.name], node in self._written
                )
            elif node.op == "call_function":
                self.place = _place(node)
                self._values[node] = self._called(node)
            elif node.op == "output":
                flat = torch.utils._pytree.tree_leaves(node.args)
                outputs = tuple(
                    self.as_view(self._value(part)) for part in flat if part is not None
                )
            self._note_storage(node)
        kinds = {spec.kind.name for spec in self._exported.graph_signature.output_specs}
        if kinds - {"USER_OUTPUT"}:
            raise UnsupportedOperation(
                f"this PyTorch ({torch.__version__}) exports without operations in place; use 2.7"
                " or newer"
            )
        made = Program(self._buffers, tuple(self._operations), tuple(self._inputs), outputs)
        return made.with_operations(made.operations)

    def _placeholder(self, node: Any, spec: Any, written: bool) -> TensorView | Folded | None:
        kind, name = spec.kind.name, spec.target or spec.arg.name
        if (
            kind == "CONSTANT_TENSOR"
            and not written
            and not self._exported.constants[spec.target].is_meta
        ):
            return Folded(self._exported.constants[spec.target])
        if not node.users:
            return None
        if not isinstance(node.meta.get("val"), torch.Tensor):
            raise UnsupportedOperation(f"the input {node.name} is no tensor")
        role: Role = "input" if kind == "USER_INPUT" else "state" if written else "weight"
        shape, number = tuple(node.meta["val"].shape), number_type(node.meta["val"].dtype, name)
        view = self._buffer(name, number, shape, role)
        if role == "input":
            self._inputs.append(view)
        return view

    def _called(self, node: Any) -> Any:
        if getattr(node.target, "__name__", "") == "getitem":
            return self._value(node.args[0])[node.args[1]]
        if not hasattr(node.target, "_schema"):
            raise UnsupportedOperation(
                f"{self.place}: the operation {node.target} is not supported"
            )
        if operation_name(node.target) in IGNORED:
            return None
        arguments = self._arguments(node)
        leaves = torch.utils._pytree.tree_leaves(arguments)
        if node.target._schema.is_mutable:
            self._check_written(node)
        elif not any(isinstance(leaf, TensorView) for leaf in leaves):
            folded = self._folded(node)
            return self.copied(self.as_view(folded)) if node in self._written else folded
        return self.lower_call(node.target, node.meta.get("val"), arguments)

    def _note_storage(self, node: Any) -> None:
        value, example = self._values.get(node), node.meta.get("val")
        own = (
            node.target is not torch.ops.aten.dropout.default
        )  # an example has its own storage, the result has not
        if own and isinstance(value, TensorView) and isinstance(example, torch.Tensor):
            storage = example.untyped_storage()._cdata
            self._shared[value.buffer].add(storage)
            self._shared[storage].add(value.buffer)

    def _check_written(self, node: Any) -> None:
        """Raise ``UnsupportedOperation`` if the write would reach other tensors than in PyTorch."""
        into = self._value(node.args[0])
        storages = self._shared[into.buffer] if isinstance(into, TensorView) else set()
        if len(storages) != 1 or any(
            self._shared[storage] != {into.buffer} for storage in storages
        ):
            name = operation_name(node.target)
            raise UnsupportedOperation(
                f"{self.place}: the operation aten.{name} writes into a copy or shared tensor"
            )

    def _arguments(self, node: Any) -> dict[str, Any]:
        """All arguments by name, with the defaults of the operation."""
        schema = node.target._schema.arguments
        given = {
            argument.name: self._value(value)
            for argument, value in zip(schema, node.args, strict=False)
        }
        given |= {name: self._value(value) for name, value in node.kwargs.items()}
        return {
            argument.name: given.get(argument.name, argument.default_value) for argument in schema
        }

    def _folded(self, node: Any) -> Folded:
        def real(value: Any) -> Any:
            return value.tensor if isinstance(value, Folded) else value

        values = [self._value(part) for part in node.args]
        named = {
            name: "cpu" if name == "device" else self._value(part)
            for name, part in node.kwargs.items()
        }
        result = node.target(
            *torch.utils._pytree.tree_map(real, values), **torch.utils._pytree.tree_map(real, named)
        )
        if not isinstance(result, torch.Tensor):
            raise UnsupportedOperation(
                f"{self.place}: {node.target} of constants cannot be lowered"
            )
        return Folded(result)

    def _value(self, given: Any) -> Any:
        if isinstance(given, torch.fx.Node):
            return self._values[given]
        return [self._value(part) for part in given] if isinstance(given, list | tuple) else given


def _place(node: Any) -> str:
    """The path of the submodule whose forward called this, such as ``layers.0.attention``."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return (
        str(stack[-1][0]).removeprefix("L['self']").strip(".") or "the module"
        if stack
        else "the module"
    )


def _written_tensors(graph: Any) -> set[Any]:
    """The nodes that make a tensor into which an operation writes later, directly or through a
    view.
    """
    origins: dict[Any, Any] = {}
    written = set()
    for node in graph.nodes:
        origins[node] = node
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or not (
            node.args and isinstance(node.args[0], torch.fx.Node)
        ):
            continue
        views = (
            schema is None
            or schema.name == "aten::dropout"
            or any(made.alias_info for made in schema.returns)
        )
        if views:
            origins[node] = origins[node.args[0]]
        if schema is not None and schema.is_mutable:
            written.add(origins[node.args[0]])
    return written
