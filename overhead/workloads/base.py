"""A workload: state, read-only inputs, and one step in every language that stacks run.

The *elements* of a workload are independent of each other, so a stack may use a thread or a group
of threads for each, and the check may recompute a few. Workloads and stacks do not depend on each
other.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from overhead.results import Scalar, Why

Array = NDArray[Any]
Arrays = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Field:
    """A named array of a workload, such as the positions of all bodies. ``shape``: the shape per
    element (empty: one number). If ``shared``, the shape of the one array for all elements.
    """

    name: str
    shape: tuple[int, ...] = ()
    shared: bool = False

    @property
    def width(self) -> int:
        """Numbers per element. If the field is shared, numbers in total."""
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class KernelEntry:
    """A kernel and its launch size: number of groups, and threads per group (Triton: numbers per
    block).
    """

    name: str
    groups: int
    threads: int


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Source text in one language, and for each body the kernels that a unit launches, in order.

    ``one``: one kernel for a step. ``separate``: several kernels for a step. ``fused``: one kernel
    for all steps.
    """

    text: str
    entries: Mapping[str, tuple[KernelEntry, ...]]


class Workload(abc.ABC):
    """A computation to measure: a step that is repeated on its own result (``state``), with
    read-only inputs (``fixed``), for many elements that are independent of each other. Instances
    are made without arguments.

    ``wgsl``, ``cuda`` and ``triton`` are statements that change the state. A field with one number
    per element is a local variable with the name of the field. A state field with more numbers is a
    local array. Other read-only fields are functions: ``name(k)`` is number k of this element
    (flattened), or of the shared array. ``t`` is the index of the step. ``constants`` are constants
    in every language.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    """One sentence for the report: what a step does."""
    constants: ClassVar[Mapping[str, float]] = {}
    state: tuple[Field, ...]
    fixed: tuple[Field, ...] = ()
    precision: Literal["float32", "float16"] = "float32"
    """Precision of state and inputs."""
    variants: ClassVar[Sequence[Mapping[str, Scalar]]] = ({},)
    """Parameters that change the computation, the most important first. Only cases of one variant
    are compared.
    """
    bodies: ClassVar[tuple[str, ...]] = ()
    """Ways to run a step, if there are several: ``separate`` kernels, ``one`` kernel, or a
    ``library`` call.
    """
    host_works: ClassVar[bool] = False
    """Whether host and device are compared. If so, the host runs the workload on one thread and on
    all threads.
    """
    scratch: int = 0
    """Extra numbers per element that the kernels need after the state."""
    by_element: ClassVar[bool] = False
    """Memory layout. True: the numbers of one element are adjacent. False: the k-th numbers of all
    elements are.
    """
    checked: ClassVar[int] = 48
    """Steps after which the check compares the state with the reference."""
    turns: ClassVar[int] = 1
    """Iterations of all loops in one step of the kernel, including the loop over steps. llvmpipe
    limits them.
    """
    steps: ClassVar[int]
    """Steps of the published run."""
    elements: tuple[int, ...]
    """Numbers of elements on a GPU, the most important first."""
    small: tuple[int, ...]
    """Numbers of elements on a CPU and on software adapters."""
    heavy: ClassVar[bool] = True
    """Whether the workload is measured only if named, or in the thorough profile."""
    usual: ClassVar[bool] = False
    """Whether every run on a GPU measures it all the same, by each stack's ``early`` arms."""
    lasts: ClassVar[int] = 0
    """Steps until numbers become subnormal; 0: they never become subnormal."""
    contracts: ClassVar[bool]
    """Whether small differences shrink with every step, so that any number of steps can be
    compared.
    """
    tolerance: float
    """Largest allowed difference from float64 after one step, or after any number of steps if the
    step contracts.

    It is relative to ``scale``.
    """
    scale: ClassVar[Mapping[str, float]]
    """Typical size of the values of each state field; differences are divided by it."""
    periods: ClassVar[Mapping[str, float]] = {}
    """Periods of fields that wrap around, such as angles. A step leaves them within half a period
    of 0.
    """

    wgsl: ClassVar[str] = ""
    cuda: ClassVar[str] = ""
    triton: ClassVar[str] = ""
    """Empty if the step is not written in this language. Then ``missing`` may contain the
    reason.
    """
    missing: ClassVar[Mapping[str, Why]] = {}

    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """A start state in float64, here between -1 and 1. Every field has the shape ``(elements,
        *shape)``.
        """
        shapes = {field.name: (elements, *field.shape) for field in self.state}
        return {name: rng.uniform(-1, 1, shape) for name, shape in shapes.items()}

    def fresh(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """A start state in the precision of the workload."""
        start = self.start(elements, rng)
        return {name: values.astype(self.dtype) for name, values in start.items()}

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Read-only inputs in float64. Their shape is ``(elements, *shape)``, or ``shape`` if
        shared.
        """
        return {}

    @abc.abstractmethod
    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """One step of all elements, on arrays of ``xp``: numpy, torch, jax.numpy or cupy.

        ``t``: index of the step, an int array of shape (1,). Uses only functions that all four
        libraries have, keeps the precision of its inputs, and returns new arrays.
        """

    def library(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """The step by a single call of the array library, if ``bodies`` has ``library``."""
        raise NotImplementedError

    def kernels(self, language: str, elements: int) -> Kernels | None:
        """Special kernels, if one thread per element is not suitable. None: ``sources`` makes them
        from statements.
        """
        return None

    def at(self, params: Mapping[str, Scalar]) -> Workload:
        """The workload for the parameters of a case: ``elements`` and a variant. Other parameters:
        ``KeyError``.
        """
        return self

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision as a NumPy type."""
        return np.dtype(self.precision)

    def sizes(self, software: bool) -> tuple[int, ...]:
        """Numbers of elements: those for a GPU, or with ``software`` those for a CPU and software
        adapters.
        """
        return self.small if software else self.elements
