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
    """The program of ``module(*inputs)``: kernels, buffers and a list of GPU dispatches.

    ``inputs``: example tensors; only their shapes and types matter. ``fusions``: the names of the
    kernel fusions to apply, in order; none of them with ``()``. Raises ``UnsupportedOperation``,
    and ``UsageError`` if ``module`` is no module or ``inputs`` no tuple.

    A tensor that the module changes in place should be a registered buffer. Otherwise its state
    starts at zero, because ``torch.export`` itself may have changed the tensor.

    >>> print(overhead.lower(model, (token, position)))  # doctest: +SKIP
    """
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"lower: {type(module).__name__} is no torch.nn.Module")
    if not isinstance(inputs, tuple | list):
        raise UsageError(f"lower: inputs must be a tuple such as (x,), not {type(inputs).__name__}")
    try:
        with torch.no_grad():
            # Not strict: Python itself runs the module, and the operations that it calls are
            # recorded.
            exported = torch.export.export(module, _apart(inputs), strict=False)
    except GuardOnDataDependentSymNode as error:
        raise UnsupportedOperation(
            f"{_line(error)}: a branch on the values of a tensor is not supported"
        ) from error
    # Whatever the user's code raises becomes an error that names the line of that code.
    except (Exception, SystemExit) as error:
        raise UnsupportedOperation(
            f"{_line(error)}: the module raises {one_line(error)}"
        ) from error
    return apply_fusions(GraphReader(exported).program(), fusions)


def _line(error: BaseException) -> str:
    """Where in the user's code the error came from, such as ``model.py:12, in forward``: the
    innermost line outside PyTorch and the standard library. "the module" if there is none.
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
    """The inputs, in which a tensor that occurs again is replaced by a copy. Of the same tensor
    ``torch.export`` would make one input of the program, where the module has two.
    """
    # By identity; inputs may also be nested lists and dicts of tensors.
    seen: set[int] = set()

    def copied_if_seen(value: Any) -> Any:
        is_again = id(value) in seen
        seen.add(id(value))
        return value.clone() if is_again and isinstance(value, torch.Tensor) else value

    return tuple(torch.utils._pytree.tree_map(copied_if_seen, tuple(inputs)))


class GraphReader(OperationReader):
    """Turns the graph that ``torch.export`` made of a module into a program (a list of dispatches),
    node by node. A node is an input, a call of an operation, or the output; it becomes a view (a
    tensor in a buffer). What can be computed without inputs becomes ``Folded`` values instead:
    computed here, so that it needs no dispatch.
    """

    def __init__(self, exported: Any) -> None:
        super().__init__()
        self._exported = exported
        # By node what it became: a view, a folded tensor, a list of them, or a plain value.
        self._values: dict[Any, Any] = {}
        self._inputs: list[TensorView] = []
        self._written = _written_tensors(exported.graph)
        # A storage is the memory of tensors in PyTorch. By buffer of the program the storages that
        # it stands for, and by storage the buffers; ``_check_written`` compares them.
        self._storages = collections.defaultdict[str, set[int]](set)
        self._buffers_of_storage = collections.defaultdict[int, set[str]](set)

    def program(self) -> Program:
        """The program of the whole graph. Raises ``UnsupportedOperation`` at the first node that
        cannot be lowered.
        """
        outputs: tuple[TensorView, ...] = ()
        # By the name of a node what ``torch.export`` says of it: input, parameter, buffer or
        # constant.
        specs = {spec.arg.name: spec for spec in self._exported.graph_signature.input_specs}
        for node in self._exported.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = self._placeholder(node, specs[node.name])
            elif node.op == "call_function":
                # The submodule that called the operation, for messages and for the dispatches.
                self.place = _place(node)
                self._values[node] = self._called(node)
            elif node.op == "output":
                outputs = self._outputs(node)
            self._note_storage(node)

        # An older PyTorch turns each operation in place into a new tensor and one more output.
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
        """What a tensor that exists before the module runs (an input, a parameter, a buffer or a
        constant) becomes: a view of a new buffer of the program, or known values. None if nothing
        uses it.

        ``spec``: what ``torch.export`` says of it.
        """
        is_written = node in self._written
        if spec.kind.name == "CONSTANT_TENSOR" and not is_written:
            constant = self._exported.constants[spec.target]
            # A meta tensor has a shape, but no values.
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
        # ``target``: its name in the module. An input has none.
        name = spec.target or spec.arg.name
        number = number_type(example.dtype, name)
        view = self._buffer(name, number, tuple(example.shape), role)
        if role == "input":
            self._inputs.append(view)
        return view

    def _called(self, node: Any) -> Any:
        """What the result of a call of an operation becomes: a view, or known values. The
        dispatches that compute it are appended to the program.
        """
        # Not an operation, but Python taking one of several results.
        if getattr(node.target, "__name__", "") == "getitem":
            values, index = node.args
            return self._value(values)[index]
        if not hasattr(node.target, "_schema"):
            raise UnsupportedOperation(
                f"{self.place}: the operation {node.target} is not supported"
            )
        # Checks of shapes and types, which compute nothing.
        if operation_name(node.target) in IGNORED:
            return None

        arguments = self._arguments(node)
        # The operation writes into its first argument.
        if node.target._schema.is_mutable:
            self._check_written(node)
            return self.lower_call(node.target, node.meta.get("val"), arguments)
        leaves = torch.utils._pytree.tree_leaves(arguments)
        if any(isinstance(leaf, TensorView) for leaf in leaves):
            return self.lower_call(node.target, node.meta.get("val"), arguments)

        # Of known values alone the result is known too, and needs no dispatch. But if a later
        # operation writes into it, each step must begin with a fresh copy.
        folded = self._folded(node)
        return self.copied(self.as_view(folded)) if node in self._written else folded

    def _note_storage(self, node: Any) -> None:
        """Note which buffer of the program stands for which storage (memory of tensors) of PyTorch,
        by the result of this node. ``_check_written`` needs it.
        """
        value, example = self._values.get(node), node.meta.get("val")
        if node.target is torch.ops.aten.dropout.default:
            return  # an example has its own storage, the result has not
        if isinstance(value, TensorView) and isinstance(example, torch.Tensor):
            storage = example.untyped_storage()._cdata
            self._storages[value.buffer].add(storage)
            self._buffers_of_storage[storage].add(value.buffer)

    def _check_written(self, node: Any) -> None:
        """Raise ``UnsupportedOperation`` if the operation, which writes into a tensor, would change
        other tensors in the program than it does in PyTorch.

        It does not if the tensor's buffer stands for one storage (memory) of PyTorch, and this
        storage for no other buffer: then the same tensors share the memory in both.
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
        """All arguments of a call by name. Where the call leaves one out, it is the operation's
        default; results of other nodes are in place of the nodes.
        """
        schema = node.target._schema.arguments
        arguments = {argument.name: argument.default_value for argument in schema}
        # The first arguments are given by their places, the others by name or not at all.
        for argument, value in zip(schema, node.args, strict=False):
            arguments[argument.name] = self._value(value)
        for name, value in node.kwargs.items():
            arguments[name] = self._value(value)
        return arguments

    def _folded(self, node: Any) -> Folded:
        """The result of an operation whose arguments are all known, computed now on the CPU. Raises
        ``UnsupportedOperation`` if it is no tensor.
        """

        def real(value: Any) -> Any:
            return value.tensor if isinstance(value, Folded) else value

        values = [self._value(part) for part in node.args]
        named = {name: self._value(part) for name, part in node.kwargs.items()}
        # A module that is on a GPU makes its constants there.
        if "device" in named:
            named["device"] = "cpu"
        tree_map = torch.utils._pytree.tree_map
        # PyTorch itself computes it, so it must get its own tensors in place of ``Folded`` ones.
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
    """The nodes that make a tensor into which an operation writes later, directly or through a view
    (another shape of the same memory). Such a tensor is state, and cannot be a known value.
    """
    # By node the one that made the tensor of which it is a view; itself if it is no view.
    origins: dict[Any, Any] = {}
    written = set()
    for node in graph.nodes:
        origins[node] = node
        takes_node = bool(node.args) and isinstance(node.args[0], torch.fx.Node)
        if node.op != "call_function" or not takes_node:
            continue
        # Without a schema it is no operation, but ``getitem``, which takes one of several views.
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
