"""A chain that runs a workload: verified against the reference when it opens, its steps counted by the device."""

from __future__ import annotations

import abc
import dataclasses
import secrets
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from overhead.probes._cuda_time import HeldChain
from overhead.probes.base import Space, Unsupported, Unverified
from overhead.results import Case, Pattern, Scalar
from overhead.workloads import workloads
from overhead.workloads.base import Array, Workload
from overhead.workloads.equivalence import Differs, check

_WRAP = 1 << 32
"""Counters are 32 bits wide."""


Arm = tuple[Pattern, dict[str, Scalar]]


def space(star: Space, arms: Sequence[Arm], *, software: bool, late: Sequence[Arm] = ()) -> Space:
    """The stack's own space and, beside it, every workload by every arm, for each number of elements.

    Where a workload is light, its first arm at its first number comes right after the base: a short run shall hold one
    of every stack, and has room for little more. ``late`` arms come last.
    """
    found = workloads().values()
    first = [_cases(w, arms, software)[0] for w in found if not w.heavy]
    all_of_them = [case for some in (arms, late) for w in found for case in _cases(w, some, software)]
    allowed = star.allowed
    return dataclasses.replace(
        star,
        early=[*star.early, *first],
        extra=[*star.extra, *all_of_them],
        allowed=lambda case: "elements" in case.params or allowed(case),
    )


def _cases(workload: Workload, arms: Sequence[Arm], software: bool) -> list[Case]:
    return [
        Case(pattern=pattern, unit="step", workload=workload.name, params={**params, "elements": elements})
        for elements in workload.sizes(software)
        for pattern, params in arms
    ]


def wgsl_arms(stack: str) -> list[Arm]:
    """The patterns under which WGSL runs; ``checks`` where the library adds some to the kernel's loops."""
    unbounded: list[Arm] = [("fused", {"checks": "unbounded-loops"})]
    return [("fused", {}), ("one-pass", {}), *(unbounded if stack == "wgpu-native" else [])]


class WorkChain(HeldChain):
    """A unit is one step of all elements."""

    unit = "step"
    language = "array"

    def __init__(self, case: Case) -> None:
        known = workloads()
        if case.workload not in known:
            raise Unsupported(f"no workload {case.workload} here")
        self.case, self.workload = case, known[case.workload]
        self.elements = int(case.params["elements"])
        self._seed = secrets.randbits(32)
        self.rng = np.random.default_rng(self._seed)
        made = self.workload.inputs(self.elements, self.rng)
        self.inputs = {name: np.asarray(values, np.float32) for name, values in made.items()}
        self._last = self._total = 0

    @abc.abstractmethod
    def put(self, state: dict[str, Array]) -> None:
        """Start over from this float32 state, counters 0."""

    @abc.abstractmethod
    def fetch(self) -> tuple[dict[str, Array], Array]:
        """The state, and each element's count of steps, uint32."""

    def get(self) -> tuple[dict[str, Array], int]:
        """The state and its count. Raises ``Unverified`` where the elements disagree."""
        state, counters = self.fetch()
        if len(counters) != self.elements or (counters != counters[0]).any():
            raise Unverified(f"elements disagree: between {counters.min()} and {counters.max()} steps")
        return state, int(counters[0])

    def advance(self, steps: int) -> None:
        """Run so many steps, for the check."""
        for n in [self.max_n] * (steps // self.max_n) + [steps % self.max_n]:
            self.prepare(n)
            self.issue(n)
            self.wait()

    def executed(self) -> int:
        now = self.get()[1]
        self._total += (now - self._last) % _WRAP
        self._last = now
        return self._total - self.aside

    def verify(self) -> None:
        """Check the arm on fresh random inputs, then put it at its start. Raises ``Unverified``."""
        try:
            check(self.workload, self.elements, self.inputs, self, self.rng)
        except Differs as error:
            raise Unverified(f"differs from the reference: {error} (seed {self._seed})") from error
        start = self.workload.start(self.elements, self.rng)
        self.put({name: values.astype(np.float32) for name, values in start.items()})
        self._last = self._total = self.aside = 0

    def window(self) -> dict[str, Scalar]:
        return {"language": self.language, "precision": "float32", "elements": self.elements}


C = TypeVar("C", bound=WorkChain)


def verified(chain: C) -> C:
    """The chain, if it computes what the workload says. Raises ``Unverified``."""
    try:
        chain.verify()
    except BaseException:
        chain.close()
        raise
    return chain


def body(chain: WorkChain, language: str) -> str:
    """The workload's body in a language. Raises ``Unsupported`` where it has none."""
    found = str(getattr(chain.workload, language))
    if not found:
        reason = chain.workload.missing.get(language, "it is not written in it")
        raise Unsupported(f"{chain.workload.name} has no {language}: {reason}")
    return found


def step_of(chain: WorkChain, xp: Any, fixed: dict[str, Any]) -> Any:
    """A function from all of the state, counters as ``steps``, to the next."""
    step = chain.workload.step

    def run(state: dict[str, Any]) -> dict[str, Any]:
        steps = state["steps"]
        return {**step(xp, state, fixed, steps[:1]), "steps": steps + 1}

    return run
