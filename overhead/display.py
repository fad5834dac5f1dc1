"""How the results of the Python API read: as the tables that their command prints, and in one line
for ``repr``.

``overhead.public.Shown``, the base class of results, asks this module. The results of the core are
registered at the end of this file, and those of a slice, such as ``explain``, in its own module
``display``.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from rich.console import Console

from overhead.blocks.notebook import notebook_html
from overhead.blocks.parts import Part, Text
from overhead.blocks.terminal import show
from overhead.comparing import CaseVerdict, Verdicts, compare
from overhead.comparing.show import comparison_blocks
from overhead.reading.plain_text import plain
from overhead.results import Comparison, Contention, Figure, Fingerprint, Record
from overhead.runner.output import Outcome
from overhead.slices import of_features
from overhead.words import display as words

_Shown = TypeVar("_Shown")
_WIDTH_OFF_A_TERMINAL = 100
"""Characters per line where there is no terminal, such as in a notebook."""
_HEIGHT_OFF_A_TERMINAL = 50
"""Without effect on the text, but Rich takes a width only with a height."""
_LONGEST_LINE = 300
"""A longer ``repr`` is cut, so that a list of results can be read."""


@dataclass(frozen=True)
class Display:
    """How a class is shown. ``kind``, ``line``: ``repr`` is ``<overhead KIND: LINE>``.

    ``blocks``: the tables of a result; None for a class that has only its line.
    """

    kind: str
    line: Callable[[Any], str]
    blocks: Callable[[Any], Iterable[Part]] | None = None


_displays: dict[type, Display] = {}


def register_display(
    shown: type[_Shown],
    kind: str,
    line: Callable[[_Shown], str],
    blocks: Callable[[_Shown], Iterable[Part]] | None = None,
) -> None:
    """Show the results of this class, and of its subclasses, in this way: ``kind`` and ``line``
    make the one line of ``repr``, and ``blocks`` the tables that ``print`` shows.
    """
    _displays[shown] = Display(kind, line, blocks)


def short(result: object) -> str:
    """The kind of the result, and the result in one line."""
    display = _display_of(result)
    return f"{display.kind}: {_line(display, result)}"


def _line(display: Display, result: object) -> str:
    return plain(display.line(result), _LONGEST_LINE)


def text(result: object) -> str:
    """The result as ``print`` shows it: its tables without colours, at the width of this terminal,
    or its one line if it has no tables.
    """
    display = _display_of(result)
    if display.blocks is None:
        return _line(display, result)
    out = io.StringIO()
    size = shutil.get_terminal_size((_WIDTH_OFF_A_TERMINAL, _HEIGHT_OFF_A_TERMINAL))
    # Rich breaks a sentence between words only where it takes its file for a terminal, so it is
    # made to. With TERM=dumb it ignores a width that comes without a height.
    console = Console(
        file=out,
        width=size.columns,
        height=size.lines,
        force_terminal=True,
        force_jupyter=False,
        color_system=None,
    )
    show(display.blocks(result), console)
    # Rich fills lines with spaces up to the width.
    rows = [row.rstrip() for row in out.getvalue().splitlines()]
    return "\n".join(rows).strip("\n")


def html(result: object) -> str | None:
    """The result as a notebook shows it; None for what is one line."""
    blocks = _display_of(result).blocks
    return None if blocks is None else notebook_html(blocks(result))


def blocks_of(result: object) -> Iterable[Part]:
    """The tables of a result; nothing for what is one line."""
    blocks = _display_of(result).blocks
    return blocks(result) if blocks is not None else ()


def _display_of(result: object) -> Display:
    """How the class of the result, or the nearest of its base classes, is shown."""
    of_features("display")  # imports the modules that register the results of slices
    return next(_displays[kind] for kind in type(result).__mro__ if kind in _displays)


def outcome_blocks(outcome: Outcome) -> Iterator[Part]:
    """The figures of a run; if the run measured two variants in turn, their comparison."""
    # Not at the top: a first ``overhead time`` would wait for it.
    from overhead.report.brief import end_blocks

    if outcome.second is None:
        return iter(end_blocks(outcome.fingerprint))
    return comparison_blocks(compare(outcome, outcome.second))


def _run_blocks(fingerprint: Fingerprint) -> Iterator[Part]:
    from overhead.report.brief import brief_blocks

    yield from brief_blocks(fingerprint)


def _outcome_with_files(outcome: Outcome) -> Iterator[Part]:
    yield from outcome_blocks(outcome)
    yield Text([words.files_of(outcome)], quiet=True)


register_display(Fingerprint, "fingerprint", words.fingerprint_line, _run_blocks)
register_display(Record, "record", words.record_line)
register_display(Figure, "figure", words.figure_line)
register_display(Comparison, "comparison", words.comparison_line)
register_display(Contention, "contention", words.contention_line)
register_display(Outcome, "run", words.outcome_line, _outcome_with_files)
register_display(Verdicts, "verdicts", words.verdicts_line, comparison_blocks)
register_display(CaseVerdict, "verdict", words.case_verdict_line)
