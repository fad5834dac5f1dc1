"""The step of the array libraries: its count."""

from __future__ import annotations

import numpy as np
import pytest

from overhead.probes.base import Unverified
from overhead.probes.common import step


def test_values_that_disagree_are_unverified() -> None:
    values = step.start_values() + 3
    assert step.count_steps(values) == 3
    values[7] += 1
    with pytest.raises(Unverified, match="between 3 and 4"):
        step.count_steps(values)


def test_more_steps_than_int32_holds_are_counted() -> None:
    far = (step.start_values().astype(np.int64) + 2**31 + 5).astype(np.int32)
    assert step.count_steps(far) == 2**31 + 5
