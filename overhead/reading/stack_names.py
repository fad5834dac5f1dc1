"""The names of stacks as readers know them."""

from __future__ import annotations

from overhead.reading.format import plain
from overhead.reading.view import TargetView
from overhead.results import Record

_NAMES = {
    "cuda-driver": "the CUDA driver", "cuda-graph": "CUDA graphs", "cupy": "CuPy", "torch": "PyTorch",
    "torch-compile": "torch.compile", "triton": "Triton", "jax": "JAX", "vulkan": "raw Vulkan", "dawn": "Dawn",
    "wgpu-native": "wgpu-native", "chromium": "Chromium", "firefox": "Firefox", "safari": "Safari", "numpy": "NumPy",
}  # fmt: skip
GRAPH_MAKERS = {
    "driver": "the CUDA driver",
    "torch": "PyTorch (torch.cuda.CUDAGraph)",
    "torch-compiled": "torch.compile",
}
"""Who makes a CUDA graph, by the parameter ``maker``."""


def stack_name(target: TargetView) -> str:
    """``Dawn``, ``the CUDA driver``; with "(software)" or "(CPU)" where no GPU does the work."""
    where = " (CPU)" if target.first.api == "CPU" else " (software)" if target.software else ""
    return _NAMES.get(target.stack, plain(target.stack, 32)) + where


def graph_maker(graph: Record) -> str:
    """Who made the CUDA graph: ``the CUDA driver``."""
    maker = str(graph.params.get("maker", "driver"))
    return GRAPH_MAKERS.get(maker, plain(maker, 20))
