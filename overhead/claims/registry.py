"""Read the registry: published claims, their sources, and the test of each on our records."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from overhead.reading.published import Source, SourceId as Id, SourceText as ClaimText, publications
from overhead.results import Api, Caller, Dependency, Name, Pattern, Scalar

Number = int | float
Unit = Literal["ratio", "share", "s", "ms", "us", "ns", "GB/s", "1/s", "dispatches"]
TestKind = Literal[
    "value", "count", "slope", "ratio", "share", "share-left", "stage-share", "fails", "implied"
]


class Selector(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Selects one record of each target (a stack on a device): that with all named fields and the
    fewest parameters.

    As ``against``, it takes the fields that it does not name from ``of``; without a stack it
    selects from the same target. With ``steps`` the value is the time of a chain of that many units
    with its wait, computed from the fit.
    """

    stack: list[Name] | None = None
    api: Api | None = None
    pattern: Pattern | None = None
    caller: Caller | None = None
    dependency: Dependency | None = None
    workload: Name | None = None
    params: dict[Name, Scalar] | None = None
    figure: Name | None = None
    steps: Annotated[int, Meta(ge=1)] | None = None


class ClaimTest(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What to compute from the records. ``kind`` is one of:

    - ``value``: the figure of ``of``; in the unit ``1/s`` its reciprocal;
    - ``count``: the dispatches of a unit of ``of``, of the program that ran;
    - ``slope``: the time of a dispatch, from the decode cases that differ from ``of`` in the
      parameter ``over`` alone;
    - ``ratio``: ``of`` divided by ``against``;
    - ``share``, ``share-left``: the fraction of ``of`` that ``against`` saves; the fraction that is
      left;
    - ``stage-share``: the stage ``figure`` divided by the sum of all stages (the calls of a unit,
      timed one by one);
    - ``fails``: whether the case has no figure, since it failed by ``reason``;
    - ``implied``: ``formula`` of the published parts, compared with ``limit``; needs no records.

    ``quantity``: a sentence on what is computed, in which ``{}`` stands for the value. ``via``: use
    this named comparison, formed in each round, instead of two records. ``scale``: factor for the
    result. ``no_effect``: the claim is that a ratio does not differ from 1.
    """

    quantity: ClaimText
    kind: TestKind = "ratio"
    unit: Unit = "ratio"
    of: Selector = Selector()
    against: Selector | None = None
    via: Name = ""
    over: Literal["", "padding", "fusions"] = ""
    scale: float = 1.0
    reason: Literal["", "RecursionError", "memory"] = ""
    formula: str = ""
    limit: float = 0.0
    no_effect: bool = False
    software: Literal["smoke test", "counts"] = "smoke test"


class Attribution(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What the source says that the number is the cost of. ``test`` gives the share (0 to 1) of
    this part.
    """

    said: ClaimText
    test: ClaimTest


class Claim(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One published claim. ``value``: the published figure, or its range; ``formula`` computes it
    from ``parts``.

    ``hardware``: has the word CPU if a CPU did the work. ``attribution``: what the number is said
    to be the cost of. ``flaw``: what is wrong with the published method; ``mistake``: the same in
    few words; ``flawed``: a test that repeats it. ``cross``: the published ratio compares two
    machines. ``withdrawn``: the author's later statement. ``untested``: why there is no ``test``.
    """

    id: Id
    source: Id
    said: ClaimText
    hardware: ClaimText
    value: Number | Annotated[list[Number], Meta(min_length=2, max_length=2)]
    unit: Unit = "ratio"
    parts: dict[Name, Number] = {}
    formula: str = ""
    how: ClaimText
    flaw: str = ""
    mistake: str = ""
    cross: bool = False
    withdrawn: str = ""
    test: ClaimTest | None = None
    flawed: ClaimTest | None = None
    attribution: Attribution | None = None
    untested: str = ""


class _Claims(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    source: dict[Id, Source]
    claim: list[Claim]


@functools.cache
def _claims() -> _Claims:
    return msgspec.toml.decode(
        resources.files(__package__).joinpath("claims.toml").read_bytes(), type=_Claims
    )


def claims() -> list[Claim]:
    """All claims, in the order of the registry."""
    return _claims().claim


def sources() -> dict[str, Source]:
    """All sources by id, with those of the published points."""
    return {**publications().source, **_claims().source}


def citation(source: Source) -> str:
    """``title (where, date)`` of the source."""
    return f"{source.title} ({source.short}, {source.date})"
