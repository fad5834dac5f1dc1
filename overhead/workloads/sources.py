"""Generate the kernels for the step of a workload, by language: one launch per step, or one launch
for all steps.

Number k of element i is at ``k * elements + i``, so that neighbouring threads read neighbouring
words. The layout is different if ``Workload.by_element`` is set. There are three buffers: state,
read-only inputs, and counters. In the first two, the fields follow each other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from textwrap import dedent, indent

import numpy as np

from overhead.workloads.base import Array, Field, KernelEntry, Kernels, Workload

_GROUP_SIZE = 64
"""Threads per group."""
BLOCK = 128
"""Numbers per Triton block."""


def group_size(elements: int) -> int:
    """Threads per group, chosen so that there are at most 65,535 groups. This is the limit of
    WebGPU.
    """
    return _GROUP_SIZE if elements <= 65_535 * _GROUP_SIZE else 4 * _GROUP_SIZE


def sha256_of(text: str) -> str:
    """SHA-256 of the text of a kernel."""
    return hashlib.sha256(text.encode()).hexdigest()


def pack_state(workload: Workload, values: Mapping[str, Array], elements: int) -> Array:
    """The state in the memory layout of the kernels, followed by the scratch numbers."""
    parts = [_flat(workload, field, values[field.name]) for field in workload.state]
    return np.concatenate([*parts, np.zeros(workload.scratch * elements, workload.dtype)])


def pack_inputs(workload: Workload, values: Mapping[str, Array]) -> Array:
    """The read-only inputs in the memory layout of the kernels. At least four bytes, since no
    buffer may be empty.
    """
    parts = [_flat(workload, field, values[field.name]) for field in workload.fixed]
    return (
        np.concatenate(parts) if parts else np.zeros(4 // workload.dtype.itemsize, workload.dtype)
    )


def unpack_state(workload: Workload, buffer: Array, elements: int) -> dict[str, Array]:
    """The fields of the state in a buffer, by name: the reverse of ``pack_state``."""
    found, at = {}, 0
    for field in workload.state:
        words = buffer[at : at + field.width * elements]
        by_element = (
            words.reshape(elements, -1) if workload.by_element else words.reshape(-1, elements).T
        )
        found[field.name] = by_element.reshape(elements, *field.shape)
        at += field.width * elements
    return found


def _flat(workload: Workload, field: Field, values: Array) -> Array:
    given = np.asarray(values, workload.dtype)
    return (
        given.ravel()
        if field.shared or workload.by_element
        else given.reshape(len(given), field.width).T.ravel()
    )


def kernels_of(workload: Workload, language: str, elements: int) -> Kernels | None:
    """The workload's own kernels in a language, or else those made from its statements; None if it
    has neither.
    """
    own = workload.kernels(language, elements)
    if own is not None or not getattr(workload, language):
        return own
    text = {"wgsl": wgsl, "cuda": cuda, "triton": triton}[language](workload, elements)
    threads = BLOCK if language == "triton" else group_size(elements)
    groups = -(-elements // threads)
    return Kernels(
        text,
        {
            "one": (KernelEntry("once", groups, threads),),
            "fused": (KernelEntry("fused", groups, threads),),
        },
    )


def wgsl(workload: Workload, elements: int) -> str:
    """WGSL with the entry points ``once`` and ``fused``. The number of steps is word 0 of the
    uniform buffer.
    """
    constants = "\n".join(f"const {k}: f32 = {float(v)!r};" for k, v in workload.constants.items())
    lookups = "\n".join(
        f"fn {f.name}_of(i: u32, k: u32) -> f32 {{ return inputs[{_place(f, at)}]; }}"
        for f, at in _offsets(workload.fixed, elements)
    )
    body = _calls(dedent(workload.wgsl).strip(), (f.name for f in _looked_up(workload)))
    declared = "\n".join(
        [
            *(f"let {f.name} = {f.name}_of(i, 0u);" for f in _plain(workload)),
            *(
                f"var {f.name}: {f'array<f32, {f.width}>' if f.shape else 'f32'};"
                for f in workload.state
            ),
            *(_copies(workload, elements, save=False)),
            "var t = counters[i];",
        ]
    )
    saved = "\n".join([*_copies(workload, elements, save=True), "counters[i] = t;"])
    step = f"{body}\nt = t + 1u;"
    loop = f"for (var turn = 0u; turn < steps.x; turn = turn + 1u) {{\n{indent(step, '  ')}\n}}"
    once = _wgsl_kernel("once", elements, declared, step, saved)
    fused = _wgsl_kernel("fused", elements, declared, loop, saved)
    return f"""\
@group(0) @binding(0) var<storage, read_write> state: array<f32>;
@group(0) @binding(1) var<storage, read_write> counters: array<u32>;
@group(0) @binding(2) var<storage, read> inputs: array<f32>;
@group(0) @binding(3) var<uniform> steps: vec4<u32>;
const ELEMENTS: u32 = {elements}u;
{constants}
{lookups}
{once}{fused}"""


def _wgsl_kernel(name: str, elements: int, declared: str, steps: str, saved: str) -> str:
    return f"""
@compute @workgroup_size({group_size(elements)})
fn {name}(@builtin(global_invocation_id) id: vec3<u32>) {{
  let i = id.x;
  if (i >= ELEMENTS) {{ return; }}
{indent(declared, "  ")}
{indent(steps, "  ")}
{indent(saved, "  ")}
}}
"""


def cuda(workload: Workload, elements: int) -> str:
    """CUDA C with the kernels ``once(state, counters, inputs)`` and ``fused(state, counters,
    inputs, steps)``.

    ``steps`` is a 64-bit integer.
    """
    constants = "\n".join(
        f"constexpr float {k} = {float(v)!r}f;" for k, v in workload.constants.items()
    )
    lookups = "\n".join(
        f"#define {f.name}(k) inputs[{_place(f, at, '(k)')}]"
        for f, at in _offsets(workload.fixed, elements)
        if f in _looked_up(workload)
    )
    places = {f.name: at for f, at in _offsets(workload.fixed, elements)}
    declared = "\n".join(
        [
            *(f"const float {f.name} = inputs[{places[f.name]}u + i];" for f in _plain(workload)),
            *(f"float {f.name}{f'[{f.width}]' if f.shape else ''};" for f in workload.state),
            *(_copies(workload, elements, save=False)),
            "unsigned int t = counters[i];",
        ]
    )
    saved = "\n".join([*_copies(workload, elements, save=True), "counters[i] = t;"])
    body = dedent(workload.cuda).strip()
    block = f"{{\n{indent(body, '  ')}\n"
    loop = f"for (unsigned long long turn = 0; turn < steps; ++turn) {block}  t = t + 1u;\n}}"
    once = _cuda_kernel("once", "", declared, f"{block}}}\nt = t + 1u;", saved)
    fused = _cuda_kernel("fused", ", unsigned long long steps", declared, loop, saved)
    return f"""\
constexpr unsigned int ELEMENTS = {elements}u;
{constants}
{lookups}
{once}{fused}"""


def _cuda_kernel(name: str, parameter: str, declared: str, steps: str, saved: str) -> str:
    head = (
        "float* __restrict__ state, unsigned int* __restrict__ counters, const float* __restrict__"
        " inputs"
    )
    return f"""
extern "C" __global__ void {name}({head}{parameter}) {{
  const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= ELEMENTS) return;
{indent(declared, "  ")}
{indent(steps, "  ")}
{indent(saved, "  ")}
}}
"""


def triton(workload: Workload, elements: int) -> str:
    """A module with the jitted kernels ``once`` and ``fused``; arguments ``(state, counters,
    inputs, steps, BLOCK)``.

    Every field of the state must have one number per element.
    """
    constants = "\n".join(
        f"{k} = tl.constexpr({float(v)!r})" for k, v in workload.constants.items()
    )
    lookups = "".join(
        f"\n\n@triton.jit\ndef {f.name}_of(inputs, i, inside, k):\n    return tl.load(inputs +"
        f" {place})\n"
        for f, at in _offsets(workload.fixed, elements)
        for place in [
            f"{at} + k" if f.shared else f"{at} + k * {elements} + i, mask=inside, other=0.0"
        ]
        if f in _looked_up(workload)
    )
    body = _calls(
        dedent(workload.triton).strip(), (f.name for f in _looked_up(workload)), "inputs, i, inside"
    )
    loads = "\n".join(
        [
            *(
                f"{f.name} = tl.load({buffer} + {at} + i, mask=inside, other=0.0)"
                for buffer, fields in (("state", workload.state), ("inputs", workload.fixed))
                for f, at in _offsets(fields, elements)
                if buffer == "state" or f in _plain(workload)
            ),
            "t = tl.load(counters + i, mask=inside, other=0)",
        ]
    )
    saves = "\n".join(
        [
            *(
                f"tl.store(state + {at} + i, {f.name}, mask=inside)"
                for f, at in _offsets(workload.state, elements)
            ),
            "tl.store(counters + i, t, mask=inside)",
        ]
    )
    start = f"i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\ninside = i < {elements}\n{loads}"
    step = f"{body}\nt = t + 1"
    loop = f"for turn in range(steps):\n{indent(step, '    ')}"
    bodies = {
        name: indent(f"{start}\n{lines}\n{saves}", "    ")
        for name, lines in (("once", step), ("fused", loop))
    }
    kernels = "".join(
        f"""

@triton.jit(do_not_specialize=["steps"])
def {name}(state, counters, inputs, steps, BLOCK: tl.constexpr):
{lines}
"""
        for name, lines in bodies.items()
    )
    return f"import triton\nimport triton.language as tl\n\n{constants}\n{lookups}{kernels}"


def _plain(workload: Workload) -> list[Field]:
    """Read-only fields that are local variables: one number per element."""
    return [f for f in workload.fixed if not f.shape and not f.shared]


def _looked_up(workload: Workload) -> list[Field]:
    return [f for f in workload.fixed if f.shape or f.shared]


def _offsets(fields: Iterable[Field], elements: int) -> list[tuple[Field, int]]:
    """The fields, each with the index of its first word in the buffer."""
    found, at = [], 0
    for field in fields:
        found.append((field, at))
        at += field.width * (1 if field.shared else elements)
    return found


def _place(field: Field, at: int, k: str = "k") -> str:
    return f"{at}u + {k}" if field.shared else f"{at}u + {k} * ELEMENTS + i"


def _copies(workload: Workload, elements: int, *, save: bool) -> list[str]:
    """Statements in WGSL or CUDA C that load or save every word of the state of an element."""
    lines = []
    for field, at in _offsets(workload.state, elements):
        for k in range(field.width):
            local = f"{field.name}[{k}]" if field.shape else field.name
            word = f"state[{at + k * elements}u + i]"
            lines.append(f"{word} = {local};" if save else f"{local} = {word};")
    return lines


def _calls(body: str, names: Iterable[str], passed: str = "i") -> str:
    """The body with ``name(`` replaced by ``name_of(i, ``, because WGSL and Triton have no
    macros.
    """
    for name in names:
        body = re.sub(rf"\b{name}\(", f"{name}_of({passed}, ", body)
    return body
