"""What the host does to a step as a program runs it, and the step under other conditions, in turn in one process."""

from __future__ import annotations

import contextlib
import cProfile
import gc
import operator
import re
import statistics
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from overhead.explain import record
from overhead.explain.record import missing
from overhead.explain.state import is_own_code
from overhead.explain.waits import joined_actions
from overhead.machine.host import HOST, Host
from overhead.machine.state import control_group, cpu_quota
from overhead.measure.sampling.clock import SystemClock, every_processor
from overhead.results import Figure

_ALONE_S, _STRETCH_S, _BLOCK_S = 1.0, 0.3, 0.03
"""Seconds of the step as it is, of each of the stretches of a condition, and of a block of steps, at least."""
_MOST_BUSY = 16
_BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    pass"
HOST_UNITS = {"preemptions": "per second", "longest_pause": "ns"}
"""Units of figures of ``Explanation.host``; that of the others is ``ratio``."""

Condition = tuple[str, list[float], list[float]]
"""Its name, and times of a step in ns, one for each block: as it is, and under the condition."""


@contextlib.contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """A context beside which so many processes keep processors busy."""
    with contextlib.ExitStack() as stack:
        for _ in range(number):
            stack.callback(stack.enter_context(subprocess.Popen([sys.executable, "-S", "-c", _BUSY])).kill)
        yield


def condition_rows(found: Sequence[Condition]) -> list[record.Alternative]:
    """The step under each condition with its gain; the intervals hold 95 % of resampled means of blocks."""
    rows, draw = [], np.random.default_rng(0)
    for name, *sides in found:
        before, under = (draw.choice(times, (1000, len(times))).mean(axis=1) for times in sides)
        usual, changed = map(np.mean, sides)
        row = record.Alternative(
            name=name,
            kind="condition",
            status="ok",
            step=_resampled("step", "ns", changed, under),
            gain=_resampled("gain", "ratio", usual / changed, before / under),
            making=missing("making", "nothing is made"),
            repaid_after=missing("repaid_after", "nothing is made", "count"),
        )
        rows.append(row)
    return rows


def _resampled(name: str, unit: str, value: np.floating, drawn: np.ndarray) -> Figure:
    low, high = map(float, np.percentile(drawn, (2.5, 97.5)))
    return Figure(name=name, unit=unit, value=float(value), low=low, high=high, processes=1)


def read_counters(host: Host) -> dict[str, int]:
    """Counters of this thread and its control group; 0 where the system has none.

    ``queued``: ns it waited for a processor. ``throttled``: ns of its CPU limit. ``preemptions``: unasked switches.
    """
    queued = host.read("/proc/thread-self/schedstat").split()
    switches = re.search(r"^nonvoluntary_ctxt_switches:\s*(\d+)", host.read("/proc/thread-self/status"), re.M)
    throttled = re.search(r"^throttled_usec (\d+)", control_group(host, "cpu.stat"), re.M)
    return {
        "queued": int(queued[1]) if len(queued) > 1 else 0,
        "preemptions": int(switches[1]) if switches else 0,
        "throttled": 1000 * int(throttled[1]) if throttled else 0,
    }


def is_far(host: Host, bus: str) -> bool:
    """Whether this thread's processor and a GPU are known to be in different NUMA nodes."""
    near = host.read(f"/sys/bus/pci/devices/{bus}/numa_node")
    here = host.read("/proc/thread-self/stat").rpartition(")")[2].split()[36:37]
    nodes = host.names(f"/sys/devices/system/cpu/cpu{here[0]}/node[0-9]*") if here else []
    return near.isdecimal() and bool(nodes) and not nodes[0].endswith(f"/node{near}")


class HostMeasurement:
    """Runs blocks of a step in this process. ``run``: so many steps with their wait. ``one_ns``: a rough time of one.

    ``threads``: other Python threads that the program started. ``host``, ``now``: replaced in tests.
    """

    def __init__(
        self,
        run: Callable[[int], object],
        one_ns: float,
        threads: int = 0,
        host: Host = HOST,
        now: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._run, self._threads, self._host, self._now = run, threads, host, now
        self._block = max(1, round(_BLOCK_S * 1e9 / one_ns))

    def stretch(self, seconds: float) -> list[float]:
        """The time of a step in each block, ns, for this long."""
        times: list[float] = []
        began = self._now()
        while not times or self._now() - began < seconds * 1e9:
            start = self._now()
            self._run(self._block)
            times.append((self._now() - start) / self._block)
        return times

    def shares(self) -> dict[str, float]:
        """What the host does while the step runs as it is: shares of the time, and numbers."""
        pauses, clock = [0], SystemClock()

        def collecting(phase: str, info: dict[str, int]) -> None:
            pauses.append(self._now() if phase == "start" else self._now() - pauses.pop())

        canary = [clock.canary()[0] for _ in range(3)]
        first, began = read_counters(self._host), self._now()
        gc.callbacks.append(collecting)
        self.stretch(_ALONE_S)
        gc.callbacks.remove(collecting)
        ns = max(1, self._now() - began)
        found = {name: (value - first[name]) / ns for name, value in read_counters(self._host).items()}
        found["preemptions"] *= 1e9
        found |= {"collector": sum(pauses) / ns, "longest_pause": float(max(pauses))}
        canary += [clock.canary()[0] for _ in range(15)]
        found |= {"clock": statistics.median(canary) / min(canary), "python_threads": float(self._threads)}
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
        """The share of a step in which the program's own Python code runs, and no function that it calls."""
        profile = cProfile.Profile()
        profile.runcall(self._run, self._block)
        entries = profile.getstats()
        own = sum(e.inlinetime for e in entries if isinstance(e.code, types.CodeType) and is_own_code(e.code))
        return {"own_python": own / max(1e-9, sum(each.inlinetime for each in entries))}

    def conditions(self) -> list[Condition]:
        """The step under each condition that applies here, in turn with the step as it is."""
        clock, cores, usual = SystemClock(), every_processor(), sys.getswitchinterval()
        switch, torch = sys.setswitchinterval, sys.modules.get("torch")
        stop, resume = joined_actions([gc.freeze, gc.disable]), joined_actions([gc.unfreeze, gc.enable, gc.collect])
        set_threads, threads = (torch.set_num_threads, torch.get_num_threads()) if torch else (abs, 1)
        number = min(len(cores), _MOST_BUSY)
        busy = contextlib.ExitStack()

        def begin_busy() -> None:
            busy.enter_context(busy_processes(number))
            time.sleep(0.05)

        made: list[tuple[object, str, Callable[[], object], Callable[[], object]]] = [
            (gc.isenabled(), "without garbage collection", stop, resume),
            (len(cores) > 1, "bound to one core", lambda: clock.move(cores[:1]), lambda: clock.move([])),
            (number, f"beside {number} busy processes", begin_busy, busy.close),
            (self._threads, "switching threads often", lambda: switch(1e-4), lambda: switch(usual)),
            (threads > 1, "one library thread", lambda: set_threads(1), lambda: set_threads(threads)),
        ]
        found = list[Condition]()
        for _, name, begin, end in filter(operator.itemgetter(0), made):
            before = self.stretch(_STRETCH_S)
            begin()
            try:
                under = self.stretch(2 * _STRETCH_S)
            finally:
                end()
            found.append((name, before + self.stretch(_STRETCH_S), under))
        return found
