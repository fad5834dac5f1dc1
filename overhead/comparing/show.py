"""A comparison of two sets of runs as blocks, for the terminal and for Markdown, and as the data of
``--json``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

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
"""The columns of the table, as ``words.COMPARED_COLUMNS`` names them."""
_NUMERIC = (_RATIO, _BASE, _NEW, _DETECTABLE)
_OPTIONAL = ((_BASE, _NEW), _DETECTABLE)
"""What a narrow terminal hides of the table: the two sides go together."""
_TONES: dict[Verdict, Tone] = {"faster": "good", "slower": "bad"}


def result_lines(found: Verdicts) -> list[str]:
    """The lines above the table: what is compared, and how many cases have each verdict."""
    return [*words.sides(found), words.counted(found, _ORDER)]


def change_lines(found: Verdicts) -> list[str]:
    """The lines below the table: what differs between the sides, how the cases were tested, and
    which files were skipped. Variants inside one run have no differing sides, and cases of two
    machines are not tested.
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
    with_ratio = [case for case in found.cases if case.ratio is not None]
    return sorted(with_ratio, key=_by_change)


def _by_change(case: CaseVerdict) -> tuple[int, float]:
    """What sorts the cases: the place of the verdict, and the largest change first. Half and twice
    as much are changes of one size.
    """
    ratio = case.ratio.value if case.ratio else 1.0
    inverse = 1 / ratio if ratio > 0 else 0.0
    return _ORDER.index(case.verdict), -max(ratio, inverse)


@dataclass(frozen=True)
class _Remark:
    """What is to say of one case. Remarks with an equal ``fact`` become one sentence for all their
    cases; ``what`` is its title, ``why`` the rest. ``case``: the key of the case.
    """

    case: str
    fact: Hashable
    what: str
    why: str


def reason_sentences(found: Verdicts) -> list[str]:
    """The sentences below the table: a line for each thing that is to say of some cases (first why
    they have no test), followed by all cases of which it is to say.
    """
    labels = _labels(found).by_case
    # Remarks of one fact (an equal reason, or an equal difference) become one sentence; the order
    # is that of the first of each.
    groups: dict[Hashable, list[_Remark]] = {}
    for remark in _remarks(found):
        groups.setdefault(remark.fact, []).append(remark)
    sentences = []
    for remarks in groups.values():
        cases = [labels[remark.case] for remark in remarks]
        first = remarks[0]
        sentences.append(words.group_of_cases(first.what, first.why, cases))
    return sentences


def _remarks(found: Verdicts) -> Iterator[_Remark]:
    """What is to say of single cases below the table, in this order: why they have no test, which
    runs do not count, what else their windows differ in, and the verdict over all rounds where it
    is another one.
    """
    # ``_ORDER``: slower and faster first, then the other verdicts. ``fact``: remarks that are equal
    # in it become one sentence.
    for case in sorted(found.cases, key=lambda case: _ORDER.index(case.verdict)):
        if case.reason or case.verdict in ("only in BASE", "only in NEW"):
            title = words.verdict_as_title(case.verdict)
            fact = (case.verdict, case.reason)
            yield _Remark(case.case, fact, title, words.case_reason(case))
    for case in found.cases:
        if case.left_out:
            why = words.runs_left_out(case.left_out)
            yield _Remark(case.case, case.left_out, words.RUNS_LEFT_OUT, why)
    for case in cases_by_change(found):
        if case.also:
            why = words.window_changes(case.also)
            yield _Remark(case.case, case.also, words.WINDOW_DIFFERS_TOO, why)
        whole = case.all_rounds
        if whole is not None and whole.ratio:
            why = words.verdict_over_all_rounds(whole, whole.ratio)
            yield _Remark(case.case, (whole.verdict, whole.ratio), words.OVER_ALL_ROUNDS, why)


class _Labels(NamedTuple):
    """The label of each case by its key. ``devices``: those of all cases, which the labels do not
    name; '' where labels name them.
    """

    by_case: dict[str, str]
    devices: str


def _labels(found: Verdicts) -> _Labels:
    """The names of the cases for the table, without what all of them share, which the title names
    once.

    Of two machines each side has its own devices, so a row names the device of both or of none. A
    variant that all cases share is not named either: it is NEW.
    """
    on_base = [case for case in found.cases if case.verdict != "only in NEW"]
    on_new = [case for case in found.cases if case.verdict != "only in BASE"]
    # Names without the device where all cases of a side share it; the title names it then.
    base_targets, base_device = without_device([case.target for case in on_base])
    targets_of_new = [case.target_new or case.target for case in on_new]
    new_targets, new_device = without_device(targets_of_new)
    base_target = {case.case: text for case, text in zip(on_base, base_targets, strict=True)}
    new_target = {case.case: text for case, text in zip(on_new, new_targets, strict=True)}
    several_variants = len({case.variant for case in found.cases}) > 1

    labels = {}
    for case in found.cases:
        # A case has the name of BASE, and that of NEW behind an arrow if it is another one.
        target = base_target.get(case.case) or new_target[case.case]
        on_other_side = new_target.get(case.case, target)
        if on_other_side != target:
            target = f"{target} \u2192 {on_other_side}"
        labels[case.case] = words.case_label(case, target, with_variant=several_variants)
    if base_device and new_device and base_device != new_device:
        return _Labels(labels, words.devices_of_sides(base_device, new_device))
    return _Labels(labels, base_device or new_device)


def _row(case: CaseVerdict, label: str) -> list[str | Cell]:
    """A row of the table: the cells of one case under ``COMPARED_COLUMNS``; an empty one for what
    is not known.
    """
    # ``_CASE``, ``_VERDICT`` and so on are the places of the columns. ``tone``: good or bad, a
    # colour.
    cells: list[str | Cell] = [""] * len(words.COMPARED_COLUMNS)
    cells[_CASE] = label
    cells[_VERDICT] = Cell(words.verdict_cell(case), tone=_TONES.get(case.verdict, ""))
    ratio = case.ratio
    if ratio is not None:
        # A ratio of which both ends are known is shown with its interval.
        cells[_RATIO] = spread(ratio) + TIMES if ratio.bounded else factor(ratio)
    if case.base_ns is not None:
        cells[_BASE] = _microseconds(case.base_ns)
    if case.new_ns is not None:
        cells[_NEW] = _microseconds(case.new_ns)
    # ``smallest``: the smallest change that the test detects, as a share of the cost.
    change = case.smallest
    if change is not None:
        # From twice the cost on, a factor reads better than 100 % and more.
        cells[_DETECTABLE] = percent(change) if change < 1 else factor(1 + change)
    return cells


def _microseconds(ns: float) -> str:
    """A cost with four digits: two sides that differ by a few per cent must look different."""
    return number(within(ns / 1e3, 0.001))


def comparison_blocks(found: Verdicts) -> Iterator[Part]:
    """A comparison as the terminal and Markdown show it: the result, a row for each case with a
    ratio, what changed between the sides, the reasons for cases without a test, and that of the
    gate.
    """
    yield Text(result_lines(found))
    labels = _labels(found)
    rows = []
    for case in cases_by_change(found):
        rows.append(_row(case, labels.by_case[case.case]))
    if rows:
        title = words.table_title(labels.devices)
        # Columns in which every cell is empty are left out.
        table = Table(title, words.COMPARED_COLUMNS, rows, _NUMERIC, optional=_OPTIONAL)
        yield table.without_empty()
    last_lines = [*change_lines(found), *reason_sentences(found)]
    gate = words.gate(found)
    if gate:
        last_lines.append(gate)
    yield Text(last_lines)


def comparison_data(found: Verdicts) -> dict[str, Any]:
    """The comparison as ``--json`` prints it: dicts and lists, what is said in words, and beside it
    the code that a program can rely on.
    """
    # ``code_of``: the code of a reason, which stays when its sentence changes. The spread that the
    # verdicts assume is the ``yardstick``.
    yardstick = found.yardstick
    differences = [asdict(difference) for difference in found.differences]
    cases = [_case_data(case) for case in found.cases]
    failed = [case.case for case in found.failed]
    untested = [case.case for case in found.untested]
    skipped = [words.skipped_run(run) for run in found.skipped]
    skipped_codes = [code_of(run.why) for run in found.skipped]
    machines = [words.machine(machine) for machine in found.machines]
    return {
        "base": found.base,
        "new": found.new,
        "same_machine": found.same_machine,
        "differences": differences,
        "yardstick": words.yardstick(yardstick),
        "yardstick_code": yardstick.kind,
        "yardstick_spread": yardstick.spread,
        "fail_over": found.fail_over,
        "cases": cases,
        "skipped": skipped,
        "skipped_codes": skipped_codes,
        "inside": found.inside,
        "machines": machines or ["", ""],
        "failed": failed,
        "untested": untested,
    }


_AS_THEY_ARE = ("smallest", "p", "processes", "runs", "failed", "measured", "missing", "against")
"""Fields of a verdict that the data of ``--json`` have as they are."""


def _case_data(case: CaseVerdict) -> dict[str, Any]:
    """A verdict on a case as ``--json`` prints it: plain fields, the ratio as ``ratio``, ``low``
    and ``high``, and the verdict over all rounds inside it where there is one.
    """
    target_new = case.target_new.text if case.target_new is not None else ""
    data: dict[str, Any] = {"case": case.case}
    data["label"] = words.case_label(case)
    data["verdict"] = case.verdict
    data["target"] = case.target.text
    data["target_new"] = target_new
    data["reason"] = words.case_reason(case)
    data["reason_code"] = code_of(case.reason)
    data["base_ns"] = case.base_ns
    data["new_ns"] = case.new_ns
    # Three names: ``ratio``, ``low``, ``high``. Then the fields that need no words.
    data.update(_ratio_data(case))
    for name in _AS_THEY_ARE:
        data[name] = getattr(case, name)
    data["also"] = words.window_changes(case.also)
    data["left_out"] = words.runs_left_out(case.left_out)
    over_all = case.all_rounds
    data["all_rounds"] = None
    if over_all is not None:
        data["all_rounds"] = {"verdict": over_all.verdict, **_ratio_data(over_all)}
    return data


def _ratio_data(case: CaseVerdict) -> dict[str, float | None]:
    ratio = case.ratio
    if ratio is None:
        return {"ratio": None, "low": None, "high": None}
    return {"ratio": ratio.value, "low": ratio.low, "high": ratio.high}
