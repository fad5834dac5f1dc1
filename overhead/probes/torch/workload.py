"""Workloads in torch: eager steps, compiled steps, and CUDA graphs of n eager or compiled steps."""

from __future__ import annotations

import functools
import os
import sys
from itertools import repeat
from typing import Any

import numpy as np
import torch

from overhead.measure.sampling.clock import every_processor
from overhead.probes.base import DeviceTime, Unsupported
from overhead.probes.common.python_loops import nothing
from overhead.probes.torch import waits
from overhead.probes.torch.bodies import set_autograd_mode
from overhead.probes.torch.chains import TorchChain, chosen_device
from overhead.probes.torch.compiled import WARM_STEPS, graph_required, mark_static, own_code
from overhead.probes.torch.graphs import captured
from overhead.probes.workload_chain import WorkChain, step_of, verified
from overhead.results import Case, Scalar
from overhead.workloads.base import Array

_MOST_STEPS_IN_A_GRAPH = 2048
"""Limit of the steps in one graph. A step is many nodes, and torch needs about 10 us to capture each node."""
_INHERITED_PROCESSORS = set(every_processor()) or set(range(os.cpu_count() or 1))
"""The processors that this process could use when it opened its first workload, before it measured."""


def open_case(device: str, case: Case) -> WorkChain:
    """A verified chain of the workload.

    With the parameter ``maker``, a CUDA graph contains n eager or compiled steps. With ``mode``, the step is compiled.
    With the pattern ``hybrid``, every other step runs on the host. All other cases are eager.
    """
    if "maker" in case.params:
        return verified(Recorded(device, case))
    if case.params.get("mode", "eager") != "eager":
        return verified(CompiledWork(device, case))
    return verified((HybridWork if case.pattern == "hybrid" else TorchWork)(device, case))


class TorchWork(TorchChain, WorkChain):
    """n eager steps. Each step returns new tensors for the state."""

    launches = 16

    def __init__(self, device: str, case: Case) -> None:
        super().__init__(case)
        set_autograd_mode("no_grad")
        place = chosen_device(device)
        self.opened(place, waits.wait(place, "stream" if place.type == "cuda" else ""))
        self.on_host = self.synchronous
        self._threads = len(_INHERITED_PROCESSORS) if case.params.get("threads") == "all" else 1
        use_threads(self._threads)
        fixed = {name: torch.from_numpy(values).to(self.torch_device) for name, values in self.inputs.items()}
        self.step = step_of(self, torch, fixed)
        self.values: dict[str, Any] = {}

    def put(self, state: dict[str, Array]) -> None:
        set_autograd_mode("no_grad")
        whole: dict[str, Array] = {**state, "steps": np.zeros(self.elements, np.int32)}
        self.hold({name: torch.from_numpy(np.array(v)).to(self.torch_device, copy=True) for name, v in whole.items()})
        self._wait()

    def hold(self, values: dict[str, Any]) -> None:
        """Make these tensors the state."""
        self.values = values

    def fetch(self) -> tuple[dict[str, Array], Array]:
        found = {name: values.cpu().numpy().copy() for name, values in self.values.items()}
        return found, found.pop("steps").view(np.uint32)

    def prepare(self, n: int) -> None:
        set_autograd_mode("no_grad")
        use_threads(self._threads)
        self.renew(n)

    def issue(self, n: int) -> None:
        values, step = self.values, self.step
        for _ in repeat(None, n):
            values = step(values)
        self.values = values

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "entry": "python", "autograd": "no_grad", "threads": self._threads}


class HybridWork(TorchWork):
    """Steps that run on the device and on the host in turn. The state is copied before each step.

    If the device is the CPU, nothing is copied. That case is the control.
    """

    overlap = "serial"

    def __init__(self, device: str, case: Case) -> None:
        super().__init__(device, case)
        self.overlap, self.on_host = "serial", True
        self._host = torch.device("cpu")
        self._host_step = step_of(self, torch, {name: torch.from_numpy(v) for name, v in self.inputs.items()})

    def put(self, state: dict[str, Array]) -> None:
        super().put(state)
        self._on_device = True

    def issue(self, n: int) -> None:
        values, on_device = self.values, self._on_device
        for _ in repeat(None, n):
            where, step = (self.torch_device, self.step) if on_device else (self._host, self._host_step)
            values = step({name: value.to(where) for name, value in values.items()})
            on_device = not on_device
        self.values, self._on_device = values, on_device

    def device(self, n: int) -> DeviceTime | None:
        return None

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "host_steps": "every other", "copies": "state, pageable, before each step"}


class InPlace(TorchWork):
    """A workload whose state stays in the same tensors, because graphs and compiled steps write to them."""

    def hold(self, values: dict[str, Any]) -> None:
        self.values = self.values or values
        for name, kept in self.values.items():
            kept.copy_(values[name])


class CompiledWork(InPlace):
    """n calls of the compiled step, which writes its results to its arguments."""

    launches = 8

    def __init__(self, device: str, case: Case) -> None:
        super().__init__(device, case)
        self._mode = str(case.params["mode"])
        self.put(self.zeros())
        mark_static(self.values.values())
        self.one = compiled(self.step, self._mode)
        with graph_required(self._mode):
            self.issue(WARM_STEPS)
            self._wait()

    def issue(self, n: int) -> None:
        values, step = self.values, self.one
        for _ in repeat(None, n):
            step(values)

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "mode": self._mode}


class Recorded(InPlace):
    """A CUDA graph of n steps. It is captured outside the window, and launched once inside.

    The steps are compiled, or they are eager and the last result is copied to the state.
    """

    recorded = True
    max_n = _MOST_STEPS_IN_A_GRAPH
    launches = 0

    def __init__(self, device: str, case: Case) -> None:
        super().__init__(device, case)
        if self.torch_device.type != "cuda":
            raise Unsupported("graphs are CUDA's")
        self.overlap = "serial"
        self._compiled = compiled(self.step, "default") if case.params["maker"] == "torch-compiled" else None
        self._graphs: dict[int, Any] = {}
        self._stream = torch.cuda.Stream()
        self.put(self.zeros())
        # The driver loads a kernel at its first launch, which is not allowed during a capture.
        self._body(2)
        torch.cuda.synchronize()

    def _body(self, n: int) -> None:
        """Run n steps and write the result to the tensors of the state."""
        if self._compiled is not None:
            for _ in repeat(None, n):
                self._compiled(self.values)
            return
        values = dict(self.values)
        for _ in repeat(None, n):
            values = self.step(values)
        self.hold(values)

    def prepare(self, n: int) -> None:
        super().prepare(n)
        if n and n not in self._graphs:
            self._graphs[n] = torch.cuda.CUDAGraph()
            captured(self._graphs[n], self._stream, functools.partial(self._body, n))
        self._replay = self._graphs[n].replay if n else nothing

    def issue(self, n: int) -> None:
        self._replay()

    def window(self) -> dict[str, Scalar]:
        mode: dict[str, Scalar] = {} if self._compiled is None else {"mode": "default"}
        return {**super().window(), "call": "CUDAGraph.replay", "recording": "outside", **mode}

    def close(self) -> None:
        self._graphs.clear()


def use_threads(count: int) -> None:
    """Let torch use this many threads for operations on the CPU.

    A new thread inherits the processors of the thread that starts it, and the sampler binds that thread to one.
    So this function runs an operation that starts all threads while this thread may still use all processors.
    """
    if torch.get_num_threads() == count:
        return
    torch.set_num_threads(count)
    if count > 1 and sys.platform == "linux":
        bound = os.sched_getaffinity(0)
        os.sched_setaffinity(0, _INHERITED_PROCESSORS)
        torch.zeros(count << 15).sin_()
        os.sched_setaffinity(0, bound)


def compiled(step: Any, mode: str) -> Any:
    """The compiled step, which writes its results to its arguments."""

    def in_place(values: Any) -> None:
        for name, result in step(values).items():
            values[name].copy_(result)

    return torch.compile(own_code(in_place), mode=mode, fullgraph=True, dynamic=False)
