"""A comparison of two sets of runs as blocks, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from overhead.blocks.parts import Part, Table, Text
from overhead.comparing.pairing import ABSENT
from overhead.comparing.verdicts import CaseVerdict, Verdict, Verdicts
from overhead.reading.format import MICRO, TIMES, count, factor, few, number, percent, plain, spread, within
from overhead.reading.view import without_device
from overhead.words.reasons import one_line

_HEADINGS = ("case", f"BASE {MICRO}", f"NEW {MICRO}", "NEW / BASE", "verdict", "detectable from")
_ORDER: tuple[Verdict, ...] = (
    "slower", "faster", "same", "undecided", "not tested", "refused", "only in BASE", "only in NEW",
)  # fmt: skip
_WORDS: dict[Verdict, str] = {"same": "no difference", "refused": "not comparable"}
"""Verdicts as people read them, where that differs from the file."""
_MOST_CHANGES, _LONGEST_CHANGE = 8, 90
"""How many differences between the sides are said, and the characters of each."""


def result_lines(found: Verdicts) -> list[str]:
    """The lines above the table: what is compared, and how many cases have each verdict."""
    base, new = ", ".join(found.base), ", ".join(found.new)
    inside = f"; in {', '.join(found.inside)}" if found.inside else ""
    counts = [f"{found.count(verdict)} {_WORDS.get(verdict, verdict)}" for verdict in _ORDER if found.count(verdict)]
    result = f"Result: {', '.join(counts) or 'no case'}."
    if found.same_machine:
        return [f"BASE {base}; NEW {new}{inside}.", result]
    on_base, on_new = found.machines
    return [
        f"BASE {base}: {on_base}.",
        f"NEW {new}: {on_new}.",
        "BASE and NEW are two machines: ratios only, no test.",
        result,
    ]


def change_lines(found: Verdicts) -> list[str]:
    """The lines below the table: what differs between the sides, how it was tested, and what was skipped."""
    lines = []
    if not found.inside:
        lines.append(f"What changed: {_changes(found) or 'nothing that the files record'}.")
    if found.same_machine:
        lines.append(f"How it was tested: {found.yardstick}.")
    return lines + [f"Skipped: {reason}" for reason in found.skipped]


def _changes(found: Verdicts) -> str:
    """What differs between the sides, in few words: first what both sides have, then what only one has."""
    said = [d for d in found.differences if d.field != "id"]  # a hash, which tells a reader nothing
    both = [d for d in said if ABSENT not in (d.base, d.new)]
    one = [d for d in said if ABSENT in (d.base, d.new)]
    shown = [plain(f"{d.field} {d.base} \u2192 {d.new}", _LONGEST_CHANGE) for d in [*both, *one][:_MOST_CHANGES]]
    more = len(said) - len(shown)
    return "; ".join([*shown, f"{more} more (--json names them)"] if more > 0 else shown)


def gate_sentence(found: Verdicts) -> str:
    """The result of ``--fail-over`` as a sentence; '' where it was not asked for."""
    if found.fail_over is None:
        return ""
    limit = f"{found.fail_over:g} %"
    said = f"{count(len(found.failed), 'case') if found.failed else 'No case'} slower by more than {limit}."
    tested = found.measured - len(found.untested)
    with_value = f"{count(found.measured, 'case')} with a value"
    could = f"{tested} of {with_value} could have shown a change as small as {limit}."
    without = len(found.cases) - found.measured
    return f"{said} {could}" + (f" {without} without a value on any side do not count." if without else "")


def cases_by_change(found: Verdicts) -> list[CaseVerdict]:
    """The cases that have a ratio, by verdict (slower and faster ones first) and by the size of the change."""

    def key(case: CaseVerdict) -> tuple[int, float]:
        ratio = case.ratio.value if case.ratio else 1.0
        return _ORDER.index(case.verdict), -max(ratio, 1 / ratio if ratio > 0 else 0.0)

    return sorted((case for case in found.cases if case.ratio is not None), key=key)


def reason_sentences(found: Verdicts) -> list[str]:
    """A line for each reason why cases have no test, with these cases; then what else is to know of some."""
    labels, _ = _labels(found)
    by_reason: dict[tuple[str, str], list[str]] = {}
    for case in sorted(found.cases, key=lambda case: _ORDER.index(case.verdict)):
        if case.reason or case.verdict in ("only in BASE", "only in NEW"):
            verdict = _first_upper(_WORDS.get(case.verdict, case.verdict))
            by_reason.setdefault((verdict, _why_text(case)), []).append(labels[case.case])
    for case in found.cases:
        if case.left_out:
            by_reason.setdefault(("Runs that do not count", _left_out_text(case)), []).append(labels[case.case])
    for case in cases_by_change(found):
        if case.also:
            by_reason.setdefault(("The window differs too", case.also), []).append(labels[case.case])
        if (whole := case.all_rounds) and whole.ratio:
            told = f"{_WORDS.get(whole.verdict, whole.verdict)}, {spread(whole.ratio)}{TIMES}"
            by_reason.setdefault(("Over all rounds, also those that figures leave out", told), []).append(
                labels[case.case]
            )
    return [_reason_sentence(what, why, cases) for (what, why), cases in by_reason.items()]


def _why_text(case: CaseVerdict) -> str:
    return one_line(case.reason, 500)


def _left_out_text(case: CaseVerdict) -> str:
    """``1 of 3 runs of BASE: a.json (noisy)``."""
    said = []
    for one in case.left_out:
        named = ", ".join(f"{name} ({one_line(why)})" for name, why in one.runs)
        said.append(f"{len(one.runs)} of {count(one.of, 'run')} of {one.side}: {named}")
    return plain("; ".join(said), 1000)


def comparison_data(found: Verdicts) -> dict[str, Any]:
    """What ``--json`` prints: the verdicts as plain fields."""
    data = found.to_dict()
    for case, own in zip(found.cases, data["cases"], strict=True):
        own["left_out"] = _left_out_text(case)
    return data


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _reason_sentence(what: str, why: str, cases: list[str]) -> str:
    said = f"{what}, {count(len(cases), 'case')}"
    return f"{said}: {why} ({few(cases)})." if why else f"{said}: {few(cases)}."


def _labels(found: Verdicts) -> tuple[dict[str, str], str]:
    """The label of each case by its key, and the devices that need not be named there: '' if they differ in a side.

    Of two machines each side has its own devices, so a row names the device of both or of none.
    """
    on_base = [case for case in found.cases if case.verdict != "only in NEW"]
    on_new = [case for case in found.cases if case.verdict != "only in BASE"]
    short_base, base_device = without_device([case.target for case in on_base])
    short_new, new_device = without_device([case.target_new or case.target for case in on_new])
    of_new = {case.case: target for case, target in zip(on_new, short_new, strict=True)}
    of_base = {case.case: target for case, target in zip(on_base, short_base, strict=True)}
    labels = {}
    for case in found.cases:
        target = of_base.get(case.case) or of_new[case.case]
        new = of_new.get(case.case, target)
        both = target if new == target else f"{target} \u2192 {new}"
        labels[case.case] = both + case.label.removeprefix(case.target)
    if base_device == new_device or not (base_device and new_device):
        return labels, base_device or new_device
    return labels, f"{base_device} (BASE) and {new_device} (NEW)"


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
    """The result, a row for each case, what changed, the reasons for cases without a test, and that of the gate."""
    yield Text(result_lines(found))
    labels, device = _labels(found)
    rows = [_row(case, labels[case.case]) for case in cases_by_change(found)]
    if rows:
        title = f"Cases on {device}" if device else ""
        yield Table(title, _HEADINGS, rows, numeric=(1, 2, 3, 5), optional={1: 2, 2: 2, 5: 1}, status=4).without_empty()
    yield Text([*change_lines(found), *reason_sentences(found), *filter(None, [gate_sentence(found)])])
