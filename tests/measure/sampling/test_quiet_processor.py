"""The measuring thread flees from slow processors, on a fake machine whose canaries are told."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from overhead.measure.sampling import processors
from overhead.measure.sampling.clock import SystemClock
from overhead.measure.sampling.processors import serving_gpus
from overhead.measure.sampling.quiet_processor import QuietProcessor
from overhead.measure.sampling.rounds import Rounded
from tests.fakes.chains import Steady, measured
from tests.fakes.machine import FakeClock


class Machine(FakeClock):
    """So many processors; those in ``slow`` run at two thirds of full speed."""

    def __init__(self, count: int, slow: Sequence[int] = ()) -> None:
        super().__init__()
        self.count, self.slow_ones, self.on, self.moves = count, set(slow), 0, 0

    def processors(self) -> list[int]:
        return list(range(10, 10 + self.count))

    def move(self, processors: Sequence[int]) -> None:
        self.moves += 1
        self.on = processors[0] - 10 if processors else -1

    def canary(self) -> list[int]:
        times = 1.6 if self.on in self.slow_ones else 1.0
        self.time += 100_000 * times
        return [int(50_000 * times), int(50_000 * times)]


def test_stays_where_it_is_fast() -> None:
    machine = Machine(4)
    shelter = QuietProcessor(machine)
    at, moves = machine.on, machine.moves
    assert shelter.settle() == [50_000, 50_000]
    assert (machine.on, machine.moves) == (at, moves)


def test_moves_off_a_processor_that_turns_slow_and_says_how_fast_it_is_there() -> None:
    machine = Machine(4)
    shelter = QuietProcessor(machine)
    machine.slow_ones = {machine.on}
    assert shelter.again() == [80_000, 80_000]
    assert shelter.settle() == [50_000, 50_000]
    assert machine.on not in machine.slow_ones


def test_takes_the_best_where_all_are_slow_and_gives_the_processors_back() -> None:
    machine = Machine(3)
    shelter = QuietProcessor(machine)
    machine.slow_ones = {0, 1, 2}
    assert shelter.settle() == [80_000, 80_000]
    shelter.close()
    assert machine.on == -1


def test_goes_on_to_the_next_processor_when_told_to() -> None:
    machine = Machine(4)
    shelter = QuietProcessor(machine)
    seen = []
    for _ in range(8):
        shelter.leave()
        seen.append(machine.on)
    assert sorted(seen) == [0, 0, 1, 1, 2, 2, 3, 3]
    machine.slow_ones = {(machine.on + 1) % 4}
    shelter.leave()
    assert shelter.settle() == [50_000, 50_000]
    assert machine.on == (seen[-1] + 2) % 4


def test_one_processor_is_never_left() -> None:
    machine = Machine(1, slow=[0])
    shelter = QuietProcessor(machine)
    shelter.leave()
    shelter.settle()
    assert (machine.on, machine.moves) == (0, 1)
    shelter.close()
    assert machine.on == -1


def test_a_machine_that_moves_no_thread_is_left_alone() -> None:
    shelter = QuietProcessor(FakeClock())
    assert len(shelter.settle()) == 2
    shelter.close()


def test_rounds_are_measured_on_fast_processors_and_say_so() -> None:
    machine = Machine(4, slow=[0, 2])
    machine.on = -1
    on = set[int]()

    class Watched(Steady):
        def issue(self, n: int) -> None:
            on.add(machine.on)
            super().issue(n)

    _, events, _ = measured({"case": Watched(machine)}, machine)
    told = [e.canary for e in events if isinstance(e, Rounded)]
    assert told
    assert set(map(tuple, told)) == {(50_000, 50_000)}
    assert on == {-1, 1, 3}
    assert machine.on == -1


def test_four_rounds_stay_on_one_processor() -> None:
    machine = Machine(4)
    _, events, _ = measured({"case": Steady(machine)}, machine, seconds=60.0, min_rounds=12, max_rounds=12)
    assert len([e for e in events if isinstance(e, Rounded)]) == 12
    assert machine.moves == machine.count + 3 + 1


def test_a_processor_that_was_taken_away_is_passed_over() -> None:
    machine = Machine(3)
    shelter = QuietProcessor(machine)
    move = machine.move

    def refused(processors: Sequence[int]) -> None:
        if processors == [11]:
            raise OSError(22, "Invalid argument")
        move(processors)

    machine.move = refused  # type: ignore[method-assign]
    seen = []
    for _ in range(4):
        shelter.leave()
        shelter.settle()
        seen.append(machine.on)
    assert set(seen) == {0, 2}


def test_this_machine_lets_itself_be_asked() -> None:
    clock = SystemClock()
    before = os.sched_getaffinity(0) if sys.platform == "linux" else set()
    shelter = QuietProcessor(clock)
    assert len(shelter.settle()) == 2
    shelter.close()
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


def test_processors_that_serve_a_gpus_interrupts_are_told() -> None:
    assert serving_gpus(INTERRUPTS) == {0, 2}
    assert serving_gpus("") == set()
    assert serving_gpus("CPU0\n 42: x y nvidia") == set()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells who serves an interrupt")
def test_threads_keep_away_from_a_gpus_interrupts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = tmp_path / "interrupts"
    table.write_text(INTERRUPTS)
    monkeypatch.setattr(processors, "INTERRUPTS", table)
    monkeypatch.setattr(os, "sched_getaffinity", lambda who: {0, 1, 2, 3})
    assert processors.allowed() == [1, 3]
    monkeypatch.setattr(os, "sched_getaffinity", lambda who: {0, 2})
    assert processors.allowed() == [0, 2]
    monkeypatch.setattr(processors, "INTERRUPTS", tmp_path / "none")
    assert processors.allowed() == [0, 2]
