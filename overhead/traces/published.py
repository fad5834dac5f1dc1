"""What traces tell that people published under their own names, and traces of our own beside them.

The numbers are data: no fit and no finding uses them. ``scripts/published_traces.py`` makes them.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from overhead.results import Name

Recorder = Literal["Kineto with CUPTI", "Kineto with roctracer", "Nsight Systems", "other"]
"""What recorded a trace. Times of two recorders do not compare: each adds its own time to calls."""
FileAnswer = Literal[
    "host", "device", "synchronisation", "ranks", "mixed", "unclear", "processor", "refused"
]
"""What ``overhead explain --trace`` says of a file: what bounds a step; ``unclear``: no verdict;
``processor``: only operations of the CPU are in it; ``refused``: it is not read.
"""
NoMark = Literal["", "no device", "no name", "clocks", "records", "few launches", "made", "another"]
"""Why a trace has no mark in the picture. ``made``: by hand, as an input of a test. ``another``: a
trace of the same maker, GPU and recorder has more launches that found the device idle.
"""
PartOfStep = Annotated[float, Meta(ge=0, le=1)]


class PublishedTrace(
    Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, omit_defaults=True
):
    """A file that others published, and what ``overhead explain --trace`` says of it.

    ``licence``: of the repository, its first words; ``library``: whose operations it holds.
    ``versions``: of what recorded it, as far as the file tells. ``because``: the code of why there
    is no verdict, or why it is refused. ``gpu``: '' if the file does not name it.

    ``found_idle``: launches that found the device idle, first launches of a kernel left out;
    ``latency_us``: from such a call to the start of its kernel, the median, with the 10 and 90 %
    points. ``idle``: the share of a step in which the device does not work. ``launches``,
    ``operations``: of a step. ``host_us``: the host's work of a step, without waits and without its
    DataLoader.
    """

    repository: Annotated[str, Meta(pattern=r"^[\w.-]+/[\w.-]+$")]
    path: Annotated[str, Meta(min_length=1, max_length=400)]
    commit: Annotated[str, Meta(pattern=r"^[0-9a-f]{40}$")]
    licence: Name = ""
    recorder: Recorder = "other"
    library: Name = ""
    versions: Name = ""
    gpu: Name = ""
    answer: FileAnswer
    because: Name = ""
    left_out: NoMark = ""
    steps: int = 0
    found_idle: int = 0
    latency_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    idle: PartOfStep | None = None
    launches: float = 0.0
    operations: float = 0.0
    host_us: float | None = None

    @property
    def host_us_each(self) -> float | None:
        """The host's work for each launch; None where the file holds no operations of a library, or
        one step alone, which mostly holds the start-up.
        """
        if self.host_us is None or not self.launches or not self.library or self.steps < 2:
            return None
        return self.host_us / self.launches

    @property
    def is_shown(self) -> bool:
        """Whether it has a mark of its own in the picture."""
        return not self.left_out and self.latency_us is not None


class OwnProgram(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A program that we ran with a profiler and without, each in processes of its own, in turns.

    ``host_us``, ``profiled_host_us``: until a step returns, without and with the profiler: the
    median of each process;
    ``found_idle``, ``latency_us``, ``low_us``, ``high_us``, ``idle``: from its trace, as in
    ``PublishedTrace``; ``launches``, ``operations``: of a step.
    """

    name: Name
    gpu: Name
    recorder: Recorder
    library: Name
    versions: Name
    day: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    launches: float
    operations: float
    found_idle: int
    latency_us: float
    low_us: float
    high_us: float
    idle: PartOfStep
    host_us: Annotated[list[float], Meta(min_length=3)]
    profiled_host_us: Annotated[list[float], Meta(min_length=3)]


class PublishedTraces(Struct, forbid_unknown_fields=True, frozen=True):
    """All published traces, and our own. ``program``: the commit of this program that read them."""

    program: Annotated[str, Meta(pattern=r"^[0-9a-f]{40}$")]
    own: list[OwnProgram]
    trace: list[PublishedTrace]


@functools.cache
def published_traces() -> PublishedTraces:
    """The data of ``published.json``."""
    text = resources.files(__package__).joinpath("published.json").read_bytes()
    return msgspec.json.decode(text, type=PublishedTraces)
