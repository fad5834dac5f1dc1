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
"""How many steps are recorded without synchronisations; they are handed out in turn. Chosen, not
measured.
"""
_MOST_PINNED = 8
"""So many uploaded tensors are kept pinned. Chosen, not measured; a step with more of them pins
some again in each step.
"""
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
    """Why PyTorch's CUDA features, such as a CUDA graph, do not apply to what has run in this
    process; '' if they do.
    """
    # A program that has not imported torch has no step of PyTorch's.
    torch = sys.modules.get("torch")
    if torch is None:
        return no_torch()
    if not torch.cuda.is_available():
        return because("alternative-needs-cuda-device")
    # Another library than PyTorch may have started CUDA in this process.
    if torch.cuda.is_initialized() or has_cuda_context():
        return ""
    return because("step-without-torch-on-cuda")


def capture_graph(step: StepFunction) -> StepFunction:
    """A function that launches a CUDA graph of the whole step. Raises what the step or the capture
    raises.

    The step runs once here, while PyTorch records its launches instead of starting them. Each call
    of the function then launches all of them as one graph.
    """
    import torch

    graph: Any = torch.cuda.CUDAGraph()
    raised_by_step: Exception | None = None
    # The capture raises in two places: in the step, and at its own end.
    try:
        with torch.cuda.graph(graph):
            try:
                result = step()
            except Exception as error:
                raised_by_step = error
                raise
    except Exception as error:
        # If the step raised, the end of the capture raises again, and only says that the capture is
        # invalid. So the error of the step, if there is one, is raised in place of that.
        raise raised_by_step or error from None

    def replay() -> Any:
        graph.replay()
        return result  # the same tensors each time: the graph writes new values into them

    return replay


def _compiled(mode: str, step: StepFunction) -> StepFunction:
    """The step as ``torch.compile`` translates it, which it does in the first call. ``mode``: one
    of the modes of ``torch.compile``, such as ``reduce-overhead``.
    """
    import torch

    def call_step() -> Any:
        return step()

    # A function around the step, since dynamo refuses some callable objects.
    compiled: StepFunction = torch.compile(call_step, mode=mode)
    return compiled


def _not_compiled(mode: str) -> Why:
    """Why ``torch.compile`` in this mode does not apply; '' if it does."""
    if "torch" not in sys.modules:
        return no_torch()
    if mode == "reduce-overhead" and _without_cuda():
        return because("same-as-default-mode-on-cpu")
    return ""


def _without_synchronisations(step: StepFunction) -> StepFunction:
    """The step without its waits for the device: its time shows how much they cost at most.

    A few steps run first, and a tape keeps the values that they read from the device, as ``item()``
    does. Later steps get these old values at once. So the program is wrong, and only its time is of
    use. The methods of tensors stay replaced, but act as before while no step is recorded or
    replayed.
    """
    import torch

    # ``tape.read`` and ``tape.wait`` wrap a method, so that it asks the tape what to do.
    tape = Tape()
    # Every method that may read from the device, then every one that waits for it.
    for name in _READS:
        setattr(torch.Tensor, name, tape.read(getattr(torch.Tensor, name)))
    for owner in (torch.cuda, torch.cuda.Stream, torch.cuda.Event):
        owner.synchronize = tape.wait(owner.synchronize)
    # Later steps get the values of these in turn.
    for _ in range(_RECORDED_STEPS):
        tape.record(step)
    return lambda: tape.replay(step)


class _PinnedTensors:
    """Copies of tensors of the host in pinned memory, from which CUDA uploads without a wait. A
    copy is made again after its tensor was written.
    """

    def __init__(self) -> None:
        self._pinned = functools.lru_cache(_MOST_PINNED)(_pin)

    def of(self, tensor: Any) -> Any:
        """The pinned copy of a tensor; one on the GPU itself."""
        if tensor.is_cuda:
            return tensor
        # PyTorch counts how often a tensor was written; it counts nothing for one of inference.
        version = 0 if tensor.is_inference() else tensor._version
        return self._pinned(tensor, version)


def _pin(tensor: Any, version: int) -> Any:
    """A copy in pinned memory. ``version``: tells a tensor from the same one as it was before."""
    return tensor.pin_memory()


def _pinned(step: StepFunction) -> StepFunction:
    """The step with uploads from pinned memory, ``non_blocking``, so that they do not wait for the
    device. A tensor is pinned again when it is written.

    For this, the three methods of ``torch.Tensor`` that may upload are replaced while it runs.
    """
    import torch

    # Keeps pinned copies of the last uploaded tensors, and copies one again after it was written.
    pinned = _PinnedTensors()

    def from_pinned(method: Callable[..., Any], always_to_gpu: bool) -> Callable[..., Any]:
        """What replaces ``method`` (``to`` or ``cuda``): the same, but it uploads from pinned
        memory. ``always_to_gpu``: its arguments need not name the GPU.
        """

        def upload(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if always_to_gpu or _goes_to("cuda", args, kwargs):
                return method(pinned.of(tensor), *args, **{**kwargs, "non_blocking": True})
            return method(tensor, *args, **kwargs)

        return upload

    def copy_from_pinned(tensor: Any, source: Any, non_blocking: bool = False) -> Any:
        """What replaces ``tensor.copy_(source)``."""
        if tensor.is_cuda:
            return usual_copy(tensor, pinned.of(source), True)
        return usual_copy(tensor, source, non_blocking)

    # The three methods as they are, and what replaces them.
    tensor_class = torch.Tensor
    usual_copy = tensor_class.copy_
    usual_methods = {"to": tensor_class.to, "cuda": tensor_class.cuda, "copy_": usual_copy}
    pinned_methods = {
        "to": from_pinned(tensor_class.to, always_to_gpu=False),
        "cuda": from_pinned(tensor_class.cuda, always_to_gpu=True),
        "copy_": copy_from_pinned,
    }

    def pinned_step() -> Any:
        """Run the step with the replaced methods of tensors."""
        for name, method in pinned_methods.items():
            setattr(tensor_class, name, method)
        try:
            return step()
        finally:  # the step as it is runs in turn in this process, with the usual methods
            for name, method in usual_methods.items():
                setattr(tensor_class, name, method)

    return pinned_step


class Tape:
    """Keeps the values that some steps read from the device, in order (``record``), and gives them
    to later steps in place of reading (``replay``). So a replayed step does not wait for the
    device.
    """

    def __init__(self) -> None:
        # Of each recorded step the values that it read; what is done now; and the values of the
        # step that runs.
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
        # The recorded steps take turns: the one that is used now goes to the end.
        values = self._steps.pop(0)
        self._steps.append(values)
        return self._run("replaying", [*values], step)

    def _run(
        self, mode: Literal["recording", "replaying"], values: list[Any], step: StepFunction
    ) -> Any:
        """Run a step that records its reads in ``values``, or takes them from there, as ``mode``
        says. The replaced methods of tensors (``read``, ``wait``) go by ``_mode`` and ``_values``.
        """
        self._mode = mode
        self._values = values
        # Outside of a step the replaced methods act as usual.
        try:
            return step()
        finally:
            self._mode = "off"

    def read(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """What replaces a ``method`` of tensors that may read from the device: it keeps the value
        while a step is recorded, and gives back a kept one while a step is replayed.
        """

        def reading(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            # A tensor that is on the host already is read without a wait.
            if self._mode == "off" or not tensor.is_cuda:
                return method(tensor, *args, **kwargs)
            if self._mode == "recording":
                # Recording: read, and keep what came from the device.
                value = method(tensor, *args, **kwargs)
                # ``to`` may leave the tensor on the GPU, which reads nothing.
                if not getattr(value, "is_cuda", False):
                    self._values.append(value)
                return value
            # Replaying: ``to`` between devices reads nothing on the host.
            if method.__name__ == "to" and not _goes_to("cpu", args, kwargs):
                return method(tensor, *args, **kwargs)
            # This step reads more often than the recorded one did.
            if not self._values:
                raise ReadsDiffer
            return self._values.pop(0)

        return reading

    def wait(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What replaces a ``function`` that waits for the device: while a step is replayed it does
        nothing and returns None.
        """

        def waiting(*args: Any, **kwargs: Any) -> Any:
            if self._mode == "replaying":
                return None
            return function(*args, **kwargs)

        return waiting


def _goes_to(kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether these arguments of ``Tensor.to`` name a device of this kind, or a tensor there."""
    for argument in [*args, *kwargs.values()]:
        device = getattr(argument, "device", argument)
        if str(device).startswith(kind):
            return True
    return False


def _compile_in(mode: str) -> StepChange:
    """The alternative that compiles the step in this mode of ``torch.compile``."""
    make = functools.partial(_compiled, mode)
    return StepChange(make, functools.partial(_not_compiled, mode), compiles=True)


ALTERNATIVES: dict[str, StepChange] = {
    CUDA_GRAPH: StepChange(capture_graph, _without_cuda, captures=True),
    "torch.compile": _compile_in("default"),
    "torch.compile reduce-overhead": _compile_in("reduce-overhead"),
    PINNED: StepChange(_pinned, _without_cuda),
    UNSYNCHRONISED: StepChange(_without_synchronisations, _without_cuda, "bound"),
}
"""By name, in the order in which they are tried and shown."""
