"""A workload: state, read-only inputs, and one step in every language that stacks run.

The *elements* of a workload are independent of each other, so a stack may use a thread or a group of threads for each,
and the check may recompute a few. Workloads and stacks do not depend on each other.
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
    """A named array in the precision of the workload.

    ``shape``: of each element (empty: a number) or, if ``shared``, of the one array for all elements.
    """

    name: str
    shape: tuple[int, ...] = ()
    shared: bool = False

    @property
    def width(self) -> int:
        """Numbers per element, or in all if the field is shared."""
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class KernelEntry:
    """A kernel and its launch: the number of groups, and threads per group (Triton: numbers per block)."""

    name: str
    groups: int
    threads: int


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Source text in one language, and for each body the kernels that a unit launches, in order.

    ``one`` is a step in one kernel, ``separate`` a step in several kernels, ``fused`` one kernel that runs all steps.
    """

    text: str
    entries: Mapping[str, tuple[KernelEntry, ...]]


class Workload(abc.ABC):
    """A step that is repeated on its own result. Instances are made without arguments.

    ``wgsl``, ``cuda`` and ``triton`` are statements that change the state. A field of one number per element is a local
    variable with the name of the field; wider state is a local array. Other read-only fields are functions: ``name(k)``
    is number k of this element (flattened) or of the shared array. ``t`` is the number of the step. ``constants`` are
    constants in every language.
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
    """Parameters that change the computation, the most important first. Only cases of one variant are compared."""
    bodies: ClassVar[tuple[str, ...]] = ()
    """Ways to run a step, if there are several: ``separate`` kernels, ``one`` kernel, or a call of the ``library``."""
    host_works: ClassVar[bool] = False
    """Whether host and device are compared. Then the host runs it on one thread and on all threads."""
    scratch: int = 0
    """Extra numbers per element that the kernels need after the state."""
    by_element: ClassVar[bool] = False
    """Memory layout: True if the numbers of an element are adjacent, False if equal numbers of all elements are."""
    checked: ClassVar[int] = 48
    """Steps after which the check compares the state with the reference."""
    turns: ClassVar[int] = 1
    """Iterations of all loops in one step of the kernel, including the loop over steps. llvmpipe limits them."""
    steps: ClassVar[int]
    """Steps of the published run."""
    elements: tuple[int, ...]
    """Numbers of elements on a GPU, the most important first."""
    small: tuple[int, ...]
    """Numbers of elements on a CPU and on software adapters."""
    heavy: ClassVar[bool] = True
    """Whether it is measured only when named or in the thorough profile."""
    lasts: ClassVar[int] = 0
    """Steps until numbers become subnormal; 0: they never do."""
    contracts: ClassVar[bool]
    """Whether small differences shrink with every step, so that any number of steps can be compared."""
    tolerance: float
    """Largest allowed difference from float64 after one step (if it contracts: any number), relative to ``scale``."""
    scale: ClassVar[Mapping[str, float]]
    """Typical size of the values of each state field; differences are divided by it."""
    periods: ClassVar[Mapping[str, float]] = {}
    """Periods of fields that wrap around, such as angles."""

    wgsl: ClassVar[str] = ""
    cuda: ClassVar[str] = ""
    triton: ClassVar[str] = ""
    """Empty if the step is not written in the language; ``missing`` may give the reason."""
    missing: ClassVar[Mapping[str, str]] = {}

    @abc.abstractmethod
    def start(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """A start state in float64: every field of shape ``(elements, *shape)``."""

    def fresh(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """A start state in the precision of the workload."""
        return {name: values.astype(self.dtype) for name, values in self.start(elements, rng).items()}

    def inputs(self, elements: int, rng: np.random.Generator) -> dict[str, Array]:
        """Read-only inputs in float64: ``(elements, *shape)``, or ``shape`` if shared."""
        return {}

    @abc.abstractmethod
    def step(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """One step of all elements on arrays of ``xp``: numpy, torch, jax.numpy, cupy. ``t``: an int array, shape (1,).

        Uses only functions that all four have, keeps the precision of its inputs and returns new arrays.
        """

    def library(self, xp: Any, state: Arrays, fixed: Arrays, t: Any) -> Arrays:
        """The step by a single call of the array library, if ``bodies`` has ``library``."""
        raise NotImplementedError

    def kernels(self, language: str, elements: int) -> Kernels | None:
        """Special kernels, if one thread per element is not suitable. None: made from the statements by ``sources``."""
        return None

    def at(self, params: Mapping[str, Scalar]) -> Workload:
        """The workload for the parameters of a case: ``elements`` and a variant. Raises ``KeyError`` for others."""
        return self

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision as a NumPy type."""
        return np.dtype(self.precision)

    def sizes(self, software: bool) -> tuple[int, ...]:
        """Numbers of elements for a GPU, or for a CPU and software adapters."""
        return self.small if software else self.elements
