"""The decode step as a lowered program, and a chain that runs one."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.decode.chain import DecodeChain, DecodeProgress
from overhead.decode.lowering.buffers import Buffer, TensorView, as_tensor, packed_view
from overhead.decode.lowering.fusions import FUSIONS, apply_fusions
from overhead.decode.lowering.kernel import Kernel
from overhead.decode.lowering.operation import Operation
from overhead.decode.lowering.program import Program
from overhead.probes.base import Unverified
from overhead.results import Case, Scalar, because

LOGITS = 1
"""The place of the logits among the outputs of ``FedBackStep``."""
PADDING = "padding"
"""The state that counts the added dispatches."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pad(Operation):
    """A dispatch that does next to nothing, for padding: it adds 1 to ``counter``, which tells
    afterwards how many of them ran. It also rewrites one number of ``after``, what the dispatch
    before it wrote, so that it must run after that one.
    """

    label = "pad"
    written = ("counter", "after")
    counter: TensorView
    after: TensorView

    @property
    def reads(self) -> tuple[TensorView, ...]:
        """What it writes: it reads each number before it writes it."""
        return self.writes

    def kernel(self) -> Kernel:
        """The kernel: one thread adds 1 to the counter and rewrites the number of ``after``."""
        counter = self.flat_element(self.counter, "0u")
        number = self.flat_element(self.after, "0u")
        body = f"if (lane == 0u) {{\n  {counter} = {counter} + 1;\n  {number} = {number};\n}}"
        return self.compose(body, groups=1)


def with_padding(program: Program, count: int) -> Program:
    """The program with ``count`` trivial dispatches more, spread evenly among its own. Each depends
    on the dispatch before it, so none can overlap with another.

    The time that each of them adds to a token is the cost of a dispatch in a real program.
    """
    counter = packed_view(PADDING, "i32", (1,))
    total = len(program.operations)
    operations: list[Operation] = []
    added = 0
    for done, operation in enumerate(program.operations, start=1):
        operations.append(operation)
        # After a third of the operations a third of the padding is there, and so on. A ``Pad``
        # adds 1 to the counter and rewrites one number of what the operation before it wrote.
        while added < count * done // total:
            operations.append(Pad(counter=counter, after=operation.writes[0], place=PADDING))
            added += 1
    # State, so the number stays from step to step, and can be read and set back.
    buffers = {**program.buffers, PADDING: Buffer(PADDING, "i32", 1, "state")}
    return dataclasses.replace(program, buffers=buffers).with_operations(tuple(operations))


@functools.cache
def lowered_step(name: str, fusions: int, padding: int, batch: int = 1) -> Program:
    """The program (a list of dispatches) of one decode step of the decoder with this name.

    ``fusions``: how many of the kernel fusions are applied, from the first on. ``padding``: how
    many trivial dispatches are added. ``batch``: how many sequences a step computes. Each program
    is made from the cached one with one change less, so that a process exports each decoder from
    PyTorch once.
    """
    from overhead.decode.lowering.torch_export import lower
    from overhead.decode.reference import batched_step

    if padding:
        return with_padding(lowered_step(name, fusions, 0, batch), padding)
    if fusions:
        last_fusion = tuple(FUSIONS)[fusions - 1]
        return apply_fusions(lowered_step(name, fusions - 1, 0, batch), [last_fusion])
    return lower(batched_step(name, batch), fusions=())


class LoweredDecode(DecodeChain):
    """A chain whose decode step is a lowered program (``lowered``): a list of dispatches made from
    the PyTorch module, with kernels in WGSL and CUDA C. Subclasses run it on a device.

    ``language``: ``wgsl`` or ``cuda``. ``padding``: how many trivial dispatches are added to each
    token.
    """

    language: str

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.padding = int(case.params.get("padding", 0))
        fusions = int(case.params["fusions"])
        self.lowered = lowered_step(case.workload, fusions, self.padding, self.batch)

    def initial_values(self) -> dict[str, NDArray[Any]]:
        """The first contents of the buffers for weights and state, by name. The weights are not
        copied.
        """
        tensors = dict(self.module.named_parameters(remove_duplicate=False))
        tensors.update(self.module.named_buffers())
        return {name: tensor.detach().numpy() for name, tensor in tensors.items()}

    def with_padding_counter(self, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """These values of the state; in a program with padding also its counter of added
        dispatches, at 0, so that it counts those since this write.
        """
        if not self.padding:
            return dict(values)
        return {**values, PADDING: np.zeros(1)}

    def read_numbers(self, name: str) -> NDArray[Any]:
        """The numbers of a buffer, after all issued work."""
        raise NotImplementedError

    def logits(self) -> NDArray[Any]:
        """The logits of the last step, of shape (batch, vocabulary), after all issued work."""
        view = self.lowered.outputs[LOGITS]
        return as_tensor(self.read_numbers(view.buffer), view)

    def progress(self) -> DecodeProgress:
        """The tokens and the position in the state, after all issued work."""
        tokens = tuple(self.read_numbers("token").tolist())
        return DecodeProgress(tokens, int(self.read_numbers("position")[0]))

    def count_tokens(self) -> int:
        """The steps since the last restore, as in ``DecodeChain``. Raises ``Unverified`` also if
        the padding, the trivial dispatches added to each token, did not run once for each step.
        """
        steps = super().count_tokens()
        if self.padding:
            ran = int(self.read_numbers(PADDING)[0])
            expected = steps * self.padding
            if ran != expected:
                raise Unverified(
                    because("padding-not-run", tokens=steps, found=ran, expected=expected)
                )
        return steps

    def kernels(self) -> dict[str, str]:
        """A digest of the source text of all kernels, for the record: it tells runs with other
        kernels apart. The key names the workload and the language.
        """
        from overhead.workloads.sources import sha256_of

        if self.language == "cuda":
            text = self.lowered.cuda
        else:
            text = "".join(kernel.wgsl for kernel in self.lowered.kernels.values())
        return {f"{self.case.workload}.{self.language}": sha256_of(text)}

    def window(self) -> dict[str, Scalar]:
        """Facts for the record on what was timed: those of the base class, the language, and the
        numbers of dispatches, kernels and bytes of weights.
        """
        return {
            **super().window(),
            "language": self.language,
            "dispatches": len(self.lowered.dispatches),
            "kernels": len(self.lowered.kernels),
            "weights": self.lowered.bytes("weight"),
        }
