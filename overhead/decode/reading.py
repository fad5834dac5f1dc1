"""What a run measured of decoding tokens: the arms of each decoder, and the cost of a dispatch in a
real program.

An arm is one way to decode: a stack and a pattern with parameters, such as the number of fusions or
of sequences.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

from overhead.decode.decoders import DECODERS
from overhead.reading.precision import resolved
from overhead.reading.view import TargetView, View, by_board
from overhead.results import Record, Value, exactly


@dataclasses.dataclass(frozen=True)
class DecodeArm:
    """A way to decode, and its record. Times in ns for a step, which makes a token of each sequence
    of the batch.
    """

    target: TargetView
    record: Record

    @property
    def is_lowered(self) -> bool:
        """Whether it runs the lowered program, whose dispatches may be fused."""
        return "fusions" in self.record.params

    @property
    def batch(self) -> int:
        """Sequences in a step."""
        return int(self.record.params.get("batch", 1))

    @property
    def dispatches(self) -> int | None:
        """Dispatches of a token in the program that ran; operations of eager PyTorch; nodes of ONNX
        Runtime.
        """
        window = self.record.window
        nodes = [
            value
            for name, value in window.items()
            if name.startswith("nodes on ") and isinstance(value, int)
        ]
        found = window.get("dispatches", window.get("operations", sum(nodes) or None))
        return found if isinstance(found, int) else None

    def is_resolved(self, figure: str) -> bool:
        """True if the figure of the record with this name may be drawn."""
        return resolved(self.record.figure(figure))

    @property
    def complete(self) -> Value | None:
        """The time of a step with its work done, ns; None if it was not measured."""
        return self.record.measured("complete")

    @property
    def host(self) -> Value | None:
        """The host's time to issue a step, ns; None if it was not measured."""
        return self.record.measured("issue")

    @property
    def device(self) -> Value | None:
        """The device's time for a step, ns; None if it was not measured."""
        return self.record.measured("device_busy") or self.record.measured("device_span")

    @property
    def device_doubt(self) -> Literal["", "exceeds", "not-resolved"]:
        """Whether the device's time lies above the token's, surely or by its interval; '' where it
        lies below.
        """
        if self.device is None or self.complete is None or self.device.value <= self.complete.value:
            return ""
        return "exceeds" if self.device.floor > self.complete.ceiling else "not-resolved"

    @property
    def tokens_per_s(self) -> Value | None:
        """Tokens a second of all sequences; None without a positive time, or if a prompt is part of
        the time.
        """
        time = self.complete
        return (
            None
            if time is None or time.value <= 0 or "tokens" in self.record.params
            else exactly(1e9 * self.batch, "1/s") / time
        )

    @property
    def is_device_bound(self) -> bool | None:
        """True if the host issues a step in less time than the device needs, False if not; None if
        that is not known.

        Where the intervals overlap, it is False. A host's time below the resolution is less than
        the device's. Without a device time it is what the run found to limit the step.
        """
        if self.record.api == "CPU" or self.lacks_intervals:
            return None
        host, busy = self._host_and_busy
        issue = self.record.figure("issue")
        if busy is not None and issue is not None and issue.status == "below-resolution":
            return True
        if host is None or busy is None:
            return {"device": True, "host": False, "balanced": False}.get(self.record.bound)
        return host.ceiling < busy.floor

    @property
    def lacks_intervals(self) -> bool:
        """True if ``is_device_bound`` is not known because the run had too few processes.

        A time then has no interval, or the host's interval holds zero and all times of the device.
        """
        host, busy = times = self._host_and_busy
        if None in times:
            times = (self.host, self.complete) if self.record.bound else ()
        wide = (
            host is not None and busy is not None and host.floor <= 0 and host.ceiling >= busy.floor
        )
        return self.record.api != "CPU" and (
            wide or any(one is not None and not one.bounded for one in times)
        )

    @property
    def _host_and_busy(self) -> tuple[Value | None, ...]:
        return self.host, self.record.measured("device_busy")


ArmSeries = tuple[DecodeArm, ...]
"""Two or more arms of one run and one device that differ in one parameter alone."""


@dataclasses.dataclass(frozen=True)
class DispatchSlope:
    """A line through times of a token over its dispatches: ns a dispatch, and ns at no dispatch."""

    slope: Value
    intercept: Value
    points: int


@dataclasses.dataclass(frozen=True)
class DecoderResults:
    """All records of one decoder on one board. ``arms``: those with one sequence, no read and no
    added dispatches.

    ``reads``: the arms that read after every token. ``levels``: series with more and more fusions,
    the fewest first. ``padded``: series of an unfused program without and with added dispatches.
    ``sweeps``: series over the batch, the smallest first.
    """

    name: str
    arms: tuple[DecodeArm, ...]
    reads: tuple[DecodeArm, ...]
    levels: tuple[ArmSeries, ...]
    padded: tuple[ArmSeries, ...]
    sweeps: tuple[ArmSeries, ...]


def decoder_results(view: View) -> list[DecoderResults]:
    """The results of the decoders that the file has records of, the smallest first, each board by
    itself.
    """
    found = []
    for name in DECODERS:
        records = [r for t in view.executing for r in t.records if r.workload == name]
        found += [
            _results(name, [DecodeArm(view.target(r), r) for r in own])
            for own in by_board(records)
            if own
        ]
    return found


def _results(name: str, every: Sequence[DecodeArm]) -> DecoderResults:
    reads = tuple(arm for arm in every if arm.record.pattern == "read-each")
    alone = [arm for arm in every if arm not in reads and arm.batch == 1]
    arms = tuple(arm for arm in alone if "padding" not in arm.record.params)
    lowered = [arm for arm in alone if "fusions" in arm.record.params]
    levels = _series([arm for arm in lowered if arm in arms], "fusions")
    padded = tuple(
        group for group in _series(lowered, "padding") if group[0].record.params["fusions"] == 0
    )
    by_level = tuple(
        tuple(sorted(group, key=lambda arm: int(arm.record.params["fusions"]))) for group in levels
    )
    by_batch = tuple(
        tuple(sorted(group, key=lambda arm: arm.batch)) for group in _series(every, "batch")
    )
    return DecoderResults(name, arms, reads, by_level, padded, by_batch)


def _series(arms: Sequence[DecodeArm], axis: str) -> list[ArmSeries]:
    """The groups of two or more arms that differ in this parameter alone."""
    groups: dict[tuple[object, ...], list[DecodeArm]] = {}
    for arm in arms:
        record = arm.record
        others = frozenset((name, value) for name, value in record.params.items() if name != axis)
        groups.setdefault((record.target_key, record.pattern, record.caller, others), []).append(
            arm
        )
    return [tuple(group) for group in groups.values() if len(group) > 1]


def slope_over_dispatches(arms: Sequence[DecodeArm]) -> DispatchSlope | None:
    """The least-squares line through the arms' times of a token over their dispatches; None with
    under three points.

    The intervals hold if each point errs by its own, independently of the others.
    """
    points = [
        (arm.dispatches, arm.complete)
        for arm in arms
        if arm.dispatches and arm.complete is not None
    ]
    if len(points) < 3 or len({x for x, _ in points}) < 3:
        return None
    mean = sum(x for x, _ in points) / len(points)
    width = sum((x - mean) ** 2 for x, _ in points)
    weights = [(x - mean) / width for x, _ in points]
    slope = _weighted(weights, [span for _, span in points])
    intercept = _weighted(
        [1 / len(points) - mean * weight for weight in weights], [span for _, span in points]
    )
    return DispatchSlope(slope, intercept, len(points))


def _weighted(weights: Sequence[float], spans: Sequence[Value]) -> Value:
    value = sum(w * s.value for w, s in zip(weights, spans, strict=True))
    if not all(s.bounded for s in spans):
        return Value(value)
    half = (
        sum((w * ((s.ceiling - s.floor) / 2)) ** 2 for w, s in zip(weights, spans, strict=True))
        ** 0.5
    )
    return Value(value, value - half, value + half)
