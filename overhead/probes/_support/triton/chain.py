"""Triton launches in torch's current stream. This module is imported only when Triton is measured."""

from __future__ import annotations

import functools
from itertools import repeat
from typing import Any

import torch

from overhead.probes._support.common.python_loops import Issue, alternating
from overhead.probes._support.cuda.device_time import HeldChain
from overhead.probes._support.torch import waits
from overhead.probes._support.torch.chains import TorchClock
from overhead.probes.base import DeviceTime
from overhead.probes.kernels import lcg, source
from overhead.probes.kernels.step_triton import step
from overhead.results import Case, Scalar

_WARPS = 2


class TritonChain(HeldChain):
    """A chain of n launches. In the pattern ``wait-each`` a wait follows each launch."""

    wait_spins = True

    def __init__(self, device: str, case: Case) -> None:
        place = torch.device(device)
        torch.cuda.set_device(place)
        self._seeds = lcg.seeds()
        self._words = torch.from_numpy(self._seeds.view("int32")).to(place)
        self._entry = case.params["entry"]
        self._wait = waits.wait(place, str(case.params["wait"]))
        # The first call compiles the kernel and returns it. It also runs a step, which is undone afterwards.
        compiled = step[(4,)](self._words, num_warps=_WARPS)
        self._words.copy_(torch.from_numpy(self._seeds.view("int32")))
        self._wait()
        self._loop = _by_handle(compiled, self._words) if self._entry == "compiled" else _by_jit(self._words)
        self.latency = case.pattern == "wait-each"
        if self.latency:
            self.overlap = "serial"
            self._loop = alternating(functools.partial(self._loop, 1), self._wait)

    def issue(self, n: int) -> None:
        self._loop(n)

    def wait(self) -> None:
        self._wait()

    def executed(self) -> int:
        return lcg.distance(self._seeds, self._words.cpu().numpy().view("uint32")) - self.aside

    def device(self, n: int) -> DeviceTime | None:
        return None if self.latency else self.held(TorchClock(), n)

    def window(self) -> dict[str, Scalar]:
        return {"operation": "step[(4,)](x)", "entry": self._entry, "precision": "int32", "warps": _WARPS}

    def kernels(self) -> dict[str, str]:
        return {"step_triton.py": source("step_triton.py")[1]}


def _by_jit(words: Any) -> Issue:
    def loop(n: int) -> None:
        for _ in repeat(None, n):
            step[(4,)](words, num_warps=_WARPS)

    return loop


def _by_handle(compiled: Any, words: Any) -> Issue:
    launch = compiled[(4, 1, 1)]

    def loop(n: int) -> None:
        for _ in repeat(None, n):
            launch(words)

    return loop
