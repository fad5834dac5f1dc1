"""The launches of a recording in a row: when each is made, and of what."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from overhead.traces.calls import call_kind, kind_of_work
from overhead.traces.events import TraceEvent
from overhead.traces.spans import start_of
from overhead.traces.trace import DeviceWork

_HOST_AND_DEVICE = re.compile(r"Memcpy (HtoD|DtoH)", re.I)
_WAITS = re.compile(r"(?:cuda|hip|cu)(?:Stream|Device|Event|Ctx)Synchronize\w*|urQueueFinish")
_SHARDED = re.compile(r"all_?to_?all|send_?recv|all_?gather|reduce_?scatter", re.I)
"""Collectives that a layer of a model makes if several ranks share its weights or its experts."""
_OPTIMISER = re.compile(r"multi_tensor_apply|optimi[sz]er|fused_?(?:adam|sgd|lamb)", re.I)


class NamedCalls(NamedTuple):
    """Calls in the order of their start: when each is made, and a number for what it does; equal
    numbers do the same.
    """

    starts: NDArray[np.float64]
    names: NDArray[np.int32]

    def between(self, start: float, end: float) -> NamedCalls:
        """Those from ``start`` on and before ``end``."""
        first, after = np.searchsorted(self.starts, [start, end])
        return NamedCalls(self.starts[first:after], self.names[first:after])


class Launches:
    """The calls that issued device work, in the order of their start.

    ``starts``: of all of them. ``kernels``: those that launch kernels, by kernel. ``exchanges``:
    when data goes between host and device, when the host waits for the device, and when an
    optimiser updates a model; a step does so, a layer of a model does not. ``all_calls``: the
    kernels and the exchanges in one row.
    """

    def __init__(
        self, calls: Iterable[TraceEvent], by_correlation: Mapping[int, Sequence[DeviceWork]]
    ) -> None:
        starts: list[float] = []
        kernels: list[tuple[float, int]] = []
        all_calls: list[tuple[float, int]] = []
        exchanges: list[float] = []
        sharded: list[float] = []
        updates: list[float] = []
        numbers: dict[tuple[str, str], int] = {}
        for call in sorted(calls, key=start_of):
            work = by_correlation.get(call.correlation, ()) if call.correlation else ()
            waits = _waits(call.name)
            if not work and not waits:
                continue
            first = work[0].name if work else ""
            number = numbers.setdefault((call.name, first), len(numbers))
            if waits or _is_of_a_step(first):
                exchanges.append(call.start)
                all_calls.append((call.start, number))
            if not work:
                continue
            starts.append(call.start)
            if _OPTIMISER.search(first):
                updates.append(call.start)
            elif _SHARDED.search(first):
                sharded.append(call.start)
            kind = call_kind(call.name)
            if kind == "launch" or (kind == "other" and kind_of_work(first) == "launch"):
                kernels.append((call.start, number))
                if not _is_of_a_step(first):
                    all_calls.append((call.start, number))
        self.starts = np.array(starts, dtype=np.float64)
        self.exchanges = np.array(exchanges, dtype=np.float64)
        self._sharded = np.array(sharded, dtype=np.float64)
        self._updates = np.array(updates, dtype=np.float64)
        self.kernels = _named_calls(kernels)
        self.all_calls = _named_calls(all_calls)

    def count(self, start: float, end: float) -> int:
        """How many calls issued device work from ``start`` on and before ``end``."""
        return _count(self.starts, start, end)

    def exchanges_between(self, start: float, end: float) -> bool:
        """Whether host and device exchange something in this time, as they do in a step.

        A layer of experts waits for the device too, to learn how much it gets from other ranks. So
        where ranks share layers, only an update of the model counts.
        """
        if _count(self._updates, start, end):
            return True
        if _count(self._sharded, start, end):
            return False
        return _count(self.exchanges, start, end) > 0


def _named_calls(calls: Sequence[tuple[float, int]]) -> NamedCalls:
    starts = np.array([start for start, _ in calls], dtype=np.float64)
    return NamedCalls(starts, np.array([number for _, number in calls], dtype=np.int32))


@functools.lru_cache(maxsize=10_000)
def _waits(call: str) -> bool:
    return _WAITS.fullmatch(call) is not None


@functools.lru_cache(maxsize=10_000)
def _is_of_a_step(work: str) -> bool:
    """Whether device work of this name is of a step, and not of a layer."""
    return bool(_HOST_AND_DEVICE.match(work) or _OPTIMISER.search(work))


def _count(starts: NDArray[np.float64], start: float, end: float) -> int:
    first, after = np.searchsorted(starts, [start, end])
    return int(after - first)
