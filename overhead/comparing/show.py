"""A comparison of two sets of runs as blocks, for the terminal and for Markdown, and as the data of
``--json``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from overhead.blocks.parts import Cell, Part, Table, Text, Tone
from overhead.comparing.verdicts import CaseVerdict, Verdict, Verdicts
from overhead.reading.view import without_device
from overhead.results import code_of
from overhead.words import comparing as words
from overhead.words.format import TIMES, factor, number, percent, spread, within

_ORDER: tuple[Verdict, ...] = (
    "slower", "faster", "same", "undecided", "not tested", "refused", "only in BASE", "only in NEW",
)  # fmt: skip
_CASE, _VERDICT, _RATIO, _BASE, _NEW, _DETECTABLE = range(6)
_NUMERIC = (_RATIO, _BASE, _NEW, _DETECTABLE)
_OPTIONAL = ((_BASE, _NEW), _DETECTABLE)
"""What a narrow terminal hides of the table: the two sides go together."""
_TONES: dict[Verdict, Tone] = {"faster": "good", "slower": "bad"}


def result_lines(found: Verdicts) -> list[str]:
    """The lines above the table: what is compared, and how many cases have each verdict."""
    return [*words.sides(found), words.counted(found, _ORDER)]


def change_lines(found: Verdicts) -> list[str]:
    """The lines below the table: what differs between the sides, how it was tested, and what was
    skipped.
    """
    lines = []
    if not found.inside:
        lines.append(words.changes(found))
    if found.same_machine:
        lines.append(words.how_tested(found))
    return lines + [words.skipped_line(skipped) for skipped in found.skipped]


def cases_by_change(found: Verdicts) -> list[CaseVerdict]:
    """The cases that have a ratio, by verdict (slower and faster ones first) and by the size of the
    change.
    """

    def key(case: CaseVerdict) -> tuple[int, float]:
        ratio = case.ratio.value if case.ratio else 1.0
        return _ORDER.index(case.verdict), -max(ratio, 1 / ratio if ratio > 0 else 0.0)

    return sorted((case for case in found.cases if case.ratio is not None), key=key)


@dataclass(frozen=True)
class _Remark:
    """What is to say of some cases. ``fact``: equal for cases of which the same is to say;
    ``what``, ``why``: of it.
    """

    fact: Hashable
    what: str
    why: str


def reason_sentences(found: Verdicts) -> list[str]:
    """A line for each reason why cases have no test, with these cases; then what else is to know of
    some.
    """
    labels, _ = _labels(found)
    remarks: dict[Hashable, _Remark] = {}
    cases: dict[Hashable, list[str]] = {}
    for case, remark in _remarks(found):
        remarks.setdefault(remark.fact, remark)
        cases.setdefault(remark.fact, []).append(labels[case.case])
    return [words.group_of_cases(one.what, one.why, cases[fact]) for fact, one in remarks.items()]


def _remarks(found: Verdicts) -> Iterator[tuple[CaseVerdict, _Remark]]:
    for case in sorted(found.cases, key=lambda case: _ORDER.index(case.verdict)):
        if case.reason or case.verdict in ("only in BASE", "only in NEW"):
            yield (
                case,
                _Remark(
                    (case.verdict, case.reason),
                    words.verdict_as_title(case.verdict),
                    words.case_reason(case),
                ),
            )
    for case in found.cases:
        if case.left_out:
            yield (
                case,
                _Remark(case.left_out, words.RUNS_LEFT_OUT, words.runs_left_out(case.left_out)),
            )
    for case in cases_by_change(found):
        if case.also:
            yield (
                case,
                _Remark(case.also, words.WINDOW_DIFFERS_TOO, words.window_changes(case.also)),
            )
        if (whole := case.all_rounds) and whole.ratio:
            of_rounds = (whole.verdict, whole.ratio)
            yield (
                case,
                _Remark(
                    of_rounds,
                    words.OVER_ALL_ROUNDS,
                    words.verdict_over_all_rounds(whole, whole.ratio),
                ),
            )


def _labels(found: Verdicts) -> tuple[dict[str, str], str]:
    """The label of each case by its key, and the devices that need not be named there: '' if they
    differ in a side.

    Of two machines each side has its own devices, so a row names the device of both or of none. A
    variant that all cases share is not named either: it is NEW.
    """
    on_base = [case for case in found.cases if case.verdict != "only in NEW"]
    on_new = [case for case in found.cases if case.verdict != "only in BASE"]
    short_base, base_device = without_device([case.target for case in on_base])
    short_new, new_device = without_device([case.target_new or case.target for case in on_new])
    of_new = {case.case: target for case, target in zip(on_new, short_new, strict=True)}
    of_base = {case.case: target for case, target in zip(on_base, short_base, strict=True)}
    several_variants = len({case.variant for case in found.cases}) > 1
    labels = {}
    for case in found.cases:
        target = of_base.get(case.case) or of_new[case.case]
        new = of_new.get(case.case, target)
        both = target if new == target else f"{target} \u2192 {new}"
        labels[case.case] = words.case_label(case, both, with_variant=several_variants)
    if base_device == new_device or not (base_device and new_device):
        return labels, base_device or new_device
    return labels, words.devices_of_sides(base_device, new_device)


def _row(case: CaseVerdict, label: str) -> tuple[str | Cell, ...]:
    """The cells under the columns."""
    share, ratio = case.smallest, case.ratio
    return (
        label,
        Cell(words.verdict_cell(case), tone=_TONES.get(case.verdict, "")),
        "" if ratio is None else spread(ratio) + TIMES if ratio.bounded else factor(ratio),
        *(
            "" if ns is None else number(within(ns / 1e3, 0.001))
            for ns in (case.base_ns, case.new_ns)
        ),
        "" if share is None else percent(share) if share < 1 else factor(1 + share),
    )


def comparison_blocks(found: Verdicts) -> Iterator[Part]:
    """The result, a row for each case, what changed, the reasons for cases without a test, and that
    of the gate.
    """
    yield Text(result_lines(found))
    labels, device = _labels(found)
    rows = [_row(case, labels[case.case]) for case in cases_by_change(found)]
    if rows:
        title = words.table_title(device)
        yield Table(
            title, words.COMPARED_COLUMNS, rows, _NUMERIC, optional=_OPTIONAL
        ).without_empty()
    yield Text([*change_lines(found), *reason_sentences(found), *filter(None, [words.gate(found)])])


def comparison_data(found: Verdicts) -> dict[str, Any]:
    """The comparison as dicts and lists that ``json`` can write: what is said in words, and beside
    it its code.
    """
    return {
        "base": found.base,
        "new": found.new,
        "same_machine": found.same_machine,
        "differences": [asdict(one) for one in found.differences],
        "yardstick": words.yardstick(found.yardstick),
        "yardstick_code": found.yardstick.kind,
        "yardstick_spread": found.yardstick.spread,
        "fail_over": found.fail_over,
        "cases": [_case_data(case) for case in found.cases],
        "skipped": [words.skipped_run(one) for one in found.skipped],
        "skipped_codes": [code_of(one.why) for one in found.skipped],
        "inside": found.inside,
        "machines": [words.machine(one) for one in found.machines] or ["", ""],
        "failed": [case.case for case in found.failed],
        "untested": [case.case for case in found.untested],
    }


def _case_data(case: CaseVerdict) -> dict[str, Any]:
    """A verdict as plain fields, the ratio as ``ratio``, ``low`` and ``high``."""
    of_rounds = None
    if case.all_rounds is not None:
        of_rounds = {"verdict": case.all_rounds.verdict, **_ratio_data(case.all_rounds)}
    return {
        "case": case.case,
        "label": words.case_label(case),
        "verdict": case.verdict,
        "target": case.target.text,
        "target_new": case.target_new.text if case.target_new is not None else "",
        "reason": words.case_reason(case),
        "reason_code": code_of(case.reason),
        "base_ns": case.base_ns,
        "new_ns": case.new_ns,
        **_ratio_data(case),
        "smallest": case.smallest,
        "p": case.p,
        "processes": case.processes,
        "runs": case.runs,
        "failed": case.failed,
        "measured": case.measured,
        "missing": case.missing,
        "against": case.against,
        "also": words.window_changes(case.also),
        "left_out": words.runs_left_out(case.left_out),
        "all_rounds": of_rounds,
    }


def _ratio_data(case: CaseVerdict) -> dict[str, float | None]:
    ratio = case.ratio
    if ratio is None:
        return {"ratio": None, "low": None, "high": None}
    return {"ratio": ratio.value, "low": ratio.low, "high": ratio.high}
