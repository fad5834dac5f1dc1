"""Triton launches in torch's current stream. This module is imported only when Triton is measured."""

from __future__ import annotations

import functools
from itertools import repeat
from typing import Any

import torch

from overhead.probes.base import DeviceTime
from overhead.probes.common.python_loops import Issue
from overhead.probes.held_chain import HeldChain
from overhead.probes.in_order import InOrderChain
from overhead.probes.kernels import lcg, source
from overhead.probes.kernels.step_triton import step
from overhead.probes.torch import waits
from overhead.probes.torch.chains import TorchClock
from overhead.results import Case

_WARPS = 2


class TritonChain(HeldChain, InOrderChain):
    """A chain of n launches. In the pattern ``wait-each`` a wait follows each launch."""

    wait_spins = True

    def __init__(self, device: str, case: Case) -> None:
        place = torch.device(device)
        torch.cuda.set_device(place)
        self._seeds = lcg.seeds()
        self._words = torch.from_numpy(self._seeds.view("int32")).to(place)
        entry = case.params["entry"]
        wait = waits.wait(place, str(case.params["wait"]))
        # The first call compiles the kernel and returns it. It also runs a step, which is undone afterwards.
        compiled = step[(4,)](self._words, num_warps=_WARPS)
        self._words.copy_(torch.from_numpy(self._seeds.view("int32")))
        wait()
        loop = _by_handle(compiled, self._words) if entry == "compiled" else _by_jit(self._words)
        super().__init__(
            case,
            functools.partial(loop, 1),
            wait,
            count=self._steps,
            window={"operation": "step[(4,)](x)", "entry": entry, "precision": "int32", "warps": _WARPS},
            loop=loop,
        )

    def device(self, n: int) -> DeviceTime | None:
        return None if self.latency else self.held(TorchClock(), n)

    def kernels(self) -> dict[str, str]:
        return {"step_triton.py": source("step_triton.py")[1]}

    def _steps(self) -> int:
        return lcg.distance(self._seeds, self._words.cpu().numpy().view("uint32"))


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
