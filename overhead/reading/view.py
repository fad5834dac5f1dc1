"""Look-ups over a fingerprint: its targets (each a stack on a device), their base cases, names for
people; which run of a machine to show.

The base case of a target is the one that its other cases vary in one thing. The step is the
smallest workload: one addition to each of 256 numbers.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar, cast, get_args

from overhead.devices import is_board_id, names_differ_in_model, without_brackets
from overhead.reading.plain_text import plain
from overhead.results import (
    VALUED,
    Comparison,
    Fingerprint,
    Pattern,
    Record,
    Scalar,
    StackFacts,
    StackRole,
    facts_of,
    own_stacks,
    scalar_text,
    stacks_in,
)

T = TypeVar("T")
CALLERS = ("binding", "browser", "ffi", "native")
"""In the order of tables: what people write comes first."""
_OTHER = "other"
_API_ORDER = (
    "CUDA",
    "HIP",
    "Vulkan",
    "Metal",
    "D3D12",
    "MPS",
    "LevelZero",
    "SYCL",
    "OpenCL",
    "OpenGL",
    _OTHER,
    "CPU",
    "Null",
)
_PATTERN_ORDER: tuple[Pattern, ...] = get_args(Pattern)
_COMPLETE_SHARE = 0.5
"""A run is complete if it has this share of the stacks, and then of the records, of the largest
run. Chosen, not measured.
"""


@dataclasses.dataclass(frozen=True)
class TargetLabel:
    """What a target (a stack on a device) is called: by its stack, and by the device as far as that
    tells it from the other targets of a file.

    ``adapter``: '' on the processor. ``more``: what else is needed, such as the API.
    ``runs_nothing``: the target has no device of its own.
    """

    stack: str
    adapter: str = ""
    more: str = ""
    runs_nothing: bool = False

    @property
    def device(self) -> str:
        """The adapter, and what else is needed; '' on the processor."""
        return self.adapter + self.more

    @property
    def text(self) -> str:
        """``dawn on NVIDIA H200``, ``numpy``."""
        return f"{self.stack} on {self.device}" if self.device else self.stack

    def followed_by(self, suffix: str) -> TargetLabel:
        """The label with a text behind it."""
        if self.adapter:
            return dataclasses.replace(self, more=self.more + suffix)
        return dataclasses.replace(self, stack=self.stack + suffix)


@dataclasses.dataclass(frozen=True)
class TargetView:
    """A stack on a device, with its records (the measured cases). ``named``: unique in the file,
    with "(software)" for an adapter that computes on the CPU. ``shortened``: the same without the
    device, where the file has one GPU only. ``short_names_cpu``: whether it ends with "(CPU)",
    which tells the target from one of its stack on the GPU. ``facts``: of the stack.
    """

    key: str
    named: TargetLabel
    records: tuple[Record, ...]
    shortened: TargetLabel
    facts: StackFacts
    short_names_cpu: bool = False

    @property
    def label(self) -> str:
        """The target by its stack and device."""
        return self.named.text

    @property
    def short(self) -> str:
        """The target by its stack, with its device only where the file has several."""
        return self.shortened.text

    @property
    def first(self) -> Record:
        """The first record; all records of a target name the same stack, API and adapter."""
        return self.records[0]

    @property
    def stack(self) -> str:
        """The stack's id, such as ``cuda-driver``."""
        return self.first.stack

    @property
    def software(self) -> bool:
        """Whether the adapter is a GPU driver that computes on the CPU."""
        return self.first.software

    @property
    def without_gpu(self) -> str:
        """What is said behind a name where no GPU works: `` (CPU)``, `` (software)``, or ''."""
        if self.first.api == "CPU":
            return " (CPU)"
        return " (software)" if self.software else ""

    @property
    def executes(self) -> bool:
        """Whether the device runs the work; Dawn's Null backend accepts it and runs nothing."""
        return self.first.executes

    @property
    def base(self) -> Record:
        """The case that the others vary: the first case of the step, else the first case of all."""
        return next((r for r in self.records if r.workload == "step"), self.records[0])

    @property
    def has_step(self) -> bool:
        """Whether the step was measured, so that the base case is one of it; a run may hold other
        workloads alone.
        """
        return self.base.workload == "step"

    def varied(self, record: Record) -> dict[str, Scalar]:
        """In what the record (a case) differs from the target's base case: those of its parameters,
        dependency and workload that have another value; '' for a parameter that only the base case
        has. Empty for the base case itself, by any pattern and caller.

        A NumPy record that enters below NumPy's Python function differs in ``entry`` too.
        """
        of_base = _varying_fields(self.base)
        of_record = _varying_fields(record)
        if record.is_ufunc_loop:
            of_record["entry"] = record.window["entry"]
        varied = {}
        # A parameter that one of both lacks counts as different too.
        for name in sorted({*of_base, *of_record}):
            if of_base.get(name) != of_record.get(name):
                varied[name] = of_record.get(name, "")
        return varied

    def pattern_label(self, record: Record) -> str:
        """What a table calls a case: its pattern and the parameters that differ from the base case:
        ``per-k k=16``. A case of another workload than the step is called by that first.

        The parameters that a case lacks are not named.
        """
        varied = {name: value for name, value in self.varied(record).items() if value != ""}
        # The workload comes first, so it is not named again.
        if record.workload != "step":
            varied.pop("workload", None)
            return " ".join([plain(record.workload, 40), record.pattern, *parameter_texts(varied)])
        return " ".join([record.pattern, *parameter_texts(varied)])


def _varying_fields(record: Record) -> dict[str, Scalar]:
    """The parameters of a case, its dependency and its workload."""
    return {**record.params, "dependency": record.dependency, "workload": record.workload}


class GraphStack(NamedTuple):
    """A stack whose graphs record the launches of another stack. ``maker``: which of its graphs, as
    the parameter of that name.
    """

    stack: str
    maker: str


class View:
    """Look-ups over one run: its targets, records (cases) and comparisons. ``fingerprint``: all
    figures of the run. ``path``: its file; None for a run in memory.
    """

    def __init__(self, fingerprint: Fingerprint, path: Path | None = None) -> None:
        self.fingerprint = fingerprint
        self.path = path
        self._records = {r.key: r for r in fingerprint.records}
        # What ``once`` has computed, by the function.
        self._made: dict[object, object] = {}
        # By the name of a comparison and the key of the record that it is of, in the file's order.
        self._comparisons: dict[tuple[str, str], list[Comparison]] = {}
        for comparison in fingerprint.comparisons:
            self._comparisons.setdefault((comparison.name, comparison.of), []).append(comparison)

    def once(self, compute: Callable[[View], T]) -> T:
        """``compute(view)``; later calls with the same function return the same object. Callers
        must not change it.
        """
        if compute not in self._made:
            self._made[compute] = compute(self)
        return cast(T, self._made[compute])

    def facts(self, stack: str) -> StackFacts:
        """The facts of a stack: the suite's own, else what the file has of it."""
        return facts_of(stack, self.fingerprint.stacks)

    @cached_property
    def known_stacks(self) -> Mapping[str, StackFacts]:
        """The facts of the suite's own stacks, then of the others that the file has."""
        known = dict(own_stacks())
        for name, facts in self.fingerprint.stacks.items():
            known.setdefault(name, facts)
        return known

    def in_role(self, role: StackRole) -> tuple[str, ...]:
        """The stacks with this role, whether the run has them or not, the suite's own first."""
        return stacks_in(role, self.known_stacks)

    def graph_of(self, stack: str) -> GraphStack | None:
        """The stack of graphs that record the launches of this one; None if there is none."""
        for name, facts in self.known_stacks.items():
            for maker, made in facts.graphs.items():
                if made.stack == stack:
                    return GraphStack(name, maker)
        return None

    @cached_property
    def targets(self) -> list[TargetView]:
        """Every target (a stack on a device) that has records, with what it is called, in the
        file's order.
        """
        # By target (its key names stack and device) the records; the first of each tells the names.
        groups: dict[str, list[Record]] = {}
        for record in self.fingerprint.records:
            groups.setdefault(record.target_key, []).append(record)
        firsts = [records[0] for records in groups.values()]
        # By key the full name, and a short one, without the device where the file has one only.
        labels = _labels(firsts)
        short = _without_device(firsts, labels)
        found = []
        for key, records in groups.items():
            facts = self.facts(records[0].stack)
            # ``_without_device`` appends "(CPU)" to a short name of the CPU only where the stack
            # has a target on the GPU too; elsewhere the short name is the full one.
            names_cpu = records[0].api == "CPU" and short[key] != labels[key]
            found.append(TargetView(key, labels[key], tuple(records), short[key], facts, names_cpu))
        return found

    @cached_property
    def has_gpu(self) -> bool:
        """Whether the machine has a GPU: the run found one, or measured one. A software adapter is
        none.
        """
        if any(not gpu.software for gpu in self.fingerprint.machine.gpus):
            return True
        # Not every API of a GPU is asked for the list of a machine's GPUs.
        return any(target.first.api != "CPU" and not target.software for target in self.executing)

    @cached_property
    def executing(self) -> list[TargetView]:
        """The targets that run their work. Only these may be compared."""
        return [t for t in self.targets if t.executes]

    @cached_property
    def without_floor(self) -> list[TargetView]:
        """The executing targets without a call that does nothing, which is a reference value and no
        stack.
        """
        return [t for t in self.executing if "reference" not in t.facts.roles]

    @cached_property
    def counted(self) -> list[Record]:
        """The cases that sentences count: those of stacks, without a call that does nothing and
        without targets that run nothing.
        """
        cases: list[Record] = []
        for target in self.without_floor:
            cases += target.records
        return cases

    @cached_property
    def _by_key(self) -> dict[str, TargetView]:
        return {t.key: t for t in self.targets}

    def target(self, record: Record) -> TargetView:
        """The target that the record belongs to. Raises ``KeyError`` for a record of another
        file.
        """
        return self._by_key[record.target_key]

    def record(self, key: str) -> Record | None:
        """The record of that key, or None where the file has none."""
        return self._records.get(key)

    def comparison(self, name: str, of: str) -> Comparison | None:
        """The first comparison of that name for the record with key ``of``; None where there is
        none.
        """
        return next(iter(self._comparisons.get((name, of), ())), None)

    def comparisons(self, name: str) -> list[Comparison]:
        """All comparisons of that name, in the file's order."""
        return [c for c in self.fingerprint.comparisons if c.name == name]

    def best(self, stack: str) -> TargetView | None:
        """The stack's preferred target: hardware before software, its native API before others;
        None without one.
        """
        of_stack = [target for target in self.executing if target.stack == stack]
        return min(of_stack, key=_preference, default=None)

    @cached_property
    def stacks(self) -> list[str]:
        """Stacks with a target that executes, in the file's order."""
        return list(dict.fromkeys(t.stack for t in self.without_floor))


def _preference(target: TargetView) -> tuple[bool, int]:
    """What sorts the targets of a stack: hardware first, then by API."""
    api = target.first.api
    place = _API_ORDER.index(api if api in _API_ORDER else _OTHER)  # a plugin may name any API
    return target.software, place


def boards_of(records: Iterable[Record]) -> list[str]:
    """The ids of the physical boards (GPUs), each once, in the order of the records; [] where none
    is known.
    """
    return list(dict.fromkeys(r.device for r in records if is_board_id(r.device)))


def by_board(records: Sequence[Record]) -> list[list[Record]]:
    """The records in a list for each board (a physical GPU); only records of one list may be
    compared. Without a known board it is one list.

    Some APIs do not tell the board. Such a record is in the list of each board whose model its
    adapter may be; one of the CPU is in all.
    """
    boards = boards_of(records)
    by_board = []
    # A list for each board: its own records, and those that name no board but may be of it.
    for board in boards:
        # A record that tells the name of the board's model.
        on_board = first_with(records, device=board)
        assert on_board is not None
        may_be_compared = []
        for record in records:
            names_no_board = record.device not in boards
            if record.device == board or (names_no_board and _may_be(record, on_board)):
                may_be_compared.append(record)
        by_board.append(may_be_compared)
    return by_board or [list(records)]


def _may_be(record: Record, on_board: Record) -> bool:
    """Whether a record that names no board may be of the same board as this one."""
    return record.api == "CPU" or record.software or not names_differ_in_model(record, on_board)


def by_patterns(records: Iterable[Record]) -> list[Record]:
    """The records sorted by pattern, then by caller, in the order that tables have."""
    return sorted(records, key=_place_in_tables)


def _place_in_tables(record: Record) -> tuple[int, int]:
    return _PATTERN_ORDER.index(record.pattern), CALLERS.index(record.caller)


def base_cases(target: TargetView) -> list[Record]:
    """The cases of a target that a short table shows: for each pattern and caller the one with the
    fewest differences from the base case, in table order.

    They are of the step, the small kernel that all stacks run. A target that has not measured it
    has one for each of its workloads.
    """
    nearest: dict[tuple[str, str, str], Record] = {}
    for record in target.records:
        if target.has_step and record.workload != target.base.workload:
            continue
        kind = (record.workload, record.pattern, record.caller)
        # ``varied``: in what a case differs from the base case.
        # The first of its kind stays unless another differs in less.
        nearest_so_far = nearest.setdefault(kind, record)
        if len(target.varied(record)) < len(target.varied(nearest_so_far)):
            nearest[kind] = record
    return by_patterns(nearest.values())


def parameter_texts(params: dict[str, Scalar]) -> list[str]:
    """Each parameter as ``name=value``, without control characters."""
    return [plain(f"{name}={scalar_text(value)}", 40) for name, value in params.items()]


def with_fields(records: Iterable[Record], **fields: object) -> list[Record]:
    """The records whose fields have these values, in the same order: ``with_fields(records,
    caller="native")``.
    """
    matching = []
    for record in records:
        if all(getattr(record, name) == value for name, value in fields.items()):
            matching.append(record)
    return matching


def first_with(records: Iterable[Record], **fields: object) -> Record | None:
    """The first record whose fields have these values; None if there is none."""
    return next(iter(with_fields(records, **fields)), None)


def stack_name(target: TargetView) -> str:
    """The stack inside a sentence: ``Dawn``, ``the CUDA driver``; with "(software)" or "(CPU)"
    where no GPU works.
    """
    return plain(target.facts.label, 40) + target.without_gpu


def graph_maker(graph: Record, facts: StackFacts) -> str:
    """Who made the CUDA graph of this record: ``the CUDA driver``. ``facts``: of its stack."""
    usual_maker = next(iter(facts.graphs), "")
    maker = str(graph.params.get("maker", usual_maker))
    known = facts.graphs.get(maker)
    return plain(known.label, 40) if known is not None else plain(maker, 20)


@dataclasses.dataclass(frozen=True)
class MeasuredSteps:
    """What a run has of the step: (stack, API, adapter) and number of the records that have a
    value.

    ``environment``: the variables that were set for the run.
    """

    stacks: frozenset[tuple[str, str, str]]
    records: int
    environment: Mapping[str, str]


def measured_steps(run: Fingerprint) -> MeasuredSteps:
    """What the run has of the step, for ``run_to_show``."""
    measured = [r for r in run.records if r.status in VALUED and r.workload == "step"]
    stacks = frozenset((record.stack, record.api, record.adapter) for record in measured)
    return MeasuredSteps(stacks, len(measured), run.environment)


def run_to_show(runs: Sequence[MeasuredSteps]) -> int:
    """Index of the run that a machine's pages show: the newest that is complete.

    A run is complete if it has at least half as many stacks as the largest run of the machine, and
    half as many records. ``runs``: of one machine, newest first. Of complete runs, one without
    environment variables of its own comes before one with some, which may change what is measured.
    """
    # ``_COMPLETE_SHARE``: a half.
    least_stacks = _COMPLETE_SHARE * max(len(run.stacks) for run in runs)
    with_stacks = [run for run in runs if len(run.stacks) >= least_stacks]
    # A run with few stacks may have many records of them, so it sets no measure here.
    least_records = _COMPLETE_SHARE * max(run.records for run in with_stacks)

    # The lowest comes first: complete runs, then those without variables, then the newest.
    def preference(index: int) -> tuple[bool, bool, int]:
        """What sorts the runs: the one with the lowest is shown."""
        run = runs[index]
        is_complete = len(run.stacks) >= least_stacks and run.records >= least_records
        return not is_complete, bool(run.environment), index

    return min(range(len(runs)), key=preference)


def without_device(labels: Sequence[TargetLabel]) -> tuple[list[str], str]:
    """Shorter labels for a table whose targets are all on one device: the stacks alone, and the
    device, which the table then names once. If they name several, the labels as they are, and ''.

    A target on the CPU names no device; it gets "on CPU" if another target of its stack is on the
    device, as both would have the same label.
    """
    devices = {label.device for label in labels if label.device and not label.runs_nothing}
    # A target that runs nothing has no device of its own.
    if len(devices) != 1:
        return [label.text for label in labels], ""
    (device,) = devices
    # Those whose label would be the same without the device.
    stacks_on_device = {label.stack for label in labels if label.device == device}
    short = []
    for label in labels:
        if label.device == device:
            short.append(label.stack)
        elif label.text in stacks_on_device:
            short.append(f"{label.text} on CPU")
        else:
            short.append(label.text)
    return short, device


def _labels(firsts: list[Record]) -> dict[str, TargetLabel]:
    """What each target is called, by its key: a label that no other target of the file has.
    ``firsts``: the first record of each target.

    The label names stack and adapter; then, as far as needed to be unique, also the API, the id of
    the device (each is one ``depth`` more), and at last a number.
    """
    # For each depth how many targets would have each label.
    times_used = []
    for depth in _DEPTHS:
        # ``_label``: the label of a target at this depth.
        times_used.append(Counter(_label(record, depth).text for record in firsts))
    labels: dict[str, TargetLabel] = {}
    taken: Counter[str] = Counter()
    for record in firsts:
        # Stays the shortest if no depth makes it unique: a number then does.
        label = _label(record, 0)
        for depth in _DEPTHS:
            candidate = _label(record, depth)
            if times_used[depth][candidate.text] == 1:
                label = candidate
                break
        # The second target with this label gets the number 2, and so on.
        taken[label.text] += 1
        number = taken[label.text]
        labels[record.target_key] = label.followed_by(f" [{number}]") if number > 1 else label
    return labels


_DEPTHS = (0, 1, 2)
"""How much a label names: the adapter, the API too, the device too."""


def _label(record: Record, depth: int) -> TargetLabel:
    """A label for the target of this record, which names its stack and its adapter; from depth 1 on
    also its API, at depth 2 also the id of its device. One on the CPU names no adapter.
    """
    # The parts that tell where: adapter, API, device, as far as ``depth`` asks for them.
    place = []
    if record.api != "CPU":
        place.append(plain(without_brackets(record.adapter), 28))
    if depth >= 1:
        place.append(record.api)
    if depth >= 2 and record.device:
        place.append(plain(record.device, 16))
    adapter = place[0] if place else ""
    more = "".join(f" {part}" for part in place[1:])
    label = TargetLabel(record.stack, adapter, more, runs_nothing=not record.executes)
    if not record.executes:
        return label.followed_by(" (runs nothing)")
    return label.followed_by(" (software)") if record.software else label


def _without_device(firsts: list[Record], labels: dict[str, TargetLabel]) -> dict[str, TargetLabel]:
    """Labels that name the stack alone, by target key, for sentences and figures: in a file with
    one GPU the device says nothing. ``labels``: those with the device, which a target keeps where
    the stack alone would not be unique. ``firsts``: the first record of each target.
    """
    runs_work = [record for record in firsts if record.executes and not record.software]
    # Names of GPUs without what drivers add in brackets.
    gpus = {without_brackets(record.adapter) for record in runs_work if record.api != "CPU"}
    short = dict(labels)
    # Labels without the device, where all work is done on one GPU (and the CPU).
    if len(gpus) == 1:
        for record in runs_work:
            where = " (CPU)" if record.api == "CPU" else ""
            short[record.target_key] = TargetLabel(plain(record.stack, 40) + where)
    # Then back to the label with the device where the short one does not do.
    times_used = Counter(label.text for label in short.values())
    on_cpu = {record.stack for record in firsts if record.api == "CPU"}
    only_on_cpu = on_cpu - {record.stack for record in firsts if record.api != "CPU"}
    for record in firsts:
        is_shared = times_used[short[record.target_key].text] > 1
        # "(CPU)" tells a target from that of its stack on the GPU; without one it says nothing.
        needs_no_mark = record.api == "CPU" and record.stack in only_on_cpu
        if is_shared or needs_no_mark:
            short[record.target_key] = labels[record.target_key]
    return short
