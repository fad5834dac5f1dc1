"""Kernels of RMSNorm by language: six kernels with one operation each, one with all six, and one
for all steps.

A group of ``THREADS`` threads computes one row. The numbers of a row are adjacent in memory. The
separate kernels round to the precision of the workload after every operation, the single kernel
once per step. Sums are float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from overhead.workloads.base import KernelEntry, Kernels

THREADS = 128
_GROUP_SIZE = 64

_WGSL = """\
@ENABLE@
alias number = @NUMBER@;
@group(0) @binding(0) var<storage, read_write> state: array<number>;
@group(0) @binding(1) var<storage, read_write> counters: array<u32>;
@group(0) @binding(2) var<storage, read> inputs: array<number>;
@group(0) @binding(3) var<uniform> steps: vec4<u32>;
const WIDTH: u32 = @WIDTH@u;
const SIZE: u32 = @SIZE@u;
const THREADS: u32 = @THREADS@u;
const EACH: u32 = WIDTH / THREADS;
const COLUMNS: f32 = @COLUMNS@;
const EPS: f32 = @EPS@;
// What lies behind the rows: two numbers a number of theirs, two a row.
const SUM: u32 = SIZE;
const SQUARE: u32 = 2u * SIZE;
const MEAN: u32 = 3u * SIZE;
const ROOT: u32 = MEAN + @ROWS@u;

var<workgroup> parts: array<f32, THREADS>;

fn total(own: f32, lane: u32) -> f32 {
  parts[lane] = own;
  workgroupBarrier();
  for (var reach = THREADS / 2u; reach > 0u; reach = reach / 2u) {
    if (lane < reach) { parts[lane] = parts[lane] + parts[lane + reach]; }
    workgroupBarrier();
  }
  let sum = parts[0];
  workgroupBarrier();
  return sum;
}

@ADD@

@SQUARE@

@compute @workgroup_size(THREADS)
fn mean(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  var own = 0.0;
  for (var j = 0u; j < EACH; j = j + 1u) {
    own = own + f32(state[SQUARE + group.x * WIDTH + j * THREADS + local.x]);
  }
  let sum = total(own, local.x);
  if (local.x == 0u) { state[MEAN + group.x] = number(sum / COLUMNS); }
}

@ROOT@

@DIVIDE@

@WEIGH@
@LOOPS@"""

_WGSL_EACH = """\
@compute @workgroup_size(@GROUP@)
fn @NAME@(@builtin(global_invocation_id) id: vec3<u32>) {
  @BODY@
}"""
_WGSL_BODIES = {
    "add": "if (id.x < SIZE) { state[SUM + id.x] = state[id.x] + inputs[id.x]; }",
    "square": "if (id.x < SIZE) { state[SQUARE + id.x] = state[SUM + id.x] * state[SUM + id.x]; }",
    "root": (
        "if (id.x < @ROWS@u) { state[ROOT + id.x] = number(sqrt(f32(state[MEAN + id.x]) + EPS)); }"
    ),
    "divide": (
        "if (id.x < SIZE) { state[SUM + id.x] = state[SUM + id.x] / state[ROOT + id.x / WIDTH]; }"
    ),
    "weigh": (
        "if (id.x < SIZE) { state[id.x] = state[SUM + id.x] * inputs[SIZE + id.x % WIDTH]; }\n  if"
        " (id.x < SIZE && id.x % WIDTH == 0u) { counters[id.x / WIDTH] = counters[id.x / WIDTH] +"
        " 1u; }"
    ),
}

_WGSL_WHOLE = """
@compute @workgroup_size(THREADS)
fn @NAME@(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let at = group.x * WIDTH + local.x;
  var x: array<f32, EACH>;
  for (var j = 0u; j < EACH; j = j + 1u) { x[j] = f32(state[at + j * THREADS]); }
  for (var turn = 0u; turn < @TURNS@; turn = turn + 1u) {
    var own = 0.0;
    for (var j = 0u; j < EACH; j = j + 1u) {
      x[j] = x[j] + f32(inputs[at + j * THREADS]);
      own = own + x[j] * x[j];
    }
    let root = sqrt(total(own, local.x) / COLUMNS + EPS);
    for (var j = 0u; j < EACH; j = j + 1u) {
      x[j] = f32(number(x[j] / root * f32(inputs[SIZE + j * THREADS + local.x])));
    }
  }
  for (var j = 0u; j < EACH; j = j + 1u) { state[at + j * THREADS] = number(x[j]); }
  if (local.x == 0u) { counters[group.x] = counters[group.x] + @TURNS@; }
}
"""

_CUDA = """\
@NUMBER@
constexpr unsigned int WIDTH = @WIDTH@u, SIZE = @SIZE@u, THREADS = @THREADS@u, EACH = WIDTH / THREADS;
constexpr float COLUMNS = @COLUMNS@f, EPS = @EPS@f;
// What lies behind the rows: two numbers a number of theirs, two a row.
constexpr unsigned int SUM = SIZE, SQUARE = 2 * SIZE, MEAN = 3 * SIZE, ROOT = MEAN + @ROWS@u;

__device__ float total(float own) {
  __shared__ float parts[THREADS];
  const unsigned int lane = threadIdx.x;
  parts[lane] = own;
  __syncthreads();
  for (unsigned int reach = THREADS / 2; reach > 0; reach /= 2) {
    if (lane < reach) parts[lane] += parts[lane + reach];
    __syncthreads();
  }
  const float sum = parts[0];
  __syncthreads();
  return sum;
}

@ADD@

@SQUARE@

extern "C" __global__ void mean(@HEAD@) {
  float own = 0.0f;
  for (unsigned int j = 0; j < EACH; ++j) {
    own += wide(state[SQUARE + blockIdx.x * WIDTH + j * THREADS + threadIdx.x]);
  }
  const float sum = total(own);
  if (threadIdx.x == 0) state[MEAN + blockIdx.x] = narrow(sum / COLUMNS);
}

@ROOT@

@DIVIDE@

@WEIGH@
@LOOPS@"""

_CUDA_EACH = """\
extern "C" __global__ void @NAME@(@HEAD@) {
  const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  @BODY@
}"""
_CUDA_BODIES = {
    "add": "if (i < SIZE) state[SUM + i] = narrow(wide(state[i]) + wide(inputs[i]));",
    "square": (
        "if (i < SIZE) state[SQUARE + i] = narrow(wide(state[SUM + i]) * wide(state[SUM + i]));"
    ),
    "root": "if (i < @ROWS@u) state[ROOT + i] = narrow(sqrtf(wide(state[MEAN + i]) + EPS));",
    "divide": (
        "if (i < SIZE) state[SUM + i] = narrow(wide(state[SUM + i]) / wide(state[ROOT + i /"
        " WIDTH]));"
    ),
    "weigh": (
        "if (i < SIZE) state[i] = narrow(wide(state[SUM + i]) * wide(inputs[SIZE + i % WIDTH]));\n"
        "  if (i < SIZE && i % WIDTH == 0) ++counters[i / WIDTH];"
    ),
}

_CUDA_WHOLE = """
extern "C" __global__ void @NAME@(@HEAD@@STEPS@) {
  const unsigned int at = blockIdx.x * WIDTH + threadIdx.x;
  float x[EACH];
  #pragma unroll
  for (unsigned int j = 0; j < EACH; ++j) x[j] = wide(state[at + j * THREADS]);
  for (unsigned long long turn = 0; turn < @TURNS@; ++turn) {
    float own = 0.0f;
    #pragma unroll
    for (unsigned int j = 0; j < EACH; ++j) {
      x[j] += wide(inputs[at + j * THREADS]);
      own += x[j] * x[j];
    }
    const float root = sqrtf(total(own) / COLUMNS + EPS);
    #pragma unroll
    for (unsigned int j = 0; j < EACH; ++j) {
      x[j] = wide(narrow(x[j] / root * wide(inputs[SIZE + j * THREADS + threadIdx.x])));
    }
  }
  #pragma unroll
  for (unsigned int j = 0; j < EACH; ++j) state[at + j * THREADS] = narrow(x[j]);
  if (threadIdx.x == 0) counters[blockIdx.x] += @TURNS@;
}
"""

_CUDA_HEAD = (
    "number* __restrict__ state, unsigned int* __restrict__ counters, const number* __restrict__"
    " inputs"
)
_CUDA_FLOAT = """\
typedef float number;
__device__ float wide(number value) { return value; }
__device__ number narrow(float value) { return value; }"""
# NVRTC has no header for half precision, so the two conversions are written as instructions.
_CUDA_HALF = """\
typedef unsigned short number;
#ifdef __CUDACC__
__device__ float wide(number bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
__device__ number narrow(float value) {
  number bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
#endif"""

_TRITON = """\
import triton
import triton.language as tl

WIDTH = tl.constexpr(@WIDTH@)
SIZE = tl.constexpr(@SIZE@)
COLUMNS = tl.constexpr(@COLUMNS@)
EPS = tl.constexpr(@EPS@)
@LOOPS@"""

_TRITON_WHOLE = """

@triton.jit(do_not_specialize=["steps"])
def @NAME@(state, counters, inputs, steps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    k = tl.arange(0, BLOCK)
    inside = k < WIDTH
    x = tl.load(state + row * WIDTH + k, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(inputs + row * WIDTH + k, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(inputs + SIZE + k, mask=inside, other=0.0).to(tl.float32)
    for turn in range(@TURNS@):
        x = x + residual
        root = tl.sqrt(tl.sum(x * x) / COLUMNS + EPS)
        x = (x / root * weight).to(tl.@NUMBER@).to(tl.float32)
    tl.store(state + row * WIDTH + k, x.to(tl.@NUMBER@), mask=inside)
    tl.store(counters + row, tl.load(counters + row) + @TURNS@)
"""


def rmsnorm_kernels(
    language: str, rows: int, columns: int, precision: str, constants: Mapping[str, float]
) -> Kernels:
    """RMSNorm in WGSL, CUDA C or Triton. The number of columns must be a multiple of
    ``THREADS``.
    """
    half = precision == "float16"
    marks: dict[str, Any] = {
        "ROWS": rows,
        "WIDTH": columns,
        "SIZE": rows * columns,
        "THREADS": THREADS,
        "GROUP": _GROUP_SIZE,
        "COLUMNS": repr(float(constants["COLUMNS"])),
        "EPS": repr(float(constants["EPS"])),
    }
    if language == "wgsl":
        marks |= {"ENABLE": "enable f16;" if half else "", "NUMBER": "f16" if half else "f32"}
        text, whole, one, many, each, bodies = (
            _WGSL,
            _WGSL_WHOLE,
            "1u",
            "steps.x",
            _WGSL_EACH,
            _WGSL_BODIES,
        )
    elif language == "cuda":
        marks |= {"NUMBER": _CUDA_HALF if half else _CUDA_FLOAT, "HEAD": _CUDA_HEAD}
        text, whole, one, many, each, bodies = (
            _CUDA,
            _CUDA_WHOLE,
            "1",
            "steps",
            _CUDA_EACH,
            _CUDA_BODIES,
        )
    else:
        marks["NUMBER"] = precision
        text, whole, one, many, each, bodies = _TRITON, _TRITON_WHOLE, "1", "steps", "", {}
    once = _filled(whole, {"NAME": "once", "TURNS": one, "STEPS": ""})
    fused = _filled(whole, {"NAME": "fused", "TURNS": many, "STEPS": ", unsigned long long steps"})
    parts = {
        name.upper(): _filled(each, {"NAME": name, "BODY": body}) for name, body in bodies.items()
    }
    text = _filled(_filled(text, {"LOOPS": once + fused, **parts}), marks).lstrip()
    threads = 1 << (columns - 1).bit_length() if language == "triton" else THREADS
    entries = {
        name: (KernelEntry(entry, rows, threads),)
        for name, entry in (("one", "once"), ("fused", "fused"))
    }
    if language == "triton":
        return Kernels(text, entries)
    every = -(-rows * columns // _GROUP_SIZE)
    separate = (
        KernelEntry("add", every, _GROUP_SIZE),
        KernelEntry("square", every, _GROUP_SIZE),
        KernelEntry("mean", rows, THREADS),
        KernelEntry("root", -(-rows // _GROUP_SIZE), _GROUP_SIZE),
        KernelEntry("divide", every, _GROUP_SIZE),
        KernelEntry("weigh", every, _GROUP_SIZE),
    )
    return Kernels(text, {"separate": separate, **entries})


def _filled(text: str, marks: Mapping[str, Any]) -> str:
    for name, value in marks.items():
        text = text.replace(f"@{name}@", str(value))
    return text
