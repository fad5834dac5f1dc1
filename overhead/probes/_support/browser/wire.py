"""What page and program say to each other, bounded and strictly decoded: the page's words are somebody else's input."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

MAX_BODY_BYTES = 1 << 18
"""An answer with the most samples, values or bytes that it may hold is well under this."""
MAX_SAMPLES = 4096
PIECE_BYTES = 1 << 17
"""Buffers travel in pieces of at most this, as base64."""

Short = Annotated[str, Meta(max_length=200)]
Long = Annotated[str, Meta(max_length=1000)]
Whole = Annotated[int, Meta(ge=0, le=2**53)]
Row = Annotated[list[Whole], Meta(min_length=3, max_length=3)]
Rows = Annotated[list[Row], Meta(max_length=MAX_SAMPLES)]
Words = Annotated[list[Annotated[int, Meta(ge=0, lt=2**32)]], Meta(min_length=256, max_length=256)]
Values = Annotated[list[Words], Meta(max_length=8)]
Piece = Annotated[bytes, Meta(max_length=PIECE_BYTES)]
Failure = Literal["", "unverified", "unsupported", "failed"]
Hashes = Annotated[dict[Short, Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$")]], Meta(max_length=8)]


class _Said(Struct, forbid_unknown_fields=True, frozen=True):
    pass


class PageAdapter(_Said, frozen=True, kw_only=True):
    """``GPUAdapterInfo`` field by field; ``forced`` where only ``forceFallbackAdapter`` gave one.

    ``fallback`` is null where the browser does not say. ``backend``, ``type``, ``driver``: Chromium's developer fields.
    """

    vendor: Short = ""
    architecture: Short = ""
    device: Short = ""
    description: Short = ""
    backend: Short = ""
    type: Short = ""
    driver: Short = ""
    fallback: bool | None = None
    forced: bool = False


class Page(_Said, frozen=True, kw_only=True):
    """Who the page is: browser, adapter or the reason why there is none, clock, and the hashes of the WGSL it got."""

    adapter: PageAdapter | None = None
    reason: Long = ""
    user_agent: Annotated[str, Meta(max_length=400)]
    brands: Annotated[list[Short], Meta(max_length=8)] = []
    platform: Short = ""
    cores: Annotated[int, Meta(ge=0, le=65536)] = 0
    memory_gib: Annotated[int, Meta(ge=0, le=65536)] = 0
    isolated: bool = False
    clock_step_ns: Whole = 0
    kernels: Hashes = {}


class Hello(Page, frozen=True, kw_only=True):
    token: Short


class CaseSpec(_Said, frozen=True, omit_defaults=True, kw_only=True):
    """A case in the page's words."""

    pattern: Literal["per-submit", "per-k", "per-pass", "one-pass", "fused", "wait-each", "read-each"]
    dependency: Literal["chained", "independent"] = "chained"
    bindgroup: Literal["once", "rotated"] = "once"
    wait: Literal["work-done", "map"] = "work-done"
    k: Annotated[int, Meta(ge=1, le=4096)] = 1


class PageEntry(_Said, frozen=True, kw_only=True):
    """An entry point and how many groups launch it."""

    name: str
    groups: int


class PageBuffer(_Said, frozen=True, kw_only=True):
    """A buffer of zeros, bound in group 0 by its number; ``storage`` can be fetched."""

    kind: Literal["storage", "read-only-storage", "uniform"]
    size: int
    """Bytes."""


class PageProgram(_Said, frozen=True, omit_defaults=True, kw_only=True):
    """What a case runs in place of the step: WGSL, the dispatches of a unit in their order, the buffers bound to it.

    ``rounds``: the uniform whose first word says how often a fused kernel loops; ``loops``: at most so often in one
    dispatch, 0 without a bound; ``needs``: features of the device; ``label``: for whoever watches.
    """

    label: str
    code: str
    entries: list[PageEntry]
    buffers: list[PageBuffer]
    rounds: int
    loops: int = 0
    needs: list[str] = []


class Command(_Said, frozen=True, omit_defaults=True, kw_only=True):
    """What the page is asked: open ``case`` as ``chain``, ``time`` these ``ns``, ``read`` its values, ``close`` it.

    With a ``program`` also: ``write`` ``data`` at byte ``at`` of ``buffer``; ``run`` the units of ``ns`` untimed;
    ``fetch`` the ``size`` bytes at ``at`` of what ``buffers`` held, one after another, when byte 0 was asked for.

    ``warm``: run one unit and its wait before each window.
    """

    id: int
    do: Literal["open", "write", "run", "time", "read", "fetch", "close", "idle", "end"]
    chain: int = 0
    case: CaseSpec | None = None
    program: PageProgram | None = None
    ns: list[int] = []
    idle_ms: float = 0
    warm: bool = True
    buffer: int = 0
    buffers: list[int] = []
    at: int = 0
    size: int = 0
    data: bytes = b""


class PageAnswer(_Said, frozen=True, kw_only=True):
    """The answer to the command of the same ``id``; ``id`` 0 is the first, empty one."""

    id: Whole
    samples: Rows = []
    values: Values = []
    data: Piece = b""
    visible: bool = True
    kind: Failure = ""
    error: Long = ""


decode_hello = msgspec.json.Decoder(Hello).decode
decode_answer = msgspec.json.Decoder(PageAnswer).decode
encode = msgspec.json.Encoder().encode
