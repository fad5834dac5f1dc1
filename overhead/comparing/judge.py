"""Give each case of two sides a verdict: refuse different cases, explain missing ones, test the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from overhead.comparing.calls import Untested, tested, yardstick
from overhead.comparing.pairing import ABSENT, in_turn, match, refusal, together
from overhead.comparing.sides import FIGURE, Run, Side, SideCase
from overhead.comparing.variants import read_variants, window_changes
from overhead.comparing.verdicts import CaseVerdict, Difference, Verdicts
from overhead.reading.format import plain
from overhead.reading.missing_values import missing_record, why
from overhead.reading.view import CALLER_WORDS
from overhead.results import Fingerprint, Value


def verdicts(base: Side, new: Side, fail_over: float | None) -> Verdicts:
    """The verdict on every case of either side, in BASE's order, then NEW's."""
    runs = together(base, new)
    same_machine = base.machine.id == new.machine.id
    opened = [_opened(b, n, base, new, runs, same_machine) for b, n in match(base, new)]
    untested = [one for one in opened if isinstance(one, Untested)]
    return Verdicts(
        base=_names(base, new),
        new=_names(new, base),
        same_machine=same_machine,
        differences=tuple(_differences(base.runs[-1].fingerprint, new.runs[-1].fingerprint)),
        yardstick=yardstick(untested) if same_machine else "two machines: ratios and no test",
        fail_over=fail_over,
        cases=_closed(opened, fail_over),
        skipped=_skipped(base, new),
    )


def verdicts_across(run: Side, asked: str, fail_over: float | None) -> Verdicts:
    """The verdict on every pair of variants in the runs of one side; raises ``UsageError`` as ``read_variants``.

    Every process of a run measured both cases of a pair.
    """
    variants = read_variants(asked, run)
    paired = {new.name for _, new in variants.pairs}
    base, *others = variants.names
    opened = []
    for b, n in variants.pairs:
        blank = replace(
            _blank(n),
            against=b.key,
            label=f"{_blank(b).label} \u2192 {plain(n.name)}",
            also=plain(window_changes(variants.axis, b.record, n.record)),
        )
        units = [case.record.unit for case in (b, n)]
        if units[0] != units[1]:
            refused = f"unit differs between {b.name} and {n.name}: {units[0]} and {units[1]}"
        else:
            refused = refusal(b) or refusal(n)
        opened.append(_both(blank, b, n, refused, [(one, one) for one in run.runs]))
    alone = [
        plain(f"{name}: none of its cases is equal to one with {base} on all other axes")
        for name in others
        if name not in paired
    ]
    return Verdicts(
        base=(base,),
        new=tuple(name for name in others if name in paired),
        same_machine=True,
        differences=(),
        yardstick=yardstick(
            [one for one in opened if isinstance(one, Untested)], " in the same processes, whose ratios differ"
        ),
        fail_over=fail_over,
        cases=_closed(opened, fail_over),
        skipped=(*alone, *_skipped(run)),
        inside=_names(run),
    )


def _closed(opened: Sequence[CaseVerdict | Untested], fail_over: float | None) -> tuple[CaseVerdict, ...]:
    """All verdicts in the same order."""
    found = iter(tested([one for one in opened if isinstance(one, Untested)], fail_over))
    return tuple(next(found) if isinstance(one, Untested) else one for one in opened)


def _skipped(*sides: Side) -> tuple[str, ...]:
    return tuple(plain(f"{s.path.name}: {s.reason}") for side in sides for s in side.skipped)


def _names(side: Side, other: Side | None = None) -> tuple[str, ...]:
    """The file names of the side, with their folder if the other side has a file of the same name."""
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
    same_machine: bool,
) -> CaseVerdict | Untested:
    """The verdict if the case needs no test, else the input of the test. ``runs``: those that were taken together."""
    if base_case is not None and new_case is not None:
        refused = refusal(base_case, new_case)
        return _both(_blank(base_case), base_case, new_case, refused, runs, same_machine)
    only, other = (new_case, base) if base_case is None else (base_case, new)
    assert only is not None
    lacking = missing_record(other.runs[-1].fingerprint, only.record).text
    reason = f"only in {only.name}" + (plain(f"; {other.name}: {lacking}") if lacking else "")
    has_value = only.value is not None
    return replace(_blank(only), reason=reason, measured=has_value, missing=has_value)


def _both(
    blank: CaseVerdict,
    base: SideCase,
    new: SideCase,
    refused: str,
    runs: Sequence[tuple[Run, Run]],
    same_machine: bool = True,
) -> CaseVerdict | Untested:
    """The same for a case that both sides have. ``refused``: why they cannot be compared, or ''."""
    below, above = base.value, new.value
    blank = replace(blank, measured=bool(below or above), missing=(below is None) != (above is None))
    if refused:
        return replace(blank, verdict="refused", reason=plain(refused))
    if below is None or above is None:
        lacking = base if below is None else new
        return replace(blank, reason=f"no value in {lacking.name}: {why(lacking.record, FIGURE)}")
    if below.value > 0:
        ratio = above / below
        ratio = ratio if ratio.bounded else Value(ratio.value)
        blank = replace(blank, base_ns=below.value, new_ns=above.value, ratio=ratio)
    if not same_machine:
        return replace(blank, verdict="not tested", reason="BASE and NEW are two machines")
    unsampled = [run.path.name for run in (*base.runs, *new.runs) if run.sampled is None]
    if unsampled:
        return replace(blank, reason=f"no raw samples beside {plain(unsampled[0])}, so there is no test")
    held = in_turn(base.key, new.key, runs) if runs else (base.samples, new.samples)
    counts = [sum(s.slopes.size for s in samples) for samples in held]
    counted = replace(blank, processes=(counts[0], counts[1]), runs=(len(held[0]), len(held[1])))
    if min(counts) < 2:
        return replace(counted, reason="one process a side: no spread is known")
    return Untested(counted, *held, paired=bool(runs))


def _differences(base: Fingerprint, new: Fingerprint) -> list[Difference]:
    """The fields that differ: first the machine, then variables, versions, then the state of the machine."""
    machine, *others = zip(_described(base), _described(new), strict=True)
    fields = [(field, value, machine[1][field]) for field, value in machine[0].items()]
    for mine, theirs in others:
        fields += [(key, mine.get(key, ABSENT), theirs.get(key, ABSENT)) for key in sorted({*mine, *theirs})]
    return [Difference(plain(f), plain(str(b)), plain(str(n))) for f, b, n in fields if b != n]


def _described(fingerprint: Fingerprint) -> list[dict[str, object]]:
    """The machine, the variables that the run set, the versions, and the state without measured values.

    A variable is named so that it differs from a version; measured values always differ.
    """
    own = fingerprint.machine
    machine = {"id": own.id, "cpu": own.cpu, "cores": own.cores, "memory_gib": own.memory_gib}
    gpus = ", ".join(gpu.name for gpu in own.gpus) or "none"
    variables = {f"variable {name}": value for name, value in fingerprint.environment.items()}
    state = {key: value for key, value in fingerprint.volatile.items() if not isinstance(value, float)}
    return [
        {**machine, "gpus": gpus, "profile": fingerprint.profile},
        {**variables},
        {**fingerprint.versions},
        {**state},
    ]


def _blank(case: SideCase) -> CaseVerdict:
    """An undecided verdict with the case in words."""
    record = case.record
    target = case.runs[-1].view.target(record)
    label = plain(f"{target.label}: {target.pattern_label(record)}, {CALLER_WORDS[record.caller]}")
    return CaseVerdict(case.key, label, "undecided", target=plain(target.label))
