"""A profile of the operations that PyTorch runs on the host, by PyTorch's older profiler.

``torch.profiler`` records runtime calls through CUPTI even if only ``ProfilerActivity.CPU`` is requested, and that
slows them down. The records of the older profiler are read here one by one: its own reader takes six times as long,
and leaves many objects in memory; freeing them would slow down the next timing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any


@contextlib.contextmanager
def recorded() -> Iterator[list[Any]]:
    """Record the operations of the block; afterwards the list holds the records of each thread.

    Raises ``ImportError`` if this version of PyTorch has no such profiler.
    """
    from torch.autograd import profiler_legacy

    threads: list[Any] = []
    profiler_legacy._enable_profiler_legacy(profiler_legacy.profile().config())
    try:
        yield threads
    finally:
        threads += profiler_legacy._disable_profiler_legacy()


def operation_events(threads: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The operations in these records, as events of a Chrome trace."""
    from torch.autograd.profiler_util import _filter_name

    begin = next(record for records in threads for record in records if record.name() == "__start_profile")
    for records in threads:
        running: dict[int, Any] = {}
        for record in records:
            if record.kind() == "push" and not _filter_name(record.name()):
                running[record.handle()] = record
            elif record.kind() == "pop" and (first := running.pop(record.handle(), None)) is not None:
                yield _event(first, begin.cpu_elapsed_us(first), begin.cpu_elapsed_us(record))


def _event(record: Any, start_us: float, end_us: float) -> dict[str, Any]:
    import torch

    annotation = record.scope() == int(torch._C._profiler.RecordScope.USER_SCOPE)
    return {
        "ph": "X",
        "cat": "user_annotation" if annotation else "cpu_op",
        "name": record.name(),
        "tid": record.thread_id(),
        "ts": start_us,
        "dur": end_us - start_us,
    }
