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
    """Adds 1 to ``counter``, and rewrites one number of ``after``, so that it depends on the
    operation before it.
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
        counter = self.flat(self.counter, "0u")
        number = self.flat(self.after, "0u")
        body = f"if (lane == 0u) {{\n  {counter} = {counter} + 1;\n  {number} = {number};\n}}"
        return self.compose(body, groups=1)


def with_padding(program: Program, count: int) -> Program:
    """The program with ``count`` more dispatches, spread evenly. Each depends on the dispatch
    before it.

    The time that each of them adds to a token is the cost of a dispatch in a real program.
    """
    counter = packed_view(PADDING, "i32", (1,))
    total = len(program.operations)
    operations: list[Operation] = []
    added = 0
    for done, operation in enumerate(program.operations, start=1):
        operations.append(operation)
        while added < count * done // total:
            operations.append(Pad(counter=counter, after=operation.writes[0], place=PADDING))
            added += 1
    buffers = {**program.buffers, PADDING: Buffer(PADDING, "i32", 1, "state")}
    return dataclasses.replace(program, buffers=buffers).with_operations(tuple(operations))


@functools.cache
def lowered_step(name: str, fusions: int, padding: int, batch: int = 1) -> Program:
    """The program of one step of this decoder with the first ``fusions`` fusions and ``padding``
    added dispatches.

    Each program is made from the cached one with one change less, so that a process exports each
    decoder once.
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
    """A chain that runs the program of the case.

    ``fusions``: how many fusions the program has, in their order. ``padding``: trivial dispatches
    added to each token.
    """

    language: str

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.padding = int(case.params.get("padding", 0))
        fusions = int(case.params["fusions"])
        self.lowered = lowered_step(case.workload, fusions, self.padding, self.batch)

    def initial_values(self) -> dict[str, NDArray[Any]]:
        """The contents of weights and state, by name. The weights are not copied."""
        tensors = dict(self.module.named_parameters(remove_duplicate=False))
        tensors.update(self.module.named_buffers())
        return {name: tensor.detach().numpy() for name, tensor in tensors.items()}

    def with_padding_counter(self, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """These values with the counter of added dispatches, at 0 if there is one."""
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
        """As in ``DecodeChain``; also raise ``Unverified`` unless all added dispatches ran."""
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
        """A digest of the source text of all kernels, by the workload and the language."""
        from overhead.workloads.sources import sha256_of

        if self.language == "cuda":
            text = self.lowered.cuda
        else:
            text = "".join(kernel.wgsl for kernel in self.lowered.kernels.values())
        return {f"{self.case.workload}.{self.language}": sha256_of(text)}

    def window(self) -> dict[str, Scalar]:
        """What was timed, with the language, dispatches, kernels and the bytes of the weights."""
        return {
            **super().window(),
            "language": self.language,
            "dispatches": len(self.lowered.dispatches),
            "kernels": len(self.lowered.kernels),
            "weights": self.lowered.bytes("weight"),
        }
