"""Workloads in WGSL on wgpu-native and Dawn."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from overhead.probes.base import DeviceTime, Unsupported
from overhead.probes.common.availability import longest_fused_chain
from overhead.probes.common.loops import Script, Statement, compile_python
from overhead.probes.common.workload_arms import WGSL_BINDINGS, refuse_wgsl, wgsl_window
from overhead.probes.webgpu.device_time import MOST_SUBMISSIONS, DeviceClock, wait_spins
from overhead.probes.webgpu.resources import (
    DeviceBuffers,
    bind_group_layout,
    compute_pipeline,
    entries,
    session,
    shader_module,
)
from overhead.probes.workload_chain import WorkChain, kernels_of, verified
from overhead.results import Case, Scalar, Target, because
from overhead.workloads import sources
from overhead.workloads.base import Array

_LIMITS = ("max-storage-buffer-binding-size", "max-buffer-size")


def open_case(target: Target, case: Case) -> WorkChain:
    """A chain of a workload that was compared with NumPy. Raises ``Unsupported`` or
    ``Unverified``.
    """
    refuse_wgsl(case)
    return verified(WebGpuWork(target, case))


class WebGpuWork(WorkChain):
    """A workload in one pass with all dispatches, one submission per dispatch, or one dispatch of n
    steps.
    """

    language = "wgsl"

    def __init__(self, target: Target, case: Case) -> None:
        super().__init__(case)
        self._text, self._entries = kernels_of(self, "wgsl")
        self._fused = case.pattern == "fused"
        self.overlap = "pipelined" if case.pattern == "per-submit" else "serial"
        self._checks = str(case.params.get("checks", "on"))
        self.session = session(target, self._checks)
        self.library = self.session.library
        self.library.forget_errors()
        if (
            self.workload.precision == "float16"
            and "shader-f16" not in self.session.device.features
        ):
            raise Unsupported(because("adapter-has-no-f16"))
        self._zeros = np.zeros(self.elements, np.uint32)
        self.resources = DeviceBuffers(self.session)
        self._bind_buffers()
        self._prepared = -1
        bounded = longest_fused_chain(target.adapter, turns=self.workload.turns)
        self.max_n = bounded if self._fused else (1 << 15) // len(self._entries)
        self.wait_spins = wait_spins(self.session)
        waiter = self.library.waiter(self.session.device, self.session.queue)
        self.wait = waiter  # type: ignore[method-assign]
        self.issue = self._loop()  # type: ignore[method-assign]
        self.library.raise_errors()

    def _bind_buffers(self) -> None:
        device, flags = self.session.device, self.resources.flags
        storage = self.resources.storage
        state = sources.pack_state(self.workload, self.zeros(), self.elements)
        inputs = sources.pack_inputs(self.workload, self.inputs)
        largest = max(state.nbytes, inputs.nbytes)
        if any(largest > int(device.limits[name]) for name in _LIMITS):
            raise Unsupported(because("device-binds-less", bytes=largest))
        self._state, self._counters = (
            self.resources.buffer(state, storage),
            self.resources.buffer(self._zeros, storage),
        )
        self._steps = self.resources.buffer(np.zeros(4, np.uint32), flags.UNIFORM | flags.COPY_DST)
        buffers = (
            self._state,
            self._counters,
            self.resources.buffer(inputs, flags.STORAGE),
            self._steps,
        )
        layout = bind_group_layout(device, WGSL_BINDINGS)
        self._group = device.create_bind_group(layout=layout, entries=entries(buffers))
        module = shader_module(self.session, self._text, self._checks)
        self._pipelines = [
            compute_pipeline(device, layout, module, entry.name) for entry in self._entries
        ]

    def _loop(self) -> Any:
        encoder = "encoder = device.create_command_encoder()"
        head = (
            encoder,
            "compute = encoder.begin_compute_pass()",
            "compute.set_bind_group(0, group)",
        )
        tail = ("compute.end()", "commands = encoder.finish()", "queue.submit([commands])")
        work = [
            (f"compute.set_pipeline(pipeline{i})", f"compute.dispatch_workgroups({entry.groups})")
            for i, entry in enumerate(self._entries)
        ]
        all_dispatches = tuple(itertools.chain(*work))
        if self._fused:
            parts: tuple[tuple[str, ...], ...] = ((*head, *all_dispatches), (), tail)
        elif self.case.pattern == "per-submit":
            parts = ((), tuple(itertools.chain(*((*head, *one, *tail) for one in work))), ())
        elif len(work) == 1:
            ((bind, dispatch),) = work
            parts = ((*head, bind), (dispatch,), tail)
        else:
            parts = (head, all_dispatches, tail)
        begin, each, end = (tuple(Statement(line, "") for line in part) for part in parts)
        if end:
            end = (*end, Statement("del compute, commands, encoder", ""))
        names = {"device": self.session.device, "queue": self.session.queue, "group": self._group}
        pipelines = {f"pipeline{i}": pipeline for i, pipeline in enumerate(self._pipelines)}
        return compile_python(Script(begin, each, end, 0 if end else 1, {**names, **pipelines}))

    def prepare(self, n: int) -> None:
        """For the pattern ``fused``, write n to the uniform buffer that the kernel reads."""
        if self._fused and n != self._prepared:
            self._write(self._steps, np.array([n, 0, 0, 0], np.uint32))
            self._prepared = n

    def _write(self, buffer: Any, values: Array) -> None:
        self.resources.write(buffer, values)
        self.wait()

    def issue(self, n: int) -> None:
        """Submit n steps; returns before they are done."""
        raise NotImplementedError  # bound in __init__

    def wait(self) -> None:
        """Wait for all submitted work."""
        raise NotImplementedError  # bound in __init__

    def put(self, state: dict[str, Array]) -> None:
        """Write the state and counters of 0 to the buffers, and wait."""
        self._write(self._state, sources.pack_state(self.workload, state, self.elements))
        self._write(self._counters, self._zeros)

    def fetch(self) -> tuple[dict[str, Array], Array]:
        """The state and the counters, read from the buffers. Raises ``Unverified`` if the library
        reported an error.
        """
        self.wait()
        self.library.raise_errors()
        queue = self.session.queue
        state = np.frombuffer(queue.read_buffer(self._state), self.workload.dtype)
        counters = np.frombuffer(queue.read_buffer(self._counters), np.uint32)
        return sources.unpack_state(self.workload, state, self.elements), counters

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n steps, or as many as fit into the queue, behind a long dispatch. Raises
        ``Unsupported``.
        """
        before = self.get()[1]
        try:
            return self._clock.measure(
                min(n, MOST_SUBMISSIONS) if self.case.pattern == "per-submit" else n
            )
        finally:
            self.aside += (self.get()[1] - before) % (1 << 32)

    @functools.cached_property
    def _clock(self) -> DeviceClock:
        return DeviceClock(self, self.resources)

    def kernels(self) -> dict[str, str]:
        """SHA-256 of the WGSL, by file name."""
        return {f"{self.workload.name}.wgsl": sources.sha256_of(self._text)}

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values for the results file."""
        held = wgsl_window(self.case.pattern, self._entries)
        return {
            **super().window(),
            **held,
            "wait": self.library.wait_name(self.session.device),
            "checks": self._checks,
        }

    def close(self) -> None:
        """Wait for all submitted work, then release the buffers."""
        if "wait" in vars(self):
            self.wait()
        self.resources.destroy()
