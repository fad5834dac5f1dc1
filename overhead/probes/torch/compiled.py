"""Steps compiled by torch.compile. This module is imported only when torch.compile is measured."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

import torch

from overhead.probes.base import Unsupported, whole_units
from overhead.probes.common.loops import Issue
from overhead.probes.torch.bodies import AddOne
from overhead.probes.torch.chains import Eager, select_device
from overhead.results import Case, because

WARM_STEPS = 5
"""torch captures the graph of ``reduce-overhead`` at the third call or later."""


def mark_static(tensors: Iterable[Any]) -> None:
    """Tell torch that the addresses of these tensors do not change. A CUDA graph would copy others
    at every call.
    """
    for tensor in tensors:
        torch._dynamo.mark_static_address(tensor)


def own_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a new code object, because torch searches all programs that it has compiled
    for one.
    """
    code, name = function.__code__.replace(), function.__name__
    return types.FunctionType(code, function.__globals__, name, closure=function.__closure__)


@contextlib.contextmanager
def graph_required(mode: str) -> Iterator[None]:
    """A context manager that raises ``Unsupported`` if torch makes no CUDA graph of a step that the
    block compiles.

    Only the mode ``reduce-overhead`` requires a graph.
    """
    found = torch._dynamo.utils.counters["inductor"]
    before = found["cudagraph_skips"]
    yield
    if mode == "reduce-overhead" and found["cudagraph_skips"] > before:
        raise Unsupported(because("torch-skipped-graph", mode=mode))


class Additions(AddOne):
    """A step of ``ops`` in-place additions to 256 int32. ``how``: a mode of torch.compile, or
    ``eager``.
    """

    def __init__(self, device: Any, ops: int, how: str) -> None:
        super().__init__(device, mode="no_grad")
        self.ops, self.name = ops, "; ".join(["x.add_(1)"] * ops)
        self.launches = ops if how == "eager" else 4
        mark_static([self.values])

        def several(x: Any) -> None:
            for _ in range(ops):
                x.add_(1)

        function = own_code(several)
        self._call = (
            function
            if how == "eager"
            else torch.compile(function, mode=how, fullgraph=True, dynamic=False)
        )
        self.step = functools.partial(self._call, self.values)

    def loop(self) -> Issue:
        """A function that runs n steps."""
        call, values = self._call, self.values

        def loop(n: int) -> None:
            for _ in repeat(None, n):
                call(values)

        return loop

    def executed(self) -> int:
        """The number of steps. Raises ``Unverified`` if a step ran only some of its additions."""
        return whole_units(super().executed(), self.ops)


class CompiledAdditions(Eager):
    """n calls of the compiled step."""

    def __init__(self, device: str, case: Case) -> None:
        torch.set_num_threads(1)
        how, ops = str(case.params["mode"]), int(case.params["ops"])
        place = select_device(device)
        with graph_required(how):
            super().__init__(place, Additions(place, ops, how), str(case.params.get("wait", "")))
            self.details = {"mode": how, "ops": ops}
            self._loop(WARM_STEPS)
            self.aside += WARM_STEPS
            self._wait()
