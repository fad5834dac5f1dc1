"""Vulkan chains: the base class, and one class for each way to submit the units."""

from __future__ import annotations

import abc
import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from overhead.probes import kernels
from overhead.probes.base import Chain, DeviceTime
from overhead.probes.common.availability import longest_fused_chain
from overhead.probes.common.loops import Issue, Stages
from overhead.probes.common.native_loop import (
    Cycle,
    NativeCall,
    NativeLoop,
    NativeProgram,
    compile_ffi,
    compile_native,
    compile_stages,
)
from overhead.probes.vulkan.buffers import StepBuffers
from overhead.probes.vulkan.commands import VULKAN_WAITS, Commands, VulkanWait, raise_failures
from overhead.probes.vulkan.device_time import time_behind_blocker, time_one_submission, wait_spins
from overhead.probes.vulkan.gpu import VulkanGpu
from overhead.results import Case, Scalar

BATCH_UNITS = 256
"""Units per batch. A batch has at least 8 submissions, so it has more units if a submission has
many units.
"""
BATCHES = 3
"""Number of batches that are used in turn, each with its own command buffers and fence."""


class VulkanChain(Chain):
    """Base class of a chain of the step: the buffers and the loops of one case.

    Call ``wait`` or ``prepare`` before each ``issue``, because ``issue`` records command buffers
    that must not be pending.
    """

    kernel = "step"
    """The file name of the kernel, without its suffix."""
    records = True
    """True if ``issue`` records the units into command buffers."""
    arguments = "none"
    """The arguments of the kernel, for the record."""
    timed_calls = True
    """True if ``stages`` times the calls of a unit."""

    def __init__(self, gpu: VulkanGpu, case: Case) -> None:
        self._case = case
        self._rotates = case.params.get("bindgroup") == "rotated"
        self._loops: list[NativeLoop] = []
        with contextlib.ExitStack() as cleanup:
            kernel = gpu.kernel(self.kernel)
            wait = str(case.params.get("wait", next(iter(VULKAN_WAITS))))
            self._gpu, self._cleanup = gpu, cleanup
            self._commands, self._wait = Commands(gpu, kernel), VulkanWait(gpu, wait)
            cleanup.callback(self._wait.close)
            self._pool = gpu.command_pool()
            cleanup.callback(gpu.destroy, "CommandPool", self._pool)
            (self._cb,) = gpu.command_buffers(self._pool, 1)
            self.wait_spins = wait_spins(gpu, wait)
            self._state = StepBuffers(gpu, kernel.set_layout)
            cleanup.callback(self._state.close)
            self._program, issue = self._build()
            self._cleanup = cleanup.pop_all()
        # Stored on the instance, because a method of this class would add a Python call to the
        # window.
        self.issue = issue  # type: ignore[assignment, method-assign]
        self.wait = self._wait  # type: ignore[method-assign]

    @abc.abstractmethod
    def _build(self) -> tuple[NativeProgram, Issue]:
        """The C calls that are timed, and the function ``issue(n)`` that makes them."""

    def issue(self, n: int) -> None:
        """Record and submit n units; returns before they are done, unless each unit waits."""
        raise NotImplementedError  # bound in __init__

    def prepare(self, n: int) -> None:
        """Wait until the queue is empty."""
        self._gpu.drain()

    def wait(self) -> None:
        """Wait until the queue is empty, in the way of the parameter ``wait``."""
        raise NotImplementedError  # bound in __init__

    def close(self) -> None:
        """Wait until the queue is empty, then destroy all objects of the chain."""
        self._gpu.drain()
        self._cleanup.close()

    def _call_now(self, calls: Iterable[NativeCall]) -> None:
        """Make the calls now, outside the window."""
        for call in calls:
            self._gpu.call(call.name, *call.ffi_args)

    def executed(self) -> int:
        """The number of steps in the buffers' values. Raises ``Unverified`` if a C call failed or
        values disagree.
        """
        raise_failures([self._wait.failed, *(loop.failure() for loop in self._loops)])
        return self._state.steps()

    def stages(self, n: int) -> Mapping[str, Any]:
        """The duration of each C call of n units by name, ns; empty if a unit has no calls of its
        own.
        """
        if not self.timed_calls:
            return {}
        self.prepare(n)
        found = self._stages(n)
        self.wait()
        return found

    @functools.cached_property
    def _stages(self) -> Stages:
        return compile_stages(self._program, self._case.caller)

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values. ``calls``: C calls per unit, without those that are
        made only once.
        """
        program, units = self._program, self._program.per
        around = (len(program.head) + len(program.tail)) / units if units else 0
        return {
            "submits": (
                {0: "one submission of all", 1: "a submission each"}.get(
                    units, f"a submission for {units}"
                )
            ),
            "passes": "none: Vulkan compute has no passes",
            "calls": len(program.body) + around,
            "bindgroup": "rotated" if self._rotates else "once",
            "barrier": "before each dispatch",
            "arguments": self.arguments,
            "wait": self._wait.words,
            "recording": self.records,
            "validation": "none",
            "precision": "uint32",
        }

    def kernels(self) -> dict[str, str]:
        """SHA-256 of the compiled kernel, by file name."""
        return {f"{self.kernel}.spv": kernels.binary(f"{self.kernel}.spv")[1]}

    def _fence(self, flags: int = 0) -> Any:
        fence = self._gpu.create("Fence", flags=flags)
        self._cleanup.callback(self._gpu.destroy, "Fence", fence)
        return fence

    def _compile(self, program: NativeProgram) -> NativeLoop:
        loop = (compile_native if self._case.caller == "native" else compile_ffi)(program)
        self._loops.append(loop)
        return loop

    def _unit_recorder(self, cb: Any) -> Callable[[int], None]:
        """A function that records n units into a command buffer, outside the window."""
        head, loop = self._head(cb, 0)[1:], self._compile(NativeProgram(body=self._unit(cb)))

        def record(n: int) -> None:
            self._call_now(head)
            loop(n)

        return record

    @property
    def _sets(self) -> Any:
        if not self._rotates:
            return self._state.own[0]
        return Cycle(
            self._state.own if self._case.dependency == "independent" else self._state.shared
        )

    def _head(self, cb: Any, flags: int) -> tuple[NativeCall, ...]:
        c = self._commands
        return (
            c.begin(cb, flags),
            c.pipeline(cb),
            *(() if self._rotates else (c.bind(cb, self._sets),)),
        )

    def _unit(self, cb: Any) -> tuple[NativeCall, ...]:
        c = self._commands
        return (
            *((c.bind(cb, self._sets),) if self._rotates else ()),
            c.barrier(cb),
            c.dispatch(cb),
        )


class BatchedSubmissions(VulkanChain):
    """``per-submit`` and ``per-k``: one command buffer and one submission for each group of k
    units.

    Submissions are grouped into batches, and ``BATCHES`` batches are used in turn. The last
    submission of a batch signals a fence. The loop waits for this fence before it records the batch
    again. Units that do not fill a batch use other command buffers and no fence, because ``issue``
    starts with an idle queue.
    """

    overlap = "pipelined"

    def _build(self) -> tuple[NativeProgram, Issue]:
        self._k = int(self._case.params.get("k", 1))
        self._submissions = max(BATCH_UNITS // self._k, 8)
        self._batch = batch = self._submissions * self._k
        signalled, batches = self._gpu.vk.VK_FENCE_CREATE_SIGNALED_BIT, []
        for _ in range(BATCHES):
            fence = self._fence(signalled)
            recycle = NativeProgram(body=self._commands.wait_fence(fence))
            batches.append((self._compile(recycle), self._compile(self._batch_program(fence))))
        program = self._batch_program(None)
        record_rest = self._compile(program)

        def issue(n: int) -> None:
            whole, rest = divmod(n, batch)
            for turn in range(whole):
                recycle, record = batches[turn % BATCHES]
                recycle(1)
                record(batch)
            record_rest(rest)

        return program, issue

    def _batch_program(self, fence: Any) -> NativeProgram:
        """The calls that record and submit a batch. Its last submission signals ``fence`` if there
        is one.
        """
        c, k, null = self._commands, self._k, self._gpu.ffi.NULL
        buffers = self._gpu.command_buffers(self._pool, self._submissions)
        fences = [null] * (self._submissions - 1) + [null if fence is None else fence]
        values = (buffers, map(c.submit_info, buffers), fences)
        cb, info, signal = (
            Cycle(tuple(value for value in each for _ in range(k))) for each in values
        )
        head, tail = (
            self._head(cb, c.once),
            (c.end(cb), c.submit(info, None if fence is None else signal)),
        )
        if k == 1:
            return NativeProgram(body=(*head, *self._unit(cb), *tail))
        return NativeProgram(head, self._unit(cb), tail, per=k)

    def stages(self, n: int) -> Mapping[str, Any]:
        """As in the base class, at most one batch at a time."""
        chunks = []
        for at in range(0, n, self._batch):
            self.prepare(1)
            self.issue(0)
            chunks.append(super().stages(min(self._batch, n - at)))
        return (
            {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
            if chunks
            else {}
        )

    @property
    def held_n(self) -> int:
        """Most units that ``issue`` can submit while a long dispatch (the blocker) keeps the device
        busy.
        """
        return BATCHES * self._batch

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n units, at most ``held_n``, behind a blocker. Raises ``Unsupported``."""
        return time_behind_blocker(self, self._gpu, min(n, self.held_n))

    def window(self) -> dict[str, Scalar]:
        """As in the base class, with the command buffers that are used in turn (``ring``) and their
        fences.
        """
        fence = f"each {self._submissions} submissions"
        return {
            **super().window(),
            "ring": BATCHES * self._submissions,
            "fence": fence,
            "reset": "each command buffer",
        }


class OnePass(VulkanChain):
    """``one-pass``: ``issue(n)`` records n dispatches into one command buffer and submits it."""

    overlap = "serial"
    max_n = 1 << 16

    def _build(self) -> tuple[NativeProgram, Issue]:
        c, cb = self._commands, self._cb
        program = NativeProgram(
            self._head(cb, c.once), self._unit(cb), (c.end(cb), c.submit(c.submit_info(cb))), per=0
        )
        return program, self._compile(program)

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n dispatches in one command buffer. Raises ``Unsupported``."""
        return time_one_submission(self._gpu, n, self._unit_recorder)


class VulkanReplay(OnePass):
    """``replay``: ``prepare(n)`` records n dispatches, and ``issue(n)`` submits them."""

    recorded = True
    records = False
    timed_calls = False
    _recorded_n = -1

    def _build(self) -> tuple[NativeProgram, Issue]:
        c, cb = self._commands, self._cb
        self._recorder = self._unit_recorder(cb)
        program = NativeProgram(head=(c.submit(c.submit_info(cb)),), per=0)
        submit = self._compile(program)
        return program, lambda n: submit(0)

    def prepare(self, n: int) -> None:
        """Wait until the queue is empty, then record n dispatches, if the recording has another
        number.
        """
        super().prepare(n)
        if n != self._recorded_n:
            self._call_now([self._commands.begin(self._cb, 0)])
            self._recorder(n)
            self._call_now([self._commands.end(self._cb)])
            self._recorded_n = n


class VulkanFused(VulkanChain):
    """``fused``: ``issue(n)`` records and submits one dispatch whose loop runs n times. n is a push
    constant.
    """

    kernel = "fused"
    overlap = "serial"
    arguments = "one push constant"
    timed_calls = False

    def _build(self) -> tuple[NativeProgram, Issue]:
        c, cb = self._commands, self._cb
        self._steps = steps = self._gpu.ffi.new("uint32_t *")
        self.max_n = longest_fused_chain(self._gpu.adapter.name)
        work = c.fused_dispatch(cb, self._sets, steps)
        program = NativeProgram(
            (c.begin(cb, c.once), *work, c.end(cb), c.submit(c.submit_info(cb))), per=0
        )
        loop = self._compile(program)

        def issue(n: int) -> None:
            steps[0] = n
            loop(0)

        return program, issue

    def device(self, n: int) -> DeviceTime | None:
        """Device time of one dispatch whose loop runs n times. Raises ``Unsupported``."""

        def recorder(cb: Any) -> Callable[[int], None]:
            self._steps[0] = n
            return lambda n: self._call_now(
                self._commands.fused_dispatch(cb, self._sets, self._steps)
            )

        return time_one_submission(self._gpu, n, recorder)


class WaitEach(VulkanChain):
    """``wait-each``: for each unit a submission and then a wait."""

    overlap = "serial"
    synchronous = True
    latency = True

    def _build(self) -> tuple[NativeProgram, Issue]:
        c, cb = self._commands, self._cb
        fence = self._fence()
        fenced = self._wait.kind == "fence"
        wait = c.wait_fence(fence) if fenced else (c.idle(),)
        submit = c.submit(c.submit_info(cb), fence if fenced else None)
        program = NativeProgram(
            body=(*self._head(cb, c.once), *self._unit(cb), c.end(cb), submit, *wait)
        )
        return program, self._compile(program)

    def window(self) -> dict[str, Scalar]:
        """As in the base class, with the wait of each unit."""
        words = (
            "vkWaitForFences, vkResetFences" if self._wait.kind == "fence" else "vkQueueWaitIdle"
        )
        return {**super().window(), "wait": f"{words} after each submission"}


CHAINS: dict[str, type[VulkanChain]] = {
    "per-submit": BatchedSubmissions,
    "per-k": BatchedSubmissions,
    "one-pass": OnePass,
    "replay": VulkanReplay,
    "fused": VulkanFused,
    "wait-each": WaitEach,
}
"""The chain class of each pattern."""
