"""A WebGPU chain: one case that is open on a device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from overhead.probes.base import Chain, DeviceTime, Unverified
from overhead.probes.common import native_loop
from overhead.probes.common.availability import longest_fused_chain
from overhead.probes.common.loops import Issue, Script, Stages, compile_python, compile_python_stages
from overhead.probes.common.step import webgpu_window
from overhead.probes.kernels import lcg
from overhead.probes.webgpu import callers
from overhead.probes.webgpu.cases import StepSpec, steps
from overhead.probes.webgpu.device_time import MOST_SUBMISSIONS, DeviceClock, wait_spins
from overhead.probes.webgpu.resources import StepResources, session
from overhead.results import Case, Scalar, Target

WebgpuWait = Callable[[], None]


class WebGpuChain(Chain):
    """One case of the step. ``__init__`` replaces ``issue`` and ``wait`` by functions that need no method call."""

    def __init__(self, target: Target, case: Case) -> None:
        self.spec = spec = StepSpec.of(case)
        self.session = session(target, validation=spec.validation)
        self.library = self.session.library
        self.library.forget_errors()
        self.resources = StepResources(self.session, spec)
        self.executes = target.executes
        self.overlap = spec.overlap
        self.latency = self.synchronous = spec.waits_each
        self.max_n = _max_n(spec, target)
        self._wait_name, wait = self._waiter()
        self._loop = self._render_loop(wait)
        self.wait_spins = self.executes and wait_spins(self.session)
        self.wait = wait  # type: ignore[method-assign]
        self.issue = self._compile_loop()  # type: ignore[method-assign, assignment]
        self._written_n = -1
        self._steps_read = [0] * spec.buffers
        self._total = 0
        self.library.raise_errors()

    def _render_loop(self, wait: WebgpuWait) -> Script | native_loop.NativeProgram:
        if self.spec.caller == "binding":
            return callers.python_statements(steps(self.spec), self.resources, wait)
        return callers.c_calls(self.library, steps(self.spec), callers.step_arguments(self.resources))

    def _compile_loop(self) -> Issue:
        if isinstance(self._loop, Script):
            return compile_python(self._loop)
        return (native_loop.compile_native if self.spec.caller == "native" else native_loop.compile_ffi)(self._loop)

    def _waiter(self) -> tuple[str, WebgpuWait]:
        """The name of the wait, and the function that waits."""
        device, queue, data = self.resources.device, self.resources.queue, self.resources.data[0]
        match self.spec.wait:
            case "read-buffer":
                return "read-buffer", functools.partial(queue.read_buffer, data, 0, 4)
            case "map":
                return "map", self._map_wait()
        return self.library.wait_name(device), self.library.waiter(device, queue)

    def _map_wait(self) -> WebgpuWait:
        """A wait that copies 4 bytes to a staging buffer and maps it, like a program that reads results."""
        device, queue, data = self.resources.device, self.resources.queue, self.resources.data[0]
        staging = self.resources.staging()

        def wait() -> None:
            encoder = device.create_command_encoder()
            encoder.copy_buffer_to_buffer(data, 0, staging, 0, 4)
            queue.submit([encoder.finish()])
            staging.map_sync("READ")
            staging.unmap()

        return wait

    def prepare(self, n: int) -> None:
        """For the pattern ``fused``, write n to the uniform buffer that the kernel reads."""
        if self.spec.pattern == "fused" and n != self._written_n:
            self.resources.write(self.resources.uniform, np.array([n], np.uint32))
            self.wait()
            self._written_n = n

    def issue(self, n: int) -> None:
        raise NotImplementedError  # bound in __init__

    def wait(self) -> None:
        raise NotImplementedError  # bound in __init__

    def executed(self) -> int:
        """Steps since ``open`` according to the buffers; 0 on the Null backend of Dawn. Raises ``Unverified``."""
        self.wait()
        self.library.raise_errors()
        if not self.executes:
            return 0
        try:
            steps_read = self.resources.read()
        except Unverified:
            raise
        except Exception as error:  # the binding raises its own error classes
            raise Unverified(f"reading back: {type(error).__name__}: {str(error)[:300]}") from error
        self._total += sum(
            (now - before) % lcg.PERIOD for now, before in zip(steps_read, self._steps_read, strict=True)
        )
        self._steps_read = steps_read
        return self._total - (self._clock.steps if "_clock" in vars(self) else 0)

    def device(self, n: int) -> DeviceTime | None:
        """Device time behind a blocker. None if each unit waits, or if nothing runs. Raises ``Unsupported``."""
        if not self.executes or self.spec.waits_each:
            return None
        return self._clock.measure(min(n, MOST_SUBMISSIONS * (self.spec.per or n)))

    @functools.cached_property
    def _clock(self) -> DeviceClock:
        return DeviceClock(self, self.resources)

    def stages(self, n: int) -> Mapping[str, Sequence[int]]:
        """Durations of each stage, ns. Each duration includes one clock reading; ``clock`` contains nothing else."""
        self.prepare(n)
        found = self._stages(n)
        self.wait()
        return cast(Mapping[str, Sequence[int]], found)

    @functools.cached_property
    def _stages(self) -> Stages:
        if isinstance(self._loop, Script):
            return compile_python_stages(self._loop)
        return native_loop.compile_stages(self._loop, "native" if self.spec.caller == "native" else "ffi")

    def window(self) -> dict[str, Scalar]:
        spec = self.spec
        changed: dict[str, Scalar] = {"indirect": spec.indirect, "validation": spec.validation}
        return webgpu_window(spec.pattern, spec.per, spec.bindgroup, self._wait_name, **changed)

    def kernels(self) -> dict[str, str]:
        return {self.spec.kernel: self.resources.sha256}

    def close(self) -> None:
        self.wait()
        self.resources.destroy()


def _max_n(spec: StepSpec, target: Target) -> int:
    if spec.pattern == "fused":
        return longest_fused_chain(target.adapter)
    return {"per-submit": 1 << 17, "per-k": 1 << 18}.get(spec.pattern, 1 << 16)
