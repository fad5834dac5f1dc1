"""A WebGPU chain: one case of the step, open on a device. Its loop is Python statements, or C calls
of webgpu.h.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from overhead.probes.base import Chain, DeviceTime, Unverified
from overhead.probes.common.availability import longest_fused_chain
from overhead.probes.common.loops import (
    Script,
    Stages,
    Statement,
    compile_python,
    compile_python_stages,
)
from overhead.probes.common.native_loop import (
    Cycle,
    NativeCall,
    NativeProgram,
    Slot,
    Store,
    compile_ffi,
    compile_native,
    compile_stages,
)
from overhead.probes.common.step import GROUPS, RING, webgpu_window
from overhead.probes.kernels import lcg
from overhead.probes.webgpu.cases import Steps, StepSpec, steps
from overhead.probes.webgpu.device_time import MOST_SUBMISSIONS, DeviceClock, wait_spins
from overhead.probes.webgpu.library import Library
from overhead.probes.webgpu.resources import StepResources, session
from overhead.results import Case, Scalar, Target, because

GivenArguments = tuple[Any, ...]
_ENCODER = Slot(0)
_PASS = Slot(1)
_COMMANDS = Slot(2)


@dataclass(frozen=True)
class _CFunction:
    """A function of webgpu.h, its first arguments, and the slot of its result."""

    name: str
    first: GivenArguments
    result: Slot | None = None


_CALLS: Mapping[str, _CFunction] = {
    "create encoder": _CFunction("DeviceCreateCommandEncoder", (), _ENCODER),
    "begin pass": _CFunction("CommandEncoderBeginComputePass", (_ENCODER,), _PASS),
    "set pipeline": _CFunction("ComputePassEncoderSetPipeline", (_PASS,)),
    "set bind group": _CFunction("ComputePassEncoderSetBindGroup", (_PASS,)),
    "dispatch": _CFunction("ComputePassEncoderDispatchWorkgroups", (_PASS,)),
    "end pass": _CFunction("ComputePassEncoderEnd", (_PASS,)),
    "finish": _CFunction("CommandEncoderFinish", (_ENCODER,), _COMMANDS),
    "release pass": _CFunction("ComputePassEncoderRelease", (_PASS,)),
}
"""The C function of each step of a loop that is one call."""


class WebGpuChain(Chain):
    """A chain of n dispatches of a small kernel (the step) on a WebGPU device: one case, such as
    one dispatch per submission, called from compiled code. ``__init__`` replaces ``issue`` and
    ``wait`` by faster functions.
    """

    def __init__(self, target: Target, case: Case) -> None:
        """Open the device, make the resources of the case, and compile the loop of its caller.

        ``issue`` and ``wait`` are stored on the instance, because methods of this class would add a
        Python call to what is timed.
        """
        self.spec = spec = StepSpec.of(case)
        self.session = session(target, validation=spec.validation)
        self.library = self.session.library
        # The library keeps errors of earlier chains, which are not of this one.
        self.library.forget_errors()
        self.resources = StepResources(self.session, spec)
        # ``overlap``: whether the device works while units are issued.
        self.overlap = spec.overlap
        # ``latency``: each unit contains its wait. ``synchronous``: it has then ended when
        # ``issue`` returns.
        self.latency = self.synchronous = spec.waits_each
        # ``max_n``: the most units of a chain. A pattern that records all dispatches into one
        # submission has the shortest chains.
        self.max_n = {"per-submit": 1 << 17, "per-k": 1 << 18}.get(spec.pattern, 1 << 16)
        if spec.pattern == "fused":
            # A driver may stop a kernel whose loop has more turns.
            self.max_n = longest_fused_chain(target.adapter)

        self._wait_name, wait = self._named_wait()
        # ``_loop``: what each unit does, as Python text or as C calls; ``issue`` runs it n times.
        self._loop: Script | NativeProgram
        issue: Callable[[int], object]
        if spec.caller == "binding":
            self._loop = _python_statements(steps(spec), self.resources, wait)
            issue = compile_python(self._loop)
        else:
            self._loop = c_calls(self.library, steps(spec), _step_arguments(self.resources))
            compile_loop = compile_native if spec.caller == "native" else compile_ffi
            issue = compile_loop(self._loop)
        # True if the wait keeps the CPU busy, so that its CPU time says nothing of work.
        self.wait_spins = wait_spins(self.session)
        self.wait = wait  # type: ignore[method-assign]
        self.issue = issue  # type: ignore[method-assign, assignment]
        # The n that ``prepare`` has written for the fused kernel; so far none.
        self._written_n = -1
        # For each data buffer the steps that its values told when they were last read.
        self._steps_read = [0] * spec.buffers
        # The steps of all buffers so far; ``executed`` adds what is new.
        self._total = 0
        self.library.raise_errors()

    def _named_wait(self) -> tuple[str, Callable[[], None]]:
        """The name of the wait for the record, and the function that waits for all submitted work:
        the cheapest of the library, or as the parameter ``wait`` says, a read of a buffer, or a
        copy to a buffer that the host maps.
        """
        device = self.resources.device
        queue = self.resources.queue
        data = self.resources.data[0]
        if not self.spec.wait:
            return self.library.wait_name(device), self.library.waiter(device, queue)
        if self.spec.wait == "read-buffer":
            # These four bytes are there only when the units before the read have run.
            return "read-buffer", functools.partial(queue.read_buffer, data, 0, 4)
        staging = self.resources.staging()

        def copy_and_map() -> None:
            encoder = device.create_command_encoder()
            encoder.copy_buffer_to_buffer(data, 0, staging, 0, 4)
            queue.submit([encoder.finish()])
            staging.map_sync("READ")
            staging.unmap()

        return "map", copy_and_map

    def prepare(self, n: int) -> None:
        """For the pattern ``fused``, write n to the uniform buffer that the kernel reads."""
        if self.spec.pattern == "fused" and n != self._written_n:
            self.resources.write(self.resources.uniform, np.array([n], np.uint32))
            self.wait()
            self._written_n = n

    def issue(self, n: int) -> None:
        """Record and submit n dispatches; returns before they are done, unless each unit waits."""
        raise NotImplementedError  # bound in __init__

    def wait(self) -> None:
        """Wait for all submitted work, in the way of the parameter ``wait``."""
        raise NotImplementedError  # bound in __init__

    def executed(self) -> int:
        """How many units have run since the chain was opened, according to the values that they
        left in the buffers, without those for device time. Raises ``Unverified`` if the library
        reported an error or the values are wrong.
        """
        self.wait()
        self.library.raise_errors()
        try:
            steps_read = self.resources.read()
        except Unverified:
            raise
        except Exception as error:  # the binding raises its own error classes
            raise Unverified(
                because("reading-back-failed", kind=type(error).__name__, text=str(error)[:300])
            ) from error
        # The values tell the steps only modulo 2^32. So what is new is added to a total.
        for now, before in zip(steps_read, self._steps_read, strict=True):
            # How many steps were added since the last reading, also if the number began again at 0.
            self._total += (now - before) % lcg.PERIOD
        self._steps_read = steps_read
        # To ask for the clock would make one; ``vars`` shows whether there is one.
        clock_was_used = "_clock" in vars(self)
        self.aside = self._clock.steps if clock_was_used else 0
        return self._total - self.aside

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n units that are queued behind a long dispatch; None if each unit waits.
        Raises ``Unsupported`` if the adapter cannot measure it.

        Of more units than fit behind the dispatch, only as many are timed.
        """
        if self.spec.waits_each:
            return None
        units_per_submission = self.spec.per  # 0: all units are one, which always fits
        if units_per_submission:
            # ``MOST_SUBMISSIONS``: well below the capacity of any queue; a full one would hold the
            # host.
            n = min(n, MOST_SUBMISSIONS * units_per_submission)
        return self._clock.measure(n)

    @functools.cached_property
    def _clock(self) -> DeviceClock:
        return DeviceClock(self, self.resources)

    def stages(self, n: int) -> Mapping[str, Sequence[int]]:
        """Run n units with clock readings: the durations, ns, of each call in the loop by name,
        such as ``submit``. Each includes one reading; those of ``clock`` are a reading alone.
        """
        self.prepare(n)
        # ``_stages``: the same loop with a clock reading around each call, compiled at its first
        # use.
        durations = self._stages(n)
        self.wait()
        return cast(Mapping[str, Sequence[int]], durations)

    @functools.cached_property
    def _stages(self) -> Stages:
        if isinstance(self._loop, Script):
            return compile_python_stages(self._loop)
        return compile_stages(self._loop, self.spec.caller)

    def window(self) -> dict[str, Scalar]:
        """The settings of the timed calls, as names and values: what one call covers, bind groups,
        wait, validation.
        """
        spec = self.spec
        changed: dict[str, Scalar] = {"indirect": spec.indirect, "validation": spec.validation}
        return webgpu_window(spec.pattern, spec.per, spec.bindgroup, self._wait_name, **changed)

    def kernels(self) -> dict[str, str]:
        """SHA-256 of the WGSL, by file name."""
        return {self.spec.kernel: self.resources.sha256}

    def close(self) -> None:
        """Wait for all submitted work, then release the buffers."""
        self.wait()
        self.resources.destroy()


def _python_statements(steps: Steps, resources: StepResources, wait: Callable[[], None]) -> Script:
    """The loop of a case as Python text: a statement of the Python API for each of the ``steps``,
    which are names such as ``submit``. The statements use attributes of ``resources`` (buffers,
    pipeline, bind groups) by their names.
    """
    spec = resources.spec
    index = f"[u & {RING - 1}]"  # of the unit u, in a list of RING objects that take turns
    group = {"once": "group", "rotated": f"groups{index}", "fresh": "fresh"}[spec.bindgroup]
    entries = f"entries{index}" if spec.independent else "entries[0]"
    lines = {
        "create encoder": "encoder = device.create_command_encoder()",
        "begin pass": "compute = encoder.begin_compute_pass()",
        "set pipeline": "compute.set_pipeline(pipeline)",
        "create bind group": f"fresh = device.create_bind_group(layout=layout, entries={entries})",
        "set bind group": f"compute.set_bind_group(0, {group})",
        "release bind group": "del fresh",
        # ``GROUPS``: workgroups of a dispatch.
        "dispatch": f"compute.dispatch_workgroups({GROUPS})",
        "end pass": "compute.end()",
        "finish": "commands = encoder.finish()",
        "submit": "queue.submit([commands])",
        "release pass": "del compute",
        "release": "del commands, encoder",
        "wait": "wait()",
        "read": "queue.read_buffer(data, 0, 4)",
    }
    if spec.indirect:
        lines["dispatch"] = "compute.dispatch_workgroups_indirect(indirect, 0)"
    # The attributes of ``resources``, and the first of some of its lists, by names of their own.
    names = {
        **vars(resources),
        "data": resources.data[0],
        "group": resources.groups[0],
        "wait": wait,
    }

    def render(part: tuple[str, ...]) -> tuple[Statement, ...]:
        return tuple(Statement(lines[step], step) for step in part)

    # Only the objects that the lines name become local variables of the loop.
    all_lines = [lines[step] for step in (*steps.head, *steps.body, *steps.tail)]
    words = set(re.findall(r"\w+", " ".join(all_lines)))
    used = {name: value for name, value in names.items() if name in words}
    return Script(render(steps.head), render(steps.body), render(steps.tail), steps.per, used)


def c_calls(library: Library, steps: Steps, given: Mapping[str, GivenArguments]) -> NativeProgram:
    """The loop of a case as C calls of webgpu.h, for a Python loop through cffi or for a compiled
    loop. ``steps``: what the loop does, by names such as ``submit``. ``given``: by such a name, the
    arguments that depend on the case. A result is passed on to later calls in a slot, a variable of
    the loop.

    The calls keep the objects among their arguments alive, but not what these point to. Raises
    ``NativeUnavailable``.
    """
    # The array that a submission takes. The command buffer of each group is put into it: by the
    # function ``put`` in a Python loop, and by its address in a compiled one.
    submitted = library.ffi.new("WGPUCommandBuffer[1]")

    def put(commands: Any) -> None:
        submitted[0] = commands

    # ``stage``: the name under which the call is timed where the loop is run with clock readings.
    def call(name: str, step: str, *args: Any, result: Slot | None = None) -> NativeCall:
        return library.call(f"wgpu{name}", *args, stage=step, result=result)

    def calls_of(step: str) -> tuple[NativeCall | Store, ...]:
        """The C calls for a name in ``steps``. Most are one call of the table ``_CALLS``; these
        three are several.
        """
        if step == "wait":
            return library.wait_calls(*given["wait"])
        if step == "submit":
            # ``_COMMANDS``: the slot with the command buffer. 1: how many are submitted.
            store = Store("commands", put, library.address(submitted), _COMMANDS, step)
            return store, call("QueueSubmit", step, *given[step], 1, submitted)
        if step == "release":
            release_encoder = call("CommandEncoderRelease", step, _ENCODER)
            return release_encoder, call("CommandBufferRelease", step, _COMMANDS)
        # Its arguments are those that every case has, and then those of this case.
        function = _CALLS[step]
        of_case = given.get(step, ())
        return (call(function.name, step, *function.first, *of_case, result=function.result),)

    def calls_of_part(part: tuple[str, ...]) -> tuple[NativeCall | Store, ...]:
        calls: list[NativeCall | Store] = []
        for step in part:
            calls += calls_of(step)
        return tuple(calls)

    # Head and tail run once for each group of units, the body once for each unit.
    head = calls_of_part(steps.head)
    body = calls_of_part(steps.body)
    tail = calls_of_part(steps.tail)
    return NativeProgram(head, body, tail, steps.per)


def _step_arguments(resources: StepResources) -> dict[str, GivenArguments]:
    """The arguments that the C calls of a loop have from its case, by the name of what the loop
    does: the handles (``_internal``) of the objects of wgpu-py, and numbers. NULL stands for a
    descriptor with nothing in it.
    """
    null = resources.session.library.ffi.NULL
    groups = tuple(group._internal for group in resources.groups)
    group = groups[0] if resources.spec.bindgroup == "once" else Cycle(groups)
    # ``Cycle``: the groups take turns by unit. Zeros: bind group 0, no dynamic offsets. The wait
    # gets objects of wgpu-py, of which ``Library.wait_calls`` makes C calls.
    return {
        "create encoder": (resources.device._internal, null),
        "begin pass": (null,),
        "set pipeline": (resources.pipeline._internal,),
        "set bind group": (0, group, 0, null),
        "dispatch": (GROUPS, 1, 1),
        "finish": (null,),
        "submit": (resources.queue._internal,),
        "wait": (resources.device, resources.queue),
    }
