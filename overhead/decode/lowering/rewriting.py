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
    """What a fusion does to the list of operations: those at the positions ``removed`` go, and
    ``new`` comes in place of the one at the position ``at``, which is among the removed.
    """

    removed: frozenset[int]
    new: Operation
    at: int


class DataFlow:
    """Which operations of a program write and read each buffer. Operations are named by their
    positions in the program.
    """

    def __init__(self, program: Program) -> None:
        self.operations = program.operations
        self._program = program
        # By the name of a buffer, the positions of the operations that write it and that read it.
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
        """The position of the operation that writes the buffer of this view.

        Raises ``NoMatch`` if there are several, or if the buffer is not temporary: then the numbers
        in it may come from elsewhere, such as the step before.
        """
        writers = self._writers[view.buffer]
        is_temporary = self._program.buffers[view.buffer].role == "temporary"
        require(len(writers) == 1)
        require(is_temporary)
        return writers[0]

    def only_reader(self, view: TensorView) -> int:
        """The position of the operation that reads the buffer of this view. Raises ``NoMatch`` if
        anything else might need the buffer.

        That is: if the buffer has another reader or a second writer, is no temporary one, or is an
        output of the program. Otherwise writer and reader can both be replaced, and nothing misses
        the buffer.
        """
        # Raises for a second writer, and for a buffer that is not temporary.
        self.writer(view)
        readers = self._readers[view.buffer]
        require(len(readers) == 1)
        require(view.buffer not in self._outputs)
        return readers[0]

    def allows(self, replacement: Replacement) -> bool:
        """True if the program computes the same after the replacement, which puts one operation in
        place of several that may lie apart.

        Only the operations that lie between those can go wrong. None of them may write what the new
        operation reads or writes, nor read what the new one has not written yet.
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
            # It may read what a removed operation has written by now. The new operation comes only
            # after it, so it would read old numbers.
            if i < replacement.at and any(view.buffer in written for view in between.reads):
                return False
        return True


def other_input(operation: Elementwise, known: TensorView) -> TensorView:
    """The second input of an operation with two inputs, of which one is ``known``; in any order,
    because sums and products do not depend on it.

    Raises ``NoMatch`` if the inputs are others, or both in one buffer.
    """
    others = [view for view in operation.inputs if view.buffer != known.buffer]
    require(len(operation.inputs) == 2)
    require(len(others) == 1)
    require(known in operation.inputs)
    return others[0]


Match = Callable[[DataFlow, int], Replacement]
"""Finds a pattern around the operation at this position. Raises ``NoMatch``."""


def replace_matches(program: Program, match: Match) -> Program:
    """The program after one kind of fusion: ``match`` looks for its pattern around each position,
    and each match is replaced if that does not change what the program computes.
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
        # All later positions have changed.
        flow = DataFlow(program)
        # The positions before the first removed one are the same, and were tried already. It ends,
        # because each replacement leaves fewer operations.
        position = min(replacement.removed)
    return program
