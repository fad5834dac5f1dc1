"""Summarise a run for the pages over many machines. A summary is small, so that a thousand fit into memory."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from overhead.blocks.parts import Part
from overhead.reading import chains
from overhead.reading.format import plain
from overhead.reading.host_shares import drawn, ladders
from overhead.reading.key_figures import KeyFigure, key_figures_of
from overhead.reading.shown_run import MeasuredSteps, measured_steps
from overhead.reading.view import CALLER_WORDS, TargetView, View
from overhead.report.core.contained import contained
from overhead.report.core.registry import kept_of_runs, registered
from overhead.results import Api, Caller, Figure, Fingerprint, Machine, Record, Value

_KEPT_FIGURES = ("complete", "host", "fixed", "naive", "naive_idle", "legacy", "empty_wait")
_VENDOR_PATTERNS = {
    "NVIDIA": "nvidia|geforce|quadro|tesla|rtx",
    "AMD": "amd|radeon|radv|gfx[0-9]",
    "Apple": "apple",
    "Arm": "mali|arm",
    "Intel": "intel|iris|arc",
    "Qualcomm": "qualcomm|adreno",
}


@dataclasses.dataclass(frozen=True)
class Way:
    """The figures (ns) of one quantity of a stack on a device: a dispatch, launch, node, step or submit."""

    quantity: str
    vendor: str
    api: Api
    stack: str
    software: bool
    caller: Caller
    pattern: str
    figures: dict[str, Figure]


@dataclasses.dataclass(frozen=True)
class HostTimeSplit:
    """A ladder: the host's time per unit in ns; of each layer its name, ns, share of the host and ``doubt``.

    ``pieces``: name and ns of the pieces of its bar, from left to right.
    """

    stack: str
    api: Api
    software: bool
    unit: str
    called: str
    host: float
    shares: tuple[tuple[str, float, float, str], ...]
    pieces: tuple[tuple[str, float], ...]


@dataclasses.dataclass(frozen=True)
class Crossover:
    """The number of steps from which ``second`` is cheaper than ``first``; if None, ``verdict`` gives the reason."""

    first: str
    second: str
    workload: str
    elements: int
    steps: Value | None
    verdict: str


@dataclasses.dataclass(frozen=True)
class RunSummary:
    """The summary of a run. ``kept``: what each slice keeps of it; ``sections``: name, title and parts of its page."""

    machine: Machine
    created: str
    profile: str
    measured: MeasuredSteps
    ways: tuple[Way, ...]
    rungs: tuple[HostTimeSplit, ...]
    crossovers: tuple[Crossover, ...]
    cards: tuple[KeyFigure, ...]
    kept: Mapping[str, Any]
    sections: tuple[tuple[str, str, tuple[Part, ...]], ...]

    @property
    def name(self) -> str:
        """The names of the GPUs, or of the processor if the machine has no GPU."""
        found = [g.name for g in self.machine.gpus if not g.software]
        kinds = list(dict.fromkeys(found))
        many = f", {len(found)} of them" if len(kinds) == 1 and len(found) > 1 else ""
        return plain(", ".join(kinds) + many if kinds else f"{self.machine.cpu}, no GPU", 60)


def summarise(fingerprint: Fingerprint) -> RunSummary:
    """The summary of a run, with the parts of its page."""
    view = View(fingerprint)
    built = [(s.name, s.title, tuple(contained(s.name, partial(s.build, view)))) for s in registered() if s.brief]
    return RunSummary(
        machine=fingerprint.machine,
        created=fingerprint.created,
        profile=fingerprint.profile,
        measured=measured_steps(fingerprint),
        ways=tuple(_ways(view)),
        rungs=tuple(_host_time_splits(view)),
        crossovers=tuple(_crossovers(view)),
        cards=tuple(key_figures_of(view)),
        kept={name: keep(view) for name, keep in kept_of_runs().items()},
        sections=tuple((name, title, parts) for name, title, parts in built if parts),
    )


def vendor(record: Record, cpu: str) -> str:
    """The vendor of the device, from the name of the adapter; of a CPU, from the name of the processor."""
    if record.software:
        return "software"
    name = cpu if record.api == "CPU" else record.adapter
    found = (v for v, pattern in _VENDOR_PATTERNS.items() if re.search(rf"(?<![a-z])({pattern})", name, re.I))
    return next(found, "another vendor") + (" CPU" if record.api == "CPU" else "")


def _ways(view: View) -> Iterator[Way]:
    for target in view.stacked:
        if not target.stepped:  # workloads alone: no plain unit to set beside others
            continue
        for quantity, record in _quantities(target):
            yield _way(view, quantity, record, {n: f for n in _KEPT_FIGURES if (f := record.figure(n)) is not None})
        comparison = view.comparison("marginal", target.base.key)
        each = comparison.figure("per_submit") if comparison else None
        if each is not None and each.measured:
            yield _way(view, "submit", target.base, {"complete": each})


def _quantities(target: TargetView) -> Iterator[tuple[str, Record]]:
    yield target.base.unit, target.base
    if target.base.pattern != "replay":
        found = (r for r in target.records if r.pattern == "replay" and r.workload == "step" and r.unit == "node")
        yield from (("node", r) for r in list(found)[:1])


def _way(view: View, quantity: str, record: Record, figures: dict[str, Figure]) -> Way:
    who = vendor(record, view.fingerprint.machine.cpu)
    return Way(quantity, who, record.api, record.stack, record.software, record.caller, record.pattern, figures)


def _host_time_splits(view: View) -> Iterator[HostTimeSplit]:
    """For each stack and API the first ladder whose host time is known and split."""
    seen: set[tuple[str, str]] = set()
    for found in view.once(ladders):
        target, host = found.target, found.host.measured if found.host else None
        if host is None or not found.split or (target.stack, target.first.api) in seen:
            continue
        seen.add((target.stack, target.first.api))
        shares = tuple((s.name, of.value, s.of_host or 0.0, s.doubt) for s in found.shares if (of := s.figure.measured))
        pieces = tuple(drawn(found.shares))
        called = CALLER_WORDS[found.top.caller]
        yield HostTimeSplit(
            target.stack, target.first.api, target.software, found.top.unit, called, host.value, shares, pieces
        )


def _crossovers(view: View) -> Iterator[Crossover]:
    """The crossovers of each workload, at the size nearest to 4,096 elements."""
    groups = view.once(chains.groups)
    for name in dict.fromkeys(g.workload for g in groups):
        group = min((g for g in groups if g.workload == name), key=lambda g: abs(g.elements - 4096))
        for before, after in chains.COMPARED:
            rivals = group.rivals(before, after, chains.steps_of(name))
            if rivals is not None:
                found = chains.crossing(*rivals)
                first, second = (arm.kind.title for arm in rivals)
                yield Crossover(first, second, group.name, group.elements, found.steps, _verdict(found))


def _verdict(found: chains.Crossing) -> str:
    if found.always:
        return "at any length"
    if found.never:
        return "never"
    return "" if found.steps is not None else "no measurable difference"
