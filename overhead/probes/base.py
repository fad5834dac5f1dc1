"""What a stack must offer: a ``Probe`` that finds targets and opens chains, and the five verbs of a ``Chain``.

A probe file imports no GPU library at module level: ``overhead list`` imports every probe file in the parent.
"""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

import msgspec

from overhead.errors import Unavailable, Unsupported, Unverified
from overhead.results import BOARD, Case, Overlap, Scalar, Target


@dataclasses.dataclass(frozen=True)
class DeviceTime:
    """Device time of one held chain of ``n`` units, ns. ``busy`` only where the device provably never starved."""

    n: int
    span: float
    busy: bool
    quantum: float
    method: str


@dataclasses.dataclass(frozen=True)
class StartLatency:
    """``values``: ns from a submission to the device's start of it, on an idle queue; each good to ``deviation`` ns."""

    values: list[float]
    deviation: float


class Chain(abc.ABC):
    """A chain of identical units of work, open on a device.

    Class or instance attributes: ``unit``, ``overlap``; ``recorded`` where ``prepare(n)`` makes a recording of n units
    that ``issue(n)`` launches; ``max_n`` where the stack bounds n; ``wait_spins`` where ``wait`` burns the caller's CPU
    while the device works, so that its CPU time says nothing of deferred work; ``synchronous`` where ``issue`` returns
    only when the work is done; ``latency`` where each unit includes its own wait, so that percentiles of T(1) tell;
    ``executes`` false where nothing below runs the work (Dawn's Null): ``executed`` then only raises on errors, its
    return value is not looked at; ``least_ns``, by which T(top) must rise at least where the wait is known to look
    rarely or the first units to cost something else; ``poll_ns`` between two looks where that is so long that T is
    known to be a staircase; ``clock_step_ns`` where the chain brings its own sampling loop and with it another clock.
    """

    unit: str = "dispatch"
    overlap: Overlap = "pipelined"
    recorded: bool = False
    max_n: int = 1 << 20
    wait_spins: bool = False
    synchronous: bool = False
    latency: bool = False
    executes: bool = True
    flags: Sequence[str] = ()
    least_ns: int = 0
    poll_ns: int = 0
    clock_step_ns: int = 0

    @property
    def held_n(self) -> int:
        """The most units of which ``device`` can tell the time."""
        return self.max_n

    def prepare(self, n: int) -> None:
        """Everything that belongs outside the window of ``issue(n)``. Cheap when called again for the same n."""
        return

    @abc.abstractmethod
    def issue(self, n: int) -> None:
        """Hand n units to the stack; return when the stack gives control back. n may be 0."""

    @abc.abstractmethod
    def wait(self) -> None:
        """Return when everything issued has finished on the device."""

    @abc.abstractmethod
    def executed(self) -> int:
        """Units that the device has really run since ``open``, proved from values. Raises ``Unverified``."""

    def device(self, n: int) -> DeviceTime | None:
        """Device time of a held chain of n units, None where the stack can't tell. May raise ``Unsupported``."""
        return None

    def stages(self, n: int) -> Mapping[str, Sequence[int]]:
        """Each call's own time in a chain of n units, ns: durations by stage, a clock reading in each, and ``clock``
        alone. Empty where it has none to tell, and then runs nothing; otherwise the n units count as issued."""
        return {}

    def start_latency(self, n: int) -> StartLatency | None:
        """n times from submission to start, by calibrated clocks, or None. May raise ``Unsupported``."""
        return None

    def making(self) -> Mapping[str, tuple[Sequence[int], Sequence[float]]]:
        """What a recording costs outside the window, by part (capture, instantiate): its units, and ns of each."""
        return {}

    def opening(self) -> Mapping[str, float]:
        """What opening the chain took, where it tells: ``compile`` (ns), ``peak_memory`` (resident bytes)."""
        return {}

    def window(self) -> dict[str, Scalar]:
        """What the window holds: submits, passes, bind changes, arguments, wait, recording, validation, precision."""
        return {}

    def kernels(self) -> dict[str, str]:
        """SHA-256 of each kernel source this chain runs, by name."""
        return {}

    def close(self) -> None:
        """Release everything. Called once, also after a failure."""
        return


@dataclasses.dataclass(frozen=True)
class Space:
    """What can be varied on a target: a base case and, by axis, the other values, most telling first.

    An axis is a field of ``Case`` (``pattern``, ``caller``, ``dependency``) or a key of its ``params``. ``extra`` are
    cases that differ in more than one axis yet belong to the star (pairs that will be subtracted, say), ``early`` such
    that come right after the base.
    ``allowed`` drops combinations that mean nothing.
    """

    base: Case
    axes: Mapping[str, Sequence[Scalar]] = dataclasses.field(default_factory=dict)
    extra: Sequence[Case] = ()
    allowed: Callable[[Case], bool] = lambda case: True
    early: Sequence[Case] = ()

    def star(self) -> Iterator[Case]:
        """The base, then one axis changed at a time, then the extras; each case once."""
        moved = (vary(self.base, axis, value) for axis, values in self.axes.items() for value in values)
        yield from _unique(itertools.chain([self.base], self.early, moved, self.extra), self.allowed)

    def cross(self) -> Iterator[Case]:
        """Every combination, base first, then the extras."""
        axes = {axis: [current(self.base, axis), *values] for axis, values in self.axes.items()}
        yield from _unique(itertools.chain(self._combinations(axes), self.early, self.extra), self.allowed)

    def _combinations(self, axes: Mapping[str, Sequence[Scalar | None]]) -> Iterator[Case]:
        for values in itertools.product(*axes.values()):
            case = self.base
            for axis, value in zip(axes, values, strict=True):
                case = vary(case, axis, value)
            yield case


_FIELDS = ("pattern", "caller", "dependency", "workload", "unit")


def vary(case: Case, axis: str, value: Scalar | None) -> Case:
    """The case with one axis changed; None removes a parameter."""
    if axis in _FIELDS:
        return msgspec.structs.replace(case, **{axis: value})
    params = {**case.params, axis: value}
    return msgspec.structs.replace(case, params={k: v for k, v in params.items() if v is not None})


def current(case: Case, axis: str) -> Scalar | None:
    """The case's value on an axis, None where a parameter is absent."""
    return getattr(case, axis) if axis in _FIELDS else case.params.get(axis)


def _unique(cases: Iterable[Case], allowed: Callable[[Case], bool]) -> Iterator[Case]:
    seen: set[str] = set()
    for case in cases:
        if case.key not in seen and allowed(case):
            seen.add(case.key)
            yield msgspec.structs.replace(case, unit="step") if case.pattern == "fused" else case


def device_id(uuid: bytes) -> str:
    """What tells two devices of one name apart in a file: short, the same through every API, and no serial number."""
    return hashlib.sha256(uuid).hexdigest()[:BOARD]


class Probe(abc.ABC):
    """One stack. Instances are made without arguments; all methods but the class attributes run in a worker."""

    name: ClassVar[str]
    """The stack's name, ``[a-z][a-z0-9-]{0,31}``."""
    title: ClassVar[str]
    """What it is, for tables: a few words."""
    mend: ClassVar[str] = ""
    """The command that installs what the stack needs."""
    distributions: ClassVar[tuple[str, ...]] = ()
    """Installed packages whose versions belong in the record."""
    on_request: ClassVar[bool] = False
    """Measured only when named: what takes long or opens windows, such as a browser."""
    cost: ClassVar[Literal["cheap", "fast", "slow", "polling"]] = "fast"
    """What a sample takes: a call on the host alone, a unit and its wait well under 1 ms, milliseconds, or a wait that
    wakes rarely."""

    def environments(self) -> list[dict[str, str]]:
        """Environments to look for devices in, a worker each. Runs in the parent: files only, no GPU library."""
        return [{}]

    @abc.abstractmethod
    def targets(self) -> list[Target]:
        """The devices this stack reaches in this process's environment. Raises ``Unavailable``."""

    @abc.abstractmethod
    def space(self, target: Target) -> Space:
        """The cases of a target. Runs in the parent: must not load a GPU library."""

    @abc.abstractmethod
    def open(self, target: Target, case: Case) -> Chain:
        """Open a chain; compiles and allocates. Raises ``Unsupported``, ``Unavailable`` or ``Unverified``."""


__all__ = [
    "Chain", "DeviceTime", "Probe", "Space", "StartLatency", "Unavailable", "Unsupported", "Unverified", "current",
    "device_id", "vary",
]  # fmt: skip
