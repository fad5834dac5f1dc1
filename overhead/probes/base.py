"""The interface of a stack: a ``Probe`` finds devices (targets), names what it can measure on them
(cases), and opens a ``Chain`` for each case. A chain runs n units of work, such as n launches of a
kernel.

A probe file imports no GPU library at module level: ``overhead list`` imports every probe file in
the parent process.
"""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from overhead.errors import BadValue, Unavailable, Unsupported, Unverified
from overhead.fields import checked
from overhead.measure.sampling.chain import Chain, DeviceTime
from overhead.results import (
    BOARD,
    Case,
    Name,
    Reason,
    Scalar,
    StackFacts,
    StackRow,
    Target,
    Why,
    because,
)

_FIELDS = ("pattern", "caller", "dependency", "workload", "unit")
_Cost = Literal["cheap", "fast", "slow", "polling"]
_ATTRIBUTES: Mapping[str, Any] = {
    "title": Annotated[str, msgspec.Meta(min_length=1, max_length=200)],
    "mend": Name | Reason,
    "distributions": tuple[Name, ...],
    "worker_packages": tuple[Name, ...],
    "on_request": bool,
    "same_calls": bool,
    "cost": _Cost,
    "facts": StackFacts,
}


@dataclasses.dataclass(frozen=True)
class Space:
    """The cases of a target: a base case, and other values for each axis of the base case.

    - ``base``: the base case.
    - ``axes``: for each axis, its other values, the most important first. An axis is a field of
      ``Case`` (``pattern``, ``caller``, ``dependency``) or a key of the base's ``params``. A key
      that the base lacks is an error, unless None is among its values. None stands for a case
      without the parameter.
    - ``extra``: further cases that differ from the base in more than one axis, for example two
      cases whose costs will be subtracted.
    - ``early``: cases that every run measures, as it measures the base.
    - ``allowed``: a function that returns False for a case that must be left out, such as a
      meaningless combination.
    """

    base: Case
    axes: Mapping[str, Sequence[Scalar | None]] = dataclasses.field(default_factory=dict)
    extra: Sequence[Case] = ()
    allowed: Callable[[Case], bool] = lambda case: True
    early: Sequence[Case] = ()

    def __post_init__(self) -> None:
        """Raises ``BadValue`` for values that are no list, and for an axis that the base lacks."""
        for axis, values in self.axes.items():
            if isinstance(values, str):  # its letters would be taken for values
                raise BadValue(f"Space.axes[{axis!r}] is {values!r}; it must be a list of values")
            # An axis is a field of ``Case`` (``_FIELDS``), or else a parameter.
            base_has_axis = axis in _FIELDS or axis in self.base.params
            # None is the value of a case without the parameter, such as the base.
            if not base_has_axis and None not in values:
                known = ", ".join([*_FIELDS, *self.base.params])
                raise BadValue(
                    f"Space.axes has {axis!r}, which the base case lacks; allowed: {known}"
                )
            for value in values:
                vary(self.base, axis, value)  # raises for a value that no case may have

    def star(self) -> Iterator[Case]:
        """The cases of a usual run, each once: the base, the early cases (which every run
        measures), those that differ from the base in one axis, and the extra cases. A run measures
        them in this order.
        """
        cases = [self.base, *self.early]
        for axis, values in self.axes.items():
            # ``vary``: the base with this one axis changed.
            cases += [vary(self.base, axis, value) for value in values]
        cases += self.extra
        # Cases that occur twice, such as an early one that is also on an axis, stay at the first
        # place.
        yield from _unique(cases, self.allowed)

    def cross(self) -> Iterator[Case]:
        """All combinations of the values of all axes, each once: the base first; then the early and
        the extra cases.
        """
        # The base's value is the first of each axis, so that the base is the first combination.
        values_of_axes = [[current(self.base, axis), *others] for axis, others in self.axes.items()]
        combined = []
        # Every combination of one value from each axis.
        for values in itertools.product(*values_of_axes):
            case = self.base
            for axis, value in zip(self.axes, values, strict=True):
                case = vary(case, axis, value)
            combined.append(case)
        yield from _unique([*combined, *self.early, *self.extra], self.allowed)


def vary(case: Case, axis: str, value: Scalar | None) -> Case:
    """A copy of the case with one axis (a field or a parameter) set to ``value``; None removes a
    parameter.
    """
    # An axis is a field of ``Case``, such as ``pattern``, or else a key of its ``params``.
    if axis in _FIELDS:
        return msgspec.structs.replace(case, **{axis: value})
    params = {**case.params, axis: value}
    if value is None:
        del params[axis]
    return msgspec.structs.replace(case, params=params)


def current(case: Case, axis: str) -> Scalar | None:
    """The value of the case on an axis (a field or a parameter); None if the case lacks the
    parameter.
    """
    # An axis is a field of ``Case``, such as ``pattern``, or else a key of its ``params``.
    if axis in _FIELDS:
        value: Scalar | None = getattr(case, axis)
        return value
    return case.params.get(axis)


def _unique(cases: Iterable[Case], allowed: Callable[[Case], bool]) -> Iterator[Case]:
    """The allowed cases, each once, in order. ``key``: the text that identifies a case; it has no
    unit.

    The unit of a fused case (one launch that loops over all n) is always a step, a turn of the
    loop. ``vary`` makes such a case from a base whose unit is a launch, so the unit is set here.
    """
    seen: set[str] = set()
    for case in cases:
        if case.key in seen or not allowed(case):
            continue
        seen.add(case.key)
        if case.pattern == "fused":
            yield msgspec.structs.replace(case, unit="step")
        else:
            yield case


def device_id(uuid: bytes) -> str:
    """A short hash of a device's UUID, in hexadecimal. It is the same in every API, and reveals no
    serial number.
    """
    return hashlib.sha256(uuid).hexdigest()[:BOARD]


def whole_units(steps: int, size: int) -> int:
    """The number of units that ran, if ``steps`` ran in all and each unit consists of ``size``
    steps, such as the nodes of a graph.

    Raises ``Unverified`` if a unit ran only some of its steps.
    """
    units, rest = divmod(steps, size)
    if rest:
        raise Unverified(because("part-of-a-unit", units=units, size=size, rest=rest))
    return units


class Probe(abc.ABC):
    """One stack: a library or an API, with the cases that are measured on its devices.

    Instances are made without arguments. Methods run in a worker process, unless their docstring
    says otherwise.
    """

    name: ClassVar[str]
    """The stack's name, ``[a-z][a-z0-9-]{0,31}``."""
    title: ClassVar[str]
    """A few words that describe the stack, for tables."""
    mend: ClassVar[Why] = ""
    """The command or step that installs what the stack needs."""
    distributions: ClassVar[tuple[str, ...]] = ()
    """Names of installed packages whose versions the file of a run shall have."""
    worker_packages: ClassVar[tuple[str, ...]] = ()
    """Packages that its worker imports besides the library, msgspec and NumPy; they must be in
    another Python too.
    """
    on_request: ClassVar[bool] = False
    """True if a run measures the stack only if you name the stack, because it takes long or opens
    windows, as a browser does.
    """
    same_calls: ClassVar[bool] = False
    """True if all callers make the same calls of the library (docs/callers.md). Only then does a
    run compute the share of Python.
    """
    cost: ClassVar[_Cost] = "fast"
    """How long a sample takes. ``cheap``: a call without a device; ``fast``: one call and its wait
    take well under 1 ms; ``slow``: a call takes milliseconds; ``polling``: the wait rarely looks
    whether the work is done.
    """
    facts: ClassVar[StackFacts] = StackFacts()
    """How readers name, colour and group the stack; the file of a run carries these facts. Those of
    the suite's own stacks are in ``results/stack_facts.toml`` instead. Without a label, the stack
    is called by its title.
    """

    @classmethod
    def check_attributes(cls) -> None:
        """Raise ``BadValue`` if an attribute of the class has a wrong value. Called by
        ``register``.
        """
        for name, kind in _ATTRIBUTES.items():
            checked(f"{cls.__name__}.{name}", getattr(cls, name, None), kind)

    def environments(self) -> list[dict[str, str]]:
        """Sets of environment variables, each as a dict: a stack overrides this if it finds other
        devices with other variables.

        For each dict, a worker process looks for devices with these variables.

        Runs in the parent process, so it must not load a GPU library.
        """
        return [{}]

    @abc.abstractmethod
    def targets(self) -> list[Target]:
        """The devices that the stack can use in this environment. Raises ``Unavailable`` if there
        are none.
        """

    @abc.abstractmethod
    def space(self, target: Target) -> Space:
        """The cases of a target. Runs in the parent process, so it must not load a GPU library."""

    @abc.abstractmethod
    def open(self, target: Target, case: Case) -> Chain:
        """A new chain for the case, with compiled kernels and allocated memory.

        Raises ``Unsupported`` if this target cannot run the case, ``Unavailable`` if the target
        cannot be used, and ``Unverified`` if the chain computes wrong values.
        """


__all__ = [
    "Chain", "DeviceTime", "Probe", "Space", "StackFacts", "StackRow",
    "Unavailable", "Unsupported", "Unverified", "current",
    "device_id", "vary", "whole_units",
]  # fmt: skip
