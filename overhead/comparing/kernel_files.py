"""Which kernel files a case may use, for a fingerprint without raw samples: it lists the files of all its cases."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from overhead.results import Record

_STEP = "step"
_STEP_FILES = ("step", "fused", "spin")
"""How the names of the files of the workload ``step`` begin; those of others begin with the workload."""
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
_WITH_FILES = frozenset(stack for stacks in _STACKS.values() for stack in stacks)
_WITHOUT_FILES = ("floor", "jax", "mlx", "numpy", "onnxruntime", "torch", "torch-compile")
"""Stacks whose kernels are in the library."""


def may_use(record: Record, file: str, workloads: Collection[str]) -> bool:
    """Whether the case may use the kernel file. ``workloads``: all that the run measured.

    True where that is not known: for the stack of a plugin, whose files may have any name.
    """
    if record.stack in _WITHOUT_FILES:
        return False
    of_others = any(_is_of(file, name) for name in workloads if name not in (_STEP, record.workload))
    if record.stack not in _WITH_FILES:
        return not of_others
    own = file.startswith(_STEP_FILES) if record.workload == _STEP else _is_of(file, record.workload)
    stacks = next((stacks for ending, stacks in _STACKS.items() if file.endswith(ending)), ())
    return own and record.stack in stacks


def _is_of(file: str, workload: str) -> bool:
    """Whether a file has the name of the workload, as ``recurrence.cu`` and ``recurrence_fused.spv``."""
    return file.startswith((f"{workload}.", f"{workload}_"))
