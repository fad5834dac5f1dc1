"""The whole step, captured once in a CUDA graph and launched as one."""

from __future__ import annotations

from typing import Any, Literal

from overhead.explain.alternatives.base import StepFunction, without_cuda


class CapturedStep:
    """A CUDA graph of the step, by ``torch.cuda.graph``."""

    name = "CUDA graph"
    label: Literal["measured", "bound"] = "measured"
    captures, compiles = True, False

    def why_not(self) -> str:
        return without_cuda()

    def make(self, step: StepFunction) -> StepFunction:
        import torch

        graph: Any = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                result = step()
        except Exception as error:
            # What forbids the capture is raised first. The end of the capture then only says that it is invalid.
            raise error.__context__ or error from None

        def replay() -> Any:
            graph.replay()
            return result

        return replay
