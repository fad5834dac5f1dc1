"""The step without its synchronisations: the values that it read back are recorded first, then handed out again.

It shows how much the waits cost at most. It is no program that anyone could use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from overhead.explain.alternatives.base import StepFunction, without_cuda

_RECORDED_STEPS = 4
"""How many steps are recorded; they are handed out in turn."""
_READS = ("item", "tolist", "cpu", "to", "__bool__", "__int__", "__float__", "__index__")
"""Methods of ``torch.Tensor`` that may copy from the device to the host and wait for it."""
_WAITS = (("", "synchronize"), ("Stream", "synchronize"), ("Event", "synchronize"))
"""Functions of ``torch.cuda`` that wait and return nothing."""


class WithoutSynchronisations:
    """The step with recorded values in the place of ``.item()`` and of other reads and waits."""

    name = "without synchronisations"
    label: Literal["measured", "bound"] = "bound"
    captures, compiles = False, False

    def why_not(self) -> str:
        return without_cuda()

    def make(self, step: StepFunction) -> StepFunction:
        import torch

        tape = Tape()
        before = {name: getattr(torch.Tensor, name) for name in _READS}
        for name, method in before.items():
            setattr(torch.Tensor, name, tape.read(method))
        for owner, name in _WAITS:
            holder = getattr(torch.cuda, owner) if owner else torch.cuda
            setattr(holder, name, tape.wait(getattr(holder, name)))
        for _ in range(_RECORDED_STEPS):
            tape.record(step)
        for name, method in before.items():
            if method not in tape.used:
                setattr(torch.Tensor, name, method)
        return lambda: tape.replay(step)


class Tape:
    """The values that some steps read from the device, in order."""

    def __init__(self) -> None:
        self._steps: list[list[Any]] = []
        self._mode: Literal["off", "recording", "replaying"] = "off"
        self._values: list[Any] = []
        self._at = self._replayed = 0
        self.used: set[Callable[..., Any]] = set()
        """The methods that read a value while steps were recorded."""

    def record(self, step: StepFunction) -> Any:
        """Run a step and keep what it reads."""
        self._values, self._mode = [], "recording"
        try:
            return step()
        finally:
            self._mode = "off"
            self._steps.append(self._values)

    def replay(self, step: StepFunction) -> Any:
        """Run a step that gets recorded values instead of reading. Raises ``RuntimeError`` if it reads more of them."""
        self._values, self._at = self._steps[self._replayed % len(self._steps)], 0
        self._replayed += 1
        self._mode = "replaying"
        try:
            return step()
        finally:
            self._mode = "off"

    def read(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method that reads a value of the device, recorded and replayed. Other uses of it are left alone."""

        def reading(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if self._mode == "off" or not tensor.is_cuda:
                return method(tensor, *args, **kwargs)
            if self._mode == "recording":
                value = method(tensor, *args, **kwargs)
                if not getattr(value, "is_cuda", False):
                    self._values.append(value)
                    self.used.add(method)
                return value
            if method.__name__ == "to" and not _to_host(args, kwargs):
                return method(tensor, *args, **kwargs)
            if self._at == len(self._values):
                raise RuntimeError("the step reads more values from the device in some steps than in others")
            self._at += 1
            return self._values[self._at - 1]

        return reading

    def wait(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that waits; while a step is replayed it does nothing."""
        return lambda *args, **kwargs: None if self._mode == "replaying" else function(*args, **kwargs)


def _to_host(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether ``Tensor.to`` with these arguments gives a tensor in host memory."""
    named = [kwargs.get("device"), *args[:1]]
    return any(str(each) == "cpu" or str(getattr(each, "device", "")) == "cpu" for each in named if each is not None)
