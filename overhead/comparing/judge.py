"""Give each case of two sides a verdict: refuse different cases, explain missing ones, test the
others.

All cases are tested together, because the correction and the spread between runs need all of them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead.comparing import decide
from overhead.comparing.decide import ALPHA, LoopTimes, Runs, Shifts
from overhead.comparing.pairing import (
    ABSENT,
    CasePair,
    RunPair,
    VariantPair,
    pair_cases,
    read_variants,
    runs_taken_together,
    samples_in_turn,
    why_incomparable,
    window_changes,
)
from overhead.comparing.sides import FIGURE, Sampled, Side, SideCase
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
"""A case is the same if its uncorrected interval lies within this relative difference. Chosen, not
measured: with less, more cases are undecided.
"""


def verdicts(base: Side, new: Side, fail_over: float | None) -> Verdicts:
    """The verdict on every case that either side has, in the order of BASE, then of NEW. Most
    verdicts come from one test of all cases together; a case that one side lacks, or that cannot be
    tested, gets its reason. Sides of two machines, or that share a run, are not tested at all.
    """
    # ``because`` makes a reason from a code; its sentence is made where it is shown.
    same_machine = base.machine.id == new.machine.id
    untestable: Why = "" if same_machine else because("two-machines")
    # A run of BASE that NEW holds too would be tested against itself.
    shared = base.held_too(new)
    if shared is not None:
        untestable = because("run-on-both-sides", file=plain(shared.path.name))
    # First each case alone: it gets a verdict, or its samples are collected for the test
    # (``CaseSamples``, which ``_to_test`` picks out below). ``runs_taken_together``: pairs of runs
    # that one command measured in turn.
    preparation = _Preparation(base, new, runs_taken_together(base, new), untestable)
    prepared = [preparation.of_pair(pair) for pair in pair_cases(base, new)]

    # What spread the test assumes; of two machines there is none.
    yardstick = Yardstick("two-machines")
    if same_machine:
        yardstick = yardstick_of(_to_test(prepared))
    # What differs between the sides is told by their newest runs. The test is in ``_tested``.
    newest_base = base.runs[-1].fingerprint
    newest_new = new.runs[-1].fingerprint
    cases = _tested(prepared, fail_over)
    skipped = (*base.skipped, *new.skipped)
    return Verdicts(
        base=_names(base, new),
        new=_names(new, base),
        same_machine=same_machine,
        differences=_differences(newest_base, newest_new),
        yardstick=yardstick,
        fail_over=fail_over,
        cases=cases,
        skipped=skipped,
        machines=(base.machine, new.machine),
    )


def verdicts_across(run: Side, asked: str, fail_over: float | None) -> Verdicts:
    """The verdict on every pair of variants of a case, such as ``wait=event`` against
    ``wait=stream``, both of which each process of ``run`` measured. ``asked``: the axis and values,
    as in ``read_variants``. A variant that no case pairs with the first one is listed as skipped.

    Raises ``UsageError`` if no case is as asked.
    """
    variants = read_variants(asked, run)
    base, *others = variants.names
    # Variants without a partner in any case are only listed.
    paired = {pair.new.name for pair in variants.pairs}
    alone = []
    for name in others:
        if name not in paired:
            alone.append(SkippedRun(name, because("variant-alone", base=base)))

    # Both variants of a pair were measured in the same processes, so each run is its own partner.
    in_turn = [RunPair(each, each) for each in run.runs]
    preparation = _Preparation(run, run, in_turn, untestable="")
    prepared = [preparation.of_variants(variants.axis, pair) for pair in variants.pairs]
    new = [name for name in others if name in paired]
    yardstick = yardstick_of(_to_test(prepared), "same-processes")
    cases = _tested(prepared, fail_over)
    return Verdicts(
        base=(base,),
        new=tuple(new),
        same_machine=True,
        differences=(),
        yardstick=yardstick,
        fail_over=fail_over,
        cases=cases,
        skipped=(*alone, *run.skipped),
        inside=_names(run),
    )


def _to_test(prepared: Sequence[CaseVerdict | CaseSamples]) -> list[CaseSamples]:
    """The cases that have no verdict yet, because only a test gives it."""
    return [case for case in prepared if isinstance(case, CaseSamples)]


def _tested(
    prepared: Sequence[CaseVerdict | CaseSamples], fail_over: float | None
) -> tuple[CaseVerdict, ...]:
    """The verdict on every case, in the same order: those that were given without a test stay, the
    others come from the test of all of them together.
    """
    # The results come in the order of the cases that have samples.
    by_test = iter(verdicts_by_test(_to_test(prepared), fail_over))
    # ``CaseSamples``: a case that is still to be tested, with its samples.
    verdicts = []
    for case in prepared:
        verdicts.append(next(by_test) if isinstance(case, CaseSamples) else case)
    return tuple(verdicts)


def _names(side: Side, other: Side | None = None) -> tuple[str, ...]:
    """The file names of the side's runs, safe to print; with their folder if the other side has a
    file of the same name, so that a reader can tell them apart.
    """
    # ``plain``, at the end: without control characters, which a name of a file may have.
    names = [run.path.name for run in side.runs]
    other_runs = other.runs if other is not None else ()
    names_of_other = {run.path.name for run in other_runs}
    if not names_of_other.isdisjoint(names):
        paths = [run.path for run in side.runs]
        names = [f"{path.parent.name}/{path.name}" for path in paths]
    return tuple(map(plain, names))


@dataclass(frozen=True)
class _Preparation:
    """Gives a case its verdict if it needs no test, else collects the samples for the test of all
    cases.

    ``in_turn``: the runs that one command measured in turn; empty if the sides were not.
    ``untestable``: why no case of these sides can be tested, or ''.
    """

    base: Side
    new: Side
    in_turn: Sequence[RunPair]
    untestable: Why

    def of_pair(self, pair: CasePair) -> CaseVerdict | CaseSamples:
        """A case of both sides, or of one: its verdict if it needs no test, else its samples for
        the test. On another machine the same case may have a device of another name, which the
        verdict then names too.
        """
        if pair.base is None:
            assert pair.new is not None
            return _only_on_one_side(pair.new, "only in NEW", lacking=self.base)
        if pair.new is None:
            return _only_on_one_side(pair.base, "only in BASE", lacking=self.new)
        # Both sides have the case: a verdict still without a result, named as in BASE.
        so_far = _undecided(pair.base)
        new_target = _undecided(pair.new).target
        if new_target != so_far.target:
            so_far = replace(so_far, target_new=new_target)
        # '' if both sides timed the same thing with the same kernels.
        refused = why_incomparable(pair.base, pair.new)
        return self._of_both(so_far, pair.base, pair.new, refused)

    def of_variants(self, axis: str, pair: VariantPair) -> CaseVerdict | CaseSamples:
        """Two variants of a case inside a run, which differ on the parameter ``axis``: the verdict
        if they need no test, else their samples for the test. What they time differently besides is
        noted in the verdict; only another unit is refused, and a variant that differs between the
        runs.
        """
        base = pair.base
        new = pair.new
        of_base = _undecided(base)
        other_changes = window_changes(axis, base.record, new.record)
        # The verdict is that on the other variant (NEW), beside the key of the first one. Its names
        # are those of the first one; ``variant`` names what differs.
        so_far = replace(
            _undecided(new),
            target=of_base.target,
            pattern=of_base.pattern,
            caller=of_base.caller,
            variant=new.name,
            against=base.key,
            also=other_changes,
        )
        base_unit = base.record.unit
        new_unit = new.record.unit
        if base_unit != new_unit:
            refused: Why = because(
                "unit-differs", one=base.name, other=new.name, mine=base_unit, theirs=new_unit
            )
        else:
            # Each variant alone: its runs must have measured the same thing.
            refused = why_incomparable(base) or why_incomparable(new)
        return self._of_both(so_far, base, new, refused)

    def _of_both(
        self, so_far: CaseVerdict, base: SideCase, new: SideCase, refused: Why
    ) -> CaseVerdict | CaseSamples:
        """A case that both sides have: its verdict if it needs no test, else its samples for the
        test. ``so_far``: the verdict without a result; ``refused``: why both sides measure
        different things, or ''. A run that did not do its work, or a side without a value, also
        prevents a test.

        The values and their ratio are shown also where no test follows.
        """
        base_value = base.value
        new_value = new.value
        is_broken = bool(base.unproven or new.unproven)
        is_measured = base_value is not None or new_value is not None
        # A value on one side only; a case that failed is not missing. ``unproven``: the runs in
        # which the case failed, or in which nothing proves that its work was done.
        is_missing = (base_value is None) != (new_value is None) and not is_broken
        left_out = (*_runs_left_out(base), *_runs_left_out(new))
        so_far = replace(so_far, verdict="not tested", left_out=left_out)
        so_far = replace(so_far, measured=is_measured, missing=is_missing)
        # The first of these that applies ends it. ``measured`` and ``missing`` are for a gate.
        if refused:
            return replace(so_far, verdict="refused", reason=refused)
        if base_value is None:
            return replace(so_far, reason=_why_no_value(base))
        if new_value is None:
            return replace(so_far, reason=_why_no_value(new))
        if is_broken:
            return replace(so_far, reason=_why_unproven(base if base.unproven else new))

        base_ns = base_value.value
        if base_ns > 0:
            ratio = new_value / base_value
            # An interval of which one end is not known is not shown.
            if not ratio.bounded:
                ratio = Value(ratio.value)
            so_far = replace(so_far, base_ns=base_ns, new_ns=new_value.value, ratio=ratio)
        # Why no case of these sides can be tested, such as sides of two machines; '' if they can.
        if self.untestable:
            return replace(so_far, reason=self.untestable)
        return self._samples_of(so_far, base, new)

    def _samples_of(
        self, so_far: CaseVerdict, base: SideCase, new: SideCase
    ) -> CaseVerdict | CaseSamples:
        """The samples of a case with a value on both sides, for the test, or the verdict with the
        reason why they do not allow one: a file without raw samples, runs in turn of which no pair
        has values, or a side with one process, which has no spread.
        """
        runs = (*base.counted, *new.counted)
        # ``counted``: the runs in which the case has a value; others' samples count nowhere.
        for run in runs:
            if run.sampled is None:
                no_samples = because("no-raw-samples", file=plain(run.path.name))
                return replace(so_far, reason=no_samples)
        base_samples = base.samples
        new_samples = new.samples
        # Measured in turn: only pairs of runs in which both have a value.
        if self.in_turn:
            counted = []
            for pair in self.in_turn:
                if pair.base in base.counted and pair.new in new.counted:
                    counted.append(pair)
            if not counted:
                return replace(so_far, reason=because("no-pair-of-runs-with-values"))
            # Now with the processes of a pair at the same position.
            base_samples, new_samples = samples_in_turn(base.key, new.key, counted)
        # The reference loop is a loop in Python: two versions of it cannot be compared by its time.
        pythons = {run.fingerprint.versions.get("python") for run in runs}
        case = CaseSamples.of(
            so_far,
            base_samples,
            new_samples,
            bool(self.in_turn),
            at_same_speed=len(pythons) == 1,
        )
        # ``processes``: how many count on each side.
        if min(case.case.processes) < 2:
            return replace(case.case, reason=because("one-process-a-side"))
        return case


def _only_on_one_side(case: SideCase, verdict: Verdict, lacking: Side) -> CaseVerdict:
    """The verdict on a case that one side lacks, ``only in BASE`` or ``only in NEW``. The newest
    run of the lacking side may tell why, such as a stack that was not installed.
    """
    # A case without a value on its own side is not ``missing``: a gate has nothing to test there.
    reason = missing_record(lacking.runs[-1].fingerprint, case.record).why
    has_value = case.value is not None
    so_far = replace(_undecided(case), verdict=verdict, measured=has_value, missing=has_value)
    if not reason:
        return so_far
    return replace(so_far, reason=because("side-lacks-case", side=lacking.name, why=reason))


def _why_no_value(case: SideCase) -> Reason:
    """Why a side has no value. For a nonlinear one the reason says that a busy machine may be the
    cause: it bends a line, and another run may give a straight one.
    """
    # What the record itself says of the missing value. ``FIGURE``: the name of the compared figure,
    # the cost of one more unit. ``nonlinear``: the times of chains lie on no line.
    lacking = why(case.record, FIGURE)
    figure = case.record.figure(FIGURE)
    if figure is not None and figure.status == "nonlinear":
        return because("no-value-busy-machine", side=case.name, why=lacking)
    return because("no-value", side=case.name, why=lacking)


def _why_unproven(case: SideCase) -> Reason:
    """Why a case whose work was not done, or not proven, is not tested: how many runs of the side
    these are, and what the last of them says.
    """
    # ``why``: what the record, or its figure, says of the missing value.
    last = case.unproven[-1]
    reason = why(last.records[case.key], FIGURE)
    return because(
        "work-not-done",
        bad=len(case.unproven),
        runs=len(case.runs),
        side=case.name,
        last=last.path.name,
        why=reason,
    )


def _runs_left_out(case: SideCase) -> list[RunsLeftOut]:
    """The runs of a side in which the case has no value while others have one, with the reasons:
    they do not count, and a reader must know it. Empty if all count, or none.
    """
    # ``counted``: the runs in which the case has a value; ``refused``: those in which it has none.
    if not case.counted or not case.refused:
        return []
    refused = []
    for run in case.refused:
        reason = why(run.records[case.key], FIGURE)
        refused.append(RefusedRun(run.path.name, reason))
    return [RunsLeftOut(case.name, len(case.runs), tuple(refused))]


def _differences(base: Fingerprint, new: Fingerprint) -> tuple[Difference, ...]:
    """What differs between the newest runs of both sides besides the costs, for the line below the
    table: first the machine, then environment variables and versions, then the state of the
    machine.
    """
    # The fields of the machine have an order of their own; the others are sorted by name.
    base_machine = _machine_fields(base)
    differences = _differing(base_machine, _machine_fields(new), order=[*base_machine])
    differences += _differing(_variable_fields(base), _variable_fields(new))
    differences += _differing(base.versions, new.versions)
    differences += _differing(_state_fields(base), _state_fields(new))
    return tuple(differences)


def _differing(
    base: Mapping[str, object], new: Mapping[str, object], order: Sequence[str] | None = None
) -> list[Difference]:
    """Those fields that differ between the sides, in this order, or else sorted by name. A field
    that a side lacks counts as ``absent``.
    """
    differences = []
    # Without an order: every name of either side, sorted.
    for name in order or sorted({*base, *new}):
        base_value = base.get(name, ABSENT)
        new_value = new.get(name, ABSENT)
        if base_value != new_value:
            base_text = _field_text(base_value)
            new_text = _field_text(new_value)
            differences.append(Difference(plain(name), base_text, new_text))
    return differences


def _field_text(value: object) -> str:
    """The value of a field; a list, such as one text for each GPU, with commas."""
    if isinstance(value, list | tuple):
        return plain(", ".join(map(str, value)))
    return plain(str(value))


def changed_versions(base: Fingerprint, new: Fingerprint) -> list[Difference]:
    """The versions that differ between two runs."""
    return _differing(base.versions, new.versions)


def _machine_fields(fingerprint: Fingerprint) -> dict[str, object]:
    """What describes the machine of a run, by name, to list what differs between two sides; also
    the profile (what the run measured, and for how long), which is told beside it.
    """
    machine = fingerprint.machine
    gpus = ", ".join(gpu.name for gpu in machine.gpus)
    return {
        "id": machine.id,
        "cpu": machine.cpu,
        "cores": machine.cores,
        "memory_gib": machine.memory_gib,
        "gpus": gpus or "none",
        "profile": fingerprint.profile,
    }


def _variable_fields(fingerprint: Fingerprint) -> dict[str, str]:
    """The environment variables that the run set, named so that they differ from versions."""
    return {f"variable {name}": value for name, value in fingerprint.environment.items()}


def _state_fields(fingerprint: Fingerprint) -> dict[str, object]:
    """The state of the machine without measured values, which always differ."""
    state: dict[str, object] = {}
    for name, value in fingerprint.volatile.items():
        if not isinstance(value, float):
            state[name] = value
    return state


def _undecided(case: SideCase) -> CaseVerdict:
    """A verdict on the case without a result yet: its key and names, to which the test or a reason
    is added.
    """
    # The record and its names are those of the newest run of the side.
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
    form a pair. ``loop_times``: the speed of the processor, to compare one run a side at the same
    speed. ``of_all_rounds``: the same samples over all rounds, at the speeds that they had.
    """

    case: CaseVerdict
    base: tuple[Sampled, ...]
    new: tuple[Sampled, ...]
    paired: bool
    loop_times: LoopTimes | None = None
    of_all_rounds: CaseSamples | None = None

    @classmethod
    def of(
        cls,
        case: CaseVerdict,
        base: Sequence[Sampled],
        new: Sequence[Sampled],
        paired: bool,
        *,
        at_same_speed: bool = True,
    ) -> CaseSamples:
        """The samples of a case for the test, over the rounds that its figures count. ``paired``:
        the sides were measured in turn. ``at_same_speed``: both sides ran the same Python, so the
        reference loop, which is a loop in Python, shows the speed of the processor on both.

        Also the same samples over all rounds, whose verdict is shown where it differs.
        """
        # By run a mask of the processes that have enough undisturbed rounds. ``_undisturbed`` takes
        # the processes of a mask, or all over all rounds where too few would be left.
        base_masks = [run.counted for run in base]
        new_masks = [run.counted for run in new]
        if paired:
            # A pair counts only if both of its processes do.
            base_masks = [mine & theirs for mine, theirs in zip(base_masks, new_masks, strict=True)]
            new_masks = base_masks
        base_runs = tuple(map(_undisturbed, base, base_masks))
        new_runs = tuple(map(_undisturbed, new, new_masks))
        processes = _processes_in(base_runs), _processes_in(new_runs)
        case = replace(case, processes=processes, runs=(len(base_runs), len(new_runs)))

        # With several runs a side the test counts runs instead of processes.
        tests_runs = decide.shows_spread_of_runs(len(base_runs), len(new_runs))
        # Pairs and several runs show how the speed differs; one run a side does not.
        loop_times = None
        if at_same_speed and not paired and not tests_runs and min(processes) > 1:
            base_times = np.concatenate([run.loop_time for run in base_runs])
            new_times = np.concatenate([run.loop_time for run in new_runs])
            loop_times = decide.comparable_loop_times(base_times, new_times)
        # The same processes over all their rounds, for the second verdict.
        base_over_all = tuple(run.of_all_rounds for run in base)
        new_over_all = tuple(run.of_all_rounds for run in new)
        over_all_rounds = cls(case, base_over_all, new_over_all, paired)
        return cls(case, base_runs, new_runs, paired, loop_times, over_all_rounds)

    @property
    def base_slopes(self) -> Runs:
        """For BASE: ``ln(ns per unit)`` of each process, one array for each run."""
        return [run.slopes for run in self.base]

    @property
    def new_slopes(self) -> Runs:
        """For NEW: ``ln(ns per unit)`` of each process, one array for each run."""
        return [run.slopes for run in self.new]

    @property
    def differences(self) -> decide.FloatArray:
        """``ln(NEW / BASE)`` of each pair of processes, for cases measured in turn."""
        return np.concatenate(self.new_slopes) - np.concatenate(self.base_slopes)


def _processes_in(runs: Sequence[Sampled]) -> int:
    return sum(run.numbers.size for run in runs)


def _undisturbed(sampled: Sampled, counted: Mask) -> Sampled:
    """The samples of the processes that are ``counted``, over the rounds that figures count; those
    of all processes over all rounds if too few would be left.
    """
    if has_enough_processes(int(counted.sum()), counted.size):
        return sampled.at(counted)
    return sampled.of_all_rounds


def verdicts_by_test(cases: Sequence[CaseSamples], fail_over: float | None) -> list[CaseVerdict]:
    """The verdict on each case, all tested together; it fails if its whole interval is slower by
    ``fail_over`` %.

    The rounds that figures leave out as disturbed are left out here too. So each verdict carries
    the one over all rounds, where that is another one or its ratio lies outside the interval.
    """
    judged = _judge_together(cases, fail_over)
    over_all_rounds = [case.of_all_rounds for case in cases if case.of_all_rounds is not None]
    # A caller may give a case without its samples over all rounds; then no case has that verdict.
    if len(over_all_rounds) < len(cases):
        return judged
    # Without a limit (None): only the first verdict can fail a gate.
    judged_over_all = _judge_together(over_all_rounds, None)
    found = []
    for verdict, over_all in zip(judged, judged_over_all, strict=True):
        differs = _tells_another_story(verdict, over_all)
        found.append(replace(verdict, all_rounds=over_all if differs else None))
    return found


def _tells_another_story(verdict: CaseVerdict, over_all: CaseVerdict) -> bool:
    """Whether a reader of the verdict should see the one over all rounds too: one of them says
    slower or faster and the other does not, or its ratio lies outside the interval.
    """
    # Cases that were tested have a ratio.
    assert verdict.ratio
    assert over_all.ratio
    one_is_changed = not {verdict.verdict, over_all.verdict}.isdisjoint(("slower", "faster"))
    if one_is_changed and verdict.verdict != over_all.verdict:
        return True
    interval = verdict.ratio
    return not interval.floor <= over_all.ratio.value <= interval.ceiling


def _judge_together(cases: Sequence[CaseSamples], fail_over: float | None) -> list[CaseVerdict]:
    """The verdict on each case. With many cases some would differ by chance, so Holm's procedure
    corrects for their number, twice: for the hypotheses of no change, and for those that a case is
    slower by at most ``fail_over`` %. A case fails (``failed``) if the latter is rejected.
    """
    # The shift of each case, ``ln(NEW / BASE)``: from pairs of processes, or from both sides as
    # they are. The cases of a comparison are all paired (measured in turn), or none is.
    if all(case.paired for case in cases):
        shifts = decide.paired_shifts([case.differences for case in cases])
    else:
        # By case the ln(ns per unit) of each process, an array for each run.
        base = [case.base_slopes for case in cases]
        new = [case.new_slopes for case in cases]
        loop_times = [case.loop_times for case in cases]
        shifts = decide.side_shifts(base, new, loop_times=loop_times)
    # ``fail_over`` % slower as a logarithm, like the shifts: ln(1 + fail_over / 100).
    limit = math.log1p((fail_over or 0.0) / 100)
    p_values = [shift.p() for shift in shifts]
    p_over_limit = [shift.p_over(limit) for shift in shifts]
    # By case the level that its p must not exceed, for both families of hypotheses.
    levels = decide.holm_levels(p_values)
    gate_levels = decide.holm_levels(p_over_limit)

    verdicts = []
    for i, (case, shift) in enumerate(zip(cases, shifts, strict=True)):
        is_over_limit = fail_over is not None and p_over_limit[i] <= gate_levels[i]
        verdict = _verdict_by_shift(case, shift, p_values[i], levels[i], number_of_cases=len(cases))
        verdicts.append(replace(verdict, failed=is_over_limit))
    return verdicts


def _verdict_by_shift(
    case: CaseSamples, shift: Shifts, p: float, level: float, number_of_cases: int
) -> CaseVerdict:
    """The verdict on a case whose shift, ``ln(NEW / BASE)``, has this p value. ``level``: of its
    test after Holm's correction for ``number_of_cases``, so that the interval of the ratio excludes
    1 exactly if there is a verdict.
    """
    # For ``same`` the uncorrected interval counts, at ``ALPHA``: the end of it that is farther from
    # no change, as a logarithm, must be within 5 %.
    widest = max(map(abs, shift.interval(ALPHA)))
    verdict: Verdict = "undecided"
    reason: Why = ""
    if p <= level:
        verdict = "slower" if shift.centre > 0 else "faster"
    elif widest <= math.log1p(_SAME_WITHIN):
        verdict = "same"
    elif shift.within and shift.within.p() <= level:
        # The processes alone show the change; only the allowance for runs hides it.
        reason = because("only-between-runs")

    # Shifts are logarithms: as a ratio of NEW to BASE they are raised to e.
    log_low, log_high = shift.interval(level)
    times = math.exp(shift.centre)
    ratio = Value(times, math.exp(log_low), math.exp(log_high))
    # The first case that Holm's procedure tests has this level, the strictest of all.
    log_detectable = shift.smallest_detectable(ALPHA / number_of_cases)
    # As a share of the cost: e to this power, less 1; ``_LARGEST_LOG`` keeps it from overflowing.
    smallest_share = math.expm1(min(log_detectable, _LARGEST_LOG))
    base_ns = _geometric_mean_ns(case.base)
    new_ns = _geometric_mean_ns(case.new)
    judged = replace(case.case, verdict=verdict, reason=reason, base_ns=base_ns, new_ns=new_ns)
    return replace(judged, ratio=ratio, smallest=smallest_share, p=p)


def _geometric_mean_ns(runs: Sequence[Sampled]) -> float:
    """The cost of a side, ns per unit: each run counts once, however many processes it has."""
    means = [run.slopes.mean() for run in runs]
    return math.exp(np.mean(means))


def yardstick_of(cases: Sequence[CaseSamples], in_turn: YardstickKind = "in-turn") -> Yardstick:
    """The spread that the verdicts assume, which is shown below the table so that a reader can
    judge them: of the pairs of processes, of the runs, or an assumed one where each side has too
    few runs. ``in_turn``: the kind for both sides measured in turn.
    """
    if not cases:
        return Yardstick("nothing-tested")
    # The cases of a comparison are all paired, or none is.
    if cases[0].paired:
        deviations = [float(case.differences.std(ddof=1)) for case in cases]
        return Yardstick(in_turn, statistics.median(deviations))

    # Cases whose spread between runs was seen; without any, the assumed one is told.
    several_runs = []
    for case in cases:
        if decide.shows_spread_of_runs(len(case.base), len(case.new)):
            several_runs.append(case)
    if not several_runs:
        same_speed = all(case.loop_times for case in cases)
        few_cases = len(cases) < decide.MODERATE_FROM
        # Few cases at the same speed of the processor assume a lower spread, as ``decide`` does.
        floor = decide.SAME_SPEED_FLOOR if same_speed and few_cases else decide.FLOOR
        return Yardstick("one-run", floor, same_speed=same_speed)

    # The numbers of runs told are those of the case that has most.
    with_most_runs = max(several_runs, key=lambda case: len(case.base) + len(case.new))
    deviations = []
    for case in several_runs:
        variance = decide.variance_between_runs(case.base_slopes, case.new_slopes)
        deviations.append(math.sqrt(variance))
    runs = len(with_most_runs.base), len(with_most_runs.new)
    return Yardstick("several-runs", statistics.median(deviations), runs)
