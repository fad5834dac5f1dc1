"""The decode workload in torch: eager, a CUDA graph of the eager step, and the compiled step."""

from __future__ import annotations

import copy
import functools
from itertools import repeat
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._python_dispatch import TorchDispatchMode

from overhead.decode.chain import DecodeChain, DecodeProgress, StateValues
from overhead.probes.base import Unsupported
from overhead.probes.common.loops import Action, repeated
from overhead.probes.torch.bodies import set_autograd_mode
from overhead.probes.torch.chains import TorchChain, select_device
from overhead.probes.torch.compiled import WARM_STEPS, graph_required, mark_static
from overhead.probes.torch.devices import TORCH_WAITS, wait_action
from overhead.probes.torch.graphs import capture_timed
from overhead.probes.workload_chain import verified
from overhead.results import Case, Scalar, because


def open_case(device: str, case: Case) -> DecodeChain:
    """A chain that decodes with torch on this device, such as ``cuda:0``, and that was compared
    with float64.

    The parameters of the case choose the step: with ``maker`` it is a CUDA graph, with ``mode`` it
    is compiled by ``torch.compile``, else it is eager.
    """
    kind = TorchDecode
    if "maker" in case.params:
        kind = TorchGraphDecode
    elif "mode" in case.params:
        kind = CompiledDecode
    return verified(kind(device, case))


class TorchDecode(TorchChain, DecodeChain):
    """A chain of eager steps, in which torch launches each operation by itself. Its decode step is
    ``step``; ``call`` runs it, here as it is. All chains of a device share the weights, and each
    has a state of its own.
    """

    def __init__(self, device: str, case: Case) -> None:
        """Copy the step to the device, and count the operations that it takes."""
        super().__init__(case)
        set_autograd_mode("no_grad")
        place = select_device(device)
        # Both are facts of the record (``window``): an operation on the CPU runs in this thread
        # alone, and products are computed in full float32, as the comparison with float64 needs.
        torch.set_num_threads(1)
        torch.backends.cuda.matmul.allow_tf32 = False
        # A deep copy takes the parameters, which are on the device already, from this dictionary
        # instead of copying those on the CPU.
        parameters = dict(_shared_parameters(case.workload, device))
        self.step = copy.deepcopy(self.module, parameters).to(device)
        # The step keeps token, position and cache in its buffers.
        self._state = dict(self.step.named_buffers())
        # The first kind of wait is the usual one; a CPU needs none.
        self._wait_name = next(iter(TORCH_WAITS[place.type]), "none")
        self.use_device(place, wait_action(place, self._wait_name))
        # A read after each unit waits for the device, so units cannot overlap.
        if self.latency:
            self.overlap = "serial"
        self.call: Action = self.step
        # The tokens and logits of the last step.
        self.output: Any = None
        self.work: dict[str, Scalar] = {"operations": _operations(self.step)}

    def write_state(self, values: StateValues) -> None:
        """Copy these tensors of the state to the device, and wait for them."""
        for name, array in values.items():
            self._state[name].copy_(torch.from_numpy(np.asarray(array)))
        self._wait()

    def progress(self) -> DecodeProgress:
        """The tokens and the position, read from the device after all issued work."""
        tokens = tuple(self._state["token"].tolist())
        return DecodeProgress(tokens, int(self._state["position"]))

    def logits(self) -> NDArray[Any]:
        """The logits of the last step, copied to the host: (batch, vocabulary)."""
        _, logits = self.output
        on_host: NDArray[Any] = logits.cpu().numpy()
        return on_host

    def prepare(self, n: int) -> None:
        """Restore the state after the prompt, with gradients off in this thread."""
        set_autograd_mode("no_grad")
        super().prepare(n)

    def run_steps(self, steps: int) -> None:
        """Call the step once per token."""
        call = self.call
        for _ in repeat(None, steps):
            self.output = call()

    def read_back(self) -> object:
        """Copy all logits or the last token to the host."""
        return self.output[1].cpu() if self.reads_logits else int(self._state["token"])

    def window(self) -> dict[str, Scalar]:
        """Facts for the record on what was timed: those of the base classes, the settings of torch,
        the kind of wait and the number of operations.
        """
        return {
            **super().window(),
            "entry": "python",
            "autograd": "no_grad",
            "threads": 1,
            "tf32": False,
            "wait": self._wait_name,
            **self.work,
        }


class CompiledDecode(TorchDecode):
    """A chain of calls of the step that ``torch.compile`` has compiled."""

    def __init__(self, device: str, case: Case) -> None:
        """Compile the step by calling it. Raises ``Unsupported`` if the mode ``reduce-overhead``
        makes no CUDA graph of it.
        """
        super().__init__(device, case)
        self._mode = str(case.params["mode"])
        # The compiled step runs kernels that are not the operations of the eager step, so the
        # record gets no number of operations.
        self.work = {}
        # Else a CUDA graph would copy the tensors of the state at every call.
        mark_static(self._state.values())
        # ``fullgraph``: an error if it cannot be one program; ``dynamic``: for these shapes alone.
        self.call = torch.compile(self.step, mode=self._mode, fullgraph=True, dynamic=False)
        self.write_state(self.reference.after_prompt)
        # ``WARM_STEPS``: the first call compiles, and torch captures its graph at the third or
        # later.
        with graph_required(self._mode):
            self.run_steps(WARM_STEPS)
            self._wait()

    def window(self) -> dict[str, Scalar]:
        """What was timed, with the mode of ``torch.compile``."""
        return {**super().window(), "mode": self._mode}


class TorchGraphDecode(TorchDecode):
    """A chain of launches of a CUDA graph, which holds all launches of one eager step."""

    launches = 4

    def __init__(self, device: str, case: Case) -> None:
        """Capture an eager step as a graph. Raises ``Unsupported`` on a device without CUDA."""
        super().__init__(device, case)
        if self.torch_device.type != "cuda":
            raise Unsupported(because("graphs-are-of-cuda"))
        self._graph = torch.cuda.CUDAGraph()
        self.write_state(self.reference.after_prompt)
        # The driver loads a kernel at its first launch, which is not allowed during a capture. So
        # the step runs before, by ``super()``: this class has a graph to launch only afterwards.
        super().run_steps(2)
        eager_step = functools.partial(super().run_steps, 1)
        # The time that the capture takes, which this returns, is not used here.
        capture_timed(self._graph, torch.cuda.Stream(), eager_step)
        self._replay = repeated(self._graph.replay)

    def run_steps(self, steps: int) -> None:
        """Launch the graph once per token; returns before they are done."""
        self._replay(steps)

    def window(self) -> dict[str, Scalar]:
        """What was timed; the graph was recorded before."""
        return {**super().window(), "call": "CUDAGraph.replay", "recording": "outside"}

    def close(self) -> None:
        """Release the graph."""
        self._graph.reset()


@functools.cache
def _shared_parameters(name: str, device: str) -> dict[int, Any]:
    """The weights of a decoder, copied to the device. They are by the identity of the weights on
    the CPU, as ``copy.deepcopy`` takes them: it then uses these in place of new copies.

    The cache keeps them, so that all chains of a process have the weights on the device once.
    """
    from overhead.decode.reference import decode_step

    on_device = {}
    for parameter in decode_step(name).parameters():
        copied = parameter.detach().to(device)
        on_device[id(parameter)] = torch.nn.Parameter(copied, requires_grad=False)
    return on_device


class _OperationCount(TorchDispatchMode):  # type: ignore[misc]
    """While its ``with`` block runs, counts the operations of torch that compute something. Views
    (other shapes of the same memory) launch nothing, so they do not count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if not function.is_view:
            self.operations += 1
        return function(*args, **(kwargs or {}))


def _operations(step: Any) -> int:
    """The operations of one step that torch dispatches and that are no views."""
    with _OperationCount() as count:
        step()
    return count.operations
