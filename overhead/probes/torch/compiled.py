"""Chains of steps compiled by torch.compile. This module is imported only when torch.compile is measured."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from itertools import repeat
from typing import Any

import torch

from overhead.probes.base import Unsupported, whole_units
from overhead.probes.common.add_one import count_steps, start_values
from overhead.probes.common.python_loops import Action, Issue, repeated
from overhead.probes.torch import waits
from overhead.probes.torch.bodies import Mode, set_autograd_mode
from overhead.probes.torch.chains import Eager
from overhead.probes.torch.graphs import TorchGraphs
from overhead.results import Case, Scalar

_EAGER_MODES = ("eager", "eager-graph")


class Additions:
    """A step of ``ops`` in-place additions to 256 int32, compiled or eager."""

    precision = "int32"
    mode: Mode = "no_grad"

    def __init__(self, device: Any, ops: int, how: str) -> None:
        set_autograd_mode(self.mode)
        self.ops, self.name = ops, "; ".join(["x.add_(1)"] * ops)
        self.launches = ops if how == "eager" else 4
        self.values = torch.from_numpy(start_values()).to(device, copy=True)
        # Without this mark, a CUDA graph copies the input at every call.
        torch._dynamo.mark_static_address(self.values)
        function = _additions(ops)
        self._call = (
            function if how in _EAGER_MODES else torch.compile(function, mode=how, fullgraph=True, dynamic=False)
        )
        self.step: Action = functools.partial(self._call, self.values)

    def loop(self) -> Issue:
        """A loop that runs n steps."""
        call, values = self._call, self.values

        def loop(n: int) -> None:
            for _ in repeat(None, n):
                call(values)

        return loop

    def reading(self, read: Callable[[Any], object]) -> Action:
        """An action that calls ``read`` with one element of the values."""
        return functools.partial(read, self.values[:1])

    def executed(self) -> int:
        """The number of steps. Raises ``Unverified`` if a step ran only some of its additions."""
        return whole_units(count_steps(self.values.cpu().numpy()), self.ops)


class Compiled(Eager):
    """n calls of the compiled step."""

    def __init__(self, device: str, case: Case) -> None:
        torch.set_num_threads(1)
        place = torch.device(device)
        if place.type == "cuda":
            torch.cuda.set_device(place)
        how, ops = str(case.params["mode"]), int(case.params["ops"])
        waiting = waits.wait(place, str(case.params.get("wait", "")))
        skips = torch._dynamo.utils.counters["inductor"]
        skipped = skips["cudagraph_skips"]
        body = Additions(place, ops, how)
        super().__init__(place, body, waiting, spins=place.type == "cuda")
        self._how, self._ops = how, ops
        if how == "eager-graph":
            self._loop = repeated(TorchGraphs(body).replay(1))
        # torch captures a graph at the third call or later. These calls are not measured.
        self._loop(5)
        self.aside += 5
        self._wait()
        if skips["cudagraph_skips"] > skipped:
            raise Unsupported(f"{how} made no CUDA graph: torch skipped it")

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "mode": self._how, "ops": self._ops}


def _additions(ops: int) -> Callable[[Any], None]:
    """A step with a new code object, because torch searches all programs that it has compiled for a code object."""

    def step(x: Any) -> None:
        for _ in range(ops):
            x.add_(1)

    return types.FunctionType(step.__code__.replace(), step.__globals__, "step", closure=step.__closure__)
