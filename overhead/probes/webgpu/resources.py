"""A WebGPU device that chains share, and the buffers, pipeline and bind groups of one case."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.probes.base import Unsupported
from overhead.probes.common.step import GROUPS, RING, WORDS
from overhead.probes.kernels import lcg, source
from overhead.probes.webgpu import targets
from overhead.probes.webgpu.cases import StepSpec
from overhead.probes.webgpu.library import Library, library
from overhead.results import Target, because

COMPUTE_STAGE = 4
"""``GPUShaderStage.COMPUTE``."""
STEP_BINDINGS = ("storage", "uniform")
"""The bindings of the kernels of the step: the data, and for some kernels one word that they
read.
"""


class WebGpuSession:
    """A device of an adapter. All chains that need the same validation, checks and limits share
    it.
    """

    def __init__(
        self, loaded: Library, target: Target, validation: str, robust: bool, limits: dict[str, int]
    ) -> None:
        self.library = loaded
        adapter = targets.adapter(loaded, target)
        for name, least in limits.items():
            if (offered := int(adapter.limits[name])) < least:
                raise Unsupported(
                    because("limit-too-low", limit=name, offered=offered, missing=least - offered)
                )
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
            raise Unsupported(because("wgpu-native-validates"))
        else:
            self.device = adapter.request_device_sync(
                required_features=features, required_limits=limits
            )
        self.queue = self.device.queue
        self.timestamps = "timestamp-query" in features

    @functools.cached_property
    def tick(self) -> float:
        """ns per unit of a resolved timestamp. It is 1 for Dawn, which converts timestamps to
        ns.
        """
        if self.library.is_dawn:
            return 1.0
        return float(self.library.lib.wgpuQueueGetTimestampPeriod(self.queue._internal))


_sessions: dict[tuple[Any, ...], WebGpuSession] = {}


def session(
    target: Target,
    checks: str = "on",
    validation: str = "on",
    limits: Mapping[str, int] | None = None,
) -> WebGpuSession:
    """The shared device for these settings, opened at the first call. ``limits``: by name, the
    least that is needed.

    Raises ``Unavailable`` or ``Unsupported``.
    """
    robust = checks == "on" or target.stack != "dawn"
    wanted = dict(limits or {})
    key = (target.key, validation, robust, *sorted(wanted.items()))
    if key not in _sessions:
        _sessions[key] = WebGpuSession(library(target.stack), target, validation, robust, wanted)
    return _sessions[key]


def bind_group_layout(device: Any, kinds: Iterable[str], uniform_bytes: int = 0) -> Any:
    """The layout of buffers of these kinds at bindings 0, 1, ...; a uniform buffer has at least
    ``uniform_bytes``.
    """
    least = {"uniform": uniform_bytes}
    return device.create_bind_group_layout(
        entries=[
            {
                "binding": i,
                "visibility": COMPUTE_STAGE,
                "buffer": {"type": kind, "min_binding_size": least.get(kind, 0)},
            }
            for i, kind in enumerate(kinds)
        ]
    )


def entries(buffers: Iterable[Any]) -> list[dict[str, Any]]:
    """The entries of a bind group of whole buffers, at bindings 0, 1, ..."""
    return [
        {"binding": i, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}
        for i, buffer in enumerate(buffers)
    ]


def compute_pipeline(device: Any, layout: Any, module: Any, entry_point: str = "main") -> Any:
    """A pipeline of an entry point of the shader module, with one bind group of this layout."""
    shared = device.create_pipeline_layout(bind_group_layouts=[layout])
    return device.create_compute_pipeline(
        layout=shared, compute={"module": module, "entry_point": entry_point}
    )


def shader_module(session: WebGpuSession, text: str, checks: str) -> Any:
    """A shader module of this WGSL. ``checks``: ``on`` for all that the library adds, ``off``, or
    ``unbounded-loops``.

    Raises ``Unsupported`` if the library cannot omit these checks.
    """
    library, device = session.library, session.device
    if checks == "on" or (library.is_dawn and checks == "off"):
        return device.create_shader_module(code=text)
    if library.is_dawn:
        raise Unsupported(because("dawn-bounds-no-loops"))
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
    """A device and buffers on it. ``data``: those that the units of the step work on."""

    def __init__(self, session: WebGpuSession) -> None:
        self.session, self.device, self.queue = session, session.device, session.queue
        self.flags = session.library.webgpu.BufferUsage
        self.storage = self.flags.STORAGE | self.flags.COPY_SRC | self.flags.COPY_DST
        self.data: list[Any] = []
        self._owned: list[Any] = []

    def buffer(self, data: NDArray[Any], usage: int) -> Any:
        """A new buffer with these contents and usage flags. ``destroy`` releases it."""
        made = self.device.create_buffer_with_data(data=data, usage=usage)
        self._owned.append(made)
        return made

    def write(self, buffer: Any, values: NDArray[Any]) -> None:
        """Write to a buffer, and submit the write, because a pending write would be timed with the
        next sample.
        """
        self.queue.write_buffer(buffer, 0, values)
        self.queue.submit([])

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
        self.seeds = lcg.seeds(WORDS * spec.buffers).reshape(spec.buffers, WORDS)
        self.data = [self.buffer(seeds, self.storage) for seeds in self.seeds]
        fused = spec.pattern == "fused"
        uniform = self.flags.UNIFORM | self.flags.COPY_DST
        self.uniform: Any = self.buffer(np.zeros(1, np.uint32), uniform) if fused else None
        self.indirect: Any = (
            self.buffer(
                np.array([GROUPS, 1, 1], np.uint32), self.flags.INDIRECT | self.flags.COPY_DST
            )
            if spec.indirect
            else None
        )
        self.layout = bind_group_layout(self.device, STEP_BINDINGS[: 1 + fused], uniform_bytes=4)
        module = self.device.create_shader_module(code=self.text)
        self.pipeline = compute_pipeline(self.device, self.layout, module)
        shared = [self.uniform] if fused else []
        self.entries = [entries([data, *shared]) for data in self.data]
        self.groups = [
            self.device.create_bind_group(
                layout=self.layout, entries=self.entries[i % len(self.entries)]
            )
            for i in range(RING if spec.bindgroup == "rotated" else len(self.entries))
        ]

    def staging(self) -> Any:
        """A new buffer of 4 bytes that the host can map. ``destroy`` releases it."""
        made = self.device.create_buffer(size=4, usage=self.flags.MAP_READ | self.flags.COPY_DST)
        self._owned.append(made)
        return made

    def read(self) -> list[int]:
        """For each buffer, the number of steps from its seeds to its values, modulo 2^32. Raises
        ``Unverified``.
        """
        return [
            lcg.distance(seeds, np.frombuffer(self.queue.read_buffer(data), np.uint32))
            for seeds, data in zip(self.seeds, self.data, strict=True)
        ]
