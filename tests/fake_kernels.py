"""A workload's CUDA C and Triton run on the CPU: the one compiled as C++, the other on NumPy."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

_BEFORE = """
#include <math.h>
#define __global__
#define __restrict__
struct Index { unsigned int x; };
static Index blockIdx, threadIdx, blockDim = {1};
"""
_AFTER = """
typedef unsigned long long word;
extern "C" void run_once(word s, word c, word f, word) {
  for (blockIdx.x = 0; blockIdx.x < ELEMENTS + 1; ++blockIdx.x) once((float*)s, (unsigned int*)c, (const float*)f);
}
extern "C" void run_fused(word s, word c, word f, word n) {
  for (blockIdx.x = 0; blockIdx.x < ELEMENTS + 1; ++blockIdx.x) fused((float*)s, (unsigned int*)c, (const float*)f, n);
}
"""


@functools.cache
def as_library(text: str) -> Path:
    """The kernels as a shared library with ``run_once`` and ``run_fused``; one thread too many runs, as on a GPU."""
    folder = Path(tempfile.mkdtemp(prefix="overhead-test-"))
    (folder / "kernel.cpp").write_text(_BEFORE + text + _AFTER)
    built = folder / "kernel.so"
    command = ["g++", "-O1", "-w", "-shared", "-fPIC", "-o", str(built), str(folder / "kernel.cpp")]
    subprocess.run(command, check=True, timeout=60)
    return built


def machine_code_of(name: str, text: str, architecture: str) -> bytes:
    """What the fake driver loads."""
    return f"so:{as_library(text)}".encode()


class Pointer:
    """A pointer, or many, into an array."""

    def __init__(self, array: Any, at: Any = 0) -> None:
        self.array, self.at = array, at

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.array, self.at + offset)


class _Kernel:
    """A jitted kernel: ``kernel[(groups,)](*arguments, BLOCK=...)``."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __getitem__(self, grid: tuple[int]) -> Any:
        def launch(*arguments: Any, BLOCK: int, num_warps: int) -> None:
            passed = [Pointer(a) if isinstance(a, np.ndarray) else a for a in arguments]
            for group in range(grid[0]):
                self.function.__globals__["tl"].group = group
                self.function(*passed, BLOCK)

        return launch


def fake_triton(monkeypatch: Any) -> None:
    """Make ``import triton`` find one that runs on NumPy."""
    language: Any = ModuleType("triton.language")
    language.constexpr = np.float32
    language.program_id = lambda axis: language.group
    language.arange = np.arange

    def load(pointer: Pointer, mask: Any, other: Any) -> Any:
        at = np.minimum(pointer.at, len(pointer.array) - 1)
        return np.where(mask, pointer.array[at], np.array(other, pointer.array.dtype))

    def store(pointer: Pointer, values: Any, mask: Any) -> None:
        pointer.array[pointer.at[mask]] = values[mask]

    language.load, language.store = load, store
    module: Any = ModuleType("triton")
    module.language = language
    module.jit = lambda do_not_specialize: _Kernel
    monkeypatch.setitem(sys.modules, "triton", module)
    monkeypatch.setitem(sys.modules, "triton.language", language)


def fake_cupy() -> Any:
    """CuPy on NumPy, its RawKernel by ``as_library``."""
    import ctypes

    class RawKernel:
        def __init__(self, text: str, name: str, options: tuple[str, ...]) -> None:
            self.run = getattr(ctypes.CDLL(str(as_library(text))), f"run_{name}")

        def __call__(self, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
            *arrays, count = arguments
            assert grid[0] * block[0] >= len(arrays[1])
            self.run(*(ctypes.c_uint64(a.ctypes.data) for a in arrays), ctypes.c_uint64(int(count)))

    stream = SimpleNamespace(synchronize=lambda: None)
    module: Any = ModuleType("cupy")
    for name in np.__all__:
        setattr(module, name, getattr(np, name))
    module.asnumpy, module.RawKernel = np.asarray, RawKernel
    module.cuda = SimpleNamespace(get_current_stream=lambda: stream)
    return module
