"""A whole loop of steps compiled as one function: compile time, memory, speed-up or failure, by its length."""

from __future__ import annotations

import dataclasses

from overhead.reading.boards import apart
from overhead.reading.format import factor, listed, plain
from overhead.reading.intervals import Span, measured
from overhead.reading.missing_values import why
from overhead.reading.view import View
from overhead.results import Record
from overhead.workloads import UNROLLED, unrolled_of


@dataclasses.dataclass(frozen=True)
class UnrolledLoop:
    """A loop compiled as one function; ``failure`` is '' where it compiled. Times in ns, memory in bytes."""

    record: Record
    steps: int
    eager: Span | None
    """A step of eager operations in the same run; None where that run did not measure it."""

    @property
    def call(self) -> Span | None:
        """One call with all its steps."""
        return measured(self.record, "complete")

    @property
    def compile(self) -> Span | None:
        return measured(self.record, "compile")

    @property
    def peak(self) -> Span | None:
        """Highest resident memory while it compiled."""
        return measured(self.record, "peak_memory")

    @property
    def speed_up(self) -> Span | None:
        """Time of as many eager steps over the time of the call; None where either has no value."""
        call, eager = self.call, self.eager
        return None if call is None or eager is None or call.value <= 0 else eager * self.steps / call

    @property
    def failure(self) -> str:
        return "" if self.call or self.compile else why(self.record, "complete")

    @property
    def remark(self) -> str:
        """Why there is no time per call; '' where there is one."""
        return "" if self.call else why(self.record, "complete")


@dataclasses.dataclass(frozen=True)
class Loops:
    """All lengths on one device, shortest first."""

    place: str
    workload: str
    elements: int
    torch: str
    loops: tuple[UnrolledLoop, ...]


def unrolled(view: View) -> list[Loops]:
    """The compiled loops, by device and number of elements."""
    found: dict[tuple[str, int], list[Record]] = {}
    for target in view.stacked:
        for record in target.records:
            elements = record.params.get("elements")
            if record.workload == UNROLLED and isinstance(elements, int):
                found.setdefault((target.key, elements), []).append(record)
    return [_loops(view, elements, records) for (_, elements), records in found.items()]


def _loops(view: View, elements: int, records: list[Record]) -> Loops:
    eager = next((r for r in records if r.params.get("mode") == "eager"), None)
    step = measured(eager, "complete")
    lengths = [(n, r) for r in records if isinstance(n := r.params.get("steps"), int) and n > 0]
    loops = [
        UnrolledLoop(record, n, step if eager is not None and not apart(record, eager) else None)
        for n, record in sorted(lengths, key=lambda one: one[0])
    ]
    version = plain(view.fingerprint.versions.get("torch", ""), 30)
    return Loops(view.target(records[0]).label, unrolled_of(UNROLLED), elements, version, tuple(loops))


def loops_sentence(found: Loops) -> str:
    """A sentence: compile time and speed-up of the shortest and the longest loop that worked, and which ones failed."""
    worked = [loop for loop in found.loops if not loop.failure]
    failed = [loop for loop in found.loops if loop.failure]
    version = f", torch {found.torch}" if found.torch else ""
    said = [_worked(loop) for loop in (worked if len(worked) < 2 else [worked[0], worked[-1]])]
    if failed:
        said.append(f"{listed([f'{loop.steps:,}' for loop in failed])} steps fail ({failed[0].failure})")
    where = f"torch.compile of a whole loop of {found.workload}, {found.elements:,} elements ({found.place}{version})"
    return f"{where}: {'; '.join(said) or 'no length was measured'}."


def _worked(loop: UnrolledLoop) -> str:
    took = f"take {loop.compile.value / 1e9:,.3g} s to compile" if loop.compile else "compile"
    gain = f" and run {factor(loop.speed_up.value)} as fast as eager" if loop.speed_up else ""
    return f"{loop.steps:,} steps {took}{gain}"
