"""What a first example can use on this machine, found without importing any of it."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_CUDA_PARTS = ("libtorch_cuda.so", "libtorch_hip.so", "torch_cuda.dll")
"""The libraries of PyTorch's builds for GPUs whose device is named ``cuda``."""
_DEVICE_FILES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What the drivers of NVIDIA, of AMD, and of Windows for its Linux make where there is a GPU."""


@dataclass(frozen=True)
class FirstSteps:
    """What the examples are written for. ``on_gpu``: PyTorch can reach a GPU by the name ``cuda``, as far as seen."""

    library: Literal["torch", "numpy"]
    on_gpu: bool = False


def first_steps() -> FirstSteps:
    """The library and the device for a first example. Takes milliseconds: it looks for files."""
    torch = importlib.util.find_spec("torch")
    if torch is None:
        return FirstSteps("numpy")
    libraries = Path(torch.origin or "").parent / "lib"
    is_built_for_gpu = any((libraries / name).is_file() for name in _CUDA_PARTS)
    return FirstSteps("torch", on_gpu=is_built_for_gpu and _has_gpu())


def _has_gpu() -> bool:
    if sys.platform == "win32":
        return os.path.isfile(os.path.join(os.environ.get("SYSTEMROOT", ""), "System32", "nvcuda.dll"))
    return any(map(os.path.exists, _DEVICE_FILES))
