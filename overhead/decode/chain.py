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
    """How well the logits that a chain computed agree with the reference in float64; the record of
    a case contains it as text.

    ``tolerance``: the allowed difference of a logit; ``largest``: the largest found.
    ``wrong_tokens``: the numbers of the steps in which some sequence got another token (another
    logit is the largest), without those of ``ties``. ``ties``: the steps in which the two largest
    logits of the reference are so close that an allowed difference may swap them.
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
        """One line for the record of a case: the largest difference, and the steps with other
        tokens.
        """
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
    """The comparison of the logits that a chain computed with those of the reference, both of shape
    (steps, batch, vocabulary).

    ``tolerance``: how much a logit may differ.
    """
    differences = np.abs(np.asarray(computed, np.float64) - reference)
    # A logit that is not a number counts as an infinite difference, so it is never accepted.
    largest = float("inf")
    if np.isfinite(differences).all():
        largest = float(differences.max())

    # The next token is the largest logit. If the two largest logits of the reference are closer
    # than twice the tolerance, an allowed difference of each can swap them: no wrong token.
    # Axes: steps, sequences, and the second largest and the largest logit.
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
    """A chain of decode steps to be timed. A step makes the next token of each of ``batch``
    sequences; the tokens, the position and the cache (the state) stay on the device. A sample, one
    timing of n units, starts from the state after a prompt. A unit is one step; with the pattern
    ``read-each`` it is ``tokens`` steps and a read of the last token or of all logits.

    Subclasses, one for each library, put the state on the device and read it by the names of
    ``FedBackStep``.
    """

    tolerance: float = LOGIT_TOLERANCE
    """Largest allowed difference of a logit."""

    def __init__(self, case: Case) -> None:
        """Read the parameters of the case, and get the model with random weights (``module``) and
        what float64 computes with it (``reference``). Nothing is on a device yet.
        """
        from overhead.decode.reference import batched_step, decode_reference

        self.case = case
        # A case without one of these parameters has a batch of 1 and units of one token.
        self.batch = int(case.params.get("batch", 1))
        self.module = batched_step(case.workload, self.batch)
        self.reference = decode_reference(case.workload, self.batch)
        self.tokens = int(case.params.get("tokens", 1))
        # The cache has room for no more tokens, and each unit makes ``tokens`` of them.
        self.max_n = MOST_TOKENS // self.tokens
        # For the sampler: each unit waits by itself, because it ends with a read.
        self.latency = case.pattern == "read-each"
        self.reads_logits = case.params.get("readback") == "logits"
        # The result of the comparison with float64; ``verify`` makes it.
        self.agreement: LogitAgreement | None = None
        # By the number of steps since the prompt; ``verify`` fills it.
        self._first_run: list[_ExpectedStep] = []
        # All steps that were counted since ``verify``, and those of them since the last restore.
        self.total = 0
        self._counted_since_restore = 0

    @abc.abstractmethod
    def run_steps(self, steps: int) -> None:
        """Issue this many decode steps."""

    def read_back(self) -> object:
        """Read what the parameter ``readback`` names, after all issued work."""
        raise Unsupported(because("no-such-pattern", pattern=self.case.pattern))

    def issue(self, n: int) -> None:
        """Issue n units; this call is timed. With the pattern ``read-each`` each unit ends with a
        read.
        """
        if not self.latency:
            self.run_steps(n)
            return
        # Looked up before the loop, so that the look-ups are not timed with each unit.
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
        Raises ``Unverified``.

        First the logits of given tokens are compared with float64. Then the chain follows its own
        tokens from the prompt on, as it does in a sample.
        """
        self._compare_given_tokens()
        self._note_first_run()
        self.restore_start()
        # The steps of the checks do not count as units of samples. ``aside``: those that only
        # measured the device's time.
        self.total = self.aside = 0

    def _compare_given_tokens(self) -> None:
        """Compare the logits with those in float64, and keep the result in ``agreement``. Raises
        ``Unverified`` if they differ by more than is allowed.
        """
        self.write_state(self.reference.empty)
        logits = []
        for position, token in enumerate(self.reference.tokens):
            # Each step gets the token of the reference, not the one that the chain chose before: a
            # single other token would make all later logits incomparable.
            self.write_state({"token": token, "position": np.array([position])})
            self._step()
            # A copy, because the next step may write into the same memory.
            logits.append(self.logits().copy())
        self.agreement = compare_logits(np.array(logits), self.reference.logits, self.tolerance)
        if not self.agreement.ok:
            raise Unverified(because("differs-from-float64", agreement=self.agreement))

    def _note_first_run(self) -> None:
        """Run the longest sample once, and note its tokens and logits after each step. All samples
        start from the same state, so each must give the same.

        Raises ``Unverified`` if the position does not grow by one with each step.
        """
        self.write_state(self.reference.after_prompt)
        # Entry 0 is the state before the first step, which has no logits. ``progress`` reads the
        # last tokens and the next position from the device.
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
        """The part of a step's logits that is kept, and compared with that of later runs.

        That is all logits of a single sequence. Of a batch it is only the largest logit of each
        sequence, because all logits of 64 sequences take 39 MB for each step.
        """
        if self.batch == 1:
            return logits.copy()
        largest: NDArray[Any] = logits.max(axis=-1)
        return largest

    def _step(self) -> None:
        self.run_steps(1)
        self.wait()

    def restore_start(self) -> None:
        """Set token, position and cache back to the state after the prompt, from which each sample
        starts.
        """
        start: StateValues = self.reference.after_prompt
        if self.batch > 1:
            # The cache of a batch takes up to 235 MB. It may keep its later rows: a step ignores
            # all rows after its own position, and each is written again before it is used.
            start = {name: start[name] for name in ("token", "position")}
        self.write_state(start)
        self._counted_since_restore = 0

    def count_tokens(self) -> int:
        """The steps since the last restore, by the position that the device has reached. Those that
        were not counted before are added to ``total``.

        Raises ``Unverified`` unless the tokens are those of the first run after as many steps.
        """
        tokens, position = self.progress()
        steps = position - PROMPT
        is_known = 0 <= steps < len(self._first_run)
        if not is_known or tokens != self._first_run[steps].tokens:
            raise Unverified(because("token-differs", position=position))
        self.total += steps - self._counted_since_restore
        self._counted_since_restore = steps
        return steps

    def prepare(self, n: int) -> None:
        """Called before each sample, and not timed: count the tokens so far, because the restore
        that follows sets the position back.
        """
        self.count_tokens()
        self.restore_start()

    def executed(self) -> int:
        """The units that ran since the chain was verified, without those that only measured the
        device time (``aside``). The sampler compares them with the units that it issued.

        Raises ``Unverified`` if the last logits are not those of the first run.
        """
        steps = self.count_tokens()
        # Right after a restore there is no last step, and so there are no logits.
        if steps:
            expected = self._first_run[steps].logits
            differences = np.abs(self._compared_part(self.logits()) - expected)
            difference = float(differences.max())
            # "not <=" and not ">", so that a logit that is not a number is refused too.
            if not difference <= self.tolerance:
                raise Unverified(because("logits-differ", token=steps, difference=difference))
        # A unit is ``tokens`` steps; a part of one would be an error. ``aside`` counts steps: only
        # chains whose unit is one step measure the device time.
        return whole_units(self.total, self.tokens) - self.aside

    def window(self) -> dict[str, Scalar]:
        """Facts for the record on what was timed: the precision, the sizes, and the result of the
        comparison with float64. Only figures of equal facts are compared.
        """
        facts: dict[str, Scalar] = {
            "precision": "float32",
            "batch": self.batch,
            "prompt": PROMPT,
            "slots": SHAPES[self.case.workload].slots,
        }
        # The reference computes the tokens of a prompt together. This chain does not.
        if self.tokens > 1:
            facts["prefill"] = f"{self.tokens} decode steps, one after another"
        if self.agreement is not None:
            # Cut: it names each step with another token or a tie, which may be many.
            facts["logits"] = str(self.agreement)[:200]
        return facts
