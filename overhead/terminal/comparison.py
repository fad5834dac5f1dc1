"""A comparison of two sets of runs as a table, printed to the terminal or written as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overhead.reading.format import MICRO, TIMES, count, factor, number, percent, spread
from overhead.reading.markdown import escaped, table
from overhead.versus.verdicts import CaseVerdict, Verdict, Verdicts

if TYPE_CHECKING:
    from rich.console import Console

_HEADINGS = ("case", f"BASE {MICRO}", f"NEW {MICRO}", "NEW / BASE", "verdict", "smallest shift told")
_TEXT_COLUMNS = ("case", "verdict")
_COLOUR = {"slower": "red", "faster": "green", "refused": "yellow"}
_ORDER: tuple[Verdict, ...] = ("slower", "faster", "refused", "undecided", "not tested", "same")


def summary(found: Verdicts) -> list[str]:
    """The lines above the table: counts, the run-to-run spread, and in what the sides differ."""
    counts = [f"{found.count(verdict)} {verdict}" for verdict in _ORDER if found.count(verdict)]
    lines = [f"{', '.join(found.base)} against {', '.join(found.new)}: {', '.join(counts) or 'no case'}."]
    if not found.same_machine:
        lines.append("Two machines: ratios only, no test. What differs is the machine first of all:")
    else:
        lines.append(f"Yardstick: {found.yardstick}.")
    lines += [f"{d.field}: {d.base} \u2192 {d.new}" for d in found.differences]
    lines += [f"skipped {reason}" for reason in found.skipped]
    return lines


def gate(found: Verdicts) -> str:
    """The result of ``--fail-over`` as a sentence; '' where it was not asked for."""
    if found.fail_over is None:
        return ""
    limit = f"{found.fail_over:g} %"
    measured = sum(case.measured for case in found.cases)
    tested = measured - len(found.untested)
    said = count(len(found.failed), "case") if found.failed else "No case is"
    untested = f" {tested} of {count(measured, 'case')} could be tested." if tested < len(found.cases) else ""
    return f"{said} slower by more than {limit} beyond doubt.{untested}"


def ordered(found: Verdicts) -> list[CaseVerdict]:
    """The cases, slower and faster ones first."""
    return sorted(found.cases, key=lambda case: _ORDER.index(case.verdict))


def row(case: CaseVerdict) -> tuple[str, ...]:
    """The cells under ``_HEADINGS``."""
    verdict = case.verdict + (" (over the limit)" if case.failed else "")
    return (
        case.label,
        _micro(case.base_ns),
        _micro(case.new_ns),
        _ratio(case),
        f"{verdict}: {case.reason}" if case.reason else verdict,
        _smallest(case.smallest),
    )


def _micro(ns: float | None) -> str:
    return "" if ns is None else number(ns / 1e3, 0.999 * ns / 1e3, 1.001 * ns / 1e3)


def _smallest(share: float | None) -> str:
    return "" if share is None else percent(share) if share < 1 else factor(1 + share)


def _ratio(case: CaseVerdict) -> str:
    if case.ratio is None:
        return ""
    if case.low is None or case.high is None:
        return factor(case.ratio)
    return spread(case.ratio, case.low, case.high) + TIMES


def markdown(found: Verdicts) -> str:
    """The comparison as GitHub-flavoured Markdown, names from the files escaped."""
    head, *rest = summary(found)
    lines = [escaped(head), "", *(f"- {escaped(line)}" for line in rest), ""]
    lines += table(_HEADINGS, map(row, ordered(found)))
    said = gate(found)
    return "\n".join([*lines, *(["", said] if said else [])]) + "\n"


def show(found: Verdicts, console: Console | None = None) -> None:
    """Print the comparison to the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console()
    for line in summary(found):
        console.print(Text(line))
    table = Table()
    for heading in _HEADINGS:
        table.add_column(heading, overflow="fold", justify="left" if heading in _TEXT_COLUMNS else "right")
    for case in ordered(found):
        table.add_row(*map(Text, row(case)), style=_COLOUR.get(case.verdict, ""))
    console.print(table)
    if gate(found):
        console.print(Text(gate(found)))
