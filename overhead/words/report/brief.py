"""A fingerprint in short: what the tables of the terminal are called, and what is said below
them.
"""

from __future__ import annotations

from overhead.reading.dispatch_costs import over_undisturbed
from overhead.results import Record
from overhead.words.format import count, factor, rounds_to_one

BASE_CASES = "Base cases"
ALL_CASES = "All cases"


def cases_title(title: str, device: str) -> str:
    """The title of a table of cases. ``device``: the one that all of them ran on, or ''."""
    return f"{title}, {device}" if device else title


def doubts(record: Record) -> str:
    """The cell with what makes a cost doubtful: its status unless it is ``ok``, the number of
    launches n from which it holds, and how much more it is with the rounds in which the CPU was
    slow, which it leaves out.
    """
    texts: list[str] = []
    if record.status != "ok":
        texts.append(record.status)
    complete = record.figure("complete")  # the cost
    if complete is not None and complete.holds_from > 1:
        texts.append(f"from n = {complete.holds_from:,}")
    # How many times the cost it is with all rounds; None if that is nearly the same.
    with_slow_rounds = over_undisturbed(record)
    if with_slow_rounds is not None and not rounds_to_one(with_slow_rounds):
        texts.append(f"{factor(with_slow_rounds)} with slow rounds")
    return ", ".join(texts)


def more_cases(number: int, option: str = "") -> str:
    """How many cases a table leaves out, and the command that shows them; ``option``: of that
    command.
    """
    return f"{count(number, 'more case')}: overhead show{option}"


def note(text: str) -> str:
    """A remark on the whole run."""
    return f"Note: {text}"
