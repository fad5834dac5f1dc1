"""What a run measured of decoding tokens: the variants of each decoder, and the cost of a dispatch
in a real program.

A variant is one way to decode: a stack and a pattern with parameters, such as the number of fusions
or of sequences.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

from overhead.decode.decoders import DECODERS
from overhead.decode.lowering.fusions import FUSIONS
from overhead.reading.precision import is_steady, resolved
from overhead.reading.view import TargetView, View, by_board
from overhead.results import Record, Value, exactly


@dataclasses.dataclass(frozen=True)
class MeasuredVariant:
    """A variant of decoding (a stack, with a pattern and parameters) as a run has measured it.

    ``target``: the stack on its device. ``record``: the figures of the variant. All times are in ns
    for a step, which makes a token of each sequence of the batch.
    """

    target: TargetView
    record: Record

    @property
    def is_lowered(self) -> bool:
        """Whether it runs the lowered program, whose dispatches may be fused."""
        return "fusions" in self.record.params

    @property
    def is_fused(self) -> bool:
        """Whether it runs the lowered program with all fusions."""
        return self.record.params.get("fusions") == len(FUSIONS)

    @property
    def is_recorded(self) -> bool:
        """Whether it is the graph that a library recorded of its own launches."""
        return not self.is_lowered and "maker" in self.record.params

    @property
    def is_eager(self) -> bool:
        """Whether a library runs its own operations, one call for each."""
        chosen = {"fusions", "mode", "maker"} & set(self.record.params)
        return not chosen and "whole-model" not in self.target.facts.roles

    @property
    def batch(self) -> int:
        """Sequences in a step."""
        return int(self.record.params.get("batch", 1))

    @property
    def dispatches(self) -> int | None:
        """How many pieces of work a token takes: dispatches of the program that ran, operations of
        eager PyTorch, or nodes of ONNX Runtime. None where the run did not count them.
        """
        # What the record says of the timed calls; each stack names its count differently.
        window = self.record.window
        for name in ("dispatches", "operations"):
            if name in window:
                counted = window[name]
                return counted if isinstance(counted, int) else None
        return self._nodes or None

    @property
    def _nodes(self) -> int:
        """The nodes of the model that ONNX Runtime ran, summed over its providers (CPU, WebGPU), of
        which the record has one count each; 0 for other stacks.
        """
        nodes = 0
        for name, value in self.record.window.items():
            if name.startswith("nodes on ") and isinstance(value, int):
                nodes += value
        return nodes

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
    def device_busy(self) -> Value | None:
        """The device's time for a step without gaps between kernels, ns; None if it was not
        measured.
        """
        return self.record.measured("device_busy")

    @property
    def device(self) -> Value | None:
        """The device's time for a step, ns; with the gaps if the time without them was not
        measured. None if neither was.
        """
        return self.device_busy or self.record.measured("device_span")

    @property
    def device_doubt(self) -> Literal["", "exceeds", "not-resolved"]:
        """Whether the measured device time can be right; a table remarks on it if not.

        A device cannot be busy with a step for longer than the whole step takes. ``exceeds``: its
        time is longer, even by the intervals. ``not-resolved``: it is longer, the intervals
        overlap, and its own is wide. '' where it is not longer or one of both times is unknown, and
        where both are so precise that the device is simply busy all the time.
        """
        device, complete = self.device, self.complete
        if device is None or complete is None or device.value <= complete.value:
            return ""
        # ``complete``: the time of the whole step. ``floor``, ``ceiling``: the ends of an interval.
        if device.floor > complete.ceiling:
            return "exceeds"
        return "" if is_steady(device) else "not-resolved"

    @property
    def tokens_per_s(self) -> Value | None:
        """Tokens a second of all sequences together; None without a positive time."""
        step = self.complete
        # With the parameter ``tokens`` a step is a whole prompt, which gives one token.
        if step is None or step.value <= 0 or "tokens" in self.record.params:
            return None
        return exactly(1e9 * self.batch, "1/s") / step

    @property
    def is_device_bound(self) -> bool | None:
        """True if the device limits the step: the host issues a step in less time than the device
        needs for it. False if it surely does not, or if the intervals of both times overlap. None
        if that is not known.
        """
        # On a CPU the same processor issues the work and does it. ``lacks_intervals``: there were
        # too few processes to tell.
        if self.record.api == "CPU" or self.lacks_intervals:
            return None
        # ``host``: its time to issue a step, where that has a value; ``issue``: the same with its
        # status. ``device_busy``: the device's time without the gaps between kernels.
        host, device_busy = self.host, self.device_busy
        issue = self.record.figure("issue")
        # A time that is too short to be measured is shorter than that of the device.
        if device_busy is not None and issue is not None and issue.status == "below-resolution":
            return True
        if host is None or device_busy is None:
            # Without both times only what the run itself found to limit the step is known.
            by_limit = {"device": True, "host": False, "balanced": False}
            return by_limit.get(self.record.bound)
        return host.ceiling < device_busy.floor

    @property
    def lacks_intervals(self) -> bool:
        """True if nobody can tell whether the host or the device limits the step, because the run
        had too few processes for intervals, or for narrow ones.
        """
        # On a CPU the question does not arise.
        if self.record.api == "CPU":
            return False
        host, device_busy = self.host, self.device_busy
        if host is not None and device_busy is not None:
            # The host's time could be anything from zero to more than that of the device.
            is_wide = host.floor <= 0 and host.ceiling >= device_busy.floor
            # ``bounded``: the time has an interval.
            return is_wide or not host.bounded or not device_busy.bounded
        # ``record.bound`` is what the run itself found to limit the step. It did not judge that
        # where it is empty, and intervals are not the reason.
        if not self.record.bound:
            return False
        # Without a device time the run compared the host's time with that of the whole step.
        compared = (host, self.complete)
        return any(time is not None and not time.bounded for time in compared)


VariantSeries = tuple[MeasuredVariant, ...]
"""Two or more variants of one run and one device that differ in one parameter alone."""


@dataclasses.dataclass(frozen=True)
class DispatchSlope:
    """A line through times of a token over its number of dispatches.

    ``slope``: ns for one more dispatch. ``intercept``: ns of a token without any. ``points``: how
    many times the line was fitted to.
    """

    slope: Value
    intercept: Value
    points: int


@dataclasses.dataclass(frozen=True)
class DecoderResults:
    """All measured variants of one decoder on one board (a model of GPU, or the CPU), sorted by the
    question that they answer.

    ``variants``: those with one sequence, no read and no added dispatches. ``reads``: those that
    read a value back after every token. A series is a few variants that differ in one parameter:
    ``levels`` in the number of fusions, the fewest first; ``padded`` in the trivial dispatches
    added to the unfused program; ``sweeps`` in the batch, the smallest first.
    """

    name: str
    variants: tuple[MeasuredVariant, ...]
    reads: tuple[MeasuredVariant, ...]
    levels: tuple[VariantSeries, ...]
    padded: tuple[VariantSeries, ...]
    sweeps: tuple[VariantSeries, ...]


def decoder_results(view: View) -> list[DecoderResults]:
    """The results of each decoder that the file has records of, the smallest decoder first.

    A file may have records of several boards (GPUs, or a CPU). Each board has results of its own,
    because times on different boards must not be compared.
    """
    results = []
    # ``view.executing``: the stacks on devices that run their work, so no null backends.
    for name in DECODERS:
        records = []
        for target in view.executing:
            records += [record for record in target.records if record.workload == name]
        # A list of records for each board; a record that names no board is in all that it may be
        # of. Without any record it is one empty list.
        for of_board in by_board(records):
            if of_board:
                variants = [MeasuredVariant(view.target(record), record) for record in of_board]
                results.append(_results(name, variants))
    return results


def _results(name: str, every: Sequence[MeasuredVariant]) -> DecoderResults:
    """All variants of the decoder ``name`` on one board, sorted into what the page compares; see
    ``DecoderResults``.
    """
    reads: list[MeasuredVariant] = []
    singles: list[MeasuredVariant] = []  # with one sequence
    for variant in every:
        if variant.record.pattern == "read-each":
            reads.append(variant)
        elif variant.batch == 1:
            singles.append(variant)

    # Padding is trivial dispatches added to a token, so its time is not that of a token.
    unpadded = [variant for variant in singles if "padding" not in variant.record.params]
    levels = _series([variant for variant in unpadded if variant.is_lowered], "fusions")
    lowered = [variant for variant in singles if variant.is_lowered]
    # Padding was added to the unfused program alone.
    padded = [series for series in _series(lowered, "padding") if _fusions(series[0]) == 0]
    sweeps = _series(every, "batch")
    by_fusions = [tuple(sorted(series, key=_fusions)) for series in levels]
    by_batch = [tuple(sorted(series, key=_batch)) for series in sweeps]
    return DecoderResults(
        name,
        variants=tuple(unpadded),
        reads=tuple(reads),
        levels=tuple(by_fusions),
        padded=tuple(padded),
        sweeps=tuple(by_batch),
    )


def _fusions(variant: MeasuredVariant) -> int:
    return int(variant.record.params["fusions"])


def _batch(variant: MeasuredVariant) -> int:
    return variant.batch


def _series(variants: Sequence[MeasuredVariant], axis: str) -> list[VariantSeries]:
    """The groups of two or more variants that differ in the parameter ``axis`` alone, such as
    ``batch``. A variant that differs from all others in more is left out.
    """
    # By all that the variants of a group have in common.
    groups: dict[tuple[object, ...], list[MeasuredVariant]] = {}
    for variant in variants:
        record = variant.record
        others = frozenset((name, value) for name, value in record.params.items() if name != axis)
        key = (record.target_key, record.pattern, record.caller, others)
        groups.setdefault(key, []).append(variant)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def cheapest_variants(decoder: DecoderResults) -> list[MeasuredVariant]:
    """The variants that may have the cheapest token at batch 1: the one with the smallest time
    first, then those whose interval overlaps with its interval. Empty where no time is resolved.
    """
    times: list[tuple[float, MeasuredVariant]] = []
    for variant in decoder.variants:
        if variant.complete is not None and variant.complete.resolved:
            times.append((variant.complete.value, variant))
    times.sort(key=lambda timed: timed[0])
    variants = [variant for _, variant in times]
    return [variant for variant in variants if not _is_faster(variants[0], variant)]


def _is_faster(one: MeasuredVariant, other: MeasuredVariant) -> bool:
    """Whether a step of ``one`` surely takes less time than a step of ``other``."""
    if one.complete is None or other.complete is None:
        return False
    return one.complete.ceiling < other.complete.floor


def recorded_pair(decoder: DecoderResults) -> tuple[MeasuredVariant, MeasuredVariant] | None:
    """A library's eager token, and the graph that it recorded of the same operations; None where
    one of both has no time.
    """
    timed = [variant for variant in decoder.variants if variant.is_resolved("complete")]
    for graph in timed:
        if not graph.is_recorded:
            continue
        # ``stack``: the one whose launches this maker records.
        maker = graph.target.facts.graphs.get(str(graph.record.params["maker"]))
        for eager in timed:
            if maker is not None and eager.is_eager and eager.record.stack == maker.stack:
                return eager, graph
    return None


@dataclasses.dataclass(frozen=True)
class Race:
    """Two graphs of the same decoder over the batch: the one that a library recorded, with its own
    kernels, and the one of our fused program. ``steps``: both at each batch, the smallest first.
    """

    steps: tuple[tuple[MeasuredVariant, MeasuredVariant], ...]

    @property
    def overtaken_at(self) -> int | None:
        """The place in ``steps`` from which on the library's graph is surely faster; None if it is
        not at the largest batch.
        """
        place = None
        for i, (recorded, fused) in reversed(list(enumerate(self.steps))):
            if not _is_faster(recorded, fused):
                break
            place = i
        return place

    @property
    def fused_is_faster_at(self) -> int | None:
        """The last place in ``steps`` where the fused graph is surely faster; None for none."""
        for i, (recorded, fused) in reversed(list(enumerate(self.steps))):
            if _is_faster(fused, recorded):
                return i
        return None


def race_of_graphs(decoder: DecoderResults) -> Race | None:
    """The library's graph and the fused graph at each batch that both were measured with; None
    where one of both was not.
    """
    recorded: dict[int, MeasuredVariant] = {}
    fused: dict[int, MeasuredVariant] = {}
    for sweep in decoder.sweeps:
        for variant in sweep:
            if not variant.is_resolved("complete"):
                continue
            if variant.is_recorded:
                recorded[variant.batch] = variant
            elif variant.is_fused and variant.target.facts.graphs:
                fused[variant.batch] = variant
    both = sorted(recorded.keys() & fused.keys())
    if not both:
        return None
    return Race(tuple((recorded[batch], fused[batch]) for batch in both))


def device_bound_from(sweep: VariantSeries) -> int | None:
    """The batch from which on the device limits each step that was measured; None if it does not
    surely limit the step of the largest batch.
    """
    found = None
    for variant in reversed(sweep):
        if not variant.is_device_bound:
            break
        found = variant.batch
    return found


def slope_over_dispatches(variants: Sequence[MeasuredVariant]) -> DispatchSlope | None:
    """The least-squares line through the variants' times of a token over their dispatches. Its
    slope is the time that one more dispatch adds to a token of a real program.

    None with fewer than three different numbers of dispatches: two points always lie on a line, so
    they would not show whether there is one. The intervals hold if each point errs by its own,
    independently of the others.
    """
    dispatches: list[int] = []
    times: list[Value] = []
    for variant in variants:
        if variant.dispatches and variant.complete is not None:
            dispatches.append(variant.dispatches)
            times.append(variant.complete)
    if len(set(dispatches)) < 3:
        return None

    # Slope and intercept of least squares are sums of the times, each with a weight that depends on
    # the dispatches alone.
    points = len(dispatches)
    mean = sum(dispatches) / points
    squares = sum((count - mean) ** 2 for count in dispatches)
    slope_weights = [(count - mean) / squares for count in dispatches]
    intercept_weights = [1 / points - mean * weight for weight in slope_weights]
    slope = _weighted_sum(slope_weights, times)
    intercept = _weighted_sum(intercept_weights, times)
    return DispatchSlope(slope, intercept, points)


def _weighted_sum(weights: Sequence[float], times: Sequence[Value]) -> Value:
    """The sum of the products of each time with its weight. It has an interval if all times have
    one.
    """
    value = sum(weight * time.value for weight, time in zip(weights, times, strict=True))
    if not all(time.bounded for time in times):
        return Value(value)
    # Independent errors add up as the root of the sum of their squares.
    half_widths = [(time.ceiling - time.floor) / 2 for time in times]
    squares = sum((weight * half) ** 2 for weight, half in zip(weights, half_widths, strict=True))
    half_width = squares**0.5
    return Value(value, value - half_width, value + half_width)
