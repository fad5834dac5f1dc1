"""Kernels of RMSNorm by language: six kernels with one operation each, one with all six, and one
for all steps.

A group of ``THREADS`` threads computes one row. The numbers of a row are adjacent in memory. The
separate kernels round to the precision of the workload after every operation, the single kernel
once per step. Sums are float32.
"""

from __future__ import annotations

import dataclasses
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Templates:
    """The source texts of RMSNorm in one language. They have marks, names between ``@``, in whose
    places other texts are put.

    ``file``: what is around the kernels. ``whole``: a kernel for all operations of one or more
    steps. ``one_step`` and ``all_steps``: the text for the number of its steps, one or as many as
    its argument says. ``each``: a kernel of one operation, with one of the ``bodies``. ``marks``:
    the texts for further marks.
    """

    file: str
    whole: str
    one_step: str
    all_steps: str
    marks: Mapping[str, str]
    each: str = ""
    bodies: Mapping[str, str] = dataclasses.field(default_factory=dict)


def _templates(language: str, precision: str) -> _Templates:
    """The source texts for a language, WGSL, CUDA C or Triton, in which numbers have this
    precision. Triton has no kernels for single operations.
    """
    is_half = precision == "float16"
    if language == "wgsl":
        marks = {"ENABLE": "", "NUMBER": "f32"}
        if is_half:
            marks = {"ENABLE": "enable f16;", "NUMBER": "f16"}
        return _Templates(
            file=_WGSL,
            whole=_WGSL_WHOLE,
            one_step="1u",
            all_steps="steps.x",
            marks=marks,
            each=_WGSL_EACH,
            bodies=_WGSL_BODIES,
        )
    if language == "cuda":
        return _Templates(
            file=_CUDA,
            whole=_CUDA_WHOLE,
            one_step="1",
            all_steps="steps",
            # CUDA C: definitions of ``number``, and the parameters that all kernels share.
            marks={"NUMBER": _CUDA_HALF if is_half else _CUDA_FLOAT, "HEAD": _CUDA_HEAD},
            each=_CUDA_EACH,
            bodies=_CUDA_BODIES,
        )
    return _Templates(
        file=_TRITON,
        whole=_TRITON_WHOLE,
        one_step="1",
        all_steps="steps",
        marks={"NUMBER": precision},
    )


def rmsnorm_kernels(
    language: str, rows: int, columns: int, precision: str, constants: Mapping[str, float]
) -> Kernels:
    """The kernels of RMSNorm in a language, WGSL, CUDA C or Triton, for so many rows and columns:
    ``once`` for one step, ``fused`` for all steps, and a kernel for each of the six operations of a
    step. The number of columns must be a multiple of ``THREADS``.

    ``constants``: the values of ``COLUMNS`` and ``EPS``.
    """
    templates = _templates(language, precision)
    # A template has marks, names between ``@``, which _filled() replaces by these texts. One step
    # needs no argument for their number, so STEPS is empty.
    of_one_step = {"NAME": "once", "TURNS": templates.one_step, "STEPS": ""}
    steps = ", unsigned long long steps"
    of_all_steps = {"NAME": "fused", "TURNS": templates.all_steps, "STEPS": steps}
    # ``whole``: a kernel for whole steps. ``each``: one for a single operation, whose statements
    # are one of the ``bodies``.
    loops = _filled(templates.whole, of_one_step) + _filled(templates.whole, of_all_steps)
    kernels = {"LOOPS": loops}
    for name, body in templates.bodies.items():
        kernels[name.upper()] = _filled(templates.each, {"NAME": name, "BODY": body})

    # ``WIDTH`` and ``COLUMNS`` are the same number, as an integer and as a divisor. ``THREADS``: how
    # many share a row in the kernels that sum it up. ``GROUP``: in a group of the others.
    sizes = {
        "ROWS": rows,
        "WIDTH": columns,
        "SIZE": rows * columns,
        "THREADS": THREADS,
        "GROUP": _GROUP_SIZE,
        "COLUMNS": repr(float(constants["COLUMNS"])),
        "EPS": repr(float(constants["EPS"])),
    }
    # First the kernels, because their texts have marks too.
    text = _filled(templates.file, kernels)
    text = _filled(text, {**sizes, **templates.marks}).lstrip()
    return Kernels(text, _entries(language, rows, columns))


def _entries(language: str, rows: int, columns: int) -> dict[str, tuple[KernelEntry, ...]]:
    """For each body, a way to run a step (``separate`` kernels, ``one`` kernel, or ``fused`` for
    all steps), the kernels that it launches, in order, with their numbers of groups and threads.
    """
    if language == "triton":
        # The least power of two that holds a row, because Triton has only such blocks.
        block = 1 << (columns - 1).bit_length()
        return {
            "one": (KernelEntry("once", rows, block),),
            "fused": (KernelEntry("fused", rows, block),),
        }
    # A thread for each number, and for ``root`` a thread for each row; these work alone, in groups
    # of any size. Where a row is summed up, a group of ``THREADS`` shares it.
    for_numbers = -(-rows * columns // _GROUP_SIZE)
    for_rows = -(-rows // _GROUP_SIZE)
    separate = (
        KernelEntry("add", for_numbers, _GROUP_SIZE),
        KernelEntry("square", for_numbers, _GROUP_SIZE),
        KernelEntry("mean", rows, THREADS),
        KernelEntry("root", for_rows, _GROUP_SIZE),
        KernelEntry("divide", for_numbers, _GROUP_SIZE),
        KernelEntry("weigh", for_numbers, _GROUP_SIZE),
    )
    return {
        "separate": separate,
        "one": (KernelEntry("once", rows, THREADS),),
        "fused": (KernelEntry("fused", rows, THREADS),),
    }


def _filled(text: str, marks: Mapping[str, Any]) -> str:
    """The text with each ``@NAME@`` replaced by the value of this name."""
    for name, value in marks.items():
        text = text.replace(f"@{name}@", str(value))
    return text
