"""The claims and their verdicts, printed to the terminal or written as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from overhead.claims.judging import Judged, ordered, summary
from overhead.claims.registry import cited
from overhead.reading.markdown import table

if TYPE_CHECKING:
    from rich.console import Console

_COLOUR = {"reproduced": "green", "partial": "yellow", "refuted": "red"}


def show(found: Sequence[Judged], console: Console | None = None) -> None:
    """Print the verdicts to the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console()
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
