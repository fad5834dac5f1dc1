"""What the text of a CALL says before it runs: names of functions, statements that do nothing,
lists of values.
"""

from __future__ import annotations

import pytest

from overhead.errors import UsageError
from overhead.timing.call_syntax import (
    assignments,
    check_does_something,
    named_function,
    shown_statement,
)

NOTHING = (
    "x: int",
    "x:int",
    "x",
    "x; y",
    "1",
    "'f()'",
    "...",
    "1 + 1",
    "y = 2 ** 10",
    "(1, 2)[0]",
    "lambda: f()",
    "(f(i) for i in x)",
    "def f(): g()",
    "async def f(): pass",
    "if 0: f()",
    "assert True",
    "global x",
    "step1:step",
    "pass; x",
    "x; pass",
)
SOMETHING = (
    "f()", "x + 1", "x.y", "x[0]", "y = 1", "y = (1, 2)", "y = -1", "[x]", "not x", "x == 1",
    "f(2 * 1024)", "del x", "for i in range(9): pass", "def f(): pass\nf()", "import math",
    "n = 2 * 3; f(n)", "x: int = 3", "[f(i) for i in x]",
)  # fmt: skip


@pytest.mark.parametrize("call", NOTHING)
def test_a_statement_that_does_nothing_is_refused_in_one_line(call: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_does_something(call)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("call", [*SOMETHING, "pass", "x +"])
def test_a_statement_that_does_something_and_the_empty_loop_are_not_refused(call: str) -> None:
    check_does_something(call)


@pytest.mark.parametrize(
    "call", ["step1:step", "a b/c.py:Model.run", r"C:\a\b.py:f", "package.module:function"]
)
def test_a_call_may_name_a_function_as_explain_does(call: str) -> None:
    assert named_function(call) == call


@pytest.mark.parametrize(
    "call",
    ["x: int", "d[a:b]", "f('a:b')", "lambda:x", "lambda y=a.py:x", "else:x", "x:1", "f(x):y"],
)
def test_a_statement_with_a_colon_names_no_function(call: str) -> None:
    assert not named_function(call)


@pytest.mark.parametrize(
    ("vary", "values"),
    [
        ("n=[1,2],[3]", ["[1,2]", "[3]"]),
        ("n=64, 256", ["64", "256"]),
        ("n='a,b',c", ["'a,b'", "c"]),
        ("n={1: 2, 3: 4},f(1, 2)", ["{1: 2, 3: 4}", "f(1, 2)"]),
        (r"n='a\',b',2", [r"'a\',b'", "2"]),
        (r"n='C:\\',2", [r"'C:\\'", "2"]),
    ],
)
def test_the_values_of_a_variable_are_split_at_commas_outside_brackets_and_quotes(
    vary: str, values: list[str]
) -> None:
    assert assignments(vary) == [{"n": value} for value in values]


@pytest.mark.parametrize(
    "vary", ["n=(1", "n=1)", "n=[1)", "n='a", "for=1", "n=", "n=1,", "=1", "n"]
)
def test_values_of_a_variable_that_cannot_be_split_are_refused(vary: str) -> None:
    with pytest.raises(UsageError, match=r"^--vary"):
        assignments(vary)


def test_a_statement_of_several_lines_is_shown_in_one_that_means_the_same() -> None:
    assert shown_statement("x = 1\ny = 2") == "x = 1; y = 2"
    assert shown_statement("  f(\n    x)\n").replace("\u23ce ", "") == "f( x)"
    nested = shown_statement("for i in x:\n  f(i)\ng()")
    assert nested != "for i in x: f(i) g()"
    assert nested != "for i in x: f(i); g()"
