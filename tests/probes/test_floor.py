"""The lowest cost of a foreign call: a case that the stack refuses."""

from __future__ import annotations

import pytest

from overhead.probes import floor
from overhead.probes.base import Unsupported


def test_the_floor_stack_needs_a_python_with_plain_reference_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floor, "_function", lambda address: lambda argument: None)
    stack = floor.Floor()
    with pytest.raises(Unsupported, match="reference count"):
        stack.open(stack.targets()[0], floor._case("ctypes"))
