"""A small module in place of CuPy: arrays are NumPy's, and ``RawKernel`` runs the step of
``step.cu`` only.
"""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from overhead.probes.kernels import lcg


class Event:
    """An event that must be recorded before it is waited for."""

    done = False

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.recorded = 0

    def record(self) -> None:
        self.recorded += 1

    def synchronize(self) -> None:
        assert self.recorded


class RawKernel:
    """``step1`` advances the words by one step; every other kernel does nothing."""

    def __init__(self, code: str, name: str) -> None:
        assert f"void {name}(" in code
        self.name = name

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: tuple[Any]) -> None:
        if self.name == "step1":
            assert (grid, block) == ((4,), (64,))
            arguments[0][:] = lcg.advance(arguments[0], 1)


class Device:
    """A device that is always idle."""

    def __init__(self, ordinal: int = 0) -> None:
        self.ordinal = ordinal

    def use(self) -> None: ...

    def synchronize(self) -> None: ...


ELAPSED_MS = 0.25
"""Time between any two events."""


def module() -> Any:
    """What ``import cupy`` returns."""
    found: Any = ModuleType("cupy")
    for name in np.__all__:
        setattr(found, name, getattr(np, name))
    found.__version__, found.asarray, found.asnumpy, found.RawKernel = (
        "0.0",
        np.array,
        np.asarray,
        RawKernel,
    )
    found.cuda = SimpleNamespace(
        Event=Event,
        Device=Device,
        get_current_stream=Device,
        get_elapsed_time=lambda start, end: ELAPSED_MS,
        runtime=SimpleNamespace(runtimeGetVersion=lambda: 13000),
    )
    return found
