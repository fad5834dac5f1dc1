"""Translate the steps of a case: to statements of the Python API, or to C calls for ``ffi`` and ``native``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

from overhead.probes.common.loops import Script, Statement
from overhead.probes.common.native_loop import Cycle, NativeCall, NativeProgram, Slot, Store
from overhead.probes.common.step import GROUPS, RING
from overhead.probes.webgpu.cases import Steps
from overhead.probes.webgpu.library import Library
from overhead.probes.webgpu.resources import StepResources

GivenArguments = tuple[Any, ...]
_ENCODER, _PASS, _COMMANDS = Slot(0), Slot(1), Slot(2)
_CALLS: Mapping[str, tuple[str, GivenArguments, Slot | None]] = {
    "create encoder": ("DeviceCreateCommandEncoder", (), _ENCODER),
    "begin pass": ("CommandEncoderBeginComputePass", (_ENCODER,), _PASS),
    "set pipeline": ("ComputePassEncoderSetPipeline", (_PASS,), None),
    "set bind group": ("ComputePassEncoderSetBindGroup", (_PASS,), None),
    "dispatch": ("ComputePassEncoderDispatchWorkgroups", (_PASS,), None),
    "end pass": ("ComputePassEncoderEnd", (_PASS,), None),
    "finish": ("CommandEncoderFinish", (_ENCODER,), _COMMANDS),
    "release pass": ("ComputePassEncoderRelease", (_PASS,), None),
}
"""The function of each step, its first arguments, and the slot of its result."""


def python_statements(steps: Steps, resources: StepResources, wait: Callable[[], None]) -> Script:
    """The loop as statements of the Python API."""
    spec = resources.spec
    index = f"[u & {RING - 1}]"
    group = {"once": "group", "rotated": f"groups{index}", "fresh": "fresh"}[spec.bindgroup]
    entries = f"entries{index}" if spec.independent else "entries[0]"
    lines = {
        "create encoder": "encoder = device.create_command_encoder()",
        "begin pass": "compute = encoder.begin_compute_pass()",
        "set pipeline": "compute.set_pipeline(pipeline)",
        "create bind group": f"fresh = device.create_bind_group(layout=layout, entries={entries})",
        "set bind group": f"compute.set_bind_group(0, {group})",
        "release bind group": "del fresh",
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
    names = {**vars(resources), "data": resources.data[0], "group": resources.groups[0], "wait": wait}

    def render(part: tuple[str, ...]) -> tuple[Statement, ...]:
        return tuple(Statement(lines[step], step) for step in part)

    used = set(re.findall(r"\w+", " ".join(lines[step] for step in (*steps.head, *steps.body, *steps.tail))))
    bound = {name: value for name, value in names.items() if name in used}
    return Script(render(steps.head), render(steps.body), render(steps.tail), steps.per, bound)


def c_calls(library: Library, steps: Steps, given: Mapping[str, GivenArguments]) -> NativeProgram:
    """The loop as C calls of webgpu.h. ``given``: the arguments of the steps that depend on the case.

    The calls keep the objects among their arguments alive, but not what these point to. Raises ``NativeUnavailable``.
    """
    submitted = library.ffi.new("WGPUCommandBuffer[1]")

    def put(commands: Any) -> None:
        submitted[0] = commands

    def call(name: str, step: str, *args: Any, result: Slot | None = None) -> NativeCall:
        return library.call(f"wgpu{name}", *args, stage=step, result=result)

    def of(step: str) -> tuple[NativeCall | Store, ...]:
        if step == "wait":
            return library.wait_calls(*given["wait"])
        if step == "submit":
            store = Store("commands", put, library.address(submitted), _COMMANDS, step)
            return store, call("QueueSubmit", step, *given[step], 1, submitted)
        if step == "release":
            return call("CommandEncoderRelease", step, _ENCODER), call("CommandBufferRelease", step, _COMMANDS)
        name, args, result = _CALLS[step]
        return (call(name, step, *args, *given.get(step, ()), result=result),)

    head, body, tail = (tuple(itertools.chain(*map(of, part))) for part in (steps.head, steps.body, steps.tail))
    return NativeProgram(head, body, tail, steps.per)


def step_arguments(resources: StepResources) -> dict[str, GivenArguments]:
    """The arguments of the C calls of a case of the step."""
    spec, library = resources.spec, resources.session.library
    null, device, queue = library.ffi.NULL, resources.device._internal, resources.queue._internal
    groups = tuple(group._internal for group in resources.groups)
    return {
        "create encoder": (device, null),
        "begin pass": (null,),
        "set pipeline": (resources.pipeline._internal,),
        "set bind group": (0, groups[0] if spec.bindgroup == "once" else Cycle(groups), 0, null),
        "dispatch": (GROUPS, 1, 1),
        "finish": (null,),
        "submit": (queue,),
        "wait": (resources.device, resources.queue),
    }
