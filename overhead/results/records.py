"""The record types of a fingerprint, the file of a whole run without its raw samples. All times are
nanoseconds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from overhead.fields import check_struct
from overhead.public import Shown
from overhead.results.origin import Origin
from overhead.results.reason import Why
from overhead.results.stack_facts import StackFacts
from overhead.results.value import Value, is_plausible
from overhead.results.vocabulary import (
    KNOWN_APIS,
    UFUNC_LOOP,
    VALUED,
    Api,
    Bound,
    Caller,
    Count,
    Dependency,
    EnvironmentVariables,
    FigureName,
    Limit,
    LongText,
    MachineId,
    Moment,
    Name,
    Overlap,
    Params,
    Pattern,
    Placement,
    Profile,
    Scalar,
    StackName,
    Status,
    Way,
)


class _Base(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    pass


class Case(_Base, kw_only=True):
    """What one chain runs on a given target. A value that is not allowed raises ``BadValue``.

    - ``pattern``, ``caller``, ``dependency``: how the work is launched, who calls, and whether each
      piece of work reads what the piece before it wrote (docs/method.md, docs/callers.md).
    - ``unit``: the word for one piece of work that is repeated, as readers see it (``launch``,
      ``dispatch``).
    - ``workload``: ``step`` for the stack's own step, otherwise the name of a workload.
    - ``params``: everything else that tells cases apart, such as ``{"wait": "event"}``.
    """

    pattern: Pattern
    caller: Caller = "binding"
    dependency: Dependency = "chained"
    unit: Name = "dispatch"
    workload: Name = "step"
    params: Params = {}

    def __post_init__(self) -> None:
        """Raises ``BadValue``."""
        check_struct(self)

    @property
    def key(self) -> str:
        """The case in one line; equal keys are equal cases."""
        return case_key(self)

    @property
    def coordinates(self) -> dict[str, Scalar]:
        """Everything in which two cases may differ, by name: pattern, caller, dependency, workload,
        and each of ``params``.
        """
        return {
            "pattern": self.pattern,
            "caller": self.caller,
            "dependency": self.dependency,
            "workload": self.workload,
            **self.params,
        }


class _OnTarget(_Base, kw_only=True):
    stack: StackName
    api: Api
    adapter: Name
    device: Name = ""
    software: bool = False
    executes: bool = True
    environment: EnvironmentVariables = {}

    @property
    def target_key(self) -> str:
        """``stack@api:adapter``, with ``#device`` where adapters share a name."""
        device = f"#{self.device}" if self.device else ""
        return f"{self.stack}@{self.api}:{self.adapter}{device}"


class Target(_OnTarget, kw_only=True):
    """A stack on a device in an environment. One worker process measures one target.

    A value that is not allowed raises ``BadValue``.

    - ``stack``: the ``name`` of the probe.
    - ``api``: any name. Well-known names get the spelling of ``KNOWN_APIS``. "CPU" means that the
      CPU does the work.
    - ``adapter``: the name of the device.
    - ``device``: an id (``base.device_id``) or number that tells devices of the same name apart.
    - ``software``: True if a CPU imitates a GPU (llvmpipe, pocl).
    - ``executes``: False if nothing runs the work.
    - ``environment``: set by the suite from ``Probe.environments``.
    - ``driver``, ``versions``: written to the file of the run as they are.
    - ``options``: data with which the probe finds the device again, such as an adapter index.
      Targets that differ only in ``options`` are the same target.
    - ``same_calls``: set by the suite from ``Probe.same_calls``. Older journals have no
      ``same_calls``.
    """

    driver: Name = ""
    versions: Annotated[dict[Name, Name], Meta(max_length=64)] = {}
    options: Params = {}
    same_calls: bool = True

    def __post_init__(self) -> None:
        """Raises ``BadValue``."""
        check_struct(self)
        for name in KNOWN_APIS:
            if name.casefold() == self.api.casefold():
                msgspec.structs.force_setattr(self, "api", name)

    @property
    def key(self) -> str:
        """``stack@api:adapter``, with ``#device`` where adapters share a name."""
        return self.target_key


class Figure(Shown, _Base, kw_only=True):
    """A number with its interval, or the reason why there is no number. Times are in ns.

    - ``holds_from``, ``holds_to``: the smallest and the largest n between which T(n) was seen to be
      a line with this slope; 0 if that was not checked. A status ``ok`` says nothing about other n.
    - ``modes``: for a ``bimodal`` figure, its two values. For a ``nonlinear`` figure, the cost up
      to the largest n of the line and the cost beyond, if longer chains told both.
    """

    name: FigureName
    unit: Name = "ns"
    value: float | None = None
    low: float | None = None
    high: float | None = None
    status: Status = "ok"
    reason: Why = ""
    rule: Why = ""
    processes: Count = 0
    modes: Annotated[list[float], Meta(max_length=8)] = []
    holds_from: Count = 0
    holds_to: Count = 0

    @property
    def measured(self) -> Value | None:
        """The figure, which is what a file holds, as a ``Value``, which is what is calculated with.

        None where it has no value: its status says so, or no measurement can have this size.
        The value has no interval where an end is missing or of impossible size.
        """
        if self.value is None or self.status not in VALUED or not is_plausible(self.value):
            return None
        low, high = self.low, self.high
        # ``is_plausible``: a measurement can have this size. A file may hold any number.
        if low is None or high is None or not is_plausible(low) or not is_plausible(high):
            low, high = None, None
        origin = Origin(figure=self)
        return Value(self.value, low, high, self.status, self.reason, self.unit, origin=origin)


class Point(_Base, kw_only=True):
    """The times of chains of one length n, over all processes: medians and quartiles, ns."""

    n: Count
    issue: float
    total: float
    q1: float
    q3: float


class ProcessorCost(_Base, kw_only=True):
    """The unpinned cost on one CPU core, ns. Only older files have this field.

    ``serves_interrupts``: whether this CPU core handles interrupts of a GPU.
    """

    cpu: Count
    ns: float
    serves_interrupts: bool = False


class WithFigures(Struct, frozen=True):
    """Finds figures by name, for a type that has ``figures``."""

    if TYPE_CHECKING:

        @property
        def figures(self) -> list[Figure]: ...

    def figure(self, name: str) -> Figure | None:
        """The figure of that name, or None where there is none."""
        for figure in self.figures:
            if figure.name == name:
                return figure
        return None

    def measured(self, name: str) -> Value | None:
        """The value of that figure with its interval; None where it has no value to show."""
        figure = self.figure(name)
        return None if figure is None else figure.measured

    def value(self, name: str) -> float | None:
        """The value of that figure alone, in its unit, or None if it has none."""
        figure = self.figure(name)
        if figure is None or figure.status not in VALUED:
            return None
        return figure.value


class Record(Shown, _OnTarget, WithFigures, kw_only=True, dict=True):
    """All results of one case on one target."""

    pattern: Pattern
    caller: Caller
    dependency: Dependency
    unit: Name
    workload: Name
    params: Params = {}
    overlap: Overlap = "pipelined"
    window: Params = {}
    status: Status
    reason: Why = ""
    bound: Bound = ""
    flags: Annotated[list[Name], Meta(max_length=64)] = []
    figures: Annotated[list[Figure], Meta(max_length=200)] = []
    curve: Annotated[list[Point], Meta(max_length=64)] = []
    by_processor: Annotated[list[ProcessorCost], Meta(max_length=1024)] = []

    @classmethod
    def of(cls, target: Target, case: Case, **results: Any) -> Record:
        """The record of a case (what is measured) on a target (a stack on a device). ``results``:
        all other fields, which are what was found.

        The file has the fields of target and case beside the results and not inside objects of
        their own, so that a reader of the JSON finds them in one place.
        """
        return cls(
            stack=target.stack,
            api=target.api,
            adapter=target.adapter,
            device=target.device,
            software=target.software,
            executes=target.executes,
            environment=target.environment,
            pattern=case.pattern,
            caller=case.caller,
            dependency=case.dependency,
            unit=case.unit,
            workload=case.workload,
            params=case.params,
            **results,
        )

    @cached_property
    def case(self) -> Case:
        """The case that the record is of, without target and results."""
        return Case(
            pattern=self.pattern,
            caller=self.caller,
            dependency=self.dependency,
            unit=self.unit,
            workload=self.workload,
            params=self.params,
        )

    @cached_property
    def key(self) -> str:
        """Target and case in one line, unique in a file."""
        return f"{self.target_key} {case_key(self)}"

    @property
    def is_ufunc_loop(self) -> bool:
        """Whether the case enters NumPy below the function that Python calls."""
        return self.window.get("entry") == UFUNC_LOOP

    def measured(self, name: str) -> Value | None:
        """The value of that figure with its interval and this record's device; None where it has no
        value to show.
        """
        value = WithFigures.measured(self, name)
        return None if value is None else replace(value, source=self.device)


class Comparison(Shown, _Base, WithFigures, kw_only=True):
    """A difference or ratio of cases that took turns in one process. It is computed in each round.

    ``name``: a row of the table in ``named_comparisons.py``. ``of``, ``against``: the keys of the
    compared records.
    """

    name: Name
    of: LongText
    against: Annotated[list[LongText], Meta(max_length=8)] = []
    worker: LongText = ""
    figures: Annotated[list[Figure], Meta(max_length=32)] = []


class Contention(Shown, _Base, WithFigures, kw_only=True):
    """A case that several peers (processes or threads) run at once.

    T(n) is no line under contention, so this measures how many launches are done in a given time.

    - ``way``: what the peers are. ``peers``: how many there are. With the way ``busy``, ``peers``
      is the number of busy processes beside the one that is measured.
    - ``target``: the target of the first peer. ``devices``: with the way ``devices``, the ids of
      all devices.
    - ``figures``, times in ns: ``cost`` (time per launch of one peer), ``issue`` (enqueue time),
      ``cpu`` (CPU time), ``each`` (time per launch of all peers together), ``slowdown`` and
      ``work`` (ratios to one peer alone in the same processes), ``ready`` (share of the time in
      which a peer was ready to run and had no CPU core), ``slice`` (a time slice of the device) and
      ``hand_over`` (the time to pass the device on).
    - ``costs``: the cost of each peer, ns.
    - ``limit``: what slows the peers. ``why``: the evidence for ``limit``.
    """

    way: Way
    peers: Count
    placement: Placement = "free"
    target: Target
    case: Case
    devices: Annotated[list[Name], Meta(max_length=64)] = []
    status: Status = "ok"
    reason: Why = ""
    limit: Limit = ""
    why: Why = ""
    figures: Annotated[list[Figure], Meta(max_length=32)] = []
    costs: Annotated[list[float], Meta(max_length=256)] = []

    @property
    def key(self) -> str:
        """Target and case in one line, as ``Record.key``; several ways, numbers and placements
        share it.
        """
        return f"{self.target.key} {self.case.key}"


class MissingStack(_Base, kw_only=True):
    """A stack or device that could not be measured. ``reason``: why. ``mend``: the command or step
    that adds it.
    """

    stack: StackName
    reason: Why
    mend: Why = ""
    environment: EnvironmentVariables = {}


class LeftOut(_Base, kw_only=True):
    """A case that was not measured. ``reason``: why the case was left out."""

    target: LongText
    case: LongText
    reason: Why


class Gpu(_Base, kw_only=True):
    """A GPU of a machine. ``software``: True if the CPU imitates this GPU."""

    name: Name
    software: bool = False


class Machine(_Base, kw_only=True):
    """What identifies a machine. ``id`` is a hash of the CPU model, core count, memory size and
    hardware GPUs only.
    """

    id: MachineId
    cpu: Name
    cores: Count
    memory_gib: Count
    gpus: Annotated[list[Gpu], Meta(max_length=64)] = []


Volatile = Annotated[dict[Name, Scalar | list[Name]], Meta(max_length=64)]


class Together(_Base, kw_only=True):
    """The mark of one of two runs that took turns, process by process: two interpreters, or two
    sets of environment variables.

    ``id`` is the same in the files of both runs. Processes with the same number were measured right
    after each other.
    """

    id: MachineId
    side: Literal["base", "new"]


class RunFacts(Struct, kw_only=True, frozen=True):
    """The fields of a run that are known when it begins.

    ``stacks``: the facts of stacks that are not the suite's own, so that a reader without their
    code shows them too.
    """

    schema_version: int
    method_version: int
    created: Moment
    profile: Profile
    machine: Machine
    together: Together | None = None
    environment: EnvironmentVariables = {}
    volatile: Volatile = {}
    versions: Annotated[dict[Name, Name], Meta(max_length=200)] = {}
    stacks: Annotated[dict[StackName, StackFacts], Meta(max_length=200)] = {}


class Fingerprint(Shown, _Base, RunFacts, kw_only=True):
    """A whole run, without its raw samples.

    ``environment``: the variables that the run set for its workers. ``example``: True for the run
    that comes with the program. Commands show the example where this machine has no run of its own.
    Comparisons with a case that ``is_ufunc_loop`` are dropped, because their sides enter the
    library at different places.
    """

    kernels: Annotated[dict[Name, Name], Meta(max_length=200)] = {}
    records: Annotated[list[Record], Meta(max_length=20_000)] = []
    comparisons: Annotated[list[Comparison], Meta(max_length=20_000)] = []
    contention: Annotated[list[Contention], Meta(max_length=20_000)] = []
    unavailable: Annotated[list[MissingStack], Meta(max_length=200)] = []
    left_out: Annotated[list[LeftOut], Meta(max_length=20_000)] = []
    flags: Annotated[list[Why], Meta(max_length=200)] = []
    example: bool = False

    def __post_init__(self) -> None:
        """Drop the comparisons with a case that enters NumPy below the function that Python calls:
        their sides enter the library at different places.
        """
        loops = {record.key for record in self.records if record.is_ufunc_loop}
        if not loops:
            return
        kept = []
        for comparison in self.comparisons:
            if loops.isdisjoint((comparison.of, *comparison.against)):
                kept.append(comparison)
        # By force, because a fingerprint is frozen.
        msgspec.structs.force_setattr(self, "comparisons", kept)


def case_key(of: Case | Record) -> str:
    """The case, or the case that a record is of, in one line; equal keys are equal cases.

    A record makes its key without a ``Case``, because a page needs the keys of all records.
    """
    words = [of.workload, of.pattern, of.caller, of.dependency]
    params = [f"{name}={scalar_text(value)}" for name, value in sorted(of.params.items())]
    return " ".join([*words, *params])


def scalar_text(value: Scalar) -> str:
    """A value as keys and commands write it: ``true``, ``16``, ``event``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def to_builtins(value: Any) -> Any:
    """A struct or dataclass as dicts and lists that ``json`` can write."""
    return msgspec.to_builtins(value)


def schema() -> dict[str, Any]:
    """The JSON Schema of a fingerprint."""
    return msgspec.json.schema(Fingerprint)
