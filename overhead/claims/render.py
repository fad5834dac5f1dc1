"""The claims and their verdicts, printed to the terminal or written as Markdown. JSON is ``Judged.to_dict``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from overhead.claims.judging import Judged
from overhead.claims.registry import Source
from overhead.claims.rules import VERDICTS
from overhead.reading.markdown import table

_COLOUR = {"reproduced": "green", "partial": "yellow", "refuted": "red"}


def summary(found: Sequence[Judged]) -> str:
    """How many of each verdict."""
    counts = Counter(one.verdict for one in found)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return f"{len(found)} published claims: {said}."


def show(found: Sequence[Judged]) -> None:
    """Print the verdicts to the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    grid = Table(show_lines=True)
    for heading in ("claim", "verdict", "why"):
        grid.add_column(heading, overflow="fold")
    for one in ordered(found):
        said = f"{one.claim.id}: {one.claim.said}"
        grid.add_row(Text(said), Text(one.verdict, _COLOUR.get(one.verdict, "")), Text(one.sentence))
    console.print(Text(summary(found)))
    console.print(grid)


def markdown(found: Sequence[Judged]) -> str:
    """The verdicts as GitHub-flavoured Markdown."""
    rows = [
        (f"{one.claim.id}: {one.claim.said}", cited(one.source), one.verdict, one.sentence) for one in ordered(found)
    ]
    return "\n".join([summary(found), "", *table(("claim", "published by", "verdict", "why"), rows)]) + "\n"


def cited(source: Source) -> str:
    """Title, where, year."""
    return f"{source.title} ({source.where}, {source.year})"


def ordered(found: Sequence[Judged]) -> list[Judged]:
    """Decided claims first."""
    return sorted(found, key=lambda one: VERDICTS.index(one.verdict))
