"""What the host does beside a step: known parts are injected, and must be found, named and cost
what they cost.
"""

from __future__ import annotations

import concurrent.futures
import gc
import sys
import time
import types
import zlib
from pathlib import Path
from typing import Any

import pytest

from overhead.explaining.alternatives import ALTERNATIVES, PINNED
from overhead.explaining.conditions import (
    REFERENCE,
    SWITCHING_OFTEN,
    WITHOUT_COLLECTION,
    Condition,
    HostMeasurement,
    condition_rows,
    is_far,
    other_threads,
)
from overhead.explaining.profiling import measure_conditions, profile_step
from overhead.explaining.verdict import host_causes
from overhead.results import Figure, Reason, because, codes_of
from overhead.timing.own_code import is_own_code
from overhead.timing.steps import step_named
from tests.machine.test_machine import FakeHost

SCHEDSTAT, STATUS = "/proc/thread-self/schedstat", "/proc/thread-self/status"
CPU_STAT, CPU_MAX = "/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu.max"


class CountingHost(FakeHost):
    """A host whose counters a step advances. ``files``: other files, by path."""

    def __init__(self, files: dict[str, str] | None = None) -> None:
        super().__init__(files)
        self.now_ns = self.queued_ns = self.throttled_us = self.switches = 0

    def read(self, path: str) -> str:
        counters = {
            SCHEDSTAT: f"1 {self.queued_ns} 3",
            STATUS: f"voluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t{self.switches}",
            CPU_STAT: f"nr_throttled 3\nthrottled_usec {self.throttled_us}",
        }
        return self.files.get(path, counters.get(path, ""))


def shares_of(
    host: CountingHost, *, work_ns: int, queued_ns: int = 0, throttled_ns: int = 0
) -> dict[str, float]:
    """The shares of the time for steps of these parts: work, waiting for a processor, stopped by a
    CPU limit. Each step is preempted once.
    """

    def run(steps: int) -> None:
        host.now_ns += steps * (work_ns + queued_ns + throttled_ns)
        host.queued_ns += steps * queued_ns
        host.throttled_us += steps * throttled_ns // 1000
        host.switches += steps

    return HostMeasurement(run, work_ns, host=host, now=lambda: host.now_ns).shares()


@pytest.mark.parametrize("queued_ms", [1, 3, 9])
def test_the_time_that_a_thread_waits_for_a_processor_is_found_and_named(queued_ms: int) -> None:
    found = shares_of(CountingHost(), work_ns=10_000_000, queued_ns=queued_ms * 1_000_000)
    assert found["queued"] == pytest.approx(queued_ms / (10 + queued_ms), rel=0.01)
    steps_per_second = 1e9 / (10e6 + queued_ms * 1e6)
    assert found["preemptions"] == pytest.approx(steps_per_second, rel=0.01)
    cause, *_ = host_causes(found)
    assert cause == because(
        "waits-for-a-processor", share=found["queued"], preemptions=found["preemptions"]
    )


def test_the_time_that_a_cpu_limit_stops_a_thread_is_found_and_named_with_the_limit() -> None:
    # The limit: 150,000 µs of CPU time in each 100,000 µs, that is one and a half cores.
    host = CountingHost({CPU_MAX: "150000 100000"})
    found = shares_of(host, work_ns=7_000_000, throttled_ns=3_000_000)
    assert found["throttled"] == pytest.approx(0.3, rel=0.01)
    assert found["cores"] == 1.5
    first, *_ = host_causes(found)
    assert first == because("stopped-by-the-cpu-limit", share=found["throttled"], cores=1.5)


def test_of_two_causes_the_one_with_the_larger_share_comes_first() -> None:
    found = shares_of(
        CountingHost(), work_ns=5_000_000, queued_ns=1_000_000, throttled_ns=4_000_000
    )
    first, second, *_ = host_causes(found)
    assert codes_of(first) == {"stopped-by-the-cpu-limit"}
    assert codes_of(second) == {"waits-for-a-processor"}


def test_a_quiet_host_has_no_cause() -> None:
    quiet = {
        "queued": 0.01,
        "throttled": 0.0,
        "collector": 0.01,
        "threads": 8.0,
        "cores": 8.0,
        "clock": 1.05,
    }
    assert host_causes({**quiet, "other_node": 0.0, "python_threads": 0.0}) == []
    assert host_causes({}) == []


@pytest.mark.parametrize(
    ("shares", "cause"),
    [
        (
            {"threads": 8.0, "cores": 2.0},
            because("more-threads-than-cores", threads=8.0, cores=2.0, most=2),
        ),
        ({"clock": 1.3}, because("slow-test-loop", times=1.3)),
        (
            {"collector": 0.2, "longest_pause": 4e6},
            because("collects-garbage-freeze-it", share=0.2, pause_ns=4e6),
        ),
        ({"python_threads": 2.0}, because("other-python-threads", threads=2)),
        ({"other_node": 1.0}, because("gpu-in-another-node")),
    ],
)
def test_each_cause_on_the_host_is_found_with_its_numbers(
    shares: dict[str, float], cause: Reason
) -> None:
    assert host_causes(shares) == [cause]


def test_the_pauses_of_the_collector_are_found_and_the_step_without_them_gains_their_share() -> (
    None
):
    time_ns = [0]
    work_ns, pause_ns = 10_000_000, 5_000_000

    class Garbage:
        """An object of a cycle, which only the collector frees; this takes ``pause_ns``."""

        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            time_ns[0] += pause_ns

    def run(steps: int) -> None:
        for _ in range(steps):
            time_ns[0] += work_ns
            if gc.isenabled():
                Garbage()
                gc.collect(generation=0)  # the youngest alone: pytest has millions of older objects

    gc.unfreeze()
    measured = HostMeasurement(run, one_ns=work_ns + pause_ns, now=lambda: time_ns[0])
    found = measured.shares()
    assert found["collector"] == pytest.approx(pause_ns / (work_ns + pause_ns), rel=0.05)
    assert found["longest_pause"] == pause_ns
    conditions = [each for each in measured.conditions() if each.what == WITHOUT_COLLECTION]
    _, row = condition_rows(conditions)
    assert row.gain.value == pytest.approx((work_ns + pause_ns) / work_ns)
    assert gc.isenabled(), "as before the measurement"
    assert gc.get_freeze_count() == 0


def test_objects_that_the_program_froze_stay_frozen() -> None:
    time_ns = [0]

    def run(steps: int) -> None:
        time_ns[0] += 10_000_000 * steps

    kept: list[object] = [[]]
    gc.freeze()
    HostMeasurement(run, 10e6, now=lambda: time_ns[0]).conditions()
    collected_from = gc.get_objects()  # has no frozen objects
    assert not any(each is kept for each in collected_from)


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_a_package_outside_of_this_environment_is_not_the_users_own_code(folder: str) -> None:
    def code_in(file: str) -> types.CodeType:
        return compile("pass", file, "exec")

    other_environment = f"/home/somebody/other/lib/python3.11/{folder}"
    assert not is_own_code(code_in(f"{other_environment}/torch/nn/module.py"))
    assert is_own_code(code_in("/home/somebody/train.py"))


def test_the_own_python_of_a_program_is_told_from_the_functions_that_it_calls() -> None:
    numbers = list(range(20_000))

    def own(steps: int) -> None:
        total = 0
        for _ in range(steps):
            for value in numbers:
                total += value

    def calls_c(steps: int) -> None:
        for _ in range(steps):
            sum(numbers)

    share_in_own_loop = HostMeasurement(own, one_ns=1e6).own_python()["own_python"]
    assert share_in_own_loop > 0.9
    share_beside_sum = HostMeasurement(calls_c, one_ns=1e5).own_python()["own_python"]
    assert share_beside_sum < 0.2


@pytest.mark.parametrize(
    ("noise", "least", "most"),
    [(0.0, 1.249, 1.251), (0.2, 1.05, 1.5)],
    ids=["no noise", "every block 20 % longer or shorter"],
)
def test_the_gain_of_a_condition_is_that_of_the_means_and_its_interval_holds_it(
    noise: float, least: float, most: float
) -> None:
    """``least``, ``most``: how far the ends of the interval may lie."""
    usual_ns = [1e6 * (1 + noise), 1e6 * (1 - noise)] * 10
    under_ns = [8e5 * (1 + noise), 8e5 * (1 - noise)] * 10
    gain = 1e6 / 8e5
    _, row = condition_rows([Condition(Reason("a"), usual=usual_ns, under=under_ns)])
    assert row.gain.value == pytest.approx(gain)
    low, high = row.gain.low, row.gain.high
    assert low is not None
    assert high is not None
    rounding = 1e-9
    assert least <= low <= gain + rounding
    assert gain - rounding <= high <= most


@pytest.mark.parametrize(("usual_blocks", "blocks_under_it"), [(20, 1), (1, 20), (2, 2), (1, 1)])
def test_a_condition_that_was_measured_too_seldom_has_no_interval_and_no_gain(
    usual_blocks: int, blocks_under_it: int
) -> None:
    """An interval needs 8 blocks of steps; a gain needs both intervals."""
    usual_ns = [1e9] * usual_blocks
    under_ns = [2e9] * blocks_under_it
    reference, found = condition_rows([Condition(Reason("a"), usual=usual_ns, under=under_ns)])
    assert found.gain.value is None
    assert found.gain.reason
    for figure, blocks in ((reference.step, usual_blocks), (found.step, blocks_under_it)):
        has_too_few = blocks < 8
        assert figure.value is not None
        assert (figure.low is None) == has_too_few
        assert (figure.high is None) == has_too_few
        assert bool(figure.reason) == has_too_few


def test_the_step_as_the_host_runs_it_stands_before_the_conditions() -> None:
    first, second = Reason("a"), Reason("b", {"number": 2})
    quick = Condition(first, usual=[1e6] * 10, under=[3e6] * 10)
    slow = Condition(second, usual=[3e6] * 10, under=[3e6] * 10)
    rows = condition_rows([quick, slow])
    assert [row.condition for row in rows] == [REFERENCE, first, second]
    assert [row.name for row in rows] == [REFERENCE.code, "a", "b"]
    assert rows[0].step.value == (1e6 + 3e6) / 2, "the mean over the turns of both conditions"
    assert rows[0].gain.value is None
    assert condition_rows([]) == []


@pytest.mark.parametrize(("share_running", "busy"), [(0.9, 1), (0.05, 1), (0.005, 0), (0.0, 0)])
def test_only_a_thread_that_runs_beside_the_step_is_counted(
    share_running: float, busy: int
) -> None:
    """Thread 7 runs for this share of the time; thread 8 ran earlier and does nothing."""
    host = CountingHost()
    step_ns = 10_000_000

    def run(steps: int) -> None:
        host.now_ns += steps * step_ns
        ran_ns = round(share_running * host.now_ns)
        host.files["/proc/self/task/7/schedstat"] = f"{ran_ns} 0 1"
        host.files["/proc/self/task/8/schedstat"] = "123456789 0 1"

    host.files["/proc/self/task/7/schedstat"] = "0 0 1"
    host.files["/proc/self/task/8/schedstat"] = "123456789 0 1"
    measured = HostMeasurement(run, step_ns, threads=[7, 8], host=host, now=lambda: host.now_ns)
    assert measured.shares()["python_threads"] == busy


@pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="the system does not tell the times of threads"
)
def test_idle_threads_of_a_pool_are_not_blamed() -> None:
    known = [*sys._current_frames()]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        pool.submit(int).result()
        threads = other_threads(known)
        assert threads
        measured = HostMeasurement(
            lambda steps: sum(range(1000 * steps)), one_ns=2e4, threads=threads
        )
        shares = measured.shares()
    assert shares["python_threads"] == 0


def test_work_of_another_thread_during_the_step_is_seen() -> None:
    data = bytes(1 << 19)

    def hands_over(steps: int) -> None:
        for _ in range(steps):
            pool.submit(zlib.crc32, data)
            time.sleep(0.001)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        handed = HostMeasurement(hands_over, one_ns=1e7).shares()["other_threads"]
    alone = HostMeasurement(lambda steps: sum(range(1000 * steps)), one_ns=2e4).shares()
    assert alone["other_threads"] < handed / 10
    assert handed > 0.01, "of the time of the step"


def test_a_remedy_that_was_measured_to_help_nothing_is_not_recommended() -> None:
    def gain(value: float) -> dict[str, Figure]:
        """How many times as fast the step was measured to be without collection."""
        name = WITHOUT_COLLECTION.code
        return {
            name: Figure(
                name="gain", unit="ratio", value=value, low=value - 0.01, high=value + 0.01
            )
        }

    shares = {"collector": 0.2, "longest_pause": 4e6}
    first, *_ = host_causes(shares, gain(1.2))
    assert codes_of(first) == {"collects-garbage-freeze-it"}, "gc.freeze is recommended"
    (cause,) = host_causes(shares, gain(0.99))
    assert codes_of(cause) == {"collects-garbage"}, "without a remedy"


@pytest.mark.parametrize(("node", "far"), [("1", True), ("0", False), ("-1", False), ("", False)])
def test_a_launching_core_in_another_node_than_the_gpu_is_known_where_the_system_tells(
    node: str, far: bool
) -> None:
    # This thread runs on processor 5 (the 39th word), which is in node 0.
    files = {
        "/sys/bus/pci/devices/0000:3b:00.0/numa_node": node,
        "/proc/thread-self/stat": "7 (a (b) c) " + " ".join(["S", *["0"] * 35, "5", "0"]),
        "/sys/devices/system/cpu/cpu5/node0": "",
    }
    assert is_far(CountingHost(files), "0000:3b:00.0") == far


@pytest.mark.needs("torch")
def test_a_step_with_pinned_uploads_pins_a_tensor_again_only_after_it_was_written(
    monkeypatch: Any,
) -> None:
    torch = pytest.importorskip("torch")
    pinned: list[Any] = []
    sent: list[Any] = []

    def pin(tensor: Any) -> Any:
        pinned.append(tensor)
        return tensor.clone()

    def upload(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        sent.append((args, kwargs))
        return tensor

    for name, method in (("to", upload), ("cuda", upload), ("copy_", torch.Tensor.copy_)):
        monkeypatch.setattr(torch.Tensor, name, method)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: False)
    x = torch.ones(3)
    step = ALTERNATIVES[PINNED].make(lambda: x.to("cuda"))
    x.to("cuda")
    assert pinned == [], "the step as it is does not change"
    assert sent.pop() == (("cuda",), {})
    step(), step()
    assert len(pinned) == 1
    assert sent == [(("cuda",), {"non_blocking": True})] * 2
    x.add_(1)
    assert step().tolist() == [2, 2, 2]
    assert len(pinned) == 2, "again, because it was written"
    ALTERNATIVES[PINNED].make(lambda: x.to(torch.float64))()
    assert len(pinned) == 2, "another type is no upload"
    assert sent[-1] == ((torch.float64,), {})
    ALTERNATIVES[PINNED].make(lambda: x.cuda())()
    assert sent[-1] == ((), {"non_blocking": True})


BUSY_THREAD = """
import threading
stop = threading.Event()
def spin():
    while not stop.is_set():
        sum(range(100))
def build():
    threading.Thread(target=spin, daemon=True).start()
    import time
    def step():
        for _ in range(20):
            time.sleep(0)
    return step
"""


@pytest.mark.slow
def test_other_python_threads_are_seen_and_a_shorter_switch_interval_is_measured(
    tmp_path: Path,
) -> None:
    (tmp_path / "threads.py").write_text(BUSY_THREAD)
    source = step_named(f"{tmp_path}/threads.py:build")
    assert profile_step(source).shares["python_threads"] == 1
    rows = condition_rows(measure_conditions(source, busy_threads=1))
    (gain,) = [row.gain.value for row in rows if row.condition == SWITCHING_OFTEN]
    assert gain is not None
    assert gain > 1.5
