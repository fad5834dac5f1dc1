"""JAX chains: n calls of a jitted step, or one call with n steps. Only a worker that measures JAX
imports this.
"""

from __future__ import annotations

import functools
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
_Run = Callable[..., Any]


def step(x: Any) -> Any:
    """One step on 256 words, uint32."""
    return x * jnp.uint32(lcg.MULTIPLIER) + jnp.uint32(lcg.INCREMENT)


class JaxChain(Chain):
    """Base class of the chains of the step, with 256 words on a device."""

    fixed = ()
    one = staticmethod(step)

    def __init__(self, device: Any, case: Case) -> None:
        self.wait_spins = device.platform != "cpu"
        self._seeds = lcg.seeds()
        self.values = jax.device_put(self._seeds, device)
        self.values.block_until_ready()
        self._case = case

    def wait(self) -> None:
        """Return when the latest words are computed."""
        self.values.block_until_ready()

    def executed(self) -> int:
        """The number of steps of all words. Raises ``Unverified`` if words disagree."""
        return lcg.distance(self._seeds, np.asarray(self.values))

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values for the record: the wait, the precision, the
        parameters of the case, and the user's ``XLA_FLAGS``, which change what XLA, JAX's compiler,
        makes of a step.
        """
        flags = os.environ.get("XLA_FLAGS", "")[:200]
        return {
            "wait": "block_until_ready",
            "precision": "uint32",
            "XLA_FLAGS": flags,
            # Such as whether a step donates its argument.
            **self._case.params,
        }


class JaxCalls(JaxChain):
    """A chain of n calls of a step that JAX has compiled, each on the result of the previous call
    (``values``). In the pattern ``wait-each`` a wait follows each call.
    """

    def __init__(self, device: Any, case: Case) -> None:
        """Compile the step. ``device``: a device of JAX."""
        super().__init__(device, case)
        # Donated: XLA may write the result to the memory of the argument, and allocate none.
        self._step = jax.jit(step, donate_argnums=(0,))
        # The first call compiles. It uses a copy, because the call donates (invalidates) its
        # argument.
        self._step(jnp.copy(self.values)).block_until_ready()
        self.latency = case.pattern == "wait-each"
        self.overlap = "serial" if self.latency else "pipelined"

    def issue(self, n: int) -> None:
        """Call the step n times; returns before the calls are done, unless each is waited for. It
        is timed: so both loops stand here, without a condition in a step.
        """
        x, step = self.values, self._step
        if self.latency:
            for _ in repeat(None, n):
                x = step(x)
                x.block_until_ready()
        else:
            for _ in repeat(None, n):
                x = step(x)
        self.values = x


class FusedSteps(Chain):
    """Base class of the chains that make one call for n steps: n is a constant of the program.

    A subclass has the state (``values``), further arguments (``fixed``), and a function that makes
    one step of them.
    """

    overlap = "serial"
    values: Any
    fixed: tuple[Any, ...]
    one: Any

    @functools.cached_property
    def _programs(self) -> dict[int, _Run]:
        return {}

    def prepare(self, n: int) -> None:
        """Compile the program of n steps, unless it exists."""
        if n not in self._programs:
            self._programs[n] = self._compile(n)
        self._run = self._programs[n]

    def _compile(self, n: int) -> _Run:
        """A compiled program that runs n steps (``one``) in a loop on the device, and reuses the
        memory of its first argument, the state.

        The loop is ``jax.lax.scan``. Its body returns the next state and an output of the step;
        ours has no output.
        """

        def run(values: Any, *fixed: Any) -> Any:
            def body(x: Any, _: None) -> tuple[Any, None]:
                no_output = None
                return self.one(x, *fixed), no_output

            last, _ = jax.lax.scan(body, values, None, length=n)
            return last

        jitted = jax.jit(run, donate_argnums=(0,))
        # Compiled for arguments of these shapes; from now on a call only runs it. ``fixed``:
        # further arguments, such as inputs.
        program: _Run = jitted.lower(self.values, *self.fixed).compile()
        return program

    def issue(self, n: int) -> None:
        """Call the program; returns before it has run."""
        self.values = self._run(self.values, *self.fixed)


class JaxFusedLoop(FusedSteps, JaxChain):
    """One call that runs n steps."""

    least_ns = 4_000_000
    """XLA compiles a single step without a loop; a loop starts about 35 us later."""


def open_work(device: Any, case: Case) -> WorkChain:
    """A verified chain. It makes one call for all steps if the pattern is ``fused``, else one call
    per step.
    """
    kind = JaxFusedWork if case.pattern == "fused" else JaxWork
    return verified(kind(device, case))


class JaxWork(WorkChain):
    """n calls of the jitted step of a workload. Each call donates its state, so JAX reuses the
    memory.
    """

    def __init__(self, device: Any, case: Case) -> None:
        super().__init__(case)
        self.wait_spins = device.platform != "cpu"
        self._device = device
        inputs = {name: jax.device_put(values, device) for name, values in self.inputs.items()}
        self.fixed = (inputs,)
        self._step: _Run = jax.jit(self.one, donate_argnums=(0,))

    def one(self, state: dict[str, Any], fixed: dict[str, Any]) -> dict[str, Any]:
        """The state after one step, for tracing by JAX. ``fixed``: the inputs of the workload."""
        step = step_of(self, jnp, fixed)
        with jax.default_matmul_precision(_PRECISION):
            after: dict[str, Any] = step(state)
        return after

    def put(self, state: dict[str, Array]) -> None:
        """Copy the state to the device and set all counters to 0."""
        counters = np.zeros(self.elements, np.int32)
        self.values = {}
        for name, values in {**state, "steps": counters}.items():
            self.values[name] = jax.device_put(np.array(values), self._device)
        self.wait()

    def fetch(self) -> tuple[dict[str, Array], Array]:
        """The state, and the number of steps of each element (uint32), copied to the host."""
        state = {name: np.array(values) for name, values in self.values.items()}
        counters = state.pop("steps").view(np.uint32)
        return state, counters

    def issue(self, n: int) -> None:
        """Call the step n times; returns before the calls are done."""
        values, step, (fixed,) = self.values, self._step, self.fixed
        for _ in repeat(None, n):
            values = step(values, fixed)
        self.values = values

    def wait(self) -> None:
        """Return when the latest state is computed."""
        jax.block_until_ready(self.values)

    def window(self) -> dict[str, Scalar]:
        """What is timed: that of every workload, the wait, and the precision of matrix products."""
        return {**super().window(), "wait": "block_until_ready", "matmul_precision": _PRECISION}


class JaxFusedWork(FusedSteps, JaxWork):
    """One call that runs n steps of a workload."""

    def window(self) -> dict[str, Scalar]:
        """What is timed: that of ``JaxWork``, and the kind of loop."""
        return {**super().window(), "loop": self.case.params["loop"], "compiled_for_n": True}
