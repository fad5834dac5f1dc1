"""What is known of a stack besides how it is measured: its names, its colour, its rows, its part in
comparisons.

``stack_facts.toml`` has the facts of the suite's own stacks. Another stack gives them in
``Probe.facts``, and the file of a run carries them (``Fingerprint.stacks``), so that a reader
without its code shows it in the same way.
"""

from __future__ import annotations

import functools
import hashlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from overhead.fields import check_struct
from overhead.results.vocabulary import Count, LongText, Name, Params, Pattern

StackRole = Literal[
    "compiled-steps",
    "contention",
    "driver",
    "node",
    "nvidia-only",
    "one-pass",
    "reference",
    "synchronising-acts",
    "validation",
    "waits-told",
    "webgpu",
    "whole-model",
    "without-passes",
]
"""What a stack is to the suite, or takes part in.

``compiled-steps``: it compiles several operations into one step, and the case ``mode=eager`` does
not. ``contention``, ``node``: the profile of that name measures it. ``driver``: it calls the driver
itself, with no library between. ``nvidia-only``: it works on an NVIDIA GPU only. ``one-pass``: it
can have many dispatches in one pass. ``reference``: a call that does nothing. It is no stack, and
has no row. ``synchronising-acts``: it has cases with a synchronising act after every so many steps.
``validation``: its validation can be left out, by the case ``validation=skip``. ``waits-told``:
sentences say what waiting costs through it, where it was measured. ``webgpu``: a library of WebGPU.
``whole-model``: one call runs a whole model. ``without-passes``: its API records dispatches without
a pass around them.
"""
RowGroup = Literal["arrays", "kernels", "webgpu", "others"]
WayKind = Literal["eager", "launches", "graph-driver", "fused-cuda", "wgsl", "fused-wgsl"]
_Related = Annotated[str, Meta(pattern=r"^([a-z][a-z0-9-]{0,31})?$(?!\n)")]
"""The name of another stack; '' for none."""
LAST_ROW = 1000
"""The ``order`` of a row that gives none."""


class _Facts(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True, kw_only=True):
    def __post_init__(self) -> None:
        """Raises ``BadValue``."""
        check_struct(self)


class StackRow(_Facts):
    """A way to call the stack that has a row of its own on the front page.

    - ``label``: the name of the row.
    - ``name``: the name of the row inside a sentence; '' where the sentence uses ``label``.
    - ``group``: the group of rows in which the row stands.
    - ``order``: if the chart has too little room, the rows with the highest ``order`` are left out
      first.
    - ``params``: the parameters of the row's case. Without ``params`` this is the stack's base
      case.
    - ``other_operand``: the operation that compiled code runs, if compiled code runs another
      operation than Python.
    - ``split_name``: the name of the row with the operation ``other_operand``.
    """

    label: Name
    name: Name = ""
    group: RowGroup = "others"
    order: Count = LAST_ROW
    params: Params = {}
    other_operand: Name = ""
    split_name: Name = ""


class ChainWayFacts(_Facts):
    """A way to run a whole chain, which is compared with a CUDA graph of the same chain: the kind,
    pattern and label of this way.
    """

    kind: WayKind
    pattern: Pattern
    label: Name


class GraphMaker(_Facts):
    """The library that makes a graph. ``stack``: the stack whose launches the graph records; '' if
    its nodes belong to the row of no stack.
    """

    label: Name
    stack: _Related = ""


class ShortWay(_Facts):
    """A case of the stack with less CPU time, and in words what to do to get this case."""

    params: Params
    advice: LongText


class OneThread(_Facts):
    """Why a process may use the stack in one thread only: all chains share the object ``shares`` of
    a library or an API ``of``.
    """

    shares: Name
    of: Name


class StackFacts(_Facts):
    """How readers name, colour and group one stack. All fields have a default.

    - ``label``: the name of the stack in sentences; '' for ``Probe.name``.
    - ``colour``: written as ``#rrggbb``, with a contrast of at least 4.5:1 to white; '' for a
      colour that is computed from the name.
    - ``rows``: the rows of the stack on the front page. Without ``rows``, the base case has one
      row.
    - ``roles``: what the stack is for the suite, by the words of ``StackRole``.
    - ``below``: the stack that does the same work with less code between the caller and the driver.
    - ``library``: for a browser, the stack of the WebGPU library inside the browser.
    - ``graphs``: for a stack of graphs, the libraries that make them, by the parameter ``maker``. A
      case without ``maker`` has the first of them.
    - ``ways``: the ways to run a whole chain that are compared with a CUDA graph
      (``ChainWayFacts``).
    - ``module``: the Python module of a WebGPU library.
    - ``kernel_files``: the endings of the names of the files that hold the stack's kernels; [] if
      its kernels are in a library, None if this is not known.
    """

    label: Name = ""
    colour: Annotated[str, Meta(pattern=r"^(#[0-9a-f]{6})?$(?!\n)")] = ""
    roles: Annotated[list[StackRole], Meta(max_length=32)] = []
    rows: Annotated[list[StackRow], Meta(max_length=8)] = []
    below: _Related = ""
    library: _Related = ""
    graphs: Annotated[dict[Name, GraphMaker], Meta(max_length=8)] = {}
    ways: Annotated[list[ChainWayFacts], Meta(max_length=8)] = []
    short_way: ShortWay | None = None
    one_thread: OneThread | None = None
    module: Name = ""
    kernel_files: Annotated[list[Name], Meta(max_length=16)] | None = None


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@functools.cache
def own_stacks() -> Mapping[str, StackFacts]:
    """The facts of the suite's own stacks, by name, in the order of the file."""
    return msgspec.convert(_table()["stacks"], dict[str, StackFacts])


def key_figure_lines() -> list[dict[str, Any]]:
    """The lines of the key figures, as the file has them."""
    lines: list[dict[str, Any]] = _table()["key_figures"]
    return lines


def stacks_in(role: StackRole, stacks: Mapping[str, StackFacts] | None = None) -> tuple[str, ...]:
    """The names of the stacks with this role, in their order. ``stacks``: without them the suite's
    own.
    """
    if stacks is None:
        stacks = own_stacks()
    return tuple(name for name, facts in stacks.items() if role in facts.roles)


def facts_of(stack: str, others: Mapping[str, StackFacts] | None = None) -> StackFacts:
    """The facts of a stack for those who show it (its label, its colour, its rows of the headline
    figure), with a default for what its facts leave out.

    ``others``: the facts of stacks of plugins, which the file of a run carries. For the suite's own
    stacks its own facts count, whatever a file says.
    """
    given = own_stacks().get(stack)
    if given is None and others is not None:
        given = others.get(stack)
    if given is None:
        given = StackFacts()
    label = given.label or stack
    rows = given.rows
    # Nodes of a graph stand in the row of the launch that they replace, a reference is no stack.
    if not rows and not given.graphs and "reference" not in given.roles:
        rows = [StackRow(label=label)]
    colour = given.colour or _colour_by_name(stack)
    return msgspec.structs.replace(given, label=label, colour=colour, rows=rows)


def _colour_by_name(stack: str) -> str:
    """A colour for a stack that gives none, the same on every machine."""
    colours: list[str] = _table()["colours_of_others"]
    first_byte = hashlib.sha256(stack.encode()).digest()[0]
    return colours[first_byte % len(colours)]
