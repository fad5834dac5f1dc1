"""The clock of a device that exists only here: timestamps that advance, and those of a driver that
writes zeros.
"""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

from overhead.probes.base import Unsupported
from overhead.probes.webgpu.device_time import DeviceClock


def clock(stamps: list[int]) -> DeviceClock:
    """The clock of a device whose timestamps have these values, in nanoseconds."""

    def read_buffer(buffer: object, offset: int, size: int) -> bytes:
        first = stamps[: size // 8]
        return np.array(first, np.uint64).tobytes()

    flags = SimpleNamespace(QUERY_RESOLVE=1, COPY_SRC=2, UNIFORM=4)
    resources = MagicMock(data=[MagicMock()], flags=flags)
    resources.session = SimpleNamespace(timestamps=True, tick=1.0)
    resources.queue.read_buffer = read_buffer
    return DeviceClock(MagicMock(), resources)


def test_the_quantum_of_the_device_clock_is_the_common_divisor_of_timestamps() -> None:
    assert clock([7_000 + 84 * i * i for i in range(64)]).quantum == 84.0


def test_a_blocker_that_is_too_short_to_be_true_ends_the_measurement() -> None:
    """Else a blocker of hundreds of thousands of dispatches would run for minutes."""
    wrong = clock([0, 20, 297_434, 297_454] + [300_000 + 20 * i for i in range(60)])
    with pytest.raises(Unsupported, match=r"adapter-timestamps-wrong \(span_ns=20\.0"):
        wrong.measure(300)
    assert wrong.repeats == 1


@pytest.mark.parametrize("value", [0, 7_000])
def test_a_device_clock_that_stands_still_is_unsupported(value: int) -> None:
    """Else the work that keeps the device busy would be made longer and longer, because it seems to
    take no time.
    """
    with pytest.raises(Unsupported, match="adapter-timestamps-stand"):
        clock([value] * 64)
