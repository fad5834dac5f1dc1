"""The terms of the figures: what each is called on pages, in tables and in the file, and what it means."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping

from overhead.words.format import MICRO


@dataclasses.dataclass(frozen=True)
class Term:
    """A term.

    ``forms``: further spellings in texts that mean the same. ``field``: what the file of a run calls it, where that is
    another word. ``column``: the heading of its column in tables, without the unit.
    """

    name: str
    meaning: str
    forms: tuple[str, ...] = ()
    field: str = ""
    column: str = ""

    @property
    def id(self) -> str:
        """The id that links on pages use: ``term-one-off-cost``."""
        return "term-" + re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def spellings(self) -> tuple[str, ...]:
        """All spellings that texts and headings of columns have."""
        return (self.name, *self.forms, *([f"{self.column}, {MICRO}"] if self.column else []))


FIGURE_TERMS = (
    Term(
        "cost",
        "How much longer a chain of launches takes for one more launch, on a processor that nothing disturbs.",
        field="complete",
        column="cost",
    ),
    Term(
        "unpinned cost",
        "The cost where the operating system chooses the processor and no sample is left out: the range over fresh "
        "processes (from eight processes on, 10th to 90th percentile).",
        field="met",
        column="unpinned",
    ),
    Term(
        "run-to-run range",
        "9 of 10 other runs on this kind of machine put the cost in this range.",
        ("run-to-run",),
        column="run-to-run",
    ),
    Term(
        "enqueue time",
        "How long a call takes to return. The device may still work.",
        field="issue",
        column="enqueue",
    ),
    Term(
        "CPU time",
        "How long the CPU is busy with one launch: its enqueue time and its share of the wait.",
        field="host",
        column="CPU time",
    ),
    Term(
        "device time",
        "How long the device is busy with one launch.",
        field="device_busy",
        column="device",
    ),
    Term(
        "device time with gaps",
        "The device time and the gaps in which the device waits for the CPU.",
        field="device_span",
        column="device with gaps",
    ),
    Term(
        "one-off cost",
        "The part of a chain's time that does not depend on its length: one submission and one wait.",
        field="fixed",
        column="one-off",
    ),
    Term(
        "single-shot latency",
        "The time of one launch and its wait. Most benchmarks time this.",
        field="naive",
        column="single-shot",
    ),
    Term(
        "single-shot latency after idle",
        "The same, after the device was idle for 50 ms.",
        field="naive_idle",
        column="single-shot after idle",
    ),
    Term(
        "average of 100",
        "The time of 100 launches and one wait, divided by 100.",
        field="legacy",
        column="average of 100",
    ),
    Term(
        "empty wait",
        "A wait with nothing to wait for.",
        field="empty_wait",
        column="empty wait",
    ),
    Term(
        "mean of all samples",
        "The cost with everything that disturbed it: no sample is left out.",
        field="everything",
        column="mean of all",
    ),
    Term(
        "preparation",
        "Recording or compiling a chain, before it is timed.",
        field="prepare",
        column="preparation",
    ),
    Term(
        "first call",
        "The first call in a fresh process.",
        field="first",
        column="first call",
    ),
    Term(
        "slowest over fastest turn",
        "How much the unpinned cost varies inside of one process.",
        field="met_rounds",
    ),
    Term(
        "length at which the queue is full",
        "From this length of a chain on, a call waits until the device has taken an earlier one.",
        field="knee_n",
    ),
    Term(
        "queue depth",
        "How many launches wait for the device when the queue is full.",
        field="queue_depth",
    ),
    Term(
        "holds up to n",
        "The longest chain for which this cost was seen to hold.",
        ("up to n",),
        field="holds_to",
    ),
)
"""The figures of a case. A figure that is not here has the same name everywhere."""

GLOSSARY = (
    *FIGURE_TERMS,
    Term("kernel launch overhead", "The time around a kernel that is not the kernel's own work.", ("launch overhead",)),
    Term("dispatch", "One kernel handed to the device: a dispatch in WebGPU and Vulkan, a launch in CUDA."),
    Term("launch", "What CUDA and array libraries call a dispatch.", ("launches",)),
    Term("node", "One launch that was recorded in a graph."),
    Term("step", "One iteration of a computation, however many launches it takes."),
    Term("chain", "The same work n times in a row. Each part reads what the last one wrote. The whole is timed."),
    Term("variant", "One of several ways to run the same computation."),
    Term("host-bound", "The CPU is the limit: the device waits for launches.", ("CPU-bound", "launch-bound")),
    Term("device-bound", "The device is the limit: the CPU is ahead of it."),
    Term("from Python", "Called the usual way, through the library's Python objects.", field="binding"),
    Term(
        "from Python, no wrapper objects",
        "The same C functions, called from Python through cffi or ctypes.",
        field="ffi",
    ),
    Term("from compiled code", "The same C functions in a loop without an interpreter.", field="native"),
    Term("from JavaScript", "Called by a page in a browser.", field="browser"),
    Term("wrapper objects", "The library's Python layer above its C functions."),
    Term("interpreter", "What a loop in Python adds to the same calls in compiled code, without wrapper objects."),
    Term("library and driver", "The CPU time that is left when the calls come from compiled code."),
    Term("batched", "Many dispatches in one call of the driver: in one pass, or as nodes of a graph."),
    Term("per-submit", "A command buffer and a submit for each dispatch."),
    Term("one-pass", "All dispatches in one pass of one command buffer, submitted once.", ("one pass",)),
    Term("per-pass", "A pass for each dispatch, all in one command buffer."),
    Term("per-k", "A submit after every k dispatches."),
    Term("replay", "A recorded graph or command buffer that is launched again."),
    Term("launches (a pattern)", "A whole graph, or a prepared command buffer, is launched again and again."),
    Term(
        "fused",
        "All steps inside one kernel (a megakernel). For a token of a language model: neighbouring kernels merged "
        "into fewer.",
        ("megakernel",),
    ),
    Term("wait-each", "The CPU waits after each dispatch (a synchronisation)."),
    Term("read-each", "The CPU reads a value back after each dispatch."),
    Term("hybrid", "A part of each step runs on the CPU and a part on the device."),
    Term("interval", "The range in brackets: 95 % confidence within this run."),
    Term(
        "noisy",
        "The interval is wider than the profile allows, or long chains were not seen to cost the same. Drawn hollow.",
    ),
    Term("two speeds", "Two groups of processes with different costs.", ("bimodal",), field="bimodal"),
    Term("nonlinear", "The time does not grow in proportion to the number of launches, so there is no cost of one."),
    Term("below-resolution", "Too small to be told from the clock's step and from the variation of the wait."),
    Term(
        "reference loop",
        "A fixed piece of work, timed beside every sample. It shows when the processor changes its speed.",
    ),
    Term("profile", "How long a run measures: quick, default or thorough."),
    Term("software adapter", "A GPU driver that computes on the CPU. It says nothing of a GPU.", ("(software)",)),
)


@functools.cache
def _by_field() -> Mapping[str, Term]:
    return {term.field: term for term in FIGURE_TERMS if term.field}


def figure_name(field: str) -> str:
    """What sentences call a figure of the file: ``unpinned cost`` for ``met``."""
    term = _by_field().get(field)
    return term.name if term is not None else field


def figure_column(field: str) -> str:
    """The heading of the column of a figure of the file, without the unit: ``unpinned`` for ``met``."""
    term = _by_field().get(field)
    return term.column if term is not None and term.column else field
