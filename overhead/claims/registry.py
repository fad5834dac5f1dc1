"""The registry: published claims, how each is tested on our records, and published points. Strictly decoded TOML."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from overhead.results import Api, Caller, Dependency, Name, Pattern, Scalar

Number = int | float
ClaimText = Annotated[str, Meta(min_length=1, max_length=1000)]
Id = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.-]{1,39}$")]
Unit = Literal["ratio", "share", "s", "ms", "us", "ns", "GB/s", "1/s"]
TestKind = Literal["value", "ratio", "share", "stage-share", "fails", "implied"]
Bounds = Annotated[list[float], Meta(min_length=2, max_length=2)]


class Source(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Where a claim or a point was published. ``where``: DOI, arXiv number, repository or address."""

    title: ClaimText
    where: ClaimText
    year: int


class Selector(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Selects one record per target: of those that match every named field, the one with the fewest parameters.

    Used as ``against``, it takes the fields that it does not name from ``of``; without a stack it means the same
    target.
    ``steps``: instead of a figure, the time of a chain of so many units and its wait, from the fit.
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
    """What to compute from records, and for which values the claim holds.

    ``kind``: ``value`` (the figure of ``of``), ``ratio`` (``of`` over ``against``), ``share`` (the part of ``of`` that
    ``against`` saves), ``stage-share`` (the stage ``figure`` over the sum of all stages), ``fails`` (whether the case
    has no figure, for a reason that contains ``reason``), ``implied`` (no records: ``formula`` of the published parts
    against ``limit``). ``via``: a named comparison, formed per round, instead of two records.
    ``scale`` multiplies. ``reproduced`` and ``partial``: from, to, in ``unit``; by default ``reproduced`` is the
    published value within a factor of ``NEAR``.
    """

    quantity: ClaimText
    kind: TestKind = "ratio"
    unit: Unit = "ratio"
    of: Selector = Selector()
    against: Selector | None = None
    via: Name = ""
    scale: float = 1.0
    reason: str = ""
    formula: str = ""
    limit: float = 0.0
    reproduced: Bounds | None = None
    partial: Bounds | None = None
    software: Literal["smoke test", "counts"] = "smoke test"


class Claim(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One published claim. ``value`` is the published figure (or from, to); ``parts`` and ``formula`` give it.

    ``flaw``: what is wrong with the published method; ``flawed``: the same quantity with the flaw put back. ``cross``:
    the published ratio sets two machines against each other. ``withdrawn``: what the author has said since.
    ``untested``: why our records cannot test the claim, where there is no ``test``.
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
    cross: bool = False
    withdrawn: str = ""
    test: ClaimTest | None = None
    flawed: ClaimTest | None = None
    untested: str = ""


class PublishedPoint(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One published figure, perhaps of hardware that we do not have. Never part of a fit or a ratio with our figures.

    ``contract``: what the figure includes, in the terms of docs/claims.md; ``value`` in ``unit`` ("us", "ms", "ns").
    """

    id: Id
    source: Id
    vendor: Name
    adapter: Name
    api: Api
    platform: Name
    implementation: Name
    quantity: Literal["dispatch", "wait", "single", "node", "submit", "operation"]
    value: Number
    unit: Unit = "us"
    contract: ClaimText
    note: str = ""


class _Claims(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    source: dict[Id, Source]
    claim: list[Claim]


class _Points(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    point: list[PublishedPoint]


@functools.cache
def _claims() -> _Claims:
    return msgspec.toml.decode(_read("claims.toml"), type=_Claims)


def claims() -> list[Claim]:
    """All claims, in the registry's order."""
    return list(_claims().claim)


def sources() -> dict[str, Source]:
    """All sources by id."""
    return dict(_claims().source)


@functools.cache
def _points() -> _Points:
    return msgspec.toml.decode(_read("points.toml"), type=_Points)


def published_points() -> list[PublishedPoint]:
    """All published points, drawn as hollow marks beside our figures."""
    return list(_points().point)


def _read(name: str) -> bytes:
    return resources.files(__package__).joinpath(name).read_bytes()


def cited(source: Source) -> str:
    """Title, where, year."""
    return f"{source.title} ({source.where}, {source.year})"
