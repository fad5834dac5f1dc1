"""Check that a chain computes the workload, by comparing its values with NumPy in float64 on random
inputs.

If the step contracts, the state is compared with the reference twice: after ``_EARLY_STEPS``, when
it still depends on the start, and after ``Workload.checked`` steps. If the step does not contract,
the state is compared once, as late as NumPy in float32 is still well within ``_PREFIX_TOLERANCE``
of float64. After that, ``_SPOTS`` single steps of the chain are recomputed in NumPy. Elements are
independent, so only ``_SAMPLE`` random elements, the first and the last are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from overhead.errors import WithReason
from overhead.results import Reason, because
from overhead.workloads.base import Array, Workload

_EARLY_STEPS = 3
_PREFIX_TOLERANCE = 1e-3
"""Largest difference from float64, relative to the scale of a field. Chosen, not measured: with a
smaller one the state is compared after fewer steps.
"""
_SPOTS = 20
_SAMPLE = 64
"""Chosen, not measured: more steps and elements make the check slower and find rarer mistakes."""
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
    drawn = rng.integers(0, elements, _SAMPLE)
    rows = np.unique(np.concatenate([[0, elements - 1], drawn]))
    reference = Reference(workload, fixed, rows)
    chain.put(state)
    if workload.contracts:
        _compare_after(
            chain, reference, state, [_EARLY_STEPS, workload.checked], workload.tolerance
        )
        return
    steps = reference.comparable_steps(state)
    _compare_after(chain, reference, state, [steps], _PREFIX_TOLERANCE)
    _compare_single_steps(chain, reference, steps, rng)


def _compare_after(
    chain: Checkable,
    reference: Reference,
    start: dict[str, Array],
    steps: Sequence[int],
    bound: float,
) -> None:
    """Compare the state of the chain with the reference after each of these numbers of steps from
    the start. Raises ``Differs``.
    """
    done = 0
    for wanted in steps:
        chain.advance(wanted - done)
        done = wanted
        computed, counted = chain.get()
        _check_count(counted, done)
        expected = reference.run(reference.take(start), 0, done, np.float64)
        reference.compare(computed, expected, bound, because("after-steps", steps=done))


def _compare_single_steps(
    chain: Checkable, reference: Reference, done: int, rng: np.random.Generator
) -> None:
    """Compare ``_SPOTS`` single steps of the chain with the reference, which starts each of them at
    the state of the chain. Raises ``Differs``.

    ``done``: the steps that the chain has done.
    """
    between = int(rng.integers(3, 40))
    for _ in range(_SPOTS):
        chain.advance(between)
        before, step = chain.get()
        chain.advance(1)
        expected = reference.run(reference.take(before), step, 1, np.float64)
        after, counted = chain.get()
        done += between + 1
        _check_count(counted, done)
        when = because("step-redone", step=step)
        reference.compare(after, expected, reference.workload.tolerance, when)


class Reference:
    """The workload in NumPy for some of its elements, ``rows``, with the inputs ``fixed`` of all
    elements.
    """

    def __init__(self, workload: Workload, fixed: dict[str, Array], rows: Array) -> None:
        self.workload = workload
        self.rows = rows
        self._fixed: dict[str, Array] = {}
        shared = {field.name for field in workload.fixed if field.shared}
        for name, values in fixed.items():
            taken = values if name in shared else values[rows]
            self._fixed[name] = np.asarray(taken).astype(workload.dtype)

    def take(self, state: dict[str, Array]) -> dict[str, Array]:
        """From the state of all elements that of the elements of this reference."""
        return {name: values[self.rows] for name, values in state.items()}

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
        start = self.take(state)
        most = self.workload.checked
        rough = self._states(start, 0, most, np.float32)
        exact = self._states(start, 0, most, np.float64)
        steps = 0
        for in_float32, in_float64 in zip(rough, exact, strict=True):
            # The rest of the tolerance is for the chain, which rounds differently from NumPy.
            if not self.distance(in_float32, in_float64) < _PREFIX_TOLERANCE / 4:
                break
            steps += 1
        return max(1, steps)

    def _states(
        self, state: dict[str, Array], at: int, steps: int, precision: type
    ) -> Iterator[dict[str, Array]]:
        """The state after each of these steps."""
        fixed: dict[str, Array] = {
            name: values.astype(precision) for name, values in self._fixed.items()
        }
        state = {name: values.astype(precision) for name, values in state.items()}
        for t in range(at, at + steps):
            state = self.workload.step(np, state, fixed, np.array([t], np.int32))
            yield state

    def distance(self, state: dict[str, Array], expected: dict[str, Array]) -> float:
        """The largest difference of two states, relative to the scales of the fields; infinite if
        not finite.

        It is infinite too if an angle of ``state`` was not brought back into its period around 0.
        """
        largest = 0.0
        for name, scale in self.workload.scale.items():
            apart = np.abs(state[name].astype(np.float64) - expected[name])
            period = self.workload.periods.get(name)
            if period is not None:
                # Two angles may be apart by nearly a whole turn, and yet be neighbours.
                apart = np.minimum(apart % period, -apart % period)
                if np.max(np.abs(state[name])) > _WITHIN * period / 2:
                    return float("inf")
            relative = float(np.max(apart)) / scale
            if not np.isfinite(relative):
                return float("inf")
            largest = max(largest, relative)
        return largest

    def compare(
        self, computed: dict[str, Array], expected: dict[str, Array], bound: float, when: Reason
    ) -> None:
        """Raise ``Differs`` if ``computed``, the state of all elements, differs from ``expected``
        by more than the bound.
        """
        off = self.distance(self.take(computed), expected)
        # "not <=" and not ">", so that a difference which is no number is refused too.
        if not off <= bound:
            raise Differs(because("off-by-more-than-allowed", why=when, off=off, bound=bound))


def _check_count(counted: int, expected: int) -> None:
    """Raise ``Differs`` unless the elements counted this many steps."""
    if counted != expected:
        raise Differs(because("counters-differ", steps=counted, expected=expected))
