"""The device of a case, with buffers that contain known seeds, a pipeline and bind groups."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.probes.base import Unsupported
from overhead.probes.common.step_kernel import GROUPS, RING, WORDS
from overhead.probes.kernels import lcg, source
from overhead.probes.webgpu import targets
from overhead.probes.webgpu.cases import StepSpec
from overhead.probes.webgpu.library import Library, library
from overhead.results import Target

COMPUTE_STAGE = 4
"""``GPUShaderStage.COMPUTE``."""


class WebGpuSession:
    """A device of an adapter. All chains that need the same validation, checks and limits share it."""

    def __init__(self, loaded: Library, target: Target, validation: str, robust: bool, limits: dict[str, int]) -> None:
        self.library = loaded
        adapter = targets.adapter(loaded, target)
        for name, least in limits.items():
            if (offered := int(adapter.limits[name])) < least:
                raise Unsupported(f"{name} is {offered:,}, {least - offered:,} fewer than needed")
        features = [name for name in ("timestamp-query", "shader-f16") if name in adapter.features]
        if loaded.is_dawn:
            # With the toggle timestamp_quantization, Dawn rounds timestamps to 0.1 ms.
            self.device = loaded.extras.request_device_sync(
                adapter,
                required_features=features,
                required_limits=limits,
                enable_toggles=[
                    *(["skip_validation"] if validation == "skip" else []),
                    *([] if robust else ["disable_robustness"]),
                ],
                disable_toggles=["timestamp_quantization"],
            )
        elif validation == "skip":
            raise Unsupported("wgpu-native always validates")
        else:
            self.device = adapter.request_device_sync(required_features=features, required_limits=limits)
        self.queue = self.device.queue
        self.timestamps = "timestamp-query" in features

    @functools.cached_property
    def tick(self) -> float:
        """Nanoseconds per unit of a resolved timestamp. It is 1 for Dawn, which converts timestamps to nanoseconds."""
        if self.library.is_dawn:
            return 1.0
        return float(self.library.lib.wgpuQueueGetTimestampPeriod(self.queue._internal))


_sessions: dict[tuple[Any, ...], WebGpuSession] = {}


def session(target: Target, spec: StepSpec, limits: Mapping[str, int] | None = None) -> WebGpuSession:
    """The session of a case with these limits. It is opened at the first call.

    Raises ``Unavailable`` or ``Unsupported``.
    """
    robust = spec.checks == "on" or target.stack != "dawn"
    wanted = dict(limits or {})
    key = (target.key, spec.validation, robust, *sorted(wanted.items()))
    if key not in _sessions:
        _sessions[key] = WebGpuSession(library(target.stack), target, spec.validation, robust, wanted)
    return _sessions[key]


def bind_group_layout(device: Any, uniform: bool) -> Any:
    """A layout: the data buffer at binding 0, then the uniform buffer if any."""
    kinds: list[dict[str, Any]] = [{"type": "storage"}]
    if uniform:
        kinds.append({"type": "uniform", "min_binding_size": 4})
    return device.create_bind_group_layout(
        entries=[{"binding": i, "visibility": COMPUTE_STAGE, "buffer": kind} for i, kind in enumerate(kinds)]
    )


def entries(data: Any, uniform: Any) -> list[dict[str, Any]]:
    """The entries of a bind group with the layout ``bind_group_layout``."""
    bound = [{"buffer": data, "offset": 0, "size": 4 * WORDS}]
    if uniform is not None:
        bound.append({"buffer": uniform, "offset": 0, "size": 4})
    return [{"binding": i, "resource": resource} for i, resource in enumerate(bound)]


def shader_module(session: WebGpuSession, text: str, checks: str) -> Any:
    """WGSL compiled with all checks that the library adds, or without some of them. Raises ``Unsupported``."""
    library, device = session.library, session.device
    if checks == "on" or (library.is_dawn and checks == "off"):
        return device.create_shader_module(code=text)
    if library.is_dawn:
        raise Unsupported("Dawn bounds no loops")
    ffi, lib = library.ffi, library.lib
    create, _ = library.symbol("wgpuDeviceCreateShaderModuleTrusted")
    code = ffi.new("char[]", text.encode())
    wgsl = ffi.new("WGPUShaderSourceWGSL *")
    wgsl.chain.sType = lib.WGPUSType_ShaderSourceWGSL
    wgsl.code.data, wgsl.code.length = code, len(code) - 1
    descriptor = ffi.new("WGPUShaderModuleDescriptor *")
    descriptor.nextInChain = ffi.addressof(wgsl.chain)
    kept = lib.WGPUShaderRuntimeChecks_BoundsChecks if checks == "unbounded-loops" else 0
    made = create(device._internal, descriptor, kept)
    library.raise_errors()
    return type(device.create_shader_module(code=text))("", made, device)


class DeviceBuffers:
    """A device and its buffers. ``data``: the buffers that the units work on."""

    def __init__(self, session: WebGpuSession) -> None:
        self.session, self.device, self.queue = session, session.device, session.queue
        self.flags = session.library.webgpu.BufferUsage
        self.storage = self.flags.STORAGE | self.flags.COPY_SRC | self.flags.COPY_DST
        self.data: list[Any] = []
        self._owned: list[Any] = []

    def buffer(self, data: NDArray[Any], usage: int) -> Any:
        """A new buffer with these contents. ``destroy`` releases it."""
        made = self.device.create_buffer_with_data(data=data, usage=usage)
        self._owned.append(made)
        return made

    def destroy(self) -> None:
        """Release all buffers."""
        while self._owned:
            self._owned.pop().destroy()


class StepResources(DeviceBuffers):
    """Buffers, pipeline and bind groups of one case of the step."""

    def __init__(self, session: WebGpuSession, spec: StepSpec) -> None:
        super().__init__(session)
        self.spec = spec
        self.text, self.sha256 = source(spec.kernel)
        self._kept: list[Any] = []
        self.seeds = lcg.seeds(WORDS * spec.buffers).reshape(spec.buffers, WORDS)
        self.data = [self.buffer(seeds, self.storage) for seeds in self.seeds]
        self.value = np.array([lcg.INCREMENT], np.uint32)
        uniform = self.flags.UNIFORM | self.flags.COPY_DST
        self.uniform = self.buffer(np.zeros(1, np.uint32), uniform) if spec.uniform else None
        self.indirect = (
            self.buffer(np.array([GROUPS, 1, 1], np.uint32), self.flags.INDIRECT | self.flags.COPY_DST)
            if spec.indirect
            else None
        )
        self.layout = bind_group_layout(self.device, self.uniform is not None)
        self.pipeline = self._pipeline()
        self.entries = [entries(data, self.uniform) for data in self.data]
        self.groups = [
            self.device.create_bind_group(layout=self.layout, entries=self.entries[i % len(self.entries)])
            for i in range(RING if spec.bindgroup == "rotated" else len(self.entries))
        ]

    def keep(self, thing: Any) -> Any:
        """Keep a reference to an object that C code points to."""
        self._kept.append(thing)
        return thing

    def put(self, uniform: Any, value: int) -> None:
        """Write one word and submit the write, because a pending write would be executed in the next window."""
        self.queue.write_buffer(uniform, 0, np.array([value], np.uint32))
        self.queue.submit([])

    def staging(self) -> Any:
        """A buffer of four bytes that can be mapped."""
        made = self.device.create_buffer(size=4, usage=self.flags.MAP_READ | self.flags.COPY_DST)
        self._owned.append(made)
        return made

    def _pipeline(self) -> Any:
        layout = self.device.create_pipeline_layout(bind_group_layouts=[self.layout])
        module = shader_module(self.session, self.text, self.spec.checks)
        return self.device.create_compute_pipeline(layout=layout, compute={"module": module, "entry_point": "main"})

    def read(self) -> list[int]:
        """For each buffer, the number of steps from its seeds to its values, modulo 2^32. Raises ``Unverified``."""
        return [
            lcg.distance(seeds, np.frombuffer(self.queue.read_buffer(data), np.uint32))
            for seeds, data in zip(self.seeds, self.data, strict=True)
        ]
