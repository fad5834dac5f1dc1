"""Find patterns among the operations of a program and replace them. The fusions are built on
this.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import TypeVar

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.operation import Operation
from overhead.decode.lowering.program import Program
from overhead.decode.lowering.templates.elementwise import Elementwise

OperationKind = TypeVar("OperationKind", bound=Operation)


class NoMatch(Exception):
    """The operations are not those of the pattern."""


def require(condition: bool) -> None:
    """Raise ``NoMatch`` unless the condition of a pattern is true."""
    if not condition:
        raise NoMatch


@dataclasses.dataclass(frozen=True)
class Replacement:
    """Operations to remove, by their positions, and the operation that takes the place of the one
    at ``at``.
    """

    removed: frozenset[int]
    new: Operation
    at: int


class DataFlow:
    """Which operations write and read each buffer of a program."""

    def __init__(self, program: Program) -> None:
        self.operations = program.operations
        self._program = program
        self._writers = collections.defaultdict[str, list[int]](list)
        self._readers = collections.defaultdict[str, list[int]](list)
        # Sets, because an operation that reads a buffer through two views is one reader.
        for position, operation in enumerate(program.operations):
            for name in {view.buffer for view in operation.writes}:
                self._writers[name].append(position)
            for name in {view.buffer for view in operation.reads}:
                self._readers[name].append(position)
        self._outputs = {view.buffer for view in program.outputs}

    def writers(self, view: TensorView) -> list[int]:
        """The positions of all operations that write the buffer of this view."""
        return self._writers[view.buffer]

    def operation_at(self, position: int, kind: type[OperationKind]) -> OperationKind:
        """The operation at this position. Raises ``NoMatch`` if it is of another kind."""
        operation = self.operations[position]
        if not isinstance(operation, kind):
            raise NoMatch
        return operation

    def writer(self, view: TensorView) -> int:
        """The position of the only operation that writes this temporary buffer. Raises
        ``NoMatch``.
        """
        writers = self._writers[view.buffer]
        is_temporary = self._program.buffers[view.buffer].role == "temporary"
        require(len(writers) == 1)
        require(is_temporary)
        return writers[0]

    def only_reader(self, view: TensorView) -> int:
        """The position of the only operation that reads this temporary buffer. Raises ``NoMatch``.

        The buffer must have one writer and must not be an output, so that nothing misses it if both
        are replaced.
        """
        self.writer(view)
        readers = self._readers[view.buffer]
        require(len(readers) == 1)
        require(view.buffer not in self._outputs)
        return readers[0]

    def allows(self, replacement: Replacement) -> bool:
        """True if the program computes the same after the replacement.

        No operation in between may write what the new one reads or writes, nor read too early what
        it writes.
        """
        new = replacement.new
        written = {view.buffer for view in new.writes}
        used = set(new.bindings)
        for i in range(min(replacement.removed), max(replacement.removed) + 1):
            if i in replacement.removed:
                continue
            between = self.operations[i]
            if any(view.buffer in used for view in between.writes):
                return False
            # Before the new place it would read a buffer that the new operation writes only later.
            if i < replacement.at and any(view.buffer in written for view in between.reads):
                return False
        return True


def other_input(operation: Elementwise, known: TensorView) -> TensorView:
    """Of an operation's two inputs the one in another buffer than ``known``, which is the other.
    Raises ``NoMatch``.
    """
    others = [view for view in operation.inputs if view.buffer != known.buffer]
    require(len(operation.inputs) == 2)
    require(len(others) == 1)
    require(known in operation.inputs)
    return others[0]


Match = Callable[[DataFlow, int], Replacement]
"""Finds a pattern around the operation at this position. Raises ``NoMatch``."""


def replace_matches(program: Program, match: Match) -> Program:
    """The program after all replacements that ``match`` finds and that do not change what it
    computes.
    """
    flow = DataFlow(program)
    position = 0
    while position < len(flow.operations):
        try:
            replacement = match(flow, position)
            require(flow.allows(replacement))
        except NoMatch:
            position += 1
            continue

        operations: list[Operation] = []
        for i, operation in enumerate(flow.operations):
            if i == replacement.at:
                operations.append(replacement.new)
            elif i not in replacement.removed:
                operations.append(operation)
        program = program.with_operations(tuple(operations))
        flow = DataFlow(program)
        # The positions before the first removed one are the same, and were tried already.
        position = min(replacement.removed)
    return program
