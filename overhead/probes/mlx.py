"""MLX: additions that are evaluated one by one or all at once, and workloads, on the CPU, on CUDA
and on Metal.
"""

from __future__ import annotations

import os
from itertools import repeat
from typing import Any

import numpy as np

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unsupported, vary
from overhead.probes.common.array_workload import ArrayWork
from overhead.probes.common.availability import import_library
from overhead.probes.common.step import count_steps, start_values
from overhead.probes.workload_chain import WorkloadArm, verified, with_workloads
from overhead.results import Api, Case, Pattern, Scalar, Target, because

_AFTER_EACH: dict[Pattern, str] = {"per-submit": "async_eval", "wait-each": "eval", "one-pass": ""}
"""The call after each addition, by pattern. Without a call the addition waits for the next
evaluation.
"""


@register
class MlxProbe(Probe):
    """MLX. A unit is ``x = mx.add(x, 1)``. MLX computes nothing until an evaluation, which runs all
    units so far.

    ``per-submit`` starts an evaluation after each unit, and ``one-pass`` after all. MLX divides an
    evaluation into command buffers or CUDA graphs (``MLX_MAX_OPS_PER_BUFFER``).
    """

    name = "mlx"
    title = "MLX"
    mend = because("install-mlx", extras="mlx")
    distributions = ("mlx", "mlx-cpu", "mlx-cuda-12", "mlx-cuda-13", "mlx-metal")

    def targets(self) -> list[Target]:
        """The CPU, and the GPUs that the installed MLX can use."""
        mx = import_library("mlx.core", self.mend)
        versions = {"mlx": mx.__version__}
        # Every MLX can use it.
        cpu = Target(stack=self.name, api="CPU", adapter="CPU", versions=versions)
        if not mx.is_available(mx.gpu):
            return [cpu]
        # On Macs MLX uses Metal, elsewhere CUDA.
        api: Api = "Metal" if mx.metal.is_available() else "CUDA"
        gpus = []
        for index in range(mx.device_count(mx.gpu)):
            facts = mx.device_info(mx.Device(mx.gpu, index))
            gpu = Target(
                stack=self.name,
                api=api,
                adapter=str(facts["device_name"]),
                device=str(index),
                versions=versions,
            )
            gpus.append(gpu)
        return [cpu, *gpus]

    def space(self, target: Target) -> Space:
        """The cases that a run measures: the addition in each pattern, and the workloads.
        ``early``: those that every run measures.
        """
        # ``per-submit`` evaluates after each addition without waiting, ``one-pass`` once after all,
        # and ``wait-each`` waits for each.
        base = Case(pattern="per-submit", unit="launch")
        early = [vary(base, "pattern", pattern) for pattern in ("one-pass", "wait-each")]
        arms = [WorkloadArm("per-submit", bodies=("separate",))]
        return with_workloads(Space(base, early=early), arms, software=target.api == "CPU")

    def open(self, target: Target, case: Case) -> Chain:
        """The chain that runs the case: additions, or a workload if the case has ``elements``. The
        device of the target becomes MLX's default one, on which arrays are made.
        """
        mx = import_library("mlx.core", self.mend)
        kind = mx.cpu if target.api == "CPU" else mx.gpu
        # A CPU target has no device number.
        mx.set_default_device(mx.Device(kind, int(target.device or 0)))
        if "elements" in case.params:
            return verified(MlxWork(mx, case))
        # ``_AFTER_EACH``: the function of MLX after each addition, by pattern.
        if case.pattern not in _AFTER_EACH:
            raise Unsupported(because("mlx-has-no-pattern", pattern=case.pattern))
        return MlxAdditions(mx, case)


class MlxAdditions(Chain):
    """n additions of 1 to 256 int32, each to the result of the previous one."""

    def __init__(self, mx: Any, case: Case) -> None:
        """Make the first array, on MLX's default device."""
        self._mx = mx
        self._called = _AFTER_EACH[case.pattern]  # the function after each addition, '' for none
        self.latency = case.pattern == "wait-each"
        # In ``one-pass`` the device starts only after all additions, and in ``wait-each`` the host
        # waits for each: so it works during the loop in ``per-submit`` alone.
        self.overlap = "pipelined" if case.pattern == "per-submit" else "serial"
        # An operation that waits for its evaluation takes 1.7 kB on the host.
        self.max_n = 1 << 20 if self._called else 1 << 16
        self._x = mx.array(start_values())

    def issue(self, n: int) -> None:
        """Add n times; returns before the additions are done, unless each is waited for. Two loops,
        because a test in each turn would be timed with it.
        """
        x, add = self._x, self._mx.add
        if self._called:
            # ``eval`` or ``async_eval`` of MLX.
            after = getattr(self._mx, self._called)
            for _ in repeat(None, n):
                x = add(x, 1)
                after(x)
        else:
            for _ in repeat(None, n):
                x = add(x, 1)
        self._x = x

    def wait(self) -> None:
        """Return when the newest array is computed. In ``one-pass`` this starts the evaluation."""
        self._mx.eval(self._x)

    def executed(self) -> int:
        """The number of additions to all elements. Raises ``Unverified`` if they disagree."""
        return count_steps(np.array(self._x))

    def window(self) -> dict[str, Scalar]:
        """What is timed: operation, what follows each, precision, and the variables that MLX
        reads.
        """
        variables = {}
        for name, value in os.environ.items():
            if name.startswith("MLX_"):
                # They change how MLX runs, for example how many operations it submits at once.
                variables[name] = value[:200]
        return {
            "operation": "mx.add(x, 1)",
            "after_each": self._called,
            "precision": "int32",
            **variables,
        }


class MlxWork(ArrayWork):
    """n steps of array operations, each started by ``mx.async_eval``."""

    def __init__(self, mx: Any, case: Case) -> None:
        self.xp = mx
        self.on_host = mx.default_device() == mx.cpu
        super().__init__(case)

    def issue(self, n: int) -> None:
        """Run n steps; returns before they are done."""
        values, step, start = self.values, self._step, self.xp.async_eval
        for _ in repeat(None, n):
            values = step(values)
            start(values)
        self.values = values

    def wait(self) -> None:
        """Return when the newest state is computed."""
        self.xp.eval(self.values)
