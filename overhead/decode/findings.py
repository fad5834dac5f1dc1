"""A rule on tokens of a language model: what a CUDA graph and kernel fusion save, and at which
batch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from overhead.decode.lowering.fusions import FUSIONS
from overhead.decode.reading import DecoderResults, MeasuredVariant, decoder_results
from overhead.reading.findings import Finding, rule
from overhead.reading.view import GraphStack, View
from overhead.results import Value, ratio


@dataclasses.dataclass(frozen=True)
class StepAtBatch:
    """The time of a step with so many sequences, ns: as a graph of the library's own kernels, and
    as the graph of fused kernels.
    """

    batch: int
    captured: Value
    fused: Value

    @property
    def is_faster(self) -> bool:
        """Whether the fused kernels surely take less time."""
        return self.fused.ceiling < self.captured.floor

    @property
    def is_slower(self) -> bool:
        """Whether the fused kernels surely take more time."""
        return self.fused.floor > self.captured.ceiling


@dataclasses.dataclass(frozen=True)
class TokenTimes:
    """The time of a token, one sequence at a time: launched by the library (``eager``), as a CUDA
    graph of the same kernels (``captured``), and as a graph of this suite's fused kernels.

    ``batches``: both graphs with more sequences, the smallest batch first; () where they were not
    measured.
    """

    decoder: str
    precision: str
    eager: MeasuredVariant
    captured: MeasuredVariant
    fused: MeasuredVariant
    batches: tuple[StepAtBatch, ...]


@rule("token", place=4, page="decode", any_run=True)
def token(view: View) -> Finding | None:
    """Tell what a token costs in each of three ways, for the largest decoder that has them; None
    unless each way surely takes less time than the one before.
    """
    for decoder in reversed(decoder_results(view)):
        times = _token_times(view, decoder)
        if times is None:
            continue
        saved = ratio(times.eager.complete, times.fused.complete)
        if saved is not None:
            told = (times.eager, times.captured, times.fused)
            keys = tuple(variant.record.key for variant in told)
            return Finding(times, saved.value, keys)
    return None


def _token_times(view: View, decoder: DecoderResults) -> TokenTimes | None:
    """The three ways to compute a token of this decoder; None if one is missing, or not surely
    faster than the one before.
    """
    for eager in decoder.variants:
        recorded = view.graph_of(eager.record.stack)
        # ``graph_of``: the graphs that record the launches of this stack, such as PyTorch's.
        if recorded is None or eager.is_lowered:
            continue
        graphs = [each for each in decoder.variants if each.record.stack == recorded.stack]
        captured = _first(each for each in graphs if _is_captured(each, recorded))
        fused = _first(each for each in graphs if _is_fused(each))
        if captured is None or fused is None:
            continue
        if not _is_faster(captured, eager) or not _is_faster(fused, captured):
            continue
        precision = str(fused.record.window.get("precision", ""))
        batches = tuple(_batches(decoder, captured, fused))
        return TokenTimes(decoder.name, precision, eager, captured, fused, batches)
    return None


def _first(variants: Iterable[MeasuredVariant]) -> MeasuredVariant | None:
    return next(iter(variants), None)


def _is_captured(variant: MeasuredVariant, graph: GraphStack) -> bool:
    """Whether the variant replays a graph of the library's own kernels."""
    return not variant.is_lowered and variant.record.params.get("maker") == graph.maker


def _is_fused(variant: MeasuredVariant) -> bool:
    """Whether the variant has all fusions."""
    return variant.record.params.get("fusions") == len(FUSIONS)


def _is_faster(variant: MeasuredVariant, other: MeasuredVariant) -> bool:
    """Whether a token surely takes less time than in the other variant, by the intervals."""
    time, other_time = variant.complete, other.complete
    if time is None or other_time is None:
        return False
    return time.ceiling < other_time.floor


def _batches(
    decoder: DecoderResults, captured: MeasuredVariant, fused: MeasuredVariant
) -> Iterator[StepAtBatch]:
    """Both graphs with each number of sequences that both were measured with."""
    captured_by_batch = _by_batch(decoder, captured)
    fused_by_batch = _by_batch(decoder, fused)
    for batch in sorted(captured_by_batch.keys() & fused_by_batch.keys()):
        yield StepAtBatch(batch, captured_by_batch[batch], fused_by_batch[batch])


def _by_batch(decoder: DecoderResults, variant: MeasuredVariant) -> dict[int, Value]:
    """The time of a step by its number of sequences, for a variant that was measured with
    several.
    """
    for sweep in decoder.sweeps:
        if any(swept.record is variant.record for swept in sweep):
            times = {swept.batch: swept.complete for swept in sweep}
            return {batch: time for batch, time in times.items() if time is not None}
    return {}
