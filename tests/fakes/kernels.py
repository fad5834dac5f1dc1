"""Run CUDA C and Triton kernels of workloads on the CPU: CUDA C compiled as C++, Triton on
NumPy.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from overhead import scratch

_BEFORE = """
#include <math.h>
#define __cosf cosf
#define rsqrtf(x) (1.0f / sqrtf(x))
#define __global__
#define __device__ static
#define __shared__ static
#define __restrict__
typedef unsigned long long word;
struct Index { unsigned int x; };
static Index blockIdx, blockDim;
"""
_HALF = """
#include <immintrin.h>
static float wide(unsigned short bits) { return _cvtsh_ss(bits); }
static unsigned short narrow(float value) { return _cvtss_sh(value, 0); }
"""
_ALONE = """
static Index threadIdx;
template <class Kernel> void all(Kernel kernel, word groups, word threads) {
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < groups; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) kernel();
}
"""
_FLAGS = ("-std=c++20", "-O1", "-U_FORTIFY_SOURCE")
"""Fibers jump between stacks. Where a compiler fortifies by itself, as Ubuntu's does, longjmp would
abort.
"""
_TOGETHER = """
#include <cstdlib>
#include <functional>
#include <setjmp.h>
#include <ucontext.h>
static Index threadIdx;
static ucontext_t made;
static jmp_buf home, fibers[1024];
static bool done[1024];
static unsigned int started;
static std::function<void()> body;
static void back() { if (!_setjmp(fibers[threadIdx.x])) _longjmp(home, 1); }
static void __syncthreads() { back(); }
static void enter() { for (;;) { back(); body(); done[threadIdx.x] = true; } }
static void start(unsigned int threads) {
  // The dynamic linker saves all registers of the processor on the stack, with AMX 11 KiB of them.
  static const size_t stack_bytes = 1 << 16;
  static char *stacks = static_cast<char *>(std::malloc(1024 * stack_bytes));
  for (; started < threads; ++started) {
    ucontext_t fiber;
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stacks + started * stack_bytes;
    fiber.uc_stack.ss_size = stack_bytes;
    makecontext(&fiber, enter, 0);
    threadIdx.x = started;
    if (!_setjmp(home)) swapcontext(&made, &fiber);
  }
}
static void resume() { if (!_setjmp(home)) _longjmp(fibers[threadIdx.x], 1); }
template <class Kernel> void all(Kernel kernel, word groups, word threads) {
  start(threads);
  blockDim.x = threads;
  body = kernel;
  for (blockIdx.x = 0; blockIdx.x < groups; ++blockIdx.x) {
    for (word i = 0; i < threads; ++i) done[i] = false;
    for (bool waiting = true; waiting;) {
      waiting = false;
      for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
        if (!done[threadIdx.x]) { resume(); waiting = true; }
    }
  }
}
"""
_CUDA_WORDS = """
#define __launch_bounds__(n)
struct alignas(16) float4 { float x, y, z, w; };
template <class T> static T max(T a, T b) { return a < b ? b : a; }
template <class T> static T min(T a, T b) { return b < a ? b : a; }
"""
_LAUNCHED = """
extern "C" const int words_of_NAME = COUNT;
extern "C" void run_NAME(word *v, word groups, word threads) { all([=] { NAME(VALUES); }, groups, threads); }
"""
_RUN = """
extern "C" void run_NAME(word s, word c, word f, word n, word groups, word threads) {
  all([=] { NAME((NUMBER*)s, (unsigned int*)c, (const NUMBER*)f STEPS); }, groups, threads);
}
"""


@functools.cache
def as_library(text: str) -> Path:
    """The path of a shared library of the kernels. ``run_<name>`` runs one; its threads may
    synchronise.
    """
    number = "number" if "typedef" in text else "float"
    runs = []
    for name, parameters in re.findall(r"__global__ void (\w+)\(([^)]*)\)", text):
        run = _RUN.replace("NAME", name).replace("NUMBER", number)
        runs.append(run.replace("STEPS", ", n" if "steps" in parameters else ""))

    before = _BEFORE
    flags = []
    if "typedef unsigned short number" in text:
        before += _HALF
        flags = ["-mf16c"]
    before += _TOGETHER if "__syncthreads" in text else _ALONE
    return _built(before + text + "".join(runs), flags)


@functools.cache
def program_library(text: str) -> Path:
    """The path of a shared library of the kernels of a lowered program, whose parameters are all
    pointers.
    """
    runs = []
    for name, parameters in re.findall(r"__launch_bounds__\(\d+\) (\w+)\(([^)]*)\)", text):
        values = []
        for number, parameter in enumerate(parameters.split(",")):
            pointer_type = re.sub(r"__restrict__ \w+$", "", parameter.strip())
            values.append(f"({pointer_type})v[{number}]")
        run = _LAUNCHED.replace("NAME", name).replace("COUNT", str(len(values)))
        runs.append(run.replace("VALUES", ", ".join(values)))
    before = _BEFORE.replace(
        "struct Index { unsigned int x; }", "struct Index { unsigned int x, y; }"
    )
    return _built(before + _CUDA_WORDS + _TOGETHER + text + "".join(runs), [])


def _built(text: str, flags: list[str]) -> Path:
    """The path of a shared library that g++ makes of this C++."""
    folder = Path(tempfile.mkdtemp(dir=scratch.folder()))
    source = folder / "kernel.cpp"
    built = folder / "kernel.so"
    source.write_text(text)
    command = ["g++", *_FLAGS, "-w", "-shared", "-fPIC", *flags, "-o", str(built), str(source)]
    subprocess.run(command, check=True, timeout=120)
    return built


def machine_code_of(name: str, text: str, architecture: str) -> bytes:
    """The path of the library, as the fake driver expects it."""
    library = program_library(text) if "__launch_bounds__" in text else as_library(text)
    return f"so:{library}".encode()


class Pointer:
    """One or more pointers into an array."""

    def __init__(self, array: Any, at: Any = 0) -> None:
        self.array = array
        self.at = at

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.array, self.at + offset)


class _Block(np.ndarray[Any, Any]):
    """A block of numbers. A single number has no dimension."""

    def to(self, kind: type) -> Any:
        return self.astype(kind)


class _Kernel:
    """A jitted kernel: ``kernel[(groups,)](*arguments, BLOCK=...)``."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __getitem__(self, grid: tuple[int]) -> Any:
        def launch(*arguments: Any, BLOCK: int, num_warps: int) -> None:
            passed = []
            for argument in arguments:
                is_array = isinstance(argument, np.ndarray)
                passed.append(Pointer(argument) if is_array else argument)
            language = self.function.__globals__["tl"]
            for group in range(grid[0]):
                language.group = group
                self.function(*passed, BLOCK)

        return launch


def fake_triton(monkeypatch: Any) -> None:
    """Make ``import triton`` return a module that runs on NumPy."""
    language: Any = ModuleType("triton.language")
    language.constexpr = lambda value: np.float32(value) if isinstance(value, float) else value
    language.program_id = lambda axis: language.group
    language.arange = np.arange

    def load(pointer: Pointer, mask: Any = True, other: Any = 0) -> Any:
        last = len(pointer.array) - 1
        values = pointer.array[np.minimum(pointer.at, last)]
        masked = np.array(other, pointer.array.dtype)
        return np.where(mask, values, masked).view(_Block)

    def store(pointer: Pointer, values: Any, mask: Any = True) -> None:
        at, values, mask = np.broadcast_arrays(pointer.at, values, mask)
        pointer.array[at[mask]] = values[mask]

    language.load = load
    language.store = store
    language.rsqrt = lambda x: np.float32(1) / np.sqrt(x)
    as_in_numpy = ("sum", "sqrt", "sin", "cos", "exp", "floor", "minimum", "maximum")
    kinds = ("float32", "float16", "uint32")
    for name in (*as_in_numpy, *kinds):
        setattr(language, name, getattr(np, name))
    module: Any = ModuleType("triton")
    module.language = language
    module.jit = lambda function=None, do_not_specialize=(): function or _Kernel
    monkeypatch.setitem(sys.modules, "triton", module)
    monkeypatch.setitem(sys.modules, "triton.language", language)
