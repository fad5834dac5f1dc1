"""The foreign-call floor: every call counted by what it did."""

from __future__ import annotations

import pytest

from overhead.probes import floor
from overhead.probes.base import Unsupported, vary
from overhead.results import Case

PROBE = floor.Floor()
TARGET = PROBE.targets()[0]
NEEDS = {"native": "numba", "cffi": "vulkan"}  # the package vulkan brings cffi


def cases() -> list[object]:
    marks = {call: [pytest.mark.needs(part)] for call, part in NEEDS.items()}
    return [pytest.param(floor._case(call), id=call, marks=marks.get(call, [])) for call in floor.CALLS]


@pytest.mark.parametrize("case", cases())
def test_each_call_is_counted(case: Case) -> None:
    chain = PROBE.open(TARGET, case)
    try:
        done = 0
        for n in (0, 1, 7, 1000, 0, 12345):
            chain.prepare(n)
            chain.issue(n)
            chain.wait()
            done += n
            assert chain.executed() == done
        assert chain.executed() == done
    finally:
        chain.close()


def test_a_call_that_does_not_happen_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = PROBE.open(TARGET, floor._case("ctypes"))
    monkeypatch.setattr(chain, "issue", lambda n: None)
    chain.issue(5)
    assert chain.executed() == 0
    chain.close()


def test_a_leaf_that_counts_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floor, "_callables", lambda call, address, pointer: (lambda argument: None, None))
    with pytest.raises(Unsupported, match="reference count"):
        PROBE.open(TARGET, floor._case("ctypes"))


def test_the_caller_follows_from_the_call() -> None:
    with pytest.raises(Unsupported, match="caller follows"):
        PROBE.open(TARGET, vary(floor._case("loop"), "caller", "native"))
    with pytest.raises(Unsupported, match="one of native"):
        PROBE.open(TARGET, Case(pattern="per-submit"))


def test_the_space_leaves_out_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {case.params["call"] for case in PROBE.space(TARGET).star()} >= {"ctypes", "python", "loop"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert [case.params["call"] for case in PROBE.space(TARGET).star()] == ["ctypes", "python", "loop"]
