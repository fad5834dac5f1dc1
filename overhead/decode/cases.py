"""The cases of the decode workload: variants of decoding, and a case of each for every decoder."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from overhead.decode.decoders import BATCH_SIZES, PROMPT, decoders_for
from overhead.results import Caller, Case, Pattern, Scalar

PADDINGS = (100, 200, 400)
"""Trivial dispatches that are added to a token, to find the cost of a dispatch in a real program.
Chosen, not measured: the time per dispatch is the slope of a line, which needs three different
counts.
"""


@dataclasses.dataclass(frozen=True)
class DecodeVariant:
    """One way to decode tokens on a stack, such as Dawn.

    ``pattern``: how the dispatches are handed to the device, such as ``per-pass``. ``params``: what
    else tells variants apart, such as ``fusions``. ``callers``: what may call the library:
    ``binding`` is Python, ``native`` compiled code, ``browser`` a page.
    """

    pattern: Pattern
    params: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)
    callers: Sequence[Caller] = ("binding",)

    def with_params(self, **params: Scalar) -> DecodeVariant:
        """A copy of this variant with these parameters added or replaced."""
        return dataclasses.replace(self, params={**self.params, **params})


def lowered_variants(
    pattern: Pattern, callers: Sequence[Caller], fusions: Iterable[int]
) -> list[DecodeVariant]:
    """Variants that run the lowered program, one for each of these numbers of fusions."""
    return [DecodeVariant(pattern, {"fusions": count}, callers) for count in fusions]


def padded_variants(variant: DecodeVariant) -> list[DecodeVariant]:
    """Copies of the variant with 100, 200 and 400 trivial dispatches added to each token."""
    return [variant.with_params(padding=count) for count in PADDINGS]


def batched_variants(variant: DecodeVariant) -> list[DecodeVariant]:
    """Copies of the variant with 4, 16 and 64 sequences in each step."""
    return [variant.with_params(batch=count) for count in BATCH_SIZES]


def reading_variants(variant: DecodeVariant) -> list[DecodeVariant]:
    """Three copies of the variant in which the CPU reads values back from the device, and waits for
    them.

    The first reads each token, the second all logits of each token. The third reads only the token
    after a whole prompt: its time is the time to the first token. All three are called from Python
    alone, because the read is a Python call.
    """
    reading = dataclasses.replace(variant, pattern="read-each", callers=("binding",))
    each_token = reading.with_params(readback="token")
    all_logits = reading.with_params(readback="logits")
    after_prompt = each_token.with_params(tokens=PROMPT)
    return [each_token, all_logits, after_prompt]


def decode_cases(variants: Iterable[DecodeVariant], *, software: bool) -> Iterator[Case]:
    """The cases to measure on one device: one for each decoder, variant and caller of the variant,
    the smallest decoder first.

    ``software``: the device is a CPU or a software adapter, so only the tiny decoder is measured.
    """
    # A list, because the variants are gone through once for each decoder.
    variants = list(variants)
    for decoder in decoders_for(software=software):
        for variant in variants:
            for caller in variant.callers:
                yield Case(
                    pattern=variant.pattern,
                    caller=caller,
                    unit=_unit(variant),
                    workload=decoder,
                    params=dict(variant.params),
                )


def _unit(variant: DecodeVariant) -> str:
    """What a case of the variant repeats, in words: ``token``; ``16 tokens`` for a batch of 16
    sequences, ``5 tokens`` for a prompt of 5.
    """
    tokens = variant.params.get("tokens", variant.params.get("batch", 1))
    return "token" if tokens == 1 else f"{tokens} tokens"
