"""Pair the cases of two sides, or of variants inside one run; refuse pairs that measure different
things.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from overhead.comparing.sides import Run, Sampled, Side, SideCase
from overhead.comparing.verdicts import Difference
from overhead.devices import processor_kind
from overhead.errors import UsageError, unknown_name
from overhead.results import Record, Scalar, Why, because, scalar_text

ABSENT = "absent"
_SHOWN_OF_HASH = 12
"""Characters of the hash of a kernel file: enough to tell two versions apart."""
_SINGULAR = re.compile(r"\b(1 node)s\b")
"""Earlier versions wrote "1 nodes" where files now say "1 node"."""


class CasePair(NamedTuple):
    """The same case in BASE and in NEW; None where a side lacks it."""

    base: SideCase | None
    new: SideCase | None


class RunPair(NamedTuple):
    """A run of BASE and a run of NEW that one command measured in turn."""

    base: Run
    new: Run


class SamplesOfSides(NamedTuple):
    """The samples of a case in each run of BASE and of NEW."""

    base: tuple[Sampled, ...]
    new: tuple[Sampled, ...]


def pair_cases(base: Side, new: Side) -> list[CasePair]:
    """Pairs of the same case of BASE and NEW; None where one side lacks it.

    Cases with equal keys form a pair. A key holds the name of the device, which another machine or
    driver may give differently. So of the other cases two form a pair if each is the only one on
    its side with this stack, API, kind of device and coordinates.
    """
    # The cases without a case of the same key on the other side, by what must be equal all the
    # same. ``partners``: by the key of a case of BASE, the case of NEW that is taken for the same.
    unmatched_base = _unmatched_by_kind(base, new)
    unmatched_new = _unmatched_by_kind(new, base)
    partners: dict[str, SideCase] = {}
    for kind, base_cases in unmatched_base.items():
        new_cases = unmatched_new.get(kind, [])
        if len(base_cases) == len(new_cases) == 1:
            partners[base_cases[0].key] = new_cases[0]

    # All cases of BASE in its order, then those that only NEW has.
    pairs = []
    for key, case in base.cases.items():
        same_case = new.cases.get(key) or partners.get(key)
        pairs.append(CasePair(case, same_case))
    taken = {case.key for case in partners.values()}
    for new_cases in unmatched_new.values():
        pairs += [CasePair(None, case) for case in new_cases if case.key not in taken]
    return pairs


def _unmatched_by_kind(side: Side, other: Side) -> dict[tuple[object, ...], list[SideCase]]:
    """The cases of a side whose keys the other side lacks, grouped by what two cases of different
    keys must share to be taken for the same: all but the name of the device.
    """
    kinds: dict[tuple[object, ...], list[SideCase]] = {}
    # ``processor_kind``: GPU or CPU. ``record.case.key``: the coordinates of the case alone, where
    # the key of the record also names the target.
    for key, case in side.cases.items():
        if key not in other.cases:
            record = case.record
            kind = (record.stack, record.api, processor_kind(record), record.case.key)
            kinds.setdefault(kind, []).append(case)
    return kinds


def runs_taken_together(base: Side, new: Side) -> list[RunPair]:
    """Pairs of runs of BASE and NEW that one command measured in turn, by the mark that it wrote
    into both; empty unless every run has exactly one partner, since the paired test needs all.
    """
    pairs = []
    for base_run in base.runs:
        for new_run in new.runs:
            if _taken_together(base_run, new_run):
                pairs.append(RunPair(base_run, new_run))
    # One partner each: as many pairs as runs on either side, and no run of NEW twice.
    different_new_runs = {id(pair.new) for pair in pairs}
    is_one_to_one = len(pairs) == len(base.runs) == len(different_new_runs)
    if is_one_to_one and len(pairs) == len(new.runs):
        return pairs
    return []


def _taken_together(base: Run, new: Run) -> bool:
    base_mark = base.fingerprint.together
    new_mark = new.fingerprint.together
    if base_mark is None or new_mark is None:
        return False
    return base_mark.id == new_mark.id and base_mark.side != new_mark.side


def samples_in_turn(base_key: str, new_key: str, runs: Iterable[RunPair]) -> SamplesOfSides:
    """The samples of a case in each pair of runs measured in turn, with paired processes at the
    same position, so that their difference can be taken.

    Processes with the same number form a pair. A worker that replaced a dead one has another
    number; such processes are paired in their order.
    """
    of_base = []
    of_new = []
    for run in runs:
        base_samples = (run.base.sampled or {}).get(base_key)
        new_samples = (run.new.sampled or {}).get(new_key)
        if base_samples is None or new_samples is None:
            continue
        aligned_base, aligned_new = _aligned(base_samples, new_samples)
        # Empty where one of both runs has no process with a value.
        if aligned_base.slopes.size:
            of_base.append(aligned_base)
            of_new.append(aligned_new)
    return SamplesOfSides(tuple(of_base), tuple(of_new))


def _aligned(base: Sampled, new: Sampled) -> tuple[Sampled, Sampled]:
    """The samples of two runs measured in turn, with the processes of a pair at the same position:
    first those whose numbers are equal, then the others in their order, as far as both sides have
    some.
    """
    # ``at_base``, ``at_new``: where the processes with a common number stand on each side.
    common, at_base, at_new = np.intersect1d(base.numbers, new.numbers, return_indices=True)
    rest_base = np.flatnonzero(~np.isin(base.numbers, common))
    rest_new = np.flatnonzero(~np.isin(new.numbers, common))
    more_pairs = min(rest_base.size, rest_new.size)
    # Equal positions of both lists are pairs.
    chosen_base = np.concatenate([at_base, rest_base[:more_pairs]])
    chosen_new = np.concatenate([at_new, rest_new[:more_pairs]])
    return base.at(chosen_base), new.at(chosen_new)


def why_incomparable(*cases: SideCase) -> Why:
    """Why these cases (of both sides, or the runs of one) measure different things: the field of
    the timed part or the kernel that differs, and both values. '' if they can be compared.

    A case that failed early has no window, that is, no record of what was timed. A fingerprint
    without raw samples lists the kernels of all its cases, so only the kernels that every run lists
    count.
    """
    # First what was timed (the window), then the kernels (by the hashes of their files).
    windows: list[_FieldsOfRun] = []
    for case in cases:
        for run in case.runs:
            record = run.records[case.key]
            if record.window:
                windows.append(_FieldsOfRun(case.name, _timed_fields(record)))
    differing = _first_difference(windows)
    if differing is not None:
        return _why_windows_differ(differing)
    differing = _first_difference(_kernels_of_all(cases))
    if differing is not None:
        return _why_kernels_differ(differing)
    return ""


def _why_windows_differ(differing: _DifferentField) -> Why:
    """The reason that two runs timed different things: the field, whose sides the runs are, and
    both values. Two runs of one side have a code of their own, since there is only one side to
    name.
    """
    if differing.one == differing.other:
        return because(
            "window-differs-on-a-side",
            field=differing.field,
            side=differing.one,
            mine=differing.mine,
            theirs=differing.theirs,
        )
    return because(
        "window-differs",
        field=differing.field,
        one=differing.one,
        other=differing.other,
        mine=differing.mine,
        theirs=differing.theirs,
    )


def _why_kernels_differ(differing: _DifferentField) -> Why:
    """The reason that two runs used different kernels: the file, whose sides the runs are, and the
    start of both hashes. Two runs of one side have a code of their own, since there is only one
    side to name.
    """
    if differing.one == differing.other:
        return because(
            "kernel-differs-on-a-side",
            file=differing.field,
            side=differing.one,
            mine=differing.mine,
            theirs=differing.theirs,
        )
    return because(
        "kernel-differs",
        file=differing.field,
        one=differing.one,
        other=differing.other,
        mine=differing.mine,
        theirs=differing.theirs,
    )


def _kernels_of_all(cases: Sequence[SideCase]) -> list[_FieldsOfRun]:
    """The kernel files that every run of these cases lists, with the first characters of their
    hashes, by run. A file that one run lacks tells nothing: it may be of another case.
    """
    # By run the side, and the hash of each kernel file. A run that does not list files of this case
    # is passed over.
    listed: list[tuple[str, Mapping[str, str]]] = []
    for case in cases:
        for run in case.runs:
            if case.key in run.kernels:
                listed.append((case.name, run.kernels[case.key]))
    if not listed:
        return []
    files_of_runs = [set(hashes) for _, hashes in listed]
    in_every_run = set.intersection(*files_of_runs)
    of_runs = []
    for side, hashes in listed:
        shown: dict[str, Scalar] = {file: hashes[file][:_SHOWN_OF_HASH] for file in in_every_run}
        of_runs.append(_FieldsOfRun(side, shown))
    return of_runs


def _timed_fields(record: Record) -> dict[str, Scalar]:
    """The fields of a record that say what was timed: those of the window, the unit, and whether
    CPU and device overlap. Texts of older versions are written as today's.
    """
    fields: dict[str, Scalar] = {}
    for name, value in record.window.items():
        # They wrote "1 nodes" where files now say "1 node".
        if isinstance(value, str):
            value = _SINGULAR.sub(r"\1", value)
        fields[name] = value
    return {**fields, "unit": record.unit, "overlap": record.overlap}


class _FieldsOfRun(NamedTuple):
    """The side of a run, and fields of it that must be equal in all runs."""

    side: str
    fields: Mapping[str, Scalar]


@dataclass(frozen=True)
class _DifferentField:
    """A field in which two runs differ. ``one`` and ``other``: their sides; the same one for two
    runs of it.
    """

    field: str
    one: str
    other: str
    mine: Scalar
    theirs: Scalar


def _first_difference(runs: Sequence[_FieldsOfRun]) -> _DifferentField | None:
    """The first field, by name, in which a run differs from the first run, with both values; None
    if all runs are equal.
    """
    for other in runs[1:]:
        first = runs[0]
        for field in sorted({*first.fields, *other.fields}):
            mine = first.fields.get(field, ABSENT)
            theirs = other.fields.get(field, ABSENT)
            if mine != theirs:
                return _DifferentField(field, first.side, other.side, mine, theirs)
    return None


class VariantPair(NamedTuple):
    """Two cases of one target that differ on one axis only."""

    base: SideCase
    new: SideCase


@dataclass(frozen=True)
class Variants:
    """An axis (a parameter of cases), its variants such as ``wait=event``, the base first, and the
    pairs of cases.

    Both cases of a pair are of one target and equal on all other axes.
    """

    axis: str
    names: list[str]
    pairs: list[VariantPair]


def read_variants(asked: str, run: Side) -> Variants:
    """The variants that ``--across`` asks for, and the pairs of cases that differ by them alone.
    ``asked``: ``wait=stream,event``, or ``wait`` for all its values in the order of the run,
    ``absent`` last. The first is the base that the others are compared with.

    The value ``absent`` stands for cases without the parameter. Raises ``UsageError``.
    """
    # Without ``=`` nothing is listed, which stands for all values.
    axis, _, listed = asked.partition("=")
    cases = [_CaseOnAxes.of(case) for case in run.cases.values()]
    values = _asked_values(asked, axis, listed, _values_by_axis(cases))

    # Groups of cases that are equal on all other axes; in a group, the case of each variant. The
    # key of a group is its target with the values on all axes but this one.
    groups: dict[tuple[object, ...], dict[str, SideCase]] = {}
    for case in cases:
        other_axes = dict(case.values)
        variant = f"{axis}={other_axes.pop(axis, ABSENT)}"
        equal_in = (case.case.record.target_key, *sorted(other_axes.items()))
        groups.setdefault(equal_in, {})[variant] = replace(case.case, name=variant)

    names = [f"{axis}={value}" for value in values]
    # In each group the base is paired with every other variant that the group has.
    base, *others = names
    pairs = []
    for group in groups.values():
        for other in others:
            if base in group and other in group:
                pairs.append(VariantPair(group[base], group[other]))
    if not pairs:
        raise UsageError(
            f"no case with {base} is equal to one with {' or '.join(others)} on all other axes"
        )
    return Variants(axis, names, pairs)


class _CaseOnAxes(NamedTuple):
    """A case, and its value on each axis as text."""

    case: SideCase
    values: dict[str, str]

    @classmethod
    def of(cls, case: SideCase) -> _CaseOnAxes:
        coordinates = case.record.case.coordinates
        return cls(case, {axis: scalar_text(value) for axis, value in coordinates.items()})


def _values_by_axis(cases: Sequence[_CaseOnAxes]) -> dict[str, list[str]]:
    """The values of each axis (a parameter of cases) on which the cases differ, in the order of the
    run; ``absent`` for cases without it. On other axes there is nothing to compare.
    """
    # A dict without values keeps the order in which the axes appear.
    axes: dict[str, None] = {}
    for case in cases:
        axes.update(dict.fromkeys(case.values))
    varied = {}
    for axis in axes:
        of_cases = [case.values.get(axis, ABSENT) for case in cases]
        # Each value once, in the order of the run.
        different = list(dict.fromkeys(of_cases))
        if len(different) > 1:
            varied[axis] = different
    return varied


def _asked_values(
    asked: str, axis: str, listed: str, known: Mapping[str, Sequence[str]]
) -> list[str]:
    """The values of the axis to compare: those ``listed`` with commas, or all that cases have.
    ``known``: the values of each axis. Raises ``UsageError`` for a name that no case has, and for
    fewer than two different values; ``asked`` is the text of the user.
    """
    if axis not in known:
        raise unknown_name("axis", axis, known)
    if listed:
        values = listed.split(",")
    else:
        # False sorts before True: a case without the parameter is a poor base.
        values = sorted(known[axis], key=lambda value: value == ABSENT)
    for value in values:
        if value not in known[axis]:
            raise unknown_name(f"value of {axis}", value, known[axis])
    # At least two values, and none of them named twice.
    if len(set(values)) < max(2, len(values)):
        raise UsageError(f"--across {asked}: name two or more different values")
    return values


def window_changes(axis: str, base: Record, new: Record) -> tuple[Difference, ...]:
    """What two variants timed differently besides the axis on which they are compared, such as
    ``submits``, 1 and 0: a reader must know what else the ratio contains.
    """
    # The window of a record says what was timed; a case that failed early has none.
    if not (base.window and new.window):
        return ()
    changes = []
    for name in sorted({*base.window, *new.window} - {axis}):
        base_value = base.window.get(name)
        new_value = new.window.get(name)
        if base_value != new_value:
            base_text = str(base.window.get(name, ABSENT))
            new_text = str(new.window.get(name, ABSENT))
            changes.append(Difference(name, base_text, new_text))
    return tuple(changes)
