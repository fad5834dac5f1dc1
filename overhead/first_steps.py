"""What a first example can use on this machine: PyTorch or NumPy, with a GPU or without.

``overhead`` alone prints these examples, so nothing is imported for them: ``import torch`` takes
seconds.
"""

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
"""Made where there is a GPU: by NVIDIA's driver, by AMD's driver, and by Windows in its Linux
(WSL).
"""


@dataclass(frozen=True)
class FirstSteps:
    """What the examples are written for.

    ``on_gpu``: files show that PyTorch can reach a GPU as ``cuda``. They may be wrong: a driver can
    be too old. Then the example says so when it is run.
    """

    library: Literal["torch", "numpy"]
    on_gpu: bool = False


def first_steps() -> FirstSteps:
    """The library and the device for a first example. Takes milliseconds: it only looks for
    files.
    """
    # Finds the package without importing it.
    torch = importlib.util.find_spec("torch")
    if torch is None:
        return FirstSteps("numpy")
    # PyTorch's own folder of libraries tells for what it was built: only with the libraries in
    # ``_CUDA_PARTS`` it can use a GPU.
    libraries = Path(torch.origin or "").parent / "lib"
    is_built_for_gpu = any((libraries / name).is_file() for name in _CUDA_PARTS)
    on_gpu = is_built_for_gpu and _has_gpu()
    return FirstSteps("torch", on_gpu)


def _has_gpu() -> bool:
    """Whether a driver for a GPU is at work, which then has made a device file. Windows has no such
    files: there, whether NVIDIA's driver is installed.
    """
    if sys.platform == "win32":
        windows = os.environ.get("SYSTEMROOT", "")
        return os.path.isfile(os.path.join(windows, "System32", "nvcuda.dll"))
    # Of the drivers of NVIDIA and AMD, and of Windows in its Linux.
    return any(map(os.path.exists, _DEVICE_FILES))
