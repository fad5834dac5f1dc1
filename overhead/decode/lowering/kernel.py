"""The text of a kernel in WGSL and CUDA C, both made from one body.

A body is written in what both languages share, and in these words:

- ``f32 x = ...;`` declares a variable, also ``i32``, ``u32``, ``bool`` and ``vec4f``; ``f32(x)``
  converts;
- ``group``: the index of the group of threads; ``lane``: the index of the thread in its group, both
  u32;
- ``b0``, ``b1``, ...: the buffers, in the order of ``bindings``;
- ``workgroupBarrier()``, ``select(otherwise, then, condition)``, ``inverseSqrt``, ``dot`` of two
  ``vec4f``, and the functions of mathematics.

An integer literal of type u32 ends in ``u``. A literal of type f32 has a point or an exponent.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from textwrap import indent
from typing import Literal

from overhead.decode.lowering.buffers import NumberType

WIDEST = 32_768
"""Groups in the first dimension of a grid. WebGPU allows 65,535 in each dimension, so larger grids
get a second one.
"""
_WRITTEN_OUT = 16
"""Statements of a loop that are written out, so that their loads do not wait for each other. The
compilers of graphics drivers do not unroll a loop with checked accesses.
"""
_DECLARED = re.compile(r"\b(f32|i32|u32|bool|vec4f) (\w+) =")
_FLOAT = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)(?![\w.])")
CUDA_HEAD = """\
typedef float f32;
typedef int i32;
typedef unsigned int u32;
typedef float4 vec4f;
#define workgroupBarrier __syncthreads
__device__ inline f32 select(f32 otherwise, f32 then, bool condition) { return condition ? then : otherwise; }
__device__ inline u32 select(u32 otherwise, u32 then, bool condition) { return condition ? then : otherwise; }
__device__ inline i32 select(i32 otherwise, i32 then, bool condition) { return condition ? then : otherwise; }
__device__ inline f32 inverseSqrt(f32 x) { return 1.0f / sqrtf(x); }
__device__ inline f32 dot(vec4f x, vec4f y) { return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w; }
"""
"""What the kernels of a program need before them in CUDA C."""


@dataclasses.dataclass(frozen=True)
class Binding:
    """A buffer of a kernel: the type of its elements, and whether the kernel writes it."""

    number: NumberType | Literal["vec4f"]
    written: bool


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel, whose text can be written in WGSL and in CUDA C: statements (``body``) that all
    ``threads`` threads of each of the ``groups`` groups run, in what both languages share.

    ``bindings``: its buffers. ``shared``: names and lengths of f32 arrays that the threads of a
    group share.
    """

    label: str
    bindings: tuple[Binding, ...]
    threads: int
    groups: int
    body: str
    shared: tuple[tuple[str, int], ...] = ()

    @property
    def grid(self) -> tuple[int, int, int]:
        """Groups in x, y and z. If there are more than ``WIDEST``, some groups of the last row do
        nothing.
        """
        return min(self.groups, WIDEST), -(-self.groups // WIDEST), 1

    @property
    def shared_bytes(self) -> int:
        """Bytes of memory that the threads of a group share."""
        return 4 * sum(length for _, length in self.shared)

    @property
    def wgsl(self) -> str:
        """The source text in WGSL. The entry point is ``main``. The buffers are ``b0``, ``b1``, ...
        in group 0 of the bindings, numbered from 0.
        """
        lines = []
        for i, binding in enumerate(self.bindings):
            access = "read_write" if binding.written else "read"
            lines.append(
                f"@group(0) @binding({i}) var<storage, {access}> b{i}: array<{binding.number}>;"
            )
        for name, length in self.shared:
            lines.append(f"var<workgroup> {name}: array<f32, {length}>;")
        lines += [
            "",
            f"@compute @workgroup_size({self.threads})",
            (
                "fn main(@builtin(workgroup_id) groups: vec3<u32>, @builtin(local_invocation_index)"
                " lane: u32) {"
            ),
            # One number, also where a grid with many groups has two dimensions.
            f"  let group = {self._group('groups')};",
            # A grid may have a few groups more than are needed.
            f"  if (group >= {self.groups}u) {{ return; }}",
            # The body declares variables as C does: ``f32 x = ...`` becomes ``var x: f32 = ...``.
            indent(_DECLARED.sub(r"var \2: \1 =", self.body), "  "),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def cuda(self, name: str) -> str:
        """The source text in CUDA C, which must come after ``CUDA_HEAD``. The function has this
        name, and the buffers ``b0``, ``b1``, ... are its arguments, all pointers.
        """
        arguments = []
        for i, binding in enumerate(self.bindings):
            constant = "" if binding.written else "const "
            arguments.append(f"{constant}{binding.number}* __restrict__ b{i}")
        head = f'extern "C" __global__ void __launch_bounds__({self.threads}) {name}'
        lines = [
            f"{head}({', '.join(arguments)}) {{",
            "  const u32 lane = threadIdx.x;",
            # One number, also where a grid with many groups has two dimensions.
            f"  const u32 group = {self._group('blockIdx')};",
            # A grid may have a few groups more than are needed.
            f"  if (group >= {self.groups}u) return;",
            *(f"  __shared__ f32 {array}[{length}];" for array, length in self.shared),
            # Without the ``f`` of each literal CUDA C would compute in double precision.
            indent(_FLOAT.sub(r"\1f", self.body), "  "),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _group(self, index: str) -> str:
        """The source text of the number of the group. ``index``: its place in the grid."""
        if self.groups > WIDEST:
            return f"{index}.y * {WIDEST}u + {index}.x"
        return f"{index}.x"


def reduction(array: str, combined: str, threads: int) -> str:
    """Source text after which ``array[0]`` holds all of ``array[0]`` to ``array[threads - 1]``
    combined, such as their sum. The threads of a group share the array and do this together.

    ``combined``: what two numbers ``x`` and ``y`` become, such as ``x + y``. ``threads``: a power
    of two. Every thread of the group must get here, because each of them waits for the others.
    """
    own, other = f"{array}[lane]", f"{array}[lane + apart]"

    def element(name: re.Match[str]) -> str:
        return own if name[0] == "x" else other

    # The names ``x`` and ``y``, but not these letters inside of other words, such as ``max``.
    result = re.sub(r"\b[xy]\b", element, combined)
    # Half of the threads take over the numbers of the other half, until one thread is left.
    return f"""\
for (u32 apart = {threads // 2}u; apart > 0u; apart = apart / 2u) {{
  workgroupBarrier();
  if (lane < apart) {{ {own} = {result}; }}
}}
workgroupBarrier();"""


def loop(count: int, statement: Callable[[str], str], *, threads: int = 1) -> str:
    """Source text that runs ``statement(k)`` for each number ``k`` below ``count``.

    ``k`` is the text of the number, and may stand beside any operator. ``threads``: how many
    threads of the group share the numbers; with 1 every thread runs all of them. A turn is one
    number for each of them. Up to 16 turns are written out; of more, a loop does 16 at a time.
    """
    # Thread ``lane`` takes the numbers lane, lane + threads, lane + 2 * threads, and so on.
    first = "lane" if threads > 1 else "0u"
    turns, rest = divmod(count, threads)
    # The loop does as many turns as fill whole iterations; the others are written out after it.
    looped = 0
    if turns > _WRITTEN_OUT:
        looped = turns - turns % _WRITTEN_OUT

    lines = []
    if looped:
        statements = [statement(sum_text("k", i * threads)) for i in range(_WRITTEN_OUT)]
        end, step = looped * threads, _WRITTEN_OUT * threads
        lines.append(
            f"for (u32 k = {first}; k < {end}u; k += {step}u) {{ {' '.join(statements)} }}"
        )
    for turn in range(looped, turns):
        lines.append(statement(sum_text(first, turn * threads)))
    if rest:
        # In the last turn only some of the threads have a number.
        lines.append(f"if (lane < {rest}u) {{ {statement(sum_text(first, turns * threads))} }}")
    return "\n".join(lines)


def sum_text(text: str, number: int) -> str:
    """The source text of ``text + number``, for u32, in parentheses where they are needed."""
    if text == "0u":
        return f"{number}u"
    return f"({text} + {number}u)" if number else text
