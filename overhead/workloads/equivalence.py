"""Check that a chain computes the workload, by comparing its values with NumPy in float64 on random
inputs.

If the step contracts, the state is compared with the reference twice: after ``_EARLY_STEPS``, when
it still depends on the start, and after ``Workload.checked`` steps. If the step does not contract,
the state is compared once, as late as NumPy in float32 is still well within ``_PREFIX_TOLERANCE``
of float64. After that, ``_SPOTS`` single steps of the chain are recomputed in NumPy. Elements are
independent, so only ``_SAMPLE`` random elements, the first and the last are compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from overhead.errors import WithReason
from overhead.results import Reason, because
from overhead.workloads.base import Array, Workload

_EARLY_STEPS = 3
_PREFIX_TOLERANCE = 1e-3
_SPOTS = 20
_SAMPLE = 64
_WITHIN = 1.001
"""An angle may be this many times half a period from 0, for rounding."""


class Differs(WithReason):
    """The chain does not compute the workload."""


class Checkable(Protocol):
    """The methods of a chain that the check uses."""

    def put(self, state: dict[str, Array]) -> None:
        """Set the state of all elements, at step 0."""

    def advance(self, steps: int) -> None:
        """Run so many steps."""

    def get(self) -> tuple[dict[str, Array], int]:
        """The state of all elements, and the steps since ``put`` by the counters of the
        elements.
        """


def check_chain(
    workload: Workload,
    elements: int,
    fixed: dict[str, Array],
    chain: Checkable,
    rng: np.random.Generator,
) -> None:
    """Raise ``Differs`` if the chain, with the inputs ``fixed``, does not compute the workload.
    Changes its state.
    """
    state = workload.fresh(elements, rng)
    rows = np.unique(np.concatenate([[0, elements - 1], rng.integers(0, elements, _SAMPLE)]))
    redo = Reference(workload, fixed, rows)
    chain.put(state)
    bound, done = workload.tolerance if workload.contracts else _PREFIX_TOLERANCE, 0
    for steps in (
        (_EARLY_STEPS, workload.checked) if workload.contracts else (redo.comparable_steps(state),)
    ):
        chain.advance(steps - done)
        done = steps
        got, count = chain.get()
        _count(count, done)
        redo.compare(
            got,
            redo.run(redo.take(state), 0, done, np.float64),
            bound,
            because("after-steps", steps=done),
        )
    if workload.contracts:
        return
    gap = int(rng.integers(3, 40))
    for spot in range(_SPOTS):
        chain.advance(gap)
        before, at = chain.get()
        chain.advance(1)
        expected = redo.run(redo.take(before), at, 1, np.float64)
        after, count = chain.get()
        _count(count, done + (spot + 1) * (gap + 1))
        redo.compare(after, expected, workload.tolerance, because("step-redone", step=at))


class Reference:
    """The workload in NumPy for some of its elements, ``rows``, with the inputs ``fixed`` of all
    elements.
    """

    def __init__(self, workload: Workload, fixed: dict[str, Array], rows: Array) -> None:
        self.workload, self.rows = workload, rows
        shared = {f.name: f.shared for f in workload.fixed}
        self._fixed = {
            k: np.asarray(v if shared[k] else v[rows]).astype(workload.dtype)
            for k, v in fixed.items()
        }

    def take(self, state: dict[str, Array]) -> dict[str, Array]:
        """From the state of all elements that of the elements of this reference."""
        return {k: v[self.rows] for k, v in state.items()}

    def run(
        self, state: dict[str, Array], at: int, steps: int, precision: type
    ) -> dict[str, Array]:
        """The state after ``steps`` steps that begin at step ``at``, computed in this precision."""
        *_, last = self._states(state, at, steps, precision)
        return last

    def comparable_steps(self, state: dict[str, Array]) -> int:
        """The number of steps, 1 to ``checked``, that float32 stays well within
        ``_PREFIX_TOLERANCE`` of float64.
        """
        most = self.workload.checked
        rough, exact = (
            self._states(self.take(state), 0, most, precision)
            for precision in (np.float32, np.float64)
        )
        # The rest of the tolerance is for the chain, which rounds differently from NumPy.
        close = (
            self.distance(a, b) < _PREFIX_TOLERANCE / 4 for a, b in zip(rough, exact, strict=True)
        )
        return max(1, sum(1 for _ in itertools.takewhile(bool, close)))

    def _states(
        self, state: dict[str, Array], at: int, steps: int, precision: type
    ) -> Iterator[dict[str, Array]]:
        fixed: dict[str, Array] = {k: v.astype(precision) for k, v in self._fixed.items()}
        state = {k: v.astype(precision) for k, v in state.items()}
        for t in range(at, at + steps):
            state = self.workload.step(np, state, fixed, np.array([t], np.int32))
            yield state

    def distance(self, a: dict[str, Array], b: dict[str, Array]) -> float:
        """The largest difference of two states, relative to the scales of the fields; infinite if
        not finite.

        It is infinite too if an angle of ``a`` was not brought back into its period around 0.
        """
        scale = self.workload.scale
        apart = {k: np.abs(a[k].astype(np.float64) - b[k]) for k in scale}
        for k, period in self.workload.periods.items():
            apart[k] = np.minimum(apart[k] % period, -apart[k] % period)
            if np.max(np.abs(a[k])) > _WITHIN * period / 2:
                return float("inf")
        worst = [float(np.max(apart[k])) / scale[k] for k in scale]
        return max(worst) if np.isfinite(worst).all() else float("inf")

    def compare(
        self, got: dict[str, Array], expected: dict[str, Array], bound: float, when: Reason
    ) -> None:
        """Raise ``Differs`` if ``got``, the state of all elements, differs from ``expected`` by
        more than the bound.
        """
        off = self.distance(self.take(got), expected)
        if not off <= bound:
            raise Differs(because("off-by-more-than-allowed", why=when, off=off, bound=bound))


def _count(found: int, expected: int) -> None:
    if found != expected:
        raise Differs(because("counters-differ", steps=found, expected=expected))
