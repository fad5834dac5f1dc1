"""The cases of the decode workload that a stack offers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from overhead.decode.decoders import BATCH_SIZES, DECODERS, PROMPT, decoders
from overhead.probes.base import Space
from overhead.results import Caller, Case, Pattern, Scalar

PADDINGS = (100, 200, 400)
"""Trivial dispatches that are added to a token, to find the cost of one in a real program."""


@dataclasses.dataclass(frozen=True)
class DecodeWay:
    """One way to decode: a pattern with parameters, and the callers that can run it."""

    pattern: Pattern
    params: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)
    callers: Sequence[Caller] = ("binding",)


def program_arms(pattern: Pattern, callers: Sequence[Caller], fusions: Iterable[int]) -> list[DecodeWay]:
    """The arms of a lowered program with these numbers of fusions."""
    return [DecodeWay(pattern, {"fusions": count}, callers) for count in fusions]


def padded_arms(arm: DecodeWay) -> list[DecodeWay]:
    """The arm with trivial dispatches added to each token."""
    return [dataclasses.replace(arm, params={**arm.params, "padding": count}) for count in PADDINGS]


def batched_arms(arm: DecodeWay) -> list[DecodeWay]:
    """The arm with several sequences in each step."""
    return [dataclasses.replace(arm, params={**arm.params, "batch": count}) for count in BATCH_SIZES]


def reading_arms(params: Mapping[str, Scalar] | None = None) -> list[DecodeWay]:
    """Arms that read after every token: the token, or all logits; and after a prompt, which are several steps."""
    reads: list[dict[str, Scalar]] = [
        {"readback": "token"},
        {"readback": "logits"},
        {"readback": "token", "tokens": PROMPT},
    ]
    return [DecodeWay("read-each", {**(params or {}), **read}) for read in reads]


def with_decode(space: Space, arms: Iterable[DecodeWay], *, software: bool) -> Space:
    """The space of a stack, extended by every decoder in every arm. ``software``: only the tiny decoder."""
    arms = list(arms)
    cases = [
        Case(pattern=arm.pattern, caller=caller, unit=_unit(arm), workload=name, params=dict(arm.params))
        for name in decoders(software=software)
        for arm in arms
        for caller in arm.callers
    ]
    allowed = space.allowed
    return dataclasses.replace(
        space,
        extra=[*space.extra, *cases],
        allowed=lambda case: case.workload in DECODERS or allowed(case),
    )


def _unit(arm: DecodeWay) -> str:
    tokens = arm.params.get("tokens", arm.params.get("batch", 1))
    return "token" if tokens == 1 else f"{tokens} tokens"
