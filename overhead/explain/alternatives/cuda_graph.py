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
        raised: Exception | None = None
        try:
            with torch.cuda.graph(graph):
                try:
                    result = step()
                except Exception as error:
                    raised = error
                    raise
        except Exception as error:
            # If the step raised, the end of the capture raises again, and only says that the capture is invalid.
            raise raised or error from None

        def replay() -> Any:
            graph.replay()
            return result

        return replay
