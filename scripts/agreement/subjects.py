"""What the tools of ``bench.py agreement`` launch: torch's addition and the LCG step, one at a time."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, Literal

ADD, STEP = "torch x.add_(1)", "LCG step"
NODES = 100
"""Steps in the graphs that are launched whole."""
ADD_GRAPH, STEP_GRAPH = f"{ADD}, graph of {NODES}", f"{STEP}, graph of {NODES}"


def words(mode: Literal["inference", "no_grad"]) -> Any:
    """256 int32 on the device; inference mode as our eager chain has it, the other where a graph captures them."""
    import torch

    from overhead.probes._support.torch.bodies import set_autograd_mode

    set_autograd_mode(mode)
    return torch.zeros(256, dtype=torch.int32, device="cuda")


def adding() -> Callable[[], object]:
    """One addition in place."""
    return functools.partial(words("no_grad").add_, 1)


def stepping() -> tuple[Callable[[int], object], Any]:
    """Launch the step on a stream, each time on the next of our graphs' sets of words; and what must be closed."""
    from overhead.probes._support.cuda.api import driver
    from overhead.probes._support.cuda.graphs import PLACES
    from overhead.probes._support.cuda.launch import GRID
    from overhead.probes._support.cuda.session import CudaSession, step_arguments

    session = CudaSession(driver(), 0, own_stream=False, places=PLACES)
    function, turn = session.kernel("step.cu", "step1"), [step_arguments(session, 1, place) for place in range(PLACES)]
    call, arguments = session.driver.call, itertools.cycle(turn)

    def launch(stream: int) -> object:
        return call("cuLaunchKernel", function, *GRID, stream, next(arguments).address, None)

    return launch, session
