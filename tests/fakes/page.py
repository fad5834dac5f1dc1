"""A page without a browser. It keeps buffers as bytes and runs the step of a workload in NumPy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from overhead.probes._support.browser import messages
from overhead.results import Case
from overhead.workloads import sources, workloads

_GPU = messages.PageAdapter(description="A GPU", fallback=False)


class FakePage:
    """Stands in for a ``BrowserSession``.

    ``wrong``: factor on the results of the kernel. ``short``: bytes missing from each fetched piece. ``idle``: how many
    elements take no step. ``commands``: the commands received.
    """

    def __init__(self, case: Case, *, kind: str = "chromium", adapter: messages.PageAdapter | None = None) -> None:
        self.workload = workloads()[case.workload].at(case.params)
        self.elements = int(case.params["elements"])
        self.browser = SimpleNamespace(kind=kind)
        self.page = SimpleNamespace(clock_step_ns=5000, isolated=True, adapter=adapter or _GPU)
        self.commands: list[str] = []
        self.wrong, self.short, self.idle = 1.0, 0, 0

    def next_chain(self) -> int:
        return 1

    def ask(self, do: str, chain: int, **fields: Any) -> messages.PageAnswer:
        self.commands.append(do)
        given = getattr(self, f"_{do}")(**fields) or {}
        return messages.PageAnswer(id=1, **given)

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
        fixed = {field.name: part for field, part in zip(
            self.workload.fixed, inputs.reshape(len(self.workload.fixed), -1), strict=True)}  # fmt: skip
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

    def _close(self) -> None:
        return
