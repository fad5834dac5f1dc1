"""Chains of n eager torch operations, the units, on one device, issued from Python or from a
compiled loop.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

import torch

from overhead.probes.base import DeviceTime, whole_units
from overhead.probes.common.loops import Action, Issue, alternating
from overhead.probes.common.native_loop import compile_native
from overhead.probes.held_chain import HeldChain, StreamHolder
from overhead.probes.torch.bodies import AddOne, Body, set_autograd_mode
from overhead.probes.torch.devices import host_action, wait_action
from overhead.probes.torch.libtorch_add import NativeAdd
from overhead.results import Scalar


def select_device(name: str) -> Any:
    """Make the device with this name the current one of its type, and return it."""
    device = torch.device(name)
    if device.index is not None:
        getattr(torch, device.type).set_device(device)
    return device


class TorchClock(StreamHolder):
    """Blocks the current CUDA stream with ``torch.cuda._sleep``, and measures device time with
    torch's events.
    """

    method = "torch.cuda.Event behind torch.cuda._sleep"

    def block(self, ns: float) -> None:
        """Queue a kernel that sleeps for at least ``ns``."""
        # The argument is a number of multiprocessor clock cycles. The clock is always below 3 GHz.
        torch.cuda._sleep(int(ns * 3))

    def mark(self) -> Any:
        """Queue a new event and return it."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def passed(self, mark: Any) -> bool:
        """Whether the device has reached the event."""
        return bool(mark.query())

    def between(self, start: Any, end: Any) -> float:
        """Device time between two events, ns."""
        return float(start.elapsed_time(end)) * 1e6


class TorchChain(HeldChain):
    """A chain in the current stream of a device of torch."""

    host_acts = False
    """True if the host waits, reads or copies inside a unit. Device time is then not measured."""

    def use_device(self, device: Any, wait: Action) -> None:
        """Set the device and the function that waits for it. Called once, by ``__init__``."""
        self.torch_device = device
        self._wait = wait
        self.synchronous = device.type == "cpu"
        self.overlap = "serial" if self.synchronous else "pipelined"
        self.wait_spins = device.type == "cuda"

    def wait(self) -> None:
        """Return when the current stream of the device is idle."""
        self._wait()

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n units; None on other devices than CUDA, and if the host acts inside a
        unit.
        """
        if self.torch_device.type != "cuda" or self.host_acts:
            return None
        return self.held(TorchClock(), n)


class Eager(TorchChain):
    """A chain that runs a step of eager torch operations (``body``) n times in the current stream
    of a device. ``details``: what ``window`` also says.
    """

    steps_of_a_unit = 1

    def __init__(self, device: Any, body: Body, wait_name: str) -> None:
        self.use_device(device, wait_action(device, wait_name))
        self.wait_spins = device.type != "cpu" and wait_name != "event-blocking"
        self.launches = body.launches
        self._body = body
        self._loop = body.loop()
        self.details: dict[str, Scalar] = {}

    def prepare(self, n: int) -> None:
        """Set the autograd mode of the step."""
        set_autograd_mode(self._body.mode)

    def issue(self, n: int) -> None:
        """Run n steps; returns before a GPU has done them."""
        self._loop(n)

    def executed(self) -> int:
        """The number of whole units that ran, without those for device time. Raises
        ``Unverified``.
        """
        set_autograd_mode(self._body.mode)
        return whole_units(self._body.executed(), self.steps_of_a_unit) - self.aside

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values for the record: the operation, how it is called,
        precision, autograd mode, number of CPU threads, and what a subclass adds (``details``).
        """
        return {
            "operation": self._body.name,
            "entry": "python",
            "precision": self._body.precision,
            "autograd": self._body.mode,
            # The stack sets one CPU thread for torch (``set_num_threads``).
            "threads": 1,
            **self.details,
        }


class NativeEager(Eager):
    """A chain that calls the same operations from a compiled loop, through the operator functions
    of libtorch.
    """

    def __init__(self, device: Any, body: AddOne, wait_name: str) -> None:
        super().__init__(device, body, wait_name)
        self._native = NativeAdd(body.values, body.operand, in_place=body.in_place)
        self._loop = compile_native(self._native.program)
        self.details = {"entry": self._native.entry}

    def executed(self) -> int:
        """The number of steps that ran, after the latest result was copied to the values that are
        counted.
        """
        set_autograd_mode(self._body.mode)
        self._native.read()
        return super().executed()

    def close(self) -> None:
        """Release the tensors that the compiled loop made."""
        self._native.close()


class EagerWithAction(Eager):
    """A chain whose unit is ``every`` steps and then one action of the host: a wait, or a read of a
    value (``sync``: its name). ``body``: the step, on a device of torch.
    """

    host_acts = True

    def __init__(self, device: Any, body: Body, wait_name: str, *, sync: str, every: int) -> None:
        """Make the loop. ``wait_name``: the wait after the whole chain. ``value_reader`` of the
        body: makes a read of its latest value.
        """
        super().__init__(device, body, wait_name)
        action = host_action(device, sync, body.value_reader)
        # The device never works ahead: each unit ends with a wait or a read.
        self.overlap = "serial"
        self.latency = every == 1  # then a unit is one step and its wait
        self.steps_of_a_unit = every
        if every == 1:  # without an inner loop, whose Python would be timed too
            self._loop = alternating(body.step, action)
        else:
            self._loop = _after_several(body.loop(), action, every)
        self.details = {"steps": every}


def _after_several(steps: Issue, action: Action, every: int) -> Issue:
    """A function ``loop(n)`` that, n times, runs ``every`` steps by ``steps(every)`` and then the
    action: a wait, or a read of a value. ``repeat(None, n)`` makes no number for each turn, so it
    costs less than ``range(n)``.
    """

    def loop(n: int) -> None:
        for _ in repeat(None, n):
            steps(every)
            action()

    return loop
