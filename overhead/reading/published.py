"""Published figures with their sources. They are data: no fit and no ratio uses them."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from overhead.results import Api, Caller, Name

Contract = Literal[
    "slope", "back to back", "sequential", "single", "until start", "host call", "not stated"
]
"""How a figure was taken. Only a slope and a figure taken back to back are the cost of one more."""
SourceId = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.-]{1,39}$")]
SourceText = Annotated[str, Meta(min_length=1, max_length=1000)]


class Source(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A publication. ``where``: its addresses, the main one first. ``date``: the day, or the
    year.
    """

    title: SourceText
    where: Annotated[list[Annotated[str, Meta(pattern=r"^https://[!-~]+$")]], Meta(min_length=1)]
    date: Annotated[str, Meta(pattern=r"^\d{4}(-\d\d-\d\d)?$")]

    @property
    def short(self) -> str:
        """The main address in short: ``ml-explore/mlx#4521``, ``arxiv.org/abs/2604.02344``."""
        on_github = re.match(
            r"https://github\.com/([^/]+/[^/]+)(?:/(?:issues|pull)/(\d+))?", self.where[0]
        )
        if on_github is None:
            return self.where[0].removeprefix("https://")
        # The repository, and the number of the issue or pull request if there is one.
        return "#".join(filter(None, on_github.groups()))


class PublishedPoint(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One published figure, often of hardware that we do not have. ``value``: in microseconds.

    ``vendor``: of the device, or "software". ``stack``: ours of that name, or what the source calls
    it. ``arguments``: how many its kernel has, where that is none and sets it apart. ``versions``:
    of driver and software, as far as the source tells them.
    """

    id: SourceId
    source: SourceId
    vendor: Name
    adapter: Name
    api: Api
    platform: Name
    stack: Name
    caller: Caller
    quantity: Literal["dispatch", "operation", "node", "submit", "wait"]
    value: float
    contract: Contract
    arguments: int | None = None
    versions: str = ""
    note: str = ""


class Publications(Struct, forbid_unknown_fields=True, frozen=True):
    """All published figures in the order of the file, their sources by id, and what each contract
    means.
    """

    contract: dict[Contract, str]
    source: dict[SourceId, Source]
    point: list[PublishedPoint]


@functools.cache
def publications() -> Publications:
    """The data of ``published.toml``."""
    text = resources.files(__package__).joinpath("published.toml").read_bytes()
    return msgspec.toml.decode(text, type=Publications)
