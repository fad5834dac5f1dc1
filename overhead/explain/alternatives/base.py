"""What an alternative to a step is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal, Protocol

from overhead.explain.waits import has_cuda_context

StepFunction = Callable[[], Any]
NO_TORCH = "the step does not use PyTorch"


class StepChange(Protocol):
    """Another way to run the same step.

    ``label``: ``measured`` if it computes the same, ``bound`` if it leaves out something that the program needs.
    ``captures``: it records the step once, so that Python values that change from step to step would stay as they were.
    ``compiles``: it translates the step first, which may take minutes.
    """

    name: str
    label: Literal["measured", "bound"]
    captures: bool
    compiles: bool

    def why_not(self) -> str:
        """Why it does not apply to a step that has run in this process; empty if it does."""
        ...

    def make(self, step: StepFunction) -> StepFunction:
        """The step in the other way. It may run ``step`` if that leaves no trace. Raises what forbids it."""
        ...


def without_cuda() -> str:
    """Why PyTorch's CUDA features do not apply to what runs in this process; empty if they do."""
    torch = sys.modules.get("torch")
    if torch is None:
        return NO_TORCH
    if not torch.cuda.is_available():
        return "no CUDA device"
    return "" if torch.cuda.is_initialized() or has_cuda_context() else "the step does not use PyTorch on CUDA"
