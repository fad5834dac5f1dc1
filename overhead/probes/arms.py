"""Arms: cases that a feature (a slice of the package) adds to stacks which do not know the
feature.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from overhead.probes.base import Chain, Probe, Space
from overhead.probes.common.availability import CANNOT, cannot_here
from overhead.results import Case, Target
from overhead.slices import of_features


@dataclasses.dataclass(frozen=True)
class Arm:
    """The cases that a feature adds to the stack with the name ``stack``, after the stack's own
    cases.

    ``cases``: returns those of a target. ``owns``: returns True if a case is one of them. ``open``:
    opens one, and raises what ``Probe.open`` raises.
    """

    stack: str
    cases: Callable[[Target], Iterable[Case]]
    owns: Callable[[Case], bool]
    open: Callable[[Probe, Target, Case], Chain]


_arms: dict[str, list[Arm]] = {}


def register_arm(arm: Arm) -> None:
    """Add an arm to its stack. The module ``arms`` of a slice calls this when it is imported."""
    _arms.setdefault(arm.stack, []).append(arm)


def arms_of(stack: str) -> list[Arm]:
    """The arms of the stack with this name, in the order in which the slices register them; empty
    if it has none.
    """
    of_features("arms")
    return _arms.get(stack, [])


def with_arms(space: Space, target: Target) -> Space:
    """The space (the cases of a target), extended by the cases that features add to the target's
    stack (its arms). A case of an arm is allowed whatever the stack's own rule says.
    """
    arms = arms_of(target.stack)
    if not arms:
        return space
    extra = list(space.extra)
    for arm in arms:
        extra += arm.cases(target)

    def is_allowed(case: Case) -> bool:
        # ``_owner``: the arm that added the case; None for a case of the stack itself.
        return _owner(arms, case) is not None or space.allowed(
            case
        )  # the stack's rule knows no arm

    return dataclasses.replace(space, extra=extra, allowed=is_allowed)


def _owner(arms: Iterable[Arm], case: Case) -> Arm | None:
    """The arm that added the case; None for a case of the stack itself."""
    for arm in arms:
        if arm.owns(case):
            return arm
    return None


def open_case(probe: Probe, target: Target, case: Case, *, is_first: bool = False) -> Chain:
    """Open a chain, which runs the case: by the arm (a feature's addition to the stack) that the
    case is of, else by the stack itself, ``probe``. Raises what ``Probe.open`` does.

    ``is_first``: no case of the target has been opened yet, so an error of the library means that
    the stack cannot be used on this machine, and becomes ``Unavailable``.
    """
    owner = _owner(arms_of(target.stack), case)
    try:
        if owner is None:
            return probe.open(target, case)
        return owner.open(probe, target, case)
    except Exception as error:
        if not is_first:
            raise
        # ``cannot_here``: the error as ``Unavailable``, or None if it is a mistake in code.
        # ``CANNOT`` is what the message says: that the library cannot do this.
        unavailable = cannot_here(error, probe, CANNOT)
        if unavailable is None:  # the machine is not the cause
            raise
        raise unavailable from error
