"""Pages without a browser: one runs the step of a workload in NumPy, one runs any program by wgpu-native."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from overhead.probes.browser import messages
from overhead.probes.webgpu.resources import COMPUTE_STAGE
from overhead.results import Case
from overhead.workloads import sources, workloads

STORAGE, COPY_SRC, COPY_DST = 0x80, 0x4, 0x8
"""Flags of ``GPUBufferUsage``."""
_GPU = messages.PageAdapter(description="A GPU", fallback=False)


class _Session:
    """Stands in for a ``BrowserSession``. ``commands``: the commands received."""

    def __init__(self, kind: str = "chromium", adapter: messages.PageAdapter | None = None) -> None:
        self.browser = SimpleNamespace(kind=kind)
        self.page = SimpleNamespace(clock_step_ns=5000, isolated=True, adapter=adapter or _GPU)
        self.commands: list[str] = []

    def next_chain(self) -> int:
        return 1

    def ask(self, do: str, chain: int, **fields: Any) -> messages.PageAnswer:
        self.commands.append(do)
        given = getattr(self, f"_{do}")(**fields) or {}
        return messages.PageAnswer(id=1, **given)

    def _close(self) -> None:
        return


class FakePage(_Session):
    """Runs the step of a workload.

    ``wrong``: factor on the results of the kernel. ``short``: bytes missing from each fetched piece. ``idle``: how many
    elements take no step.
    """

    def __init__(self, case: Case, *, kind: str = "chromium", adapter: messages.PageAdapter | None = None) -> None:
        super().__init__(kind, adapter)
        self.workload = workloads()[case.workload].at(case.params)
        self.elements = int(case.params["elements"])
        self.wrong, self.short, self.idle = 1.0, 0, 0

    def _open(self, case: messages.CaseSpec, program: messages.PageProgram) -> None:
        self.case, self.program = case, program
        self.buffers = [bytearray(buffer.size) for buffer in program.buffers]

    def _write(self, buffers: list[int], at: int, data: bytes) -> None:
        (buffer,) = buffers
        assert len(data) <= messages.PIECE_BYTES
        assert at + len(data) <= len(self.buffers[buffer])
        self.buffers[buffer][at : at + len(data)] = data

    def _run(self, ns: list[int]) -> None:
        words = np.frombuffer(bytes(self.buffers[0]), self.workload.dtype)
        inputs = np.frombuffer(bytes(self.buffers[2]), self.workload.dtype)
        state = sources.unpack(self.workload, words, self.elements)
        fixed = {
            field.name: part
            for field, part in zip(self.workload.fixed, inputs.reshape(len(self.workload.fixed), -1), strict=True)
        }
        for t in range(sum(ns)):
            state = self.workload.step(np, state, fixed, np.array([t], np.int32))
            state = {name: (values * self.wrong).astype(self.workload.dtype) for name, values in state.items()}
        self.buffers[0][:] = sources.state(self.workload, state, self.elements).tobytes()
        counters = np.frombuffer(bytes(self.buffers[1]), np.uint32).copy()
        counters[self.idle :] += sum(ns)
        self.buffers[1][:] = counters.tobytes()

    def _time(self, ns: list[int], idle_ms: float, warm: bool) -> dict[str, Any]:
        self._run([*ns, len(ns) * warm])
        return {"samples": [[n, n, 2 * n] for n in ns]}

    def _fetch(self, buffers: list[int], at: int, size: int) -> dict[str, Any]:
        if not at:
            self.held = b"".join(bytes(self.buffers[buffer]) for buffer in buffers)
        return {"data": self.held[at : at + size - self.short]}


class GpuPage(_Session):
    """Runs the program that it gets on a device of wgpu-native, as the messages describe it.

    ``rewritten``: changes the text of each kernel. ``skipped``: dispatches at the end of a unit that do not run.
    ``restored``: changes the bytes of the state before each window.
    """

    def __init__(self, device: Any, *, kind: str = "chromium") -> None:
        super().__init__(kind)
        self.device, self.queue = device, device.queue
        self.rewritten: Callable[[str], str] = lambda text: text
        self.skipped = 0
        self.restored: Callable[[bytes], bytes] = lambda data: data

    def _open(self, case: messages.CaseSpec, program: messages.PageProgram) -> None:
        self.case, self.program = case, program
        usage = STORAGE | COPY_SRC | COPY_DST
        self.buffers = [self.device.create_buffer(size=one.size, usage=usage) for one in program.buffers]
        made = [self._kernel(one) for one in program.kernels]
        self.dispatches = [
            (made[entry.kernel][1], self._group(made[entry.kernel][0], entry.buffers), entry.groups)
            for entry in program.entries
        ]

    def _kernel(self, kernel: messages.PageKernel) -> tuple[Any, Any]:
        kinds = enumerate(kernel.bindings)
        entries = [{"binding": i, "visibility": COMPUTE_STAGE, "buffer": {"type": kind}} for i, kind in kinds]
        layout = self.device.create_bind_group_layout(entries=entries)
        shared = self.device.create_pipeline_layout(bind_group_layouts=[layout])
        module = self.device.create_shader_module(code=self.rewritten(kernel.code))
        compute = {"module": module, "entry_point": "main"}
        return layout, self.device.create_compute_pipeline(layout=shared, compute=compute)

    def _group(self, layout: Any, numbers: list[int]) -> Any:
        bound = [{"buffer": self.buffers[i], "offset": 0, "size": self.buffers[i].size} for i in numbers]
        entries = [{"binding": i, "resource": resource} for i, resource in enumerate(bound)]
        return self.device.create_bind_group(layout=layout, entries=entries)

    def _write(self, buffers: list[int], at: int, data: bytes) -> None:
        assert len(data) <= messages.PIECE_BYTES
        starts = itertools.accumulate((self.buffers[i].size for i in buffers), initial=0)
        for i, start in zip(buffers, starts, strict=False):
            part = data[max(start - at, 0) : max(start + self.buffers[i].size - at, 0)]
            if part:
                self.queue.write_buffer(self.buffers[i], max(at - start, 0), part)

    def _run(self, ns: list[int]) -> None:
        kept = self.dispatches[: len(self.dispatches) - self.skipped]
        for _ in range(sum(ns)):
            encoder = self.device.create_command_encoder()
            compute = encoder.begin_compute_pass()
            for pipeline, group, groups in kept:
                compute.set_pipeline(pipeline)
                compute.set_bind_group(0, group)
                compute.dispatch_workgroups(*groups)
            compute.end()
            self.queue.submit([encoder.finish()])

    def _count(self, ns: list[int]) -> dict[str, Any]:
        self._run(ns)
        return {"dispatches": sum(ns) * (len(self.dispatches) - self.skipped)}

    def _time(self, ns: list[int], idle_ms: float, warm: bool, buffers: list[int], data: bytes) -> dict[str, Any]:
        for n in ns:
            self._run([int(warm)])
            if restored := self.restored(data):
                self._write(buffers, 0, restored)
            self._run([n])
        return {"samples": [[n, n, 2 * n] for n in ns]}

    def _fetch(self, buffers: list[int], at: int, size: int) -> dict[str, Any]:
        held = b"".join(bytes(self.queue.read_buffer(self.buffers[i])) for i in buffers)
        return {"data": held[at : at + size]}
