"""JAX chains: n calls of a jitted step, or one call with n steps. This module is imported only when JAX is measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import repeat
from typing import Any

import jax
import jax.numpy as jnp

from overhead.probes.base import Chain
from overhead.probes.kernels import lcg
from overhead.results import Case, Scalar


def step(x: Any) -> Any:
    """One step on 256 words, uint32."""
    return x * jnp.uint32(lcg.MULTIPLIER) + jnp.uint32(lcg.INCREMENT)


class JaxChain(Chain):
    """Base class of the JAX chains, with 256 words on a device."""

    def __init__(self, device: Any, case: Case) -> None:
        self.wait_spins = device.platform != "cpu"
        self._seeds = lcg.seeds()
        self._values = jax.device_put(self._seeds, device)
        self._values.block_until_ready()
        self._case = case

    def wait(self) -> None:
        self._values.block_until_ready()

    def executed(self) -> int:
        import numpy as np

        return lcg.distance(self._seeds, np.asarray(self._values))

    def window(self) -> dict[str, Scalar]:
        flags = os.environ.get("XLA_FLAGS", "")[:200]
        return {"wait": "block_until_ready", "precision": "uint32", "XLA_FLAGS": flags, **self._case.params}


class Calls(JaxChain):
    """n calls of the jitted step, each on the result of the previous one."""

    def __init__(self, device: Any, case: Case) -> None:
        super().__init__(device, case)
        donated = bool(case.params["donated"])
        self._step = jax.jit(step, donate_argnums=(0,) if donated else ())
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
    """One call that runs n steps. If n is a constant of the program, ``prepare`` compiles the program for n."""

    overlap = "serial"
    least_ns = 4_000_000  # XLA compiles a single step without a loop; a loop starts about 35 us later

    def __init__(self, device: Any, case: Case) -> None:
        super().__init__(device, case)
        self._loop = str(case.params["loop"])
        self._compiled: dict[int, Callable[[Any], Any]] = {}
        self._while = jax.jit(_while, donate_argnums=(0,)) if self._loop == "while" else None

    def prepare(self, n: int) -> None:
        if n not in self._compiled:
            self._compiled[n] = self._compile(n)
        self._run = self._compiled[n]

    def issue(self, n: int) -> None:
        self._values = self._run(self._values)

    def _compile(self, n: int) -> Callable[[Any], Any]:
        if self._while is not None:
            run, count = self._while, jax.device_put(jnp.int32(n), next(iter(self._values.devices())))
            run(jnp.copy(self._values), count).block_until_ready()
            return lambda x: run(x, count)
        body = (lambda x: _scan(x, n)) if self._loop == "scan" else (lambda x: _fori(x, n))
        compiled: Callable[[Any], Any] = jax.jit(body, donate_argnums=(0,)).lower(self._values).compile()
        return compiled


def _scan(x: Any, n: int) -> Any:
    return jax.lax.scan(lambda x, _: (step(x), None), x, None, length=n)[0]


def _fori(x: Any, n: int) -> Any:
    return jax.lax.fori_loop(0, n, lambda _, x: step(x), x)


def _while(x: Any, n: Any) -> Any:
    return jax.lax.fori_loop(0, n, lambda _, x: step(x), x)
