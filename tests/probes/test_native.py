"""A list of C calls as a Python loop and as a compiled loop."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overhead.probes.base import Unavailable
from overhead.probes.common import native_loop
from overhead.probes.common.native_loop import (
    Cycle,
    NativeCall,
    NativeProgram,
    NativeUnavailable,
    Slot,
    Store,
)

pytestmark = pytest.mark.needs("numba")
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 9)
CALLERS = ["ffi", "native"]


class Recorder:
    """A C function that records its nine arguments and returns their sum. No ABI passes all nine in
    registers.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[int, ...]] = []
        self.callback = CALLBACK(self._record)
        self.address = ctypes.cast(self.callback, ctypes.c_void_p).value or 0

    def _record(self, *words: int) -> int:
        self.seen.append(words)
        return sum(words)

    def call(self, *args: Any, **fields: Any) -> NativeCall:
        padded = (*args, *range(100, 109 - len(args)))
        return NativeCall("record", self.callback, self.address, padded, **fields)

    def first(self, count: int = 1) -> list[tuple[int, ...]]:
        return [words[:count] for words in self.seen]


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(folder))
        yield folder


def compiled(program: NativeProgram, caller: str) -> native_loop.NativeLoop:
    return (
        native_loop.compile_native(program)
        if caller == "native"
        else native_loop.compile_ffi(program)
    )


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(
    ("per", "n", "order"),
    [
        (1, 2, "hbthbt"),
        (0, 3, "hbbbt"),
        (0, 0, "ht"),
        (2, 5, "hbbthbbthbt"),
    ],
)
def test_a_loop_runs_head_and_tail_once_and_body_for_each_unit_of_a_group(
    caller: str, per: int, n: int, order: str
) -> None:
    recorder = Recorder()
    head, body, tail = ((recorder.call(ord(name)),) for name in "hbt")
    program = NativeProgram(head, body, tail, per=per)
    compiled(program, caller)(n)
    assert "".join(chr(word) for (word,) in recorder.first()) == order


@pytest.mark.parametrize("caller", CALLERS)
def test_a_loop_passes_nine_arguments_to_a_c_function(caller: str) -> None:
    recorder = Recorder()
    words = (1, 2**62, -1, 0, 2**40 + 3, 5, -(2**63), 7, 8)
    compiled(NativeProgram(body=(recorder.call(*words),)), caller)(1)
    assert recorder.seen == [words]


@pytest.mark.parametrize("caller", CALLERS)
def test_a_slot_passes_the_result_of_a_call_to_the_next_call(caller: str) -> None:
    recorder = Recorder()
    handle = Slot(0)
    program = NativeProgram(
        body=(
            recorder.call(7, result=handle),
            recorder.call(handle, result=handle),
            recorder.call(handle),
        ),
    )
    compiled(program, caller)(1)
    first = sum(recorder.seen[0])
    assert recorder.first() == [(7,), (first,), (sum(recorder.seen[1]),)]


@pytest.mark.parametrize(("caller", "length"), [("ffi", 3), ("native", 3), ("native", 8)])
def test_a_cycle_passes_another_argument_for_each_unit(caller: str, length: int) -> None:
    recorder = Recorder()
    ring = Cycle(tuple(range(10, 10 + length)))
    program = NativeProgram(head=(recorder.call(1, ring),), body=(recorder.call(2, ring),), per=4)
    compiled(program, caller)(6)
    heads = [(1, 10 + u % length) for u in (0, 4)]
    bodies = [(2, 10 + u % length) for u in range(6)]
    assert recorder.first(2) == [heads[0], *bodies[:4], heads[1], *bodies[4:]]


@pytest.mark.parametrize("caller", CALLERS)
def test_a_store_writes_the_result_of_a_call_to_memory(caller: str) -> None:
    recorder, memory = Recorder(), np.zeros(2, np.int64)

    def write(value: int) -> None:
        memory[1] = value

    program = NativeProgram(
        body=(
            recorder.call(5, result=Slot(3)),
            Store("keep", write, memory.ctypes.data + 8, Slot(3)),
        ),
    )
    compiled(program, caller)(1)
    assert memory.tolist() == [0, sum(recorder.seen[0])]


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("result", [None, Slot(0)])
def test_after_a_failed_c_call_the_loop_continues_and_failure_returns_its_result(
    caller: str, result: Slot | None
) -> None:
    answers = iter([0, -4, 0])
    function = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: next(answers))
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    loop = compiled(
        NativeProgram(
            body=(NativeCall("submit", function, address, (), result=result, checked=True),)
        ),
        caller,
    )
    loop(1)
    assert loop.failure() == 0
    loop(2)
    assert loop.failure() == 2**32 - 4


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("per", [0, 1, 4])
def test_compile_stages_measures_each_call_of_every_unit(caller: Any, per: int) -> None:
    recorder = Recorder()
    program = NativeProgram(
        head=(recorder.call(0, stage="begin"),),
        body=(recorder.call(1, stage="dispatch"), recorder.call(2, stage="dispatch")),
        tail=(
            recorder.call(3, stage="end"),
            recorder.call(4, stage="release"),
            recorder.call(5, stage="release"),
        ),
        per=per,
    )
    found = native_loop.compile_stages(program, caller)(10)
    groups = {0: 1, 1: 10, 4: 3}[per]
    clocks = 10 if per == 1 else 2 * groups + 10
    lengths = {"clock": clocks, "begin": groups, "dispatch": 10, "end": groups, "release": groups}
    assert {name: len(values) for name, values in found.items()} == lengths
    assert all((values >= 0).all() for values in found.values())
    assert found["dispatch"].min() > 0
    assert len(recorder.seen) == 20 + 4 * groups
    assert native_loop.compile_stages(program, caller)(0)["dispatch"].size == 0


def test_without_numba_compile_native_raises_unavailable_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(NativeUnavailable, match="numba") as caught:
        native_loop.compile_native(NativeProgram())
    assert caught.value.mend == "pip install numba"
    assert isinstance(caught.value, Unavailable)
