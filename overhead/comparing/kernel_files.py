"""Which kernel files a case may use, for a fingerprint without raw samples: it lists the files of all its cases."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from overhead.results import Record

_STEP = "step"
"""The workload of the files that no workload names, such as ``fused.cu``."""
_STACKS: Mapping[str, Collection[str]] = {
    ".wgsl": ("dawn", "wgpu-native", "wgpu-py", "chromium", "firefox", "webkit"),
    ".cu": ("cuda-driver", "cuda-graph", "cuda-core", "cupy"),
    ".cuda": ("cuda-driver", "cuda-graph"),
    ".spv": ("vulkan",),
    ".cl": ("pyopencl",),
    ".triton.py": ("triton",),
    "_triton.py": ("triton",),
    "_cute.py": ("cute-dsl",),
    "_numba": ("numba-cuda",),
    "_warp.py": ("warp",),
}
"""The stacks with files of this ending. Raw samples tell the files of each case; a test compares all committed ones."""
_WITHOUT_FILES = ("floor", "jax", "mlx", "numpy", "onnxruntime", "torch", "torch-compile")
"""Stacks whose kernels are in the library."""


def may_use(record: Record, file: str, workloads: Collection[str]) -> bool:
    """Whether the case may use the kernel file. ``workloads``: all that the run measured.

    True where that is not known: for a stack or a kind of file of a plugin.
    """
    if record.stack in _WITHOUT_FILES or record.workload != _workload_of(file, workloads):
        return False
    known = {stack for stacks in _STACKS.values() for stack in stacks}
    stacks = next((stacks for ending, stacks in _STACKS.items() if file.endswith(ending)), None)
    return stacks is None or record.stack in stacks or record.stack not in known


def _workload_of(file: str, workloads: Collection[str]) -> str:
    named = [name for name in workloads if file.startswith((f"{name}.", f"{name}_"))]
    return max(named, key=len, default=_STEP)
