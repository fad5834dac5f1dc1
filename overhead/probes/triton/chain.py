"""Triton launches in torch's current stream, of the step and of workloads; imported only when
Triton is measured.
"""

from __future__ import annotations

import functools
import importlib.util
import tempfile
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch

from overhead import scratch
from overhead.probes.base import DeviceTime
from overhead.probes.held_chain import HeldChain
from overhead.probes.in_order import InOrderChain
from overhead.probes.kernels import lcg, source
from overhead.probes.kernels.step_triton import step
from overhead.probes.torch.chains import TorchClock
from overhead.probes.torch.devices import wait_action
from overhead.probes.workload_chain import WorkChain, kernels_of, verified
from overhead.results import Case, Scalar
from overhead.workloads import sources
from overhead.workloads.base import Array

_WARPS = 2
_WORK_WARPS = 4
"""Warps of a program of the step, and of a workload."""


class TritonChain(HeldChain, InOrderChain):
    """A chain of n launches of the step, a small kernel in Triton, on 256 words of device memory.
    In the pattern ``wait-each`` a wait follows each launch.
    """

    wait_spins = True

    def __init__(self, device: str, case: Case) -> None:
        """Compile the step, and give the base class, a chain on a queue that runs its work in
        order, the launch, the wait, the count of steps, and a loop of n launches. The parameter
        ``entry`` says what a launch calls: the jitted function (``jit``), or the compiled kernel
        (``compiled``).
        """
        place = torch.device(device)
        torch.cuda.set_device(place)
        self._seeds = lcg.seeds()
        # The same bits as int32, which the kernel works on. int32 overflows in the same way as the
        # unsigned words of other stacks.
        seeds = torch.from_numpy(self._seeds.view("int32"))
        self._words = seeds.to(place)
        entry = case.params["entry"]
        # The wait of torch with this name, for the current stream.
        wait = wait_action(place, str(case.params["wait"]))
        # The first call compiles the kernel and returns it. It also runs a step, which is undone
        # afterwards.
        compiled = step[(4,)](self._words, num_warps=_WARPS)
        self._words.copy_(seeds)
        wait()
        words = self._words
        # For a grid of 4 programs, each of which changes a part of the words.
        launch = compiled[(4, 1, 1)]

        def by_jit(n: int) -> None:
            for _ in repeat(None, n):
                step[(4,)](words, num_warps=_WARPS)

        def by_handle(n: int) -> None:
            for _ in repeat(None, n):
                launch(words)

        loop = by_handle if entry == "compiled" else by_jit
        super().__init__(
            case,
            functools.partial(loop, 1),
            wait,
            count=self._steps,
            window={
                "operation": "step[(4,)](x)",
                "entry": entry,
                "precision": "int32",
                "warps": _WARPS,
            },
            loop=loop,
        )

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n launches; None if each unit contains a wait."""
        if self.latency:
            return None
        return self.held(TorchClock(), n)

    def kernels(self) -> dict[str, str]:
        """SHA-256 of ``step_triton.py``."""
        _, sha256 = source("step_triton.py")
        return {"step_triton.py": sha256}

    def _steps(self) -> int:
        words = self._words.cpu().numpy().view("uint32")
        return lcg.distance(self._seeds, words)


def open_work(device: str, case: Case) -> WorkChain:
    """A verified chain. It makes one launch for all steps if the pattern is ``fused``, else one
    launch per step.
    """
    return verified(TritonWork(device, case))


class TritonWork(WorkChain):
    """A chain that runs a workload (a computation that repeats one step on its own state) in
    generated Triton, launched by ``kernel[grid](...)``: n times, or once for n steps in the pattern
    ``fused``. The arguments of the kernel are the state, a counter of the steps of each element,
    the inputs, and the number of steps of a launch.
    """

    language = "triton"
    wait_spins = True

    def __init__(self, device: str, case: Case) -> None:
        """Allocate the buffers and import the generated Triton. The first launch compiles it."""
        super().__init__(case)
        self._place = torch.device(device)
        torch.cuda.set_device(self._place)
        self._fused = case.pattern == "fused"
        # ``max_n``: the most units of a chain, far more than a sample needs.
        if self._fused:
            self.overlap = "serial"
            # Launches per unit, for ``held_n``; 0: all units together are one launch.
            self.launches = 0
            self.max_n = 1 << 26
        else:
            self.overlap = "pipelined"
            self.launches = 1
            self.max_n = 1 << 20
        self._text, (self._entry,) = kernels_of(self, "triton")  # a step is one kernel
        # As the kernel lays it out in memory: here zeros, which ``put`` replaces.
        state = sources.pack_state(self.workload, self.zeros(), self.elements)
        inputs = sources.pack_inputs(self.workload, self.inputs)
        self._state = torch.from_numpy(state).to(self._place)
        self._counters = torch.zeros(self.elements, dtype=torch.int32, device=self._place)
        self._inputs = torch.from_numpy(inputs).to(self._place)
        self._wait = wait_action(self._place, "stream")
        # The jitted function, which the generated text defines.
        self._kernel = getattr(_module(self._text), self._entry.name)
        # How many steps a launch runs; ``prepare`` sets it in the pattern ``fused``.
        self._steps = 1

    def _launch(self) -> None:
        """Launch the kernel of the workload once: all steps in the pattern ``fused``, else one."""
        # So many programs, each of which computes a block of ``threads`` elements.
        self._kernel[(self._entry.groups,)](
            self._state,
            self._counters,
            self._inputs,
            self._steps,
            BLOCK=self._entry.threads,
            num_warps=_WORK_WARPS,
        )

    def put(self, state: dict[str, Array]) -> None:
        """Copy the state to the device and set all counters to 0."""
        packed = sources.pack_state(self.workload, state, self.elements)
        self._state.copy_(torch.from_numpy(packed))
        self._counters.zero_()
        self._wait()

    def fetch(self) -> tuple[dict[str, Array], Array]:
        """The state, and the number of steps of each element (uint32), copied to the host."""
        packed = self._state.cpu().numpy()
        counters = self._counters.cpu().numpy().view(np.uint32)
        return sources.unpack_state(self.workload, packed, self.elements), counters

    def prepare(self, n: int) -> None:
        """Set the number of steps that the fused kernel runs."""
        if self._fused:
            self._steps = n

    def issue(self, n: int) -> None:
        """Launch n steps; returns before the device has run them."""
        launch = self._launch
        for _ in repeat(None, 1 if self._fused else n):
            launch()

    def wait(self) -> None:
        """Return when torch's current stream is idle."""
        self._wait()

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n steps."""
        return self.held(TorchClock(), n)

    def kernels(self) -> dict[str, str]:
        """SHA-256 of the generated Triton, by the workload's name."""
        return {f"{self.workload.name}.triton.py": sources.sha256_of(self._text)}

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values for the record: what every workload tells, the kind
        of launch, and the elements (``block``) and warps (groups of 32 threads) of a program, one
        of the parallel instances of a kernel.
        """
        return {
            **super().window(),
            "entry": "jit",
            "block": self._entry.threads,
            "warps": _WORK_WARPS,
        }


@functools.cache
def _module(text: str) -> Any:
    """The module with this text, generated Triton. It is written to a file that ends with this run
    and imported from there, because Triton reads the source of a kernel from its file.
    """
    folder = Path(tempfile.mkdtemp(dir=scratch.folder()))
    # One name for each text, so that tracebacks tell them apart.
    path = folder / f"workload_{sources.sha256_of(text)[:12]}.py"
    path.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
