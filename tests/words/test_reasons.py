"""Every reason that the package gives has a sentence, and the sentence names the values that are
given.
"""

from __future__ import annotations

import ast
import functools
import string
from pathlib import Path
from typing import NamedTuple

import pytest

from overhead.results import Reason, about, because, cause_of, codes_of, together
from overhead.words import reasons
from overhead.words.reasons import in_words, reasons_said, sentence, templates

PACKAGE = Path(__file__).resolve().parents[2] / "overhead"


OF_EARLIER_VERSIONS = {
    "call-ran-other-steps",
    "compile-died",
    "compile-failed",
    "compile-memory-limit",
    "compile-time-limit",
    "differs-from-reference-at",
}
"""Codes that nothing gives any more. Files have them from when loops that torch.compile unrolls
were measured, and ``overhead show`` and the claims still read such files.
"""


class Given(NamedTuple):
    """A ``because(...)`` of the package. ``values``: their names; None for values by ``**``."""

    place: str
    code: str
    values: set[str] | None


@functools.cache
def given() -> list[Given]:
    """Each ``because(...)`` of the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and is_because(node):
                found.append(given_by(node, f"{path.relative_to(PACKAGE)}:{node.lineno}"))
    return found


def is_because(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] == "because"


def given_by(call: ast.Call, place: str) -> Given:
    code = call.args[0]
    assert isinstance(code, ast.Constant), f"{place}: a code is a literal, so that it can be found"
    values: set[str] | None = set()
    for keyword in call.keywords:
        if keyword.arg is None:
            values = None
        elif values is not None:
            values.add(keyword.arg)
    return Given(place, str(code.value), values)


def named(template: str) -> set[str]:
    """The values that a template names."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def test_every_code_has_a_sentence_that_names_its_values() -> None:
    for place, code, values in given():
        assert code in templates(), f"{place}: no sentence for {code}"
        if values is not None:
            assert named(templates()[code]) == values, f"{place}: {code}"


def test_every_sentence_is_of_a_code_that_is_given() -> None:
    codes = {one.code for one in given()}
    assert templates().keys() - codes == {"quoted", *OF_EARLIER_VERSIONS}


def test_a_text_from_outside_stays_as_it_is_beside_reasons_of_ours() -> None:
    both = together("error 999 {x}", Reason("not-of-this-version", {"n": 3}))
    assert sentence(both) == "error 999 {x}; not-of-this-version (n=3)"
    assert codes_of(both) == {"quoted", "not-of-this-version"}
    assert together("", "") == ""


def test_a_value_may_be_a_reason_and_have_a_format_of_the_suite(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = {"outer": "No: {why}.", "inner": "{ns:micro} µs in {n:count step}, {share:percent}"}
    monkeypatch.setattr(reasons, "templates", made.copy)
    inner = Reason("inner", {"ns": 1500.0, "n": 2, "share": 0.25})
    both = Reason("outer", {"why": together(inner, "x")})
    assert sentence(both) == "No: 1.50 µs in 2 steps, 25 %; x."
    assert codes_of(both) == {"outer", "inner"}


def test_values_that_a_sentence_lacks_do_not_stop_the_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = next((code for code, template in templates().items() if named(template)), "quoted")
    assert known in sentence(Reason(known))


def test_what_a_command_prints_has_the_sentence_and_the_code_beside_it() -> None:
    answer = {
        "reason": because("one-process"),
        "rule": "from outside",
        "flags": [about("torch", because("one-process")), "from outside"],
        "inner": [{"why": {"code": "one-process"}, "value": 1.0}],
    }
    said = sentence(because("one-process"))
    assert in_words(answer) == {
        "reason": said,
        "reason_code": "one-process",
        "rule": "from outside",
        "flags": [f"torch: {said}", "from outside"],
        "flags_code": ["one-process", ""],
        "inner": [{"why": said, "why_code": "one-process", "value": 1.0}],
    }


def test_reasons_of_one_cause_are_said_once_with_the_names_of_what_they_explain() -> None:
    wide = [because("too-wide", share=share, target=0.03) for share in (0.1, 0.2, 0.3, 0.4)]
    alike = [(f"case {number}", about("noisy", reason)) for number, reason in enumerate(wide)]
    first, other = reasons_said([*alike, ("last", about("failed", "error 9"))], "No cost of")
    assert sentence(about("noisy", wide[0])) in first
    assert sentence(wide[1]) not in first
    assert "case 2" in first
    assert "case 3" not in first
    assert sentence(about("failed", "error 9")) in other


def test_reasons_of_one_cause_differ_in_numbers_and_quoted_names_alone() -> None:
    assert cause_of(because("too-wide", share=0.1)) == cause_of(because("too-wide", share=0.2))
    assert cause_of("no 'a' in 3 places") == cause_of("no 'b' in 4 places")
    assert cause_of(about("torch", "x")) != cause_of(about("dawn", "x"))
    assert cause_of(because("one-process")) != cause_of(because("too-wide"))
