"""The decode step as a lowered program, and a chain that runs one."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.decode.chain import DecodeChain
from overhead.decode.lowering.fusions import FUSIONS, fused
from overhead.decode.lowering.padding import PADDING, padded
from overhead.decode.lowering.program import Program
from overhead.probes.base import Unverified
from overhead.results import Case, Scalar

LOGITS = 1
"""The place of the logits among the outputs of ``FedBackStep``."""


@functools.cache
def lowered_step(name: str, fusions: int, padding: int, batch: int = 1) -> Program:
    """The program of one step with the first ``fusions`` fusions and ``padding`` more dispatches."""
    from overhead.decode.lowering.torch_export import lower
    from overhead.decode.reference import batched_step

    if padding:
        return padded(lowered_step(name, fusions, 0, batch), padding)
    if fusions:
        return fused(lowered_step(name, fusions - 1, 0, batch), [tuple(FUSIONS)[fusions - 1]])
    return lower(batched_step(name, batch), fusions=())


class LoweredDecode(DecodeChain):
    """A chain that runs the program of the case.

    ``fusions``: how many fusions the program has, in their order. ``padding``: trivial dispatches added to each token.
    """

    language: str

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.padding = int(case.params.get("padding", 0))
        self.lowered = lowered_step(case.workload, int(case.params["fusions"]), self.padding, self.batch)

    def initial_values(self) -> dict[str, NDArray[Any]]:
        """The contents of weights and state, by name. The weights are not copied."""
        named = dict(self.module.named_parameters(remove_duplicate=False)) | dict(self.module.named_buffers())
        return {name: tensor.detach().numpy() for name, tensor in named.items()}

    def state_values(self, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """These values with the counter of added dispatches, at 0 if there is one."""
        return {**values, **({PADDING: np.zeros(1)} if self.padding else {})}

    def numbers(self, name: str) -> NDArray[Any]:
        """The numbers of a buffer, after all issued work."""
        raise NotImplementedError

    def place(self) -> tuple[tuple[int, ...], int]:
        return tuple(self.numbers("token").tolist()), int(self.numbers("position")[0])

    def dispatches_of_a_token(self) -> int:
        """The dispatches that one token hands to the API, counted there. Runs one token."""
        raise NotImplementedError

    def verify(self) -> None:
        super().verify()
        found, expected = self.dispatches_of_a_token(), len(self.lowered.dispatches)
        if found != expected:
            raise Unverified(f"a token of {expected} dispatches made {found} calls that dispatch")
        self.restart()

    def count(self) -> int:
        steps = super().count()
        if self.padding and (found := int(self.numbers(PADDING)[0])) != steps * self.padding:
            raise Unverified(f"{steps} tokens ran {found} of {steps * self.padding} added dispatches")
        return steps

    def kernels(self) -> dict[str, str]:
        from overhead.workloads.sources import sha256_of

        texts = self.lowered.cuda if self.language == "cuda" else "".join(k.wgsl for k in self.lowered.kernels.values())
        return {f"{self.case.workload}.{self.language}": sha256_of(texts)}

    def window(self) -> dict[str, Scalar]:
        return {
            **super().window(),
            "language": self.language,
            "dispatches": len(self.lowered.dispatches),
            "kernels": len(self.lowered.kernels),
            "weights": self.lowered.bytes("weight"),
        }
