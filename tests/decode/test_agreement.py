"""Logits compared with a reference: tolerance, tokens, ties, and values that are no numbers."""

from __future__ import annotations

import numpy as np
import pytest

from overhead.decode.chain import compare_logits

REFERENCE = np.array([[[0.0, 1.0, 3.0]], [[2.0, 0.0, 1.0]]])


@pytest.mark.parametrize(("off", "ok"), [(0.009, True), (0.011, False)])
def test_logits_agree_only_within_the_tolerance(off: float, ok: bool) -> None:
    computed = REFERENCE + np.array([[[0, 0, off]], [[0, 0, 0]]])
    found = compare_logits(computed, REFERENCE, tolerance=0.01)
    assert found.ok is ok
    assert found.largest == pytest.approx(off)


def test_another_token_is_wrong_only_if_the_largest_logits_differ_by_over_twice_the_tolerance() -> (
    None
):
    # In step 1 the last logit is now the largest, and the first, which was, is 0.5 smaller.
    # Hence their order may only be an error if each of them may be off by 0.25.
    other = np.array([[[0.0, 1.0, 3.0]], [[2.0, 0.0, 2.5]]])
    assert compare_logits(other, REFERENCE, tolerance=0.4).wrong_tokens == (1,)
    close = compare_logits(other, REFERENCE, tolerance=0.5)
    assert close.wrong_tokens == ()
    assert close.ties == (1,)


def test_a_step_is_wrong_if_one_sequence_of_its_batch_has_another_token() -> None:
    reference = REFERENCE.repeat(2, axis=1)
    other = reference.copy()
    other[1, 1] = [0.0, 2.0, 1.0]
    assert compare_logits(other, reference, tolerance=0.1).wrong_tokens == (1,)


def test_steps_whose_two_largest_logits_are_too_close_are_listed_as_ties() -> None:
    # In step 1 the two largest logits are 2.0 and 1.0: both may be off by 0.6.
    found = compare_logits(REFERENCE, REFERENCE, tolerance=0.6)
    assert found.ok
    assert found.ties == (1,)
    assert "tokens too close to compare in steps 1" in str(found)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_logits_that_are_infinite_or_not_a_number_never_agree(value: float) -> None:
    broken = REFERENCE.copy()
    broken[1, 0, 1] = value
    found = compare_logits(broken, REFERENCE, tolerance=1e9)
    assert not found.ok
    assert found.largest == np.inf
