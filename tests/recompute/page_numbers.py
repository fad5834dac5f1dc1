"""Form every number of a page or document again, from the files of the runs alone and without the
package.

``python tests/recompute/page_numbers.py RUN.json... next_run.json DOCUMENT FACTS.json...`` prints
what is wrong. The facts say of each number at which place it stands, its text, and what it was
formed from: ``report`` writes them beside each page. A number is right if its text is the rounding
of what the files give, and if it stands at its place. A number of the document that no fact is
about is wrong too.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.recompute.blocks import blocks_of
from tests.recompute.formulas import SHOWN, Files

WITH_DIGITS = re.compile(r"\S*\d\S*")
"""A word that has digits. Each must be a figure, or a name or a moment that stands in the files."""
EXPLAINED = "\N{PILCROW SIGN}"
"""Stands in a text for a number that is explained."""
METHOD = (
    "T(1)",
    "Python 3.11",
    "x.add_(1)",
    "95 % confidence",
    "90 % of cases",
    "9 of 10 runs",
    "9 of 10 other runs",
    "within 5 %",
    "graph of 100 nodes",
    "under 10 minutes",
    "1 op",
    "over 10 %",
    "than 10 %",
    "1.2 times, by most rules 1.5",
    "= 1",
    "left of 1",
)
"""Numbers of the method, which no run gives."""


def wrong_numbers(document: Path, facts: Sequence[dict[str, Any]], files: Files) -> Iterator[str]:
    """What is wrong in one document."""
    by_place: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for fact in facts:
        by_place[fact["place"]].append(fact)
        problem = problem_of(fact, files)
        if problem:
            yield f"{fact['place']}: {fact['text']}: {problem}"

    longest_first = sorted({*files.names(), *METHOD}, key=len, reverse=True)
    no_figures = re.compile("|".join(map(re.escape, longest_first)))
    for place, text, rows in blocks_of(document):
        # What a fact is about, and then each name, is replaced by a sign. What is left is
        # unexplained.
        left = text
        if rows is not None:
            left = left.removesuffix(f"({rows})")
        for fact in by_place[place]:
            shown = place_of(fact["text"], left)
            if shown is None:
                yield f"{place}: {fact['text']} does not stand in: {text}"
                continue
            left = left[: shown.start()] + EXPLAINED + left[shown.end() :]
        unexplained = WITH_DIGITS.findall(no_figures.sub(EXPLAINED, left))
        if document.suffix == ".md" and is_of_one_claim(unexplained, files):
            continue
        for word in unexplained:
            yield f"{place}: nothing tells what {word} is in: {text}"


def place_of(shown: str, text: str) -> re.Match[str] | None:
    """Where a figure stands in a text as a whole, and not as a part of a longer number or word."""
    return re.search(rf"(?<![\w.,−-]){re.escape(shown)}(?![\w]|[.,]\d)", text)


def is_of_one_claim(words: Sequence[str], files: Files) -> bool:
    """Whether all numbers in these words stand in one published claim, which the line quotes."""
    text = " ".join(words).replace(",", "")
    numbers = set(re.findall(SHOWN, text))
    return any(numbers <= claim for claim in files.claims)


def problem_of(fact: dict[str, Any], files: Files) -> str:
    """Why a fact is wrong; '' for a right one."""
    origin, text = fact["of"], fact["text"]
    if origin is None:
        return "nothing tells what it was formed from"
    if origin.get("operation") == "of the method":
        return "" if text in METHOD else "no number of the method"
    if origin.get("operation") == "named in a file":
        return "" if text in files.names() else "no name in the files"
    try:
        value = files.formed(origin)
    except (LookupError, ValueError, ZeroDivisionError) as error:
        return f"the files do not give it: {error!r}"
    if not value.is_shown_by(text):
        return f"the files give {value}"
    return ""


def main(paths: Iterable[Path]) -> int:
    """Print what is wrong on the documents among the paths. A document is followed by its facts."""
    given = list(paths)
    data = [path for path in given if path.suffix in (".json", ".toml")]
    files = Files(path for path in data if not path.name.endswith(".facts.json"))
    wrong: list[str] = []
    for document, facts in itertools.pairwise(given):
        if document.suffix in (".html", ".md"):
            wrong += wrong_numbers(document, json.loads(facts.read_bytes()), files)
    print("\n".join(dict.fromkeys(wrong)) or "every number is right")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(map(Path, sys.argv[1:])))
