"""The step translated by ``torch.compile``."""

from __future__ import annotations

import sys
from typing import Literal

from overhead.explain.alternatives.base import NO_TORCH, StepFunction, without_cuda


class CompiledStep:
    """``torch.compile(step, mode=mode)``."""

    label: Literal["measured", "bound"] = "measured"
    captures, compiles = False, True

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.name = "torch.compile" if mode == "default" else f"torch.compile {mode}"

    def why_not(self) -> str:
        if "torch" not in sys.modules:
            return NO_TORCH
        if self.mode == "reduce-overhead" and without_cuda():
            return "on the CPU it is the same as the default mode"
        return ""

    def make(self, step: StepFunction) -> StepFunction:
        import torch

        compiled: StepFunction = torch.compile(lambda: step(), mode=self.mode)  # dynamo refuses some callable objects
        return compiled
