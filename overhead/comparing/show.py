"""A comparison of two sets of runs as blocks, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Part, Table, Text
from overhead.comparing.verdicts import CaseVerdict, Verdict, Verdicts
from overhead.reading.format import MICRO, TIMES, count, factor, few, number, percent, spread, within
from overhead.reading.view import without_device

_HEADINGS = ("case", f"BASE {MICRO}", f"NEW {MICRO}", "NEW / BASE", "verdict", "detectable from")
_ORDER: tuple[Verdict, ...] = ("slower", "faster", "same", "undecided", "not tested", "refused")
_WORDS: dict[Verdict, str] = {"same": "no difference", "refused": "not comparable"}
"""Verdicts as people read them, where that differs from the file."""


def summary_lines(found: Verdicts) -> list[str]:
    """The lines above the table: what differs between the sides, how many cases have each verdict, and the test."""
    changed = [f"{d.field} {d.base} \u2192 {d.new}" for d in found.differences]
    inside = f"; in {', '.join(found.inside)}" if found.inside else ""
    lines = [f"BASE {', '.join(found.base)}; NEW {', '.join(found.new)}{inside}."]
    if not found.same_machine:
        lines.append("BASE and NEW are two machines: ratios only, no test.")
    if not found.inside:
        lines.append(f"What changed: {'; '.join(changed) or 'nothing that the files record'}.")
    counts = [f"{found.count(verdict)} {_WORDS.get(verdict, verdict)}" for verdict in _ORDER if found.count(verdict)]
    lines.append(f"Result: {', '.join(counts) or 'no case'}.")
    if found.same_machine:
        lines.append(f"How it was tested: {found.yardstick}.")
    return lines + [f"Skipped: {reason}" for reason in found.skipped]


def gate_sentence(found: Verdicts) -> str:
    """The result of ``--fail-over`` as a sentence; '' where it was not asked for."""
    if found.fail_over is None:
        return ""
    limit = f"{found.fail_over:g} %"
    said = f"{count(len(found.failed), 'case') if found.failed else 'No case'} slower by more than {limit}."
    tested = found.measured - len(found.untested)
    return f"{said} {tested} of {count(found.measured, 'case')} could have shown a change as small as {limit}."


def cases_by_change(found: Verdicts) -> list[CaseVerdict]:
    """The cases that have a ratio, by verdict (slower and faster ones first) and by the size of the change."""

    def key(case: CaseVerdict) -> tuple[int, float]:
        ratio = case.ratio.value if case.ratio else 1.0
        return _ORDER.index(case.verdict), -max(ratio, 1 / ratio if ratio > 0 else 0.0)

    return sorted((case for case in found.cases if case.ratio is not None), key=key)


def reason_sentences(found: Verdicts) -> list[str]:
    """A line for each reason why cases have no test, with these cases; then what else differs between variants."""
    labels, _ = _labels(found)
    by_reason: dict[tuple[str, str], list[str]] = {}
    for case in sorted(found.cases, key=lambda case: _ORDER.index(case.verdict)):
        if case.reason:
            verdict = _WORDS.get(case.verdict, case.verdict).capitalize()
            by_reason.setdefault((verdict, case.reason), []).append(labels[case.case])
    for case in cases_by_change(found):
        if case.also:
            by_reason.setdefault(("The window differs too", case.also), []).append(labels[case.case])
        if (whole := case.all_rounds) and whole.ratio:
            told = f"{_WORDS.get(whole.verdict, whole.verdict)}, {spread(whole.ratio)}{TIMES}"
            by_reason.setdefault(("Over all rounds, also those that figures leave out", told), []).append(
                labels[case.case]
            )
    return [f"{what}, {count(len(cases), 'case')}: {why} ({few(cases)})." for (what, why), cases in by_reason.items()]


def _labels(found: Verdicts) -> tuple[dict[str, str], str]:
    """The label of each case by its key, and the device that all of them share and that they need not name."""
    short, device = without_device([case.target for case in found.cases])
    return {
        case.case: target + case.label.removeprefix(case.target)
        for case, target in zip(found.cases, short, strict=True)
    }, device


def _row(case: CaseVerdict, label: str) -> tuple[str, ...]:
    """The cells under ``_HEADINGS``."""
    share, ratio = case.smallest, case.ratio
    return (
        label,
        *("" if ns is None else number(within(ns / 1e3, 0.001)) for ns in (case.base_ns, case.new_ns)),
        "" if ratio is None else spread(ratio) + TIMES if ratio.bounded else factor(ratio),
        _WORDS.get(case.verdict, case.verdict) + (" (over the limit)" if case.failed else ""),
        "" if share is None else percent(share) if share < 1 else factor(1 + share),
    )


def comparison_blocks(found: Verdicts) -> Iterator[Part]:
    """How the test was made, a row for each case, the reasons for cases without a test, and the result of the gate."""
    yield Text(summary_lines(found))
    labels, device = _labels(found)
    rows = [_row(case, labels[case.case]) for case in cases_by_change(found)]
    if rows:
        title = f"Cases on {device}" if device else ""
        yield Table(title, _HEADINGS, rows, numeric=(1, 2, 3, 5), optional={1: 2, 2: 2, 5: 1}, status=4).without_empty()
    yield Text([*reason_sentences(found), *filter(None, [gate_sentence(found)])])
