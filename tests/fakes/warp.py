"""A small module in place of Warp, with one CUDA device that runs a launch at once. Kernels are
names.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from overhead.probes import kernels
from overhead.probes.kernels import lcg

ELAPSED_MS = 0.25
"""Time between any two events."""
_KERNELS = SimpleNamespace(step1="step1", step8="step8", step16="step16", spin="spin")


def _array(values: Any, **_: Any) -> Any:
    kept = np.array(values, np.uint32)
    return SimpleNamespace(numpy=kept.copy, assign=lambda new: np.copyto(kept, new))


class Device:
    """The device, which is also its own stream. Until it is waited for, it is busy with ``spin`` if
    that was launched.

    ``launched``: names of kernels.
    """

    alias = "cuda:0"
    name = "Fake GPU"
    uuid = "GPU-00000000-0000-0000-0000-000000000001"
    is_cuda = True
    is_cpu = False
    graph: list[Callable[[], None]] | None = None

    def __init__(self) -> None:
        self.stream = self
        self.launched: list[str] = []

    def record_event(self, event: Any) -> None:
        event.is_complete = "spin" not in self.launched

    def launch(
        self, kernel: str, *, dim: int, inputs: list[Any], device: Any, record_cmd: bool = False
    ) -> Any:
        def run() -> None:
            self.launched.append(kernel)
            if kernel != "spin":
                assert dim == 256
                assert len(inputs) == int(kernel.removeprefix("step"))
                words = inputs[0]
                words.assign(lcg.advance(words.numpy(), 1))

        def run_or_capture() -> None:
            if self.graph is None:
                run()
            else:
                self.graph.append(run)

        if record_cmd:
            return SimpleNamespace(launch=run_or_capture)
        run_or_capture()
        return None

    @contextlib.contextmanager
    def capture(self, device: Any) -> Iterator[Any]:
        self.graph = []
        yield SimpleNamespace(graph=self.graph)
        self.graph = None


def install(patch: pytest.MonkeyPatch) -> Device:
    """Use a module in place of Warp, and names in place of our kernels. Returns its device."""
    device = Device()
    module: Any = SimpleNamespace(
        __version__="0.0",
        LOG_WARNING=30,
        config=SimpleNamespace(),
        uint32=np.uint32,
        array=_array,
        get_devices=lambda: [device],
        get_device=lambda name: device,
        launch=device.launch,
        zeros=lambda count, **_: _array([0] * count),
        synchronize_stream=lambda device: device.launched.clear(),
        Event=lambda device, enable_timing: SimpleNamespace(is_complete=False),
        ScopedCapture=device.capture,
        get_event_elapsed_time=lambda start, end: ELAPSED_MS,
        capture_launch=lambda graph: [run() for run in graph],
    )
    patch.setitem(sys.modules, "warp", module)
    patch.setitem(sys.modules, "overhead.probes.kernels.step_warp", _KERNELS)
    patch.setattr(kernels, "step_warp", _KERNELS, raising=False)
    return device
