"""Made-up runs for tests: journals and fingerprints measured on the fake clock."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overhead import results
from overhead.loading import files
from overhead.loading.reduce import reduce_journal
from overhead.results import (
    Case,
    EndedEntry,
    HeaderEntry,
    JournalEntry,
    Machine,
    OpenedEntry,
    PlannedEntry,
    RoundEntry,
    Scalar,
    Target,
    Together,
)
from tests.fakes.machine import Disturbance, FakeClock, FastFakeChain, Law

MACHINE = Machine(id="0123456789ab", cpu="a CPU", cores=2, memory_gib=24)
TARGET = Target(stack="fake", api="CPU", adapter="A")
CASES = {
    name: Case(pattern="per-submit", params={"size": name}) for name in ("small", "middle", "large")
}
COSTS = {"small": 1_000.0, "middle": 5_000.0, "large": 20_000.0}
QUIET = Disturbance(spread=0.004, preemptions=0.0)
LADDER = (0, 1, 4, 16, 64)
_JOURNALS: dict[str, bytes] = {}


@dataclass(frozen=True)
class Made:
    """Settings of a made-up run. ``costs``: ns per unit by case; ``seed``: of its noise."""

    seed: int = 0
    costs: Mapping[str, float] = field(default_factory=lambda: COSTS)
    processes: int = 5
    disturbance: Disturbance = QUIET
    machine: Machine = MACHINE
    target: Target = TARGET
    window: Mapping[str, Scalar] = field(default_factory=lambda: {"submits": 1})
    kernels: Mapping[str, str] = field(default_factory=lambda: {"step": "aa"})
    method_version: int = results.ANCHORED_FROM - 1
    """Its processes take no anchors."""
    slow: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    together: Together | None = None
    numbers: Sequence[int] = ()
    """The numbers of the processes, if not 0, 1, 2, ..."""
    drift: Mapping[int, float] = field(default_factory=dict)
    """By the number of a process, the factor on all its times."""

    def lines(self) -> list[JournalEntry]:
        """The lines of its journal."""
        header = HeaderEntry(
            schema_version=results.SCHEMA_VERSION,
            method_version=self.method_version,
            created=f"2026-11-21T12:00:{self.seed % 60:02d}Z",
            profile="default",
            machine=self.machine,
            versions=dict(self.versions),
            together=self.together,
        )
        key = self.target.key
        lines: list[JournalEntry] = [header]
        lines += [
            PlannedEntry(worker=key, target=self.target, case=CASES[name]) for name in self.costs
        ]
        for process in self.numbers or range(self.processes):
            clock = FakeClock(self.disturbance, seed=100 * self.seed + process, slow=self.slow)
            slower = self.drift.get(process, 1.0)
            laws = {
                name: Law(host=slower * cost, device=10.0, own=0.002)
                for name, cost in self.costs.items()
            }
            chains = {name: FastFakeChain(law, clock) for name, law in laws.items()}
            ids: dict[str, dict[str, Any]] = {
                name: {"target": key, "case": CASES[name].key, "worker": key, "process": process}
                for name in chains
            }
            window, kernels = dict(self.window), dict(self.kernels)
            lines += [
                OpenedEntry(**one, overlap="pipelined", window=window, kernels=kernels)
                for one in ids.values()
            ]
            for number in range(6):
                loops = clock.reference_loop()
                for name, chain in chains.items():
                    samples = chain.sample(LADDER, False) + chain.sample((1, 64), True)
                    lines.append(
                        RoundEntry(**ids[name], round=number, samples=samples, canary=loops)
                    )
            lines.append(EndedEntry(worker=key, process=process, rule="6 rounds"))
        return lines

    def journal(self, path: Path) -> Path:
        """Write only the journal, as an interrupted run leaves it. Equal settings are measured
        once.
        """
        if repr(self) not in _JOURNALS:
            _JOURNALS[repr(self)] = b"".join(map(results.encode_entry, self.lines()))
        path.write_bytes(_JOURNALS[repr(self)])
        return path

    def write(self, path: Path, *, samples: bool = True) -> Path:
        """Write the fingerprint and, with ``samples``, the file of raw samples beside it."""
        journal = self.journal(path.with_suffix(".jsonl"))
        files.write_fingerprint(path, reduce_journal(journal))
        if samples:
            path.with_suffix(".samples.jsonl.gz").write_bytes(gzip.compress(journal.read_bytes()))
        journal.unlink()
        return path
