"""Vulkan chains, one class a shape of submission: laps, one recording in or outside the window, launches, waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from overhead.probes._support.common.loop_text import Issue
from overhead.probes._support.common.native_loop import Cycle, NativeCall, NativeProgram
from overhead.probes._support.vulkan.chain_base import VulkanChain
from overhead.probes._support.vulkan.device_time import alone, held
from overhead.probes.base import DeviceTime
from overhead.probes.kernels import LLVMPIPE_TURNS
from overhead.results import Scalar

LAP = 256
"""Units, or 8 submissions where that is more, between two uses of a fence."""
LAPS = 3
"""Laps whose command buffers may be pending while the next is recorded: the depth of the ring."""


class Laps(VulkanChain):
    """``per-submit`` and ``per-k``: a command buffer and a submission for each group of k units.

    Command buffers turn in a ring of ``LAPS`` laps. The last submission of a lap signals the lap's fence, which is
    waited for before the lap is recorded again; the units that do not fill a lap have command buffers of their own and
    no fence, since ``issue`` begins on an idle queue. ``reset``: beginning a command buffer resets it (``buffer``), or
    the command buffers of a lap are reset together, by their pool.
    """

    overlap = "pipelined"

    def _build(self) -> tuple[NativeProgram, Issue]:
        self._k = int(self._case.params.get("k", 1))
        self._submissions = max(LAP // self._k, 8)
        self._lap = lap = self._submissions * self._k
        self._pooled = self._case.params.get("reset") == "pool"
        fences = [self._fence(signalled=True) for _ in range(LAPS)]
        laps = []
        for fence in fences:
            again, program = self._recorded(fence)
            recycle = NativeProgram(body=(*self._commands.wait_fence(fence), *again))
            laps.append((self._compile(recycle), self._compile(program)))
        again, program = self._recorded(None)
        fresh = [self._compile(NativeProgram(body=again))] if again else []
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

    def _recorded(self, fence: Any) -> tuple[tuple[NativeCall, ...], NativeProgram]:
        """A lap on command buffers of its own, its last submission with the fence if there is one.

        First what must precede a use of these command buffers, where it is not in the program itself.
        """
        c, k, null = self._commands, self._k, self._gpu.ffi.NULL
        pool: Any = self._pool
        again: tuple[NativeCall, ...] = ()
        if self._pooled:
            pool = self._gpu.command_pool(resets_buffers=False)
            self._undo.callback(self._gpu.destroy, "CommandPool", pool)
            again = (c.reset(pool),)
        buffers = self._gpu.command_buffers(pool, self._submissions)
        fences = [null] * (self._submissions - 1) + [null if fence is None else fence]
        cb, info, signal = (_spread(each, k) for each in (buffers, map(c.info, buffers), fences))
        head, tail = self._head(cb, c.once), (c.end(cb), c.submit(info, None if fence is None else signal))
        if k == 1:
            return again, NativeProgram(body=(*head, *self._unit(cb), *tail))
        return again, NativeProgram(head, self._unit(cb), tail, per=k)

    def stages(self, n: int) -> Mapping[str, Any]:
        chunks = []
        for at in range(0, n, self._lap):
            self.prepare(1)
            self.issue(0)
            chunks.append(super().stages(min(self._lap, n - at)))
        return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]} if chunks else {}

    @property
    def held_n(self) -> int:
        """The most units that can be submitted while the device stands still."""
        return LAPS * self._lap

    def device(self, n: int) -> DeviceTime | None:
        return held(self, self._gpu, min(n, self.held_n))

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

    def _build(self) -> tuple[NativeProgram, Issue]:
        c, (cb,) = self._commands, self._command_buffers(1)
        program = NativeProgram(self._head(cb, c.once), self._unit(cb), (c.end(cb), c.submit(c.info(cb))), per=0)
        return program, self._compile(program)

    def device(self, n: int) -> DeviceTime | None:
        return alone(self._gpu, n, self._nodes)


class VulkanReplay(VulkanChain):
    """``replay``: n dispatches recorded by ``prepare(n)``; the window holds one submission.

    With ``barrier=ring``, dispatches on the ring's eight buffers may overlap: the barrier comes before every eighth.
    """

    overlap = "serial"
    recorded = True
    max_n = 1 << 16

    def _build(self) -> tuple[NativeProgram, Issue]:
        c, (cb,) = self._commands, self._command_buffers(1)
        record = self._nodes(cb)
        self._recorded_n = -1
        program = NativeProgram(head=(c.submit(c.info(cb)),), per=0)
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


class VulkanLaunches(VulkanChain):
    """``launches``: one recording of one dispatch, submitted n times."""

    overlap = "pipelined"

    def _build(self) -> tuple[NativeProgram, Issue]:
        c, (cb,) = self._commands, self._command_buffers(1)
        self._do([*self._head(cb, c.simultaneous), *self._unit(cb), c.end(cb)])
        program = NativeProgram(body=(c.submit(c.info(cb)),))
        return program, self._compile(program)

    held_n = LAPS * LAP

    def device(self, n: int) -> DeviceTime | None:
        return held(self, self._gpu, min(n, self.held_n))

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "recording": False}


class VulkanFused(VulkanChain):
    """``fused``: one dispatch whose loop runs n times; n is a push constant, recorded inside the window."""

    kernel = "fused"
    overlap = "serial"
    max_n = 1 << 26

    def _build(self) -> tuple[NativeProgram, Issue]:
        c, (cb,) = self._commands, self._command_buffers(1)
        self._steps = steps = self._gpu.ffi.new("uint32_t *")
        if "llvmpipe" in self._gpu.adapter.name:
            self.max_n = LLVMPIPE_TURNS
        program = NativeProgram((c.begin(cb, c.once), *self._work(cb), c.end(cb), c.submit(c.info(cb))), per=0)
        loop = self._compile(program)

        def issue(n: int) -> None:
            steps[0] = n
            loop(0)

        return program, issue

    def _work(self, cb: Any) -> tuple[NativeCall, ...]:
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

    def _build(self) -> tuple[NativeProgram, Issue]:
        c, (cb,) = self._commands, self._command_buffers(1)
        fence = self._fence()
        fenced = self._wait.kind == "fence"
        wait = c.wait_fence(fence) if fenced else (c.idle(),)
        submit = c.submit(c.info(cb), fence if fenced else None)
        program = NativeProgram(body=(*self._head(cb, c.once), *self._unit(cb), c.end(cb), submit, *wait))
        return program, self._compile(program)

    def window(self) -> dict[str, Scalar]:
        words = "vkWaitForFences, vkResetFences" if self._wait.kind == "fence" else "vkQueueWaitIdle"
        return {**super().window(), "wait": f"{words} after each submission"}


CHAINS: dict[str, type[VulkanChain]] = {
    "per-submit": Laps, "per-k": Laps, "one-pass": OnePass, "replay": VulkanReplay, "launches": VulkanLaunches,
    "fused": VulkanFused, "wait-each": WaitEach,
}  # fmt: skip
"""Pattern to chain."""


def _spread(values: Iterable[Any], times: int) -> Cycle:
    """Each value for as many units."""
    return Cycle(tuple(value for value in values for _ in range(times)))
