"""Evaluate formulas that contain only numbers, names, + - * / and brackets."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def evaluate(formula: str, parts: Mapping[str, float]) -> float:
    """The value of the formula.

    Raises ``ValueError`` for anything but arithmetic and ``KeyError`` for a name that is not in ``parts``.
    """
    return _value(ast.parse(formula, mode="eval").body, parts)


def _value(node: ast.expr, parts: Mapping[str, float]) -> float:
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return float(_OPERATORS[type(op)](_value(left, parts), _value(right, parts)))
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            return float(parts[name])
    raise ValueError(f"not arithmetic: {ast.unparse(node)}")


def rounding(value: float) -> float:
    """The largest rounding error of a printed value, half a unit of its last digit: 0.05 for 20.9, 0.5 for 159."""
    text = repr(value)
    return 0.5 * 10.0 ** -len(text.partition(".")[2]) if "." in text else 0.5
