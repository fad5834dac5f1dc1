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
from overhead.results import Case, Scalar, Target, because

_FILE, _GROUPS = "step.cl", ((256,), (64,))


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
        return [
            Target(
                stack=self.name,
                api="OpenCL",
                adapter=device.name.strip(),
                device=str(index),
                software=bool(device.type & cl.device_type.CPU),
                driver=f"{device.platform.name} {device.driver_version}"[:200],
                versions={"pyopencl": cl.VERSION_TEXT, "opencl": device.version.strip()},
            )
            for index, device in enumerate(self._devices(cl))
        ]

    def _devices(self, cl: Any) -> list[Any]:
        """The devices of all platforms, in the loader's order. Raises ``Unavailable`` if there is
        none.
        """
        try:
            return [device for platform in cl.get_platforms() for device in platform.get_devices()]
        except cl.Error as error:
            raise Unavailable(
                because("opencl-finds-no-device", text=error), because("install-opencl-driver")
            ) from error

    def space(self, target: Target) -> Space:
        """The cases of the launch by entry, and with a wait or a read after each."""
        base = Case(
            pattern="per-submit", unit="launch", params={"entry": "enqueue", "wait": "finish"}
        )
        early = [vary(base, "entry", "call"), vary(base, "pattern", "wait-each")]
        return Space(base, extra=[vary(base, "pattern", "read-each")], early=early)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the case, on the device of the target."""
        cl = import_library("pyopencl", self.mend)
        found = self._devices(cl)[int(target.device) :][:1]
        if [device.name.strip() for device in found] != [target.adapter]:
            raise Unavailable(
                because("device-is-another-now", device=target.device, adapter=target.adapter)
            )
        return OpenclChain(cl, found[0], case)


class OpenclChain(InOrderChain):
    """A chain of n launches on an in-order queue. Device time is measured on another queue, which
    has profiling.
    """

    held_n = 512

    def __init__(self, cl: Any, device: Any, case: Case) -> None:
        self._cl, self._by_call, self._seeds = cl, case.params["entry"] == "call", lcg.seeds()
        self._context = cl.Context([device])
        self._program = cl.Program(self._context, source(_FILE)[0]).build()
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self._words = cl.Buffer(self._context, flags, hostbuf=self._seeds)
        self._queue = cl.CommandQueue(self._context)
        read = functools.partial(cl.enqueue_copy, self._queue, np.empty(1, np.uint32), self._words)
        calls = self._launch(self._queue), self._queue.finish, read
        window: dict[str, Scalar] = {"precision": "uint32", **case.params}
        super().__init__(case, *calls, count=self._steps, device=self._time, window=window)
        # PoCL's threads sleep while the queue is empty, and the first launches wake them: 17 us
        # each, later ones 2 us.
        self.least_ns = 20_000_000 if device.type & cl.device_type.CPU and not self.latency else 0
        self.warm_up(1)

    def _launch(self, queue: Any) -> Callable[[], Any]:
        """A function that launches the step on a queue; it returns the event of the launch."""
        kernel = self._cl.Kernel(self._program, "advance")
        if self._by_call:
            return functools.partial(kernel, queue, *_GROUPS, self._words)
        kernel.set_args(self._words)
        return functools.partial(self._cl.enqueue_nd_range_kernel, queue, kernel, *_GROUPS)

    def _steps(self) -> int:
        words = np.empty_like(self._seeds)
        self._cl.enqueue_copy(self._queue, words, self._words)
        return lcg.distance(self._seeds, words)

    def _time(self, n: int) -> DeviceTime:
        cl, profiling = self._cl, self._cl.command_queue_properties.PROFILING_ENABLE
        queue = cl.CommandQueue(self._context, properties=profiling)
        launch, scratch = self._launch(queue), cl.Buffer(self._context, cl.mem_flags.READ_WRITE, 4)
        # A turn takes at least 1 ns, and a launch less than 30 us: the kernel outlasts the launches
        # behind it.
        blocker = last = cl.Kernel(self._program, "spin")(
            queue, (1,), (1,), scratch, np.uint32(n * 30_000)
        )
        queue.flush()
        for _ in range(n):
            last = launch()
        busy = blocker.command_execution_status != cl.command_execution_status.COMPLETE
        queue.finish()
        span, quantum = (
            last.profile.end - blocker.profile.end,
            queue.device.profiling_timer_resolution,
        )
        return DeviceTime(
            n, float(span), busy, float(quantum), "OpenCL profiling events behind a spinning kernel"
        )

    def kernels(self) -> dict[str, str]:
        """SHA-256 of ``step.cl``."""
        return {_FILE: source(_FILE)[1]}
