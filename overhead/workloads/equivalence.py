"""Equivalence before speed: an arm's values against NumPy in float64, on fresh random inputs.

Where the step contracts, the arm's state is compared with the reference after ``EARLY`` steps, which still hold much of
the start, and after as many as the workload says. Where it does not, it is compared over the prefix in which NumPy in
float32 itself stays well within ``PREFIX``; beyond it, ``SPOTS`` random steps of the arm's own trajectory are each
redone in NumPy. Elements know nothing of each other, so that ``SAMPLE`` of them, the first and the last suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from overhead.workloads.base import Array, Workload

EARLY = 3
PREFIX = 1e-3
SPOTS = 20
SAMPLE = 64


class Differs(Exception):
    """The arm computed something else than the workload."""


class Checkable(Protocol):
    """What is checked: state in, steps, state out."""

    def put(self, state: dict[str, Array]) -> None:
        """Start over from this state at step 0."""

    def advance(self, steps: int) -> None:
        """Run so many steps and wait for them."""

    def get(self) -> tuple[dict[str, Array], int]:
        """The state, and the number of steps since ``put`` by the counters. Raises where the elements disagree."""


def check(workload: Workload, elements: int, fixed: dict[str, Array], arm: Checkable, rng: np.random.Generator) -> None:
    """Raises ``Differs``. Leaves the arm at whatever state it came to."""
    state = workload.fresh(elements, rng)
    rows = np.unique(np.concatenate([[0, elements - 1], rng.integers(0, elements, SAMPLE)]))
    redo = Reference(workload, fixed, rows)
    arm.put(state)
    bound, done = workload.tolerance if workload.contracts else PREFIX, 0
    for steps in (EARLY, workload.checked) if workload.contracts else (redo.prefix(state),):
        arm.advance(steps - done)
        done = steps
        got, count = arm.get()
        _count(count, done)
        redo.compare(got, redo.run(redo.take(state), 0, done, np.float64), bound, f"after {done} steps")
    if workload.contracts:
        return
    gap = int(rng.integers(3, 40))
    for spot in range(SPOTS):
        arm.advance(gap)
        before, at = arm.get()
        arm.advance(1)
        after, count = arm.get()
        _count(count, done + (spot + 1) * (gap + 1))
        expected = redo.run(redo.take(before), at, 1, np.float64)
        redo.compare(after, expected, workload.tolerance, f"step {at} redone")


class Reference:
    """The workload in NumPy for some of the elements."""

    def __init__(self, workload: Workload, fixed: dict[str, Array], rows: Array) -> None:
        self.workload, self.rows = workload, rows
        shared = {f.name: f.shared for f in workload.fixed}
        self._fixed = {k: np.asarray(v if shared[k] else v[rows]).astype(workload.dtype) for k, v in fixed.items()}

    def take(self, state: dict[str, Array]) -> dict[str, Array]:
        """The state of these elements."""
        return {k: v[self.rows] for k, v in state.items()}

    def run(self, state: dict[str, Array], at: int, steps: int, precision: type) -> dict[str, Array]:
        """So many steps from step ``at`` in a precision."""
        return self._each(state, at, steps, precision, lambda t, s: None)

    def prefix(self, state: dict[str, Array]) -> int:
        """The steps, at most ``checked`` and at least one, over which float32 stays within ``PREFIX`` of float64."""
        most = self.workload.checked
        exact: list[dict[str, Array]] = []
        self._each(self.take(state), 0, most, np.float64, lambda t, s: exact.append(s))
        rough: list[dict[str, Array]] = []
        self._each(self.take(state), 0, most, np.float32, lambda t, s: rough.append(s))
        # Half the bound is left to the arm, whose rounding differs from NumPy's.
        within = [self.distance(a, b) < PREFIX / 4 for a, b in zip(rough, exact, strict=True)]
        return max(1, within.index(False) if False in within else most)

    def _each(
        self, state: dict[str, Array], at: int, steps: int, precision: type,
        seen: Callable[[int, dict[str, Array]], None],
    ) -> dict[str, Array]:  # fmt: skip
        fixed: dict[str, Array] = {k: v.astype(precision) for k, v in self._fixed.items()}
        state = {k: v.astype(precision) for k, v in state.items()}
        for t in range(at, at + steps):
            state = self.workload.step(np, state, fixed, np.array([t], np.int32))
            seen(t, state)
        return state

    def distance(self, a: dict[str, Array], b: dict[str, Array]) -> float:
        """The largest difference of any value, relative to its field's scale; infinite where one is not a number."""
        scale = self.workload.scale
        apart = {k: np.abs(a[k].astype(np.float64) - b[k]) for k in scale}
        for k, period in self.workload.periods.items():
            apart[k] = np.minimum(apart[k] % period, -apart[k] % period)
        worst = [float(np.max(apart[k])) / scale[k] for k in scale]
        return max(worst) if np.isfinite(worst).all() else float("inf")

    def compare(self, got: dict[str, Array], expected: dict[str, Array], bound: float, when: str) -> None:
        """Raises ``Differs`` where the arm's state (all elements) is farther off than the bound."""
        off = self.distance(self.take(got), expected)
        if not off <= bound:
            raise Differs(f"{when} off by {off:.2g}, {bound:g} is allowed")


def _count(found: int, expected: int) -> None:
    if found != expected:
        raise Differs(f"{found} steps by the counters, {expected} asked for")
