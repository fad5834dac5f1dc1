"""Workloads in torch: eager steps, compiled steps, and CUDA graphs of n eager or compiled steps."""

from __future__ import annotations

import os
import sys
from itertools import repeat
from typing import Any

import numpy as np
import torch

from overhead.measure.sampling.clock import every_processor
from overhead.probes.base import Unsupported
from overhead.probes.torch.bodies import set_autograd_mode
from overhead.probes.torch.chains import TorchChain, select_device
from overhead.probes.torch.compiled import WARM_STEPS, graph_required, mark_static, own_code
from overhead.probes.torch.devices import wait_action
from overhead.probes.torch.graphs import TorchGraphs
from overhead.probes.workload_chain import WorkChain, step_of, verified
from overhead.results import Case, Scalar, because
from overhead.workloads.base import Array

_INHERITED_PROCESSORS = set(every_processor()) or set(range(os.cpu_count() or 1))
"""The processors that this process could use when it opened its first workload, before it
measured.
"""


def open_case(device: str, case: Case) -> WorkChain:
    """A chain that runs a workload (a computation that repeats one step) in torch, after it was
    compared with NumPy (``verified``, which closes it and raises ``Unverified`` if results differ).
    The case selects its class: CUDA graphs (``maker`` says of what), a compiled step (``mode``),
    host and device in turn (``hybrid``), or eager steps.
    """
    if "maker" in case.params:
        return verified(GraphedWork(device, case))
    if case.params.get("mode", "eager") != "eager":
        return verified(CompiledWork(device, case))
    if case.pattern == "hybrid":
        return verified(HybridWork(device, case))
    return verified(TorchWork(device, case))


class TorchWork(TorchChain, WorkChain):
    """A chain of n steps of a workload, which repeats a step on its own state, in eager torch. Each
    step returns new tensors for the state (``values``, by name; ``steps`` are counters, to which
    each step adds 1). ``details``: what ``window`` also says.
    """

    launches = 16

    def __init__(self, device: str, case: Case) -> None:
        """Put the inputs on the device with this name in torch. ``put`` sets the state later."""
        super().__init__(case)
        set_autograd_mode("no_grad")
        place = select_device(device)
        # On CUDA wait for the stream, on other GPUs for an event. A CPU needs no wait.
        wait_name = "stream" if place.type == "cuda" else ""
        self.use_device(place, wait_action(place, wait_name))
        self.on_host = self.synchronous  # only the CPU is synchronous
        self._threads = 1
        if case.params.get("threads") == "all":
            # All processors that this process may use.
            self._threads = len(_INHERITED_PROCESSORS)
        use_threads(self._threads)
        # The step as a function of torch's tensors: it returns the next state.
        self.step = step_of(self, torch, self._inputs_on(place))
        self.values: dict[str, Any] = {}
        self.details: dict[str, Scalar] = {}

    def _inputs_on(self, device: Any) -> dict[str, Any]:
        """The inputs of the workload as tensors on a device."""
        return {name: torch.from_numpy(values).to(device) for name, values in self.inputs.items()}

    def put(self, state: dict[str, Array]) -> None:
        """Copy the state to the device and set all counters to 0."""
        set_autograd_mode("no_grad")  # another chain may have set another mode
        counters = np.zeros(self.elements, np.int32)
        tensors = {}
        for name, values in {**state, "steps": counters}.items():
            on_host = torch.from_numpy(np.array(values))
            tensors[name] = on_host.to(self.torch_device, copy=True)
        # Makes them the state; a subclass copies them to its own tensors.
        self.hold(tensors)
        self._wait()

    def hold(self, values: dict[str, Any]) -> None:
        """Make these tensors the state."""
        self.values = values

    def fetch(self) -> tuple[dict[str, Array], Array]:
        """The state, and the number of steps of each element (uint32), copied to the host."""
        state = {name: values.cpu().numpy().copy() for name, values in self.values.items()}
        counters = state.pop("steps").view(np.uint32)
        return state, counters

    def prepare(self, n: int) -> None:
        """Set the autograd mode and the number of threads."""
        set_autograd_mode("no_grad")
        use_threads(self._threads)
        self.renew(n)

    def issue(self, n: int) -> None:
        """Run n steps; returns before a GPU has done them."""
        values, step = self.values, self.step
        for _ in repeat(None, n):
            values = step(values)
        self.values = values

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values for the record: what every workload tells, how torch
        is called, its threads, and what a subclass adds (``details``).
        """
        return {
            **super().window(),
            "entry": "python",
            "autograd": "no_grad",
            "threads": self._threads,
            **self.details,
        }


class HybridWork(TorchWork):
    """Steps on the device and on the host in turn. The state is copied before each, unless the
    device is the CPU.
    """

    host_acts = True

    def __init__(self, device: str, case: Case) -> None:
        super().__init__(device, case)
        self.overlap = "serial"
        self.on_host = True
        self._host = torch.device("cpu")
        self._host_step = step_of(self, torch, self._inputs_on(self._host))
        self.details = {"host_steps": "every other", "copies": "state, pageable, before each step"}

    def put(self, state: dict[str, Array]) -> None:
        """Copy the state to the device, which runs the next step."""
        super().put(state)
        self._on_device = True

    def issue(self, n: int) -> None:
        """Run n steps on the device and on the host (CPU) in turn. The state is copied to where
        each step runs. The next call goes on where this one has ended: after an odd n, on the
        other.
        """
        values, on_device = self.values, self._on_device
        for _ in repeat(None, n):
            where, step = (
                (self.torch_device, self.step) if on_device else (self._host, self._host_step)
            )
            # Where device and host are both the CPU, ``to`` copies nothing.
            values = step({name: value.to(where) for name, value in values.items()})
            on_device = not on_device
        self.values, self._on_device = values, on_device


class InPlaceWork(TorchWork):
    """A workload whose state stays in the same tensors, because graphs and compiled steps write to
    them.
    """

    one: Any = None
    """The compiled step, which writes its results to its arguments. A subclass sets it."""

    def hold(self, values: dict[str, Any]) -> None:
        """Copy these tensors to those of the state; the first tensors become those of the state."""
        self.values = self.values or values
        for name, tensor in self.values.items():
            tensor.copy_(values[name])

    def issue(self, n: int) -> None:
        """Call the compiled step n times; returns before a GPU has done them."""
        values, step = self.values, self.one
        for _ in repeat(None, n):
            step(values)


class CompiledWork(InPlaceWork):
    """A chain of n calls of a step of a workload that torch.compile has compiled. The step writes
    its results to the tensors of the state.
    """

    launches = 8

    def __init__(self, device: str, case: Case) -> None:
        """Compile the step by calling it a few times on a state of zeros, which ``put`` replaces
        later.
        """
        super().__init__(device, case)
        mode = str(case.params["mode"])
        self.details = {"mode": mode}
        self.put(self.zeros())
        # Their addresses stay the same: else a CUDA graph would copy them at every call.
        mark_static(self.values.values())
        self.one = compiled(self.step, mode)
        # Raises ``Unsupported`` if the mode should make a graph and torch made none.
        with graph_required(mode):
            self.issue(WARM_STEPS)
            self._wait()


class GraphedWork(InPlaceWork):
    """A chain that runs n steps of a workload as one CUDA graph. torch captures the graph from
    eager or compiled steps before the timed window, and it is launched once inside.
    """

    recorded = True
    max_n = 2048  # a step is many nodes, and torch needs about 10 us to capture each node
    launches = 0

    def __init__(self, device: str, case: Case) -> None:
        """Run a few steps on a state of zeros, because kernels must have run before a capture.
        ``prepare`` captures later, when n is known.
        """
        super().__init__(device, case)
        if self.torch_device.type != "cuda":
            raise Unsupported(because("graphs-are-of-cuda"))
        # The graph is launched once, after which the device begins.
        self.overlap = "serial"
        self.details = {"call": "CUDAGraph.replay", "recording": "outside"}
        if case.params["maker"] == "torch-compiled":
            self.one = compiled(self.step, "default")
            self.details["mode"] = "default"
        self.put(self.zeros())
        # Runs two steps now.
        self._graphs = TorchGraphs(self._run)

    def _run(self, n: int) -> None:
        """What is captured: n steps, whose result is written to the tensors of the state, since a
        graph reads and writes the same memory at each launch. A compiled step (``one``) does so
        itself; an eager step returns new tensors.
        """
        if self.one is not None:
            # Calls the compiled step n times.
            super().issue(n)
            return
        values = dict(self.values)
        for _ in repeat(None, n):
            values = self.step(values)
        self.hold(values)  # copies them

    def prepare(self, n: int) -> None:
        """Capture the graph of n steps, unless it exists."""
        super().prepare(n)
        self._launch = self._graphs.launcher(n)

    def issue(self, n: int) -> None:
        """Launch the graph that ``prepare`` captured; returns before the device has run it."""
        self._launch()

    def close(self) -> None:
        """Release all graphs."""
        self._graphs.clear()


def use_threads(count: int) -> None:
    """Let torch use this many threads for operations on the CPU, on all processors of the process.

    A new thread may use only the processors of the thread that starts it, and the sampler, which
    takes the times, binds this thread to one. So on Linux this function lets the thread use all
    processors while it runs an operation large enough to start all threads, and then binds it
    again.
    """
    if torch.get_num_threads() == count:
        return
    # Takes effect at the next operation, which starts the threads.
    torch.set_num_threads(count)
    if count > 1 and sys.platform == "linux":
        # The processors of this thread (0) alone.
        bound = os.sched_getaffinity(0)
        os.sched_setaffinity(0, _INHERITED_PROCESSORS)
        torch.zeros(count << 15).sin_()  # 32,768 elements for each thread
        os.sched_setaffinity(0, bound)


def compiled(step: Any, mode: str) -> Any:
    """A step of a workload, compiled by torch.compile in this ``mode``. ``step`` returns the next
    state; the compiled step writes it to the tensors that it gets, because graphs and later calls
    read the same memory.
    """

    def in_place(values: Any) -> None:
        for name, result in step(values).items():
            values[name].copy_(result)

    # A code object of its own, so that calls need not search among the programs of other steps.
    function = own_code(in_place)
    # ``fullgraph``: an error, and no division into parts, where torch cannot compile all of it.
    # ``dynamic``: shapes are constants.
    return torch.compile(function, mode=mode, fullgraph=True, dynamic=False)
