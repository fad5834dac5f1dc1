"""Words that nothing for readers uses, each with the one to use. Documents and what the program
prints keep to it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class NotUsed:
    """A pattern of what is not used, and what stands in its place."""

    pattern: str
    instead: str


NOT_USED = (
    NotUsed(r"\bquiet costs?\b", "cost, or undisturbed cost"),
    NotUsed(r"\bmet costs?\b|\bmet, µs|\bMet\b", "unpinned cost"),
    NotUsed(r"\bone more, µs", "cost, µs"),
    NotUsed(r"\bcomplete, µs|\bslope, µs", "cost, µs"),
    NotUsed(r"\bcanar(?:y|ies)\b", "reference loop"),
    NotUsed(r"\bnext[- ]runs?\b", "run-to-run range, or another run"),
    NotUsed(r"\bissue, µs|\bissue times?\b", "enqueue time"),
    NotUsed(r"\bfixed costs?\b|\bfixed, µs", "one-off cost"),
    NotUsed(r"\bnaive\b(?!-)", "single-shot latency"),
    NotUsed(r"\bhost, µs|\bhost times?\b|\bhost's time\b", "CPU time"),
    NotUsed(r"\bdear(?:er|est)\b", "slower, costs more, most expensive"),
    NotUsed(r"\barms?\b", "variant"),
    NotUsed(r"\bbands?\b", "run-to-run variation"),
    NotUsed(r"(?<=\d) us\b|\bin us\b|\(us\)", "µs"),
)
"""Not used by documents and by what the program prints."""

NOT_PRINTED = (
    *NOT_USED,
    NotUsed(r"\bT\(1\)", "single-shot latency"),
    NotUsed(r"\b(?:a|one|each|every|another) unit\b", "the noun: dispatch, launch, call, step"),
    NotUsed(r"\bpeers?\b", "process, thread"),
)
"""Not used by what the program prints; documents may."""


def not_used_in(text: str, words: Iterable[NotUsed] = NOT_USED) -> Iterator[str]:
    """Each of these words that the text has, with the word to use instead. Code between backticks
    is left out.
    """
    prose = _CODE.sub("", text)
    for word in words:
        for found in re.finditer(word.pattern, prose):
            begin = max(0, found.start() - 30)
            end = found.end() + 30
            around = prose[begin:end].replace("\n", " ")
            yield f"...{around}...: not {found[0]!r}, but {word.instead}"
