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
"""In a template with fewer letters of its own, a value is read as one word. Chosen, not measured.
"""
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
            interval = rf" \({_NUMBER} to {_NUMBER}\)"
            return f"({_NUMBER}{mark}(?:{interval})?)"
        if self.format.endswith("%"):
            return f"({_NUMBER})%"
        if self.is_number:
            return f"({_NUMBER})"
        if self.name in _TEXTS:
            return "(.+?)"
        if letters < _MANY_LETTERS:
            return r"([^\s;]+)"
        return "((?:(?!; ).)+?)"

    @property
    def is_number(self) -> bool:
        """Whether the format is one of numbers."""
        if not self.format:
            return False
        return re.fullmatch(r"[-+]?,?(?:\.\d+)?[fg%]?", self.format) is not None

    def read(self, text: str, wider: Decimal) -> dict[str, Any]:
        """The value in this text of a sentence, by name; with the ends of its interval, ``wider``
        last digits apart.
        """
        if self.format in _SCALES:
            return self._with_ends(text, wider)
        return {self.name: self._value(text)}

    def _value(self, text: str) -> Any:
        """The value without an interval: another reason, a number, or the text itself."""
        if self.name in _INNER:
            return recoded(text)
        if self.format.endswith("%"):
            return float(_decimal(text) / 100)
        if self.format == ",":
            return int(text.replace(",", ""))
        if self.is_number:
            return float(text.replace(",", ""))
        is_whole_number = re.fullmatch(r"0|[1-9]\d{0,15}", text) is not None
        return int(text) if is_whole_number else text

    def _with_ends(self, text: str, wider: Decimal) -> dict[str, Any]:
        """The value in the unit of the reason, and the ends of its interval if the text has one."""
        scale = _SCALES[self.format]
        shown = _decimal(text.split(" ")[0])
        values = {self.name: float(shown * scale)}
        ends = _ENDS.search(text)
        if ends is not None:
            low = _decimal(ends[1])
            high = _decimal(ends[2])
            last_digit = Decimal((0, (1,), int(low.as_tuple().exponent)))
            values[f"{self.name}_low"] = float((low - wider * last_digit) * scale)
            values[f"{self.name}_high"] = float((high + wider * last_digit) * scale)
        return values


def _decimal(text: str) -> Decimal:
    """A number as a sentence shows it, with commas between thousands."""
    return Decimal(text.replace(",", ""))


@dataclasses.dataclass(frozen=True)
class SentencePattern:
    """The sentence of a code as a pattern."""

    code: str
    pattern: re.Pattern[str]
    fields: tuple[TemplateField, ...]
    letters: int


@functools.cache
def _older_sentences() -> dict[str, str]:
    """The sentence of each code, with the names of its values in braces."""
    sentences: dict[str, str] = json.loads(_SENTENCES.read_text(encoding="utf-8"))
    return sentences


def older_sentence(reason: Why) -> str:
    """The reason as a file said it when it held sentences; a text from outside as it is."""
    if isinstance(reason, str):
        return reason
    values: dict[str, Any] = {"us": "us"}
    for name, value in reason.values.items():
        values[name] = older_sentence(value) if isinstance(value, Reason) else value
    template = _older_sentences()[reason.code]
    first = Formatter().vformat(template, (), values)
    return "; ".join([first, *map(older_sentence, reason.also)])


@functools.cache
def templates() -> tuple[SentencePattern, ...]:
    """The sentences of all codes that a run may hold; those with most letters of their own
    first.
    """
    found: dict[str, SentencePattern] = {}
    for code, text in _older_sentences().items():
        if code in _WITHOUT_OWN_WORDS:
            continue
        template = _template(code, text)
        only_reasons = all(field.name in _INNER for field in template.fields)
        if template.letters >= _LEAST_LETTERS or only_reasons:
            found.setdefault(text, template)
    return tuple(sorted(found.values(), key=lambda template: template.letters, reverse=True))


def _template(code: str, text: str) -> SentencePattern:
    """The pattern that reads the values of a code back from its sentence. ``text``: the sentence
    with the names of the values in braces.
    """
    pieces = list(string.Formatter().parse(text))
    letters = sum(len(literal) for literal, *_ in pieces)
    pattern = ""
    fields = []
    for literal, name, form, _ in pieces:
        pattern += re.escape(literal)
        if name == "us":
            pattern += "us"
        elif name:
            field = TemplateField(name, form or "")
            fields.append(field)
            pattern += field.pattern(letters)
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
        reason = together(head, recoded(text[at + 2 :]))
        if older_sentence(reason) == text:
            return reason
    return text


def _separators(text: str) -> list[int]:
    """The places where one reason may end and another begin, the last one first: a sentence may
    hold a semicolon.
    """
    places = [match.start() for match in re.finditer("; ", text)]
    return places[::-1]


def _whole(text: str) -> Reason | None:
    """The one reason that says all of the text."""
    for template in templates():
        match = template.pattern.fullmatch(text)
        if match is None:
            continue
        for wider in _WIDER:
            reason = _filled(template, match, wider)
            if reason is not None and older_sentence(reason) == text:
                return reason
    return _around(text)


def _filled(template: SentencePattern, match: re.Match[str], wider: Decimal) -> Reason | None:
    """The code with the values that a sentence shows; None where they cannot be read.

    A template with hardly any letters of its own counts only if all of its values are reasons: else
    it would take any text for its sentence.
    """
    values: dict[str, Any] = {}
    for field, text in zip(template.fields, match.groups(), strict=True):
        try:
            values |= field.read(text, wider)
        except (ValueError, ArithmeticError):
            return None
    only_reasons = all(isinstance(value, Reason) for value in values.values())
    if template.letters < _LEAST_LETTERS and not only_reasons:
        return None
    return Reason(template.code, values)


def _around(text: str) -> Reason | None:
    """A reason inside of one that only says what raised it, or what would add the stack."""
    for code in _AROUND:
        template = _template(code, _older_sentences()[code])
        match = template.pattern.fullmatch(text)
        if match is None:
            continue
        reason = _filled(template, match, _WIDER[0])
        if reason is None or older_sentence(reason) != text:
            continue
        if any(isinstance(value, Reason) for value in reason.values.values()):
            return reason
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
        is_coded = field in _FIELDS and "code" in data
        if is_coded:
            return data
        made = {}
        for name, value in data.items():
            made[name] = recoded_data(value, counted, _name(name, data))
        return made
    if isinstance(data, list):
        field_of_items = "flags" if field == "flags" else ""
        return [recoded_data(item, counted, field_of_items) for item in data]
    if isinstance(data, str) and data and field in (*_FIELDS, "flags"):
        return _recoded_text(data, counted.setdefault(field, Counted()))
    return data


def _recoded_text(text: str, counted: Counted) -> Any:
    """The reason of one field as JSON has it, and a count of what became of the text."""
    reason = recoded(text)
    if isinstance(reason, str):
        counted.opaque[reason] += 1
        return reason
    counted.coded += 1
    if any(isinstance(other, str) for other in reason.also):
        counted.partly += 1
    return msgspec.to_builtins(reason)


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
    for layout in range(1, 5):
        if formatted(data, layout) == raw:
            return formatted(made, layout)
    raise ValueError("not in the layout of a fingerprint")


def rewritten_journal(raw: bytes, counted: dict[str, Counted]) -> bytes:
    """The lines of a journal. A line without a reason stays as it is."""
    lines = []
    for line in raw.splitlines(keepends=True):
        data = json.loads(line)
        made = recoded_data(data, counted)
        if made != data:
            line = msgspec.json.encode(made) + b"\n"
        lines.append(line)
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
    for field, of_field in counted.items():
        stay = sum(of_field.opaque.values())
        texts = stay + of_field.coded
        print(f"{field}: {stay:,} of {texts:,} texts stay; of {of_field.partly:,} a part does")
        for text, times in of_field.opaque.most_common():
            print(f"  {times:6,} {text}")


if __name__ == "__main__":
    main()
