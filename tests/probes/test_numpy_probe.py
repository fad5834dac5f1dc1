"""The NumPy stack: its cases and counts, and no native caller if the memory layout of NumPy is different."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from overhead.probes.base import Unverified
from overhead.probes.common import add_one
from overhead.probes.numpy import NumpyProbe
from tests.fakes.of_step import of_step

PROBE = NumpyProbe()
(TARGET,) = PROBE.targets()
CASES = {case.key: case for case in of_step(PROBE.space(TARGET).cross())}


def test_values_that_disagree_are_unverified() -> None:
    values = add_one.start_values() + 3
    assert add_one.count_steps(values) == 3
    values[7] += 1
    with pytest.raises(Unverified, match="between 3 and 4"):
        add_one.count_steps(values)


def test_more_steps_than_int32_holds_are_counted() -> None:
    far = (add_one.start_values().astype(np.int64) + 2**31 + 5).astype(np.int32)
    assert add_one.count_steps(far) == 2**31 + 5


@pytest.mark.needs("numba")
def test_with_another_memory_layout_of_the_ufunc_the_native_caller_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from overhead.probes.common import numpy_ufunc
    from overhead.probes.common.native_loop import NativeUnavailable

    class Other(ctypes.Structure):
        _fields_ = (("nargs", ctypes.c_int), ("nin", ctypes.c_int), ("nout", ctypes.c_int), ("ntypes", ctypes.c_int))

    fields: Any = Other
    monkeypatch.setattr(numpy_ufunc, "_Fields", fields)
    with pytest.raises(NativeUnavailable, match="not laid out"):
        numpy_ufunc.InnerLoop(add_one.start_values())
