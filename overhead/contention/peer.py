"""The child process of one or more peers: it opens chains, one for each peer and case, and runs
them in periods.

A period begins for all peers at one moment of the clock that all processes of a machine share. A
peer is a thread of its own, which opens its chains itself: a CUDA context and PyTorch's device
belong to the thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

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

_SPIN_NS = 300_000
"""Before the start of a period a peer spins for this long: a sleeping thread wakes late."""
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


class PeriodJob(Struct, frozen=True, tag="period"):
    """Run chains of ``units`` of a case in the first ``threads`` threads, at most ``most`` chains
    each, in a period of ``length`` ns.

    ``processors``: by thread those that it may use; empty for all. Answered by ``Warm``. Then the
    parent sends the moment of the shared clock at which the period begins, ns, which is answered by
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


PeerJob = OpenJob | PeriodJob | BusyJob


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
    """All threads have run a chain, and wait for the start of the period."""


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


class _ThreadRows(NamedTuple):
    """What one thread did in a period: as the fields of ``Ran``."""

    rows: list[list[int]]
    cpu: int
    ready: int


class _Opening:
    """Opens the cases of a job one by one, and keeps the error of each that failed.

    Its methods run in the threads of the peers.
    """

    def __init__(self, job: OpenJob, now: Callable[[], int]) -> None:
        self.job = job
        self.now = now
        self.failed: dict[int, BaseException] = {}
        self._is_first = job.chain_ns > 0
        """Whether the next chain is the first that this machine opens for these peers: if it
        fails, the cause may be the machine. So it is true in the first process until it has opened
        a chain, and never in later ones. The first is known by its job: the parent sends a
        ``chain_ns`` above 0 (how long a long chain shall take) to it alone.
        """

    def open(self, number: int) -> Chain | None:
        """An open chain of the case with this number, for the thread of one peer; None if it failed
        in this or in an earlier thread.
        """
        if number in self.failed:
            return None
        try:
            return self._open(number)
        except BaseException as error:  # a library may raise anything
            self.failed[number] = error
            return None

    def _open(self, number: int) -> Chain:
        """An open chain of the case. Raises ``Unsupported`` for one that is timed in another
        process, such as a browser (it has its ``own_loop``): its clock is not that of the peers.
        """
        # ``is_first``: nothing has run, so an error may mean that the machine cannot use the stack.
        target, case = self.job.target, self.job.cases[number]
        probe = registry()[target.stack]
        chain = open_case(probe, target, case, is_first=self._is_first)
        self._is_first = False
        if chain.own_loop:
            raise Unsupported(because("no-common-clock"))
        return chain

    def units(self, number: int, chain: Chain | None) -> int:
        """How many units a long chain of this case has; 0 if the case failed, now or before.

        ``chain``: that of the first thread, where the number is found by running it. It is None
        only for a case in ``failed``, which ends here at once.
        """
        if number in self.failed:
            return 0
        try:
            return self._units_for(chain)
        except BaseException as error:  # a library may raise anything
            self.failed[number] = error
            return 0

    def _units_for(self, chain: Chain | None) -> int:
        """How many units a chain needs to take at least ``chain_ns``: 16, doubled until it does, or
        until the chain would be longer than it may be.
        """
        # Only the first process has a ``chain_ns`` above 0, so only there chains are run for this.
        # ``chain`` is never None here: ``units`` asks for no case that failed. ``_total``: the time
        # of a chain with its wait.
        units = _FIRST_UNITS
        taken_ns = 0
        while chain is not None and taken_ns < self.job.chain_ns and 2 * units <= chain.max_n:
            units *= 2
            # The shorter of two times: the first chain of a length may compile or be interrupted.
            taken_ns = min(_total(chain, units, self.now) for _ in range(2))
        return units


class _Peers:
    """The threads of this process and their open chains. ``clock``: shared by all processes.
    ``chains``: by thread, then by case; None where a case could not be opened.
    """

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.threads: list[ThreadPoolExecutor] = []
        self.chains: list[list[Chain | None]] = []

    def open(self, job: OpenJob) -> Opened:
        """Open all cases of the job in each thread, and answer which failed, with how many units
        their chains may have and a long one has.
        """
        # The parent has tried the installed packages with stacks, so this process need not.
        allow_entry_points(job.entry_points)
        for plugin in job.plugins:
            load_plugin(Path(plugin))
        opening = _Opening(job, self.clock.now)
        numbers = range(len(job.cases))
        self.threads = [ThreadPoolExecutor(1) for _ in range(job.threads)]
        # One thread after another: libraries compile and cache what the next one uses.
        for thread in self.threads:
            chains = [thread.submit(opening.open, number).result() for number in numbers]
            self.chains.append(chains)
        # The lengths are found with the chains of the first thread.
        units = []
        for number in numbers:
            chain = self.chains[0][number]
            units.append(self.threads[0].submit(opening.units, number, chain).result())

        # By case, also those that did not fail.
        reasons: list[Why] = [""] * len(job.cases)
        statuses: list[Status] = ["ok"] * len(job.cases)
        for number, error in opening.failed.items():
            reasons[number] = reason_of(error)
            statuses[number] = status_of(error)
        most = [chain.max_n if chain else 0 for chain in self.chains[0]]
        return Opened(reasons, statuses, most, units)

    def run(self, job: PeriodJob, go: Callable[[], int]) -> Ran:
        """Run a period: all threads run chains of a case from one moment on. ``go``: says that all
        are warm, and returns this moment, in ns of the clock that all processes share.

        The threads and this function meet twice at a barrier: when all are warm, and when the start
        is known.
        """
        # ``started`` gets the moment once it is known; the lock lets one thread warm up at a time.
        meeting = threading.Barrier(job.threads + 1)
        one_at_a_time = threading.Lock()
        started: list[int] = []

        def run_period(chain: Chain, processors: Sequence[int]) -> _ThreadRows:
            """What one thread does in the period; raises ``Unverified`` if not all units ran."""
            try:
                self.clock.move(processors)
                # A CUDA graph is captured while no other thread of the process uses the context.
                with one_at_a_time:
                    before = chain.executed()
                    _total(chain, job.units, self.clock.now)
            finally:  # also after an error, as the others would wait for this thread for ever
                # First meeting: all threads are warm. Second one: the start is known to all.
                meeting.wait()
                meeting.wait()
            # ``executed``: units that the chain counted as run. It must have run all that were
            # issued.
            measured = self._chains(chain, job, started[0])
            executed = chain.executed() - before
            issued = job.units * (1 + len(measured.rows))  # the 1 is the chain that warms up
            if chain.executes and executed != issued:
                raise Unverified(because("units-not-executed", issued=issued, executed=executed))
            return measured

        # The chain of this case in each thread. None is missing: the parent asks for no case that
        # failed to open in any thread. A job may want fewer threads than there are.
        of_case = [chains[job.case] for chains in self.chains]
        open_chains = [chain for chain in of_case if chain is not None]
        running = []
        for number in range(job.threads):
            thread, chain = self.threads[number], open_chains[number]
            running.append(thread.submit(run_period, chain, job.processors[number]))
        meeting.wait()
        started.append(go())
        meeting.wait()
        try:
            measured = [each.result() for each in running]
        except BaseException as error:
            return Ran(status=status_of(error), reason=reason_of(error))
        return Ran(
            chains=[each.rows for each in measured],
            cpu=[each.cpu for each in measured],
            ready=[each.ready for each in measured],
        )

    def _chains(self, chain: Chain, job: PeriodJob, start: int) -> _ThreadRows:
        """Run chains one after the other from the start of the period to its end; the last one may
        end later.

        Returns a row for each chain (when it began, how long it took to enqueue, how long in all),
        and of the whole loop the CPU time of the thread and the time in which it was ready to run
        and had no CPU core.
        """
        # ``most``: so many chains at most, as they go to a file. The clock of ``start`` is shared
        # by all processes.
        now, units, end = self.clock.now, job.units, start + job.length
        rows: list[list[int]] = []
        ready_before = self.clock.queued()
        # A spinning thread would keep the interpreter from the others.
        spin = _SPIN_NS if job.threads == 1 else 0
        self.clock.sleep(max(0, start - now() - spin) / 1e9)
        while now() < start:
            pass
        # ``queued`` counts how long this thread was ready to run and had no processor.
        cpu_before = self.clock.thread_cpu()
        while now() < end and len(rows) < job.most:
            chain.prepare(units)
            t0 = now()
            chain.issue(units)
            t1 = now()
            chain.wait()
            rows.append([t0 - start, t1 - t0, now() - t0])
        cpu = self.clock.thread_cpu() - cpu_before
        ready = self.clock.queued() - ready_before
        return _ThreadRows(rows, cpu, ready)


def _total(chain: Chain, units: int, now: Callable[[], int]) -> int:
    """The time of one chain of so many units with its wait, ns."""
    chain.prepare(units)
    begin = now()
    chain.issue(units)
    chain.wait()
    return now() - begin


def _answers() -> Callable[[PeerJob, Parent], None]:
    """The function that answers each job of the parent process (open chains, run a period, keep a
    processor busy) with the peers of this process, which it keeps from job to job.
    """
    peers = _Peers()

    def answer(job: PeerJob, parent: Parent) -> None:
        """Carry out one job, and send the answer to the parent."""

        def go() -> int:
            """Say that all threads are warm, and wait for the moment at which the period begins."""
            parent(Warm())
            # The next line of the parent is no job but this moment.
            return msgspec.json.decode(next(parent.lines), type=int)

        # To open, to run a period, or to be a busy neighbour until a moment.
        match job:
            case OpenJob():
                parent(peers.open(job))
            case PeriodJob():
                parent(peers.run(job, go))
            case BusyJob():
                while peers.clock.now() < job.until:
                    pass

    return answer


if __name__ == "__main__":
    serve(PeerJob, _answers())  # type: ignore[arg-type]
