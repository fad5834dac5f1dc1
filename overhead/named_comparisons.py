"""The named comparisons: which cases may be subtracted or divided, and the axes on which they may
differ.

An axis is a property of a case on a stack, such as ``caller``. On all other axes the two cases must
be equal.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping

from overhead.devices import same_adapter
from overhead.results import Case, Scalar, StackRole, Target, own_stacks, stacks_in
from overhead.slices import of_features


def _in(role: StackRole) -> frozenset[str]:
    return frozenset(stacks_in(role))


def _below(stacks: Iterable[str]) -> frozenset[str]:
    """The stacks that do the same work as these with less between."""
    return frozenset(own_stacks()[stack].below for stack in stacks)


_WEBGPU, _ACTS, _VALIDATING = _in("webgpu"), _in("synchronising-acts"), _in("validation")
_BELOW_WEBGPU = _below(_WEBGPU)


@dataclasses.dataclass(frozen=True)
class NamedComparison:
    """One kind of comparison: the figure of one case minus that of another, or divided by it.

    ``of`` selects the first case, and ``against`` the second, by values of their axes; a set holds
    several allowed values.
    """

    name: str
    figure: str
    """The figure that is compared, such as ``host`` or ``complete``."""
    of: Mapping[str, Scalar | frozenset[str]]
    against: Mapping[str, Scalar | frozenset[str]]
    differs: frozenset[str]
    """Axes on which the two may differ: fields of the case, ``stack``, or keys of ``params`` and
    ``window``.
    """
    same_adapter: bool = True
    times: str = ""
    """Key in the window of ``of``: the figure of ``against`` is multiplied by its value."""
    adds: str = ""
    """An axis that only ``of`` has."""


def _caller(
    name: str, of: str, against: str, **of_only: Scalar | frozenset[str]
) -> NamedComparison:
    """A comparison of two callers (the code that makes the calls, such as Python or a compiled
    loop) of one stack, which tells the share of the first.
    """
    # ``host``: the CPU time of a unit. ``of_only``: more values that the first case must have. Last
    # the axes on which the two cases may differ: the caller alone.
    return NamedComparison(
        name, "host", {"caller": of, **of_only}, {"caller": against}, frozenset({"caller"})
    )


_OF_CORE = (
    _caller("binding-share", "binding", "ffi"),
    _caller("interpreter-share", "ffi", "native"),
    _caller("python-share", "binding", "native"),
    NamedComparison(
        "api-share",
        "host",
        {"stack": _WEBGPU, "caller": "native"},
        {"stack": _BELOW_WEBGPU, "caller": "native"},
        frozenset({"stack", "wait"}),
    ),
    NamedComparison(
        "driver-share",
        "host",
        {"stack": _BELOW_WEBGPU, "caller": "native"},
        {"stack": _below(_BELOW_WEBGPU), "caller": "native"},
        frozenset({"stack", "wait", "pattern", "unit", "call", "barrier"}),
        same_adapter=False,
        times="calls",
    ),
    NamedComparison(
        "validation-share",
        "host",
        {"stack": _VALIDATING},
        {"stack": _VALIDATING, "validation": "skip"},
        frozenset({"validation"}),
    ),
    NamedComparison(
        "sync-cost",
        "complete",
        {"stack": _ACTS},
        {"stack": _ACTS, "pattern": "per-submit"},
        frozenset({"sync", "every", "pattern", "unit"}),
        times="steps",
        adds="sync",
    ),
)
_of_features: list[NamedComparison] = []
_checks: set[str] = set()


def register_comparison(named: NamedComparison) -> None:
    """Add a comparison. The module ``comparisons`` of a feature calls this when it is imported."""
    _of_features.append(named)


def register_check(field: str) -> None:
    """Name a field of the window that says what a check of the results found.

    Two cases may differ in it and still be compared, because it is nothing that was timed. The
    module ``comparisons`` of a feature calls this when it is imported.
    """
    _checks.add(field)


def named_comparisons() -> tuple[NamedComparison, ...]:
    """All comparisons of cases that alternate in one worker, in the order of the reports."""
    of_features("comparisons")
    return (*_OF_CORE, *_of_features)


def between_workers() -> Iterator[NamedComparison]:
    """Comparisons of cases that cannot be measured in turn by one worker process: each kind of
    browser with the library of WebGPU that it contains.

    Readers form them from the figures of two workers, with the widest interval that both allow.
    """
    # Imports the modules of features that register checks, for ``_checks``.
    of_features("comparisons")
    # ``dispatches`` differs because a browser on a software adapter splits a fused chain every
    # 65,535 units.
    differs = frozenset({"stack", "caller", "wait", "dispatches"} | _checks)
    # ``library``: the name of the stack of the library that this browser contains; empty for no
    # browser. ``_checks``: fields with the result of a check, not of what was timed.
    for browser, facts in own_stacks().items():
        if facts.library:
            yield NamedComparison(
                "browser-tax",
                "complete",
                of={"stack": browser, "caller": "browser"},
                against={"stack": facts.library, "caller": frozenset({"binding", "native"})},
                differs=differs,
            )


def coordinates(target: Target, case: Case) -> dict[str, Scalar]:
    """The value of every axis of a case on a target."""
    return {"stack": target.stack, "unit": case.unit, **case.coordinates}


def matches(where: Mapping[str, Scalar | frozenset[str]], at: Mapping[str, Scalar]) -> bool:
    """Whether a case is selected. ``at``: its value on each axis. ``where``: for some axes the
    wanted value, or a set of which any value will do. On other axes every value will do.
    """
    for axis, wanted in where.items():
        value = at.get(axis)
        # A set: any of its values will do.
        is_wanted = value in wanted if isinstance(wanted, frozenset) else value == wanted
        if not is_wanted:
            return False
    return True


def is_comparable(
    named: NamedComparison, of: tuple[Target, Case], against: tuple[Target, Case]
) -> bool:
    """Whether the named comparison may compare the case ``of`` with the case ``against``: it
    selects both, their adapter is the same if that is required, and they are equal on all axes but
    those on which they may differ (``differs``). Then the difference tells what these axes cost.

    Callers of one stack may be compared only if they make the same calls.
    """
    target, case = of
    other_target, other_case = against
    # ``axes``: the value of each axis of the case, such as ``caller``; of the stack and the unit
    # too.
    axes = coordinates(target, case)
    other_axes = coordinates(other_target, other_case)
    if named.figure == "host" and case.pattern == "fused":  # one call for any n: no cost per unit
        return False
    # ``same_calls``: whether all callers of this stack make the same calls.
    is_one_stack = target.stack == other_target.stack
    if "caller" in named.differs and is_one_stack and not target.same_calls:
        return False
    if not matches(named.of, axes) or not matches(named.against, other_axes):
        return False
    # ``adds``: an axis that ``of`` has and ``against`` has not.
    if named.adds and (named.adds not in axes or named.adds in other_axes):
        return False
    if named.same_adapter and not same_adapter(target, other_target):
        return False
    # An axis that only one of them has counts as different.
    must_be_equal = (set(axes) | set(other_axes)) - named.differs
    return all(axes.get(axis) == other_axes.get(axis) for axis in must_be_equal)


def comparable_pairs(
    cases: list[tuple[Target, Case]],
) -> list[tuple[NamedComparison, tuple[Target, Case], tuple[Target, Case]]]:
    """All pairs of these cases that a named comparison allows, as (comparison, of, against)."""
    pairs = []
    for named in named_comparisons():
        # In both orders, because a comparison has a first and a second case.
        for of, against in itertools.permutations(cases, 2):
            if is_comparable(named, of, against):
                pairs.append((named, of, against))
    return pairs
