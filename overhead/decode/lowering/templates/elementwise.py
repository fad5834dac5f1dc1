"""Operations with one thread for each element: expressions, joined tensors, tables, rotary
embeddings, row writes.
"""

from __future__ import annotations

import dataclasses
import math

from overhead.decode.lowering.buffers import NumberType, TensorView
from overhead.decode.lowering.kernel import Kernel
from overhead.decode.lowering.operation import GROUP_THREADS, Operation, groups_for

# erf after Abramowitz and Stegun, 7.1.26; its error is at most 1.5e-7.
_POLYNOMIAL = (
    "{t} * (0.254829592 + {t} * (-0.284496736 + {t} * (1.421413741 + {t} * (-1.453152027 + {t} *"
    " 1.061405429))))"
)
_T = "(1.0 / (1.0 + 0.3275911 * abs({0}) * 0.70710678))"
_ERF = f"(1.0 - {_POLYNOMIAL.format(t=_T)} * exp(-0.5 * {{0}} * {{0}}))"

ARITHMETIC = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "rsub": "{1} - {0}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "maximum": "max({0}, {1})",
    "minimum": "min({0}, {1})",
    "neg": "-{0}",
    "abs": "abs({0})",
    "square": "{0} * {0}",
    "clone": "{0}",
    "copy": "{0}",
}
"""Operations that keep the type of their inputs, after the usual promotion. ``{0}`` is the first
input.
"""
REAL = {
    "exp": "exp({0})",
    "log": "log({0})",
    "sin": "sin({0})",
    "cos": "cos({0})",
    "sqrt": "sqrt({0})",
    "rsqrt": "inverseSqrt({0})",
    "reciprocal": "1.0 / {0}",
    "tanh": "tanh(min(max({0}, -20.0), 20.0))",
    "sigmoid": "1.0 / (1.0 + exp(-{0}))",
    "silu": "{0} / (1.0 + exp(-{0}))",
    "relu": "max({0}, 0.0)",
    "erf_gelu": f"0.5 * {{0}} * (1.0 + select(-1.0, 1.0, {{0}} >= 0.0) * {_ERF})",
    "tanh_gelu": (
        "0.5 * {0} * (1.0 + tanh(min(max(0.7978845608 * ({0} + 0.044715 * {0} * {0} * {0}), -20.0),"
        " 20.0)))"
    ),
}
"""Operations on f32. Where a large argument of tanh overflows on some GPUs, it is bounded."""
COMPARISONS = {"le": "<=", "lt": "<", "ge": ">=", "gt": ">", "eq": "==", "ne": "!="}
"""Operations that give truth values."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Elementwise(Operation):
    """An operation that computes each element of ``output`` by the same ``expression`` (source
    text), in which ``x0``, ``x1``, ... are elements of the inputs. Inputs are broadcast.

    ``kind``: the name of the operation, such as ``mul``. ``scalars``: the numbers that the
    expression contains, for the fusions, which look for operations with certain numbers.
    """

    kind: str
    expression: str
    inputs: tuple[TensorView, ...]
    output: TensorView
    scalars: tuple[float, ...] = ()

    @property
    def label(self) -> str:
        """The kind of the expression."""
        return self.kind

    def kernel(self) -> Kernel:
        """The kernel: a thread loads one element of each input, and computes one of the output."""
        lines = []
        for i, view in enumerate(self.inputs):
            element = self.flat_element(view.broadcast(self.output.shape), "i")
            lines.append(f"{view.number} x{i} = {element};")
        lines.append(f"{self.flat_element(self.output, 'i')} = {self.expression};")
        return self.each_element(self.output.count, "\n".join(lines))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Concat(Operation):
    """Joins tensors: ``output`` is the inputs one after another along ``dimension`` (not
    negative).
    """

    label = "concat"
    inputs: tuple[TensorView, ...]
    dimension: int
    output: TensorView

    def kernel(self) -> Kernel:
        """The kernel: thread ``i`` copies element ``i`` of each input, if it has so many, to its
        place in the output.
        """
        lines = [f"u32 i = group * {GROUP_THREADS}u + lane;"]
        stride = self.output.strides[self.dimension]
        # Where the next input begins along the dimension.
        start = 0
        for view in self.inputs:
            # The place of this input in the output: a view of the input's shape, further on.
            place = dataclasses.replace(
                self.output, shape=view.shape, offset=self.output.offset + start * stride
            )
            copied = f"{self.flat_element(place, 'i')} = {self.flat_element(view, 'i')};"
            lines.append(f"if (i < {view.count}u) {{ {copied} }}")
            start += view.shape[self.dimension]
        most = max(view.count for view in self.inputs)
        return self.compose("\n".join(lines), groups_for(most))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gather(Operation):
    """Takes rows of a table, such as the embedding of each token: ``output[j, ...] =
    table[index[j], ...]``. The output has no gaps.
    """

    label = "embedding"
    table: TensorView
    index: TensorView
    output: TensorView

    def kernel(self) -> Kernel:
        """The kernel: a thread copies one element of the output from the row of the table to which
        it belongs. The number of that row, ``at``, is an element of ``index``.
        """
        # ``row``: a view of one row as if it began at number 0. ``start``: where row ``at`` begins.
        row = dataclasses.replace(
            self.table, shape=self.table.shape[1:], strides=self.table.strides[1:], offset=0
        )
        zeros = ["0u"] * len(row.shape)
        start = self.table.element_index("at", *zeros)
        # ``row.count`` elements of the output come from each row: of the row that element
        # ``i / row.count`` of ``index`` names, the one at ``i % row.count``.
        output = self.flat_element(self.output, "i")
        body = f"""\
u32 at = u32({self.flat_element(self.index, f"i / {row.count}u")});
u32 column = i % {row.count}u;
{output} = {self.name(self.table)}[{start} + {row.flat_index("column")}];"""
        return self.each_element(self.output.count, body)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rotary(Operation):
    """A rotary embedding as one dispatch: ``x * cos + turned * sin``, where ``turned`` is x with
    the halves of each row swapped and the new first half negated.
    """

    label = "rotary"
    x: TensorView
    cos: TensorView
    sin: TensorView
    output: TensorView

    def kernel(self) -> Kernel:
        """The kernel: a thread computes one element of the output, from the element of x at the
        same place and the one half a row before or after it (``other``).
        """
        shape = self.output.shape
        width = shape[-1]
        half = width // 2
        cos = self.flat_element(self.cos.broadcast(shape), "i")
        sin = self.flat_element(self.sin.broadcast(shape), "i")
        # ``first``: the element is in the first half of its row. ``select(a, b, first)`` is b if it
        # is, else a.
        body = f"""\
bool first = i % {width}u < {half}u;
u32 other = select(i - {half}u, i + {half}u, first);
f32 turned = {self.flat_element(self.x, "other")} * select(1.0, -1.0, first);
f32 straight = {self.flat_element(self.x, "i")} * {cos};
{self.flat_element(self.output, "i")} = straight + turned * {sin};"""
        return self.each_element(self.output.count, body)


@dataclasses.dataclass(frozen=True, kw_only=True)
class IndexWrite(Operation):
    """Writes rows into a tensor at given places, such as the new key of a token into the cache:
    ``target[..., index[j], ...] = source[..., j, ...]`` along ``dimension``. An index out of range
    writes nothing.
    """

    label = "index_write"
    written = ("target",)
    target: TensorView
    dimension: int
    index: TensorView
    source: TensorView

    def kernel(self) -> Kernel:
        """The kernel: a thread copies one element of the source. Its place in the target has the
        same indices, but along ``dimension`` the index is ``at``, an element of ``index``.
        """
        # The indices of element ``i`` of the source, from its last dimension to the first.
        indices: list[str] = []
        inner = 1
        for size in reversed(self.source.shape):
            indices.insert(0, f"i / {inner}u % {size}u" if size > 1 else "0u")
            inner *= size
        written_row = self.flat_element(self.index, indices[self.dimension])
        indices[self.dimension] = "at"
        body = f"""\
u32 at = u32({written_row});
if (at < {self.target.shape[self.dimension]}u) {{
  {self.element(self.target, *indices)} = {self.flat_element(self.source, "i")};
}}"""
        return self.each_element(self.source.count, body)


def power(exponent: float) -> str:
    """The source text of ``{0}``, which stands for an input, to the power of this constant.

    The function ``pow`` of a GPU is not exact, so products and roots are used where they can be.
    """
    # ``inverseSqrt`` is a function of WGSL, and the header of CUDA C defines it.
    known = {
        2.0: "{0} * {0}",
        3.0: "{0} * {0} * {0}",
        0.5: "sqrt({0})",
        -0.5: "inverseSqrt({0})",
        1.0: "{0}",
    }
    return known.get(exponent, f"pow({{0}}, {literal(exponent, 'f32')})")


def literal(value: float, number: NumberType) -> str:
    """A number as source text of this type, which may stand beside any operator. Infinities become
    the largest f32, because WGSL has no infinity.
    """
    if number == "u32":
        return f"{int(value)}u"
    if number == "i32":
        text = str(int(value))
    else:
        value = math.copysign(min(abs(value), 3.4e38), value)
        text = repr(float(value))
    # Without parentheses ``x - -1`` would be read otherwise.
    return text if value >= 0 else f"({text})"


def converted(text: str, given: NumberType, wanted: NumberType) -> str:
    """An expression of one type as another type. A truth value is 0 or 1."""
    if given == wanted:
        return text
    if wanted == "u32":
        return f"select(0u, 1u, {text} != {literal(0, given)})"
    return f"{wanted}({text})"
