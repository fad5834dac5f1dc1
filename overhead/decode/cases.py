"""The cases of the decode workload: ways to decode, and a case of each for every decoder."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from overhead.decode.decoders import BATCH_SIZES, PROMPT, decoders_for
from overhead.results import Caller, Case, Pattern, Scalar

PADDINGS = (100, 200, 400)
"""Trivial dispatches that are added to a token, to find the cost of one in a real program."""


@dataclasses.dataclass(frozen=True)
class DecodeWay:
    """One way to decode on a stack: a pattern with parameters, and the callers that can run it."""

    pattern: Pattern
    params: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)
    callers: Sequence[Caller] = ("binding",)

    def with_params(self, **params: Scalar) -> DecodeWay:
        """A copy of this way with these parameters added or replaced."""
        return dataclasses.replace(self, params={**self.params, **params})


def lowered_ways(
    pattern: Pattern, callers: Sequence[Caller], fusions: Iterable[int]
) -> list[DecodeWay]:
    """Ways to run the lowered program, one for each of these numbers of fusions."""
    return [DecodeWay(pattern, {"fusions": count}, callers) for count in fusions]


def padded_ways(way: DecodeWay) -> list[DecodeWay]:
    """Copies of the way with 100, 200 and 400 trivial dispatches added to each token."""
    return [way.with_params(padding=count) for count in PADDINGS]


def batched_ways(way: DecodeWay) -> list[DecodeWay]:
    """Copies of the way with 4, 16 and 64 sequences in each step."""
    return [way.with_params(batch=count) for count in BATCH_SIZES]


def reading_ways(way: DecodeWay) -> list[DecodeWay]:
    """Copies of the way that read the token, read all logits, or read the token after a prompt of
    several steps.
    """
    each = dataclasses.replace(way, pattern="read-each", callers=("binding",))
    read = each.with_params(readback="token")
    return [read, each.with_params(readback="logits"), read.with_params(tokens=PROMPT)]


def decode_cases(ways: Iterable[DecodeWay], *, software: bool) -> Iterator[Case]:
    """A case of each way and caller for every decoder. ``software``: only for the tiny decoder."""
    ways = list(ways)
    for name in decoders_for(software=software):
        for way in ways:
            tokens = way.params.get("tokens", way.params.get("batch", 1))
            unit = "token" if tokens == 1 else f"{tokens} tokens"
            for caller in way.callers:
                yield Case(
                    pattern=way.pattern,
                    caller=caller,
                    unit=unit,
                    workload=name,
                    params=dict(way.params),
                )
