"""Random programs: what ``overhead explain --trace`` says, what a plain counter finds in the file,
and what is true.
"""

from __future__ import annotations

import random
import re
import statistics
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from overhead.explaining.record import Explanation
from overhead.explaining.trace_file import explain_traces
from tests.traces.counted import Counts, counted
from tests.traces.random_programs import KINDS, TICKS_NS, Simulation, Step, random_step

MAKERS = ["kineto", "nsight"]
COUNTS = ["launches", "copies", "fills", "synchronisations"]
SEEDS = range(60)


def simulated(seed: int, *, collectives: bool | None = None) -> Simulation:
    """A program of 3 to 7 equal steps, on one device or two."""
    dice = random.Random(seed)
    devices = 2 if seed % 5 == 4 else 1
    if collectives is None:
        collectives = seed % 3 == 0
    simulation = Simulation(dice, tick_ns=TICKS_NS[seed % 2])
    parts = random_step(dice, devices, collectives=collectives)
    simulation.run(parts, steps=dice.randint(3, 7), first=dice.choice([0, 5, 100]))
    return simulation


def written(simulation: Simulation, maker: str, folder: Path) -> Path:
    if maker == "nsight":
        return simulation.nsight(folder / "t.sqlite")
    return simulation.kineto(folder / "t.json")


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_counter_finds_what_is_true(seed: int, maker: str, tmp_path: Path) -> None:
    simulation = simulated(seed)
    found = counted(written(simulation, maker, tmp_path))
    assert [facts(each) for each in found] == [facts(each) for each in simulation.steps]


def facts(found: Counts | Step) -> dict[str, object]:
    facts: dict[str, object] = {name: getattr(found, name) for name in COUNTS}
    for name in ("busy_ns", "collective_ns", "exposed_ns", "running_ns"):
        times: dict[int, int] = getattr(found, name)
        facts[name] = {device: ns for device, ns in times.items() if ns}
    facts["operations"] = {name: row[0] for name, row in found.operations.items()}
    facts["latencies"] = sorted(found.latencies)
    return facts


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_said_of_a_trace_is_true(seed: int, tmp_path: Path) -> None:
    simulation = simulated(seed)
    verdicts = []
    for maker in MAKERS:
        found = explain_traces([written(simulation, maker, tmp_path)])
        assert found.profiled_steps == len(simulation.steps)
        check_counts(found, simulation.steps[-1])
        check_operations(found, simulation.steps[-1])
        check_split(found, simulation.steps)
        check_latency(found, simulation.steps)
        verdicts.append(found.verdict)
    first, second = verdicts
    assert first.kind == second.kind
    assert first.factor == (second.factor and pytest.approx(second.factor, rel=0.02))


def check_counts(found: Explanation, true: Step) -> None:
    per_step = found.per_step
    assert per_step.launches.value == true.launches
    assert per_step.copies.value == true.copies
    assert per_step.fills is not None
    assert per_step.fills.value == true.fills
    assert per_step.synchronisations.value == true.synchronisations
    assert found.step.busy.value == pytest.approx(true.busiest_ns, rel=1e-6)
    if found.verdict.overhead_share is not None:
        assert found.verdict.overhead_share == pytest.approx(true.idle_share, abs=0.02)


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_a_clock_that_counts_from_1970_changes_no_number(seed: int, tmp_path: Path) -> None:
    """A float of 64 bits holds such a time in µs only to 0.25 µs; the file holds all digits."""
    path = written(simulated(seed), "kineto", tmp_path)
    later = tmp_path / "later.json"
    later.write_text(re.sub(r'(?<="ts": )[\d.]+', since_1970, path.read_text("utf-8")), "utf-8")
    first, second = explain_traces([path]), explain_traces([later])
    assert second.operations == first.operations
    assert second.device_time == first.device_time
    assert second.verdict == first.verdict


def since_1970(time_us: re.Match[str]) -> str:
    return str(1_712_345_678_901_234 + Decimal(time_us[0]))


def check_split(found: Explanation, steps: Sequence[Step]) -> None:
    rows = {int(row.device): row for row in found.device_time if not row.stream}
    for device in steps[0].split_ns:
        row = rows[device]
        for kind in KINDS:
            true_ns = statistics.mean(step.split_ns[device][kind] for step in steps)
            assert getattr(row, f"{kind}_ns") == pytest.approx(true_ns, rel=1e-6, abs=1), kind
        step_ns = statistics.mean(step.end - step.start for step in steps) * steps[0].tick_ns
        assert row.step_ns == pytest.approx(step_ns, rel=0.02)
        idle_ns = step_ns - statistics.mean(step.busy_ns[device] for step in steps)
        assert row.idle_ns == pytest.approx(idle_ns, rel=0.02, abs=0.02 * step_ns)


def check_latency(found: Explanation, steps: Sequence[Step]) -> None:
    latencies = []
    for step in steps:
        latencies += step.latencies_of_idle_device
    delays = found.launch_delays
    assert delays is not None
    if delays.latency_ns is not None:
        assert delays.latency_ns == pytest.approx(statistics.median(latencies), abs=1000)
    else:
        assert len(latencies) < 10 or delays.clocks == "apart"


def check_operations(found: Explanation, true: Step) -> None:
    rows = {row.name: row for row in found.operations}
    for name, (calls, host_ns) in true.operations.items():
        assert rows[name].count == calls
        assert rows[name].host_ns == pytest.approx(host_ns, rel=0.02, abs=3000)
