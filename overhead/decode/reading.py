"""Decoded tokens: the arms of each decoder, fusion levels, batches, and the cost of a dispatch in a real program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from overhead.decode.decoders import DECODERS
from overhead.decode.lowering.fusions import FUSIONS
from overhead.reading.chains import WGSL
from overhead.reading.format import count, resolved
from overhead.reading.view import CALLER_WORDS, TargetView, View, by_board, graph_maker
from overhead.results import Record, Value, exactly, ratio

PUBLISHED_SLOPE_NS, PUBLISHED_INTERCEPT_NS = 95_500.0, -12_300_000.0
"""What follows from the published times to the first token at 876 and 564 dispatches (arXiv 2604.02344)."""

MOST_KERNEL_RATIO = 1.3
"""If device times differ by more, nothing about hosts follows from the time of a token alone."""
MOST_OVER_EAGER = 1.5
"""The kernels of a program should take at most this many times as long as those of PyTorch's eager step."""


@dataclasses.dataclass(frozen=True)
class DecodeArm:
    """A way to decode, and its record. Times in ns for a step, which makes a token of each sequence of the batch."""

    target: TargetView
    record: Record

    @property
    def how(self) -> str:
        """What a token is made of, in words."""
        record, params = self.record, self.record.params
        if "fusions" in params:
            applied = int(params["fusions"])
            kind = "unfused" if not applied else "fused" if applied == len(FUSIONS) else count(applied, "fusion")
            launched = "a submission a dispatch" if record.stack in WGSL else "a launch a dispatch"
            passes = {"per-submit": launched, "per-pass": "one pass a token"}
            graph = f"a graph a token by {graph_maker(record)}"
            way = passes.get(record.pattern, graph if record.stack == "cuda-graph" else "one pass a token")
            padding = f", {params['padding']} dispatches added" if "padding" in params else ""
            return f"{kind}, {way}, {CALLER_WORDS[record.caller]}{padding}"
        if "mode" in params:
            return f"torch.compile, {params['mode']}"
        if "maker" in params:
            return "PyTorch's CUDA graph of the eager step"
        return "one call a token" if record.stack == "onnxruntime" else "eager"

    @property
    def batch(self) -> int:
        """Sequences in a step."""
        return int(self.record.params.get("batch", 1))

    @property
    def dispatches(self) -> int | None:
        """Dispatches of a token, counted at the API; operations of eager PyTorch; nodes of ONNX Runtime."""
        window = self.record.window
        nodes = [value for name, value in window.items() if name.startswith("nodes on ") and isinstance(value, int)]
        found = window.get("dispatches", window.get("operations", sum(nodes) or None))
        return found if isinstance(found, int) else None

    def resolved(self, name: str) -> bool:
        """Whether the figure with this name may be drawn."""
        return resolved(self.record.figure(name))

    @property
    def complete(self) -> Value | None:
        return self.record.measured("complete")

    @property
    def host(self) -> Value | None:
        return self.record.measured("issue")

    @property
    def device(self) -> Value | None:
        return self.record.measured("device_busy") or self.record.measured("device_span")

    @property
    def host_share(self) -> Value | None:
        """The part of the time of a token that the host needs to issue it."""
        return ratio(self.host, self.complete)

    @property
    def tokens_per_s(self) -> Value | None:
        time = self.complete
        return None if time is None or time.value <= 0 else exactly(1e9 * self.batch, "1/s") / time

    @property
    def one_process(self) -> bool:
        """Whether the time of a token comes from a single process, and so has no interval."""
        figure = self.record.figure("complete")
        return figure is not None and figure.processes == 1

    @property
    def device_bound(self) -> bool | None:
        """Whether the host issues a step in less time than the device needs; None if that is not known.

        Where the intervals overlap, it is not. A host's time below the resolution is less than the device's. Without a
        device time it is what the run found to limit the step.
        """
        if self.record.api == "CPU" or self.lacks_intervals:
            return None
        host, busy = self._host_and_busy
        if busy is not None and self.host_below_resolution:
            return True
        if host is None or busy is None:
            return {"device": True, "host": False, "balanced": False}.get(self.record.bound)
        return host.ceiling < busy.floor

    @property
    def lacks_intervals(self) -> bool:
        """Whether ``device_bound`` is not known for want of processes.

        A time then has no interval, or the host's interval holds zero and all times of the device.
        """
        host, busy = times = self._host_and_busy
        if None in times:
            times = (self.host, self.complete) if self.record.bound else ()
        wide = host is not None and busy is not None and host.floor <= 0 and host.ceiling >= busy.floor
        return self.record.api != "CPU" and (wide or any(one is not None and not one.bounded for one in times))

    @property
    def host_below_resolution(self) -> bool:
        """Whether the host's time to issue a token is too short for the clock."""
        issue = self.record.figure("issue")
        return issue is not None and issue.status == "below-resolution"

    @property
    def _host_and_busy(self) -> tuple[Value | None, ...]:
        return self.host, self.record.measured("device_busy")


@dataclasses.dataclass(frozen=True)
class FusionLevels:
    """The same program with more and more fusions, in one run on one device: (fusions, arm), unfused first."""

    arms: tuple[tuple[int, DecodeArm], ...]

    @property
    def points(self) -> list[tuple[int, Value]]:
        """Dispatches and time of a token at each level where both are known and the time is resolved."""
        return _points([arm for _, arm in self.arms if arm.resolved("complete")])


@dataclasses.dataclass(frozen=True)
class BatchSweep:
    """The same arm with more and more sequences in each step, in one run on one device; the smallest batch first."""

    arms: tuple[DecodeArm, ...]

    @property
    def device_bound(self) -> list[int]:
        """The batches at which the device needs more time for a step than the host."""
        return [arm.batch for arm in self.arms if arm.device_bound]

    @property
    def known(self) -> list[int]:
        """The batches at which it is known whether host or device needs more time."""
        return [arm.batch for arm in self.arms if arm.device_bound is not None]

    @property
    def lacking(self) -> list[int]:
        """The batches at which it is not known for want of processes."""
        return [arm.batch for arm in self.arms if arm.lacks_intervals]


@dataclasses.dataclass(frozen=True)
class DispatchSlope:
    """A line through times of a token over its dispatches: ns a dispatch, and ns at no dispatch."""

    slope: Value
    intercept: Value
    points: int


@dataclasses.dataclass(frozen=True)
class Decoded:
    """All records of one decoder."""

    name: str
    arms: tuple[DecodeArm, ...]
    reads: tuple[DecodeArm, ...]
    levels: tuple[FusionLevels, ...]
    padded: tuple[tuple[DecodeArm, ...], ...]
    """The unfused program of a stack without and with added dispatches."""
    sweeps: tuple[BatchSweep, ...]
    """The arms that were measured at more than one batch."""


def decoded(view: View) -> list[Decoded]:
    """The decoders that the file has records of, the smallest first, each board by itself."""
    found = []
    for name in DECODERS:
        records = [r for t in view.executing for r in t.records if r.workload == name]
        found += [_decoded(name, [DecodeArm(view.target(r), r) for r in own]) for own in by_board(records) if own]
    return found


def _decoded(name: str, every: Sequence[DecodeArm]) -> Decoded:
    reads = tuple(arm for arm in every if arm.record.pattern == "read-each")
    alone = [arm for arm in every if arm not in reads and arm.batch == 1]
    lowered = [arm for arm in alone if "fusions" in arm.record.params]
    arms = tuple(arm for arm in alone if "padding" not in arm.record.params)
    levels = [FusionLevels(_by_level(group)) for group in _alike([arm for arm in lowered if arm in arms], "fusions")]
    padded = [tuple(group) for group in _alike(lowered, "padding") if group[0].record.params["fusions"] == 0]
    sweeps = [BatchSweep(tuple(sorted(group, key=lambda arm: arm.batch))) for group in _alike(every, "batch")]
    return Decoded(name, arms, reads, tuple(levels), tuple(padded), tuple(sweeps))


def fastest_arm(found: Decoded, fusions: int) -> DecodeArm | None:
    """The arm with this many fusions that takes the least time for a token; None without a time."""
    own = [arm for arm in found.arms if arm.record.params.get("fusions") == fusions and arm.resolved("complete")]
    return min(own, key=lambda arm: arm.record.value("complete") or 0.0, default=None)


def _by_level(group: Sequence[DecodeArm]) -> tuple[tuple[int, DecodeArm], ...]:
    found = {int(arm.record.params["fusions"]): arm for arm in group}
    return tuple((level, found[level]) for level in sorted(found))


def _alike(arms: Sequence[DecodeArm], axis: str) -> list[list[DecodeArm]]:
    """Groups of two or more arms that differ in this parameter alone."""
    groups: list[list[DecodeArm]] = []
    for arm in arms:
        same = (group for group in groups if _without(group[0].record, axis) == _without(arm.record, axis))
        group = next(same, None)
        if group is None:
            groups.append([arm])
        else:
            group.append(arm)
    return [group for group in groups if len(group) > 1]


def _without(record: Record, axis: str) -> tuple[object, ...]:
    params = {name: value for name, value in record.params.items() if name != axis}
    return record.target_key, record.pattern, record.caller, params


def _points(arms: Sequence[DecodeArm], on_device: bool = False) -> list[tuple[int, Value]]:
    times = [(arm.dispatches, arm.device if on_device else arm.complete) for arm in arms]
    return [(dispatches, time) for dispatches, time in times if dispatches and time is not None]


def fastest_kernels(found: Decoded) -> dict[tuple[str, int], DecodeArm]:
    """The arm with the least device time by (language, fusions), for the programs with a device time."""
    fastest: dict[tuple[str, int], DecodeArm] = {}
    timed = [(arm.device.value, i, arm) for i, arm in enumerate(found.arms) if arm.device is not None]
    for _, _, arm in sorted(timed, reverse=True):
        language, fusions = arm.record.window.get("language"), arm.record.params.get("fusions")
        if isinstance(language, str) and isinstance(fusions, int):
            fastest[language, fusions] = arm
    return fastest


def eager_kernels(found: Decoded) -> DecodeArm | None:
    """The CUDA graph of PyTorch's eager step. Its device time is that of PyTorch's kernels alone."""
    return next((arm for arm in found.arms if arm.record.params.get("maker") == "torch"), None)


def kernel_ratio(of: DecodeArm | None, over: DecodeArm | None) -> Value | None:
    """The device time of one arm over that of another; None where either is not known."""
    return ratio(of.device if of else None, over.device if over else None)


def slope_over_dispatches(arms: Sequence[DecodeArm], *, on_device: bool = False) -> DispatchSlope | None:
    """The least-squares line through the arms' times of a token, or device times; None with fewer than three points.

    Its intervals hold if each point errs by its own interval independently of the others.
    """
    points = _points(arms, on_device)
    if len(points) < 3 or len({x for x, _ in points}) < 3:
        return None
    mean = sum(x for x, _ in points) / len(points)
    width = sum((x - mean) ** 2 for x, _ in points)
    weights = [(x - mean) / width for x, _ in points]
    slope = _weighted(weights, [span for _, span in points])
    intercept = _weighted([1 / len(points) - mean * weight for weight in weights], [span for _, span in points])
    return DispatchSlope(slope, intercept, len(points))


def _weighted(weights: Sequence[float], spans: Sequence[Value]) -> Value:
    value = sum(w * s.value for w, s in zip(weights, spans, strict=True))
    halves = [None if s.low is None or s.high is None else (s.high - s.low) / 2 for s in spans]
    if any(half is None for half in halves):
        return Value(value)
    half = sum((w * (h or 0.0)) ** 2 for w, h in zip(weights, halves, strict=True)) ** 0.5
    return Value(value, value - half, value + half)
