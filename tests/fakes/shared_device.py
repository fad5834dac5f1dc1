"""Peers that share processors, locks and a device, simulated event by event: contention of known
cause.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from overhead.results import Case, PeersEntry, PeriodEntry, Target, Way
from overhead.results.vocabulary import PeriodKind

BINDING, NATIVE = Case(pattern="per-submit"), Case(pattern="per-submit", caller="native")
Lines = list[PeersEntry | PeriodEntry]


@dataclass(frozen=True)
class Shared:
    """What peers share, and what a unit takes, ns.

    ``python``: what threads do one at a time; ``locked``: part of ``library`` under a lock of all
    peers. ``depth``: units that the queue of a peer holds. ``slice``: how long each has the device
    in turn, times its ``weights``; 0 for units in the order in which they come. ``spins``: peers
    poll the device. ``slower``: factor on the time on a processor while several peers run.
    ``units``: of a long chain.
    """

    way: Way = "processes"
    case: Case = BINDING
    python: float = 0.0
    library: float = 2_000.0
    locked: float = 0.0
    device: float = 500.0
    depth: int = 1024
    slice: float = 0.0
    hand_over: float = 0.0
    weights: Sequence[float] = (1.0,) * 8
    processors: int = 64
    quantum: float = 50_000.0
    spins: bool = False
    slower: float = 1.0
    units: int = 64
    long_ns: int = 6_000_000
    sets: int = 3
    peers: Sequence[int] = (2, 4)


@dataclass
class _Resource:
    """A lock, or a device. ``queue``: who waits, or the peer of each unit. ``owner`` has its slice
    ``until`` then.
    """

    busy: bool = False
    queue: deque[_Peer] = field(default_factory=deque)
    peers: list[_Peer] = field(default_factory=list)
    owner: int = -1
    until: float = 0.0


_Program = Iterator[float | deque["_Peer"] | None]
"""Yields ns on a processor, the waiting list in which to sleep, or None where another may have the
processor.
"""


@dataclass(eq=False)
class _Peer:
    """``since``: when it got its processor or began to wait for one. ``done``: units that ended in
    the window.
    """

    device: _Resource
    program: _Program = field(default_factory=lambda: iter(()))
    sleeping: deque[_Peer] = field(default_factory=deque)
    queued: int = 0
    since: float = 0.0
    cpu: float = 0.0
    ready: float = 0.0
    done: int = 0
    rows: list[list[int]] = field(default_factory=list)


class Window:
    """One window: each peer runs chains of its ``units`` until it is over. ``busy``: neighbours
    that only compute.
    """

    def __init__(
        self, of: Shared, units: Sequence[int], length: int, seed: int, busy: int = 0
    ) -> None:
        self.of, self.length, self.now = of, length, 0.0
        self.random, self.number = random.Random(seed), itertools.count()
        self.pace = (1 + 0.004 * self.random.gauss()) * (
            of.slower if len(units) + busy > 1 else 1.0
        )
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.free, self.ready = of.processors, deque[_Peer]()
        self.interpreter, self.lock, shared = _Resource(), _Resource(), _Resource()
        self.peers = [_Peer(_Resource() if of.way == "devices" else shared) for _ in units]
        for peer, own in zip(self.peers, units, strict=True):
            peer.device.peers.append(peer)
            peer.program = self.chains(peer, own)
        computing = [of.quantum, None] * (1 + int(length / of.quantum))
        for peer in [*self.peers, *(_Peer(shared, iter(computing)) for _ in range(busy))]:
            self.wake(peer)
        while self.events:
            self.now, _, call = heapq.heappop(self.events)
            call()

    def at(self, time: float, call: Callable[[], None]) -> None:
        heapq.heappush(self.events, (time, next(self.number), call))

    def chains(self, peer: _Peer, units: int) -> _Program:
        of, wait = self.of, 1_000.0 if self.of.spins else peer.sleeping
        while self.now < self.length:
            start = self.now
            for _ in range(units):
                noise = self.pace * (1 + 0.02 * self.random.gauss())
                yield from self.under(
                    self.interpreter if of.way == "threads" else _Resource(), of.python * noise
                )
                yield (of.library - of.locked) * noise
                yield from self.under(self.lock, of.locked * noise)
                while peer.queued >= of.depth:
                    yield wait
                    yield None
                peer.queued += 1
                peer.device.queue.append(peer)
                self.serve(peer.device)
                yield None
            issued = self.now
            while peer.queued:
                yield wait
                yield None
            peer.rows.append([round(start), round(issued - start), round(self.now - start)])

    def under(self, lock: _Resource, ns: float) -> _Program:
        if ns:
            while lock.busy:
                yield lock.queue
            lock.busy = True
            yield ns
            lock.busy = False
            if lock.queue:
                self.wake(lock.queue.popleft())

    def resume(self, peer: _Peer) -> None:
        """Run a peer that has a processor up to its next wait."""
        for wish in peer.program:
            if isinstance(wish, float):
                peer.cpu += wish
                return self.at(self.now + wish, lambda: self.resume(peer))
            if wish is not None:
                wish.append(peer)
                break
            if self.ready and self.now - peer.since >= self.of.quantum:
                self.at(self.now, lambda: self.wake(peer))
                break
        self.free += 1
        if self.ready:
            following = self.ready.popleft()
            following.ready += self.now - following.since
            self.wake(following)

    def wake(self, peer: _Peer) -> None:
        peer.since = self.now
        if self.free:
            self.free -= 1
            self.at(self.now, lambda: self.resume(peer))
        else:
            self.ready.append(peer)

    def serve(self, device: _Resource) -> None:
        if not device.busy and any(peer.queued for peer in device.peers):
            peer, wait = self.following(device) if self.of.slice else (device.queue.popleft(), 0.0)
            device.busy = True
            self.at(self.now + wait + self.of.device, lambda: self.finish(device, peer))

    def following(self, device: _Resource) -> tuple[_Peer, float]:
        """Who has the device next, and the time that the change takes."""
        before, peers = device.owner, device.peers
        if peers[before].queued and self.now < device.until:
            return peers[before], 0.0
        order = [(before + 1 + i) % len(peers) for i in range(len(peers))]
        device.owner = next(i for i in order if peers[i].queued)
        wait = self.of.hand_over if device.owner != before >= 0 else 0.0
        device.until = self.now + wait + self.of.slice * self.of.weights[device.owner]
        return peers[device.owner], wait

    def finish(self, device: _Resource, peer: _Peer) -> None:
        device.busy = False
        peer.queued -= 1
        peer.done += self.now <= self.length
        if peer.sleeping and peer.queued in (0, self.of.depth - 1):
            self.wake(peer.sleeping.popleft())
        self.serve(device)


def simulate(of: Shared, short: int = 16) -> tuple[Lines, dict[int, list[list[float]]]]:
    """The journal lines of all sets of windows, and by number of peers for each set the units a ns
    of each peer.
    """
    names = [str(i) for i in range(max(of.peers))] if of.way == "devices" else [""]
    targets = [Target(stack="fake", api="CUDA", adapter="A", device=name) for name in names]
    lines: Lines = [PeersEntry(way=of.way, targets=targets, case=of.case)]
    rates: dict[int, list[list[float]]] = {}
    kinds: tuple[PeriodKind, ...] = ("long", "short")
    windows = [(kind, 0, first) for first in range(len(names)) for kind in kinds]
    windows += [(kind, peers, 0) for peers in of.peers for kind in kinds]
    windows += [("slices", 2, 0)] * (of.way == "processes")
    for process, (kind, peers, first) in itertools.product(range(of.sets), windows):
        units = [short if kind == "short" else of.units] * (
            1 if of.way == "busy" else max(peers, 1)
        )
        units[0] = of.units if kind == "long" else short
        length = of.long_ns // 4 if kind == "short" else of.long_ns
        window = Window(of, units, length, seed=len(lines), busy=peers if of.way == "busy" else 0)
        if kind == "long" and peers:
            rates.setdefault(peers, []).append([peer.done / length for peer in window.peers])
        lines += [
            PeriodEntry(
                way=of.way,
                of=f"{targets[first].key} {of.case.key}",
                process=process,
                peers=max(peers, 1),
                alone=not peers,
                kind=kind,
                units=units,
                length=length,
                devices=names[first : first + len(units)] if of.way == "devices" else [],
                chains=[peer.rows for peer in window.peers],
                cpu=[round(peer.cpu) for peer in window.peers],
                ready=[round(peer.ready) for peer in window.peers],
            )
        ]
    return lines, rates
