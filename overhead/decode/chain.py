"""Chains that decode tokens. Each one is compared with float64 when it opens; tokens are counted on
the device.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.decode.decoders import LOGIT_TOLERANCE, MOST_TOKENS, PROMPT, SHAPES
from overhead.probes.base import Unsupported, Unverified, whole_units
from overhead.probes.held_chain import HeldChain
from overhead.results import Case, Scalar, because

StateValues = Mapping[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class LogitAgreement:
    """The comparison of logits of shape (steps, batch, vocabulary). ``ok``: within the tolerance,
    no token differs.

    ``largest``: the largest difference. ``wrong_tokens``: steps where the largest logit of a row is
    another one although the reference's two largest differ by more than twice the tolerance.
    ``ties``: steps where they differ by less.
    """

    tolerance: float
    largest: float
    wrong_tokens: tuple[int, ...]
    ties: tuple[int, ...]

    @property
    def ok(self) -> bool:
        """True if no logit differs by more than the tolerance and no step has a wrong token."""
        return self.largest <= self.tolerance and not self.wrong_tokens

    def __str__(self) -> str:
        text = f"largest difference {self.largest:.2e}, allowed {self.tolerance:.2e}"
        if self.wrong_tokens:
            text += f"; another token in steps {', '.join(map(str, self.wrong_tokens))}"
        if self.ties:
            text += f"; tokens too close to compare in steps {', '.join(map(str, self.ties))}"
        return text


def compare_logits(
    found: NDArray[Any], reference: NDArray[Any], tolerance: float
) -> LogitAgreement:
    """The comparison. A logit that is not a number counts as an infinite difference."""
    differences = np.abs(np.asarray(found, np.float64) - reference)
    largest = float("inf") if not np.isfinite(differences).all() else float(differences.max())
    top = np.partition(reference, -2, axis=-1)[..., -2:]
    close = top[..., 1] - top[..., 0] <= 2 * tolerance
    other = found.argmax(axis=-1) != reference.argmax(axis=-1)
    wrong, ties = (
        tuple(np.flatnonzero(rows.any(axis=-1)).tolist()) for rows in (other & ~close, close)
    )
    return LogitAgreement(tolerance, largest, wrong, ties)


class DecodeChain(HeldChain):
    """A chain of decode steps. A sample starts after the prompt, from the same tokens and cache.

    A step makes one token of each of ``batch`` sequences. Subclasses put the state on the device
    and read it by the names of ``FedBackStep``. With the pattern ``read-each`` a unit is ``tokens``
    steps and then a read of what ``readback`` names, the last token or all logits.
    """

    tolerance: float = LOGIT_TOLERANCE
    """Largest allowed difference of a logit."""

    def __init__(self, case: Case) -> None:
        from overhead.decode.reference import batched_step, decode_reference

        self.case, self.batch = case, int(case.params.get("batch", 1))
        self.module = batched_step(case.workload, self.batch)
        self.reference = decode_reference(case.workload, self.batch)
        self.tokens = int(case.params.get("tokens", 1))
        self.max_n = MOST_TOKENS // self.tokens
        self.latency = case.pattern == "read-each"
        self.reads_logits = case.params.get("readback") == "logits"
        self.agreement: LogitAgreement | None = None
        self._path: list[tuple[tuple[int, ...], NDArray[Any]]] = []
        self.total = self._counted = 0

    @abc.abstractmethod
    def run_steps(self, steps: int) -> None:
        """Issue this many decode steps."""

    def read_back(self) -> object:
        """Read what the parameter ``readback`` names, after all issued work."""
        raise Unsupported(because("no-such-pattern", pattern=self.case.pattern))

    def issue(self, n: int) -> None:
        """Issue n units. With the pattern ``read-each`` each one ends with a read."""
        if not self.latency:
            self.run_steps(n)
            return
        run, tokens, read = self.run_steps, self.tokens, self.read_back
        for _ in repeat(None, n):
            run(tokens)
            read()

    @abc.abstractmethod
    def write_state(self, values: StateValues) -> None:
        """Write these tensors of the state, and wait until the device has them."""

    @abc.abstractmethod
    def tokens_and_position(self) -> tuple[tuple[int, ...], int]:
        """The tokens and the position in the state, after all issued work. Raises ``Unverified``
        after an error.
        """

    @abc.abstractmethod
    def logits(self) -> NDArray[Any]:
        """The logits of the last step, of shape (batch, vocabulary), after all issued work."""

    def verify(self) -> None:
        """Compare the logits of given tokens with float64, then follow the chain's own. Raises
        ``Unverified``.
        """
        self.write_state(self.reference.empty)
        found = []
        for position, token in enumerate(self.reference.tokens):
            self.write_state({"token": token, "position": np.array([position])})
            self._step()
            found.append(self.logits().copy())
        self.agreement = compare_logits(np.array(found), self.reference.logits, self.tolerance)
        if not self.agreement.ok:
            raise Unverified(because("differs-from-float64", agreement=self.agreement))
        self.write_state(self.reference.after_prompt)
        self._path = [(self.tokens_and_position()[0], np.zeros(0))]
        for step in range(1, MOST_TOKENS + 1):
            self._step()
            token, position = self.tokens_and_position()
            if position != PROMPT + step:
                raise Unverified(
                    because(
                        "position-wrong", tokens=step, position=position, expected=PROMPT + step
                    )
                )
            self._path.append((token, self._compared(self.logits())))
        self.restore_start()
        self.total = self.aside = 0

    def _compared(self, logits: NDArray[Any]) -> NDArray[Any]:
        """All logits of one sequence. Of a batch only the largest of each sequence, because all
        take 39 MB.
        """
        return logits.copy() if self.batch == 1 else logits.max(axis=-1)

    def _step(self) -> None:
        self.run_steps(1)
        self.wait()

    def restore_start(self) -> None:
        """Restore the state after the prompt, and forget the tokens that were not counted.

        Of a batch only the tokens and the position are restored: its cache takes up to 235 MB, and
        a step hides all later rows of it until they are written again.
        """
        start = self.reference.after_prompt
        self.write_state(
            start if self.batch == 1 else {name: start[name] for name in ("token", "position")}
        )
        self._counted = 0

    def count_tokens(self) -> int:
        """Add new steps to ``total``; return those since the last restore. Raises ``Unverified`` at
        a wrong token.
        """
        tokens, position = self.tokens_and_position()
        steps = position - PROMPT
        if not 0 <= steps < len(self._path) or tokens != self._path[steps][0]:
            raise Unverified(because("token-differs", position=position))
        self.total += steps - self._counted
        self._counted = steps
        return steps

    def prepare(self, n: int) -> None:
        """Count the tokens so far, then restore the token, the position and the cache."""
        self.count_tokens()
        self.restore_start()

    def executed(self) -> int:
        """The tokens since ``open``. Raises ``Unverified`` if the last logits are not those of the
        first run.
        """
        steps = self.count_tokens()
        if steps:
            off = float(np.abs(self._compared(self.logits()) - self._path[steps][1]).max())
            if not off <= self.tolerance:
                raise Unverified(because("logits-differ", token=steps, difference=off))
        return whole_units(self.total, self.tokens) - self.aside

    def window(self) -> dict[str, Scalar]:
        """Facts on what was timed: the precision, the sizes, and the result of the comparison with
        float64.
        """
        slots = SHAPES[self.case.workload].slots
        checked = {} if self.agreement is None else {"logits": str(self.agreement)[:200]}
        held: dict[str, Scalar] = {
            "precision": "float32",
            "batch": self.batch,
            "prompt": PROMPT,
            "slots": slots,
        }
        if self.tokens > 1:
            held["prefill"] = f"{self.tokens} decode steps, one after another"
        return {**held, **checked}
