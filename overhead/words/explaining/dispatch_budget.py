"""What exceeds a budget of launches and synchronisations, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from overhead.explaining.dispatch_budget import OverBudget
from overhead.words.reasons import sentence


def over_budget_text(exceeded: Iterable[OverBudget]) -> str:
    """What exceeds its limit, with the lines of the program; empty for nothing."""
    rows: list[str] = []
    for over in exceeded:
        rows += _rows_of(over)
    return "\n".join(rows)


def _rows_of(over: OverBudget) -> Iterator[str]:
    """The text about one limit that a block exceeds: a title, and a row for each call and line of
    the program, with how often it ran.
    """
    # ``found``: the name and the line of each call. ``means``: what such calls do.
    yield f"{over.kind} ({sentence(over.means)}): {len(over.found)}, the budget is {over.most}:"
    width = max(len(name) for name, _ in over.found)
    # A counter keeps the order of the first occurrences.
    for (name, line), times in Counter(over.found).items():
        yield f"{times:7} x  {name:{width}}  {line or 'line unknown'}"
