"""The lowest cost of a foreign call: the cases that the stack refuses, and those that it offers."""

from __future__ import annotations

import pytest

from overhead.probes import floor
from overhead.probes.base import Unsupported

PROBE = floor.Floor()
TARGET = PROBE.targets()[0]


def test_the_floor_stack_needs_a_python_with_plain_reference_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floor, "_function", lambda address: lambda argument: None)
    with pytest.raises(Unsupported, match="reference count"):
        PROBE.open(TARGET, floor._case("ctypes"))
