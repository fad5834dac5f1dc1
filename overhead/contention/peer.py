"""The child process of one or more peers: it opens chains, one for each peer and case, and runs
windows of them.

A window begins for all peers at one moment of the clock that all processes of a machine share. A
peer is a thread of its own, which opens its chains itself: a CUDA context and PyTorch's device
belong to the thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from overhead.child import Parent, serve
from overhead.errors import Unsupported, Unverified
from overhead.measure.sampling.chain import Chain
from overhead.measure.sampling.clock import SystemClock
from overhead.measure.sampling.events import reason_of, status_of
from overhead.probes import allow_entry_points, load_plugin, registry
from overhead.probes.arms import open_case
from overhead.results import Case, Status, Target, Why, because

T = TypeVar("T")
_SPIN_NS = 300_000
"""Before the start of a window a peer spins for this long: a sleeping thread wakes late."""
_FIRST_UNITS = 16


class OpenJob(Struct, frozen=True, tag="open"):
    """Open these cases of a target, for each of so many threads. Answered by ``Opened``.

    ``chain_ns``: how long a chain takes for which ``Opened`` tells the units; 0 where they are
    known.
    """

    target: Target
    cases: list[Case]
    threads: int
    plugins: list[str]
    entry_points: list[str]
    chain_ns: int


class WindowJob(Struct, frozen=True, tag="window"):
    """Run chains of ``units`` of a case in the first ``threads`` threads, at most ``most`` chains
    each.

    ``processors``: by thread those that it may use; empty for all. Answered by ``Warm``. Then the
    parent sends the moment of the shared clock at which the window begins, ns, which is answered by
    ``Ran``.
    """

    case: int
    units: int
    length: int
    threads: int
    processors: list[list[int]]
    most: int


class BusyJob(Struct, frozen=True, tag="busy"):
    """Keep a processor busy from now until a moment of the shared clock, ns. Not answered."""

    until: int


PeerJob = OpenJob | WindowJob | BusyJob


class Opened(Struct, frozen=True, tag="opened"):
    """By case why it could not be opened, '' where it is open, with the status. ``most``: its
    largest n.

    ``units``: 16 times the power of two that takes at least the time asked for.
    """

    reasons: list[Why]
    statuses: list[Status]
    most: list[int]
    units: list[int]


class Warm(Struct, frozen=True, tag="warm"):
    """All threads have run a chain, and wait for the start of the window."""


class Ran(Struct, frozen=True, tag="ran"):
    """By thread the rows ``[start_ns, issue_ns, total_ns]``, CPU time and time ready to run, as in
    ``PeriodEntry``.
    """

    chains: list[list[list[int]]] = []
    cpu: list[int] = []
    ready: list[int] = []
    status: Status = "ok"
    reason: Why = ""


Answer = Opened | Warm | Ran
decode_answer = msgspec.json.Decoder(Answer).decode


class _Peers:
    """The threads of this process and their open chains. ``clock``: shared by all processes."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.threads: list[ThreadPoolExecutor] = []
        self.chains: list[list[Chain | None]] = []

    def open(self, job: OpenJob) -> Opened:
        allow_entry_points(job.entry_points)
        for plugin in job.plugins:
            load_plugin(Path(plugin))
        probe = registry()[job.target.stack]
        self.threads = [ThreadPoolExecutor(1) for _ in range(job.threads)]
        failed: dict[int, BaseException] = {}

        def attempt(call: Callable[[int], T], number: int) -> T | None:
            try:
                return None if number in failed else call(number)
            except BaseException as error:  # a library may raise anything
                failed[number] = error
                return None

        opened: list[Chain] = []

        def open_one(number: int) -> Chain:
            # Only the first peer is told how long a chain takes. What it cannot open, this machine
            # cannot run.
            is_first = job.chain_ns > 0 and not opened
            chain = open_case(probe, job.target, job.cases[number], is_first=is_first)
            opened.append(chain)
            if chain.own_loop:
                raise Unsupported(because("no-common-clock"))
            return chain

        def units_of(number: int) -> int:
            chain, units, taken = self.chains[0][number], _FIRST_UNITS, 0
            while chain is not None and taken < job.chain_ns and 2 * units <= chain.max_n:
                units *= 2
                taken = min(_total(chain, units, self.clock.now) for _ in range(2))
            return units

        numbers = range(len(job.cases))
        for (
            thread
        ) in self.threads:  # one after another: libraries compile and cache what the next one uses
            self.chains.append(
                [thread.submit(attempt, open_one, number).result() for number in numbers]
            )
        units = [
            self.threads[0].submit(attempt, units_of, number).result() or 0 for number in numbers
        ]
        return Opened(
            [reason_of(failed[n]) if n in failed else "" for n in numbers],
            [status_of(failed[n]) if n in failed else "ok" for n in numbers],
            [chain.max_n if chain else 0 for chain in self.chains[0]],
            units,
        )

    def run(self, job: WindowJob, go: Callable[[], int]) -> Ran:
        """Run a window. ``go``: says that all are warm, and returns the moment at which the window
        begins.
        """
        warm, one_at_a_time = threading.Barrier(job.threads + 1), threading.Lock()
        started: list[int] = []

        def window(chain: Chain, processors: Sequence[int]) -> tuple[list[list[int]], int, int]:
            try:
                self.clock.move(processors)
                with (
                    one_at_a_time
                ):  # a CUDA graph is captured while no other thread of the process uses the context
                    before = chain.executed()
                    _total(chain, job.units, self.clock.now)
            finally:
                warm.wait()  # first: all are warm
                warm.wait()  # then: the start is known
            rows, cpu, ready = self._chains(chain, job, started[0])
            ran, issued = chain.executed() - before, job.units * (1 + len(rows))
            if chain.executes and ran != issued:
                raise Unverified(because("units-not-executed", issued=issued, executed=ran))
            return rows, cpu, ready

        chains = [chain for own in self.chains if (chain := own[job.case]) is not None]
        ran = [
            self.threads[i].submit(window, chains[i], job.processors[i]) for i in range(job.threads)
        ]
        warm.wait()
        started.append(go())
        warm.wait()
        try:
            found = [one.result() for one in ran]
        except BaseException as error:
            return Ran(status=status_of(error), reason=reason_of(error))
        rows, cpu, ready = (list(each) for each in zip(*found, strict=True))
        return Ran(rows, cpu, ready)

    def _chains(self, chain: Chain, job: WindowJob, start: int) -> tuple[list[list[int]], int, int]:
        """Rows, CPU time and time ready to run, from the start of the window to the end of the last
        chain.
        """
        now, units, end = self.clock.now, job.units, start + job.length
        rows: list[list[int]] = []
        ready = self.clock.queued()
        spin = (
            _SPIN_NS if job.threads == 1 else 0
        )  # a spinning thread would keep the interpreter from the others
        self.clock.sleep(max(0, start - now() - spin) / 1e9)
        while now() < start:
            pass
        cpu = self.clock.thread_cpu()
        while now() < end and len(rows) < job.most:
            chain.prepare(units)
            t0 = now()
            chain.issue(units)
            t1 = now()
            chain.wait()
            rows.append([t0 - start, t1 - t0, now() - t0])
        return rows, self.clock.thread_cpu() - cpu, self.clock.queued() - ready


def _total(chain: Chain, units: int, now: Callable[[], int]) -> int:
    chain.prepare(units)
    begin = now()
    chain.issue(units)
    chain.wait()
    return now() - begin


def _answers() -> Callable[[PeerJob, Parent], None]:
    peers = _Peers()

    def answer(job: PeerJob, parent: Parent) -> None:
        def go() -> int:
            parent(Warm())
            return msgspec.json.decode(next(parent.lines), type=int)

        match job:
            case OpenJob():
                parent(peers.open(job))
            case WindowJob():
                parent(peers.run(job, go))
            case BusyJob():
                while peers.clock.now() < job.until:
                    pass

    return answer


if __name__ == "__main__":
    serve(PeerJob, _answers())  # type: ignore[arg-type]
