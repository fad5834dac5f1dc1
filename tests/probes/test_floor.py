"""The lowest cost of a foreign call: the cases that the stack refuses, and those that it offers."""

from __future__ import annotations

import pytest

from overhead.probes import floor
from overhead.probes.base import Unsupported

PROBE = floor.Floor()
TARGET = PROBE.targets()[0]


def test_units_that_make_no_call_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = PROBE.open(TARGET, floor._case("ctypes"))
    monkeypatch.setattr(chain, "issue", lambda n: None)
    chain.issue(5)
    assert chain.executed() == 0
    chain.close()


def test_a_python_without_plain_reference_counts_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floor, "_callables", lambda call, address, pointer: (lambda argument: None, None))
    with pytest.raises(Unsupported, match="reference count"):
        PROBE.open(TARGET, floor._case("ctypes"))
