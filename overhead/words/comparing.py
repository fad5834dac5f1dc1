"""A comparison of two sets of runs in words."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.blocks.parts import InMicroseconds
from overhead.comparing.pairing import ABSENT
from overhead.comparing.verdicts import (
    CaseVerdict,
    Difference,
    RunsLeftOut,
    SkippedRun,
    Verdict,
    Verdicts,
    Yardstick,
)
from overhead.reading.plain_text import plain
from overhead.results import Machine, Value
from overhead.words.format import TIMES, count, few, percent, spread
from overhead.words.names import CALLER_WORDS
from overhead.words.reasons import one_line, sentence

COMPARED_COLUMNS = (
    "case",
    "verdict",
    "NEW / BASE",
    InMicroseconds("BASE", " "),
    InMicroseconds("NEW", " "),
    "smallest detectable",
)
RUNS_LEFT_OUT = "Runs left out"
WINDOW_DIFFERS_TOO = "The timed part differs too"
OVER_ALL_ROUNDS = "Verdicts over all rounds, also the slow rounds that a cost leaves out"
TWO_MACHINES = "BASE and NEW are two machines, so ratios are shown, but no ratio is tested."
_AS_PRINTED: dict[Verdict, str] = {"same": "no difference", "refused": "not comparable"}
"""Verdicts as people read them, where that differs from the code."""
_MOST_CHANGES, _LONGEST_CHANGE = 8, 90
"""How many differences between the sides are said, and the characters of each."""


def verdict_word(verdict: Verdict) -> str:
    """The verdict as it is printed."""
    return _AS_PRINTED.get(verdict, verdict)


def verdict_cell(case: CaseVerdict) -> str:
    """The verdict on a case in the table."""
    word = verdict_word(case.verdict)
    return f"{word} (over the limit)" if case.failed else word


def verdict_as_title(verdict: Verdict) -> str:
    """The verdict at the beginning of a line."""
    word = verdict_word(verdict)
    return word[:1].upper() + word[1:]


def case_label(case: CaseVerdict, target: str = "", *, with_variant: bool = True) -> str:
    """The name of a compared case: its target (a stack on a device), the case and its caller, and
    behind an arrow the variant that it is compared with, if variants are compared.

    ``target``: a shorter name for the target.
    """
    label = f"{target or case.target.text}: {case.pattern}"
    if case.caller:
        label = f"{label}, {CALLER_WORDS[case.caller]}"
    label = plain(label)
    # ``variant``: such as ``wait=event``, where variants inside of runs are compared.
    if case.variant and with_variant:
        return f"{label} \u2192 {plain(case.variant)}"
    return label


def case_reason(case: CaseVerdict) -> str:
    """Why a case has no test, or what hides a change; '' without a reason."""
    return one_line(case.reason, 500)


def window_changes(changes: Sequence[Difference]) -> str:
    """What was timed differently besides the axis: ``submits 1 → 0``; '' if nothing."""
    texts = [f"{change.field} {change.base} \u2192 {change.new}" for change in changes]
    return plain(", ".join(texts))


def runs_left_out(sides: Sequence[RunsLeftOut]) -> str:
    """The runs of each side that do not count for a case, with the reasons; '' if all count."""
    return plain("; ".join(map(_of_side_left_out, sides)), 1000)


def _of_side_left_out(side: RunsLeftOut) -> str:
    refused = [f"{run.file} ({one_line(run.why)})" for run in side.refused]
    runs = count(side.runs, "run")
    return f"{side.side}, {len(refused)} of {runs}: {', '.join(refused)}"


def skipped_run(skipped: SkippedRun) -> str:
    """A file or a variant that is not compared, and why."""
    return plain(f"{skipped.name}: {sentence(skipped.why)}")


def machine(of: Machine) -> str:
    """The GPUs of a machine and its processor."""
    gpus = dict.fromkeys(gpu.name for gpu in of.gpus if not gpu.software)
    cores = count(of.cores, "core")
    return plain(", ".join([*gpus, f"{of.cpu} ({cores})"]))


def yardstick(of: Yardstick) -> str:
    """How the cases of a comparison were tested, and how far runs or processes differ without a
    change: by that spread a ratio counts as a change or not.
    """
    of_median = f"{percent(of.spread)} (standard deviation of the median case)"
    match of.kind:
        case "nothing-tested":
            return "no case could be tested"
        case "two-machines":
            return "no case was tested, because BASE and NEW are two machines"
        case "in-turn":
            return f"BASE and NEW were measured in turn; pairs of processes differ by {of_median}"
        case "same-processes":
            return (
                "BASE and NEW were measured in turn in the same processes; the ratios of the"
                f" processes differ by {of_median}"
            )
        case "several-runs":
            base, new = of.runs
            return (
                f"with {base} runs of BASE and {new} runs of NEW; the means of runs vary by"
                f" {of_median}"
            )
        case "one-run":
            # ``spread`` is assumed here, not measured; less where both had the same CPU speed.
            speed = " at the same CPU speed" if of.same_speed else ""
            floor = percent(of.spread)
            return (
                f"BASE and NEW have one run each, and runs are assumed to vary by {floor} (standard"
                f" deviation){speed}"
            )


def sides(found: Verdicts) -> list[str]:
    """The first lines of a comparison: which files, or variants of cases, are BASE and NEW.

    ``inside``: the files that have both variants. Two machines are named, because then nothing is
    tested.
    """
    base, new = ", ".join(found.base), ", ".join(found.new)
    # Variants inside of files are always of one machine.
    if found.same_machine:
        inside = f"; in {', '.join(found.inside)}" if found.inside else ""
        return [f"BASE {base}; NEW {new}{inside}."]
    on_base, on_new = map(machine, found.machines)
    return [f"BASE {base}: {on_base}.", f"NEW {new}: {on_new}.", TWO_MACHINES]


def counted(found: Verdicts, verdicts: Sequence[Verdict]) -> str:
    """The result of a comparison in a line: how many cases have each of these verdicts."""
    counts = []
    for verdict in verdicts:
        if found.count(verdict):
            counts.append(f"{found.count(verdict)} {verdict_word(verdict)}")
    if not counts:
        return "Result: no case."
    return f"Result: {', '.join(counts)}."


def changes(found: Verdicts) -> str:
    """What differs between BASE and NEW, such as versions: at most eight fields, first those that
    both have with other values, then those that only one has.
    """
    in_both = []
    in_one = []
    # ``ABSENT`` stands for the value of a side that does not have the field.
    for change in found.differences:
        if change.field == "id":
            continue  # a hash, which tells a reader nothing
        if ABSENT in (change.base, change.new):
            in_one.append(change)
        else:
            in_both.append(change)
    every = [*in_both, *in_one]
    if not every:
        return "What changed: nothing that the files record."
    texts = []
    for change in every[:_MOST_CHANGES]:
        text = f"{change.field} {change.base} \u2192 {change.new}"
        texts.append(plain(text, _LONGEST_CHANGE))
    left_out = len(every) - len(texts)
    if left_out > 0:
        texts.append(f"{left_out} more (--json lists them)")
    return f"What changed: {'; '.join(texts)}."


def how_tested(found: Verdicts) -> str:
    """How the cases were tested."""
    return f"How it was tested: {yardstick(found.yardstick)}."


def skipped_line(skipped: SkippedRun) -> str:
    """A line on a file or a variant that is not compared."""
    return f"Skipped: {skipped_run(skipped)}"


def verdict_over_all_rounds(whole: CaseVerdict, ratio: Value) -> str:
    """The verdict over all rounds, with its ratio."""
    return f"{verdict_word(whole.verdict)}, {spread(ratio)}{TIMES}"


def group_of_cases(what: str, why: str, labels: list[str]) -> str:
    """Cases of which the same is to say. ``what``: how they stand; ``why``: the reason, or ''."""
    cases = count(len(labels), "case")
    if why:
        return f"{what}, {cases}: {why} ({few(labels)})."
    return f"{what}, {cases}: {few(labels)}."


def table_title(device: str) -> str:
    """The title of the table. ``device``: the one of all cases, or ''."""
    return f"Cases on {device}" if device else ""


def devices_of_sides(base: str, new: str) -> str:
    """The two devices of all cases."""
    return f"{base} (BASE) and {new} (NEW)"


def gate(found: Verdicts) -> str:
    """The result of the option ``--fail-over``, which fails a comparison in which a case got slower
    by more than a limit: how many did, and in how many a change of that size could be found at all.
    '' without the option.
    """
    if found.fail_over is None:
        return ""
    # ``failed``: the cases whose whole interval lies above the limit.
    limit = f"{found.fail_over:g} %"
    if not found.failed and not found.any_test:
        return f"Nothing could be tested for a change of {limit}: {_without_test(found)}."
    failed = count(len(found.failed), "case") if found.failed else "No case"
    are = "are" if len(found.failed) > 1 else "is"
    # ``measured``: how many cases have a value on a side. ``untested``: those of them whose test
    # could not find a change of this size, or that have no test.
    tested = found.measured - len(found.untested)
    with_value = f"{count(found.measured, 'case')} with a value"
    sentences = [
        f"{failed} {are} slower by more than {limit}.",
        f"In {tested} of {with_value}, the test could find a change of {limit}.",
    ]
    without = len(found.cases) - found.measured
    if without:
        cases = count(without, "case")
        sentences.append(f"Not counted, as BASE or NEW has no value: {cases}.")
    return " ".join(sentences)


def _without_test(found: Verdicts) -> str:
    cases = count(len(found.cases), "case")
    return f"{cases} could not"


def gate_untested(found: Verdicts, *, may_forgive: bool) -> str:
    """Why ``--fail-over``, a limit on how much slower a case may be, did not pass although no case
    failed: too few cases could be tested for a change of that size. ``may_forgive``:
    ``--allow-missing`` would let it pass.
    """
    if not found.any_test:
        return f"the gate did not pass: nothing could be tested ({_without_test(found)})"
    untested = (
        f"in {len(found.untested)} of {found.measured} cases the test cannot find a change of"
        f" {found.fail_over:g} %"
    )
    hint = "; --allow-missing accepts this" if may_forgive else ""
    return f"the gate did not pass: {untested}{hint}"
