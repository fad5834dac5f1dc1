"""Chains of eager torch operations on one device, issued from Python or from a compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any, Protocol

import torch

from overhead.probes.base import DeviceTime, whole_units
from overhead.probes.common.loops import Action, Issue, alternating
from overhead.probes.common.native_loop import compile_native
from overhead.probes.held_chain import HeldChain, StreamHolder
from overhead.probes.torch.bodies import AddOne, set_autograd_mode
from overhead.probes.torch.libtorch_add import NativeAdd
from overhead.probes.torch.operations import Mode
from overhead.results import Scalar


def chosen_device(name: str) -> Any:
    """The device with this name, which becomes the current one of its type."""
    device = torch.device(name)
    if device.index is not None:
        getattr(torch, device.type).set_device(device)
    return device


class TorchClock(StreamHolder):
    """Blocks the current CUDA stream with ``torch.cuda._sleep``, and measures device time with torch's events."""

    method = "torch.cuda.Event behind torch.cuda._sleep"

    def block(self, ns: float) -> None:
        # The argument is a number of multiprocessor clock cycles. The clock is always below 3 GHz.
        torch.cuda._sleep(int(ns * 3))

    def mark(self) -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def passed(self, mark: Any) -> bool:
        return bool(mark.query())

    def wait(self, mark: Any) -> None:
        mark.synchronize()

    def between(self, start: Any, end: Any) -> float:
        return float(start.elapsed_time(end)) * 1e6


class TorchChain(HeldChain):
    """A chain in the current stream of a device of torch."""

    def opened(self, place: Any, wait: Action) -> None:
        """Set the device and its wait. Called once, by ``__init__``."""
        self.torch_device, self._wait = place, wait
        self.synchronous = place.type == "cpu"
        self.overlap = "serial" if self.synchronous else "pipelined"
        self.wait_spins = place.type == "cuda"

    def wait(self) -> None:
        self._wait()

    def device(self, n: int) -> DeviceTime | None:
        return self.held(TorchClock(), n) if self.torch_device.type == "cuda" else None


class Body(Protocol):
    """A step on a device, which counts how often it ran. ``launches``: kernels of a step, at most."""

    name: str
    launches: int
    precision: str
    mode: Mode
    step: Action

    def loop(self) -> Issue: ...
    def reading(self, read: Callable[[Any], object]) -> Action: ...
    def executed(self) -> int: ...


class Eager(TorchChain):
    """A chain that runs n steps in the current stream of a device."""

    def __init__(self, device: Any, body: Body, wait: Action, *, spins: bool) -> None:
        self.opened(device, wait)
        self.wait_spins = spins
        self.launches = body.launches
        self._body = body
        self._loop = body.loop()

    def prepare(self, n: int) -> None:
        set_autograd_mode(self._body.mode)

    def issue(self, n: int) -> None:
        self._loop(n)

    def executed(self) -> int:
        set_autograd_mode(self._body.mode)
        return self._body.executed() - self.aside

    def window(self) -> dict[str, Scalar]:
        return {
            "operation": self._body.name,
            "entry": "python",
            "precision": self._body.precision,
            "autograd": self._body.mode,
            "threads": 1,
        }


class NativeEager(Eager):
    """A chain that calls the same operations from a compiled loop, through the operator functions of libtorch."""

    def __init__(self, device: Any, body: AddOne, wait: Action, *, spins: bool) -> None:
        super().__init__(device, body, wait, spins=spins)
        self._native = NativeAdd(body.values, body.operand, in_place=body.in_place)
        self._loop = compile_native(self._native.program)

    def executed(self) -> int:
        set_autograd_mode(self._body.mode)
        self._native.read()
        return super().executed()

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "entry": self._native.entry}

    def close(self) -> None:
        self._native.close()


class Acting(Eager):
    """A unit is ``every`` steps and then one host action: a wait, or a read of a value."""

    def __init__(self, device: Any, body: Body, wait: Action, *, spins: bool, action: Action, every: int) -> None:
        super().__init__(device, body, wait, spins=spins)
        self.overlap = "serial"
        self.latency = every == 1
        self._every = every
        self._loop = alternating(body.step, action) if every == 1 else _after_some(body.loop(), action, every)

    def executed(self) -> int:
        return whole_units(super().executed(), self._every)

    def device(self, n: int) -> DeviceTime | None:
        return None

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "steps": self._every}


def _after_some(steps: Issue, action: Action, every: int) -> Issue:
    def loop(n: int) -> None:
        for _ in repeat(None, n):
            steps(every)
            action()

    return loop
