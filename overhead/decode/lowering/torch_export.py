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
    WHOLE_MODULE,
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
    lines = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package not in libraries:
            code = frame.f_code
            lines.append(f"{os.path.basename(code.co_filename)}:{line}, in {code.co_name}")
    # The first line is that of ``lower`` itself.
    return lines[-1] if len(lines) > 1 else WHOLE_MODULE


def _apart(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The inputs with a copy of each tensor that occurs again: ``torch.export`` makes one input of
    equal tensors.
    """
    seen: set[int] = set()

    def copied_if_seen(value: Any) -> Any:
        is_again = id(value) in seen
        seen.add(id(value))
        return value.clone() if is_again and isinstance(value, torch.Tensor) else value

    return tuple(torch.utils._pytree.tree_map(copied_if_seen, tuple(inputs)))


class GraphReader(OperationReader):
    """Follows the exported graph node by node, and collects buffers and operations."""

    def __init__(self, exported: Any) -> None:
        super().__init__()
        self._exported = exported
        # By node what it became: a view, a folded tensor, a list of them, or a plain value.
        self._values: dict[Any, Any] = {}
        self._inputs: list[TensorView] = []
        self._written = _written_tensors(exported.graph)
        # By buffer the storages of PyTorch that it stands for, and by storage its buffers.
        self._storages = collections.defaultdict[str, set[int]](set)
        self._buffers_of_storage = collections.defaultdict[int, set[str]](set)

    def program(self) -> Program:
        """The program. Raises ``UnsupportedOperation``."""
        outputs: tuple[TensorView, ...] = ()
        specs = {spec.arg.name: spec for spec in self._exported.graph_signature.input_specs}
        for node in self._exported.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = self._placeholder(node, specs[node.name])
            elif node.op == "call_function":
                self.place = _place(node)
                self._values[node] = self._called(node)
            elif node.op == "output":
                outputs = self._outputs(node)
            self._note_storage(node)

        kinds = {spec.kind.name for spec in self._exported.graph_signature.output_specs}
        if kinds - {"USER_OUTPUT"}:
            raise UnsupportedOperation(
                f"this PyTorch ({torch.__version__}) exports without operations in place; use 2.7"
                " or newer"
            )
        program = Program(self._buffers, tuple(self._operations), tuple(self._inputs), outputs)
        # Drops the buffers that no operation uses.
        return program.with_operations(program.operations)

    def _outputs(self, node: Any) -> tuple[TensorView, ...]:
        """The tensors that the module returns, in order, without those that are None."""
        outputs = []
        for leaf in torch.utils._pytree.tree_leaves(node.args):
            if leaf is not None:
                outputs.append(self.as_view(self._value(leaf)))
        return tuple(outputs)

    def _placeholder(self, node: Any, spec: Any) -> TensorView | Folded | None:
        """What an input, a parameter or a buffer of the module becomes; None if nothing uses it."""
        is_written = node in self._written
        if spec.kind.name == "CONSTANT_TENSOR" and not is_written:
            constant = self._exported.constants[spec.target]
            if not constant.is_meta:
                return Folded(constant)
        if not node.users:
            return None
        example = node.meta.get("val")
        if not isinstance(example, torch.Tensor):
            raise UnsupportedOperation(f"the input {node.name} is no tensor")

        role: Role = "weight"
        if spec.kind.name == "USER_INPUT":
            role = "input"
        elif is_written:
            role = "state"
        name = spec.target or spec.arg.name
        number = number_type(example.dtype, name)
        view = self._buffer(name, number, tuple(example.shape), role)
        if role == "input":
            self._inputs.append(view)
        return view

    def _called(self, node: Any) -> Any:
        """The value of a call, after appending its dispatches."""
        if getattr(node.target, "__name__", "") == "getitem":
            values, index = node.args
            return self._value(values)[index]
        if not hasattr(node.target, "_schema"):
            raise UnsupportedOperation(
                f"{self.place}: the operation {node.target} is not supported"
            )
        if operation_name(node.target) in IGNORED:
            return None

        arguments = self._arguments(node)
        if node.target._schema.is_mutable:
            self._check_written(node)
            return self.lower_call(node.target, node.meta.get("val"), arguments)
        leaves = torch.utils._pytree.tree_leaves(arguments)
        if any(isinstance(leaf, TensorView) for leaf in leaves):
            return self.lower_call(node.target, node.meta.get("val"), arguments)

        # Of known values alone the result is known too, and needs no dispatch.
        folded = self._folded(node)
        return self.copied(self.as_view(folded)) if node in self._written else folded

    def _note_storage(self, node: Any) -> None:
        """Note which storage of PyTorch the node's buffer stands for, for ``_check_written``."""
        value, example = self._values.get(node), node.meta.get("val")
        if node.target is torch.ops.aten.dropout.default:
            return  # an example has its own storage, the result has not
        if isinstance(value, TensorView) and isinstance(example, torch.Tensor):
            storage = example.untyped_storage()._cdata
            self._storages[value.buffer].add(storage)
            self._buffers_of_storage[storage].add(value.buffer)

    def _check_written(self, node: Any) -> None:
        """Raise ``UnsupportedOperation`` if the write would reach other tensors than in PyTorch:
        the buffer must stand for one storage, and the storage for this buffer alone.
        """
        into = self._value(node.args[0])
        storages = self._storages[into.buffer] if isinstance(into, TensorView) else set()
        is_alone = len(storages) == 1
        for storage in storages:
            if self._buffers_of_storage[storage] != {into.buffer}:
                is_alone = False
        if not is_alone:
            name = operation_name(node.target)
            raise UnsupportedOperation(
                f"{self.place}: the operation aten.{name} writes into a copy or shared tensor"
            )

    def _arguments(self, node: Any) -> dict[str, Any]:
        """All arguments by name, with the defaults of the operation."""
        schema = node.target._schema.arguments
        arguments = {argument.name: argument.default_value for argument in schema}
        for argument, value in zip(schema, node.args, strict=False):
            arguments[argument.name] = self._value(value)
        for name, value in node.kwargs.items():
            arguments[name] = self._value(value)
        return arguments

    def _folded(self, node: Any) -> Folded:
        """The result of an operation on known values, computed here on the CPU."""

        def real(value: Any) -> Any:
            return value.tensor if isinstance(value, Folded) else value

        values = [self._value(part) for part in node.args]
        named = {name: self._value(part) for name, part in node.kwargs.items()}
        if "device" in named:
            named["device"] = "cpu"
        tree_map = torch.utils._pytree.tree_map
        result = node.target(*tree_map(real, values), **tree_map(real, named))
        if not isinstance(result, torch.Tensor):
            raise UnsupportedOperation(
                f"{self.place}: {node.target} of constants cannot be lowered"
            )
        return Folded(result)

    def _value(self, given: Any) -> Any:
        """An argument of a node, with the values of other nodes in their places."""
        if isinstance(given, torch.fx.Node):
            return self._values[given]
        if isinstance(given, list | tuple):
            return [self._value(part) for part in given]
        return given


def _place(node: Any) -> str:
    """The path of the submodule whose forward called this, such as ``layers.0.attention``."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if not stack:
        return WHOLE_MODULE
    innermost = str(stack[-1][0])
    return innermost.removeprefix("L['self']").strip(".") or WHOLE_MODULE


def _written_tensors(graph: Any) -> set[Any]:
    """The nodes that make a tensor into which an operation writes later, directly or through a
    view.
    """
    # By node the one that made the tensor of which it is a view; itself if it is no view.
    origins: dict[Any, Any] = {}
    written = set()
    for node in graph.nodes:
        origins[node] = node
        takes_node = bool(node.args) and isinstance(node.args[0], torch.fx.Node)
        if node.op != "call_function" or not takes_node:
            continue
        schema = getattr(node.target, "_schema", None)
        if schema is None or _returns_view(schema):
            origins[node] = origins[node.args[0]]
        if schema is not None and schema.is_mutable:
            written.add(origins[node.args[0]])
    return written


def _returns_view(schema: Any) -> bool:
    """Whether the operation returns its first argument, or a view of it. Dropout does in
    evaluation, although its schema does not say so.
    """
    return schema.name == "aten::dropout" or any(result.alias_info for result in schema.returns)
