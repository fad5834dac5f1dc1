"""The measuring thread leaves slow processors, on a fake machine whose speeds the test sets."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from overhead.measure.sampling import clock as clocks
from overhead.measure.sampling.clock import (
    SystemClock,
    processors_serving_gpus,
    undisturbed_processors,
)
from overhead.measure.sampling.undisturbed_processor import UndisturbedProcessor
from overhead.results import RoundEntry
from tests.fakes.chains import Steady, measured
from tests.fakes.machine import FakeClock


class Machine(FakeClock):
    """``count`` processors; those in ``slow`` take 1.6 times as long."""

    def __init__(self, count: int, slow: Sequence[int] = ()) -> None:
        super().__init__()
        self.count, self.slow_ones, self.on, self.moves = count, set(slow), 0, 0

    def processors(self) -> list[int]:
        return list(range(10, 10 + self.count))

    def move(self, processors: Sequence[int]) -> None:
        self.moves += 1
        self.on = processors[0] - 10 if processors else -1

    def reference_loop(self) -> list[int]:
        times = 1.6 if self.on in self.slow_ones else 1.0
        self.time += 100_000 * times
        return [int(50_000 * times), int(50_000 * times)]


def test_the_thread_stays_on_a_fast_processor() -> None:
    machine = Machine(4)
    undisturbed = UndisturbedProcessor(machine)
    at, moves = machine.on, machine.moves
    assert undisturbed.leave_if_slow() == [50_000, 50_000]
    assert (machine.on, machine.moves) == (at, moves)


def test_the_thread_leaves_a_processor_that_becomes_slow() -> None:
    machine = Machine(4)
    undisturbed = UndisturbedProcessor(machine)
    machine.slow_ones = {machine.on}
    assert undisturbed.reference_loop() == [80_000, 80_000]
    assert undisturbed.leave_if_slow() == [50_000, 50_000]
    assert machine.on not in machine.slow_ones


def test_the_thread_stays_on_the_best_of_slow_processors_and_gets_all_back_in_the_end() -> None:
    machine = Machine(3)
    undisturbed = UndisturbedProcessor(machine)
    machine.slow_ones = {0, 1, 2}
    assert undisturbed.leave_if_slow() == [80_000, 80_000]
    undisturbed.close()
    assert machine.on == -1


def test_the_thread_moves_to_each_processor_in_turn() -> None:
    machine = Machine(4)
    undisturbed = UndisturbedProcessor(machine)
    seen = []
    for _ in range(8):
        undisturbed.move_on()
        seen.append(machine.on)
    assert sorted(seen) == [0, 0, 1, 1, 2, 2, 3, 3]
    machine.slow_ones = {(machine.on + 1) % 4}
    undisturbed.move_on()
    assert undisturbed.leave_if_slow() == [50_000, 50_000]
    assert machine.on == (seen[-1] + 2) % 4


def test_rounds_are_measured_on_fast_processors_only() -> None:
    machine = Machine(4, slow=[0, 2])
    machine.on = -1
    on = set[int]()

    class Watched(Steady):
        def issue(self, n: int) -> None:
            on.add(machine.on)
            super().issue(n)

    _, events, _ = measured({"case": Watched(machine)}, machine)
    loops = [tuple(e.canary) for e in events if isinstance(e, RoundEntry)]
    assert loops
    assert set(loops) == {(50_000, 50_000)}
    assert on == {-1, 1, 3}
    assert machine.on == -1


def test_the_thread_skips_a_processor_that_the_system_took_away() -> None:
    machine = Machine(3)
    undisturbed = UndisturbedProcessor(machine)
    move = machine.move

    def refused(processors: Sequence[int]) -> None:
        if processors == [11]:
            raise OSError(22, "Invalid argument")
        move(processors)

    machine.move = refused  # type: ignore[method-assign]
    seen = []
    for _ in range(4):
        undisturbed.move_on()
        undisturbed.leave_if_slow()
        seen.append(machine.on)
    assert set(seen) == {0, 2}


def test_the_thread_gets_all_processors_of_this_machine_back() -> None:
    clock = SystemClock()
    before = os.sched_getaffinity(0) if sys.platform == "linux" else set()
    undisturbed = UndisturbedProcessor(clock)
    assert len(undisturbed.leave_if_slow()) == 2
    undisturbed.close()
    assert not before or os.sched_getaffinity(0) == before


INTERRUPTS = """\
           CPU0       CPU1       CPU2       CPU3
 24:          9          0          0          0  IO-APIC   5-edge      ACPI:Ged
 42:          0          0      22119          1 PCI-MSIX-0000:00:06.0   0-edge      nvidia
 43:          0          0          0          0 PCI-MSIX-0000:00:06.0   1-edge      nvidia
 44:          0          7          0          0 PCI-MSIX-0000:00:07.0   0-edge      xen-pirq
 45:          3          0          0          0 PCI-MSIX-0000:00:08.0   0-edge      amdgpu
NMI:          0          0          0          0   Non-maskable interrupts
ERR:          0
"""


def test_processors_that_serve_a_gpus_interrupts_are_found() -> None:
    assert processors_serving_gpus(INTERRUPTS) == {0, 2}
    assert processors_serving_gpus("") == set()
    assert processors_serving_gpus("CPU0\n 42: x y nvidia") == set()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/interrupts is Linux only")
def test_processors_that_serve_a_gpus_interrupts_are_avoided(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = tmp_path / "interrupts"
    table.write_text(INTERRUPTS)
    monkeypatch.setattr(clocks, "INTERRUPTS", table)
    monkeypatch.setattr(os, "sched_getaffinity", lambda who: {0, 1, 2, 3})
    assert undisturbed_processors() == [1, 3]
    monkeypatch.setattr(os, "sched_getaffinity", lambda who: {0, 2})
    assert undisturbed_processors() == [0, 2]
    monkeypatch.setattr(clocks, "INTERRUPTS", tmp_path / "none")
    assert undisturbed_processors() == [0, 2]
