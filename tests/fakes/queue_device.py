"""A device with a queue on a fake clock, for statements of known cost."""

from __future__ import annotations

from tests.fakes.machine import FakeClock


class QueueDevice:
    """Each launch takes ``host_ns`` of the caller and then ``device_ns`` in the queue."""

    current: QueueDevice
    """The device that a SETUP finds."""

    def __init__(self, clock: FakeClock, host_ns: float, device_ns: float) -> None:
        self.clock, self.host_ns, self.device_ns = clock, host_ns, device_ns
        self.launched = self.waits = 0
        self.done_at = clock.time
        QueueDevice.current = self

    def launch(self) -> None:
        self.clock.time += self.host_ns
        self.done_at = max(self.done_at, self.clock.time) + self.device_ns
        self.launched += 1

    def synchronize(self) -> None:
        self.clock.time = max(self.clock.time, self.done_at)
        self.waits += 1
