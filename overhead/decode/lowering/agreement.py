"""Do the logits of a program agree with a reference in float64? Tokens that are too close to tell apart are listed."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class LogitAgreement:
    """The comparison of logits of shape (steps, batch, vocabulary). ``ok``: within the tolerance, no token differs.

    ``largest``: the largest difference. ``wrong_tokens``: steps where the largest logit of a row is another one
    although the reference's two largest differ by more than twice the tolerance. ``ties``: steps where they differ by
    less.
    """

    tolerance: float
    largest: float
    wrong_tokens: tuple[int, ...]
    ties: tuple[int, ...]

    @property
    def ok(self) -> bool:
        return self.largest <= self.tolerance and not self.wrong_tokens

    def __str__(self) -> str:
        text = f"largest difference {self.largest:.2e}, allowed {self.tolerance:.2e}"
        if self.wrong_tokens:
            text += f"; another token in steps {', '.join(map(str, self.wrong_tokens))}"
        if self.ties:
            text += f"; tokens too close to compare in steps {', '.join(map(str, self.ties))}"
        return text


def agreement(found: NDArray[Any], reference: NDArray[Any], tolerance: float) -> LogitAgreement:
    """The comparison. A logit that is not a number counts as an infinite difference."""
    differences = np.abs(np.asarray(found, np.float64) - reference)
    largest = float("inf") if not np.isfinite(differences).all() else float(differences.max())
    top = np.partition(reference, -2, axis=-1)[..., -2:]
    close = top[..., 1] - top[..., 0] <= 2 * tolerance
    other = found.argmax(axis=-1) != reference.argmax(axis=-1)
    wrong, ties = (tuple(np.flatnonzero(rows.any(axis=-1)).tolist()) for rows in (other & ~close, close))
    return LogitAgreement(tolerance, largest, wrong, ties)
