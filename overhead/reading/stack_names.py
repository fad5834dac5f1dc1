"""The names of stacks as readers know them."""

from __future__ import annotations

from overhead.reading.format import plain
from overhead.reading.view import TargetView

_NAMES = {
    "cuda-driver": "the CUDA driver", "cuda-graph": "CUDA graphs", "cupy": "CuPy", "torch": "PyTorch",
    "torch-compile": "torch.compile", "triton": "Triton", "jax": "JAX", "vulkan": "raw Vulkan", "dawn": "Dawn",
    "wgpu-native": "wgpu-native", "chromium": "Chromium", "firefox": "Firefox", "safari": "Safari", "numpy": "NumPy",
}  # fmt: skip


def stack_name(target: TargetView) -> str:
    """``Dawn``, ``the CUDA driver``; with "(software)" or "(CPU)" where no GPU does the work."""
    where = " (CPU)" if target.first.api == "CPU" else " (software)" if target.software else ""
    return _NAMES.get(target.stack, plain(target.stack, 32)) + where
