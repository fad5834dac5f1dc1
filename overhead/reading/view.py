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
from typing import TypeVar, cast, get_args

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
run.
"""


@dataclasses.dataclass(frozen=True)
class TargetLabel:
    """What a target is called: its stack, and the device as far as that tells it from the other
    targets of a file.

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
    """A stack on a device, with its records (the measured cases).

    ``named``: unique in the file, with "(software)" for an adapter that computes on the CPU.
    ``shortened``: the same without the device, where the file has one GPU only.
    ``short_names_cpu``: whether it ends with "(CPU)", which tells the target from one of its stack
    on the GPU. ``facts``: of the stack.
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
        """The parameters, dependency and workload in which the record differs from the base case;
        '' for absent ones.

        A NumPy record that enters below NumPy's Python function differs in ``entry`` too.
        """
        base = {
            **self.base.params,
            "dependency": self.base.dependency,
            "workload": self.base.workload,
        }
        own = {**record.params, "dependency": record.dependency, "workload": record.workload}
        if record.is_ufunc_loop:
            own["entry"] = record.window["entry"]
        return {k: own.get(k, "") for k in sorted({*base, *own}) if base.get(k) != own.get(k)}

    def pattern_label(self, record: Record) -> str:
        """The pattern and the parameters that differ from the base case: ``per-k k=16``.

        A case of another workload than the step is called by it. The parameters that a case lacks
        are not named.
        """
        varied = {k: v for k, v in self.varied(record).items() if v != ""}
        if record.workload != "step":
            varied.pop("workload", None)
            return " ".join([plain(record.workload, 40), record.pattern, *words(varied)])
        return " ".join([record.pattern, *words(varied)])


class View:
    """Look-ups over one fingerprint, which is the run in the file ``path``; None for a run in
    memory.
    """

    def __init__(self, fingerprint: Fingerprint, path: Path | None = None) -> None:
        self.fingerprint, self.path = fingerprint, path
        self._records = {r.key: r for r in fingerprint.records}
        self._made: dict[object, object] = {}
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
        others = {
            name: facts
            for name, facts in self.fingerprint.stacks.items()
            if name not in own_stacks()
        }
        return {**own_stacks(), **others}

    def in_role(self, role: StackRole) -> tuple[str, ...]:
        """The stacks with this role, whether the run has them or not, the suite's own first."""
        return stacks_in(role, self.known_stacks)

    def graph_of(self, stack: str) -> tuple[str, str] | None:
        """The stack of graphs that record the launches of this one, and their ``maker``; None if
        there is none.
        """
        for name, facts in self.known_stacks.items():
            for maker, made in facts.graphs.items():
                if made.stack == stack:
                    return name, maker
        return None

    @cached_property
    def targets(self) -> list[TargetView]:
        """Every target with records, in the file's order."""
        groups: dict[str, list[Record]] = {}
        for record in self.fingerprint.records:
            groups.setdefault(record.target_key, []).append(record)
        firsts = [records[0] for records in groups.values()]
        labels = _labels(firsts)
        short = _without_device(firsts, labels)
        found = []
        for key, records in groups.items():
            facts = self.facts(records[0].stack)
            names_cpu = records[0].api == "CPU" and short[key] != labels[key]
            found.append(TargetView(key, labels[key], tuple(records), short[key], facts, names_cpu))
        return found

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
        found = [t for t in self.executing if t.stack == stack]
        order = {
            api: number for number, api in enumerate(_API_ORDER)
        }  # a plugin may name an API that it lacks
        return min(
            found, key=lambda t: (t.software, order.get(t.first.api, order[_OTHER])), default=None
        )

    @cached_property
    def stacks(self) -> list[str]:
        """Stacks with a target that executes, in the file's order."""
        return list(dict.fromkeys(t.stack for t in self.without_floor))


def boards_of(records: Iterable[Record]) -> list[str]:
    """The ids of the physical boards (GPUs), each once, in the order of the records; [] where none
    is known.
    """
    return list(dict.fromkeys(r.device for r in records if is_board_id(r.device)))


def by_board(records: Sequence[Record]) -> list[list[Record]]:
    """A list of records for each board; only records of one list may be compared.

    A record that names no board is in the list of each board whose model its adapter may be, on a
    CPU in all.
    """
    first = {r.device: r for r in reversed(records) if is_board_id(r.device)}
    found = [
        [
            r
            for r in records
            if r.device == board or (r.device not in first and _may_be(r, first[board]))
        ]
        for board in boards_of(records)
    ]
    return found or [list(records)]


def _may_be(record: Record, on_board: Record) -> bool:
    return record.api == "CPU" or record.software or not names_differ_in_model(record, on_board)


def by_patterns(records: Iterable[Record]) -> list[Record]:
    """The records sorted by pattern, then by caller, in the order that tables have."""
    return sorted(records, key=lambda r: (_PATTERN_ORDER.index(r.pattern), CALLERS.index(r.caller)))


def base_cases(target: TargetView) -> list[Record]:
    """For each pattern and caller the case with the fewest differences from the target's base case,
    in table order.

    A target without the step has one for each of its workloads.
    """
    found: dict[tuple[str, str, str], Record] = {}
    for record in target.records:
        if target.has_step and record.workload != target.base.workload:
            continue
        key = (record.workload, record.pattern, record.caller)
        held = found.setdefault(key, record)
        if len(target.varied(record)) < len(target.varied(held)):
            found[key] = record
    return by_patterns(found.values())


def words(params: dict[str, Scalar]) -> list[str]:
    """Each parameter as ``name=value``, without control characters."""
    return [plain(f"{k}={scalar_text(v)}", 40) for k, v in params.items()]


def with_fields(records: Iterable[Record], **fields: object) -> list[Record]:
    """The records whose fields have these values, in the same order: ``with_fields(records,
    caller="native")``.
    """
    return [r for r in records if all(getattr(r, name) == value for name, value in fields.items())]


def first_with(records: Iterable[Record], **fields: object) -> Record | None:
    """The first record whose fields have these values; None if there is none."""
    return next(iter(with_fields(records, **fields)), None)


def stack_name(target: TargetView) -> str:
    """The stack inside a sentence: ``Dawn``, ``the CUDA driver``; with "(software)" or "(CPU)"
    where no GPU works.
    """
    where = " (CPU)" if target.first.api == "CPU" else " (software)" if target.software else ""
    return plain(target.facts.label, 40) + where


def graph_maker(graph: Record, facts: StackFacts) -> str:
    """Who made the CUDA graph of this record: ``the CUDA driver``. ``facts``: of its stack."""
    maker = str(graph.params.get("maker", next(iter(facts.graphs), "")))
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
    own = [r for r in run.records if r.status in VALUED and r.workload == "step"]
    return MeasuredSteps(
        frozenset((r.stack, r.api, r.adapter) for r in own), len(own), run.environment
    )


def run_to_show(runs: Sequence[MeasuredSteps]) -> int:
    """Index of the run that a machine's pages show: the newest that measured the step completely.

    ``runs``: of one machine, newest first. A run that sets no environment variables comes before
    one that does.
    """
    stacks = [len(run.stacks) for run in runs]
    broad = [i for i in range(len(runs)) if stacks[i] >= _COMPLETE_SHARE * max(stacks)]
    least = _COMPLETE_SHARE * max(runs[i].records for i in broad)
    return min(
        range(len(runs)),
        key=lambda i: (i not in broad or runs[i].records < least, bool(runs[i].environment), i),
    )


def without_device(labels: Sequence[TargetLabel]) -> tuple[list[str], str]:
    """The labels of targets without their device, and the device, if all name the same one; else as
    they are, and ''.

    A target on the CPU names no device; it gets "on CPU" if another target of its stack is on the
    device.
    """
    devices = {label.device for label in labels if label.device and not label.runs_nothing}
    if len(devices) != 1:
        return [label.text for label in labels], ""
    (device,) = devices
    dropped = {label.stack for label in labels if label.device == device}
    short = []
    for label in labels:
        if label.device == device:
            short.append(label.stack)
        else:
            short.append(f"{label.text} on CPU" if label.text in dropped else label.text)
    return short, device


def _labels(firsts: list[Record]) -> dict[str, TargetLabel]:
    """Short labels by target key: stack and adapter, then API, device and a number as far as needed
    to be unique.
    """
    labels_of = [[_label(r, depth) for depth in range(3)] for r in firsts]
    counts = [Counter(own[depth].text for own in labels_of) for depth in range(3)]
    labels: dict[str, TargetLabel] = {}
    taken: Counter[str] = Counter()
    for r, own in zip(firsts, labels_of, strict=True):
        label = next(
            (own[depth] for depth in range(3) if counts[depth][own[depth].text] == 1), own[0]
        )
        taken[label.text] += 1
        number = taken[label.text]
        labels[r.target_key] = label.followed_by(f" [{number}]") if number > 1 else label
    return labels


def _label(r: Record, depth: int) -> TargetLabel:
    """The label with the adapter; from depth 1 on with the API, and at depth 2 with the device."""
    place = [] if r.api == "CPU" else [plain(without_brackets(r.adapter), 28)]
    place += [r.api] if depth >= 1 else []
    place += [plain(r.device, 16)] if depth >= 2 and r.device else []
    more = "".join(f" {part}" for part in place[1:])
    label = TargetLabel(r.stack, place[0] if place else "", more, runs_nothing=not r.executes)
    if not r.executes:
        return label.followed_by(" (runs nothing)")
    return label.followed_by(" (software)") if r.software else label


def _without_device(firsts: list[Record], labels: dict[str, TargetLabel]) -> dict[str, TargetLabel]:
    """Labels by target key that name the stack alone, where that is unique and the file has one GPU
    only.
    """
    gpus = {
        without_brackets(r.adapter)
        for r in firsts
        if r.executes and not r.software and r.api != "CPU"
    }
    short = dict(labels)
    for r in firsts:
        if r.executes and not r.software and len(gpus) == 1:
            short[r.target_key] = TargetLabel(
                plain(r.stack, 40) + (" (CPU)" if r.api == "CPU" else "")
            )
    counts = Counter(label.text for label in short.values())
    alone = {r.stack for r in firsts if r.api == "CPU"} - {
        r.stack for r in firsts if r.api != "CPU"
    }
    for r in firsts:
        if counts[short[r.target_key].text] > 1 or (r.api == "CPU" and r.stack in alone):
            short[r.target_key] = labels[r.target_key]
    return short
