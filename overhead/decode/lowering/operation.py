"""What one dispatch computes. Each template in ``templates/`` is a subclass; its instances write
their kernel.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable
from textwrap import indent
from typing import ClassVar, Literal

from overhead.decode.lowering.buffers import NumberType, TensorView
from overhead.decode.lowering.kernel import Binding, Kernel
from overhead.errors import UsageError

GROUP_THREADS = 64
"""Threads in a group, unless a template needs more."""
_MOST_THREADS = 256
"""Threads of a group that every WebGPU device offers."""
_LOADS = 4
"""Loads of a thread along a row, at most, unless the group has ``_MOST_THREADS``."""
SHARED_NUMBERS = 4_096
"""The most f32 numbers that the threads of a group share: 16 KiB, the least that every WebGPU
device offers.
"""


def threads_along(length: int) -> int:
    """The threads of a group that shares a row of this length: so many that none loads more than
    four numbers, but at most 256.
    """
    threads = GROUP_THREADS
    while threads < _MOST_THREADS and length > threads * _LOADS:
        threads *= 2
    return threads


def groups_for(count: int) -> int:
    """The groups of ``GROUP_THREADS`` threads that have at least ``count`` threads together."""
    return -(-count // GROUP_THREADS)


class UnsupportedOperation(UsageError):
    """An operation of the module that cannot be lowered; the message names it and its place in the
    module.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Operation(abc.ABC):
    """One dispatch: the views (tensors in buffers) that it reads and writes, and its kernel. A
    subclass computes one kind of operation, such as a matrix product, and writes its source text.

    ``place``: the submodule that it comes from. ``written``: the names of the fields with the views
    that the kernel writes.
    """

    written: ClassVar[tuple[str, ...]] = ("output",)
    place: str = ""

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """The kind of operation in a few words without spaces, such as ``gemv`` or ``mul``."""

    @property
    def reads(self) -> tuple[TensorView, ...]:
        """The views whose numbers the kernel reads: all but those of ``written``, in the order of
        the fields.
        """
        names = [field.name for field in dataclasses.fields(self)]
        return self._views(name for name in names if name not in self.written)

    @property
    def writes(self) -> tuple[TensorView, ...]:
        """The views whose numbers the kernel writes."""
        return self._views(self.written)

    def _views(self, fields: Iterable[str]) -> tuple[TensorView, ...]:
        """The views in the fields with these names. A field may hold a view, a tuple of views, or
        something else, such as a number, which is left out.
        """
        views: list[TensorView] = []
        for name in fields:
            value = getattr(self, name)
            values = value if isinstance(value, tuple) else (value,)
            views += [view for view in values if isinstance(view, TensorView)]
        return tuple(views)

    @property
    def bindings(self) -> tuple[str, ...]:
        """The names of the buffers, in the order in which the kernel numbers them; each buffer
        once.
        """
        names = [view.buffer for view in (*self.writes, *self.reads)]
        return tuple(dict.fromkeys(names))

    @abc.abstractmethod
    def kernel(self) -> Kernel:
        """The kernel. Operations with the same views, but in other buffers, have equal kernels."""

    def compose(
        self,
        body: str,
        groups: int,
        *,
        threads: int = GROUP_THREADS,
        shared: tuple[tuple[str, int], ...] = (),
        fours: tuple[TensorView, ...] = (),
    ) -> Kernel:
        """A kernel that runs ``body`` in ``groups`` groups of ``threads`` threads.

        ``body``: statements in the language of the module ``kernel``, in which ``b0``, ``b1``, ...
        are the buffers of this operation. ``shared``: name and length of each array that the
        threads of a group share. ``fours``: views that it reads as vectors of four numbers.
        """
        vectors = {view.buffer for view in fours}
        written = {view.buffer for view in self.writes}
        numbers = {view.buffer: view.number for view in (*self.writes, *self.reads)}
        bindings = []
        for name in self.bindings:
            element: NumberType | Literal["vec4f"] = "vec4f" if name in vectors else numbers[name]
            bindings.append(Binding(element, name in written))
        return Kernel(self.label, tuple(bindings), threads, groups, body, shared)

    def each_element(self, count: int, body: str) -> Kernel:
        """A kernel that runs the statements ``body`` for each number ``i`` below ``count``, in one
        thread each.
        """
        # Whole groups have more threads than are needed; the last ones do nothing.
        text = f"""\
u32 i = group * {GROUP_THREADS}u + lane;
if (i < {count}u) {{
{indent(body, "  ")}
}}"""
        return self.compose(text, groups_for(count))

    def name(self, view: TensorView) -> str:
        """The name of the buffer of this view in the text of the kernel."""
        return f"b{self.bindings.index(view.buffer)}"

    def flat_element(self, view: TensorView, index: str) -> str:
        """Source text for the element of the view with this number in row-major order."""
        return f"{self.name(view)}[{view.flat_index(index)}]"

    def row_element(self, view: TensorView, row: str, column: str) -> str:
        """Source text for an element of the view; a row is what the last dimension spans."""
        return f"{self.name(view)}[{view.row_index(row, column)}]"

    def element(self, view: TensorView, *indices: str) -> str:
        """Source text for the element of the view with these indices."""
        return f"{self.name(view)}[{view.element_index(*indices)}]"
