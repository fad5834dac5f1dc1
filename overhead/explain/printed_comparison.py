"""Two explanations of a step, compared, printed to the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overhead.explain.comparing import ExplainedPair, ExplainedPairs
from overhead.reading.format import MICRO, factor, micro_spread
from overhead.results import Figure
from overhead.terminal.console import Column, print_table, say, terminal

if TYPE_CHECKING:
    from rich.console import Console

_NAMES = {"wall": f"step, {MICRO}", "issue": f"host, {MICRO}", "busy": f"device busy, {MICRO}"}
_WORDS = {"changed": "changed", "same": "no difference", "unknown": "not tested"}


def show_explained(found: ExplainedPairs, console: Console | None = None) -> None:
    """Print what the two files do not share, then one row a figure."""
    console = console or terminal()
    say(console, f"BASE {found.base}: {found.base_verdict}-bound. NEW {found.new}: {found.new_verdict}-bound.")
    said = "; ".join(found.differences)
    say(console, f"What changed: {said}." if said else "What changed: nothing that the files record.")
    columns = [
        Column("each step"),
        *(Column(name, number=True) for name in ("BASE", "NEW", "NEW / BASE")),
        Column("verdict"),
    ]
    print_table(console, "", columns, [_row(pair) for pair in found.pairs])


def _row(pair: ExplainedPair) -> list[str]:
    ratio = factor(pair.ratio) if pair.ratio is not None else ""
    verdict = _WORDS[pair.verdict] + (f": {pair.reason}" if pair.reason else "")
    return [_NAMES.get(pair.name, pair.name), _value(pair.base), _value(pair.new), ratio, verdict]


def _value(figure: Figure) -> str:
    if figure.unit == "count":
        return f"{figure.value:,.4g}" if figure.value is not None else figure.status
    return micro_spread(figure)
