"""One explained step on a page that fits a terminal's screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from overhead.explain.record import KIND_LABELS, Alternative, CallSite, Explanation
from overhead.explain.verdict import UNRANKED, resolved_times, sentences, time_text, why_unresolved
from overhead.reading.format import (
    MICRO,
    factor,
    factor_spread,
    micro_of,
    micro_or_why,
    percent,
)
from overhead.results import Figure
from overhead.terminal.console import Column, print_table, say, terminal

_MOST_ROWS = 5


def show_explanation(found: Explanation, console: Console | None = None) -> None:
    """Print the verdict, the times of a step, what takes them, what would change them, and what was not seen."""
    console = console or terminal()
    on = found.program.device or found.machine.cpu
    say(console, f"{found.program.function} in {found.program.file}, on {on}", "bold")
    for number, sentence in enumerate(sentences(found)):
        say(console, sentence, "bold" if number == 0 else "")
    _times(found, console)
    if found.replay.ok:
        _operations(found, console)
    elif found.operations:
        say(console, UNRANKED, "dim")
    _synchronisations(found, console)
    _alternatives(found.alternatives, console)
    for sentence in found.not_seen:
        say(console, sentence, "dim")


def _times(found: Explanation, console: Console) -> None:
    step, counts = found.step, found.per_step
    rows = [
        [name, text(figure), "" if figure.measured and resolved_times(figure) else figure.reason]
        for name, figure, text in (
            ("a step with its work done", step.wall, time_text),
            ("until the step returns", step.issue, time_text),
            ("the device works", step.busy, micro_or_why),
            ("replayed from the profile", found.replay.replayed, micro_or_why),
        )
    ]
    if found.replay.ratio is not None:
        rows[-1][2] = f"{factor(found.replay.ratio)} the {micro_of(found.replay.measured.value or 0)} {MICRO} " + (
            "measured beside the profile" if found.replay.ok else "measured beside the profile: not understood"
        )
    print_table(console, "", [Column("each step"), Column(MICRO, number=True), Column("")], rows)
    shown = {name: getattr(counts, name) for name in ("launches", "copies", "allocations", "synchronisations")}
    said = [
        f"{_count(figure)} {_one(name) if figure.value == 1 else name}"
        for name, figure in shown.items()
        if figure.measured
    ]
    if said:
        say(console, f"Each step: {', '.join(said)}.")


def _count(figure: Figure) -> str:
    low, high = figure.low, figure.high
    span = f" ({low:,.0f} to {high:,.0f})" if low is not None and high is not None and low != high else ""
    return f"{figure.value:,.4g}{span}"


def _one(name: str) -> str:
    return name.replace("copies", "copy").replace("launches", "launch").removesuffix("s")


def _where(site: CallSite) -> str:
    where = f"{site.line}, in {site.inside}" if site.line and site.inside else site.line or site.inside
    return f"{where}: {site.source}" if site.source else where


def _operations(found: Explanation, console: Console) -> None:
    if not found.operations:
        return
    whole = sum(row.host_ns for row in found.operations)
    rows = [
        [
            row.name,
            _where(row.site),
            f"{row.count:,.4g}",
            micro_of(row.host_ns),
            percent(row.host_ns / whole) if whole else "",
        ]
        for row in found.operations[:_MOST_ROWS]
    ]
    columns = [
        Column("host work"),
        Column("line"),
        Column("calls", number=True, optional=2),
        Column(MICRO, number=True),
        Column("share", number=True, optional=1),
    ]
    print_table(console, "", columns, rows)
    _more(console, len(found.operations), "operations")


def _synchronisations(found: Explanation, console: Console) -> None:
    if not found.synchronisations:
        return
    rows = [
        [row.what, _where(row.site), f"{row.count:,.4g}", micro_of(row.blocked_ns)]
        for row in found.synchronisations[:_MOST_ROWS]
    ]
    columns = [
        Column("synchronisation"),
        Column("line"),
        Column("calls", number=True),
        Column(f"waits, {MICRO}", number=True),
    ]
    shown = len(columns) - (not found.replay.ok)
    print_table(console, "", columns[:shown], [row[:shown] for row in rows])
    _more(console, len(found.synchronisations), "synchronisations")


def _more(console: Console, count: int, what: str) -> None:
    if count > _MOST_ROWS:
        say(console, f"{count - _MOST_ROWS} more {what} in the file.", "dim")


def _alternatives(found: Sequence[Alternative], console: Console) -> None:
    if not found:
        return
    rows = [
        [one.name + KIND_LABELS[one.kind], _step(one), _gain(one), _repaid(one), _remark(one)] for one in _ranked(found)
    ]
    columns = [
        Column("what would change it"),
        Column(f"step, {MICRO}", number=True),
        Column("faster", number=True),
        Column("repaid after", number=True, optional=1),
        Column(""),
    ]
    print_table(console, "", columns, rows)


def _ranked(found: Sequence[Alternative]) -> list[Alternative]:
    return sorted(found, key=lambda one: -(gain.value if (gain := one.gain.measured) else 0.0))


def _step(one: Alternative) -> str:
    return time_text(one.step) if one.step.measured else ""


def _gain(one: Alternative) -> str:
    gain = one.gain.measured
    return factor_spread(gain) if gain else ""


def _repaid(one: Alternative) -> str:
    after = one.repaid_after.measured
    return f"{after.value:,.0f} steps" if after else ""


def _remark(one: Alternative) -> str:
    words = {"ok": one.verdict(), "refused": "not possible", "differs": one.verdict(), "failed": "failed"}[one.status]
    why = "; ".join(filter(None, (one.results or one.reason, why_unresolved(one))))
    text = ("; " if one.same_results else ": ").join(filter(None, (words, why)))
    return f"{text} ({one.site.line})" if one.site.line else text
