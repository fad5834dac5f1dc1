"""Peers that share processors, locks and a device, simulated event by event: contention of known cause."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from overhead.results import Case, PeersLine, Target, Way, WindowLine
from overhead.results.vocabulary import WindowKind

BINDING, NATIVE = Case(pattern="per-submit"), Case(pattern="per-submit", caller="native")


@dataclass(frozen=True)
class Shared:
    """What peers share, and what a unit takes, ns."""

    way: Way = "processes"
    case: Case = BINDING
    python: float = 0.0
    """In Python, which threads do one at a time."""
    library: float = 2_000.0
    locked: float = 0.0
    """Part of ``library`` under a lock that all peers share."""
    device: float = 500.0
    depth: int = 1024
    """Units that the queue of a peer holds."""
    slice: float = 0.0
    """Each peer gets the device for so long in turn; 0: units run in the order in which they come."""
    hand_over: float = 0.0
    weights: Sequence[float] = (1.0,) * 8
    """Of the slices, by peer."""
    processors: int = 64
    quantum: float = 50_000.0
    spins: bool = False
    """Whether a peer polls while it waits for the device."""
    slower: float = 1.0
    """Factor on all time on a processor while several peers run."""
    units: int = 256
    """Of a long chain."""
    long_ns: int = 8_000_000
    sets: int = 4
    peers: Sequence[int] = (2, 4)


@dataclass
class _Lock:
    held: bool = False
    waiting: deque[_Peer] = field(default_factory=deque)


@dataclass
class _Device:
    """With slices ``owner`` has it until ``until``. Without them ``queue`` has the peer of each unit that waits."""

    peers: list[_Peer] = field(default_factory=list)
    queue: deque[_Peer] = field(default_factory=deque)
    busy: bool = False
    owner: int = -1
    until: float = 0.0


_Program = Iterator[float | deque["_Peer"] | None]
"""Yields ns on a processor, the waiting list in which to sleep, or None where another may have the processor."""


@dataclass(eq=False)
class _Peer:
    """``since``: when it got its processor or began to wait for one. ``done``: units that ended in the window."""

    device: _Device
    program: _Program = field(default_factory=lambda: iter(()))
    sleeping: deque[_Peer] = field(default_factory=deque)
    queued: int = 0
    since: float = 0.0
    cpu: float = 0.0
    ready: float = 0.0
    done: int = 0
    rows: list[list[int]] = field(default_factory=list)


class Window:
    """One window: each peer runs chains of its ``units`` until it is over. ``busy``: neighbours that only compute."""

    def __init__(self, of: Shared, units: Sequence[int], length: int, seed: int, busy: int = 0) -> None:
        self.of, self.length, self.now = of, length, 0.0
        self.random, self.number = random.Random(seed), itertools.count()
        self.pace = (1 + 0.004 * self.random.gauss()) * (of.slower if len(units) > 1 else 1.0)
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.free, self.ready = of.processors, deque[_Peer]()
        self.interpreter, self.lock, shared = _Lock(), _Lock(), _Device()
        self.peers = [_Peer(_Device() if of.way == "devices" else shared) for _ in units]
        for peer, own in zip(self.peers, units, strict=True):
            peer.device.peers.append(peer)
            peer.program = self.chains(peer, own)
        for peer in [*self.peers, *(_Peer(shared, self.computing()) for _ in range(busy))]:
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
                yield from self.under(self.interpreter if of.way == "threads" else _Lock(), of.python * noise)
                yield (of.library - of.locked) * noise
                yield from self.under(self.lock, of.locked * noise)
                while peer.queued >= of.depth:
                    yield wait
                    yield None
                self.push(peer)
                yield None
            issued = self.now
            while peer.queued:
                yield wait
                yield None
            peer.rows.append([round(start), round(issued - start), round(self.now - start)])

    def under(self, lock: _Lock, ns: float) -> _Program:
        if ns:
            while lock.held:
                yield lock.waiting
            lock.held = True
            yield ns
            lock.held = False
            if lock.waiting:
                self.wake(lock.waiting.popleft())

    def computing(self) -> _Program:
        while self.now < self.length:
            yield self.of.quantum
            yield None

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

    def push(self, peer: _Peer) -> None:
        peer.queued += 1
        if not self.of.slice:
            peer.device.queue.append(peer)
        self.serve(peer.device)

    def serve(self, device: _Device) -> None:
        if not device.busy and any(peer.queued for peer in device.peers):
            peer, wait = self.following(device) if self.of.slice else (device.queue.popleft(), 0.0)
            device.busy = True
            self.at(self.now + wait + self.of.device, lambda: self.finish(device, peer))

    def following(self, device: _Device) -> tuple[_Peer, float]:
        """Who has the device next, and the time that the change takes."""
        before, wait, peers = device.owner, 0.0, device.peers
        if not peers[before].queued or self.now >= device.until:
            order = [(before + 1 + i) % len(peers) for i in range(len(peers))]
            device.owner = next(i for i in order if peers[i].queued)
            wait = self.of.hand_over if device.owner != before >= 0 else 0.0
            device.until = self.now + wait + self.of.slice * self.of.weights[device.owner]
        return peers[device.owner], wait

    def finish(self, device: _Device, peer: _Peer) -> None:
        device.busy = False
        peer.queued -= 1
        peer.done += self.now <= self.length
        if peer.sleeping and peer.queued in (0, self.of.depth - 1):
            self.wake(peer.sleeping.popleft())
        self.serve(device)


@dataclass(frozen=True)
class Simulated:
    """The journal lines of sets of windows. ``rates``: by number of peers, for each set the units a ns of each peer."""

    lines: Sequence[PeersLine | WindowLine]
    rates: dict[int, list[list[float]]]


def simulate(of: Shared, short: int = 16) -> Simulated:
    """In each set of processes the first peer alone, then windows of each number of peers."""
    names = [str(i) for i in range(max(of.peers))] if of.way == "devices" else [""]
    targets = [Target(stack="fake", api="CUDA", adapter="A", device=name) for name in names]
    lines: list[PeersLine | WindowLine] = [PeersLine(way=of.way, targets=targets, case=of.case)]
    rates: dict[int, list[list[float]]] = {}
    for process, (kind, peers, first) in itertools.product(range(of.sets), _windows(of, len(names))):
        units = [short if kind == "short" else of.units] * (1 if of.way == "busy" else max(peers, 1))
        units[0] = of.units if kind == "long" else short
        length = of.long_ns // 4 if kind == "short" else of.long_ns
        window = Window(of, units, length, seed=len(lines), busy=peers if of.way == "busy" else 0)
        if kind == "long" and peers:
            rates.setdefault(peers, []).append([peer.done / length for peer in window.peers])
        line = WindowLine(
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
        lines.append(line)
    return Simulated(lines, rates)


def _windows(of: Shared, devices: int) -> Iterator[tuple[WindowKind, int, int]]:
    """Kind, peers (0: one alone) and first device of each window of a set."""
    kinds: tuple[WindowKind, ...] = ("long", "short")
    yield from ((kind, 0, device) for device in range(devices) for kind in kinds)
    yield from ((kind, peers, 0) for peers in of.peers for kind in kinds)
    if of.way == "processes" and 2 in of.peers:
        yield "slices", 2, 0
