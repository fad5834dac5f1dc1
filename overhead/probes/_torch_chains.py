"""Chains of torch's eager operations on one device, issued from Python or from a compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any, Protocol

from overhead.probes._cuda_time import Held, held
from overhead.probes._torch_steps import Action, Add, Loop, inference
from overhead.probes.base import Chain, DeviceTime
from overhead.results import Scalar


class Body(Protocol):
    """One step of a workload on a device, and how often it ran."""

    name: str
    precision: str
    grad: bool
    step: Action

    def loop(self) -> Loop: ...
    def reading(self, read: Callable[[Any], object]) -> Action: ...
    def executed(self) -> int: ...


class Eager(Chain):
    """n steps on one device, in its current stream, with or without an action after every k-th."""

    def __init__(self, device: Any, body: Body, unit: str, wait: Action, *, spins: bool, action: Action | None = None,
                 every: int = 1) -> None:  # fmt: skip
        self.unit = unit
        self.synchronous = device.type == "cpu"
        self.overlap = "serial" if self.synchronous or action else "pipelined"
        self.wait_spins = spins
        self.latency = action is not None and every == 1
        self._device, self._body, self._action = device, body, action
        self._wait = wait
        self._loop = body.loop() if action is None else acting(body, action, every)

    def prepare(self, n: int) -> None:
        inference(not self._body.grad)

    def issue(self, n: int) -> None:
        self._loop(n)

    def wait(self) -> None:
        self._wait()

    def executed(self) -> int:
        inference(not self._body.grad)
        return self._body.executed()

    def device(self, n: int) -> DeviceTime | None:
        if self._device.type != "cuda" or self._action is not None:
            return None
        self.prepare(n)
        return held(TorchClock(), self._loop, n)

    def window(self) -> dict[str, Scalar]:
        return {
            "operation": self._body.name,
            "entry": "python",
            "precision": self._body.precision,
            "grad": "enabled" if self._body.grad else "inference_mode",
            "threads": 1,
        }


class NativeEager(Eager):
    """The same operations, called from a compiled loop through libtorch's operator entries."""

    def __init__(self, device: Any, body: Add, unit: str, wait: Action, *, spins: bool) -> None:
        from overhead.probes._torch_native import NativeAdd
        from overhead.probes.native import compile_native

        super().__init__(device, body, unit, wait, spins=spins)
        self._native = NativeAdd(body.values, body.operand, in_place=body.in_place)
        self._loop = compile_native(self._native.program)

    def executed(self) -> int:
        inference(True)
        self._native.read()
        return super().executed()

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "entry": self._native.entry}

    def close(self) -> None:
        self._native.close()


def acting(body: Body, action: Action, every: int) -> Loop:
    """n steps, the action after every ``every``-th of them."""
    step, steps = body.step, body.loop()

    def each(n: int) -> None:
        for _ in repeat(None, n):
            step()
            action()

    def some(n: int) -> None:
        groups, rest = divmod(n, every)
        for _ in repeat(None, groups):
            steps(every)
            action()
        steps(rest)

    return each if every == 1 else some


class TorchClock(Held):
    """The current CUDA stream held by ``torch.cuda._sleep``, timed by torch's events."""

    method = "torch.cuda.Event behind torch.cuda._sleep"

    def block(self, ns: float) -> None:
        import torch

        # Counted in cycles of the multiprocessor's clock, which stays below 3 GHz.
        torch.cuda._sleep(int(ns * 3))

    def mark(self) -> Any:
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def passed(self, mark: Any) -> bool:
        return bool(mark.query())

    def wait(self, mark: Any) -> None:
        mark.synchronize()

    def between(self, start: Any, end: Any) -> float:
        return float(start.elapsed_time(end)) * 1e6
