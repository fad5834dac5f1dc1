"""Generate the kernels for the step of a workload, by language: one launch per step, or one launch
for all steps.

Number k of element i is at ``k * elements + i``, so that neighbouring threads read neighbouring
words. The layout is different if ``Workload.by_element`` is set. There are three buffers: state,
read-only inputs, and counters. In the first two, the fields follow each other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
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
    fields = [_flat(workload, field, values[field.name]) for field in workload.state]
    scratch = np.zeros(workload.scratch * elements, workload.dtype)
    return np.concatenate([*fields, scratch])


def pack_inputs(workload: Workload, values: Mapping[str, Array]) -> Array:
    """The read-only inputs as one array, in the memory layout of the kernels: one field after
    another.
    """
    # _flat(): the numbers of a field in a row; number k of all elements side by side, unless the
    # workload keeps those of one element together.
    fields = [_flat(workload, field, values[field.name]) for field in workload.fixed]
    # A workload without inputs gets four bytes (two numbers of float16), because no buffer may be
    # empty.
    if not fields:
        return np.zeros(4 // workload.dtype.itemsize, workload.dtype)
    return np.concatenate(fields)


def unpack_state(workload: Workload, buffer: Array, elements: int) -> dict[str, Array]:
    """The fields of the state, by name and with their shapes, from the buffer in which kernels keep
    them one after another: the reverse of ``pack_state``. ``elements``: the independent parts of
    the state. Scratch numbers of the kernels, behind the fields, are left out.
    """
    fields: dict[str, Array] = {}
    start = 0
    for field in workload.state:
        end = start + field.width * elements
        numbers = buffer[start:end]
        # Either the numbers of one element are neighbours (``by_element``), or number k of all
        # elements are.
        if workload.by_element:
            of_elements = numbers.reshape(elements, -1)
        else:
            of_elements = numbers.reshape(-1, elements).T
        # So far it has a row for each element.
        fields[field.name] = of_elements.reshape(elements, *field.shape)
        start = end
    return fields


def _flat(workload: Workload, field: Field, values: Array) -> Array:
    """The numbers of a field one after another, as the kernels expect them."""
    numbers = np.asarray(values, workload.dtype)
    if field.shared or workload.by_element:
        return numbers.ravel()
    return numbers.reshape(len(numbers), field.width).T.ravel()


def kernels_of(workload: Workload, language: str, elements: int) -> Kernels | None:
    """The kernels of a workload in a language: those that it brings itself, else those made here
    from its statements; None if it has neither.

    ``once`` computes one step for each launch, and ``fused`` all steps in one launch.
    """
    own = workload.kernels(language, elements)
    if own is not None:
        return own
    # The workload's field of this name has its statements in the language; '' if it has none.
    if not getattr(workload, language):
        return None
    generate = {"wgsl": wgsl, "cuda": cuda, "triton": triton}[language]
    threads = BLOCK if language == "triton" else group_size(elements)
    groups = -(-elements // threads)  # a thread for each element, rounded up
    entries = {
        "one": (KernelEntry("once", groups, threads),),
        "fused": (KernelEntry("fused", groups, threads),),
    }
    return Kernels(generate(workload, elements), entries)


def wgsl(workload: Workload, elements: int) -> str:
    """The WGSL text of a workload, made from its statements, with two entry points: ``once`` runs
    one step, and ``fused`` as many as word 0 of the uniform buffer says.

    Both load the state of an element into local variables, run the statements on them, and save
    them again, with the element's counter of steps.
    """
    constants = [
        f"const {name}: f32 = {float(value)!r};" for name, value in workload.constants.items()
    ]
    # A function for each input, which reads number k of element i. ``start``: where the input
    # begins in the buffer.
    lookups = []
    for field, start in _with_starts(workload.fixed, elements):
        place = _index_text(field, start)
        lookups.append(f"fn {field.name}_of(i: u32, k: u32) -> f32 {{ return inputs[{place}]; }}")

    # Local variables: the inputs with one number per element, which is their number 0.
    declared = [f"let {field.name} = {field.name}_of(i, 0u);" for field in _local_inputs(workload)]
    # ``shape`` is empty of a field with one number per element.
    for field in workload.state:
        kind = f"array<f32, {field.width}>" if field.shape else "f32"
        declared.append(f"var {field.name}: {kind};")
    loaded = "\n".join([*declared, *_load_statements(workload, elements), "var t = counters[i];"])
    saved = "\n".join([*_save_statements(workload, elements), "counters[i] = t;"])

    # The statements call an input ``name(k)``, which here becomes ``name_of(i, k)``.
    body = _with_lookups(dedent(workload.wgsl).strip(), workload, "i")
    step = f"{body}\nt = t + 1u;"
    loop = f"for (var turn = 0u; turn < steps.x; turn = turn + 1u) {{\n{indent(step, '  ')}\n}}"
    once = _wgsl_kernel("once", elements, loaded, step, saved)
    fused = _wgsl_kernel("fused", elements, loaded, loop, saved)
    return f"""\
@group(0) @binding(0) var<storage, read_write> state: array<f32>;
@group(0) @binding(1) var<storage, read_write> counters: array<u32>;
@group(0) @binding(2) var<storage, read> inputs: array<f32>;
@group(0) @binding(3) var<uniform> steps: vec4<u32>;
const ELEMENTS: u32 = {elements}u;
{_lines(constants)}
{_lines(lookups)}
{once}{fused}"""


def _wgsl_kernel(name: str, elements: int, loaded: str, steps: str, saved: str) -> str:
    """The text of one entry point, in which each thread computes the element ``i``: statements that
    load its state, run its steps, and save its state. The last group may have more threads than
    there are elements left; these return at once.
    """
    return f"""
@compute @workgroup_size({group_size(elements)})
fn {name}(@builtin(global_invocation_id) id: vec3<u32>) {{
  let i = id.x;
  if (i >= ELEMENTS) {{ return; }}
{indent(loaded, "  ")}
{indent(steps, "  ")}
{indent(saved, "  ")}
}}
"""


def cuda(workload: Workload, elements: int) -> str:
    """The CUDA C text of a workload, made from its statements, with two kernels: ``once(state,
    counters, inputs)`` runs one step, and ``fused(state, counters, inputs, steps)`` as many as
    ``steps``, a 64-bit integer, says.

    Both load the state of an element into local variables, run the statements on them, and save
    them again, with the element's counter of steps.
    """
    constants = [
        f"constexpr float {name} = {float(value)!r}f;" for name, value in workload.constants.items()
    ]
    # An input with one number per element is a local variable. A macro reads number k of another
    # (``_is_looked_up``), so the statements stay as they are: ``name(k)``.
    lookups = []
    declared = []
    for field, start in _with_starts(workload.fixed, elements):
        if _is_looked_up(field):
            lookups.append(f"#define {field.name}(k) inputs[{_index_text(field, start, '(k)')}]")
        else:
            declared.append(f"const float {field.name} = inputs[{start}u + i];")
    for field in workload.state:
        length = f"[{field.width}]" if field.shape else ""
        declared.append(f"float {field.name}{length};")
    loaded = "\n".join(
        [*declared, *_load_statements(workload, elements), "unsigned int t = counters[i];"]
    )
    saved = "\n".join([*_save_statements(workload, elements), "counters[i] = t;"])

    # The statements are in a block, with which the names that they declare end. ``block`` is left
    # open, because in the loop the counter of steps goes up inside of it.
    body = dedent(workload.cuda).strip()
    block = f"{{\n{indent(body, '  ')}\n"
    loop = f"for (unsigned long long turn = 0; turn < steps; ++turn) {block}  t = t + 1u;\n}}"
    once = _cuda_kernel("once", "", loaded, f"{block}}}\nt = t + 1u;", saved)
    fused = _cuda_kernel("fused", ", unsigned long long steps", loaded, loop, saved)
    return f"""\
constexpr unsigned int ELEMENTS = {elements}u;
{_lines(constants)}
{_lines(lookups)}
{once}{fused}"""


def _cuda_kernel(name: str, parameter: str, loaded: str, steps: str, saved: str) -> str:
    """The text of one kernel, in which each thread computes the element ``i``: statements that load
    its state, run its steps, and save its state. ``parameter``: the text of a further one of the
    kernel, which begins with a comma; or ''.
    """
    head = (
        "float* __restrict__ state, unsigned int* __restrict__ counters, const float* __restrict__"
        " inputs"
    )
    return f"""
extern "C" __global__ void {name}({head}{parameter}) {{
  const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= ELEMENTS) return;
{indent(loaded, "  ")}
{indent(steps, "  ")}
{indent(saved, "  ")}
}}
"""


def triton(workload: Workload, elements: int) -> str:
    """The text of a Python module with a workload as Triton kernels, made from its statements:
    ``once`` runs one step, and ``fused`` as many as its argument ``steps`` says. Both have the
    arguments ``(state, counters, inputs, steps, BLOCK)``.

    In Triton a variable holds a block of elements, one number of each, so every field of the state
    must have one number per element.
    """
    constants = [
        f"{name} = tl.constexpr({float(value)!r})" for name, value in workload.constants.items()
    ]
    # How each field of the state is loaded and saved, and each input loaded or looked up.
    lookups = ""
    loads = []
    saves = []
    for field, start in _with_starts(workload.state, elements):
        loads.append(_triton_load(field, "state", start))
        saves.append(f"tl.store(state + {start} + i, {field.name}, mask=inside)")
    for field, start in _with_starts(workload.fixed, elements):
        if _is_looked_up(field):
            lookups += _triton_lookup(field, start, elements)
        else:
            loads.append(_triton_load(field, "inputs", start))

    # ``t``: for each element the number of its steps so far.
    loads.append("t = tl.load(counters + i, mask=inside, other=0)")
    saves.append("tl.store(counters + i, t, mask=inside)")
    # ``inside``: the last block may reach beyond the last element.
    index = f"i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\ninside = i < {elements}"
    loaded = f"{index}\n{_lines(loads)}"
    # The step, once and in a loop.
    body = _with_lookups(dedent(workload.triton).strip(), workload, "inputs, i, inside")
    step = f"{body}\nt = t + 1"
    loop = f"for turn in range(steps):\n{indent(step, '    ')}"
    once = _triton_kernel("once", loaded, step, _lines(saves))
    fused = _triton_kernel("fused", loaded, loop, _lines(saves))
    imports = "import triton\nimport triton.language as tl"
    return f"{imports}\n\n{_lines(constants)}\n{lookups}{once}{fused}"


def _triton_load(field: Field, buffer: str, start: int) -> str:
    """A statement that loads the numbers of a block of elements from a buffer."""
    return f"{field.name} = tl.load({buffer} + {start} + i, mask=inside, other=0.0)"


def _triton_lookup(field: Field, start: int, elements: int) -> str:
    """The text of the function ``name_of`` for an input with several numbers: it returns number k
    of each element of a block, or of the one array that all elements share.

    ``start``: where the input begins in the buffer.
    """
    place = f"{start} + k"
    # Number k of element i is at k * elements + i. ``inside`` masks what lies beyond the last one.
    if not field.shared:
        place += f" * {elements} + i, mask=inside, other=0.0"
    return f"""

@triton.jit
def {field.name}_of(inputs, i, inside, k):
    return tl.load(inputs + {place})
"""


def _triton_kernel(name: str, loaded: str, steps: str, saved: str) -> str:
    """The text of one kernel: statements that load the state of a block of elements, run its steps,
    and save its state. ``steps`` may change without a new compilation.
    """
    return f"""

@triton.jit(do_not_specialize=["steps"])
def {name}(state, counters, inputs, steps, BLOCK: tl.constexpr):
{indent(loaded, "    ")}
{indent(steps, "    ")}
{indent(saved, "    ")}
"""


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _is_looked_up(field: Field) -> bool:
    """Whether kernels read a number of this input through a function or macro. The other inputs are
    local variables, because they have one number per element.
    """
    return bool(field.shape) or field.shared


def _local_inputs(workload: Workload) -> list[Field]:
    """The inputs that are local variables in a kernel: those with one number per element."""
    return [field for field in workload.fixed if not _is_looked_up(field)]


def _with_starts(fields: Iterable[Field], elements: int) -> list[tuple[Field, int]]:
    """The fields, each with the index of its first number in the buffer, where one field follows
    another.
    """
    starts: list[tuple[Field, int]] = []
    start = 0
    for field in fields:
        starts.append((field, start))
        # A shared field is there once, another one for each element.
        start += field.width if field.shared else field.width * elements
    return starts


def _index_text(field: Field, start: int, k: str = "k") -> str:
    """The index of number k of an input, as source text of WGSL or CUDA C."""
    if field.shared:
        return f"{start}u + {k}"
    return f"{start}u + {k} * ELEMENTS + i"


def _locals_and_words(workload: Workload, elements: int) -> Iterator[tuple[str, str]]:
    """For each number of an element's state, as source text of WGSL and CUDA C: the local variable
    that holds it in a kernel, and the word of the buffer where it is kept.
    """
    for field, start in _with_starts(workload.state, elements):
        for k in range(field.width):
            local = f"{field.name}[{k}]" if field.shape else field.name
            # Number k of all elements lies side by side, so that of element i is behind i others.
            yield local, f"state[{start + k * elements}u + i]"


def _load_statements(workload: Workload, elements: int) -> list[str]:
    """Statements in WGSL or CUDA C that load the state of an element."""
    return [f"{local} = {word};" for local, word in _locals_and_words(workload, elements)]


def _save_statements(workload: Workload, elements: int) -> list[str]:
    """Statements in WGSL or CUDA C that save the state of an element."""
    return [f"{word} = {local};" for local, word in _locals_and_words(workload, elements)]


def _with_lookups(body: str, workload: Workload, passed: str) -> str:
    """The statements ``body``, in which ``name(k)`` reads number k of an input, with calls that
    WGSL and Triton understand: ``name_of(passed, k)``. They have no macros, so the function must be
    given what it reads from; ``passed`` says what.
    """
    for field in workload.fixed:
        if _is_looked_up(field):
            body = re.sub(rf"\b{field.name}\(", f"{field.name}_of({passed}, ", body)
    return body
