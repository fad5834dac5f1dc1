"""A decoded token in words: the variants that decode it, what fusing saves, and what a batch
changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from overhead.decode.findings import StepAtBatch, TokenTimes
from overhead.decode.lowering.fusions import FUSIONS
from overhead.decode.reading import (
    DecoderResults,
    MeasuredVariant,
    Race,
    cheapest_variants,
    device_bound_from,
)
from overhead.reading.missing_values import why
from overhead.reading.plain_text import plain
from overhead.reading.view import graph_maker, stack_name
from overhead.results import Caller, Value, exactly, ratio
from overhead.words.findings import FindingWords, words_for
from overhead.words.format import (
    count,
    ends_text,
    factor_spread,
    few,
    listed,
    number,
    positive_spread,
    whole,
)
from overhead.words.names import CALLER_WORDS
from overhead.words.printed import printed
from overhead.words.reasons import one_line

BATCHES_TITLE = "From which batch on the CPU no longer limits a step"
BATCH_CAPTION = (
    "Vertical lines: intervals. Hollow: noisy. Both axes are logarithmic. The enqueue times and"
    " device times are in the table below."
)
FUSED_CAPTION = (
    "Circle: no fusion of this project; for a library its own operations. Cross: all fusions of"
    " this project. Small upright line: a part of the fusions. Horizontal lines: intervals. Hollow:"
    " noisy. The axis is logarithmic."
)
UNFUSED, SOME_FUSIONS, FUSED = "unfused", "some fusions", "fused"
DEVICE_TIME = (
    "Enqueue, ms, and device, ms: a range without a value is noisy. The device time was measured by"
    " itself, so it can be a little above the time of the step, within both intervals."
)
_NEAR_ZERO = 0.01
"""The part of the upper end below which the lower end is not shown: two digits of the upper end
are shown.
"""
NO_DEVICE_TIME = "not resolved"
BATCH_AXIS, STEP_AXIS, TOKEN_AXIS = "batch, sequences", "ms per step", "ms per token"
_READ = {"token": ", 4 bytes read after each", "logits": ", all logits read after each"}
"""What is read back after each token."""
_DEVICE_DOUBTS = {
    "": "",
    "exceeds": "device time above the time of the token",
    "not-resolved": "device uncertain",
}
_BOUND = {True: "device", False: "CPU or both", None: ""}


def answer(cheapest: Sequence[MeasuredVariant], decoder: str) -> str:
    """The cheapest token at batch 1, with what it holds for. ``cheapest``: the variants that may be
    it, one at least; ``decoder``: the name of the model.
    """
    first = cheapest[0]
    conditions = f"at batch {_batch(1)} and in float32, with random weights"
    if any(variant.is_lowered for variant in cheapest):
        conditions += " and untuned kernels"
    if len(cheapest) == 1:
        return (
            f"The cheapest way to decode a token of {decoder} is {whole_name(first)}:"
            f" {_ms(first)} {conditions}."
        )
    tied = [f"{whole_name(variant)}, {_ms(variant)}" for variant in cheapest]
    return (
        f"The intervals do not tell which way to decode a token of {decoder} is the cheapest,"
        f" {conditions}: {few(tied)}."
    )


def graph_saves(eager: MeasuredVariant, graph: MeasuredVariant) -> str:
    """What a graph of the library's own operations saves of a token."""
    times = ratio(eager.complete, graph.complete)
    of_eager = f"{_ms(eager)} in {whole_name(eager)}"
    compared = f"A token takes {of_eager}, and {_ms(graph)} in {whole_name(graph)}"
    # ``floor``: the lower end of the interval.
    if times is None or times.floor <= 1:
        return f"{compared} of the same operations. The graph is not surely faster."
    return f"{compared} of the same operations. The graph is {factor_spread(times)} faster."


def race(found: Race) -> str:
    """At which of the measured batches the library's graph is faster than the graph of the fused
    program, and at which it is slower.
    """
    recorded, fused = found.steps[0]
    graph, fused_graph = whole_name(recorded), whole_name(fused)
    last = len(found.steps) - 1
    largest = f"batch {_batch_at(found, last)} (the largest measured)"
    if found.overtaken_at is None:
        said = (
            f"Up to {largest}, {graph} is not surely faster than {fused_graph}:"
            f" {_against(found, last)}."
        )
    else:
        # At the largest batch alone nothing is known of what lies beyond it.
        where = f"at {largest}"
        if found.overtaken_at < last:
            first = _batch_at(found, found.overtaken_at)
            where = f"at batch {first} and above, up to {largest}"
        said = (
            f"{_capital(graph)} is faster than {fused_graph} {where}:"
            f" {_against(found, found.overtaken_at)}."
        )
    if found.fused_is_faster_at is None or found.fused_is_faster_at == found.overtaken_at:
        return said
    slower = _batch_at(found, found.fused_is_faster_at)
    return f"{said} At batch {slower} it is slower: {_against(found, found.fused_is_faster_at)}."


def _batch_at(found: Race, place: int) -> str:
    recorded, _ = found.steps[place]
    return _batch(recorded.batch)


def _batch(sequences: int) -> str:
    return whole(sequences, exactly(sequences).origin)


def measured_with(found: DecoderResults) -> str:
    """What the decoder was measured with, and so what its times do not tell: precision, number of
    GPUs, batches.
    """
    variants = [*found.variants, *found.reads]
    for sweep in found.sweeps:
        variants += sweep
    precisions = sorted({str(one.record.window.get("precision", "")) for one in variants} - {""})
    batches = {variant.batch for variant in variants}
    at_batch = _batch(min(batches))
    if len(batches) > 1:
        at_batch += f" to {_batch(max(batches))}"
    record = variants[0].record
    is_gpu = record.api != "CPU" and not record.software
    where = "on one GPU" if is_gpu else f"on {_device(found)}"
    in_precision = f"in {listed(precisions)} " if precisions else ""
    missing = ["other precisions"] if precisions else []
    # A record of tokens is of one device.
    missing += ["several GPUs", "larger batches"]
    return (
        f"Measured {in_precision}{where} at batch {at_batch}; {listed(missing)} were not measured."
    )


def _against(found: Race, place: int) -> str:
    """The times of both graphs at one batch."""
    recorded, fused = found.steps[place]
    return f"{_ms(recorded)} against {_ms(fused)}"


def _ms(variant: MeasuredVariant) -> str:
    """The time of a step with its interval: ``1.404 (1.398 to 1.411) ms``."""
    return f"{positive_spread(variant.complete / 1e6)} ms" if variant.complete is not None else ""


def _capital(text: str) -> str:
    """The text at the beginning of a sentence: only an article gets a capital."""
    for article in ("a ", "the "):
        if text.startswith(article):
            return article.capitalize() + text.removeprefix(article)
    return text


def intro(found: DecoderResults) -> str:
    """The text behind the picture of a decoder: what it decoded, and how that was checked."""
    return (
        f"{found.name}: one token at batch 1, in float32, with random weights. The token and the"
        " key-value cache stay on the device. The results of each variant were compared with"
        " float64 on 32 given tokens before the variant was timed. Dispatches are counted in the"
        " program that ran: for PyTorch its operations, for ONNX Runtime the nodes of its graph."
    )


def batch_answer(found: DecoderResults) -> str:
    """From which batch on the CPU no longer limits a step, for each variant. The GPU still pays
    something for each dispatch, also in a graph, which the time of the step contains.
    """
    by_batch: dict[int, list[str]] = {}
    never, unknown = [], []
    for sweep in found.sweeps:
        name = whole_name(sweep[0])
        batch = device_bound_from(sweep)
        if batch is not None:
            by_batch.setdefault(batch, []).append(name)
        elif sweep[-1].is_device_bound is None:
            unknown.append(name)
        else:
            never.append(f"{name} (up to batch {sweep[-1].batch})")

    said = []
    for batch in sorted(by_batch):
        said.append(f"from batch {batch} on for {listed(by_batch[batch])}")
    texts = []
    if said:
        texts.append(f"The CPU no longer limits a step {listed(said)}.")
    if never:
        texts.append(f"It was not seen to stop limiting {listed(never)}.")
    if unknown:
        texts.append(f"It is not known for {listed(unknown)}.")
    return " ".join(texts)


def batch_intro(found: DecoderResults) -> str:
    """The text behind the picture of batches: what a step is, and what may be compared."""
    return (
        "A step makes one token for each sequence of a batch. The step has as many"
        " dispatches as with one sequence, so a larger batch costs the device more time, but the"
        " CPU hardly more. Once a step is device-bound, the CPU enqueues the step in less time than"
        " the device needs for it. The device time contains what each dispatch costs on the device,"
        " which fewer, fused kernels save. The kernels of the lowered program (all stacks but"
        " PyTorch and ONNX Runtime) read each weight once for all sequences, but these kernels are"
        " slower than the matrix products that PyTorch calls. So compare device times only within"
        " one variant."
    )


def variant_name(variant: MeasuredVariant) -> str:
    """The name of a way to decode a token: of our own program for the model (lowered) how many
    fusions it has and how it is handed over, ``fused, one pass per token, from Python``; of a
    library its mode, such as ``eager``.
    """
    if variant.is_lowered:
        fusions = int(variant.record.params["fusions"])
        return f"{_fusions(fusions)}, {issued(variant)}"
    return _own_name(variant)


def _own_name(variant: MeasuredVariant) -> str:
    """How a library decodes with its own operations."""
    # What the case was measured with; a case has only the parameters of its kind.
    params = variant.record.params
    if "mode" in params:
        return f"torch.compile, {params['mode']}"
    if variant.is_recorded:
        return "PyTorch's CUDA graph"
    return "eager" if variant.is_eager else "one call per token"


def row_name(variant: MeasuredVariant) -> str:
    """The stack and how it hands a token over, without the fusions and the caller:
    ``Dawn, one pass per token``.
    """
    stack = stack_name(variant.target).removeprefix("the ")
    if variant.is_lowered:
        if _is_graph(variant):
            return f"CUDA graph of this project's kernels{_unusual_maker(variant)}"
        return f"{stack}, {_handed_over(variant)}"
    own = _own_name(variant)
    return own if variant.is_recorded or "mode" in variant.record.params else f"{stack}, {own}"


def line_name(variant: MeasuredVariant) -> str:
    """``row_name`` with the fusions."""
    if not variant.is_lowered:
        return row_name(variant)
    return f"{row_name(variant)}, {_fusions(int(variant.record.params['fusions']))}"


def whole_name(variant: MeasuredVariant) -> str:
    """The variant inside a sentence."""
    record = variant.record
    if variant.is_recorded:
        return "PyTorch's CUDA graph"
    if variant.is_eager:
        return f"eager {stack_name(variant.target)}"
    if not variant.is_lowered:
        return row_name(variant)
    kernels = _kernels(int(record.params["fusions"]))
    if _is_graph(variant):
        return f"a CUDA graph of {kernels}{_unusual_maker(variant)}"
    stack = stack_name(variant.target)
    return f"{kernels} through {stack} ({_handed_over(variant)}, {CALLER_WORDS[record.caller]})"


def _is_graph(variant: MeasuredVariant) -> bool:
    """Whether a lowered program is handed over as one CUDA graph."""
    return bool(variant.target.facts.graphs) and variant.record.pattern != "per-submit"


def _unusual_maker(variant: MeasuredVariant) -> str:
    """Who made the graph, where that is not the usual maker of the stack."""
    if "maker" not in variant.record.params:
        return ""
    maker = graph_maker(variant.record, variant.target.facts)
    usual = next(iter(variant.target.facts.graphs.values())).label
    return "" if maker == usual else f" by {maker}"


def _fusions(applied: int) -> str:
    """How many fusions were applied to the program."""
    if applied == 0:
        return "unfused"
    return "fused" if applied == len(FUSIONS) else count(applied, "fusion")


def issued(variant: MeasuredVariant) -> str:
    """How a lowered program is issued, and by whom; '' of a variant that runs another program."""
    if not variant.is_lowered:
        return ""
    record = variant.record
    padding = f", {record.params['padding']} dispatches added" if "padding" in record.params else ""
    return f"{_handed_over(variant)}, {CALLER_WORDS[record.caller]}{padding}"


def _handed_over(variant: MeasuredVariant) -> str:
    """What a lowered program hands to the device: a submission or launch for each dispatch, or one
    graph or pass for a whole token.
    """
    record, facts = variant.record, variant.target.facts
    # The stacks of WebGPU have the role "one-pass" and submissions; the others launch.
    if record.pattern == "per-submit":
        return "a submission per dispatch" if "one-pass" in facts.roles else "a launch per dispatch"
    # ``graphs``: who makes CUDA graphs of this stack; empty of a stack without them.
    return "one graph per token" if facts.graphs else "one pass per token"


def variant_with_reads(variant: MeasuredVariant) -> str:
    """The variant, with what the host reads back after each token and the length of the prompt, if
    there are any.
    """
    params = variant.record.params
    read = _READ.get(str(params.get("readback")), "")
    prompt = f", the first token of a prompt of {params['tokens']}" if "tokens" in params else ""
    return variant_name(variant) + read + prompt


def called(caller: Caller) -> str:
    """The title of the panel of variants that are called so."""
    return f"Called {CALLER_WORDS[caller]}"


def range_of(time: Value) -> str:
    """The interval of a noisy time: ``6 to 37``; ``at most 37`` where it reaches zero, or is so
    near that the digits of the other end do not show it.
    """
    if time.floor < _NEAR_ZERO * time.ceiling:
        return printed(f"at most {number(time.ceiling)}", time)
    return ends_text(time)


def _kernels(fusions: int) -> str:
    """The kernels of the lowered program inside a sentence."""
    if fusions in (0, len(FUSIONS)):
        return f"this project's {_fusions(fusions)} kernels"
    return f"this project's kernels with {_fusions(fusions)}"


def dispatches(variant: MeasuredVariant) -> str:
    """The dispatches of a token; '' where they are not known."""
    return f"{variant.dispatches:,}" if variant.dispatches else ""


def bound(variant: MeasuredVariant) -> str:
    """What bounds a step; '' where that is not known."""
    return "too uncertain" if variant.lacks_intervals else _BOUND[variant.is_device_bound]


def remark(variant: MeasuredVariant) -> str:
    """Why the variant has no time; else its status, and what is doubtful of the device's time."""
    if variant.complete is None:
        return one_line(why(variant.record, "complete"))
    doubts: list[str] = [variant.record.status] if variant.record.status != "ok" else []
    return "; ".join(filter(None, [*doubts, _DEVICE_DOUBTS[variant.device_doubt]]))


def batch_table_title(found: DecoderResults) -> str:
    """The table of steps of batches."""
    return f"{found.name}: a step by batch"


def batch_title(found: DecoderResults) -> str:
    """The picture of the time over the batch."""
    return f"Time of a step of {found.name} by batch, on {_device(found)}"


def variants_title(found: DecoderResults) -> str:
    """The table of all variants."""
    return f"Variants that decode a token of {found.name}"


def fused_title(found: DecoderResults) -> str:
    """The picture of what fusing saves."""
    return f"Time per token of {found.name} at batch 1, on {_device(found)}"


def _device(found: DecoderResults) -> str:
    """The device of all variants, which is one board."""
    first = found.variants[0] if found.variants else found.sweeps[0][0]
    return plain(first.record.adapter or "the CPU", 60)


def fused_alternative(found: DecoderResults) -> str:
    """The picture of all variants for screen readers: its finding."""
    cheapest = cheapest_variants(found)
    if not cheapest:
        return "No time is clear."
    return answer(cheapest, found.name)


@words_for(TokenTimes)
def token_times(found: TokenTimes) -> FindingWords:
    """The finding on what a token costs in eager mode, as a CUDA graph, and as a graph of fused
    kernels; and at which batch the fused kernels lose.
    """
    title = (
        f"Capture the decode step: a token takes {_ms_of_token(found.eager)} ms in eager"
        f" {found.eager.target.facts.label}, {_ms_of_token(found.captured)} ms as its CUDA graph,"
        f" {_ms_of_token(found.fused)} ms as a graph of this project's untuned fused kernels"
        f" ({found.precision} at batch {whole(1, exactly(1).origin)})."
    )
    return FindingWords(title, f"{found.decoder}. {_by_batch(found)}".rstrip())


def _ms_of_token(variant: MeasuredVariant) -> str:
    """The time of a token in ms, of a noisy one with its interval."""
    time = variant.complete
    if time is None:
        return variant.record.status
    milliseconds = time / 1e6
    return positive_spread(milliseconds) if time.status == "noisy" else number(milliseconds)


def _is_faster(step: StepAtBatch) -> bool:
    return step.is_faster


def _by_batch(found: TokenTimes) -> str:
    """Up to which batch the fused kernels are faster, and from which on they are slower, by the
    intervals; '' if only one batch was measured.
    """
    faster = list(itertools.takewhile(_is_faster, found.batches))
    slower = [step for step in found.batches if step.is_slower]
    library = found.eager.target.facts.label
    texts = []
    if len(found.batches) > 1 and faster:
        batch = whole(faster[-1].batch, exactly(faster[-1].batch).origin)
        texts.append(f"The fused kernels are faster than {library}'s graph up to batch {batch}")
    if slower:
        # The smallest batch at which they lose.
        first = slower[0]
        batch = whole(first.batch, exactly(first.batch).origin)
        texts.append(
            f"at batch {batch} they lose: {number(first.fused / 1e6)} ms, and the graph"
            f" {number(first.captured / 1e6)} ms"
        )
    return f"{'; '.join(texts)}." if texts else ""
