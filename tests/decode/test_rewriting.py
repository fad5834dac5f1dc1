"""When a replacement computes the same: what the operations in between may read and write."""

from __future__ import annotations

import pytest

from overhead.decode.lowering.buffers import Buffer, packed_view
from overhead.decode.lowering.program import Program
from overhead.decode.lowering.rewriting import DataFlow, NoMatch, Replacement
from overhead.decode.lowering.templates.elementwise import Elementwise


def copy(source: str, target: str) -> Elementwise:
    views = [packed_view(name, "f32", (4,)) for name in (source, target)]
    return Elementwise(kind="copy", expression="x0", inputs=(views[0],), output=views[1])


def flow(*operations: Elementwise, output: str = "z") -> DataFlow:
    names = {name for operation in operations for name in operation.bindings} | {output}
    buffers = {name: Buffer(name, "f32", 4, "temporary") for name in sorted(names)}
    return DataFlow(Program(buffers, operations, (), (packed_view(output, "f32", (4,)),)))


@pytest.mark.parametrize(
    ("between", "at", "allowed"),
    [
        (("p", "q"), 2, True),
        (("p", "a"), 2, False),
        (("p", "z"), 2, False),
        (("a", "q"), 2, True),
        (("z", "q"), 2, False),
        (("z", "q"), 0, True),
    ],
)
def test_a_replacement_is_refused_if_an_operation_in_between_changes_its_buffers(
    between: tuple[str, str], at: int, allowed: bool
) -> None:
    """a -> m -> z becomes a -> z, at the place of the first or of the last of the two."""
    found = flow(copy("a", "m"), copy(*between), copy("m", "z"))
    assert found.allows(Replacement(frozenset({0, 2}), copy("a", "z"), at)) is allowed


def test_a_buffer_has_an_only_reader_unless_it_is_an_output_or_has_two_readers_or_writers() -> None:
    middle = packed_view("m", "f32", (4,))
    assert flow(copy("a", "m"), copy("m", "z")).only_reader(middle) == 1
    for others in (
        flow(copy("a", "m"), copy("m", "z"), copy("m", "y")),
        flow(copy("a", "m"), copy("m", "z"), output="m"),
        flow(copy("a", "m"), copy("b", "m"), copy("m", "z")),
    ):
        with pytest.raises(NoMatch):
            others.only_reader(middle)
