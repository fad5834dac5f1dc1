"""Chains that decode tokens. Each one is compared with float64 when it opens; tokens are counted on the device."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.lowering.agreement import LogitAgreement, agreement
from overhead.probes._support.cuda.device_time import HeldChain
from overhead.probes.base import Unverified
from overhead.results import Caller, Case, Pattern, Scalar
from overhead.workloads._decode import LOGIT_TOLERANCE, PROMPT, UNIT, decoders, most_tokens

Values = Mapping[str, NDArray[Any]]


def decode_cases(
    pattern: Pattern, params: Mapping[str, Scalar], *, software: bool, callers: Sequence[Caller] = ("binding",)
) -> list[Case]:
    """The cases of one way to decode, for each decoder that the target measures and each caller."""
    return [
        Case(pattern=pattern, caller=caller, unit=UNIT, workload=name, params=dict(params))
        for name in decoders(software=software)
        for caller in callers
    ]


class DecodeChain(HeldChain):
    """A chain whose unit is one token of batch 1. A sample starts after the prompt, from the same token and cache.

    Subclasses put the state on the device and read it by the names of ``FedBackStep``. ``issue`` runs n steps.
    """

    def __init__(self, case: Case) -> None:
        from overhead.workloads._decode_reference import decode_reference, decode_step

        self.case = case
        self.module, self.reference = decode_step(case.workload), decode_reference(case.workload)
        self.max_n = most_tokens(case.workload)
        self.agreement: LogitAgreement | None = None
        self._path: list[tuple[int, NDArray[Any]]] = []
        self._total = self._counted = 0

    @abc.abstractmethod
    def put(self, values: Values) -> None:
        """Write these tensors of the state, and wait until the device has them."""

    @abc.abstractmethod
    def place(self) -> tuple[int, int]:
        """The token and the position in the state, after all issued work. Raises ``Unverified`` after an error."""

    @abc.abstractmethod
    def logits(self) -> NDArray[Any]:
        """The logits of the last step, after all issued work."""

    def verify(self) -> None:
        """Compare the logits of given tokens with float64, then follow the chain's own tokens. Raises ``Unverified``."""
        self.put(self.reference.empty)
        found = []
        for position, token in enumerate(self.reference.tokens):
            self.put({"token": np.array([token]), "position": np.array([position])})
            self._step()
            found.append(self.logits().copy())
        self.agreement = agreement(np.array(found), self.reference.logits, LOGIT_TOLERANCE[self.case.workload])
        if not self.agreement.ok:
            raise Unverified(f"differs from float64: {self.agreement}")
        self.put(self.reference.start)
        self._path = [(self.place()[0], np.zeros(0))]
        for step in range(1, self.max_n + 1):
            self._step()
            token, position = self.place()
            if position != PROMPT + step:
                raise Unverified(f"after {step} tokens the position is {position}, not {PROMPT + step}")
            self._path.append((token, self.logits().copy()))
        self._restart()
        self._total = self.aside = 0

    def _step(self) -> None:
        self.issue(1)
        self.wait()

    def _restart(self) -> None:
        self.put(self.reference.start)
        self._counted = 0

    def _count(self) -> int:
        """Add the tokens since the last count, and return those since the last restart.

        Raises ``Unverified`` if the last token is not that of the first run.
        """
        token, position = self.place()
        steps = position - PROMPT
        if not 0 <= steps <= self.max_n or token != self._path[steps][0]:
            raise Unverified(f"token {token} at position {position} is not the one that the first run gave")
        self._total += steps - self._counted
        self._counted = steps
        return steps

    def prepare(self, n: int) -> None:
        """Count the tokens so far, then restore the token, the position and the cache."""
        self._count()
        self._restart()

    def executed(self) -> int:
        """The tokens since ``open``. Raises ``Unverified`` if the last logits are not those of the first run."""
        steps = self._count()
        if steps:
            off = float(np.abs(self.logits() - self._path[steps][1]).max())
            if not off <= LOGIT_TOLERANCE[self.case.workload]:
                raise Unverified(f"the logits of token {steps} differ by {off:.2g} from those of the first run")
        return self._total - self.aside

    def window(self) -> dict[str, Scalar]:
        checked = {} if self.agreement is None else {"logits": str(self.agreement)[:200]}
        return {"precision": "float32", "batch": 1, "prompt": PROMPT, "slots": self.max_n + PROMPT, **checked}


def verified_decode(chain: DecodeChain) -> DecodeChain:
    """Check the chain and return it. If the check fails, close it and raise ``Unverified``."""
    try:
        chain.verify()
    except BaseException:
        chain.close()
        raise
    return chain
