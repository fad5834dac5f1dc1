"""Give each case of two sides a verdict: refuse different cases, explain missing ones, test the
others.

All cases are tested together, because the correction and the spread between runs need all of them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead.comparing import decide
from overhead.comparing.decide import ALPHA, Paces, Runs
from overhead.comparing.pairing import (
    ABSENT,
    pair_cases,
    read_variants,
    runs_taken_together,
    samples_in_turn,
    why_incomparable,
    window_changes,
)
from overhead.comparing.sides import FIGURE, Run, Sampled, Side, SideCase
from overhead.comparing.verdicts import (
    CaseVerdict,
    Difference,
    RefusedRun,
    RunsLeftOut,
    SkippedRun,
    Verdict,
    Verdicts,
    Yardstick,
    YardstickKind,
)
from overhead.measure.fitting.line import Mask
from overhead.measure.fitting.undisturbed_rounds import has_enough_processes
from overhead.reading.missing_values import missing_record, why
from overhead.reading.plain_text import plain
from overhead.results import Fingerprint, Reason, Value, Why, because

_LARGEST_LOG = 700.0
"""ln of the largest change that a float can hold."""
_SAME_WITHIN = 0.05
"""A case is the same if its uncorrected interval lies within this relative difference."""


def verdicts(base: Side, new: Side, fail_over: float | None) -> Verdicts:
    """The verdict on every case that either side has, in the order of BASE, then of NEW."""
    runs = runs_taken_together(base, new)
    same_machine = base.machine.id == new.machine.id
    untestable: Why = "" if same_machine else because("two-machines")
    if shared := base.held_too(new):
        untestable = because("run-on-both-sides", file=plain(shared.path.name))
    opened = [_opened(b, n, base, new, runs, untestable) for b, n in pair_cases(base, new)]
    untested = [one for one in opened if isinstance(one, CaseSamples)]
    return Verdicts(
        base=_names(base, new),
        new=_names(new, base),
        same_machine=same_machine,
        differences=tuple(_differences(base.runs[-1].fingerprint, new.runs[-1].fingerprint)),
        yardstick=yardstick_of(untested) if same_machine else Yardstick("two-machines"),
        fail_over=fail_over,
        cases=_closed(opened, fail_over),
        skipped=(*base.skipped, *new.skipped),
        machines=(base.machine, new.machine),
    )


def verdicts_across(run: Side, asked: str, fail_over: float | None) -> Verdicts:
    """The verdict on every pair of variants, both of which each process measured. ``asked``: as in
    ``read_variants``.

    Raises ``UsageError`` if no case is as asked.
    """
    variants = read_variants(asked, run)
    paired = {new.name for _, new in variants.pairs}
    base, *others = variants.names
    opened = []
    for b, n in variants.pairs:
        of_base = _blank(b)
        blank = replace(
            _blank(n),
            target=of_base.target,
            pattern=of_base.pattern,
            caller=of_base.caller,
            variant=n.name,
            against=b.key,
            also=window_changes(variants.axis, b.record, n.record),
        )
        units = [case.record.unit for case in (b, n)]
        if units[0] != units[1]:
            refused: Why = because(
                "unit-differs", one=b.name, other=n.name, mine=units[0], theirs=units[1]
            )
        else:
            refused = why_incomparable(b) or why_incomparable(n)
        opened.append(_both(blank, b, n, refused, [(one, one) for one in run.runs]))
    alone = [
        SkippedRun(name, because("variant-alone", base=base))
        for name in others
        if name not in paired
    ]
    tested = [one for one in opened if isinstance(one, CaseSamples)]
    return Verdicts(
        base=(base,),
        new=tuple(name for name in others if name in paired),
        same_machine=True,
        differences=(),
        yardstick=yardstick_of(tested, "same-processes"),
        fail_over=fail_over,
        cases=_closed(opened, fail_over),
        skipped=(*alone, *run.skipped),
        inside=_names(run),
    )


def _closed(
    opened: Sequence[CaseVerdict | CaseSamples], fail_over: float | None
) -> tuple[CaseVerdict, ...]:
    """All verdicts in the same order."""
    found = iter(
        verdicts_by_test([one for one in opened if isinstance(one, CaseSamples)], fail_over)
    )
    return tuple(next(found) if isinstance(one, CaseSamples) else one for one in opened)


def _names(side: Side, other: Side | None = None) -> tuple[str, ...]:
    """The file names of the side, with their folder if the other side has a file of the same
    name.
    """
    names = [run.path.name for run in side.runs]
    if other is not None and not {*names}.isdisjoint(run.path.name for run in other.runs):
        names = [f"{run.path.parent.name}/{run.path.name}" for run in side.runs]
    return tuple(map(plain, names))


def _opened(
    base_case: SideCase | None,
    new_case: SideCase | None,
    base: Side,
    new: Side,
    runs: Sequence[tuple[Run, Run]],
    untestable: Why,
) -> CaseVerdict | CaseSamples:
    """The verdict if the case needs no test, else the input of the test. ``runs``: those that were
    taken together.

    ``untestable``: why no case of these sides can be tested, or ''.
    """
    if base_case is not None and new_case is not None:
        refused = why_incomparable(base_case, new_case)
        blank = _blank(base_case)
        target = _blank(new_case).target
        blank = replace(blank, target_new=target if target != blank.target else None)
        return _both(blank, base_case, new_case, refused, runs, untestable)
    only, other = (new_case, base) if base_case is None else (base_case, new)
    assert only is not None
    lacking = missing_record(other.runs[-1].fingerprint, only.record).why
    where: Verdict = "only in BASE" if base_case is not None else "only in NEW"
    has_value = only.value is not None
    blank = replace(_blank(only), verdict=where, measured=has_value, missing=has_value)
    return (
        replace(blank, reason=because("side-lacks-case", side=other.name, why=lacking))
        if lacking
        else blank
    )


def _both(
    blank: CaseVerdict,
    base: SideCase,
    new: SideCase,
    refused: Why,
    runs: Sequence[tuple[Run, Run]],
    untestable: Why = "",
) -> CaseVerdict | CaseSamples:
    """The same for a case that both sides have. ``refused``: why they cannot be compared, or ''."""
    below, above = base.value, new.value
    broken = bool(base.unproven or new.unproven)
    one_sided = (below is None) != (above is None)
    blank = replace(
        blank,
        verdict="not tested",
        measured=bool(below or above),
        missing=one_sided and not broken,
        left_out=(*_runs_left_out(base), *_runs_left_out(new)),
    )
    if refused:
        return replace(blank, verdict="refused", reason=refused)
    if below is None or above is None:
        return replace(blank, reason=_no_value(base if below is None else new))
    if broken:
        return replace(blank, reason=_unproven(base if base.unproven else new))
    if below.value > 0:
        ratio = above / below
        ratio = ratio if ratio.bounded else Value(ratio.value)
        blank = replace(blank, base_ns=below.value, new_ns=above.value, ratio=ratio)
    if untestable:
        return replace(blank, reason=untestable)
    unsampled = [run.path.name for run in (*base.counted, *new.counted) if run.sampled is None]
    if unsampled:
        return replace(blank, reason=because("no-raw-samples", file=plain(unsampled[0])))
    in_turn = [(b, n) for b, n in runs if b in base.counted and n in new.counted]
    if runs and not in_turn:
        return replace(blank, reason=because("no-pair-of-runs-with-values"))
    held = samples_in_turn(base.key, new.key, in_turn) if runs else (base.samples, new.samples)
    pythons = {run.fingerprint.versions.get("python") for run in (*base.counted, *new.counted)}
    found = CaseSamples.of(blank, *held, bool(runs), paced=len(pythons) == 1)
    if min(found.case.processes) < 2:
        return replace(found.case, reason=because("one-process-a-side"))
    return found


def _no_value(case: SideCase) -> Reason:
    """Why a side has no value. A machine that was busy bends a line, and may give a straight one
    next time.
    """
    lacking = why(case.record, FIGURE)
    figure = case.record.figure(FIGURE)
    if figure is not None and figure.status == "nonlinear":
        return because("no-value-busy-machine", side=case.name, why=lacking)
    return because("no-value", side=case.name, why=lacking)


def _unproven(case: SideCase) -> Reason:
    """Which run of a side did not do the work: its case failed, or its values are wrong."""
    run = case.unproven[-1]
    bad, runs, wrong = len(case.unproven), len(case.runs), why(run.records[case.key], FIGURE)
    return because(
        "work-not-done", bad=bad, runs=runs, side=case.name, last=run.path.name, why=wrong
    )


def _runs_left_out(case: SideCase) -> Iterator[RunsLeftOut]:
    """The runs of a side that do not count, if others do."""
    if case.counted and case.refused:
        refused = [
            RefusedRun(run.path.name, why(run.records[case.key], FIGURE)) for run in case.refused
        ]
        yield RunsLeftOut(case.name, len(case.runs), tuple(refused))


def _differences(base: Fingerprint, new: Fingerprint) -> list[Difference]:
    """The fields that differ: first the machine, then variables, versions, then the state of the
    machine.
    """
    machine, *others = zip(_described(base), _described(new), strict=True)
    fields = [(field, value, machine[1][field]) for field, value in machine[0].items()]
    for mine, theirs in others:
        fields += [
            (key, mine.get(key, ABSENT), theirs.get(key, ABSENT))
            for key in sorted({*mine, *theirs})
        ]
    return [Difference(plain(f), _field_text(b), _field_text(n)) for f, b, n in fields if b != n]


def _field_text(value: object) -> str:
    """The value of a field; a list, such as one text for each GPU, with commas."""
    return plain(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))


def changed_versions(base: Fingerprint, new: Fingerprint) -> list[Difference]:
    """The versions that differ between two runs."""
    mine, theirs = base.versions, new.versions
    changed = (name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name))
    return [
        Difference(plain(n), plain(mine.get(n, ABSENT)), plain(theirs.get(n, ABSENT)))
        for n in changed
    ]


def _described(fingerprint: Fingerprint) -> list[dict[str, object]]:
    """The machine, the variables that the run set, the versions, and the state without measured
    values.

    A variable is named so that it differs from a version; measured values always differ.
    """
    own = fingerprint.machine
    machine = {"id": own.id, "cpu": own.cpu, "cores": own.cores, "memory_gib": own.memory_gib}
    gpus = ", ".join(gpu.name for gpu in own.gpus) or "none"
    variables = {f"variable {name}": value for name, value in fingerprint.environment.items()}
    state = {
        key: value for key, value in fingerprint.volatile.items() if not isinstance(value, float)
    }
    return [
        {**machine, "gpus": gpus, "profile": fingerprint.profile},
        {**variables},
        {**fingerprint.versions},
        {**state},
    ]


def _blank(case: SideCase) -> CaseVerdict:
    """An undecided verdict on the case."""
    record = case.record
    target = case.runs[-1].view.target(record)
    return CaseVerdict(
        case.key,
        "undecided",
        target=target.named,
        pattern=target.pattern_label(record),
        caller=record.caller,
    )


@dataclass(frozen=True)
class CaseSamples:
    """A case to test, and its samples in each run of BASE and of NEW, with at least two processes
    per side.

    ``paired``: both sides were measured in turn, so the n-th process of BASE and the n-th of NEW
    form a pair. ``paces``: the speed of the processor, to compare one run a side at the same speed.
    ``of_all_rounds``: the same samples over all rounds, at the speeds that they had.
    """

    case: CaseVerdict
    base: tuple[Sampled, ...]
    new: tuple[Sampled, ...]
    paired: bool
    paces: Paces = None
    of_all_rounds: CaseSamples | None = None

    @classmethod
    def of(
        cls,
        case: CaseVerdict,
        base: Sequence[Sampled],
        new: Sequence[Sampled],
        paired: bool,
        *,
        paced: bool = True,
    ) -> CaseSamples:
        """The case over the rounds of its figures. ``paced``: one Python on both sides, whose loop
        shows the speed.
        """
        counted = [s.counted for s in base], [s.counted for s in new]
        if paired:
            counted = ([b & n for b, n in zip(*counted, strict=True)],) * 2
        left, right = (tuple(map(_quiet, *side)) for side in zip((base, new), counted, strict=True))
        counts = sum(s.numbers.size for s in left), sum(s.numbers.size for s in right)
        case = replace(case, processes=counts, runs=(len(left), len(right)))
        several = len(left) + len(right) - 2 >= decide.LEAST_RUNS_DF
        paces = None
        if paced and not (paired or several) and min(counts) > 1:
            paces = decide.comparable_paces(
                *(np.concatenate([s.pace for s in side]) for side in (left, right))
            )
        whole = [tuple(s.of_all_rounds for s in side) for side in (base, new)]
        return cls(case, left, right, paired, paces, cls(case, whole[0], whole[1], paired))

    @property
    def slopes(self) -> tuple[Runs, Runs]:
        """For BASE and NEW: ``ln(ns per unit)`` of each process, one array for each run."""
        return [s.slopes for s in self.base], [s.slopes for s in self.new]

    @property
    def differences(self) -> decide.FloatArray:
        """``ln(NEW / BASE)`` of each pair of processes."""
        base, new = self.slopes
        return np.concatenate(new) - np.concatenate(base)


def _quiet(sampled: Sampled, counted: Mask) -> Sampled:
    """Only these processes, over the rounds of their figures; all over all rounds if too few would
    be left.
    """
    enough = has_enough_processes(int(counted.sum()), counted.size)
    return sampled.at(counted) if enough else sampled.of_all_rounds


def verdicts_by_test(cases: Sequence[CaseSamples], fail_over: float | None) -> list[CaseVerdict]:
    """The verdict on each case, all tested together; it fails if its whole interval is slower by
    ``fail_over`` %.

    Beside each the verdict over all rounds, where that is another one or its ratio lies outside the
    interval.
    """
    found = _verdicts(cases, fail_over)
    if not all(case.of_all_rounds for case in cases):
        return found
    others = _verdicts([case.of_all_rounds for case in cases if case.of_all_rounds], None)
    return [
        replace(one, all_rounds=other if _differ(one, other) else None)
        for one, other in zip(found, others, strict=True)
    ]


def _differ(one: CaseVerdict, other: CaseVerdict) -> bool:
    assert one.ratio
    assert other.ratio
    moved = {"slower", "faster"} & {one.verdict, other.verdict}
    return (
        bool(moved and one.verdict != other.verdict)
        or not one.ratio.floor <= other.ratio.value <= one.ratio.ceiling
    )


def _verdicts(cases: Sequence[CaseSamples], fail_over: float | None) -> list[CaseVerdict]:
    if all(c.paired for c in cases):
        trials = decide.paired_shifts([c.differences for c in cases])
    else:
        sides = [c.slopes[0] for c in cases], [c.slopes[1] for c in cases]
        trials = decide.side_shifts(*sides, paces=[c.paces for c in cases])
    p = [trial.p() for trial in trials]
    past = [trial.p_over(math.log1p((fail_over or 0.0) / 100)) for trial in trials]
    levels, gates = decide.holm_levels(p), decide.holm_levels(past)
    found = []
    for i, (one, trial) in enumerate(zip(cases, trials, strict=True)):
        moved: Verdict = "slower" if trial.centre > 0 else "faster"
        still: Verdict = (
            "same"
            if max(map(abs, trial.interval(ALPHA))) <= math.log1p(_SAME_WITHIN)
            else "undecided"
        )
        base_ns, new_ns = (
            math.exp(np.mean([s.slopes.mean() for s in side])) for side in (one.base, one.new)
        )
        times, low, high = map(math.exp, (trial.centre, *trial.interval(levels[i])))
        hidden = (
            still == "undecided"
            and p[i] > levels[i]
            and trial.within
            and trial.within.p() <= levels[i]
        )
        found.append(
            replace(
                one.case,
                verdict=moved if p[i] <= levels[i] else still,
                base_ns=base_ns,
                new_ns=new_ns,
                reason=because("only-between-runs") if hidden else "",
                ratio=Value(times, low, high),
                smallest=math.expm1(min(trial.smallest(ALPHA / len(trials)), _LARGEST_LOG)),
                p=p[i],
                failed=fail_over is not None and past[i] <= gates[i],
            )
        )
    return found


def yardstick_of(cases: Sequence[CaseSamples], in_turn: YardstickKind = "in-turn") -> Yardstick:
    """The spread that the verdicts assume. ``in_turn``: the kind for both sides measured in
    turn.
    """
    if not cases:
        return Yardstick("nothing-tested")
    if cases[0].paired:
        return Yardstick(
            in_turn, statistics.median(float(case.differences.std(ddof=1)) for case in cases)
        )
    several = [
        case.slopes for case in cases if len(case.base) + len(case.new) - 2 >= decide.LEAST_RUNS_DF
    ]
    if not several:
        paced = all(case.paces for case in cases)
        floor = decide.PACED_FLOOR if paced and len(cases) < decide.MODERATE_FROM else decide.FLOOR
        return Yardstick("one-run", floor, same_speed=paced)
    base, new = max(several, key=lambda sides: len(sides[0]) + len(sides[1]))
    spread = statistics.median(math.sqrt(decide.variance_between_runs(*sides)) for sides in several)
    return Yardstick("several-runs", spread, (len(base), len(new)))
