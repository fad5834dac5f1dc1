"""The processes of a recording: which one issued which device work, and which one is read. Pure.

A step belongs to one process, and the launches of another one would count as its own. Device work
names the number of the call that issued it, and no process; several processes may number their
calls alike.
"""

from __future__ import annotations

import itertools
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from overhead.errors import BadFile
from overhead.traces.events import TraceEvent

ProcessId = int | str
_LABEL = re.compile(r"\[(?P<label>[^\]]+)\]\s*(?P<number>.*)")
"""How programs that merge the traces of ranks name processes and devices: ``[TP00] 1234``."""
_FITS = 0.98
"""The share of the work of a device that must begin after its calls, for the device to be of their
process. Chosen, not measured; clocks that differ put some work before its call.
"""
_CLOCKS_NS = 1e6
"""By so much a device's clock may be early against the host's. Chosen, not measured."""
_CLOSER = 0.5
"""Processes are paired with devices in order. Another pairing is taken only if the
distance from launches to their work is below this share of that. Chosen, not measured.
"""
_MOST_ORDERS = 6
"""Of more processes only their own order is looked at: 6 have 720 orders."""
_UNDECIDED = 0.02
"""The share of device work of an undecided process that is allowed. Chosen, not measured."""


@dataclass(frozen=True)
class ProcessTime:
    """A process of a recording that used a device. ``device_ns``: how long its work takes together,
    in the whole recording. ``name``: what the recording calls the process; empty for nothing.
    ``is_read``: whether the trace is of this one.
    """

    process: str
    device_ns: float
    name: str = ""
    is_read: bool = False


def process_named(process: str, processes: Iterable[ProcessId]) -> ProcessId | None:
    """The process that a person means by this number, text, or label of a rank (``TP00``); None
    where there is no such process, or several.
    """
    known = list(processes)
    for each in known:
        if process == str(each):
            return each
    labelled = []
    for each in known:
        found = _LABEL.fullmatch(str(each))
        if found and process in (found["label"], found["number"]):
            labelled.append(each)
    return labelled[0] if len(labelled) == 1 else None


class _Calls:
    """The calls of all processes by their numbers. ``starts``: by process and number, when the call
    begins, ns.
    """

    def __init__(self, calls: Iterable[TraceEvent]) -> None:
        self.starts: dict[ProcessId, dict[int, float]] = defaultdict(dict)
        for call in calls:
            if call.correlation:
                self.starts[call.process][call.correlation] = call.start
        # The label of a device tells its process only if no two processes have the same label.
        of_label: dict[str, list[ProcessId]] = defaultdict(list)
        for process in self.starts:
            of_label[_label(process)].append(process)
        self._of_label = of_label

    def candidates(self, work: TraceEvent) -> list[ProcessId]:
        """The processes that may have issued this work: those with a call of its number; of a
        labelled device only those with its label.
        """
        label = _label(work.process)
        labelled = self._of_label.get(label) if label else None
        if labelled is not None and len(labelled) == 1:
            return labelled
        among = labelled if labelled is not None else self.starts
        return [process for process in among if work.correlation in self.starts[process]]


def _label(process: ProcessId) -> str:
    found = _LABEL.match(str(process))
    return found["label"] if found else ""


def issuers_of(work: Sequence[TraceEvent], calls: Iterable[TraceEvent]) -> list[ProcessId | None]:
    """For each piece of work the process whose call issued it; None where no process has such a
    call. Raises ``BadFile`` if processes number their calls alike, and nothing else tells whose the
    work is.
    """
    all_calls = _Calls(calls)
    issuers: list[ProcessId | None] = []
    open_indices = []
    for index, piece in enumerate(work):
        candidates = all_calls.candidates(piece)
        issuers.append(candidates[0] if len(candidates) == 1 else None)
        if len(candidates) > 1:
            open_indices.append(index)
    if open_indices:
        _decide(work, issuers, open_indices, all_calls)
    _give_to_owners(work, issuers)
    return issuers


def _decide(
    work: Sequence[TraceEvent],
    issuers: list[ProcessId | None],
    open_indices: Sequence[int],
    calls: _Calls,
) -> None:
    """Find the process of each piece of work (at ``open_indices``) whose number calls of several
    processes have, and put it into ``issuers``. The device tells the process if each device is used
    by one process; else the time does.
    """
    by_device: dict[str, list[int]] = defaultdict(list)
    for index in open_indices:
        by_device[_device(work[index])].append(index)
    owners = _owners_of_devices(work, issuers, by_device, calls)
    undecided = 0
    for device, indices in by_device.items():
        if device in owners:
            for index in indices:
                issuers[index] = owners[device]
        else:
            undecided += _decide_by_time(work, issuers, indices, calls)
    if undecided > _UNDECIDED * len(work):
        processes = len(calls.starts)
        raise BadFile(
            f"{processes} processes in one file number their launches alike, so their device"
            " work cannot be told apart: give a file for each"
        )


def _device(work: TraceEvent) -> str:
    return work.stream.partition(":")[0]


def _owners_of_devices(
    work: Sequence[TraceEvent],
    issuers: Sequence[ProcessId | None],
    by_device: Mapping[str, Sequence[int]],
    calls: _Calls,
) -> dict[str, ProcessId]:
    """The process of each device that only one process uses. ``by_device``: by device, the work
    whose process is open; ``issuers``: the processes that are known by the number alone.
    """
    sure: dict[str, set[ProcessId]] = defaultdict(set)
    for piece, issuer in zip(work, issuers, strict=True):
        if issuer is not None:
            sure[_device(piece)].add(issuer)
    owners: dict[str, ProcessId] = {}
    open_devices = []
    for device in by_device:
        if len(sure[device]) == 1:
            owners[device] = next(iter(sure[device]))
        elif not sure[device]:
            open_devices.append(device)
    taken = set(owners.values())
    free = [process for process in sorted(calls.starts, key=_in_order) if process not in taken]
    if len(open_devices) == len(free):
        owners |= _in_pairs(work, sorted(open_devices, key=_in_order), free, by_device, calls)
    # What does not fit is decided piece by piece.
    return {
        device: owner
        for device, owner in owners.items()
        if device in by_device and _distance_ns(work, by_device[device], owner, calls) is not None
    }


def _in_order(name: ProcessId) -> tuple[float, str]:
    """Sorts numbers by their size, before texts."""
    text = str(name)
    return (float(text), "") if text.isdecimal() else (float("inf"), text)


def _in_pairs(
    work: Sequence[TraceEvent],
    devices: Sequence[str],
    processes: Sequence[ProcessId],
    by_device: Mapping[str, Sequence[int]],
    calls: _Calls,
) -> dict[str, ProcessId]:
    """Pair each device with a process, if there are as many of both. The pairing in which launches
    lie closest before their work is taken. Ranks that run in step lie equally close in every
    pairing; then the first device belongs to the first process, and so on.
    """
    distances: dict[tuple[str, ProcessId], float] = {}
    for device, process in itertools.product(devices, processes):
        distance_ns = _distance_ns(work, by_device[device], process, calls)
        if distance_ns is not None:
            distances[device, process] = distance_ns
    orders = [tuple(processes)]
    if len(processes) <= _MOST_ORDERS:
        orders = list(itertools.permutations(processes))  # the first one is their own order
    best: dict[str, ProcessId] = {}
    best_ns = float("inf")
    for order in orders:
        pairs = list(zip(devices, order, strict=True))
        if any(pair not in distances for pair in pairs):
            continue
        together_ns = sum(distances[pair] for pair in pairs)
        if not best or together_ns < _CLOSER * best_ns:
            best = dict(pairs)
            best_ns = together_ns
    return best


def _distance_ns(
    work: Sequence[TraceEvent], indices: Sequence[int], process: ProcessId, calls: _Calls
) -> float | None:
    """How long after its call of this process the work begins, ns: the median; None if it cannot be
    of this process, since calls are missing or begin later.
    """
    starts = calls.starts[process]
    distances = []
    for index in indices:
        piece = work[index]
        called = starts.get(piece.correlation)
        if called is not None and piece.start >= called - _CLOCKS_NS:
            distances.append(abs(piece.start - called))
    if len(distances) < _FITS * len(indices):
        return None
    return statistics.median(distances)


def _decide_by_time(
    work: Sequence[TraceEvent],
    issuers: list[ProcessId | None],
    indices: Sequence[int],
    calls: _Calls,
) -> int:
    """Give each piece of work at ``indices`` to the process whose call with its number began last
    before it. Returns how many pieces that leaves open: those of a number of which one process gets
    work twice and another one none.
    """
    by_number: dict[int, list[int]] = defaultdict(list)
    for index in indices:
        by_number[work[index].correlation].append(index)
    undecided = 0
    for number, of_number in by_number.items():
        given: Counter[ProcessId] = Counter()
        called: dict[ProcessId, float] = {}
        for index in of_number:
            for process in calls.candidates(work[index]):
                called[process] = calls.starts[process][number]
        for index in of_number:
            begun = [process for process in called if called[process] <= work[index].start]
            issuer = max(begun or called, key=called.__getitem__)
            issuers[index] = issuer
            given[issuer] += 1
        if len(of_number) >= len(called) > len(given):
            undecided += len(of_number)
    return undecided


def _give_to_owners(work: Sequence[TraceEvent], issuers: list[ProcessId | None]) -> None:
    """Give work without a recorded call to the only process that uses its device, in place. So it
    counts as lost there, and not in another process.
    """
    of_device: dict[str, set[ProcessId]] = defaultdict(set)
    for piece, issuer in zip(work, issuers, strict=True):
        if issuer is not None:
            of_device[_device(piece)].add(issuer)
    for index, piece in enumerate(work):
        owners = of_device[_device(piece)]
        if issuers[index] is None and len(owners) == 1:
            issuers[index] = next(iter(owners))


def device_ns_by_process(
    work: Sequence[TraceEvent], issuers: Sequence[ProcessId | None]
) -> dict[ProcessId, float]:
    """How long the device work of each process takes together, ns; of processes that have some."""
    times: dict[ProcessId, float] = {}
    for piece, issuer in zip(work, issuers, strict=True):
        if issuer is not None:
            times[issuer] = times.get(issuer, 0.0) + piece.end - piece.start
    return times


def chosen_process(times: Mapping[ProcessId, float], process: str) -> ProcessId:
    """The process that is read: the one that the person names (``process``), else the one whose
    device work takes longest. ``times``: how long that takes, by process. Raises ``BadFile`` for a
    name that no process has.
    """
    if not process:
        return max(times, key=times.__getitem__)
    found = process_named(process, times)
    if found is None:
        names = ", ".join(str(each)[:60] for each in sorted(times, key=_in_order)[:20])
        raise BadFile(f"no process {process[:60]} with device work; processes: {names}")
    return found


def process_times(
    times: Mapping[ProcessId, float], chosen: ProcessId, names: Mapping[ProcessId, str]
) -> list[ProcessTime]:
    """The processes by how long their device work takes, the longest first."""
    ordered = sorted(times, key=lambda process: -times[process])
    rows = []
    for process in ordered:
        rows.append(
            ProcessTime(
                process=str(process)[:200],
                device_ns=times[process],
                name=names.get(process, "")[:200],
                is_read=process == chosen,
            )
        )
    return rows
