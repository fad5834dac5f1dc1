"""A stack that also runs workloads, in one file: Python's thread pool. A unit of work is one call
in its thread.

overhead check --plugin docs/examples/my_workload_stack.py overhead run --plugin
docs/examples/my_workload_stack.py -p pool --workload recurrence --profile quick
"""

import functools
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

import numpy as np

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space
from overhead.probes.in_order import InOrderChain
from overhead.probes.kernels import lcg
from overhead.probes.workload_chain import WorkChain, WorkloadArm, step_of, verified, with_workloads
from overhead.results import Case, Scalar, Target


@register
class PoolProbe(Probe):
    """A thread pool with one thread, which runs its calls in order."""

    name = "pool"
    title = "calls in a thread pool"
    mend = "nothing to install"

    def targets(self) -> list[Target]:
        import platform

        versions = {"python": platform.python_version()}
        return [Target(stack=self.name, api="CPU", adapter="one thread", versions=versions)]

    def space(self, target: Target) -> Space:
        space = Space(Case(pattern="per-submit", unit="call", params={"wait": "future"}))
        # One way to run workloads: a call for each step. ``fits`` chooses the workloads that this
        # stack can run.
        each_step = WorkloadArm(
            "per-submit", {"wait": "future"}, fits=lambda workload: workload.name == "recurrence"
        )
        return with_workloads(space, [each_step], software=True)

    def open(self, target: Target, case: Case) -> Chain:
        return step_chain(case) if case.workload == "step" else verified(PoolWork(case))


def step_chain(case: Case) -> Chain:
    """A chain of the step on 256 words."""
    seeds = lcg.seeds()
    words = seeds.copy()
    pool = ThreadPoolExecutor(1)
    launch = functools.partial(pool.submit, step, words)
    window: dict[str, Scalar] = {"operation": "x = x * a + b on 256 uint32", "precision": "uint32"}
    return InOrderChain(
        case, launch, finisher(pool), count=lambda: lcg.distance(seeds, words), window=window
    )


def step(x: Any) -> None:
    np.multiply(x, np.uint32(lcg.MULTIPLIER), out=x)
    np.add(x, np.uint32(lcg.INCREMENT), out=x)


def finisher(pool: ThreadPoolExecutor) -> Any:
    """A function that returns when everything that is in the pool has run."""

    def finish() -> None:
        pool.submit(int).result()

    return finish


class PoolWork(WorkChain):
    """n steps of a workload, each a call on the values that the previous one returned."""

    language = "NumPy"
    on_host = True

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._pool = ThreadPoolExecutor(1)
        self._finish = finisher(self._pool)
        # A stack with kernels of its own makes them here; ``kernels_of`` has the text in WGSL, CUDA
        # and Triton.
        self._step = step_of(self, np, self.inputs)

    def put(self, state: dict[str, Any]) -> None:
        self._values = {**state, "steps": np.zeros(self.elements, np.int32)}

    def fetch(self) -> tuple[dict[str, Any], Any]:
        state = dict(self._values)
        return state, state.pop("steps").view(np.uint32)

    def issue(self, n: int) -> None:
        submit, advance = self._pool.submit, self._advance
        for _ in repeat(None, n):
            submit(advance)

    def _advance(self) -> None:
        self._values = self._step(self._values)

    def wait(self) -> None:
        self._finish()

    def close(self) -> None:
        self._pool.shutdown()
