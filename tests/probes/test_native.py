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
    if caller == "native":
        return native_loop.compile_native(program)
    return native_loop.compile_ffi(program)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(
    ("per", "n", "order"),
    [
        # By letters: head, body, tail. ``per``: units of a group, 0 for all of them in one.
        pytest.param(1, 2, "hbthbt", id="a group for each unit"),
        pytest.param(0, 3, "hbbbt", id="one group"),
        pytest.param(0, 0, "ht", id="one group without units"),
        pytest.param(2, 5, "hbbthbbthbt", id="groups of two units, and one that is left"),
    ],
)
def test_a_loop_runs_head_and_tail_once_and_body_for_each_unit_of_a_group(
    caller: str, per: int, n: int, order: str
) -> None:
    recorder = Recorder()
    program = NativeProgram(
        head=(recorder.call(ord("h")),),
        body=(recorder.call(ord("b")),),
        tail=(recorder.call(ord("t")),),
        per=per,
    )
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
    result_of_first = sum(recorder.seen[0])
    result_of_second = sum(recorder.seen[1])
    assert recorder.first() == [(7,), (result_of_first,), (result_of_second,)]


@pytest.mark.parametrize(
    ("values", "passed"),
    [
        # Six units in groups of four. The head has the value of the first unit of its group, which
        # is unit 0 or unit 4. Values that are used up begin again.
        ((10, 11, 12), "head 10, 10, 11, 12, 10, head 11, 11, 12"),
        ((10, 11, 12, 13, 14, 15, 16, 17), "head 10, 10, 11, 12, 13, head 14, 14, 15"),
    ],
)
@pytest.mark.parametrize("caller", CALLERS)
def test_a_cycle_passes_another_argument_for_each_unit(
    caller: str, values: tuple[int, ...], passed: str
) -> None:
    recorder = Recorder()
    cycle = Cycle(values)
    program = NativeProgram(head=(recorder.call(1, cycle),), body=(recorder.call(2, cycle),), per=4)
    compiled(program, caller)(6)
    names = {1: "head ", 2: ""}
    assert ", ".join(f"{names[part]}{value}" for part, value in recorder.first(2)) == passed


@pytest.mark.parametrize("caller", CALLERS)
def test_a_store_writes_the_result_of_a_call_to_memory(caller: str) -> None:
    recorder = Recorder()
    memory = np.zeros(2, np.int64)
    second_word = memory.ctypes.data + memory.itemsize

    def write(value: int) -> None:
        memory[1] = value

    program = NativeProgram(
        body=(
            recorder.call(5, result=Slot(3)),
            Store("keep", write, second_word, Slot(3)),
        ),
    )
    compiled(program, caller)(1)
    result = sum(recorder.seen[0])
    assert memory.tolist() == [0, result]


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("result", [None, Slot(0)])
def test_after_a_failed_c_call_the_loop_continues_and_failure_returns_its_result(
    caller: str, result: Slot | None
) -> None:
    succeeds, fails = 0, -4
    answers = iter([succeeds, fails, succeeds])
    function = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: next(answers))
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    submit = NativeCall("submit", function, address, (), result=result, checked=True)
    loop = compiled(NativeProgram(body=(submit,)), caller)
    loop(1)
    assert loop.failure() == 0
    loop(2)
    assert loop.failure() == 2**32 + fails, "as 32 bits without a sign"


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(
    ("per", "groups", "clock_readings"),
    [
        pytest.param(0, 1, 10 + 2, id="one group: each unit, and head and tail of the group"),
        pytest.param(1, 10, 10, id="groups of one unit: head, body and tail together"),
        pytest.param(4, 3, 10 + 3 * 2, id="4, 4 and 2 units: each unit, and heads and tails"),
    ],
)
def test_compile_stages_measures_each_call_of_every_unit(
    caller: Any, per: int, groups: int, clock_readings: int
) -> None:
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
    stages = native_loop.compile_stages(program, caller)
    durations = stages(10)
    assert {name: len(values) for name, values in durations.items()} == {
        "clock": clock_readings,
        "begin": groups,
        "dispatch": 10,
        "end": groups,
        "release": groups,
    }
    for values in durations.values():
        assert (values >= 0).all()
    assert durations["dispatch"].min() > 0
    # The body has two calls for each of 10 units, head and tail together four for each group.
    assert len(recorder.seen) == 10 * 2 + groups * 4
    assert stages(0)["dispatch"].size == 0


def test_without_numba_compile_native_raises_unavailable_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(NativeUnavailable, match="numba") as caught:
        native_loop.compile_native(NativeProgram())
    assert caught.value.mend == "pip install numba"
    assert isinstance(caught.value, Unavailable)
