"""An explained step as blocks, for the terminal and for its page."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Part, Table, Text
from overhead.explain.record import KIND_LABELS, Alternative, CallSite, Explanation
from overhead.explain.verdict import UNRANKED, resolved_times, sentences, time_text, why_unresolved
from overhead.reading.format import (
    MICRO,
    factor,
    factor_spread,
    micro_of,
    micro_or_why,
    percent,
    plain,
)
from overhead.results import Figure

_MOST_ROWS = 5
_COUNTS = {
    "launches": "launch",
    "copies": "copy",
    "allocations": "allocation",
    "synchronisations": "synchronisation",
}


def explanation_blocks(found: Explanation) -> Iterator[Part]:
    """What a terminal shows of the step."""
    on = found.program.device or found.machine.cpu
    yield Text([f"{found.program.function} in {found.program.file}, on {on}"], lead=True)
    for part in (verdict_blocks, alternative_blocks, synchronisation_blocks, operation_blocks):
        yield from part(found)
    yield Text(found.not_seen, quiet=True)


def verdict_blocks(found: Explanation) -> Iterator[Part]:
    """The verdict in words, the times of a step, and the calls that it makes."""
    first, *more = sentences(found)
    yield Text([first], lead=True)
    if more:
        yield Text(more)
    step, replay = found.step, found.replay
    rows = [
        [name, text(figure), "" if figure.measured and resolved_times(figure) else figure.reason]
        for name, figure, text in (
            ("a step with its work done", step.wall, time_text),
            ("until the step returns", step.issue, time_text),
            ("the device works", step.busy, micro_or_why),
            ("replayed from the profile", replay.replayed, micro_or_why),
        )
    ]
    if replay.ratio is not None:
        rows[-1][2] = f"{factor(replay.ratio)} the {micro_of(replay.measured.value or 0)} {MICRO} " + (
            "measured beside the profile" if replay.ok else "measured beside the profile: not understood"
        )
    yield Table("The times of a step", ["each step", MICRO, "remark"], rows, numeric=(1,))
    counts = [(name, getattr(found.per_step, name)) for name in _COUNTS]
    said = [
        f"{_count(figure)} {_COUNTS[name] if figure.value == 1 else name}" for name, figure in counts if figure.measured
    ]
    if said:
        yield Text([f"Each step: {', '.join(said)}."])


def alternative_blocks(found: Explanation) -> Iterator[Part]:
    """What was tried in place of the step, the largest gain first."""
    rows = [
        [
            alternative_name(one),
            time_text(one.step) if one.step.measured else "",
            _gain(one),
            f"{one.making.value / 1e9:,.2g} s" if one.making.value is not None else "",
            f"{value:,.0f} steps" if (value := one.repaid_after.value) is not None else "",
            _remark(one),
        ]
        for one in sorted(found.alternatives, key=lambda one: -(one.gain.value or 0.0))
    ]
    columns = ["what would change it", f"step, {MICRO}", "faster", "making it", "repaid after", "remark"]
    if rows:
        table = Table("What was tried", columns, rows, numeric=(1, 2, 3, 4), optional={3: 2, 4: 1})
        yield table.without_empty()


def synchronisation_blocks(found: Explanation) -> Iterator[Part]:
    """The calls that wait for the device; for how long, where the profile can tell."""
    known = found.replay.ok
    rows = [
        [plain(one.what, 60), _where(one.site), f"{one.count:,.4g}", micro_of(one.blocked_ns) if known else ""]
        for one in found.synchronisations
    ]
    if rows:
        columns = ["synchronisation", "line", "calls", f"waits, {MICRO}"]
        table = Table("Calls that wait for the device, by line", columns, rows, numeric=(2, 3), most=_MOST_ROWS)
        yield table.without_empty()


def operation_blocks(found: Explanation) -> Iterator[Part]:
    """What takes the host's time; a sentence in its place where the profile cannot tell."""
    whole = sum(row.host_ns for row in found.operations) or 1.0
    rows = [
        [
            plain(row.name, 60),
            _where(row.site),
            f"{row.count:,.4g}",
            micro_of(row.host_ns),
            percent(row.host_ns / whole),
            micro_of(row.device_ns) if row.device_ns else "",
        ]
        for row in found.operations
    ]
    if rows and not found.replay.ok:
        yield Text([UNRANKED])
    elif rows:
        columns = ["operation", "line", "calls", f"host, {MICRO}", "share", f"device, {MICRO}"]
        yield Table(
            "Operations by host time",
            columns,
            rows,
            numeric=(2, 3, 4, 5),
            sortable=True,
            optional={2: 2, 4: 1, 5: 3},
            most=_MOST_ROWS,
        ).without_empty()


def alternative_name(one: Alternative) -> str:
    """Its name, and whether it is a bound."""
    return plain(one.name, 60) + KIND_LABELS[one.kind]


def _count(figure: Figure) -> str:
    low, high = figure.low, figure.high
    span = f" ({low:,.0f} to {high:,.0f})" if low is not None and high is not None and low != high else ""
    return f"{figure.value:,.4g}{span}"


def _where(site: CallSite) -> str:
    where = f"{site.line}, in {site.inside}" if site.line and site.inside else site.line or site.inside
    return f"{where}: {site.source}" if site.source else where


def _gain(one: Alternative) -> str:
    gain = one.gain.measured
    return factor_spread(gain) if gain is not None else ""


def _remark(one: Alternative) -> str:
    words = {"ok": one.verdict(), "refused": "not possible", "differs": one.verdict(), "failed": "failed"}[one.status]
    why = "; ".join(filter(None, (one.results or one.reason, why_unresolved(one))))
    text = ("; " if one.same_results else ": ").join(filter(None, (words, why)))
    return f"{text} ({one.site.line})" if one.site.line else text
