"""A stack with an in-order queue in one file: a worker thread as the device. A unit of work is one
call in the thread.

overhead check --plugin docs/examples/my_gpu_stack.py
overhead run --plugin docs/examples/my_gpu_stack.py -p thread --profile quick

A stack of OpenCL, SYCL or another queue has the same shape: launch, finish and read become the
calls of its library.
"""

import functools
import queue
import threading
import time
from typing import Any

import numpy as np

from overhead.probes import register
from overhead.probes.base import Chain, DeviceTime, Probe, Space
from overhead.probes.in_order import InOrderChain
from overhead.probes.kernels import lcg
from overhead.results import Case, Scalar, Target


@register
class ThreadProbe(Probe):
    """One thread that takes calls from a queue."""

    name = "thread"
    title = "calls in another thread"
    mend = "nothing to install"

    def targets(self) -> list[Target]:
        # Import libraries here and in open(), in a worker: the parent process only imports this
        # file.
        import platform

        versions = {"python": platform.python_version()}
        return [Target(stack=self.name, api="threads", adapter="one thread", versions=versions)]

    def space(self, target: Target) -> Space:
        base = Case(pattern="per-submit", unit="call", params={"arguments": 1, "wait": "event"})
        return Space(base, axes={"pattern": ["wait-each", "read-each"], "arguments": [8]})

    def open(self, target: Target, case: Case) -> Chain:
        return ThreadChain(case)


class ThreadChain(InOrderChain):
    """n calls of the step, each on the values that the previous one wrote."""

    def __init__(self, case: Case) -> None:
        self._device = Device()
        self._seeds = lcg.seeds()
        self._words = self._seeds.copy()
        # Make the arguments once, so that only the operation is timed.
        launch = functools.partial(
            self._device.put, (step, (self._words,) * int(case.params["arguments"]))
        )
        super().__init__(
            case,
            launch,
            self._device.finish,
            self._read,
            count=self._count,
            device=self._time,
            window=WINDOW,
        )
        self.warm_up(1)

    def _count(self) -> int:
        # The values show how many steps ran, and that they ran in order.
        return lcg.distance(self._seeds, self._words)

    def _read(self) -> int:
        self._device.finish()
        return int(self._words[0])

    def _time(self, n: int) -> DeviceTime:
        """Hold the device until all units are in its queue, so that it never waits for one."""
        go = threading.Event()
        self._device.put((go.wait, ()))
        self._device.put((self._device.stamp, ()))
        self.issue(n)
        self._device.put((self._device.stamp, ()))
        go.set()
        self._device.finish()
        start, end = self._device.stamps
        self._device.stamps.clear()
        return DeviceTime(
            n, end - start, busy=True, quantum=1.0, method="clock readings in the thread"
        )

    def close(self) -> None:
        self._device.stop()


WINDOW: dict[str, Scalar] = {
    "operation": "x = x * a + b on 256 uint32",
    "queue": "SimpleQueue",
    "precision": "uint32",
}


def step(x: Any, *others: Any) -> None:
    """One step. The other arguments are the same array again and cost their passing alone."""
    np.multiply(x, np.uint32(lcg.MULTIPLIER), out=x)
    np.add(x, np.uint32(lcg.INCREMENT), out=x)


class Device:
    """A thread that runs the calls of a queue in order."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[Any, tuple[Any, ...]] | None] = queue.SimpleQueue()
        self.put = self._queue.put
        self.stamps: list[int] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Return when everything that is in the queue now has run."""
        done = threading.Event()
        self.put((done.set, ()))
        done.wait()

    def stamp(self) -> None:
        self.stamps.append(time.perf_counter_ns())

    def stop(self) -> None:
        self.put(None)
        self._thread.join()

    def _run(self) -> None:
        while call := self._queue.get():
            function, arguments = call
            function(*arguments)
