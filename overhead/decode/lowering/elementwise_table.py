"""The elementwise operations of PyTorch as expressions for ``Elementwise``."""

from __future__ import annotations

import math

from overhead.decode.lowering.buffers import NumberType

# erf after Abramowitz and Stegun, 7.1.26; its error is at most 1.5e-7.
_POLYNOMIAL = (
    "{t} * (0.254829592 + {t} * (-0.284496736 + {t} * (1.421413741 + {t} * (-1.453152027 + {t} * 1.061405429))))"
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
"""Operations that keep the type of their inputs, after the usual promotion. ``{0}`` is the first input."""
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
    "tanh_gelu": "0.5 * {0} * (1.0 + tanh(min(max(0.7978845608 * ({0} + 0.044715 * {0} * {0} * {0}), -20.0), 20.0)))",
}
"""Operations on f32. Where a large argument of tanh overflows on some GPUs, it is bounded."""
COMPARISONS = {"le": "<=", "lt": "<", "ge": ">=", "gt": ">", "eq": "==", "ne": "!="}
"""Operations that give truth values."""


def power(exponent: float) -> str:
    """The expression of ``{0}`` to a constant power. A product where that is exact, since ``pow`` is not."""
    known = {2.0: "{0} * {0}", 3.0: "{0} * {0} * {0}", 0.5: "sqrt({0})", -0.5: "inverseSqrt({0})", 1.0: "{0}"}
    return known.get(exponent, f"pow({{0}}, {literal(exponent, 'f32')})")


def literal(value: float, number: NumberType) -> str:
    """A number as source text. Infinities become the largest f32, because WGSL has no infinity."""
    if number == "u32":
        return f"{int(value)}u"
    if number == "i32":
        return f"{int(value)}" if value >= 0 else f"({int(value)})"
    bounded = math.copysign(min(abs(value), 3.4e38), value)
    return repr(float(bounded)) if bounded >= 0 else f"({float(bounded)!r})"


def converted(text: str, given: NumberType, wanted: NumberType) -> str:
    """An expression of one type as another type. A truth value is 0 or 1."""
    if given == wanted:
        return text
    if wanted == "u32":
        return f"select(0u, 1u, {text} != {literal(0, given)})"
    return f"{wanted}({text})"
