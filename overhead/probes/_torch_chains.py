"""Chains of torch's eager operations: the step, the ways to wait for it, and the loops that issue it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

from overhead.probes._counting import starts, steps
from overhead.probes.base import Chain, Unsupported
from overhead.results import Case, Scalar

Action = Callable[[], object]
Loop = Callable[[int], None]


class _Mode:
    """At most one inference-mode guard lives at a time, whatever order chains of a process open and close in."""

    guard: Any = None

    @classmethod
    def inference(cls, wanted: bool) -> None:
        import torch

        if wanted and cls.guard is None:
            cls.guard = torch._C._InferenceMode(True)
        elif not wanted:
            cls.guard = None


def no_action() -> None:
    """The wait of a device that has finished whenever a call returns."""


def waits(device: Any) -> dict[str, Callable[[], Action]]:
    """The ways to wait for a device, each made by a call, cheapest direct one first."""
    import torch

    if device.type == "cpu":
        return {"none": lambda: no_action}
    module: Any = getattr(torch, device.type)
    if device.type == "mps":
        return {"device": lambda: module.synchronize, "event": lambda: _event(module, {})}
    return {
        "stream": lambda: module.current_stream(device).synchronize,
        "device": lambda: lambda: module.synchronize(device),
        "event": lambda: _event(module, {}),
    } | ({"event-blocking": lambda: _event(module, {"blocking": True})} if device.type == "cuda" else {})


def _event(module: Any, options: dict[str, Any]) -> Action:
    event = module.Event(**options)
    record, synchronize = event.record, event.synchronize

    def wait() -> None:
        record()
        synchronize()

    return wait


class Step:
    """256 int32 on a device, and the operation that adds 1 to them."""

    def __init__(self, device: Any, case: Case) -> None:
        import torch

        _Mode.inference(True)
        self.values = torch.from_numpy(starts()).to(device, copy=True)
        self.number = case.params.get("operand") != "tensor"
        self.in_place = case.params.get("alloc") != "allocating"
        self.operand: Any = 1 if self.number else torch.tensor(1, dtype=torch.int32)

    @property
    def name(self) -> str:
        """The operation as one would write it; ``one`` is a 0-dimensional CPU tensor made beforehand."""
        operand = "1" if self.number else "one"
        return f"x.add_({operand})" if self.in_place else f"x = x + {operand}"

    def loop(self) -> Loop:
        """n steps."""
        return self._add_in_place() if self.in_place else self._add_allocating

    def loop_with(self, action: Action) -> Loop:
        """n steps, the action after each."""
        if not self.in_place:
            raise Unsupported("an action between steps is measured on the step in place only")
        add, operand = self.values.add_, self.operand

        def loop(n: int) -> None:
            for _ in repeat(None, n):
                add(operand)
                action()

        return loop

    def executed(self) -> int:
        return steps(self.values.cpu().numpy())

    def _add_in_place(self) -> Loop:
        add, operand = self.values.add_, self.operand

        def loop(n: int) -> None:
            for _ in repeat(None, n):
                add(operand)

        return loop

    def _add_allocating(self, n: int) -> None:
        x, operand = self.values, self.operand
        for _ in repeat(None, n):
            x = x + operand
        self.values = x


class Eager(Chain):
    """n eager operations on one device, in its current stream."""

    unit = "launch"

    def __init__(self, device: Any, case: Case, make_wait: Callable[[], Action]) -> None:
        import torch

        torch.set_num_threads(1)
        self._device = device
        self._step = Step(device, case)
        self._wait = make_wait()
        self._loop = self._make_loop(case)
        self.synchronous = device.type == "cpu"
        self.overlap = "serial" if self.synchronous else "pipelined"
        self.wait_spins = not self.synchronous and case.params.get("wait") != "event-blocking"
        self.latency = case.pattern in ("wait-each", "read-each")

    def _make_loop(self, case: Case) -> Loop:
        if case.pattern == "per-submit":
            return self._step.loop()
        if case.pattern == "wait-each":
            return self._step.loop_with(self._wait)
        if case.pattern == "read-each":
            return self._step.loop_with(self._step.values[0].item)
        raise Unsupported(f"eager torch has no {case.pattern}")

    def prepare(self, n: int) -> None:
        _Mode.inference(True)

    def issue(self, n: int) -> None:
        self._loop(n)

    def wait(self) -> None:
        self._wait()

    def executed(self) -> int:
        return self._step.executed()

    def window(self) -> dict[str, Scalar]:
        return {"operation": self._step.name, "precision": "int32", "grad": "inference_mode", "threads": 1}
