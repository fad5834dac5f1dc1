"""Workloads in WGSL on wgpu-native and Dawn."""

from __future__ import annotations

import functools
from collections.abc import Sequence
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
_MOST_DISPATCHES = 1 << 15
"""Dispatches of the longest chain, of which a step may have several. Chosen, not measured."""


def open_case(target: Target, case: Case) -> WorkChain:
    """A chain of a workload that was compared with NumPy. Raises ``Unsupported`` or
    ``Unverified``.
    """
    refuse_wgsl(case)
    return verified(WebGpuWork(target, case))


def _statements(lines: Sequence[str]) -> tuple[Statement, ...]:
    """The lines of a loop whose stages are not timed."""
    return tuple(Statement(line, "") for line in lines)


class WebGpuWork(WorkChain):
    """A chain that runs n steps of a workload (a computation that repeats one step on its own
    state) in generated WGSL: all dispatches in one pass, one submission per dispatch, or one
    dispatch that runs all steps (the pattern ``fused``).
    """

    language = "wgsl"

    def __init__(self, target: Target, case: Case) -> None:
        """Open the device, make buffers and pipelines of the workload, and compile the loop.

        ``issue`` and ``wait`` are stored on the instance, because methods of this class would add a
        Python call to what is timed.
        """
        super().__init__(case)
        # The WGSL of the workload, and the kernels that are one step, in order.
        self._text, self._entries = kernels_of(self, "wgsl")
        self._fused = case.pattern == "fused"
        # ``pipelined``: the device works while units are issued. One submission begins only after
        # that.
        self.overlap = "pipelined" if case.pattern == "per-submit" else "serial"
        self._checks = str(case.params.get("checks", "on"))
        self.session = session(target, self._checks)
        self.library = self.session.library
        self.library.forget_errors()
        has_float16 = "shader-f16" in self.session.device.features
        if self.workload.precision == "float16" and not has_float16:
            raise Unsupported(because("adapter-has-no-f16"))
        # To set the counters of steps, one for each element, to 0.
        self._zeros = np.zeros(self.elements, np.uint32)
        self.resources = DeviceBuffers(self.session)
        self._bind_buffers()
        self._written_n = -1  # the number of steps that the fused kernel would run: not yet known
        if self._fused:
            # ``turns``: a driver may limit the turns of all loops of a kernel, of which a step has
            # some.
            self.max_n = longest_fused_chain(target.adapter, turns=self.workload.turns)
        else:
            self.max_n = _MOST_DISPATCHES // len(self._entries)
        self.wait_spins = wait_spins(self.session)
        waiter = self.library.waiter(self.session.device, self.session.queue)
        self.wait = waiter  # type: ignore[method-assign]
        self.issue = self._loop()  # type: ignore[method-assign]
        self.library.raise_errors()

    def _bind_buffers(self) -> None:
        """Make the buffers that the generated WGSL names (state, counters of steps, inputs, and the
        number of steps), one bind group of them, and a pipeline for each kernel of a step. Raises
        ``Unsupported`` if the device cannot bind so large a buffer.
        """
        device = self.session.device
        flags = self.resources.flags
        storage = self.resources.storage
        # Zeros for the state: ``put`` sets it later.
        state = sources.pack_state(self.workload, self.zeros(), self.elements)
        inputs = sources.pack_inputs(self.workload, self.inputs)
        largest = max(state.nbytes, inputs.nbytes)
        # ``_LIMITS``: the names of the limits of one buffer.
        most = min(int(device.limits[name]) for name in _LIMITS)
        if largest > most:
            raise Unsupported(because("device-binds-less", bytes=largest))

        # The buffers in the order of the bindings in the WGSL.
        self._state = self.resources.buffer(state, storage)
        self._counters = self.resources.buffer(self._zeros, storage)
        input_buffer = self.resources.buffer(inputs, flags.STORAGE)
        # The first is the number of steps that the fused kernel runs; the others stay 0.
        four_words = np.zeros(4, np.uint32)
        self._steps = self.resources.buffer(four_words, flags.UNIFORM | flags.COPY_DST)
        buffers = (self._state, self._counters, input_buffer, self._steps)
        layout = bind_group_layout(device, WGSL_BINDINGS)
        self._group = device.create_bind_group(layout=layout, entries=entries(buffers))
        module = shader_module(self.session, self._text, self._checks)
        self._pipelines = [
            compute_pipeline(device, layout, module, entry.name) for entry in self._entries
        ]

    def _loop(self) -> Any:
        """The function ``issue(n)``, made of statements of the Python API.

        A submission and a pass for each dispatch; or, for n steps, one submission with one pass,
        which has all dispatches or one dispatch that loops. The pipeline of the only kernel is set
        once.
        """
        begin = [
            "encoder = device.create_command_encoder()",
            "compute = encoder.begin_compute_pass()",
            "compute.set_bind_group(0, group)",
        ]
        end = ["compute.end()", "commands = encoder.finish()", "queue.submit([commands])"]
        # Python then frees the objects. In a loop over submissions the next unit's objects replace
        # them.
        release = "del compute, commands, encoder"
        dispatches = []
        for number, entry in enumerate(self._entries):
            dispatches.append(
                [
                    f"compute.set_pipeline(pipeline{number})",
                    f"compute.dispatch_workgroups({entry.groups})",
                ]
            )

        names = {"device": self.session.device, "queue": self.session.queue, "group": self._group}
        for number, pipeline in enumerate(self._pipelines):
            names[f"pipeline{number}"] = pipeline

        if self.case.pattern == "per-submit":
            lines: list[str] = []
            for dispatch in dispatches:
                lines += [*begin, *dispatch, *end]
            return compile_python(Script(body=_statements(lines), names=names))

        of_step: list[str] = []
        for dispatch in dispatches:
            of_step += dispatch
        # ``head`` runs once, ``body`` once per step, and ``tail`` once.
        head = _statements(begin)
        body = _statements(of_step)
        if self._fused:
            # One dispatch runs all steps.
            head += body
            body = ()
        elif len(dispatches) == 1:
            # There is one kernel, so its pipeline need not be set again for each step.
            set_pipeline = body[:1]
            head += set_pipeline
            body = body[1:]
        tail = _statements([*end, release])
        return compile_python(Script(head, body, tail, per=0, names=names))

    def prepare(self, n: int) -> None:
        """For the pattern ``fused``, write n to the uniform buffer that the kernel reads."""
        if self._fused and n != self._written_n:
            self._write(self._steps, np.array([n, 0, 0, 0], np.uint32))
            self._written_n = n

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
        packed = sources.pack_state(self.workload, state, self.elements)
        self._write(self._state, packed)
        self._write(self._counters, self._zeros)

    def fetch(self) -> tuple[dict[str, Array], Array]:
        """The state by name, and the number of steps of each element, read from the buffers. Raises
        ``Unverified`` if the library reported an error: a rejected submission raises none itself.
        """
        self.wait()
        self.library.raise_errors()
        queue = self.session.queue
        state = np.frombuffer(queue.read_buffer(self._state), self.workload.dtype)
        counters = np.frombuffer(queue.read_buffer(self._counters), np.uint32)
        return sources.unpack_state(self.workload, state, self.elements), counters

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n steps, or of as many as fit into the queue, that are queued behind a
        long dispatch. Raises ``Unsupported`` if the adapter cannot measure it.

        The measurement may run the steps several times. What the counters of the elements gained is
        noted in ``aside``: these steps are no units of the chain.
        """
        if self.case.pattern == "per-submit":
            # Well below the capacity of any queue; a full one would hold the host.
            n = min(n, MOST_SUBMISSIONS)
        # ``get``: the state, and the number of steps that all counters show.
        _, steps_before = self.get()
        try:
            return self._clock.measure(n)
        finally:
            _, steps_after = self.get()
            self.aside += (steps_after - steps_before) % (1 << 32)  # a counter has 32 bits

    @functools.cached_property
    def _clock(self) -> DeviceClock:
        return DeviceClock(self, self.resources)

    def kernels(self) -> dict[str, str]:
        """SHA-256 of the WGSL, by file name."""
        return {f"{self.workload.name}.wgsl": sources.sha256_of(self._text)}

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values for the record: what every workload and every WGSL of
        workloads tells, the wait, and the checks that the library adds to kernels.
        """
        return {
            **super().window(),
            **wgsl_window(self.case.pattern, self._entries),
            "wait": self.library.wait_name(self.session.device),
            "checks": self._checks,
        }

    def close(self) -> None:
        """Wait for all submitted work, then release the buffers."""
        if "wait" in vars(self):
            self.wait()
        self.resources.destroy()
