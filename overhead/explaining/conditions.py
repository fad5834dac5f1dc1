"""What the host does to a step as a program runs it, and the step under other conditions, in turn
in one process.
"""

from __future__ import annotations

import contextlib
import cProfile
import dataclasses
import gc
import re
import statistics
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from overhead.explaining import record
from overhead.explaining.record import missing
from overhead.machine.host import HOST, Host
from overhead.machine.state import control_group, cpu_quota
from overhead.measure.sampling.clock import SystemClock, every_processor
from overhead.results import Figure, Reason, because
from overhead.timing.own_code import is_own_code
from overhead.timing.waits import joined_actions

_ALONE_S, _STRETCH_S, _BLOCK_S = 1.0, 0.3, 0.03
"""Seconds of the step as it is, of each of the stretches of a condition, and of a block of steps,
at least.
"""
_LONGER = 3
"""A stretch with too few blocks for an interval may take this many times as long."""
_FEWEST_BLOCKS = 8
"""So many blocks of a step, or more, give an interval. Drawn again from 8 blocks of a normal
distribution, the interval held the true mean in 88 of 100 tries, from 3 in 75, from 2 in 48; that
of one block has no width.
"""
_BUSY_THREAD = 0.02
"""Another thread is busy if it runs for this share of the time or more. Threads of Inductor wait
for work.
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
_BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    pass"
HOST_UNITS = {"preemptions": "per second", "longest_pause": "ns"}
"""Units of figures of ``Explanation.host``; that of the others is ``ratio``."""


class Condition(Struct, frozen=True):
    """Times of a step in ns, one for each block: ``usual`` as the host runs it, ``under`` the
    condition.
    """

    what: Reason
    usual: list[float]
    under: list[float]


@dataclasses.dataclass(frozen=True)
class _Trial:
    """A condition that may apply: how it begins and ends."""

    applies: bool
    what: Reason
    begin: Callable[[], object]
    end: Callable[[], object]


@contextlib.contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """A context beside which so many processes keep processors busy."""
    with contextlib.ExitStack() as stack:
        for _ in range(number):
            stack.callback(
                stack.enter_context(subprocess.Popen([sys.executable, "-S", "-c", _BUSY])).kill
            )
        yield


def conditions_s(step_s: float) -> float:
    """About how long all conditions take, s."""
    usual_s = 4 * _STRETCH_S
    return 5 * min(_LONGER * usual_s, max(usual_s, 2 * _FEWEST_BLOCKS * step_s))


def condition_rows(found: Sequence[Condition]) -> list[record.Alternative]:
    """The step as the host runs it, then under each condition with its gain.

    The intervals hold 95 % of resampled means of blocks. Too few blocks give no interval, and no
    gain.
    """
    if not found:
        return []
    draw = np.random.default_rng(0)
    usual = [time_ns for one in found for time_ns in one.usual]
    rows = [
        _row(
            REFERENCE,
            _step(usual, _drawn(draw, usual)),
            missing("gain", because("reference-of-gains"), "ratio"),
        )
    ]
    for one in found:
        before, under = _drawn(draw, one.usual), _drawn(draw, one.under)
        gain = missing("gain", few_blocks(min(len(one.usual), len(one.under))), "ratio")
        if before is not None and under is not None:
            gain = _resampled(
                "gain", "ratio", np.mean(one.usual) / np.mean(one.under), before / under
            )
        rows.append(_row(one.what, _step(one.under, under), gain))
    return rows


def few_blocks(number: int) -> Reason:
    """Why there is no interval."""
    return (
        because("measured-once")
        if number == 1
        else because("measured-too-few-times", number=number)
    )


def _row(condition: Reason, step: Figure, gain: Figure) -> record.Alternative:
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


def _drawn(draw: np.random.Generator, times: Sequence[float]) -> np.ndarray | None:
    """Means of resampled blocks; None if there are too few blocks for an interval."""
    return (
        draw.choice(times, (1000, len(times))).mean(axis=1)
        if len(times) >= _FEWEST_BLOCKS
        else None
    )


def _step(times: Sequence[float], drawn: np.ndarray | None) -> Figure:
    mean = np.mean(times)
    if drawn is None:
        return Figure(name="step", value=float(mean), reason=few_blocks(len(times)), processes=1)
    return _resampled("step", "ns", mean, drawn)


def _resampled(name: str, unit: str, value: np.floating, drawn: np.ndarray) -> Figure:
    low, high = map(float, np.percentile(drawn, (2.5, 97.5)))
    return Figure(name=name, unit=unit, value=float(value), low=low, high=high, processes=1)


def read_counters(host: Host) -> dict[str, int]:
    """Counters of this thread and its control group; 0 where the system has none.

    ``queued``: ns it waited for a processor. ``throttled``: ns of its CPU limit. ``preemptions``:
    unasked switches.
    """
    queued = host.read("/proc/thread-self/schedstat").split()
    switches = re.search(
        r"^nonvoluntary_ctxt_switches:\s*(\d+)", host.read("/proc/thread-self/status"), re.M
    )
    throttled = re.search(r"^throttled_usec (\d+)", control_group(host, "cpu.stat"), re.M)
    return {
        "queued": int(queued[1]) if len(queued) > 1 else 0,
        "preemptions": int(switches[1]) if switches else 0,
        "throttled": 1000 * int(throttled[1]) if throttled else 0,
    }


def other_threads(known: Collection[int]) -> list[int]:
    """The system's numbers of the Python threads of this process, without those whose ``ident`` is
    known.
    """
    running = sys._current_frames().keys() - set(known)
    return [
        each.native_id
        for each in threading.enumerate()
        if each.ident in running and each.native_id is not None
    ]


def thread_times(host: Host, threads: Sequence[int]) -> dict[int, float]:
    """How long each of these threads of this process has run so far, ns, where that is known."""
    found = {}
    for thread in threads:
        words = host.read(f"/proc/self/task/{thread}/schedstat").split()
        if words:
            found[thread] = float(words[0])
    return found or _thread_times_by_psutil(threads)


def _thread_times_by_psutil(threads: Sequence[int]) -> dict[int, float]:
    try:
        import psutil
    except ImportError:  # in another Python, which needs little
        return {}
    try:
        times = {each.id: each.user_time + each.system_time for each in psutil.Process().threads()}
    except (psutil.Error, OSError):
        return {}
    return {thread: 1e9 * times[thread] for thread in threads if thread in times}


def _busy_threads(before: Mapping[int, float], after: Mapping[int, float], ns: float) -> int:
    """How many threads ran for a share of this time that another thread could notice."""
    return sum(
        after[thread] - before[thread] >= _BUSY_THREAD * ns
        for thread in before.keys() & after.keys()
    )


def is_far(host: Host, bus: str) -> bool:
    """Whether this thread's processor and a GPU are known to be in different NUMA nodes."""
    near = host.read(f"/sys/bus/pci/devices/{bus}/numa_node")
    here = host.read("/proc/thread-self/stat").rpartition(")")[2].split()[36:37]
    nodes = host.names(f"/sys/devices/system/cpu/cpu{here[0]}/node[0-9]*") if here else []
    return near.isdecimal() and bool(nodes) and not nodes[0].endswith(f"/node{near}")


class HostMeasurement:
    """Runs blocks of a step in this process. ``run``: so many steps with their wait. ``one_ns``: a
    rough time of one.

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
        self._run, self._threads, self._host, self._now = run, threads, host, now
        self._block = max(1, round(_BLOCK_S * 1e9 / one_ns))

    def stretch(self, seconds: float, fewest: int = 1) -> list[float]:
        """The time of a step in each block, ns, for this long, and longer if there are fewer blocks
        than ``fewest``.
        """
        times: list[float] = []
        began = self._now()
        while True:
            passed_s = (self._now() - began) / 1e9
            enough = passed_s >= seconds and len(times) >= fewest
            if times and (enough or passed_s >= _LONGER * seconds):
                return times
            start = self._now()
            self._run(self._block)
            times.append((self._now() - start) / self._block)

    def shares(self) -> dict[str, float]:
        """What the host does while the step runs as it is: shares of the time, and numbers."""
        pauses, clock = [0], SystemClock()

        def collecting(phase: str, info: dict[str, int]) -> None:
            pauses.append(self._now() if phase == "start" else self._now() - pauses.pop())

        canary = [clock.canary()[0] for _ in range(3)]
        others = thread_times(self._host, self._threads)
        first, began = read_counters(self._host), self._now()
        beside_ns = time.process_time_ns() - time.thread_time_ns()
        gc.callbacks.append(collecting)
        self.stretch(_ALONE_S)
        gc.callbacks.remove(collecting)
        beside_ns = time.process_time_ns() - time.thread_time_ns() - beside_ns
        ns = max(1, self._now() - began)
        found = {
            name: (value - first[name]) / ns for name, value in read_counters(self._host).items()
        }
        found["preemptions"] *= 1e9
        busy = _busy_threads(others, thread_times(self._host, self._threads), ns)
        found |= {"collector": sum(pauses) / ns, "longest_pause": float(max(pauses))}
        found["other_threads"] = max(0.0, beside_ns / ns)
        canary += [clock.canary()[0] for _ in range(15)]
        found |= {"clock": statistics.median(canary) / min(canary), "python_threads": float(busy)}
        if cores := self._host.usable_cores():
            found["cores"] = min(float(cores), cpu_quota(self._host) or cores)
        if torch := sys.modules.get("torch"):
            found["threads"] = float(torch.get_num_threads())
            if torch.cuda.is_initialized():
                of = torch.cuda.get_device_properties(torch.cuda.current_device())
                bus = f"{of.pci_domain_id:04x}:{of.pci_bus_id:02x}:{of.pci_device_id:02x}.0"
                found["other_node"] = float(is_far(self._host, bus))
        return found

    def own_python(self) -> dict[str, float]:
        """The share of a step in which the program's own Python code runs, and no function that it
        calls.
        """
        profile = cProfile.Profile()
        profile.runcall(self._run, self._block)
        entries = profile.getstats()
        own = sum(
            e.inlinetime
            for e in entries
            if isinstance(e.code, types.CodeType) and is_own_code(e.code)
        )
        return {"own_python": own / max(1e-9, sum(each.inlinetime for each in entries))}

    def conditions(self, busy_threads: int = 0) -> list[Condition]:
        """The step under each condition that applies here, in turn with the step as it is.

        ``busy_threads``: how many other Python threads of the program are busy.
        """
        clock, cores, usual = SystemClock(), every_processor(), sys.getswitchinterval()
        switch, torch = sys.setswitchinterval, sys.modules.get("torch")
        stop, resume = (
            joined_actions([gc.freeze, gc.disable]),
            joined_actions([gc.unfreeze, gc.enable, gc.collect]),
        )
        set_threads, threads = (
            (torch.set_num_threads, torch.get_num_threads()) if torch else (abs, 1)
        )
        number = min(len(cores), _MOST_BUSY)
        busy = contextlib.ExitStack()

        def begin_busy() -> None:
            busy.enter_context(busy_processes(number))
            time.sleep(0.05)

        trials = [
            _Trial(gc.isenabled(), WITHOUT_COLLECTION, stop, resume),
            _Trial(
                len(cores) > 1,
                because("on-one-core"),
                lambda: clock.move(cores[:1]),
                lambda: clock.move([]),
            ),
            _Trial(
                number > 0, because("beside-busy-processes", number=number), begin_busy, busy.close
            ),
            _Trial(busy_threads > 0, SWITCHING_OFTEN, lambda: switch(1e-4), lambda: switch(usual)),
            _Trial(
                threads > 1,
                because("one-library-thread"),
                lambda: set_threads(1),
                lambda: set_threads(threads),
            ),
        ]
        # The trial knows the quickest step. On a busy host, so many of these would be one long
        # block.
        self._block = max(1, round(_BLOCK_S * 1e9 / statistics.fmean(self.stretch(_STRETCH_S))))
        half = _FEWEST_BLOCKS // 2
        found = []
        for trial in trials:
            if trial.applies:
                before = self.stretch(_STRETCH_S, half)
                trial.begin()
                try:
                    under = self.stretch(2 * _STRETCH_S, _FEWEST_BLOCKS)
                finally:
                    trial.end()
                found.append(Condition(trial.what, before + self.stretch(_STRETCH_S, half), under))
        return found
