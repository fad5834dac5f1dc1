"""The operations that ``main.py agreement`` measures: torch's addition and the LCG step."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, Literal

TORCH_ADD = "torch x.add_(1)"
LCG_STEP = "LCG step"
GRAPH_NODES = 100
"""Number of nodes of the graphs that are launched as a whole."""
TORCH_ADD_GRAPH = f"{TORCH_ADD}, graph of {GRAPH_NODES}"
LCG_STEP_GRAPH = f"{LCG_STEP}, graph of {GRAPH_NODES}"


def words(mode: Literal["inference", "no_grad"]) -> Any:
    """256 int32 on the device, in inference mode like in our eager chain, or with ``no_grad`` for
    graph capture.
    """
    import torch

    from overhead.probes.torch.bodies import set_autograd_mode

    set_autograd_mode(mode)
    return torch.zeros(256, dtype=torch.int32, device="cuda")


def adding() -> Callable[[], object]:
    """A function that makes one addition in place."""
    return functools.partial(words("no_grad").add_, 1)


def stepping() -> tuple[Callable[[int], object], Any]:
    """A function that launches the step on a stream, and the session that must be closed
    afterwards.

    Each launch uses the next set of words.
    """
    from overhead.probes.cuda.api import driver
    from overhead.probes.cuda.graphs import PLACES
    from overhead.probes.cuda.launch import LAUNCH_DIMENSIONS
    from overhead.probes.cuda.session import CudaSession, step_arguments

    session = CudaSession(driver(), 0, own_stream=False, places=PLACES)
    function = session.kernel("step.cu", "step1")
    arguments_of_places = [step_arguments(session, place) for place in range(PLACES)]
    arguments = itertools.cycle(arguments_of_places)
    call = session.driver.call

    def launch(stream: int) -> object:
        return call(
            "cuLaunchKernel", function, *LAUNCH_DIMENSIONS, stream, next(arguments).address, None
        )

    return launch, session
