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
many units. Chosen, not measured: longer batches have fewer waits for a fence between them.
"""
_LEAST_SUBMISSIONS = 8
BATCHES = 3
"""Number of batches that are used in turn, each with its own command buffers and fence. Chosen, not
measured: with more, the host can be further ahead of the device.
"""


class VulkanChain(Chain):
    """A chain of n units on one queue, for one case; a unit is one dispatch of a small kernel, the
    step. Each subclass is one way to record and submit the units.

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
        """Make all objects of the case on the device, and the loop that issues units: a Python loop
        or a compiled one, as the case's ``caller`` says.
        """
        self._case = case
        # Whether each unit binds another descriptor set, or all use the one that was bound first.
        self._rotates = case.params.get("bindgroup") == "rotated"
        self._loops: list[NativeLoop] = []
        self._gpu = gpu
        # If a step of the following fails, the block destroys what the steps before it made.
        with contextlib.ExitStack() as cleanup:
            self._cleanup = cleanup
            kernel = gpu.kernel(self.kernel)
            # ``VULKAN_WAITS`` lists them in this order.
            cheapest_wait = next(iter(VULKAN_WAITS))
            wait = str(case.params.get("wait", cheapest_wait))
            self._commands = Commands(gpu, kernel)
            self._wait = VulkanWait(gpu, wait)
            cleanup.callback(self._wait.close)
            self._pool = gpu.command_pool()
            cleanup.callback(gpu.destroy, "CommandPool", self._pool)
            (self._cb,) = gpu.command_buffers(self._pool, 1)
            # Measured: whether this wait uses the CPU all the time.
            self.wait_spins = wait_spins(gpu, wait)
            self._state = StepBuffers(gpu, kernel.set_layout)
            cleanup.callback(self._state.close)
            # The subclass makes the calls of its pattern, with the objects above.
            self._program, issue = self._build()
            # Nothing failed, so from now on ``close`` destroys all of them, and the end of the
            # block destroys nothing: ``pop_all`` moves them to another stack.
            self._cleanup = cleanup.pop_all()
        # Stored on the instance, because a method of this class would add a Python call to what is
        # timed.
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
        failures_of_loops = [loop.failure() for loop in self._loops]
        raise_failures([self._wait.failed, *failures_of_loops])
        return self._state.steps()

    def stages(self, n: int) -> Mapping[str, Any]:
        """The duration of each C call of n units by name, ns; empty if a unit has no calls of its
        own.
        """
        # False where ``issue`` only submits a recording, or makes one dispatch of all units.
        if not self.timed_calls:
            return {}
        self.prepare(n)
        # The loop with clock readings, of the same calls.
        durations = self._stages(n)
        self.wait()
        return durations

    @functools.cached_property
    def _stages(self) -> Stages:
        return compile_stages(self._program, self._case.caller)

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values. ``calls``: C calls per unit, without those that are
        made only once.
        """
        program = self._program
        units_per_submission = program.per  # 0: all units of an issue
        # ``body``: the calls of each unit. Head and tail, the calls before and after its units, are
        # made once for each submission, so a unit has a part of them. Where all units are one
        # submission, they are not counted.
        calls: float = len(program.body)
        if units_per_submission:
            calls += (len(program.head) + len(program.tail)) / units_per_submission
        if units_per_submission == 0:
            submits = "one submission of all"
        elif units_per_submission == 1:
            submits = "a submission each"
        else:
            submits = f"a submission for {units_per_submission}"
        # ``records``: whether the units are recorded inside the timed window. ``words``: the text
        # of the wait.
        return {
            "submits": submits,
            "passes": "none: Vulkan compute has no passes",
            "calls": calls,
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
        file = f"{self.kernel}.spv"
        _, sha256 = kernels.binary(file)
        return {file: sha256}

    def _fence(self, flags: int = 0) -> Any:
        fence = self._gpu.create("Fence", flags=flags)
        self._cleanup.callback(self._gpu.destroy, "Fence", fence)
        return fence

    def _compile(self, program: NativeProgram) -> NativeLoop:
        """A loop for the caller of the case. ``executed`` looks whether a call in it failed."""
        compile_loop = compile_native if self._case.caller == "native" else compile_ffi
        loop = compile_loop(program)
        self._loops.append(loop)
        return loop

    def _unit_recorder(self, cb: Any) -> Callable[[int], None]:
        """A function that records n units into a command buffer, outside the window, which is what
        is timed.

        Its caller has begun the recording, so the first call of the head, which begins one, is left
        out.
        """
        # Flags 0: the flags go with the call that is left out.
        _, *head = self._head(cb, 0)
        loop = self._compile(NativeProgram(body=self._unit(cb)))

        def record(n: int) -> None:
            # In Python, at once: it is not timed.
            self._call_now(head)
            loop(n)

        return record

    @property
    def _sets(self) -> Any:
        """The descriptor set that every unit binds, or a ``Cycle`` of those that the units bind in
        turn.

        Independent units, which need not wait for each other, work on several buffers in turn.
        Others all work on buffer 0, through several sets if these rotate.
        """
        # ``own``: a set for each buffer. ``shared``: as many sets, all of buffer 0.
        if not self._rotates:
            return self._state.own[0]
        if self._case.dependency == "independent":
            return Cycle(self._state.own)
        return Cycle(self._state.shared)

    def _head(self, cb: Any, flags: int) -> tuple[NativeCall, ...]:
        """The calls before the units of a recording. Sets that rotate are bound by each unit, so
        the head binds a set only where all units use the same.
        """
        # ``flags``: of the command buffer, such as that it is submitted once.
        begin = self._commands.begin(cb, flags)
        pipeline = self._commands.pipeline(cb)
        if self._rotates:
            return (begin, pipeline)
        return (begin, pipeline, self._commands.bind(cb, self._sets))

    def _unit(self, cb: Any) -> tuple[NativeCall, ...]:
        """The calls of one unit."""
        binding = (self._commands.bind(cb, self._sets),) if self._rotates else ()
        return (*binding, self._commands.barrier(cb), self._commands.dispatch(cb))


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
        """The calls of one batch without a fence, and ``issue``: it runs whole batches, each with a
        fence, and then the rest of the units by those calls.
        """
        self._k = int(self._case.params.get("k", 1))
        # 256 units, or at least 8 submissions: longer batches wait less often for a fence.
        self._submissions = max(BATCH_UNITS // self._k, _LEAST_SUBMISSIONS)
        self._batch = batch = self._submissions * self._k

        # For each batch a loop that waits for the fence, and a loop that records and submits. A
        # fence is made as signalled, because the first wait for it has no work to wait for.
        batches = []
        for _ in range(BATCHES):
            fence = self._fence(self._gpu.vk.VK_FENCE_CREATE_SIGNALED_BIT)
            wait_for_fence = NativeProgram(body=self._commands.wait_fence(fence))
            wait_loop = self._compile(wait_for_fence)
            record_loop = self._compile(self._batch_program(fence))
            batches.append((wait_loop, record_loop))
        program = self._batch_program(None)
        record_rest = self._compile(program)

        def issue(n: int) -> None:
            whole, rest = divmod(n, batch)
            # ``BATCHES`` in turn: the host records one while the device runs the others.
            for turn in range(whole):
                wait_until_free, record = batches[turn % BATCHES]
                # The first loop waits once. The second records and submits so many units.
                wait_until_free(1)
                record(batch)
            # Its command buffers are free, because ``issue`` starts with an idle queue.
            record_rest(rest)

        return program, issue

    def _batch_program(self, fence: Any) -> NativeProgram:
        """The calls that record and submit a batch. Its last submission signals ``fence`` if there
        is one.
        """
        commands = self._commands
        buffers = self._gpu.command_buffers(self._pool, self._submissions)
        # Each submission has a command buffer of its own, since the earlier ones may still run.
        cb = self._cycle(buffers)
        info = self._cycle([commands.submit_info(buffer) for buffer in buffers])
        signalled = None
        if fence is not None:
            # All submissions but the last have no fence.
            no_fences = [self._gpu.ffi.NULL] * (self._submissions - 1)
            signalled = self._cycle([*no_fences, fence])

        # ``once``: the flag of a command buffer that is submitted once for each recording.
        head = self._head(cb, commands.once)
        end = commands.end(cb)
        submit = commands.submit(info, signalled)
        unit = self._unit(cb)
        # With one unit per submission, head and tail belong to each unit.
        if self._k == 1:
            return NativeProgram(body=(*head, *unit, end, submit))
        return NativeProgram(head, unit, (end, submit), per=self._k)

    def _cycle(self, values: Iterable[Any]) -> Cycle:
        """An argument with these values in turn, one for each submission. A cycle goes on with each
        unit, so each value is there once for each of the k units of a submission.
        """
        for_units: list[Any] = []
        for value in values:
            # An argument is taken by the number of the unit: unit i gets value i, modulo their
            # number.
            for_units += [value] * self._k
        return Cycle(tuple(for_units))

    def stages(self, n: int) -> Mapping[str, Any]:
        """The duration of each C call of n units by name, ns, as in the base class.

        At most one batch at a time: the timed calls have one batch of command buffers, which must
        not be pending when they are recorded again.
        """
        chunks = []
        for start in range(0, n, self._batch):
            chunks.append(super().stages(min(self._batch, n - start)))
        # For n = 0 alone.
        if not chunks:
            return {}
        durations = {}
        for name in chunks[0]:
            durations[name] = np.concatenate([chunk[name] for chunk in chunks])
        return durations

    @property
    def held_n(self) -> int:
        """Most units that ``issue`` can submit while a long dispatch (the blocker) keeps the device
        busy. One more batch would wait for the fence of the first one, which runs after the
        blocker.
        """
        return BATCHES * self._batch

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n units, at most ``held_n``, behind a blocker. Raises ``Unsupported``."""
        return time_behind_blocker(self, self._gpu, min(n, self.held_n))

    def window(self) -> dict[str, Scalar]:
        """As in the base class, with the command buffers that are used in turn (``ring``) and their
        fences.
        """
        return {
            **super().window(),
            "ring": BATCHES * self._submissions,
            "fence": f"each {self._submissions} submissions",
            # Beginning to record a command buffer resets it.
            "reset": "each command buffer",
        }


class OnePass(VulkanChain):
    """``one-pass``: ``issue(n)`` records n dispatches into one command buffer and submits it."""

    overlap = "serial"
    max_n = 1 << 16

    def _build(self) -> tuple[NativeProgram, Issue]:
        """A program that records all units between the begin and the end of one command buffer."""
        commands = self._commands
        head = self._head(self._cb, commands.once)
        unit = self._unit(self._cb)
        end = commands.end(self._cb)
        submit = commands.submit(commands.submit_info(self._cb))
        program = NativeProgram(head, unit, (end, submit), per=0)  # per: 0 is for all units
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
        """A program of one submission, the same for every n: ``prepare`` has recorded the units."""
        commands = self._commands
        # ``_recorder(n)`` records n units, outside the timed window.
        self._recorder = self._unit_recorder(self._cb)
        submit = commands.submit(commands.submit_info(self._cb))
        # A program without calls per unit: it makes its one call for any number of units, even 0.
        program = NativeProgram(head=(submit,), per=0)
        submit_recorded = self._compile(program)
        return program, lambda n: submit_recorded(0)

    def prepare(self, n: int) -> None:
        """Wait until the queue is empty, then record n dispatches, if the recording has another
        number.
        """
        # A command buffer must not be recorded again while it may still run.
        super().prepare(n)
        if n != self._recorded_n:
            # Flags 0: the recording is submitted again and again.
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
        """A program of one dispatch, which reads n from memory that ``issue`` writes before."""
        commands = self._commands
        self._steps = steps = self._gpu.ffi.new("uint32_t *")
        self.max_n = longest_fused_chain(self._gpu.adapter.name)  # some drivers stop long loops
        begin = commands.begin(self._cb, commands.once)
        # A push constant is copied from memory when it is recorded, which each ``issue`` does.
        dispatch = commands.fused_dispatch(self._cb, self._sets, steps)
        end = commands.end(self._cb)
        submit = commands.submit(commands.submit_info(self._cb))
        program = NativeProgram((begin, *dispatch, end, submit), per=0)
        loop = self._compile(program)

        def issue(n: int) -> None:
            steps[0] = n
            # The program has a head alone, which runs once for any number of units.
            loop(0)

        return program, issue

    def device(self, n: int) -> DeviceTime | None:
        """Device time of one dispatch whose loop runs n times: the calls of ``issue``, recorded
        between two timestamps. Raises ``Unsupported``.
        """

        def recorder(cb: Any) -> Callable[[int], None]:
            def record(n: int) -> None:
                self._steps[0] = n
                self._call_now(self._commands.fused_dispatch(cb, self._sets, self._steps))

            return record

        # ``recorder(cb)`` gives a function that records n units into ``cb``.
        return time_one_submission(self._gpu, n, recorder)


class WaitEach(VulkanChain):
    """``wait-each``: for each unit a submission and then a wait."""

    overlap = "serial"
    synchronous = True
    latency = True

    def _build(self) -> tuple[NativeProgram, Issue]:
        """A program that records, submits and waits for each unit, in the way of the parameter
        ``wait``: for a fence that the submission signals, or for an empty queue.
        """
        commands = self._commands
        head = self._head(self._cb, commands.once)
        unit = self._unit(self._cb)
        end = commands.end(self._cb)
        info = commands.submit_info(self._cb)
        submit_and_wait: tuple[NativeCall, ...]
        if self._wait.kind == "fence":
            # ``wait_fence``: a wait for it, and a reset, so that the next unit can use it.
            fence = self._fence()
            submit_and_wait = (commands.submit(info, fence), *commands.wait_fence(fence))
        else:
            submit_and_wait = (commands.submit(info), commands.idle())
        program = NativeProgram(body=(*head, *unit, end, *submit_and_wait))
        return program, self._compile(program)

    def window(self) -> dict[str, Scalar]:
        """As in the base class, with the wait of each unit."""
        calls = "vkQueueWaitIdle"
        if self._wait.kind == "fence":
            calls = "vkWaitForFences, vkResetFences"
        return {**super().window(), "wait": f"{calls} after each submission"}


CHAINS: dict[str, type[VulkanChain]] = {
    "per-submit": BatchedSubmissions,
    "per-k": BatchedSubmissions,
    "one-pass": OnePass,
    "replay": VulkanReplay,
    "fused": VulkanFused,
    "wait-each": WaitEach,
}
"""The chain class of each pattern."""
