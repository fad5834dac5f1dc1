"""What a workload is: state, read-only inputs, and one step of it in every language that a stack may run.

A workload is made of *elements* that do not know of each other, so that every arm may run a thread or a group of them
an element and the check may redo a few. Nothing here knows a stack, and no stack knows a workload.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from overhead.results import Scalar

Array = NDArray[Any]
Arrays = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Field:
    """A named array of the workload's precision: ``shape`` of each element (empty: a number), or, if ``shared``, of the
    one for all."""

    name: str
    shape: tuple[int, ...] = ()
    shared: bool = False

    @property
    def width(self) -> int:
        """Numbers an element, or of the whole where it is shared."""
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class KernelEntry:
    """A kernel by name, and what launches it: how many groups, of how many threads (Triton: numbers of a block)."""

    name: str
    groups: int
    threads: int


@dataclasses.dataclass(frozen=True)
class Kernels:
    """A text in one language and, by body, the kernels that a unit launches, in order.

    ``one`` is a step in one kernel, ``separate`` the same step in several, ``fused`` one kernel that loops over steps.
    """

    text: str
    entries: Mapping[str, tuple[KernelEntry, ...]]


class Workload(abc.ABC):
    """A step that is repeated, each time on what the last one left. Instances are made without arguments.

    The bodies by language are statements that change the state's fields, which they find as local variables of these
    names; so are read-only fields of one number an element. Wider state is a local array. Other read-only fields are
    functions: ``name(k)`` is number k of this element, flat, or of the shared array. ``t`` is the step's number,
    ``constants`` are constants in every language.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    """What one step does, for the report: a sentence."""
    constants: ClassVar[Mapping[str, float]] = {}
    state: tuple[Field, ...]
    fixed: tuple[Field, ...] = ()
    precision: Literal["float32", "float16"] = "float32"
    """Of state and inputs."""
    variants: ClassVar[Sequence[Mapping[str, Scalar]]] = ({},)
    """Parameters that change what is computed, most telling first: arms are compared within one of these."""
    bodies: ClassVar[tuple[str, ...]] = ()
    """Ways to split a step, where there are several: ``separate``, ``one`` (kernel), ``library`` (its own call)."""
    host_works: ClassVar[bool] = False
    """Whether the host's speed is part of the question: its arms then run on one thread and on all."""
    scratch: int = 0
    """Numbers an element that its kernels need behind the state."""
    by_element: ClassVar[bool] = False
    """Whether kernels find an element's numbers side by side; else those of one number are, element after element."""
    checked: ClassVar[int] = 48
    """Steps after which the check compares."""
    turns: ClassVar[int] = 1
    """Turns that the loops of one step's kernel take in all, the loop over steps included; llvmpipe bounds it."""
    steps: ClassVar[int]
    """Steps of the published run: one generation, or the length that people ask about."""
    elements: tuple[int, ...]
    """Numbers of elements to run on a GPU, most telling first."""
    small: tuple[int, ...]
    """The same on a CPU and on software adapters."""
    heavy: ClassVar[bool] = True
    """Measured only when named, or in the thorough profile."""
    lasts: ClassVar[int] = 0
    """Steps before its numbers fall under the least normal one of its precision; 0: they never do."""
    contracts: ClassVar[bool]
    """Whether small differences die out, so that any number of steps can be compared with the reference."""
    tolerance: float
    """Largest difference from float64 after one step (where it contracts: after any number), relative to ``scale``."""
    scale: ClassVar[Mapping[str, float]]
    """The size of each state field's values, by which differences are divided."""
    periods: ClassVar[Mapping[str, float]] = {}
    """For fields that wrap, such as angles: what a difference is taken modulo."""

    wgsl: ClassVar[str] = ""
    cuda: ClassVar[str] = ""
    triton: ClassVar[str] = ""
    """Empty where the step is not written in that language; ``missing`` may say why."""
    missing: ClassVar[Mapping[str, str]] = {}

    @abc.abstractmethod
    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Fresh state: float64, every field of shape ``(elements, *shape)``."""

    def fresh(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """A start in the workload's precision."""
        return {name: values.astype(self.dtype) for name, values in self.start(elements, rng).items()}

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Fresh read-only inputs: float64, ``(elements, *shape)``, or ``shape`` where shared."""
        return {}

    @abc.abstractmethod
    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """One step of all elements on arrays of ``xp``: numpy, torch, jax.numpy, cupy. ``t``: an int array, shape (1,).

        Uses only what these four spell alike, keeps the precision of its inputs and returns new arrays.
        """

    def library(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """The step by the call that the array library has for it, where ``bodies`` names ``library``."""
        raise NotImplementedError

    def kernels(self, language: str, elements: int) -> Kernels | None:
        """Kernels of its own, where a thread an element will not do; None: made from the bodies by language."""
        return None

    def at(self, params: Mapping[str, Scalar]) -> Workload:
        """The workload at a case's parameters: ``elements`` and those of a variant. Raises ``KeyError``."""
        return self

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's name of the precision."""
        return np.dtype(self.precision)

    def sizes(self, software: bool) -> tuple[int, ...]:
        """Numbers of elements for a GPU, or for a CPU and software adapters."""
        return self.small if software else self.elements
