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
    """An open device of an adapter (a GPU with its driver), and its queue. All chains that need the
    same validation, checks and limits share it. ``timestamps``: whether it can write timestamps.
    """

    def __init__(
        self, loaded: Library, target: Target, validation: str, robust: bool, limits: dict[str, int]
    ) -> None:
        """Open the device. ``validation``: ``skip`` for no checks of the calls. ``robust``: keep
        the bounds checks in kernels. ``limits``: by name, the least that is needed. Only Dawn has
        switches (toggles) for the first two.

        Raises ``Unsupported`` if the adapter offers less, or if wgpu-native shall skip validation.
        """
        self.library = loaded
        adapter = targets.adapter(loaded, target)
        for name, least in limits.items():
            offered = int(adapter.limits[name])
            if offered < least:
                raise Unsupported(
                    because("limit-too-low", limit=name, offered=offered, missing=least - offered)
                )
        # To write timestamps, and to compute with float16 numbers.
        wanted_features = ("timestamp-query", "shader-f16")
        features = [name for name in wanted_features if name in adapter.features]
        if loaded.is_dawn:
            toggles = []
            if validation == "skip":
                toggles.append("skip_validation")
            if not robust:
                toggles.append("disable_robustness")
            # With the toggle timestamp_quantization, Dawn rounds timestamps to 0.1 ms.
            self.device = loaded.extras.request_device_sync(
                adapter,
                required_features=features,
                required_limits=limits,
                enable_toggles=toggles,
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
    """The open device of the target for these settings, shared by all chains that need the same,
    and opened at the first call. ``checks``, in kernels, and ``validation``, of calls, are ``on``
    if the library shall do all that it usually does. ``limits``: by name, the least that is needed.

    Raises ``Unavailable`` or ``Unsupported``.
    """
    # Dawn omits checks of kernels in the whole device. wgpu-native omits them when a kernel is
    # compiled, so one of its devices serves kernels with checks and without.
    robust = checks == "on" or target.stack != "dawn"
    least = dict(limits or {})
    # All that tells two devices apart; ``_sessions`` has the open ones.
    key = (target.key, validation, robust, *sorted(least.items()))
    if key not in _sessions:
        _sessions[key] = WebGpuSession(library(target.stack), target, validation, robust, least)
    return _sessions[key]


def bind_group_layout(device: Any, kinds: Iterable[str], uniform_bytes: int = 0) -> Any:
    """The layout of a bind group, which tells WebGPU the buffers of a kernel: of these kinds, such
    as ``storage``, at bindings 0, 1, ... A uniform buffer has at least ``uniform_bytes``; with 0,
    WebGPU looks at its size at each dispatch.
    """
    bindings = []
    for number, kind in enumerate(kinds):
        least_bytes = uniform_bytes if kind == "uniform" else 0
        buffer = {"type": kind, "min_binding_size": least_bytes}
        bindings.append({"binding": number, "visibility": COMPUTE_STAGE, "buffer": buffer})
    return device.create_bind_group_layout(entries=bindings)


def entries(buffers: Iterable[Any]) -> list[dict[str, Any]]:
    """The entries of a bind group of whole buffers, at bindings 0, 1, ..."""
    bindings = []
    for number, buffer in enumerate(buffers):
        whole = {"buffer": buffer, "offset": 0, "size": buffer.size}
        bindings.append({"binding": number, "resource": whole})
    return bindings


def compute_pipeline(device: Any, layout: Any, module: Any, entry_point: str = "main") -> Any:
    """A pipeline of an entry point of the shader module, with one bind group of this layout."""
    shared = device.create_pipeline_layout(bind_group_layouts=[layout])
    return device.create_compute_pipeline(
        layout=shared, compute={"module": module, "entry_point": entry_point}
    )


def shader_module(session: WebGpuSession, text: str, checks: str) -> Any:
    """A shader module, compiled WGSL. ``checks``: which checks the library adds to kernels: ``on``
    for all, ``off`` for none, ``unbounded-loops`` for all but those that end an endless loop.

    Raises ``Unsupported`` if the library cannot omit these checks.
    """
    library = session.library
    device = session.device
    device_omits_checks = library.is_dawn and checks == "off"
    if checks == "on" or device_omits_checks:
        return device.create_shader_module(code=text)
    if library.is_dawn:
        raise Unsupported(because("dawn-bounds-no-loops"))

    # wgpu-py has no call for this function of wgpu-native, so it is called by its C interface.
    ffi = library.ffi
    lib = library.lib
    create, _ = library.symbol("wgpuDeviceCreateShaderModuleTrusted")
    code = ffi.new("char[]", text.encode())
    wgsl = ffi.new("WGPUShaderSourceWGSL *")
    wgsl.chain.sType = lib.WGPUSType_ShaderSourceWGSL
    wgsl.code.data = code
    wgsl.code.length = len(code) - 1  # without the zero at its end
    descriptor = ffi.new("WGPUShaderModuleDescriptor *")
    descriptor.nextInChain = ffi.addressof(wgsl.chain)
    # What stays: the bounds checks of arrays, or nothing.
    kept_checks = lib.WGPUShaderRuntimeChecks_BoundsChecks if checks == "unbounded-loops" else 0
    handle = create(device._internal, descriptor, kept_checks)
    library.raise_errors()
    # The handle becomes an object of wgpu-py, whose class is that of a usual module.
    module_class = type(device.create_shader_module(code=text))
    # '': the label of the module.
    return module_class("", handle, device)


class DeviceBuffers:
    """A device and buffers on it. ``data``: those that the units of the step work on."""

    def __init__(self, session: WebGpuSession) -> None:
        """No buffers yet. ``storage``: the usage of a buffer that kernels change and that is copied
        to and from the host. ``_owned``: the buffers that ``destroy`` releases.
        """
        self.session = session
        self.device = session.device
        self.queue = session.queue
        self.flags = session.library.webgpu.BufferUsage
        self.storage = self.flags.STORAGE | self.flags.COPY_SRC | self.flags.COPY_DST
        self.data: list[Any] = []
        self._owned: list[Any] = []

    def buffer(self, data: NDArray[Any], usage: int) -> Any:
        """A new buffer with these contents and usage flags. ``destroy`` releases it."""
        buffer = self.device.create_buffer_with_data(data=data, usage=usage)
        self._owned.append(buffer)
        return buffer

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
    """What the dispatches of one case of the step, a small kernel, need: buffers, the pipeline (the
    compiled kernel), and bind groups, which name the buffers of a dispatch. ``seeds``: the first
    values of the data buffers, which each step changes; ``uniform``: the number of steps for the
    fused kernel; ``indirect``: the number of workgroups, where a dispatch reads it from a buffer.

    The statements of a loop in Python use the attributes by their names.
    """

    def __init__(self, session: WebGpuSession, spec: StepSpec) -> None:
        """Make a data buffer for each chain of dependent units, with different seeds, and a bind
        group for each; ``rotated`` makes several groups of one buffer.
        """
        super().__init__(session)
        self.spec = spec
        self.text, self.sha256 = source(spec.kernel)
        self.seeds = lcg.seeds(WORDS * spec.buffers).reshape(spec.buffers, WORDS)
        self.data = [self.buffer(seeds, self.storage) for seeds in self.seeds]
        is_fused = spec.pattern == "fused"
        self.uniform: Any = None
        self.indirect: Any = None
        # The data buffer alone; the fused kernel has another binding.
        bindings: tuple[str, ...] = STEP_BINDINGS[:1]
        shared_buffers = []
        # The fused kernel reads the number of its steps from one buffer more.
        if is_fused:
            usage = self.flags.UNIFORM | self.flags.COPY_DST
            self.uniform = self.buffer(np.zeros(1, np.uint32), usage)
            bindings = STEP_BINDINGS
            shared_buffers = [self.uniform]
        # The device reads the number of workgroups of a dispatch from this buffer.
        if spec.indirect:
            usage = self.flags.INDIRECT | self.flags.COPY_DST
            self.indirect = self.buffer(np.array([GROUPS, 1, 1], np.uint32), usage)

        self.layout = bind_group_layout(self.device, bindings, uniform_bytes=4)
        module = self.device.create_shader_module(code=self.text)
        self.pipeline = compute_pipeline(self.device, self.layout, module)
        # By data buffer, what a bind group names: the buffers at bindings 0, 1.
        self.entries = [entries([data, *shared_buffers]) for data in self.data]
        # ``rotated``: the units take RING groups in turn, also where all are of one buffer.
        count = RING if spec.bindgroup == "rotated" else len(self.entries)
        self.groups = []
        for number in range(count):
            of_buffer = self.entries[number % len(self.entries)]
            group = self.device.create_bind_group(layout=self.layout, entries=of_buffer)
            self.groups.append(group)

    def staging(self) -> Any:
        """A new buffer of 4 bytes that the host can map. ``destroy`` releases it."""
        usage = self.flags.MAP_READ | self.flags.COPY_DST
        buffer = self.device.create_buffer(size=4, usage=usage)
        self._owned.append(buffer)
        return buffer

    def read(self) -> list[int]:
        """For each data buffer, how many steps have run on it, modulo 2^32: the number of steps
        from its seeds to its values. Raises ``Unverified`` if its values disagree.
        """
        steps = []
        for seeds, data in zip(self.seeds, self.data, strict=True):
            words = np.frombuffer(self.queue.read_buffer(data), np.uint32)
            steps.append(lcg.distance(seeds, words))
        return steps
