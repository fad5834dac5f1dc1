"""Why a figure, a case or a stack has no value: the reason that the file of the run holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from overhead.results import (
    VALUED,
    Figure,
    Fingerprint,
    MissingStack,
    Record,
    Why,
    about,
    because,
    together,
)

_WHOLE_TARGET = "all"
"""In ``LeftOut.case``: the planner left the whole target out."""


@dataclasses.dataclass(frozen=True)
class MissingValue:
    """Why there is no value. ``status``: as the file has it, or ''; ``detail``: the reason that it
    holds, or ''.
    """

    status: str = ""
    detail: Why = ""

    @property
    def why(self) -> Why:
        """The detail with the status before it, or the one of them that is there; '' without
        both.
        """
        return about(self.status, self.detail)


def missing_figure(figure: Figure, record: Record | None = None) -> MissingValue:
    """Why the figure has no value; where it has no reason of its own, the reason of its record."""
    return MissingValue(figure.status, figure.reason or (record.reason if record else ""))


def missing_case(record: Record) -> MissingValue:
    """Why no figure of the record has a value: the record's reason, else those of its figures."""
    reasons = dict.fromkeys(figure.reason for figure in record.figures)
    return MissingValue(record.status, record.reason or together(*reasons))


def missing_figures(record: Record) -> dict[MissingValue, list[str]]:
    """For each reason the names of the record's figures that have no value for it."""
    names: dict[MissingValue, list[str]] = {}
    for figure in record.figures:
        if figure.measured is None:
            names.setdefault(missing_figure(figure), []).append(figure.name)
    return names


def missing_stack(fingerprint: Fingerprint, stack: str) -> MissingValue:
    """Why the run has no value of this stack: the reason why the stack is missing on this machine,
    else that of its first case, else that the run did not measure it.
    """
    # Of several reasons the first counts.
    for absent in absent_stacks(fingerprint, [stack]):
        return MissingValue(detail=absent.reason)
    for record in fingerprint.records:
        if record.stack == stack:
            return MissingValue(record.status, record.reason)
    return MissingValue(detail=because("not-measured-in-this-run"))


def absent_stacks(fingerprint: Fingerprint, stacks: Sequence[str]) -> list[MissingStack]:
    """The stacks among these that the run could not measure, in the file's order."""
    return [absent for absent in fingerprint.unavailable if absent.stack in stacks]


def by_mend(absent: Sequence[MissingStack]) -> dict[Why, list[MissingStack]]:
    """The missing stacks by the command that adds them; '' for those where none is known."""
    stacks: dict[Why, list[MissingStack]] = {}
    for stack in absent:
        stacks.setdefault(stack.mend, []).append(stack)
    return stacks


def missing_record(fingerprint: Fingerprint, like: Record) -> MissingValue:
    """Why this run has no record of a case that another run measured (``like``): its stack is
    missing here, or the planner left out the case or its whole target; else without a reason.
    """
    # Of several reasons the first counts.
    for absent in absent_stacks(fingerprint, [like.stack]):
        return MissingValue(detail=absent.reason)
    for left_out in fingerprint.left_out:
        # The plan left out one case, or (``_WHOLE_TARGET``) every case of the target.
        is_target = left_out.target == like.target_key
        if is_target and left_out.case in (_WHOLE_TARGET, like.case.key):
            return MissingValue(detail=left_out.reason)
    return MissingValue()


def why(record: Record, figure: str) -> Why:
    """Why the record (a case) has no value of that figure: the figure's own reason, else the
    record's; of a record that has other values, that the figure was not measured.
    """
    found = record.figure(figure)
    if found is not None:
        return missing_figure(found, record).why
    # The case itself was measured, so its status says nothing of this figure.
    # ``VALUED``: the statuses of a case that has a value.
    if record.status in VALUED:
        return because("not-measured")
    return MissingValue(record.status, record.reason).why
