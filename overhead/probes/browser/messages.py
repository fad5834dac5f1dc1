"""The messages between page and program. The page is not trusted: sizes are limited and decoding is
strict.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

MAX_BODY_BYTES = 1 << 18
"""Size limit of an answer. The largest answer that the schema allows is much smaller."""
MAX_SAMPLES = 4096
PIECE_BYTES = 1 << 17
"""Buffers are sent in pieces of this size, before base64 encoding."""

ShortText = Annotated[str, Meta(max_length=200)]
MessageText = Annotated[str, Meta(max_length=1000)]
NonNegative = Annotated[int, Meta(ge=0, le=2**53)]
Row = Annotated[list[NonNegative], Meta(min_length=3, max_length=3)]
Rows = Annotated[list[Row], Meta(max_length=MAX_SAMPLES)]
BufferWords = Annotated[
    list[Annotated[int, Meta(ge=0, lt=2**32)]], Meta(min_length=256, max_length=256)
]
Values = Annotated[list[BufferWords], Meta(max_length=8)]
Piece = Annotated[bytes, Meta(max_length=PIECE_BYTES)]
Failure = Literal["", "unverified", "unsupported", "failed"]
BufferKind = Literal["storage", "read-only-storage", "uniform"]
Hashes = Annotated[
    dict[ShortText, Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$")]], Meta(max_length=8)
]


class _Message(Struct, forbid_unknown_fields=True, frozen=True):
    pass


class PageAdapter(_Message, frozen=True, kw_only=True):
    """The fields of ``GPUAdapterInfo``.

    ``forced``: the adapter was found only with ``forceFallbackAdapter``. ``fallback``: None if the
    browser lacks it. ``backend``, ``type`` and ``driver`` exist only in Chromium with developer
    features.
    """

    vendor: ShortText = ""
    architecture: ShortText = ""
    device: ShortText = ""
    description: ShortText = ""
    backend: ShortText = ""
    type: ShortText = ""
    driver: ShortText = ""
    fallback: bool | None = None
    forced: bool = False


class Page(_Message, frozen=True, kw_only=True):
    """Description of a page: browser, adapter (or the ``reason`` why there is none), clock, and
    SHA-256 of its WGSL.
    """

    adapter: PageAdapter | None = None
    reason: MessageText = ""
    user_agent: Annotated[str, Meta(max_length=400)]
    brands: Annotated[list[ShortText], Meta(max_length=8)] = []
    platform: ShortText = ""
    cores: Annotated[int, Meta(ge=0, le=65536)] = 0
    memory_gib: Annotated[int, Meta(ge=0, le=65536)] = 0
    isolated: bool = False
    clock_step_ns: NonNegative = 0
    kernels: Hashes = {}


class Hello(Page, frozen=True, kw_only=True):
    """The first message of a page: its description, and the token of the address that opened it."""

    token: ShortText


class CaseSpec(_Message, frozen=True, omit_defaults=True, kw_only=True):
    """A case of the step (the stack's own unit of work), in the form that is sent to the page."""

    pattern: Literal[
        "per-submit", "per-k", "per-pass", "one-pass", "fused", "wait-each", "read-each"
    ]
    dependency: Literal["chained", "independent"] = "chained"
    bindgroup: Literal["once", "rotated"] = "once"
    wait: Literal["work-done", "map"] = "work-done"
    k: Annotated[int, Meta(ge=1, le=4096)] = 1


class PageKernel(_Message, frozen=True, omit_defaults=True, kw_only=True):
    """WGSL. ``bindings``: the kinds of its bindings in group 0; without them the buffers of the
    program in order.
    """

    code: str
    bindings: list[BufferKind] = []


class PageEntry(_Message, frozen=True, omit_defaults=True, kw_only=True):
    """A dispatch: an entry point of the kernel with this index, and the number of workgroups in
    each dimension.

    ``buffers``: the indices of the buffers for the ``bindings`` of the kernel.
    """

    name: str
    groups: list[int]
    kernel: int = 0
    buffers: list[int] = []


class PageBuffer(_Message, frozen=True, kw_only=True):
    """A buffer of zeros. Only a ``storage`` buffer can be fetched."""

    kind: BufferKind
    size: int
    """Bytes."""


class PageProgram(_Message, frozen=True, omit_defaults=True, kw_only=True):
    """A program that a case runs instead of the step: WGSL, the dispatches of a unit in order, and
    the buffers.

    ``count_buffer``: index of the uniform buffer whose first word is the loop count of a fused
    kernel; -1: none. ``max_loops``: most loops in one dispatch; 0: no limit. ``needs``: device
    features. ``label``: the name that the page shows. A case with ``read-each`` reads the first 4
    bytes of the first buffer.
    """

    label: str
    kernels: list[PageKernel]
    entries: list[PageEntry]
    buffers: list[PageBuffer]
    count_buffer: int = -1
    max_loops: int = 0
    needs: list[str] = []


class Command(_Message, frozen=True, omit_defaults=True, kw_only=True):
    """A command to the page: ``open`` a case as chain number ``chain``, ``time`` the n in ``ns``,
    ``read``, ``close``.

    ``run`` runs the n in ``ns`` untimed; ``count`` does the same and returns the calls of
    ``dispatchWorkgroups``. A case with a ``program`` has two more commands. ``write`` puts ``data``
    at byte ``at`` of the concatenated ``buffers``. ``fetch`` returns ``size`` bytes from byte
    ``at`` of the concatenated ``buffers``; a ``fetch`` at byte 0 copies the buffers, and the
    following ones return parts of that copy.

    ``warm``: run one unit and its wait before each window. ``time`` with ``data``: then write it to
    ``buffers`` and wait, before each window.
    """

    id: int
    do: Literal["open", "write", "run", "time", "read", "fetch", "close", "idle", "end"]
    chain: int = 0
    case: CaseSpec | None = None
    program: PageProgram | None = None
    ns: list[int] = []
    idle_ms: float = 0
    warm: bool = True
    buffers: list[int] = []
    at: int = 0
    size: int = 0
    data: bytes = b""


class PageAnswer(_Message, frozen=True, kw_only=True):
    """The answer to the command with the same ``id``. The first answer has ``id`` 0 and is
    empty.
    """

    id: NonNegative
    samples: Rows = []
    values: Values = []
    data: Piece = b""
    visible: bool = True
    kind: Failure = ""
    error: MessageText = ""


decode_hello = msgspec.json.Decoder(Hello).decode
decode_answer = msgspec.json.Decoder(PageAnswer).decode
encode = msgspec.json.Encoder().encode
