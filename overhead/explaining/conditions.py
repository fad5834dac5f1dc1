"""What the host does to a step as a program runs it, and the step under other conditions, in turn
in one process.
"""

from __future__ import annotations

import contextlib
import cProfile
import gc
import re
import statistics
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from overhead.explaining import record
from overhead.explaining.record import missing
from overhead.machine.host import HOST, Host
from overhead.machine.state import control_group, cpu_quota
from overhead.measure.sampling.clock import SystemClock, every_processor
from overhead.measure.sampling.collector import collector_off
from overhead.results import Figure, Reason, because
from overhead.timing.own_code import is_own_code

_ALONE_S, _STRETCH_S, _BLOCK_S = 1.0, 0.3, 0.03
"""Shortest times in seconds: of the step as it is, of one stretch of a condition, and of a block of
steps. Chosen, not measured: shorter ones hold too few blocks for an interval, and longer ones take
time from the alternatives.
"""
_STRETCHES = 4
"""Stretches of a condition: one before and one after of the step as it is, and two under it."""
_CONDITIONS = 5
"""How many conditions there are at most (``_trials``)."""
_LONGER = 3
"""A stretch with too few blocks for an interval may take this many times as long. Chosen, not
measured.
"""
_FEWEST_BLOCKS = 8
"""So many blocks of a step, or more, give an interval. Drawn again from 8 blocks of a normal
distribution, the interval held the true mean in 88 of 100 tries, from 3 in 75, from 2 in 48; that
of one block has no width.
"""
_DRAWS = 1000
"""How often the blocks are drawn again for an interval."""
_BUSY_THREAD = 0.02
"""Another thread is busy if it runs for this share of the time or more. Chosen, not measured; a
lower share would blame threads of Inductor, which wait for work.
"""
REFERENCE = because("as-the-host-runs-it")
"""The row that the gains of the conditions are relative to."""
WITHOUT_COLLECTION = because("without-collection")
SWITCHING_OFTEN = because("switching-threads-often")
CONDITIONS_BY_OLDER_NAME: Mapping[str, Reason] = {
    "as it runs": REFERENCE,
    "without garbage collection": WITHOUT_COLLECTION,
}
"""What older files, which have no code, call the conditions that something is decided by."""
_MOST_BUSY = 16
_BUSY_START_S = 0.05
"""So long busy processes get to start. Chosen, not measured."""
_SHORT_SWITCH_S = 1e-4
"""The interval of ``SWITCHING_OFTEN``; Python's own is 5 ms. Chosen, not measured."""
_BUSY_PROGRAM = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    pass"
HOST_UNITS = {"preemptions": "per second", "longest_pause": "ns"}
"""Units of figures of ``Explanation.host``; that of the others is ``ratio``."""


class Condition(Struct, frozen=True):
    """The step under one condition on the host (``what``), such as without garbage collection.

    Times of a step in ns, one for each block of steps that were timed together: ``usual`` as the
    host runs it, ``under`` the condition.
    """

    what: Reason
    usual: list[float]
    under: list[float]


@contextlib.contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """A context beside which so many other processes keep processors busy, to measure on a machine
    that is in use.
    """
    with contextlib.ExitStack() as stack:
        for _ in range(number):
            # The program is an endless loop, which ends by itself if its parent ends. ``-S``:
            # without the module ``site``, which it does not need.
            process = subprocess.Popen([sys.executable, "-S", "-c", _BUSY_PROGRAM])
            # At the end the process is killed first, then waited for.
            stack.enter_context(process)
            stack.callback(process.kill)
        yield


def conditions_s(step_s: float) -> float:
    """About how long all conditions take for a step of ``step_s``, s."""
    shortest_s = _STRETCHES * _STRETCH_S
    # A long step runs until there are enough blocks of it: half of them before and half after the
    # condition, and all under it. A block is one such step.
    enough_blocks_s = 2 * _FEWEST_BLOCKS * step_s
    # A stretch with too few blocks goes on, up to ``_LONGER`` times its usual time.
    condition_s = min(_LONGER * shortest_s, max(shortest_s, enough_blocks_s))
    return _CONDITIONS * condition_s


def condition_rows(found: Sequence[Condition]) -> list[record.Alternative]:
    """The rows of the table of conditions: the step as the host runs it, then under each condition
    with its gain, how many times as fast the step is under it.

    The intervals hold 95 % of resampled means of blocks. Too few blocks give no interval, and no
    gain.
    """
    if not found:
        return []
    # A fixed seed, so that the same times always give the same intervals.
    draw = np.random.default_rng(0)
    # The first row is the step as it is. Each condition took turns with it, so it has the times of
    # all these turns. It has no gain, because the gains of the others are relative to it.
    usual: list[float] = []
    for condition in found:
        usual += condition.usual
    reference_gain = missing("gain", because("reference-of-gains"), "ratio")
    rows = [_row(REFERENCE, _step(usual, _resampled_means(draw, usual)), reference_gain)]

    for condition in found:
        # A gain compares only times that were measured in turn: the host's speed changes.
        usual_means = _resampled_means(draw, condition.usual)
        under_means = _resampled_means(draw, condition.under)
        if usual_means is None or under_means is None:
            fewest = min(len(condition.usual), len(condition.under))
            gain = missing("gain", few_blocks(fewest), "ratio")
        else:
            # The gain: the time as the host runs it over that under the condition. Arrays of
            # resampled means give its interval in the same way.
            ratio = np.mean(condition.usual) / np.mean(condition.under)
            gain = _with_interval("gain", "ratio", ratio, usual_means / under_means)
        rows.append(_row(condition.what, _step(condition.under, under_means), gain))
    return rows


def few_blocks(number: int) -> Reason:
    """Why there is no interval."""
    if number == 1:
        return because("measured-once")
    return because("measured-too-few-times", number=number)


def _row(condition: Reason, step: Figure, gain: Figure) -> record.Alternative:
    """The step under a condition, in the form of an alternative to the step: the file has both in
    one list. Unlike an alternative, a condition has no one-off cost.
    """
    return record.Alternative(
        name=condition.code,
        kind="condition",
        condition=condition,
        status="ok",
        step=step,
        gain=gain,
        making=missing("making", because("nothing-is-made")),
        repaid_after=missing("repaid_after", because("nothing-is-made"), "count"),
        reason=step.reason,
    )


def _resampled_means(draw: np.random.Generator, times: Sequence[float]) -> np.ndarray | None:
    """Means of the times, each of as many times drawn from them with replacement (a bootstrap):
    their spread gives the interval of the mean. ``times``: of a step in each block. None if there
    are too few for an interval.
    """
    if len(times) < _FEWEST_BLOCKS:
        return None
    # Rows: draws; columns: the times of a draw.
    means: np.ndarray = draw.choice(times, (_DRAWS, len(times))).mean(axis=1)
    return means


def _step(times: Sequence[float], resampled: np.ndarray | None) -> Figure:
    """The mean time of a step, with an interval if its blocks were drawn again."""
    mean = np.mean(times)
    if resampled is None:
        return Figure(name="step", value=float(mean), reason=few_blocks(len(times)), processes=1)
    return _with_interval("step", "ns", mean, resampled)


def _with_interval(name: str, unit: str, value: np.floating, resampled: np.ndarray) -> Figure:
    """The figure with the interval that holds 95 % of its resampled values."""
    low, high = np.percentile(resampled, (2.5, 97.5))
    return Figure(
        name=name, unit=unit, value=float(value), low=float(low), high=float(high), processes=1
    )


def read_counters(host: Host) -> dict[str, int]:
    """What Linux has counted so far for this thread and its control group (of a container); 0 where
    the system has no such counter.

    ``queued``: ns in which the thread waited for a processor. ``throttled``: ns in which the CPU
    limit of the container stopped it. ``preemptions``: how often it lost its processor to another
    thread.
    """
    # Its second number is the time that the thread waited in the queue of a processor, ns. Linux
    # tells the throttled time in us.
    schedstat = host.read("/proc/thread-self/schedstat").split()
    status = host.read("/proc/thread-self/status")
    switches = re.search(r"^nonvoluntary_ctxt_switches:\s*(\d+)", status, re.M)
    throttled = re.search(r"^throttled_usec (\d+)", control_group(host, "cpu.stat"), re.M)
    return {
        "queued": int(schedstat[1]) if len(schedstat) > 1 else 0,
        "preemptions": int(switches[1]) if switches else 0,
        "throttled": 1000 * int(throttled[1]) if throttled else 0,
    }


def other_threads(known: Collection[int]) -> list[int]:
    """The Python threads that the program of the user started: the numbers by which the system
    knows them. ``known``: the ``ident`` of each thread that was there before the program.
    """
    # Threads that Python enumerates may have no frame: they have not begun, or run no Python.
    # Those with a frame are known by their ``ident``, and the system knows them by ``native_id``.
    running = sys._current_frames().keys() - set(known)
    numbers = []
    for thread in threading.enumerate():
        if thread.ident in running and thread.native_id is not None:
            numbers.append(thread.native_id)
    return numbers


def thread_times(host: Host, threads: Sequence[int]) -> dict[int, float]:
    """How long each of these threads of this process has run so far, ns, where that is known.
    ``threads``: by the system's numbers. A thread that ran for much of a time is busy in it.
    """
    times_ns = {}
    for thread in threads:
        # The first number is how long the thread has run; a thread that has ended has no file.
        numbers = host.read(f"/proc/self/task/{thread}/schedstat").split()
        if numbers:
            times_ns[thread] = float(numbers[0])
    return times_ns or _thread_times_by_psutil(threads)  # other systems than Linux have no /proc


def _thread_times_by_psutil(threads: Sequence[int]) -> dict[int, float]:
    """How long each of these threads has run so far, ns, on systems without ``/proc``; nothing
    without psutil.
    """
    try:
        import psutil
    except ImportError:  # in another Python, which needs little
        return {}
    try:
        of_process = psutil.Process().threads()
    except (psutil.Error, OSError):
        return {}
    # User and system time together are the CPU time of a thread.
    times_s = {each.id: each.user_time + each.system_time for each in of_process}
    return {thread: 1e9 * times_s[thread] for thread in threads if thread in times_s}


def _busy_threads(before: Mapping[int, float], after: Mapping[int, float], ns: float) -> int:
    """How many threads ran for a share of this time (``ns``) that another thread could notice.
    ``before``, ``after``: how long each thread had run, ns.
    """
    both = before.keys() & after.keys()
    busy = [thread for thread in both if after[thread] - before[thread] >= _BUSY_THREAD * ns]
    return len(busy)


_PROCESSOR_AFTER_NAME = 36
"""The index of the processor among the fields of ``/proc/PID/stat`` after the program's name: it is
field 39 (``man proc_pid_stat``), and the name is field 2.
"""


def is_far(host: Host, bus: str) -> bool:
    """Whether this thread's processor is known to be far from a GPU: the two are in different NUMA
    nodes, parts of the machine with their own memory. ``bus``: the address of the GPU on the PCI
    bus.
    """
    gpu_node = host.read(f"/sys/bus/pci/devices/{bus}/numa_node")
    # The name of the program stands in brackets, and may have brackets and spaces itself.
    fields = host.read("/proc/thread-self/stat").rpartition(")")[2].split()
    # A machine with one node says -1, and other systems have no such files.
    if not gpu_node.isdecimal() or len(fields) <= _PROCESSOR_AFTER_NAME:
        return False
    # The number of the processor on which this thread ran last: the fields are numbered from the
    # name on. The folder of a processor holds one entry with the name of its node, such as node0.
    processor = fields[_PROCESSOR_AFTER_NAME]
    nodes = host.names(f"/sys/devices/system/cpu/cpu{processor}/node[0-9]*")
    return bool(nodes) and not nodes[0].endswith(f"/node{gpu_node}")


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """A context in which Python collects no garbage: one of the conditions that a step is timed
    under.
    """
    try:
        with collector_off():
            yield
    finally:
        gc.collect()  # now, so that it does not count in the next stretch


@contextlib.contextmanager
def _on_one_core(processor: int) -> Iterator[None]:
    """A context in which this thread runs on one processor only."""
    # ``move`` binds this thread to processors.
    clock = SystemClock()
    clock.move([processor])
    try:
        yield
    finally:
        clock.move([])  # no processor named: all are allowed again


@contextlib.contextmanager
def _beside_busy_processes(number: int) -> Iterator[None]:
    """A context beside which so many processes keep processors busy from the start on."""
    with busy_processes(number):
        time.sleep(_BUSY_START_S)
        yield


@contextlib.contextmanager
def _switching_often() -> Iterator[None]:
    """A context in which Python's threads take turns after 0.1 ms, not 5 ms: a step waits less for
    a busy thread.
    """
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(_SHORT_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(usual_s)


@contextlib.contextmanager
def _one_library_thread(torch: types.ModuleType) -> Iterator[None]:
    """A context in which PyTorch computes an operation in one thread, not in one on each core."""
    usual_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(usual_threads)


class _Trial(NamedTuple):
    """A condition to measure a step under. ``condition``: the context in which it holds."""

    what: Reason
    condition: contextlib.AbstractContextManager[None]


def _trials(busy_threads: int) -> list[_Trial]:
    """The conditions to time the step under, in order: those that would change something in this
    process on this machine.

    ``busy_threads``: how many other Python threads of the program are busy.
    """
    trials = []
    if gc.isenabled():
        trials.append(_Trial(WITHOUT_COLLECTION, _without_collection()))
    cores = every_processor()  # empty where a thread cannot be bound to processors
    if len(cores) > 1:
        trials.append(_Trial(because("on-one-core"), _on_one_core(cores[0])))
    busy_number = min(len(cores), _MOST_BUSY)
    if busy_number > 0:
        # A process for each core, but no more than ``_MOST_BUSY``.
        what = because("beside-busy-processes", number=busy_number)
        trials.append(_Trial(what, _beside_busy_processes(busy_number)))
    # Python's threads take turns only if another one wants to run.
    if busy_threads > 0:
        trials.append(_Trial(SWITCHING_OFTEN, _switching_often()))
    torch = sys.modules.get("torch")
    if torch and torch.get_num_threads() > 1:
        trials.append(_Trial(because("one-library-thread"), _one_library_thread(torch)))
    return trials


class _CollectorPauses:
    """Keeps how long each garbage collection takes, ns. Python calls it at the start and at the end
    of each (``gc.callbacks``).
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._began = 0
        self.pauses_ns: list[int] = []

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began = self._now()
        else:
            self.pauses_ns.append(self._now() - self._began)


class HostMeasurement:
    """Runs a step in this process as a program would run it, on any core and with garbage
    collection, and measures what the host does meanwhile. The step runs in blocks: so many in a row
    that a block takes 30 ms, timed together.

    ``run``: runs so many steps, and waits for their work. ``one_ns``: a rough time of one step.
    ``threads``: the system's numbers of other Python threads that the program started. ``host``,
    ``now``: replaced in tests.
    """

    def __init__(
        self,
        run: Callable[[int], object],
        one_ns: float,
        threads: Sequence[int] = (),
        host: Host = HOST,
        now: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """``run``: runs so many steps. ``one_ns``: about how long one takes. ``threads``: other
        Python threads of the program.
        """
        self._run = run
        self._threads = threads
        self._host = host
        self._now = now
        self._block = _steps_of_a_block(one_ns)  # how many steps are a block

    def stretch(self, seconds: float, fewest: int = 1) -> list[float]:
        """Run blocks for this long; returns the time of a step in each, ns. It runs up to three
        times as long if there are fewer blocks than ``fewest``.
        """
        times: list[float] = []
        began = self._now()
        while True:
            passed_s = (self._now() - began) / 1e9
            enough = passed_s >= seconds and len(times) >= fewest
            # A very long step runs once in any case, and too few blocks end at ``_LONGER`` times
            # the seconds.
            if times and (enough or passed_s >= _LONGER * seconds):
                return times
            start = self._now()
            self._run(self._block)
            # A block is timed as a whole; its time over its steps is the time of a step.
            times.append((self._now() - start) / self._block)

    def shares(self) -> dict[str, float]:
        """What the host does while the step runs as it is for a second: shares of the time, and
        numbers, by name. They tell why steps are long or uneven; ``verdict.host_causes`` names the
        causes.
        """
        # First what is compared before and after. The collector keeps how long each garbage
        # collection takes; Python calls it at the start and at the end of each.
        collector = _CollectorPauses(self._now)
        clock = SystemClock()
        # A fixed piece of work, timed before and after: it takes longer on a slower clock.
        # Its first time is that of a loop in Python.
        reference_loop = [clock.reference_loop()[0] for _ in range(3)]
        thread_times_before = thread_times(self._host, self._threads)
        counters_before = read_counters(self._host)
        began = self._now()

        # CPU time of the process without that of this thread: that of its other threads.
        beside_before_ns = time.process_time_ns() - time.thread_time_ns()
        gc.callbacks.append(collector)
        self.stretch(_ALONE_S)
        gc.callbacks.remove(collector)
        beside_ns = time.process_time_ns() - time.thread_time_ns() - beside_before_ns

        # Counters only grow: what was added meanwhile, over the time that passed, is a share.
        passed_ns = max(1, self._now() - began)
        shares = {}
        for name, value in read_counters(self._host).items():
            shares[name] = (value - counters_before[name]) / passed_ns
        shares["preemptions"] *= 1e9  # a number for each second, not a share
        thread_times_after = thread_times(self._host, self._threads)
        busy_threads = _busy_threads(thread_times_before, thread_times_after, passed_ns)

        shares["collector"] = sum(collector.pauses_ns) / passed_ns
        shares["longest_pause"] = float(max(collector.pauses_ns, default=0))
        # A difference of two clocks, which may come out a little below zero.
        shares["other_threads"] = max(0.0, beside_ns / passed_ns)
        # 3 before the step and 15 after a second of it: the median tells the speed after the step,
        # and the best of all may also be one of before.
        reference_loop += [clock.reference_loop()[0] for _ in range(15)]
        # 1 is the best speed seen: how many times as long the reference loop usually takes.
        shares["clock"] = statistics.median(reference_loop) / min(reference_loop)
        shares["python_threads"] = float(busy_threads)
        # Facts that are no shares: the cores that the process may use, by a CPU limit too; the
        # threads of PyTorch; whether the GPU is far.
        cores = self._host.usable_cores()
        if cores:
            # ``cpu_quota``: the limit of the container in cores, which may be a fraction.
            shares["cores"] = min(float(cores), cpu_quota(self._host) or cores)
        torch = sys.modules.get("torch")
        if torch:
            shares["threads"] = float(torch.get_num_threads())
            if torch.cuda.is_initialized():
                shares["other_node"] = float(is_far(self._host, _gpu_bus(torch)))
        return shares

    def own_python(self) -> dict[str, float]:
        """The share of a step in which the program's own Python code runs, and no function of a
        library that it calls; as ``{"own_python": share}``, to be added to the other shares.
        """
        profile = cProfile.Profile()
        # One block of steps under Python's profiler. ``inlinetime`` is in seconds.
        profile.runcall(self._run, self._block)
        entries = profile.getstats()
        own_times = []
        for entry in entries:
            # The entry of a function in C has its name in place of the code. The inline time is
            # that of a function without the functions that it calls.
            if isinstance(entry.code, types.CodeType) and is_own_code(entry.code):
                own_times.append(entry.inlinetime)
        # The profile of a step that takes no time at all must not divide by zero.
        whole = max(1e-9, sum(entry.inlinetime for entry in entries))
        return {"own_python": sum(own_times) / whole}

    def conditions(self, busy_threads: int = 0) -> list[Condition]:
        """Time the step under each condition that applies here, such as on one CPU core, and before
        and after that as it is: so a slow change of the machine meets both alike.

        ``busy_threads``: how many other Python threads of the program are busy.
        """
        trials = _trials(busy_threads)
        # Blocks were sized by ``one_ns``, the quickest step of a trial. On a busy host steps take
        # longer: so many of them would be one long block, and few blocks give no interval.
        mean_step_ns = statistics.fmean(self.stretch(_STRETCH_S))
        self._block = _steps_of_a_block(mean_step_ns)
        # As many blocks before and after together as under the condition.
        half_of_blocks = _FEWEST_BLOCKS // 2
        conditions = []
        for trial in trials:
            before = self.stretch(_STRETCH_S, half_of_blocks)
            with trial.condition:
                under = self.stretch(2 * _STRETCH_S, _FEWEST_BLOCKS)
            after = self.stretch(_STRETCH_S, half_of_blocks)
            conditions.append(Condition(trial.what, before + after, under))
        return conditions


def _steps_of_a_block(step_ns: float) -> int:
    """How many steps are timed together as a block, so that it takes ``_BLOCK_S`` or more."""
    return max(1, round(_BLOCK_S * 1e9 / step_ns))


def _gpu_bus(torch: types.ModuleType) -> str:
    """The address on the PCI bus of the GPU that PyTorch uses, as Linux writes it."""
    gpu = torch.cuda.get_device_properties(torch.cuda.current_device())
    return f"{gpu.pci_domain_id:04x}:{gpu.pci_bus_id:02x}:{gpu.pci_device_id:02x}.0"
