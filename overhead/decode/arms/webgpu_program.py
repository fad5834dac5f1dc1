"""A lowered program on a WebGPU device: its buffers, pipelines and bind groups, and the dispatches of one step."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.decode.lowering.buffers import DTYPES, Buffer, contents, viewed
from overhead.decode.lowering.kernel import Kernel
from overhead.decode.lowering.program import Program
from overhead.probes.webgpu.library import Library
from overhead.probes.webgpu.resources import bind_group_layout, compute_pipeline, entries


@dataclasses.dataclass(frozen=True)
class SharedObjects:
    """What programs on a device share: buffers of weights, by name; bind group layouts and pipelines, by kernel."""

    weights: dict[str, Any] = dataclasses.field(default_factory=dict)
    pipelines: dict[Kernel, tuple[Any, Any]] = dataclasses.field(default_factory=dict)


class WebGpuProgram:
    """A program with its buffers, pipelines and bind groups on a device.

    ``values``: the contents of weights and state by name, in any numeric type. State without contents starts at zero.
    ``shared``: what is on the device already; what this program needs is added and outlives it.
    """

    def __init__(
        self,
        loaded: Library,
        device: Any,
        program: Program,
        values: Mapping[str, NDArray[Any]],
        shared: SharedObjects | None = None,
    ) -> None:
        self.program, self._library, self.device, self.queue = program, loaded, device, device.queue
        loaded.forget_errors()
        found = SharedObjects() if shared is None else shared
        weights, pipelines, own = dict(found.weights), dict(found.pipelines), dict[str, Any]()
        for name, buffer in program.buffers.items():
            place = weights if buffer.role == "weight" else own
            if name not in place:
                place[name] = self._buffer(buffer, values.get(name))
        for kernel in program.kernels.values():
            if kernel not in pipelines:
                pipelines[kernel] = self._pipeline(kernel)
        self._buffers = {**weights, **own}
        self._own = list((self._buffers if shared is None else own).values())
        made = {name: pipelines[kernel] for name, kernel in program.kernels.items()}
        self.dispatches = [
            (made[d.kernel][1], self._group(made[d.kernel][0], d.bindings), d.grid) for d in program.dispatches
        ]
        loaded.raise_errors()
        found.weights.update(weights)
        found.pipelines.update(pipelines)

    def _buffer(self, buffer: Buffer, given: NDArray[Any] | None) -> Any:
        flags = self._library.webgpu.BufferUsage
        usage = flags.STORAGE | flags.COPY_SRC | flags.COPY_DST
        data = contents(buffer, given)
        if data is None:
            return self.device.create_buffer(size=buffer.bytes, usage=usage)
        return self.device.create_buffer_with_data(data=data, usage=usage)

    def _pipeline(self, kernel: Kernel) -> tuple[Any, Any]:
        kinds = ["storage" if binding.written else "read-only-storage" for binding in kernel.bindings]
        layout = bind_group_layout(self.device, kinds)
        return layout, compute_pipeline(self.device, layout, self.device.create_shader_module(code=kernel.wgsl))

    def _group(self, layout: Any, names: tuple[str, ...]) -> Any:
        return self.device.create_bind_group(layout=layout, entries=entries(self._buffers[name] for name in names))

    def put(self, name: str, values: NDArray[Any]) -> None:
        """Write a whole buffer."""
        number = self.program.buffers[name].number
        self.queue.write_buffer(self._buffers[name], 0, np.ascontiguousarray(values, dtype=DTYPES[number]))

    def buffer(self, name: str) -> Any:
        """The buffer with this name."""
        return self._buffers[name]

    def get(self, name: str) -> NDArray[Any]:
        """The numbers of a buffer after all submitted work. Raises ``Unverified`` if the library reported an error."""
        buffer = self.program.buffers[name]
        found = np.frombuffer(self.queue.read_buffer(self._buffers[name]), DTYPES[buffer.number])[: buffer.count]
        self._library.raise_errors()
        return found

    def output(self, index: int) -> NDArray[Any]:
        """An output of the last step, by its place among the module's outputs, in its shape."""
        view = self.program.outputs[index]
        return viewed(self.get(view.buffer), view)

    def step(self) -> None:
        """Submit all dispatches of one step, in one pass."""
        encoder = self.device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        for pipeline, group, grid in self.dispatches:
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, group)
            compute.dispatch_workgroups(*grid)
        compute.end()
        self.queue.submit([encoder.finish()])

    def close(self) -> None:
        """Release the buffers that are not shared."""
        while self._own:
            self._own.pop().destroy()
