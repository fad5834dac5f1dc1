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
    """Run the chain from a random state, and raise ``Differs`` if it does not compute the steps of
    the workload as NumPy does in float64. The chain's state is then another one.

    ``elements``: how many independent computations run side by side. ``fixed``: their inputs.
    """
    state = workload.fresh(elements, rng)
    # Only some elements are compared: random ones, the first and the last.
    drawn = rng.integers(0, elements, _SAMPLE)
    rows = np.unique(np.concatenate([[0, elements - 1], drawn]))
    reference = Reference(workload, fixed, rows)  # computes these elements in NumPy
    chain.put(state)
    # Rounding errors shrink with each step, so the states may be compared after any number of
    # steps: early, when they still depend on the start, and late.
    # ``checked``: the number of steps of the late comparison.
    if workload.contracts:
        _compare_after(
            chain, reference, state, [_EARLY_STEPS, workload.checked], workload.tolerance
        )
        return
    # Rounding errors grow. So the states are compared as long as they can be, and after that single
    # steps, each of them from the chain's own state.
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
    the state ``start``. Raises ``Differs`` if it is off by more than ``bound``, relative to the
    size of its values.
    """
    done = 0
    # The chain goes on from where it is; the reference begins at the start each time.
    for wanted in steps:
        chain.advance(wanted - done)
        done = wanted
        computed, counted = chain.get()
        _check_count(counted, done)
        # take(): of the elements that the reference computes. 0: the index of the first step.
        expected = reference.run(reference.take(start), 0, done, np.float64)
        reference.compare(computed, expected, bound, because("after-steps", steps=done))


def _compare_single_steps(
    chain: Checkable, reference: Reference, done: int, rng: np.random.Generator
) -> None:
    """Compare 20 single steps of the chain, far apart, with the same steps of the reference, which
    begins each of them at the chain's own state: errors of earlier steps do not matter then. Raises
    ``Differs``.

    ``done``: the steps that the chain has done so far.
    """
    # Steps that are not compared, from one that is to the next. Random, so that the compared steps
    # do not always have the same indices; 3 to 39.
    between = int(rng.integers(3, 40))
    for _ in range(_SPOTS):
        chain.advance(between)
        before, step = chain.get()  # the state, and how many steps the chain has counted
        chain.advance(1)
        expected = reference.run(reference.take(before), step, 1, np.float64)
        after, counted = chain.get()
        done += between + 1
        _check_count(counted, done)
        when = because("step-redone", step=step)
        reference.compare(after, expected, reference.workload.tolerance, when)


class Reference:
    """Computes the steps of a workload in NumPy, to compare a chain with, for some of its elements
    alone, because elements are independent of each other.

    ``rows``: the numbers of these elements. ``fixed``: the inputs of all elements.
    """

    def __init__(self, workload: Workload, fixed: dict[str, Array], rows: Array) -> None:
        self.workload = workload
        self.rows = rows  # the numbers of the elements that are computed
        self._fixed: dict[str, Array] = {}
        # A shared input has no axis of elements, so all of it is taken.
        shared = {field.name for field in workload.fixed if field.shared}
        for name, values in fixed.items():
            taken = values if name in shared else values[rows]
            # Rounded as the chain gets them, also where they are then used in float64.
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
        """After how many steps from this state a chain in float32 can still be compared with
        float64, although each step makes its rounding errors larger: from 1 to
        ``Workload.checked``.

        NumPy in float32 tells: it must still be well within the allowed difference.
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
        """The state after each of ``steps`` steps that begin at step ``at``, all of them computed
        in this precision.
        """
        fixed: dict[str, Array] = {
            name: values.astype(precision) for name, values in self._fixed.items()
        }
        state = {name: values.astype(precision) for name, values in state.items()}
        # A step gets its index as an array of one number.
        for t in range(at, at + steps):
            state = self.workload.step(np, state, fixed, np.array([t], np.int32))
            yield state

    def distance(self, state: dict[str, Array], expected: dict[str, Array]) -> float:
        """The largest difference of two states, each difference relative to the typical size of the
        field's values (``Workload.scale``).

        Infinite if a value is not finite, or if an angle of ``state`` is not within half a turn of
        0, where a step must bring it.
        """
        largest = 0.0
        for name, scale in self.workload.scale.items():
            apart = np.abs(state[name].astype(np.float64) - expected[name])
            period = self.workload.periods.get(name)
            if period is not None:
                # Two angles may be apart by nearly a whole turn, and yet be neighbours.
                # The shorter way around.
                apart = np.minimum(apart % period, -apart % period)
                # ``_WITHIN``: a little above 1, for rounding.
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
        """Raise ``Differs`` if ``computed``, the state of all elements, differs from ``expected``,
        the state of those of this reference, by more than ``bound``. ``when``: after which steps,
        for the message.
        """
        off = self.distance(self.take(computed), expected)  # of these elements alone
        # "not <=" and not ">", so that a difference which is no number is refused too.
        if not off <= bound:
            raise Differs(because("off-by-more-than-allowed", why=when, off=off, bound=bound))


def _check_count(counted: int, expected: int) -> None:
    """Raise ``Differs`` unless the elements counted this many steps."""
    if counted != expected:
        raise Differs(because("counters-differ", steps=counted, expected=expected))
