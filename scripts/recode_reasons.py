#!/usr/bin/env python3
"""Rewrite the reasons of files that were written when a reason was a sentence: each becomes its
code with its values.

    python scripts/recode_reasons.py [FILE...]

Without files, all committed fingerprints and journals; raw samples of the committed runs stay as
they were measured. A sentence is read back with the templates of that time
(``older_sentences.json``), and only if the code with its values gives the same sentence, letter by
letter. Every other text stays as it is: it comes from outside, or from an older version. The values
have the digits that the sentence showed. Prints for each field how many texts stay, and which.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import gzip
import json
import re
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from overhead.loading.files import formatted  # noqa: E402
from overhead.results import Reason, Why, together  # noqa: E402
from overhead.words.templates import Formatter  # noqa: E402

_SENTENCES = Path(__file__).with_name("older_sentences.json")
"""The sentence of each code when a file held sentences. Where two have the same sentence, the first
one counts.
"""
_FIELDS = ("reason", "rule", "why")
_AROUND = ("raised", "raised-at", "with-mend")
"""Codes of templates that say nothing of their own: a text is read as one of them only if a part of
it is a reason.
"""
_WITHOUT_OWN_WORDS = (*_AROUND, "quoted", "about", "bare", "with-text")
_MANY_LETTERS = 12
_LEAST_LETTERS = 5
"""A template with fewer letters of its own would take any text for its sentence."""
_INNER = ("why", "mend", "seen", "want")
"""Values that are other reasons."""
_TEXTS = ("text", "variables", *_INNER)
"""Values that may hold a semicolon: what somebody else said, and other reasons."""
_NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?"


_ENDS = re.compile(rf"\(({_NUMBER}) to ({_NUMBER})\)")
_SCALES = {
    "micro": Decimal(1000),
    "micro-spread": Decimal(1000),
    "percent": Decimal("0.01"),
    "percent-spread": Decimal("0.01"),
    "spread": Decimal(1),
}
"""By the format of a value, how much of it one of the shown units is."""
_WIDER = (Decimal(0), Decimal("0.3"))
"""An interval is shown with a digit less from a certain width on, which its rounded ends may not
reach.
"""


@dataclasses.dataclass(frozen=True)
class TemplateField:
    """A value that a template names, and how it stands there."""

    name: str
    format: str

    def pattern(self, letters: int) -> str:
        """Matches the value in a sentence. ``letters``: of the template; among few of them a value
        is one word.
        """
        if self.format in _SCALES:
            mark = " %" if self.format.startswith("percent") else ""
            return rf"({_NUMBER}{mark}(?: \({_NUMBER} to {_NUMBER}\))?)"
        if self.format.endswith("%"):
            return f"({_NUMBER})%"
        if self.is_number:
            return f"({_NUMBER})"
        if self.name in _TEXTS:
            return "(.+?)"
        return r"([^\s;]+)" if letters < _MANY_LETTERS else "((?:(?!; ).)+?)"

    @property
    def is_number(self) -> bool:
        """Whether the format is one of numbers."""
        return bool(re.fullmatch(r"[-+]?,?(?:\.\d+)?[fg%]?", self.format)) and self.format != ""

    def read(self, text: str, wider: Decimal) -> dict[str, Any]:
        """The value in this text of a sentence, by name; with the ends of its interval, ``wider``
        last digits apart.
        """
        if self.format in _SCALES:
            return self._with_ends(text, wider)
        if self.name in _INNER:
            return {self.name: recoded(text)}
        if self.format.endswith("%"):
            return {self.name: float(Decimal(text.replace(",", "")) / 100)}
        if self.format == ",":
            return {self.name: int(text.replace(",", ""))}
        if self.is_number:
            return {self.name: float(text.replace(",", ""))}
        return {self.name: int(text) if re.fullmatch(r"0|[1-9]\d{0,15}", text) else text}

    def _with_ends(self, text: str, wider: Decimal) -> dict[str, Any]:
        ends = _ENDS.search(text)
        given = [text.split(" ")[0], *(ends.groups() if ends is not None else ())]
        numbers = [Decimal(one.replace(",", "")) for one in given]
        if len(numbers) == 3:
            digit = Decimal((0, (1,), int(numbers[1].as_tuple().exponent)))
            numbers[1] -= wider * digit
            numbers[2] += wider * digit
        values = [float(number * _SCALES[self.format]) for number in numbers]
        return dict(zip((self.name, f"{self.name}_low", f"{self.name}_high"), values, strict=False))


@dataclasses.dataclass(frozen=True)
class SentencePattern:
    """The sentence of a code as a pattern."""

    code: str
    pattern: re.Pattern[str]
    fields: tuple[TemplateField, ...]
    letters: int


@functools.cache
def _older_sentences() -> dict[str, str]:
    found: dict[str, str] = json.loads(_SENTENCES.read_text(encoding="utf-8"))
    return found


def older_sentence(reason: Why) -> str:
    """The reason as a file said it when it held sentences; a text from outside as it is."""
    if isinstance(reason, str):
        return reason
    values: dict[str, Any] = {"us": "us"}
    for name, value in reason.values.items():
        values[name] = older_sentence(value) if isinstance(value, Reason) else value
    own = Formatter().vformat(_older_sentences()[reason.code], (), values)
    return "; ".join([own, *map(older_sentence, reason.also)])


@functools.cache
def templates() -> tuple[SentencePattern, ...]:
    """The sentences of all codes that a run may hold; those with most letters of their own
    first.
    """
    found: dict[str, SentencePattern] = {}
    for code, text in _older_sentences().items():
        if code in _WITHOUT_OWN_WORDS:
            continue
        made = _template(code, text)
        if made.letters >= _LEAST_LETTERS or all(field.name in _INNER for field in made.fields):
            found.setdefault(text, made)
    return tuple(sorted(found.values(), key=_letters, reverse=True))


def _letters(one: SentencePattern) -> int:
    return one.letters


def _template(code: str, text: str) -> SentencePattern:
    pieces = list(string.Formatter().parse(text))
    letters = sum(len(literal) for literal, *_ in pieces)
    pattern, fields = "", []
    for literal, name, form, _ in pieces:
        pattern += re.escape(literal)
        if name == "us":
            pattern += "us"
        elif name:
            fields.append(TemplateField(name, form or ""))
            pattern += fields[-1].pattern(letters)
    return SentencePattern(code, re.compile(pattern, re.DOTALL), tuple(fields), letters)


@functools.cache
def recoded(text: str) -> Why:
    """The reason whose sentence this is; the text itself where none is known."""
    whole = _whole(text)
    if whole is not None:
        return whole
    for at in _separators(text):
        head = _whole(text[:at])
        if head is None:
            continue
        found = together(head, recoded(text[at + 2 :]))
        if older_sentence(found) == text:
            return found
    return text


def _separators(text: str) -> list[int]:
    """The places where one reason may end and another begin, the last one first: a sentence may
    hold a semicolon.
    """
    return [match.start() for match in re.finditer("; ", text)][::-1]


def _whole(text: str) -> Reason | None:
    """The one reason that says all of the text."""
    for template in templates():
        match = template.pattern.fullmatch(text)
        if match is None:
            continue
        for wider in _WIDER:
            found = _filled(template, match, wider)
            if found is not None and older_sentence(found) == text:
                return found
    return _around(text)


def _filled(template: SentencePattern, match: re.Match[str], wider: Decimal) -> Reason | None:
    values: dict[str, Any] = {}
    for field, text in zip(template.fields, match.groups(), strict=True):
        try:
            values |= field.read(text, wider)
        except (ValueError, ArithmeticError):
            return None
    if template.letters < _LEAST_LETTERS and not all(
        isinstance(one, Reason) for one in values.values()
    ):
        return None
    return Reason(template.code, values)


def _around(text: str) -> Reason | None:
    """A reason inside of one that only says what raised it, or what would add the stack."""
    for code in _AROUND:
        template = _template(code, _older_sentences()[code])
        match = template.pattern.fullmatch(text)
        found = _filled(template, match, _WIDER[0]) if match is not None else None
        if (
            found is not None
            and older_sentence(found) == text
            and any(isinstance(v, Reason) for v in found.values.values())
        ):
            return found
    return None


@dataclasses.dataclass
class Counted:
    """What became of the texts of one field."""

    coded: int = 0
    partly: int = 0
    opaque: Counter[str] = dataclasses.field(default_factory=Counter)


def recoded_data(data: Any, counted: dict[str, Counted], field: str = "") -> Any:
    """The same data with coded reasons, and how many texts of each field have one."""
    if isinstance(data, dict):
        if field in _FIELDS and "code" in data:
            return data
        return {
            name: recoded_data(value, counted, _name(name, data)) for name, value in data.items()
        }
    if isinstance(data, list):
        return [recoded_data(one, counted, field if field == "flags" else "") for one in data]
    if not isinstance(data, str) or not data or field not in (*_FIELDS, "flags"):
        return data
    found = recoded(data)
    own = counted.setdefault(field, Counted())
    if isinstance(found, str):
        own.opaque[found] += 1
        return found
    own.coded += 1
    own.partly += any(isinstance(one, str) for one in found.also)
    return msgspec.to_builtins(found)


def _name(name: str, parent: dict[str, Any]) -> str:
    """The field's name; '' for the flags of a record, which are short names."""
    return "" if name == "flags" and "records" not in parent else name


def rewritten_fingerprint(raw: bytes, counted: dict[str, Counted]) -> bytes:
    """The file in the same layout. Raises ``ValueError`` if it would change anything but
    reasons.
    """
    data = json.loads(raw)
    made = recoded_data(data, counted)
    if made == data:
        return raw
    layout = next((n for n in range(1, 5) if formatted(data, n) == raw), None)
    if layout is None:
        raise ValueError("not in the layout of a fingerprint")
    return formatted(made, layout)


def rewritten_journal(raw: bytes, counted: dict[str, Counted]) -> bytes:
    """The lines of a journal. A line without a reason stays as it is."""
    lines = []
    for line in raw.splitlines(keepends=True):
        data = json.loads(line)
        made = recoded_data(data, counted)
        lines.append(line if made == data else msgspec.json.encode(made) + b"\n")
    return b"".join(lines)


def committed() -> Iterator[Path]:
    """The committed files that hold reasons."""
    yield from sorted((ROOT / "reports/data").rglob("*.json"))
    yield ROOT / "docs/example-fingerprint.json"
    yield from sorted((ROOT / "docs/examples").rglob("*.json"))
    yield from sorted((ROOT / "tests/data/journals").glob("*.jsonl.gz"))


def rewrite(path: Path, counted: dict[str, Counted]) -> tuple[int, int]:
    """Rewrite a file; its size before and after, bytes."""
    raw = path.read_bytes()
    rewritten: Callable[[bytes, dict[str, Counted]], bytes]
    rewritten = rewritten_journal if ".jsonl" in path.name else rewritten_fingerprint
    if path.suffix == ".gz":
        made = gzip.compress(rewritten(gzip.decompress(raw), counted), mtime=0)
    else:
        made = rewritten(raw, counted)
    path.write_bytes(made)
    return len(raw), len(made)


def main(arguments: Sequence[str] | None = None) -> None:
    """Rewrite the files and print what stays."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path)
    paths = parser.parse_args(arguments).files or list(committed())
    counted: dict[str, Counted] = {}
    for path in paths:
        before, after = rewrite(path, counted)
        if after > 1.3 * before:
            print(f"{path}: {before:,} to {after:,} bytes")
    for field, own in counted.items():
        texts = sum(own.opaque.values())
        print(
            f"{field}: {texts:,} of {texts + own.coded:,} texts stay; of {own.partly:,} a part does"
        )
        for text, times in own.opaque.most_common():
            print(f"  {times:6,} {text}")


if __name__ == "__main__":
    main()
