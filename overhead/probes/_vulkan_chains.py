"""Vulkan chains, one class a shape of submission: laps, one recording in or outside the window, launches, waits."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from overhead.probes import kernels
from overhead.probes._loops import Issue
from overhead.probes._vulkan_commands import WAITS, Commands, Wait, refuse
from overhead.probes._vulkan_gpu import Gpu
from overhead.probes._vulkan_state import RING, State
from overhead.probes._vulkan_time import StartLatency, alone, held, spins, timer
from overhead.probes.base import Chain, DeviceTime
from overhead.probes.native import Call, Cycle, Loop, Program, compile_ffi, compile_native, compile_stages
from overhead.results import Case, Scalar

LAP = 256
"""Units, or 8 submissions where that is more, between two uses of a fence."""
LAPS = 3
"""Laps whose command buffers may be pending while the next is recorded: the depth of the ring."""


class VulkanChain(Chain):
    """What all have: the state, a command pool, a way to wait, and the loops of one caller.

    ``issue`` writes command buffers that only a ``wait`` or ``prepare`` since the last ``issue`` has made safe.
    """

    kernel = "step"
    waits_inside = False

    def __init__(self, gpu: Gpu, case: Case) -> None:
        self._gpu, self._case = gpu, case
        self.unit = case.unit
        self._rotates = case.params.get("bindgroup") == "rotated"
        self._loops: list[Loop] = []
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
    def _build(self) -> tuple[Program, Issue]:
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
            "calls": len(self._program.head) + len(self._program.body) + len(self._program.tail),
            "bindgroup": "rotated" if self._rotates else "once",
            "barrier": str(self._case.params.get("barrier", "before each dispatch")),
            "arguments": "none",
            "wait": self._wait.words,
            "recording": True,
            "validation": "none",
            "precision": "uint32",
        }

    def kernels(self) -> dict[str, str]:
        return {f"{self.kernel}.spv": kernels.binary(f"{self.kernel}.spv")[1]}

    def close(self) -> None:
        self._gpu.drain()
        self._undo.close()

    def _fence(self, signalled: bool = False) -> Any:
        fence = self._gpu.fence(signalled)
        self._undo.callback(self._gpu.destroy, "Fence", fence)
        return fence

    def _do(self, calls: Iterable[Call]) -> None:
        """Make the calls now, outside every loop."""
        for call in calls:
            self._gpu.done(call.name, *call.ffi_args)

    def _compile(self, program: Program) -> Loop:
        loop = (compile_native if self._case.caller == "native" else compile_ffi)(program)
        self._loops.append(loop)
        return loop

    def _nodes(self, cb: Any) -> Callable[[int], None]:
        """A function that puts n units into a command buffer that is being recorded, outside every window."""
        c = self._commands
        if self._case.params.get("barrier") == "ring":
            nodes = Program((c.barrier(cb),), (c.bind(cb, self._sets), c.dispatch(cb)), per=RING)
        else:
            nodes = Program(body=self._unit(cb))
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

    def _head(self, cb: Any, flags: int) -> tuple[Call, ...]:
        c = self._commands
        return (c.begin(cb, flags), c.pipeline(cb), *(() if self._rotates else (c.bind(cb, self._sets),)))

    def _unit(self, cb: Any) -> tuple[Call, ...]:
        c = self._commands
        return (*((c.bind(cb, self._sets),) if self._rotates else ()), c.barrier(cb), c.dispatch(cb))


class Laps(VulkanChain):
    """``per-submit`` and ``per-k``: a command buffer and a submission for each group of k units.

    Command buffers turn in a ring of ``LAPS`` laps. The last submission of a lap signals the lap's fence, which is
    waited for before the lap is recorded again; the units that do not fill a lap have command buffers of their own and
    no fence, since ``issue`` begins on an idle queue. ``reset``: beginning a command buffer resets it (``buffer``), or
    the command buffers of a lap are reset together, by their pool.
    """

    overlap = "pipelined"

    def _build(self) -> tuple[Program, Issue]:
        self._k = int(self._case.params.get("k", 1))
        self._submissions = max(LAP // self._k, 8)
        self._lap = lap = self._submissions * self._k
        self._pooled = self._case.params.get("reset") == "pool"
        fences = [self._fence(signalled=True) for _ in range(LAPS)]
        laps = []
        for fence in fences:
            again, program = self._recorded(fence)
            recycle = Program(body=(*self._commands.wait_fence(fence), *again))
            laps.append((self._compile(recycle), self._compile(program)))
        again, program = self._recorded(None)
        fresh = [self._compile(Program(body=again))] if again else []
        rest_of = self._compile(program)

        def issue(n: int) -> None:
            whole, rest = divmod(n, lap)
            for turn in range(whole):
                recycle, record = laps[turn % LAPS]
                recycle(1)
                record(lap)
            for reset in fresh:
                reset(1)
            rest_of(rest)

        return program, issue

    def _recorded(self, fence: Any) -> tuple[tuple[Call, ...], Program]:
        """A lap on command buffers of its own, its last submission with the fence if there is one.

        First what must precede a use of these command buffers, where it is not in the program itself.
        """
        c, k, null = self._commands, self._k, self._gpu.ffi.NULL
        pool: Any = self._pool
        again: tuple[Call, ...] = ()
        if self._pooled:
            pool = self._gpu.command_pool(resets_buffers=False)
            self._undo.callback(self._gpu.destroy, "CommandPool", pool)
            again = (c.reset(pool),)
        buffers = self._gpu.command_buffers(pool, self._submissions)
        fences = [null] * (self._submissions - 1) + [null if fence is None else fence]
        cb, info, signal = (_spread(each, k) for each in (buffers, map(c.info, buffers), fences))
        head, tail = self._head(cb, c.once), (c.end(cb), c.submit(info, None if fence is None else signal))
        if k == 1:
            return again, Program(body=(*head, *self._unit(cb), *tail))
        return again, Program(head, self._unit(cb), tail, per=k)

    def stages(self, n: int) -> Mapping[str, Any]:
        chunks = []
        for at in range(0, n, self._lap):
            self.prepare(1)
            self.issue(0)
            chunks.append(super().stages(min(self._lap, n - at)))
        return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]} if chunks else {}

    def device(self, n: int) -> DeviceTime | None:
        return held(self, self._gpu, min(n, LAPS * self._lap))

    def window(self) -> dict[str, Scalar]:
        return {
            **super().window(),
            "ring": LAPS * self._submissions,
            "fence": f"each {self._submissions} submissions",
            "reset": f"the pool, each {self._submissions} submissions" if self._pooled else "each command buffer",
        }


class OnePass(VulkanChain):
    """``one-pass``: n dispatches recorded into one command buffer inside the window, and one submission."""

    overlap = "serial"
    max_n = 1 << 16

    def _build(self) -> tuple[Program, Issue]:
        c, (cb,) = self._commands, self._command_buffers(1)
        program = Program(self._head(cb, c.once), self._unit(cb), (c.end(cb), c.submit(c.info(cb))), per=0)
        return program, self._compile(program)

    def device(self, n: int) -> DeviceTime | None:
        return alone(self._gpu, n, self._nodes)


class Replay(VulkanChain):
    """``replay``: n dispatches recorded by ``prepare(n)``; the window holds one submission.

    With ``barrier=ring``, dispatches on the ring's eight buffers may overlap: the barrier comes before every eighth.
    """

    overlap = "serial"
    recorded = True
    max_n = 1 << 16

    def _build(self) -> tuple[Program, Issue]:
        c, (cb,) = self._commands, self._command_buffers(1)
        record = self._nodes(cb)
        self._recorded_n = -1
        program = Program(head=(c.submit(c.info(cb)),), per=0)
        submit = self._compile(program)

        def prepare(n: int) -> None:
            self._gpu.drain()
            if n != self._recorded_n:
                self._do([c.begin(cb, 0)])
                record(n)
                self._do([c.end(cb)])
                self._recorded_n = n

        self._prepare = prepare
        return program, lambda n: submit(0)

    def prepare(self, n: int) -> None:
        self._prepare(n)

    def device(self, n: int) -> DeviceTime | None:
        return alone(self._gpu, n, self._nodes)

    def stages(self, n: int) -> Mapping[str, Any]:
        return {}

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "recording": False}


class Launches(VulkanChain):
    """``launches``: one recording of one dispatch, submitted n times."""

    overlap = "pipelined"

    def _build(self) -> tuple[Program, Issue]:
        c, (cb,) = self._commands, self._command_buffers(1)
        self._do([*self._head(cb, c.simultaneous), *self._unit(cb), c.end(cb)])
        program = Program(body=(c.submit(c.info(cb)),))
        return program, self._compile(program)

    def device(self, n: int) -> DeviceTime | None:
        return held(self, self._gpu, n)

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "recording": False}


class Fused(VulkanChain):
    """``fused``: one dispatch whose loop runs n times; n is a push constant, recorded inside the window."""

    kernel = "fused"
    overlap = "serial"
    max_n = 1 << 26

    def _build(self) -> tuple[Program, Issue]:
        c, (cb,) = self._commands, self._command_buffers(1)
        self._steps = steps = self._gpu.ffi.new("uint32_t *")
        program = Program((c.begin(cb, c.once), *self._work(cb), c.end(cb), c.submit(c.info(cb))), per=0)
        loop = self._compile(program)

        def issue(n: int) -> None:
            steps[0] = n
            loop(0)

        return program, issue

    def _work(self, cb: Any) -> tuple[Call, ...]:
        c = self._commands
        return (c.pipeline(cb), c.bind(cb, self._sets), c.barrier(cb), c.push(cb, self._steps), c.dispatch(cb))

    def device(self, n: int) -> DeviceTime | None:
        def recorder(cb: Any) -> Callable[[int], None]:
            self._steps[0] = n
            return lambda n: self._do(self._work(cb))

        return alone(self._gpu, n, recorder)

    def stages(self, n: int) -> Mapping[str, Any]:
        return {}

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "arguments": "one push constant"}


class WaitEach(VulkanChain):
    """``wait-each``: a submission for each unit, and a wait for it before the next."""

    overlap = "serial"
    synchronous = True
    latency = True

    def _build(self) -> tuple[Program, Issue]:
        c, (cb,) = self._commands, self._command_buffers(1)
        fence = self._fence()
        fenced = self._wait.kind == "fence"
        wait = c.wait_fence(fence) if fenced else (c.idle(),)
        submit = c.submit(c.info(cb), fence if fenced else None)
        program = Program(body=(*self._head(cb, c.once), *self._unit(cb), c.end(cb), submit, *wait))
        return program, self._compile(program)

    def window(self) -> dict[str, Scalar]:
        words = "vkWaitForFences, vkResetFences" if self._wait.kind == "fence" else "vkQueueWaitIdle"
        return {**super().window(), "wait": f"{words} after each submission"}


CHAINS: dict[str, type[VulkanChain]] = {
    "per-submit": Laps, "per-k": Laps, "one-pass": OnePass, "replay": Replay, "launches": Launches, "fused": Fused,
    "wait-each": WaitEach,
}  # fmt: skip
"""Pattern to chain."""


def _spread(values: Iterable[Any], times: int) -> Cycle:
    """Each value for as many units."""
    return Cycle(tuple(value for value in values for _ in range(times)))
