"""A small module in place of Warp, with one CUDA device that is done when it is waited for. Kernels are names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from overhead.probes import kernels
from overhead.probes.kernels import lcg

ELAPSED_MS = 0.25
"""Time between any two events."""
KERNELS = SimpleNamespace(step1="step1", step8="step8", step16="step16", spin="spin")


class Array:
    """Words in host memory."""

    def __init__(self, values: Any, **_: Any) -> None:
        self.values = np.array(values, np.uint32)

    def numpy(self) -> Any:
        return self.values.copy()

    def assign(self, values: Any) -> None:
        self.values[:] = values


class Device:
    """The device, which is also its own stream."""

    alias, name, uuid = "cuda:0", "Fake GPU", "GPU-00000000-0000-0000-0000-000000000001"
    is_cuda, is_cpu = True, False
    capturing: list[Callable[[], None]] | None = None

    def __init__(self) -> None:
        self.stream, self.launched = self, list[str]()

    def record_event(self, event: Any) -> None:
        event.is_complete = "spin" not in self.launched

    def launch(self, kernel: str, *, dim: int, inputs: list[Any], device: Any, record_cmd: bool = False) -> Any:
        def run() -> None:
            self.launched.append(kernel)
            if kernel != "spin":
                assert (dim, len(inputs)) == (256, int(kernel.removeprefix("step")))
                inputs[0].assign(lcg.advance(inputs[0].values, 1))

        def once() -> None:
            run() if self.capturing is None else self.capturing.append(run)

        return SimpleNamespace(launch=once) if record_cmd else once()


class Capture:
    """Collects the launches of a ``with`` block instead of running them."""

    def __init__(self, device: Device) -> None:
        self.device, self.graph = device, list[Callable[[], None]]()

    def __enter__(self) -> Capture:
        self.device.capturing = self.graph
        return self

    def __exit__(self, *_: object) -> None:
        self.device.capturing = None


def module() -> Any:
    """What ``import warp`` returns."""
    device = Device()
    return SimpleNamespace(
        __version__="0.0", LOG_WARNING=30, config=SimpleNamespace(), uint32=np.uint32, init=lambda: None,
        get_devices=lambda: [device], get_device=lambda name: device, array=Array, launch=device.launch,
        zeros=lambda count, **_: Array([0] * count), synchronize_stream=lambda device: device.launched.clear(),
        Event=lambda device, enable_timing: SimpleNamespace(is_complete=False), ScopedCapture=Capture,
        get_event_elapsed_time=lambda start, end: ELAPSED_MS, capture_launch=lambda graph: [run() for run in graph],
    )  # fmt: skip


def install(patch: pytest.MonkeyPatch) -> None:
    """Use the module in place of Warp, and its kernels in place of ours."""
    patch.setitem(sys.modules, "warp", module())
    patch.setattr(kernels, "step_warp", KERNELS, raising=False)
    patch.setitem(sys.modules, "overhead.probes.kernels.step_warp", KERNELS)
