"""Other ways to run a step: each is measured against the step as it is."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from overhead.results import Reason, Why, because
from overhead.timing.waits import has_cuda_context

StepFunction = Callable[[], Any]
CUDA_GRAPH, PINNED, UNSYNCHRONISED = "CUDA graph", "pinned uploads", "without synchronisations"
_RECORDED_STEPS = 4
"""How many steps are recorded without synchronisations; they are handed out in turn."""
_READS = ("item", "tolist", "cpu", "to", "__bool__", "__int__", "__float__", "__index__")
"""Methods of ``torch.Tensor`` that may copy from the device to the host and wait for it."""


@dataclass(frozen=True)
class StepChange:
    """Another way to run the same step.

    ``make``: gives the step in the other way, or raises what forbids it. ``why_not``: why it does
    not apply to what has run in this process; '' if it does. ``label``: ``measured`` if it computes
    the same, ``bound`` if it leaves out something that the program needs. ``captures``: it records
    the step once, so Python values stay as they were then. ``compiles``: it translates the step
    first, which may take minutes.
    """

    make: Callable[[StepFunction], StepFunction]
    why_not: Callable[[], Why]
    label: Literal["measured", "bound"] = "measured"
    captures: bool = False
    compiles: bool = False


class ReadsDiffer(RuntimeError):
    """A step that gets recorded values reads more of them than were recorded: it reads not the same
    in each step.
    """


def no_torch() -> Reason:
    """Why an alternative of PyTorch's does not apply to a step without PyTorch."""
    return because("step-without-torch")


def _without_cuda() -> Why:
    """Why PyTorch's CUDA features do not apply to what runs in this process; '' if they do."""
    torch = sys.modules.get("torch")
    if torch is None:
        return no_torch()
    if not torch.cuda.is_available():
        return because("alternative-needs-cuda-device")
    if torch.cuda.is_initialized() or has_cuda_context():
        return ""
    return because("step-without-torch-on-cuda")


def capture_graph(step: StepFunction) -> StepFunction:
    """A function that launches a CUDA graph of the whole step. Raises what the step or the capture
    raises.
    """
    import torch

    graph: Any = torch.cuda.CUDAGraph()
    raised: Exception | None = None
    try:
        with torch.cuda.graph(graph):
            try:
                result = step()
            except Exception as error:
                raised = error
                raise
    except Exception as error:
        # If the step raised, the end of the capture raises again, and only says that the capture is
        # invalid.
        raise raised or error from None

    def replay() -> Any:
        graph.replay()
        return result

    return replay


def _compiled(mode: str, step: StepFunction) -> StepFunction:
    import torch

    compiled: StepFunction = torch.compile(
        lambda: step(), mode=mode
    )  # dynamo refuses some callable objects
    return compiled


def _not_compiled(mode: str) -> Why:
    if "torch" not in sys.modules:
        return no_torch()
    if mode == "reduce-overhead" and _without_cuda():
        return because("same-as-default-mode-on-cpu")
    return ""


def _without_synchronisations(step: StepFunction) -> StepFunction:
    """The step with recorded values in place of reads and waits: a bound on their cost, and no
    usable program.
    """
    import torch

    tape = Tape()
    for name in _READS:
        setattr(torch.Tensor, name, tape.read(getattr(torch.Tensor, name)))
    for owner in (torch.cuda, torch.cuda.Stream, torch.cuda.Event):
        owner.synchronize = tape.wait(owner.synchronize)
    for _ in range(_RECORDED_STEPS):
        tape.record(step)
    return lambda: tape.replay(step)


def _pinned(step: StepFunction) -> StepFunction:
    """The step with uploads from pinned memory, ``non_blocking``. A tensor is pinned again when it
    is written.
    """
    import torch

    @functools.lru_cache(8)
    def kept(tensor: Any, version: int) -> Any:
        return tensor.pin_memory()

    def pinned(tensor: Any) -> Any:
        return (
            tensor
            if tensor.is_cuda
            else kept(tensor, 0 if tensor.is_inference() else tensor._version)
        )

    def uploading(method: Callable[..., Any], always: bool) -> Callable[..., Any]:
        def upload(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if always or _goes_to("cuda", args, kwargs):
                return method(pinned(tensor), *args, **{**kwargs, "non_blocking": True})
            return method(tensor, *args, **kwargs)

        return upload

    def copying(tensor: Any, source: Any, non_blocking: bool = False) -> Any:
        return (
            copy(tensor, pinned(source), True)
            if tensor.is_cuda
            else copy(tensor, source, non_blocking)
        )

    kind, copy = torch.Tensor, torch.Tensor.copy_
    usual = {"to": kind.to, "cuda": kind.cuda, "copy_": copy}
    changed = {
        "to": uploading(kind.to, False),
        "cuda": uploading(kind.cuda, True),
        "copy_": copying,
    }

    def changed_step() -> Any:
        for name, method in changed.items():
            setattr(kind, name, method)
        try:
            return step()
        finally:  # the step as it is runs in turn in this process
            for name, method in usual.items():
                setattr(kind, name, method)

    return changed_step


class Tape:
    """The values that some steps read from the device, in order."""

    def __init__(self) -> None:
        self._steps: list[list[Any]] = []
        self._mode: Literal["off", "recording", "replaying"] = "off"
        self._values: list[Any] = []

    def record(self, step: StepFunction) -> Any:
        """Run a step and keep the values that it reads from the device; returns what the step
        returns.
        """
        self._steps.append([])
        return self._run("recording", self._steps[-1], step)

    def replay(self, step: StepFunction) -> Any:
        """Run a step that gets recorded values instead of reading. Raises ``ReadsDiffer`` if it
        reads more of them.
        """
        self._steps.append(self._steps.pop(0))
        return self._run("replaying", [*self._steps[-1]], step)

    def _run(
        self, mode: Literal["recording", "replaying"], values: list[Any], step: StepFunction
    ) -> Any:
        self._mode, self._values = mode, values
        try:
            return step()
        finally:
            self._mode = "off"

    def read(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A tensor's ``method`` wrapped: it records what it reads from the device, and replays
        it.
        """

        def reading(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if self._mode == "off" or not tensor.is_cuda:
                return method(tensor, *args, **kwargs)
            if self._mode == "recording":
                value = method(tensor, *args, **kwargs)
                if not getattr(value, "is_cuda", False):
                    self._values.append(value)
                return value
            if method.__name__ == "to" and not _goes_to("cpu", args, kwargs):
                return method(tensor, *args, **kwargs)
            if not self._values:
                raise ReadsDiffer
            return self._values.pop(0)

        return reading

    def wait(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A ``function`` that waits, wrapped: while a step is replayed it does nothing and returns
        None.
        """
        return lambda *args, **kwargs: (
            None if self._mode == "replaying" else function(*args, **kwargs)
        )


def _goes_to(kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether these arguments of ``Tensor.to`` name a device of this kind, or a tensor there."""
    return any(str(getattr(to, "device", to)).startswith(kind) for to in [*args, *kwargs.values()])


_COMPILED_MODES = {"torch.compile": "default", "torch.compile reduce-overhead": "reduce-overhead"}
"""Modes of ``torch.compile``, by the name of the alternative."""
ALTERNATIVES: dict[str, StepChange] = {
    CUDA_GRAPH: StepChange(capture_graph, _without_cuda, captures=True),
    **{
        name: StepChange(
            functools.partial(_compiled, mode),
            functools.partial(_not_compiled, mode),
            compiles=True,
        )
        for name, mode in _COMPILED_MODES.items()
    },
    PINNED: StepChange(_pinned, _without_cuda),
    UNSYNCHRONISED: StepChange(_without_synchronisations, _without_cuda, "bound"),
}
"""By name, in the order in which they are tried and shown."""
