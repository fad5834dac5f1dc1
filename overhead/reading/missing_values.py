"""Why there is no value: a reason from a closed set, and the detail as the file has it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from overhead.reading.format import plain
from overhead.results import VALUED, Figure, Fingerprint, LeftOut, MissingStack, Record


class Reason(enum.Enum):
    """Why there is no value, for every figure, case and stack."""

    NOT_INSTALLED = "not installed"
    NO_DEVICE = "no device"
    NOT_SUPPORTED = "not supported here"
    NO_TIME = "not measured for want of time"
    NOT_ASKED_FOR = "not asked for"
    NOT_MEASURED = "not measured"
    WRONG_VALUES = "wrong values"
    FAILED = "failed"
    BELOW_RESOLUTION = "below the clock's resolution"
    NOT_A_LINE = "not a line"
    NOT_USABLE = "a value that cannot be shown"


_WHOLE_TARGET = "all"
"""In ``LeftOut.case``: the planner left the whole target out, by the user's choice and not for want of time."""
_BY_STATUS = {
    "unavailable": Reason.NOT_SUPPORTED,
    "unverified": Reason.WRONG_VALUES,
    "failed": Reason.FAILED,
    "below-resolution": Reason.BELOW_RESOLUTION,
    "nonlinear": Reason.NOT_A_LINE,
}


@dataclasses.dataclass(frozen=True)
class MissingValue:
    """``status`` as the file has it, '' where the file has no entry for it; ``detail``: its reason, word for word."""

    reason: Reason
    status: str = ""
    detail: str = ""

    @property
    def text(self) -> str:
        """``status: detail``, or the one of them that is there."""
        return ": ".join(part for part in (self.status, self.detail) if part)


def missing_value(record: Record, figure: str) -> MissingValue:
    """Why the record has no such value. A figure without a reason of its own has the record's."""
    found = record.figure(figure)
    if found is None and record.status in VALUED:
        return MissingValue(Reason.NOT_MEASURED, detail="not measured")
    return missing_figure(found, record) if found else _by_status(record.status, record.reason)


def missing_figure(figure: Figure, record: Record | None = None) -> MissingValue:
    """Why the figure has no value; where it has no reason of its own, the reason of its record."""
    return _by_status(figure.status, figure.reason or (record.reason if record else ""))


def missing_case(record: Record) -> MissingValue:
    """Why no figure of the record has a value: the record's reason, else those of its figures."""
    reasons = dict.fromkeys(figure.reason for figure in record.figures if figure.reason)
    return _by_status(record.status, record.reason or "; ".join(reasons))


def missing_figures(record: Record) -> dict[MissingValue, list[str]]:
    """The names of the figures without a value, by why they have none."""
    found: dict[MissingValue, list[str]] = {}
    for figure in record.figures:
        if figure.measured is None:
            found.setdefault(missing_figure(figure), []).append(figure.name)
    return found


def missing_stack(fingerprint: Fingerprint, stack: str) -> MissingValue:
    """Why the run has no value of this stack: the stack's own reason, else that of its first case."""
    for absent in absent_stacks(fingerprint, [stack]):
        return _of_stack(absent)
    for record in fingerprint.records:
        if record.stack == stack:
            return _by_status(record.status, record.reason)
    return MissingValue(Reason.NOT_ASKED_FOR, detail="not measured in this run")


def absent_stacks(fingerprint: Fingerprint, stacks: Sequence[str]) -> list[MissingStack]:
    """The stacks among these that the run could not measure, in the file's order."""
    return [absent for absent in fingerprint.unavailable if absent.stack in stacks]


def by_mend(absent: Sequence[MissingStack]) -> dict[str, list[MissingStack]]:
    """The missing stacks by what adds them, so that each install command stands once; '' where nothing is known."""
    found: dict[str, list[MissingStack]] = {}
    for one in absent:
        found.setdefault(one.mend, []).append(one)
    return found


def missing_record(fingerprint: Fingerprint, like: Record) -> MissingValue:
    """Why the run has no such record: the stack is missing, or the planner left the case out."""
    for absent in absent_stacks(fingerprint, [like.stack]):
        return _of_stack(absent)
    for left in fingerprint.left_out:
        if left.target == like.target_key and left.case in (_WHOLE_TARGET, like.case.key):
            return MissingValue(_of_left_out(left), detail=left.reason)
    return MissingValue(Reason.NOT_ASKED_FOR)


def _by_status(status: str, detail: str) -> MissingValue:
    return MissingValue(_BY_STATUS.get(status, Reason.NOT_USABLE), status, detail)


def _of_stack(absent: MissingStack) -> MissingValue:
    """A stack that an install command would add is not installed; another has no device."""
    return MissingValue(Reason.NOT_INSTALLED if "install" in absent.mend else Reason.NO_DEVICE, detail=absent.reason)


def _of_left_out(left: LeftOut) -> Reason:
    return Reason.NOT_ASKED_FOR if left.case == _WHOLE_TARGET else Reason.NO_TIME


def why(record: Record, figure: str) -> str:
    """Why the record has no such value, as one line for people."""
    return plain(missing_value(record, figure).text)
