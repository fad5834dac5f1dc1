"""Workloads in JAX: one call of a jitted function per step, or n steps in one call with scan or fori_loop."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from overhead.probes.workload_chain import WorkChain, step_of, verified
from overhead.results import Case, Scalar
from overhead.workloads.base import Array

# By default JAX multiplies float32 matrices in TF32 on NVIDIA GPUs; the other stacks do not.
_PRECISION = "highest"


def open_case(device: Any, case: Case) -> WorkChain:
    """A verified chain. It makes one call for all steps if the pattern is ``fused``, else one call per step."""
    return verified((JaxFusedWork if case.pattern == "fused" else JaxWork)(device, case))


class JaxWork(WorkChain):
    """n calls of the jitted step. Each call donates its state, so JAX reuses the memory."""

    def __init__(self, device: Any, case: Case) -> None:
        super().__init__(case)
        self.wait_spins = device.platform != "cpu"
        self._device = device
        self._fixed = {name: jax.device_put(values, device) for name, values in self.inputs.items()}
        self._step = jax.jit(self.one, donate_argnums=(0,))

    def one(self, state: dict[str, Any], fixed: dict[str, Any]) -> dict[str, Any]:
        """One step, for tracing by JAX."""
        with jax.default_matmul_precision(_PRECISION):
            found: dict[str, Any] = step_of(self, jnp, fixed)(state)
        return found

    def put(self, state: dict[str, Array]) -> None:
        whole = {**state, "steps": np.zeros(self.elements, np.int32)}
        self.values = {name: jax.device_put(np.array(values), self._device) for name, values in whole.items()}
        self.wait()

    def fetch(self) -> tuple[dict[str, Array], Array]:
        found = {name: np.array(values) for name, values in self.values.items()}
        return found, found.pop("steps").view(np.uint32)

    def issue(self, n: int) -> None:
        values, step, fixed = self.values, self._step, self._fixed
        for _ in repeat(None, n):
            values = step(values, fixed)
        self.values = values

    def wait(self) -> None:
        jax.block_until_ready(self.values)

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "wait": "block_until_ready", "matmul_precision": _PRECISION}


class JaxFusedWork(JaxWork):
    """One call that runs n steps. ``prepare`` compiles it for n."""

    overlap = "serial"

    def __init__(self, device: Any, case: Case) -> None:
        super().__init__(device, case)
        self._loop = _scan if case.params["loop"] == "scan" else _fori
        self._compiled: dict[int, Any] = {}

    def prepare(self, n: int) -> None:
        if n not in self._compiled:

            def run(state: dict[str, Any], fixed: dict[str, Any]) -> dict[str, Any]:
                return self._loop(lambda values: self.one(values, fixed), state, n)

            self._compiled[n] = jax.jit(run, donate_argnums=(0,)).lower(self.values, self._fixed).compile()
        self._run = self._compiled[n]

    def issue(self, n: int) -> None:
        self.values = self._run(self.values, self._fixed)

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "loop": self.case.params["loop"], "compiled_for_n": True}


def _scan(step: Any, state: dict[str, Any], n: int) -> dict[str, Any]:
    found: dict[str, Any] = jax.lax.scan(lambda values, _: (step(values), None), state, None, length=n)[0]
    return found


def _fori(step: Any, state: dict[str, Any], n: int) -> dict[str, Any]:
    found: dict[str, Any] = jax.lax.fori_loop(0, n, lambda _, values: step(values), state)
    return found
