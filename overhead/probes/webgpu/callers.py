"""Translate the steps of a case: to statements of the Python API, or to C calls for ``ffi`` and ``native``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from overhead.probes.common.loop_text import Script, Statement
from overhead.probes.common.native_loop import NativeCall, NativeProgram, Slot, Store
from overhead.probes.common.step_kernel import GROUPS, RING
from overhead.probes.webgpu.cases import Steps
from overhead.probes.webgpu.resources import StepResources

_ENCODER, _PASS, _COMMANDS, _GROUP = Slot(0), Slot(1), Slot(2), Slot(3)


def python_statements(steps: Steps, resources: StepResources, wait: Callable[[], None]) -> Script:
    """The loop as statements of the Python API."""
    spec = resources.spec
    index = f"[u & {RING - 1}]"
    group = {"once": "group", "rotated": f"groups{index}", "fresh": "fresh"}[spec.bindgroup]
    entries = f"entries{index}" if spec.independent else "entries[0]"
    lines = {
        "write buffer": "queue.write_buffer(uniform, 0, value)",
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
    names = {
        "device": resources.device,
        "queue": resources.queue,
        "pipeline": resources.pipeline,
        "layout": resources.layout,
        "data": resources.data[0],
        "group": resources.groups[0],
        "groups": resources.groups,
        "entries": resources.entries,
        "value": resources.value,
        "uniform": resources.uniform,
        "indirect": resources.indirect,
        "wait": wait,
    }

    def render(part: tuple[str, ...]) -> tuple[Statement, ...]:
        return tuple(Statement(lines[step], step) for step in part)

    used = " ".join(lines[step] for step in (*steps.head, *steps.body, *steps.tail))
    bound = {name: value for name, value in names.items() if name in used}
    return Script(render(steps.head), render(steps.body), render(steps.tail), steps.per, bound)


def c_calls(steps: Steps, resources: StepResources) -> NativeProgram:
    """The loop as C calls of webgpu.h. Raises ``Unsupported`` or ``NativeUnavailable``."""
    calls = _StepCalls(resources)
    head, body, tail = (
        tuple(call for step in part for call in calls.of(step)) for part in (steps.head, steps.body, steps.tail)
    )
    return NativeProgram(head, body, tail, steps.per)


class _StepCalls:
    """Makes the C calls of each step. The resources own the descriptors and arrays that the calls point to."""

    def __init__(self, resources: StepResources) -> None:
        self.resources, self.library = resources, resources.session.library
        self.ffi = self.library.ffi
        self.device, self.queue = resources.device._internal, resources.queue._internal
        self.submitted = resources.keep(self.ffi.new("WGPUCommandBuffer[1]"))

    def of(self, step: str) -> tuple[NativeCall | Store, ...]:
        if step == "wait":
            return self.library.wait_calls(self.resources.device, self.resources.queue)
        if step == "submit":
            return self._submit()
        name, args, result = self._one(step)
        more = (self._call("CommandBufferRelease", step, _COMMANDS),) if step == "release" else ()
        return (self.library.call(f"wgpu{name}", *args, stage=step, result=result), *more)

    def _call(self, name: str, step: str, *args: Any) -> NativeCall:
        return self.library.call(f"wgpu{name}", *args, stage=step)

    def _submit(self) -> tuple[NativeCall | Store, ...]:
        def put(commands: Any, array: Any = self.submitted) -> None:
            array[0] = commands

        store = Store("commands", put, self.library.address(self.submitted), _COMMANDS, "submit")
        return store, self._call("QueueSubmit", "submit", self.queue, 1, self.submitted)

    def _one(self, step: str) -> tuple[str, tuple[Any, ...], Slot | None]:
        null, spec = self.ffi.NULL, self.resources.spec
        match step:
            case "write buffer":
                return "QueueWriteBuffer", (self.queue, self._handle(self.resources.uniform), 0, self._value(), 4), None
            case "create encoder":
                return "DeviceCreateCommandEncoder", (self.device, null), _ENCODER
            case "begin pass":
                return "CommandEncoderBeginComputePass", (_ENCODER, null), _PASS
            case "set pipeline":
                return "ComputePassEncoderSetPipeline", (_PASS, self._handle(self.resources.pipeline)), None
            case "create bind group":
                return "DeviceCreateBindGroup", (self.device, self._descriptors()), _GROUP
            case "set bind group":
                return "ComputePassEncoderSetBindGroup", (_PASS, 0, self._group(), 0, null), None
            case "release bind group":
                return "BindGroupRelease", (_GROUP,), None
            case "dispatch" if spec.indirect:
                return (
                    "ComputePassEncoderDispatchWorkgroupsIndirect",
                    (_PASS, self._handle(self.resources.indirect), 0),
                    None,
                )
            case "dispatch":
                return "ComputePassEncoderDispatchWorkgroups", (_PASS, GROUPS, 1, 1), None
            case "end pass":
                return "ComputePassEncoderEnd", (_PASS,), None
            case "finish":
                return "CommandEncoderFinish", (_ENCODER, null), _COMMANDS
            case "release pass":
                return "ComputePassEncoderRelease", (_PASS,), None
            case "release":
                return "CommandEncoderRelease", (_ENCODER,), None
        raise AssertionError(step)

    def _handle(self, wrapped: Any) -> Any:
        return wrapped._internal

    def _value(self) -> Any:
        return self.resources.keep(self.ffi.from_buffer("uint32_t[]", self.resources.value))

    def _group(self) -> Any:
        if self.resources.spec.bindgroup == "fresh":
            return _GROUP
        if self.resources.spec.bindgroup == "rotated":
            return self.library.cycle(group._internal for group in self.resources.groups)
        return self._handle(self.resources.groups[0])

    def _descriptors(self) -> Any:
        made = [self._descriptor(entries) for entries in self.resources.entries]
        return self.library.cycle(made) if len(made) > 1 else made[0]

    def _descriptor(self, entries: list[dict[str, Any]]) -> Any:
        array = self.resources.keep(self.ffi.new("WGPUBindGroupEntry[]", len(entries)))
        for slot, entry in zip(array, entries, strict=True):
            resource = entry["resource"]
            slot.binding, slot.buffer = entry["binding"], resource["buffer"]._internal
            slot.offset, slot.size = resource["offset"], resource["size"]
        descriptor = self.resources.keep(self.ffi.new("WGPUBindGroupDescriptor *"))
        descriptor.layout = self._handle(self.resources.layout)
        descriptor.entryCount, descriptor.entries = len(entries), array
        return descriptor
