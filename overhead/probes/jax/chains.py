"""JAX chains: n calls of a jitted step, or one call with n steps. This module is imported only when JAX is measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import repeat
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from overhead.probes.base import Chain
from overhead.probes.kernels import lcg
from overhead.probes.workload_chain import WorkChain, step_of, verified
from overhead.results import Case, Scalar
from overhead.workloads.base import Array

# By default JAX multiplies float32 matrices in TF32 on NVIDIA GPUs; the other stacks do not.
_PRECISION = "highest"
_Run = Callable[[Any], Any]


def step(x: Any) -> Any:
    """One step on 256 words, uint32."""
    return x * jnp.uint32(lcg.MULTIPLIER) + jnp.uint32(lcg.INCREMENT)


def _scan(step: _Run, x: Any, n: int) -> Any:
    return jax.lax.scan(lambda x, _: (step(x), None), x, None, length=n)[0]


class JaxChain(Chain):
    """Base class of the chains of the step, with 256 words on a device."""

    def __init__(self, device: Any, case: Case) -> None:
        self.wait_spins = device.platform != "cpu"
        self._seeds = lcg.seeds()
        self._values = jax.device_put(self._seeds, device)
        self._values.block_until_ready()
        self._case = case

    def wait(self) -> None:
        self._values.block_until_ready()

    def executed(self) -> int:
        return lcg.distance(self._seeds, np.asarray(self._values))

    def window(self) -> dict[str, Scalar]:
        flags = os.environ.get("XLA_FLAGS", "")[:200]
        return {"wait": "block_until_ready", "precision": "uint32", "XLA_FLAGS": flags, **self._case.params}


class Calls(JaxChain):
    """n calls of the jitted step, each on the result of the previous one."""

    def __init__(self, device: Any, case: Case) -> None:
        super().__init__(device, case)
        self._step = jax.jit(step, donate_argnums=(0,))
        # The first call compiles. It uses a copy, because the call donates (invalidates) its argument.
        self._step(jnp.copy(self._values)).block_until_ready()
        self.latency = case.pattern == "wait-each"
        self.overlap = "serial" if self.latency else "pipelined"
        self._loop = self._each if self.latency else self._all

    def issue(self, n: int) -> None:
        self._loop(n)

    def _all(self, n: int) -> None:
        x, step = self._values, self._step
        for _ in repeat(None, n):
            x = step(x)
        self._values = x

    def _each(self, n: int) -> None:
        x, step = self._values, self._step
        for _ in repeat(None, n):
            x = step(x)
            x.block_until_ready()
        self._values = x


class FusedLoop(JaxChain):
    """One call that runs n steps. n is a constant of the program: ``prepare`` compiles the program for n."""

    overlap = "serial"
    least_ns = 4_000_000  # XLA compiles a single step without a loop; a loop starts about 35 us later

    def __init__(self, device: Any, case: Case) -> None:
        super().__init__(device, case)
        self._compiled: dict[int, _Run] = {}

    def prepare(self, n: int) -> None:
        if n not in self._compiled:
            self._compiled[n] = jax.jit(lambda x: _scan(step, x, n), donate_argnums=(0,)).lower(self._values).compile()
        self._run = self._compiled[n]

    def issue(self, n: int) -> None:
        self._values = self._run(self._values)


def open_work(device: Any, case: Case) -> WorkChain:
    """A verified chain. It makes one call for all steps if the pattern is ``fused``, else one call per step."""
    return verified((JaxFusedWork if case.pattern == "fused" else JaxWork)(device, case))


class JaxWork(WorkChain):
    """n calls of the jitted step of a workload. Each call donates its state, so JAX reuses the memory."""

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
        self._compiled: dict[int, Any] = {}

    def prepare(self, n: int) -> None:
        if n not in self._compiled:

            def run(state: dict[str, Any], fixed: dict[str, Any]) -> dict[str, Any]:
                found: dict[str, Any] = _scan(lambda values: self.one(values, fixed), state, n)
                return found

            self._compiled[n] = jax.jit(run, donate_argnums=(0,)).lower(self.values, self._fixed).compile()
        self._run = self._compiled[n]

    def issue(self, n: int) -> None:
        self.values = self._run(self.values, self._fixed)

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "loop": self.case.params["loop"], "compiled_for_n": True}
