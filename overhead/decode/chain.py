"""Chains that decode tokens. Each one is compared with float64 when it opens; tokens are counted on
the device.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from itertools import repeat
from typing import Any, NamedTuple

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
            steps = ", ".join(map(str, self.wrong_tokens))
            text += f"; another token in steps {steps}"
        if self.ties:
            steps = ", ".join(map(str, self.ties))
            text += f"; tokens too close to compare in steps {steps}"
        return text


def compare_logits(
    computed: NDArray[Any], reference: NDArray[Any], tolerance: float
) -> LogitAgreement:
    """The comparison of what a chain computed with the reference, both of shape (steps, batch,
    vocabulary). A logit that is not a number counts as an infinite difference.
    """
    differences = np.abs(np.asarray(computed, np.float64) - reference)
    largest = float("inf")
    if np.isfinite(differences).all():
        largest = float(differences.max())

    # Two logits that are each off by the tolerance may change places within twice the tolerance.
    two_largest = np.partition(reference, -2, axis=-1)[..., -2:]
    is_tie = two_largest[..., 1] - two_largest[..., 0] <= 2 * tolerance
    is_other_token = computed.argmax(axis=-1) != reference.argmax(axis=-1)
    wrong_tokens = _steps_with_any(is_other_token & ~is_tie)
    return LogitAgreement(tolerance, largest, wrong_tokens, ties=_steps_with_any(is_tie))


def _steps_with_any(is_true: NDArray[Any]) -> tuple[int, ...]:
    """The numbers of the steps in which this holds for a sequence; ``is_true``: (steps, batch)."""
    return tuple(np.flatnonzero(is_true.any(axis=-1)).tolist())


class DecodeProgress(NamedTuple):
    """How far a chain has decoded: the last token of each sequence, and the next position."""

    tokens: tuple[int, ...]
    position: int


class _ExpectedStep(NamedTuple):
    """What the first run had after a step: its tokens, and what is compared of its logits."""

    tokens: tuple[int, ...]
    logits: NDArray[Any]


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

        self.case = case
        self.batch = int(case.params.get("batch", 1))
        self.module = batched_step(case.workload, self.batch)
        self.reference = decode_reference(case.workload, self.batch)
        self.tokens = int(case.params.get("tokens", 1))
        self.max_n = MOST_TOKENS // self.tokens
        self.latency = case.pattern == "read-each"
        self.reads_logits = case.params.get("readback") == "logits"
        self.agreement: LogitAgreement | None = None
        # By the number of steps since the prompt; ``verify`` fills it.
        self._first_run: list[_ExpectedStep] = []
        # Steps since ``open``; and how many of those since the last restore are among them.
        self.total = 0
        self._counted = 0

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
    def progress(self) -> DecodeProgress:
        """The tokens and the position in the state, after all issued work. Raises ``Unverified``
        after an error.
        """

    @abc.abstractmethod
    def logits(self) -> NDArray[Any]:
        """The logits of the last step, of shape (batch, vocabulary), after all issued work."""

    def verify(self) -> None:
        """Check that the chain decodes, before it is timed; and note what each later run must give.

        First the logits of given tokens are compared with float64. Then the chain follows its own
        tokens from the prompt on. Raises ``Unverified``.
        """
        self._compare_given_tokens()
        self._note_first_run()
        self.restore_start()
        self.total = self.aside = 0

    def _compare_given_tokens(self) -> None:
        """Compare the logits of the reference's tokens with float64. Raises ``Unverified``."""
        self.write_state(self.reference.empty)
        logits = []
        for position, token in enumerate(self.reference.tokens):
            self.write_state({"token": token, "position": np.array([position])})
            self._step()
            # A copy, because the next step may write into the same memory.
            logits.append(self.logits().copy())
        self.agreement = compare_logits(np.array(logits), self.reference.logits, self.tolerance)
        if not self.agreement.ok:
            raise Unverified(because("differs-from-float64", agreement=self.agreement))

    def _note_first_run(self) -> None:
        """Note the tokens and logits of each step after the prompt. Raises ``Unverified`` if the
        position does not grow by one with each step.
        """
        self.write_state(self.reference.after_prompt)
        no_logits = np.zeros(0)
        self._first_run = [_ExpectedStep(self.progress().tokens, no_logits)]
        for step in range(1, MOST_TOKENS + 1):
            self._step()
            tokens, position = self.progress()
            expected = PROMPT + step
            if position != expected:
                raise Unverified(
                    because("position-wrong", tokens=step, position=position, expected=expected)
                )
            self._first_run.append(_ExpectedStep(tokens, self._compared_part(self.logits())))

    def _compared_part(self, logits: NDArray[Any]) -> NDArray[Any]:
        """All logits of one sequence. Of a batch only the largest of each sequence, because all
        take 39 MB.
        """
        if self.batch == 1:
            return logits.copy()
        largest: NDArray[Any] = logits.max(axis=-1)
        return largest

    def _step(self) -> None:
        self.run_steps(1)
        self.wait()

    def restore_start(self) -> None:
        """Restore the state after the prompt, and forget the tokens that were not counted.

        Of a batch only the tokens and the position are restored: its cache takes up to 235 MB, and
        a step hides all later rows of it until they are written again.
        """
        start: StateValues = self.reference.after_prompt
        if self.batch > 1:
            start = {name: start[name] for name in ("token", "position")}
        self.write_state(start)
        self._counted = 0

    def count_tokens(self) -> int:
        """Add new steps to ``total``; return those since the last restore. Raises ``Unverified`` at
        a wrong token.
        """
        tokens, position = self.progress()
        steps = position - PROMPT
        is_known = 0 <= steps < len(self._first_run)
        if not is_known or tokens != self._first_run[steps].tokens:
            raise Unverified(because("token-differs", position=position))
        self.total += steps - self._counted
        self._counted = steps
        return steps

    def prepare(self, n: int) -> None:
        """Count the tokens so far, then restore the token, the position and the cache."""
        self.count_tokens()
        self.restore_start()

    def executed(self) -> int:
        """The units since ``open``, without those that were run aside for the device time.

        Raises ``Unverified`` if the last logits are not those of the first run.
        """
        steps = self.count_tokens()
        if steps:
            expected = self._first_run[steps].logits
            differences = np.abs(self._compared_part(self.logits()) - expected)
            difference = float(differences.max())
            # "not <=" and not ">", so that a logit that is not a number is refused too.
            if not difference <= self.tolerance:
                raise Unverified(because("logits-differ", token=steps, difference=difference))
        return whole_units(self.total, self.tokens) - self.aside

    def window(self) -> dict[str, Scalar]:
        """Facts on what was timed: the precision, the sizes, and the result of the comparison with
        float64.
        """
        facts: dict[str, Scalar] = {
            "precision": "float32",
            "batch": self.batch,
            "prompt": PROMPT,
            "slots": SHAPES[self.case.workload].slots,
        }
        if self.tokens > 1:
            facts["prefill"] = f"{self.tokens} decode steps, one after another"
        if self.agreement is not None:
            facts["logits"] = str(self.agreement)[:200]
        return facts
