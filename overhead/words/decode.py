"""A decoded token in words: the variants that decode it, what fusing saves, and what a batch
changes.
"""

from __future__ import annotations

import itertools

from overhead.decode.findings import StepAtBatch, TokenTimes
from overhead.decode.lowering.fusions import FUSIONS
from overhead.decode.reading import DecoderResults, MeasuredVariant
from overhead.reading.missing_values import why
from overhead.reading.view import TargetLabel, graph_maker
from overhead.results import exactly, ratio
from overhead.words.findings import FindingWords, words_for
from overhead.words.format import count, factor_spread, number, positive_spread, whole
from overhead.words.names import CALLER_WORDS
from overhead.words.reasons import one_line

BATCH_MATTERS = (
    "From the batch on at which a step is device-bound, launch overhead no longer matters: the CPU"
    " enqueues the step in less time than the device needs for the step."
)
BATCH_CAPTION = (
    "Circles: the time of a step. Triangles: the enqueue time of the step. Squares: the device time"
    " of the step. Vertical lines: intervals. Hollow: noisy. Both axes are logarithmic."
)
FUSED_CAPTION = "Circle: no fusion. Cross: all fusions. Hollow: noisy. The axis is logarithmic."
_READ = {"token": ", 4 bytes read after each", "logits": ", all logits read after each"}
"""What is read back after each token."""
_DEVICE_DOUBTS = {
    "": "",
    "exceeds": "device time above the time of the token",
    "not-resolved": "device time too uncertain",
}
_BOUND = {True: "device", False: "CPU or both", None: ""}


def intro(found: DecoderResults) -> str:
    """The text above the tables of a decoder: what it decoded, and how that was checked."""
    return (
        f"{found.name}: one token at batch 1, in float32, with random weights. The token and the"
        " key-value cache stay on the device. The results of each variant were compared with"
        " float64 on 32 given tokens before the variant was timed. Dispatches are counted in the"
        " program that ran: for PyTorch its operations, for ONNX Runtime the nodes of its graph."
    )


def batch_intro(found: DecoderResults) -> str:
    """The text above the tables of batches: what a step is, and which times may be compared."""
    return (
        f"{found.name}: a step makes one token for each sequence of a batch. The step has as many"
        " dispatches as with one sequence, so a larger batch costs the device more time, but the"
        " CPU hardly more. The kernels of the lowered program (all stacks but PyTorch and ONNX"
        " Runtime) read each weight once for all sequences, but these kernels are slower than the"
        " matrix products that PyTorch calls. So compare device times only within one variant."
    )


def variant_name(variant: MeasuredVariant) -> str:
    """The name of a way to decode a token: of our own program for the model (lowered) how many
    fusions it has and how it is handed over, ``fused, one pass for each token, from Python``; of a
    library its mode, such as ``eager``.
    """
    # What the case was measured with; a case has only the parameters of its kind.
    params = variant.record.params
    # issued(): what is handed over at a time, and from which language.
    if variant.is_lowered:
        return f"{_fusions(int(params['fusions']))}, {issued(variant)}"
    if "mode" in params:
        return f"torch.compile, {params['mode']}"
    if "maker" in params:  # who made its graph
        return "CUDA graph by PyTorch"
    # A stack with this role runs the whole model in one call.
    return "one call for each token" if "whole-model" in variant.target.facts.roles else "eager"


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
        return (
            "a submission for each dispatch"
            if "one-pass" in facts.roles
            else "a launch for each dispatch"
        )
    # ``graphs``: who makes CUDA graphs of this stack; empty of a stack without them.
    if facts.graphs:
        return f"a graph for each token, made by {graph_maker(record, facts)}"
    return "one pass for each token"


def variant_with_reads(variant: MeasuredVariant) -> str:
    """The variant, with what the host reads back after each token and the length of the prompt, if
    there are any.
    """
    params = variant.record.params
    read = _READ.get(str(params.get("readback")), "")
    prompt = f", the first token of a prompt of {params['tokens']}" if "tokens" in params else ""
    return variant_name(variant) + read + prompt


def lowered_label(variant: MeasuredVariant) -> str:
    """The stack, and how it issues the lowered program."""
    return f"{variant.record.stack}, {issued(variant)}"


def sweep_label(variant: MeasuredVariant) -> TargetLabel:
    """The variant on its device."""
    return variant.target.shortened.followed_by(f": {variant_name(variant)}")


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
    return f"Time of a step of {found.name} by batch"


def batch_alternative(found: DecoderResults) -> str:
    """The same for screen readers."""
    variants = count(len(found.sweeps), "variant")
    return f"The time of a step by batch, for {variants}; the numbers are in the table below."


def variants_title(found: DecoderResults) -> str:
    """The table of all variants."""
    return f"Variants that decode a token of {found.name}"


def fused_title(found: DecoderResults) -> str:
    """The picture of what fusing saves."""
    return f"Time per token of {found.name}, unfused and fused"


def fused_alternative(unfused: MeasuredVariant, fused: MeasuredVariant) -> str:
    """What fusing saves through one stack, for screen readers."""
    times = factor_spread(ratio(unfused.complete, fused.complete))
    return f"Kernel fusion makes a token {times} faster through {fused.target.short}."


@words_for(TokenTimes)
def token_times(found: TokenTimes) -> FindingWords:
    """The finding on what a token costs in eager mode, as a CUDA graph, and as a graph of fused
    kernels; and at which batch the fused kernels lose.
    """
    title = (
        f"Capture the decode step: a token takes {_ms(found.eager)} ms in eager"
        f" {found.eager.target.facts.label}, {_ms(found.captured)} ms as its CUDA graph,"
        f" {_ms(found.fused)} ms as a graph of this project's untuned fused kernels"
        f" ({found.precision} at batch {whole(1, exactly(1).origin)})."
    )
    return FindingWords(title, f"{found.decoder}. {_by_batch(found)}".rstrip())


def _ms(variant: MeasuredVariant) -> str:
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
    texts = []
    if len(found.batches) > 1 and faster:
        batch = whole(faster[-1].batch, exactly(faster[-1].batch).origin)
        texts.append(f"The fused kernels are faster up to batch {batch}")
    if slower:
        # The smallest batch at which they lose.
        first = slower[0]
        library = found.eager.target.facts.label
        batch = whole(first.batch, exactly(first.batch).origin)
        texts.append(
            f"at batch {batch} they lose: {number(first.fused / 1e6)} ms, and {library}'s graph"
            f" {number(first.captured / 1e6)} ms"
        )
    return f"{'; '.join(texts)}." if texts else ""
