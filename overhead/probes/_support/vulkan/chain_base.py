"""What all Vulkan chains have: the state, a command pool, a way to wait, and the loops of one caller."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from overhead.probes import kernels
from overhead.probes._support.common.loop_text import Issue
from overhead.probes._support.common.native_loop import (
    Cycle,
    NativeCall,
    NativeLoop,
    NativeProgram,
    compile_ffi,
    compile_native,
    compile_stages,
)
from overhead.probes._support.vulkan.buffers import RING, State
from overhead.probes._support.vulkan.commands import WAITS, Commands, Wait, refuse
from overhead.probes._support.vulkan.device_time import spins, timer
from overhead.probes._support.vulkan.gpu import VulkanGpu
from overhead.probes.base import Chain, StartLatency
from overhead.results import Case, Scalar


class VulkanChain(Chain):
    """``issue`` writes command buffers that only a ``wait`` or ``prepare`` since the last ``issue`` has made safe."""

    kernel = "step"

    def __init__(self, gpu: VulkanGpu, case: Case) -> None:
        self._gpu, self._case = gpu, case
        self.unit = case.unit
        self._rotates = case.params.get("bindgroup") == "rotated"
        self._loops: list[NativeLoop] = []
        self._stages: Callable[[int], dict[str, Any]] | None = None
        self._undo = contextlib.ExitStack()
        try:
            kernel = gpu.kernel(self.kernel)
            self._commands = Commands(gpu, kernel)
            self._pool = gpu.command_pool()
            self._undo.callback(gpu.destroy, "CommandPool", self._pool)
            self._state = State(gpu, kernel.set_layout)
            self._undo.callback(self._state.close)
            self._wait = Wait(gpu, str(case.params.get("wait", next(iter(WAITS)))))
            self._undo.callback(self._wait.close)
            self.wait_spins = spins(gpu, self._wait.kind)
            self._program, self._issue = self._build()
        except BaseException:
            self._undo.close()
            raise
        # Bound to the instance, so that no frame of this class is in the window.
        self.issue = self._issue  # type: ignore[assignment, method-assign]
        self.wait = self._wait  # type: ignore[method-assign]

    @abc.abstractmethod
    def _build(self) -> tuple[NativeProgram, Issue]:
        """What the window holds, and the function that does it."""

    def issue(self, n: int) -> None:
        self._issue(n)

    def wait(self) -> None:
        self._wait()

    def prepare(self, n: int) -> None:
        self._gpu.drain()

    def executed(self) -> int:
        refuse([self._wait.failed, *(loop.failure() for loop in self._loops)])
        return self._state.steps()

    def stages(self, n: int) -> Mapping[str, Any]:
        if self._stages is None:
            self._stages = compile_stages(self._program, "native" if self._case.caller == "native" else "ffi")
        self.prepare(n)
        found = self._stages(n)
        self.wait()
        return found

    def start_latency(self, n: int) -> StartLatency:
        """ns from submission to the device's start, n times on an idle queue. Raises ``Unsupported``."""
        return timer(self._gpu).start_latency(n)

    def window(self) -> dict[str, Scalar]:
        per = {0: "one submission of all"}.get(self._program.per, "a submission each")
        if self._program.per > 1:
            per = f"a submission for {self._program.per}"
        return {
            "submits": per,
            "passes": "none: Vulkan compute has no passes",
            "calls": self._calls(),
            "bindgroup": "rotated" if self._rotates else "once",
            "barrier": str(self._case.params.get("barrier", "before each dispatch")),
            "arguments": "none",
            "wait": self._wait.words,
            "recording": True,
            "validation": "none",
            "precision": "uint32",
        }

    def _calls(self) -> float:
        """C calls a unit; those once a chain do not count."""
        around = len(self._program.head) + len(self._program.tail)
        return len(self._program.body) + (around / self._program.per if self._program.per else 0)

    def kernels(self) -> dict[str, str]:
        return {f"{self.kernel}.spv": kernels.binary(f"{self.kernel}.spv")[1]}

    def close(self) -> None:
        self._gpu.drain()
        self._undo.close()

    def _fence(self, signalled: bool = False) -> Any:
        fence = self._gpu.fence(signalled)
        self._undo.callback(self._gpu.destroy, "Fence", fence)
        return fence

    def _do(self, calls: Iterable[NativeCall]) -> None:
        """Make the calls now, outside every loop."""
        for call in calls:
            self._gpu.done(call.name, *call.ffi_args)

    def _compile(self, program: NativeProgram) -> NativeLoop:
        loop = (compile_native if self._case.caller == "native" else compile_ffi)(program)
        self._loops.append(loop)
        return loop

    def _nodes(self, cb: Any) -> Callable[[int], None]:
        """A function that puts n units into a command buffer that is being recorded, outside every window."""
        c = self._commands
        if self._case.params.get("barrier") == "ring":
            nodes = NativeProgram((c.barrier(cb),), (c.bind(cb, self._sets), c.dispatch(cb)), per=RING)
        else:
            nodes = NativeProgram(body=self._unit(cb))
        head, loop = self._head(cb, 0)[1:], self._compile(nodes)

        def record(n: int) -> None:
            self._do(head)
            loop(n)

        return record

    def _command_buffers(self, count: int) -> list[Any]:
        return self._gpu.command_buffers(self._pool, count)

    @property
    def _sets(self) -> Any:
        if not self._rotates:
            return self._state.own[0]
        return Cycle(self._state.own if self._case.dependency == "independent" else self._state.shared)

    def _head(self, cb: Any, flags: int) -> tuple[NativeCall, ...]:
        c = self._commands
        return (c.begin(cb, flags), c.pipeline(cb), *(() if self._rotates else (c.bind(cb, self._sets),)))

    def _unit(self, cb: Any) -> tuple[NativeCall, ...]:
        c = self._commands
        return (*((c.bind(cb, self._sets),) if self._rotates else ()), c.barrier(cb), c.dispatch(cb))
