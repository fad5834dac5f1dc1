"""The launches of a recording in a row: when each is made, and of what."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from overhead.traces.calls import call_kind, kind_of_work
from overhead.traces.events import TraceEvent
from overhead.traces.spans import start_of
from overhead.traces.trace import DeviceWork

_HOST_AND_DEVICE = re.compile(r"Memcpy (HtoD|DtoH)", re.I)
_WAITS = re.compile(r"(?:cuda|hip|cu)(?:Stream|Device|Event|Ctx)Synchronize\w*|urQueueFinish")
_OPTIMISER = re.compile(r"multi_tensor_apply|optimi[sz]er|fused_?(?:adam|sgd|lamb)", re.I)


class Launches:
    """The calls that issued device work, in the order of their start.

    ``starts``: of all of them. ``kernel_starts``, ``kernel_names``: of those that launch kernels,
    the latter as numbers. ``exchanges``: when data goes between host and device, when the host
    waits for the device, and when an optimiser updates a model; a step does so, a layer of a model
    does not.
    """

    def __init__(
        self, calls: Iterable[TraceEvent], by_correlation: Mapping[int, Sequence[DeviceWork]]
    ) -> None:
        starts: list[float] = []
        kernel_starts: list[float] = []
        kernel_names: list[int] = []
        exchanges: list[float] = []
        numbers: dict[tuple[str, str], int] = {}
        for call in sorted(calls, key=start_of):
            work = by_correlation.get(call.correlation, ()) if call.correlation else ()
            if _waits(call.name):
                exchanges.append(call.start)
            if not work:
                continue
            first = work[0].name
            starts.append(call.start)
            if _is_of_a_step(first):
                exchanges.append(call.start)
            kind = call_kind(call.name)
            if kind == "launch" or (kind == "other" and kind_of_work(first) == "launch"):
                kernel_starts.append(call.start)
                named = (call.name, first)
                kernel_names.append(numbers.setdefault(named, len(numbers)))
        self.starts = np.array(starts, dtype=np.float64)
        self.kernel_starts = np.array(kernel_starts, dtype=np.float64)
        self.kernel_names: NDArray[np.int32] = np.array(kernel_names, dtype=np.int32)
        self.exchanges = np.array(exchanges, dtype=np.float64)

    def count(self, start: float, end: float) -> int:
        """How many calls issued device work from ``start`` on and before ``end``."""
        return _count(self.starts, start, end)

    def exchanges_between(self, start: float, end: float) -> bool:
        """Whether host and device exchange something in this time, as they do in a step."""
        return _count(self.exchanges, start, end) > 0


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
