"""The claims and their verdicts, printed to the terminal or written as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from overhead.claims.judging import Judged, ordered, summary
from overhead.claims.rules import TOLERANCE
from overhead.claims.sentences import exact, measured_range, publication
from overhead.reading.markdown import table

if TYPE_CHECKING:
    from rich.console import Console

_COLOUR = {"reproduced": "green", "partial": "yellow", "refuted": "red"}


def _row(one: Judged) -> tuple[str, ...]:
    """Verdict, claim, published figure, measured like for like, measured by the published method, attribution."""
    test, flawed = one.claim.test, one.claim.flawed
    return (
        one.verdict,
        one.claim.said,
        "" if test is not None and test.kind == "fails" else exact(one.claim),
        measured_range(test, [value for value, _ in one.measured]) if test else "",
        measured_range(flawed, one.flawed) if flawed else "",
        one.attribution,
    )


def show(found: Sequence[Judged], console: Console | None = None, verbose: bool = False) -> None:
    """Print a line for each claim; with ``verbose`` its id, its source and the reasons too."""
    from rich.text import Text

    from overhead.terminal.console import Column, print_table, say, terminal

    console = console or terminal()
    say(console, summary(found))
    say(console, TOLERANCE)
    if verbose:
        for one in ordered(found):
            console.print()
            console.print(
                Text.assemble((one.verdict, _COLOUR.get(one.verdict, "")), " ", (one.claim.said, "bold")),
                soft_wrap=not console.is_terminal,
            )
            for line in (f"{one.claim.id}; {publication(one.claim, one.source)}", one.sentence, _flaw(one)):
                if line:
                    say(console, f"  {line}")
        return
    columns = [
        Column("verdict", number=True),
        Column("claim"),
        Column("published", number=True, optional=2),
        Column("measured", number=True, optional=1),
        Column("with their method", number=True, optional=3),
        Column("attribution", number=True, optional=2),
    ]
    rows: list[list[str | Text]] = []
    for one in ordered(found):
        verdict, *others = _row(one)
        rows.append([Text(verdict, _COLOUR.get(verdict, "")), *others])
    print_table(console, "", columns, rows, one_line=True)
    for one in ordered(found):
        if one.told != one.verdict:
            say(console, f"{one.claim.id}: {one.told}.")
    say(
        console,
        "Attribution: whether the number is the cost of what the source says. Reasons: overhead claims --verbose",
    )


def _flaw(one: Judged) -> str:
    return f"What is wrong with the published method: {one.claim.flaw}" if one.claim.flaw else ""


def markdown(found: Sequence[Judged]) -> str:
    """The verdicts as GitHub-flavoured Markdown."""
    rows = [
        (f"{one.claim.id}: {one.claim.said}", publication(one.claim, one.source), one.told, one.sentence)
        for one in ordered(found)
    ]
    heading = [summary(found), "", TOLERANCE, ""]
    return "\n".join([*heading, *table(("claim", "published", "verdict", "why"), rows)]) + "\n"
