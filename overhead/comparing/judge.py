"""Give each case of two sides a verdict: refuse different cases, explain missing ones, test the others."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead.comparing import decide
from overhead.comparing.calls import BothSides, Decision, decisions, run_spread
from overhead.comparing.pairing import ABSENT, in_turn, match, refusal, together
from overhead.comparing.sides import FIGURE, Run, Sampled, Side
from overhead.comparing.variants import Variants, why_refused, window_changes
from overhead.comparing.verdicts import CaseVerdict, Difference, Verdicts
from overhead.errors import UsageError
from overhead.reading.format import percent, plain
from overhead.reading.missing_values import missing_record, why
from overhead.reading.view import CALLER_WORDS
from overhead.results import Fingerprint, Record, Value, WithFigures

_MACHINE_FIELDS = ("id", "cpu", "cores", "memory_gib")


def verdicts(base: Side, new: Side, fail_over: float | None) -> Verdicts:
    """The verdict on every case of either side, in BASE's order, then NEW's."""
    pairs = together(base, new)
    cases, tested = _tested([_opened(base, b, new, n, pairs) for b, n in match(base, new)], fail_over)
    same_machine = _same_machine(base, new)
    return Verdicts(
        base=_names(base, new),
        new=_names(new, base),
        same_machine=same_machine,
        differences=tuple(_differences(base.runs[-1].fingerprint, new.runs[-1].fingerprint)),
        yardstick=_yardstick(tested) if same_machine else "two machines: ratios and no test",
        fail_over=fail_over,
        cases=cases,
        skipped=_skipped(base, new),
    )


def verdicts_across(run: Side, variants: Variants, fail_over: float | None) -> Verdicts:
    """The verdict on every pair of variants in the runs of one side. Raises ``UsageError`` if there is no pair."""
    found, (base_value, *values) = variants.pairs(run), variants.values
    base, news = variants.side(run, base_value), {value: variants.side(run, value) for value in values}
    paired = {value for _, _, value in found}
    alone = [
        plain(f"{side.name}: none of its cases is equal to one with {base.name} on all other axes")
        for value, side in news.items()
        if value not in paired
    ]
    if not found:
        others = " or ".join(side.name for side in news.values())
        raise UsageError(f"no case with {base.name} is equal to one with {others} on all other axes")
    opened = [_variant(base, b, news[value], n, variants.axis) for b, n, value in found]
    cases, tested = _tested(opened, fail_over)
    return Verdicts(
        base=(base.name,),
        new=tuple(news[value].name for value in values if value in paired),
        same_machine=True,
        differences=(),
        yardstick=_yardstick(tested, " in the same processes, whose ratios differ"),
        fail_over=fail_over,
        cases=cases,
        skipped=(*alone, *_skipped(run)),
        inside=_names(run),
    )


def _tested(
    opened: Sequence[CaseVerdict | _Open], fail_over: float | None
) -> tuple[tuple[CaseVerdict, ...], list[BothSides]]:
    """All verdicts in the same order, and the samples of the cases that were tested."""
    tested = [o.evidence for o in opened if isinstance(o, _Open)]
    calls = iter(decisions(tested, fail_over))
    return tuple(_closed(o, next(calls)) if isinstance(o, _Open) else o for o in opened), tested


def _same_machine(base: Side, new: Side) -> bool:
    return base.machine.id == new.machine.id


def _skipped(*sides: Side) -> tuple[str, ...]:
    return tuple(plain(f"{s.path.name}: {s.reason}") for side in sides for s in side.skipped)


def _names(side: Side, other: Side | None = None) -> tuple[str, ...]:
    """The file names of the side, with their folder if the other side has a file of the same name."""
    names = [run.path.name for run in side.runs]
    if other is not None and not {*names}.isdisjoint(run.path.name for run in other.runs):
        names = [f"{run.path.parent.name}/{run.path.name}" for run in side.runs]
    return tuple(map(plain, names))


@dataclass(frozen=True)
class _Open:
    """A case that needs a test."""

    case: CaseVerdict
    evidence: BothSides


def _opened(
    base: Side, base_key: str | None, new: Side, new_key: str | None, pairs: Sequence[tuple[Run, Run]]
) -> CaseVerdict | _Open:
    """The verdict if the case needs no test, else the input of the test. ``pairs``: runs that were taken together."""
    if base_key is None or new_key is None:
        only, key, other = (new, new_key or "", base) if base_key is None else (base, base_key, new)
        reason = f"only in {only.name}{_absence(only.record(key), other)}"
        return replace(_blank(only, key), reason=reason, measured=_has_value(only, key), missing=_has_value(only, key))
    refused = refusal(base, base_key, new, new_key)
    return _both(_blank(base, base_key), base, base_key, new, new_key, pairs, refused)


def _variant(base: Side, base_key: str, new: Side, new_key: str, axis: str) -> CaseVerdict | _Open:
    """The same for two cases of one run that differ on an axis. Every process of the run measured both."""
    blank = replace(
        _blank(new, new_key),
        against=base_key,
        label=f"{_blank(base, base_key).label} \u2192 {plain(new.name)}",
        also=plain(window_changes(axis, base.record(base_key), new.record(new_key))),
    )
    pairs = [(run, run) for run in base.runs]
    return _both(blank, base, base_key, new, new_key, pairs, why_refused(base, base_key, new, new_key))


def _both(
    blank: CaseVerdict,
    base: Side,
    base_key: str,
    new: Side,
    new_key: str,
    pairs: Sequence[tuple[Run, Run]],
    refused: str,
) -> CaseVerdict | _Open:
    """The same for a case that both sides have. ``refused``: why they cannot be compared, or ''."""
    have = _has_value(base, base_key), _has_value(new, new_key)
    blank = replace(blank, measured=any(have), missing=any(have) and not all(have))
    if refused:
        return replace(blank, verdict="refused", reason=plain(refused))
    sides = ((base, base_key), (new, new_key))
    for side, key in sides:
        if not _has_value(side, key):
            return replace(blank, reason=f"no value in {side.name}: {why(side.record(key), FIGURE)}")
    by_figures = _by_figures(blank, base.record(base_key), new.record(new_key))
    if not _same_machine(base, new):
        return replace(by_figures, verdict="not tested", reason="BASE and NEW are two machines")
    unsampled = [run.path.name for side, key in sides for run in side.of(key) if run.sampled is None]
    if unsampled:
        return replace(by_figures, reason=f"no raw samples beside {plain(unsampled[0])}, so there is no test")
    held = _in_turn(base_key, new_key, pairs) if pairs else [_held(side, key) for side, key in sides]
    counts = [sum(s.slopes.size for s in samples) for samples in held]
    counted = replace(by_figures, processes=(counts[0], counts[1]), runs=(len(held[0]), len(held[1])))
    if min(counts) < 2:
        return replace(counted, reason="one process a side: no spread is known")
    return _Open(counted, BothSides(held[0], held[1], paired=bool(pairs)))


def _has_value(side: Side, key: str) -> bool:
    return side.record(key).measured(FIGURE) is not None


def _closed(opened: _Open, found: Decision) -> CaseVerdict:
    base_ns = math.exp(float(np.mean([s.slopes.mean() for s in opened.evidence.base])))
    return replace(
        opened.case,
        verdict=found.verdict,
        base_ns=base_ns,
        new_ns=base_ns * math.exp(found.shift),
        ratio=Value(math.exp(found.shift), math.exp(found.low), math.exp(found.high)),
        smallest=math.expm1(found.smallest),
        p=found.p,
        failed=found.failed,
    )


def _held(side: Side, key: str) -> tuple[Sampled, ...]:
    found = [run.sampled[key] for run in side.of(key) if run.sampled is not None and key in run.sampled]
    return tuple(s for s in found if s.slopes.size)


def _in_turn(base_key: str, new_key: str, pairs: Sequence[tuple[Run, Run]]) -> list[tuple[Sampled, ...]]:
    """The samples of the case on each side. Processes with the same number have the same position."""
    held = [
        in_turn(base.sampled[base_key], new.sampled[new_key])
        for base, new in pairs
        if base.sampled and new.sampled and base_key in base.sampled and new_key in new.sampled
    ]
    return [tuple(one[i] for one in held if one[i].slopes.size) for i in (0, 1)]


def _by_figures(blank: CaseVerdict, base: Record, new: Record) -> CaseVerdict:
    """The ratio of the two figures, with the widest interval that their intervals allow."""
    below, above = (WithFigures.measured(record, FIGURE) for record in (base, new))
    if below is None or above is None or below.value <= 0:
        return blank
    times = above / below
    return replace(blank, base_ns=below.value, new_ns=above.value, ratio=times if times.bounded else Value(times.value))


def _yardstick(tested: list[BothSides], in_turn: str = "; pairs of processes differ") -> str:
    """A sentence on the run-to-run spread that the verdicts use. ``in_turn``: what differs if both were in turn."""
    if not tested:
        return "no case could be tested"
    spreads = [s for case in tested if (s := run_spread(case)) is not None]
    if spreads and tested[0].paired:
        spread = percent(statistics.median(spreads))
        return f"measured in turn{in_turn} by {spread} (standard deviation, the median case)"
    if not spreads:
        return (
            f"one run a side; the means of runs are assumed to spread by {percent(decide.FLOOR)} (standard deviation)"
        )
    widest = max(tested, key=lambda case: len(case.base) + len(case.new))
    runs = f"{len(widest.base)} and {len(widest.new)} runs"
    return f"{runs}; their means spread by {percent(statistics.median(spreads))} (standard deviation, the median case)"


def _differences(base: Fingerprint, new: Fingerprint) -> list[Difference]:
    """The fields that differ: first the machine, then variables, versions, then the state of the machine."""
    pairs: list[tuple[str, object, object]] = [
        (field, getattr(base.machine, field), getattr(new.machine, field)) for field in _MACHINE_FIELDS
    ]
    pairs += [("gpus", _gpus(base), _gpus(new)), ("profile", base.profile, new.profile)]
    of_run = (
        (_variables(base), _variables(new)),
        (base.versions, new.versions),
        (_state(base), _state(new)),
    )
    for mine, theirs in of_run:
        pairs += [(key, mine.get(key, ABSENT), theirs.get(key, ABSENT)) for key in sorted({*mine, *theirs})]
    return [Difference(plain(f), plain(str(b)), plain(str(n))) for f, b, n in pairs if b != n]


def _variables(fingerprint: Fingerprint) -> dict[str, object]:
    """The environment variables that the run set, named so that none has the name of a version."""
    return {f"variable {name}": value for name, value in fingerprint.environment.items()}


def _gpus(fingerprint: Fingerprint) -> str:
    return ", ".join(gpu.name for gpu in fingerprint.machine.gpus) or "none"


def _state(fingerprint: Fingerprint) -> dict[str, object]:
    """The state of the machine without measured values, because these always differ."""
    return {key: value for key, value in fingerprint.volatile.items() if not isinstance(value, float)}


def _blank(side: Side, key: str) -> CaseVerdict:
    """An undecided verdict with the case in words."""
    record = side.record(key)
    target = side.of(key)[-1].view.target(record)
    label = plain(f"{target.label}: {target.pattern_label(record)}, {CALLER_WORDS[record.caller]}")
    return CaseVerdict(key, label, "undecided", target=plain(target.label))


def _absence(record: Record, side: Side) -> str:
    """Why the last run of the side lacks this case, in words; '' if the run gives no reason."""
    text = missing_record(side.runs[-1].fingerprint, record).text
    return plain(f"; {side.name}: {text}") if text else ""
