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
    """A copy of the function that is compiled on its own. torch keeps all programs that it compiled
    for one code object, and searches them at every call: functions that one ``def`` made would
    share them, and slow each other down.
    """
    # An equal code object, but another one.
    code = function.__code__.replace()
    return types.FunctionType(
        code, function.__globals__, function.__name__, closure=function.__closure__
    )


@contextlib.contextmanager
def graph_required(mode: str) -> Iterator[None]:
    """A context in which a step is compiled by torch.compile in this ``mode``. The mode
    ``reduce-overhead`` should make a CUDA graph of it. Where torch cannot, it runs the step without
    a graph, and counts a skip. Then this raises ``Unsupported`` at the end.
    """
    # ``inductor``: the part of torch.compile that makes the graph.
    counters = torch._dynamo.utils.counters["inductor"]
    skips_before = counters["cudagraph_skips"]
    yield
    if mode == "reduce-overhead" and counters["cudagraph_skips"] > skips_before:
        raise Unsupported(because("torch-skipped-graph", mode=mode))


class Additions(AddOne):
    """A step of ``ops`` in-place additions of 1 to 256 int32, compiled by torch.compile in this
    ``mode``, or not compiled if the mode is ``eager``.
    """

    def __init__(self, device: Any, ops: int, mode: str) -> None:
        """Make the function of a step; torch compiles it at its first calls."""
        # In the autograd mode ``no_grad``, because a graph must not be captured in inference mode.
        super().__init__(device, mode="no_grad")
        self.ops = ops
        self.name = "; ".join(["x.add_(1)"] * ops)
        # Their addresses stay the same: else a CUDA graph would copy them at every call.
        mark_static([self.values])

        def several(x: Any) -> None:
            for _ in range(ops):
                x.add_(1)

        function = own_code(several)
        # ``launches``: the kernels of a step, at most.
        if mode == "eager":
            self.launches = ops
            self._call = function
        else:
            # A step is one kernel, or one launch of a graph, which counts as so many launches in
            # the queue.
            self.launches = 4
            # ``fullgraph``: an error, and no division into parts, where torch cannot compile all of
            # it. ``dynamic``: shapes are constants.
            self._call = torch.compile(function, mode=mode, fullgraph=True, dynamic=False)
        self.step = functools.partial(self._call, self.values)

    def loop(self) -> Issue:
        """A function ``loop(n)`` that runs n steps. It is timed: so it looks up no attribute in a
        step.
        """
        # Found once, and local, which Python reads fastest.
        call, values = self._call, self.values

        def loop(n: int) -> None:
            for _ in repeat(None, n):
                call(values)

        return loop

    def executed(self) -> int:
        """The number of steps. Raises ``Unverified`` if a step ran only some of its additions."""
        return whole_units(super().executed(), self.ops)


class CompiledAdditions(Eager):
    """A chain of n calls of a step that torch.compile has compiled: ``ops`` additions, in the
    ``mode`` of the case.
    """

    def __init__(self, device: str, case: Case) -> None:
        """Compile the step by calling it a few times. These calls do not count as units
        (``aside``).
        """
        # One CPU thread, as for the steps that are not compiled.
        torch.set_num_threads(1)
        mode = str(case.params["mode"])
        ops = int(case.params["ops"])
        place = select_device(device)
        with graph_required(mode):
            body = Additions(place, ops, mode)
            super().__init__(place, body, str(case.params.get("wait", "")))
            self.details = {"mode": mode, "ops": ops}
            # torch captures the graph of ``reduce-overhead`` at the third call or later.
            self._loop(WARM_STEPS)
            self.aside += WARM_STEPS
            self._wait()
