"""PyOpenCL: the step as an OpenCL kernel, on every device of every OpenCL platform, such as
NVIDIA's driver or PoCL.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from overhead.probes import register
from overhead.probes.base import Chain, DeviceTime, Probe, Space, Unavailable, vary
from overhead.probes.common.availability import import_library
from overhead.probes.in_order import InOrderChain
from overhead.probes.kernels import lcg, source
from overhead.results import Case, Target, because

_FILE = "step.cl"
_GLOBAL_SIZE = (256,)
_GROUP_SIZE = (64,)


@register
class PyopenclProbe(Probe):
    """PyOpenCL. ``entry=enqueue`` sets the argument once and calls ``enqueue_nd_range_kernel``;
    ``entry=call`` calls the kernel, which sets its argument each time.
    """

    name = "pyopencl"
    title = "PyOpenCL"
    mend = because("install-opencl", extras="opencl")
    distributions = ("pyopencl",)

    def targets(self) -> list[Target]:
        """The devices of all platforms."""
        cl = import_library("pyopencl", self.mend)
        targets = []
        for index, device in enumerate(self._devices(cl)):
            driver = f"{device.platform.name} {device.driver_version}"
            target = Target(
                stack=self.name,
                api="OpenCL",
                adapter=device.name.strip(),
                # Its number among all devices, by which ``open`` finds it again.
                device=str(index),
                software=_is_cpu(cl, device),
                driver=driver[:200],
                versions={"pyopencl": cl.VERSION_TEXT, "opencl": device.version.strip()},
            )
            targets.append(target)
        return targets

    def _devices(self, cl: Any) -> list[Any]:
        """The devices of all platforms (drivers), in the loader's order. Raises ``Unavailable`` if
        PyOpenCL raises an error, as it does without a platform.
        """
        devices = []
        try:
            for platform in cl.get_platforms():
                devices += platform.get_devices()
        # Also if there is no platform: the loader then finds no driver.
        except cl.Error as error:
            raise Unavailable(
                because("opencl-finds-no-device", text=error), because("install-opencl-driver")
            ) from error
        return devices

    def space(self, target: Target) -> Space:
        """The cases that a run measures: a launch by each ``entry`` (function of PyOpenCL that
        launches), and a launch with a wait or a read after each. ``early``: those that every run
        measures.
        """
        base = Case(
            pattern="per-submit", unit="launch", params={"entry": "enqueue", "wait": "finish"}
        )
        # ``vary``: the base with one axis changed.
        early = [vary(base, "entry", "call"), vary(base, "pattern", "wait-each")]
        return Space(base, extra=[vary(base, "pattern", "read-each")], early=early)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the case, on the device of the target. Raises ``Unavailable`` if another
        device has its number now.
        """
        cl = import_library("pyopencl", self.mend)
        index = int(target.device)
        devices = self._devices(cl)
        # The number comes from an earlier process, in which the loader may have listed other
        # devices.
        if index >= len(devices) or devices[index].name.strip() != target.adapter:
            raise Unavailable(
                because("device-is-another-now", device=target.device, adapter=target.adapter)
            )
        return OpenclChain(cl, devices[index], case)


def _is_cpu(cl: Any, device: Any) -> bool:
    """Whether the kernels of the device run on a CPU, such as those of PoCL."""
    return bool(device.type & cl.device_type.CPU)


class OpenclChain(InOrderChain):
    """A chain of n launches on an in-order queue. Device time is measured on another queue, which
    has profiling.
    """

    held_n = 512

    def __init__(self, cl: Any, device: Any, case: Case) -> None:
        """Compile the kernel for the device, allocate the words (the numbers on which it works),
        and launch once to warm up.
        """
        self._cl = cl
        self._by_call = case.params["entry"] == "call"
        self._seeds = lcg.seeds()
        self._context = cl.Context([device])
        text, _ = source(_FILE)
        self._program = cl.Program(self._context, text).build()
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self._words = cl.Buffer(self._context, flags, hostbuf=self._seeds)
        self._queue = cl.CommandQueue(self._context)

        one_word = np.empty(1, np.uint32)
        super().__init__(
            case,
            self._launch(self._queue),
            self._queue.finish,
            # The read: a copy of the first word to the host, which waits for it.
            functools.partial(cl.enqueue_copy, self._queue, one_word, self._words),
            # How many steps have run, from the words: each step replaces a word by the next random
            # number.
            count=self._steps,
            device=self._time,
            window={"precision": "uint32", **case.params},
        )
        if _is_cpu(cl, device) and not self.latency:
            # PoCL's threads sleep while the queue is empty, and the first launches wake them: 17 us
            # each, later ones 2 us. So the longest chain must take this much longer than one unit.
            self.least_ns = 20_000_000
        # One unit that ``executed`` does not count.
        self.warm_up(1)

    def _launch(self, queue: Any) -> Callable[[], Any]:
        """A function that launches the step on a queue; it returns the event of the launch."""
        kernel = self._cl.Kernel(self._program, "advance")
        # ``entry=call``: the kernel itself is called, and sets its argument each time.
        if self._by_call:
            return functools.partial(kernel, queue, _GLOBAL_SIZE, _GROUP_SIZE, self._words)
        kernel.set_args(self._words)
        enqueue = self._cl.enqueue_nd_range_kernel
        return functools.partial(enqueue, queue, kernel, _GLOBAL_SIZE, _GROUP_SIZE)

    def _steps(self) -> int:
        words = np.empty_like(self._seeds)
        self._cl.enqueue_copy(self._queue, words, self._words)
        return lcg.distance(self._seeds, words)

    def _time(self, n: int) -> DeviceTime:
        """Device time of n launches: from the end of a spinning kernel, behind which they are
        queued, to the end of the last launch.
        """
        cl = self._cl
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        queue = cl.CommandQueue(self._context, properties=profiling)
        launch = self._launch(queue)
        # A word for the spinning kernel, so that it does not change those of the step.
        scratch = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, 4)
        spin = cl.Kernel(self._program, "spin")
        # A turn takes at least 1 ns, and a launch less than 30 us: the kernel outlasts the launches
        # behind it.
        turns = np.uint32(n * 30_000)
        blocker = spin(queue, (1,), (1,), scratch, turns)
        queue.flush()  # the spinning kernel begins now, and not with the launches
        last = blocker
        for _ in range(n):
            last = launch()
        # Whether the blocker still ran when the last launch was queued, so that the device never
        # waited for the host.
        busy = blocker.command_execution_status != cl.command_execution_status.COMPLETE
        queue.finish()
        return DeviceTime(
            n,
            span=float(last.profile.end - blocker.profile.end),
            busy=busy,
            quantum=float(queue.device.profiling_timer_resolution),
            method="OpenCL profiling events behind a spinning kernel",
        )

    def kernels(self) -> dict[str, str]:
        """SHA-256 of ``step.cl``."""
        return {_FILE: source(_FILE)[1]}
