"""What exceeds a budget of launches and synchronisations, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from overhead.explaining.dispatch_budget import OverBudget
from overhead.words.reasons import sentence


def over_budget_text(exceeded: Iterable[OverBudget]) -> str:
    """What exceeds its limit, with the lines of the program; empty for nothing."""
    return "\n".join(line for one in exceeded for line in _lines_of(one))


def _lines_of(one: OverBudget) -> Iterator[str]:
    yield f"{one.kind} ({sentence(one.means)}): {len(one.found)}, the budget is {one.most}:"
    wide = max(len(name) for name, _ in one.found)
    # A counter keeps the order of the first occurrences.
    for (name, line), times in Counter(one.found).items():
        yield f"{times:7} x  {name:{wide}}  {line or 'line unknown'}"
