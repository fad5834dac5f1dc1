"""The terms of the figures: what each is called on pages, in tables and in the file, and what it
means.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping

from overhead.words.format import MICRO


@dataclasses.dataclass(frozen=True)
class Term:
    """A term.

    ``forms``: further spellings in texts that mean the same. ``field``: what the file of a run
    calls it, where that is another word. ``column``: the heading of its column in tables, without
    the unit. ``is_common``: other sentences use the word too, so texts do not link it.
    """

    name: str
    meaning: str
    forms: tuple[str, ...] = ()
    field: str = ""
    column: str = ""
    is_common: bool = False

    @property
    def id(self) -> str:
        """The id that links on pages use: ``term-one-off-cost``."""
        words = re.sub(r"[^a-z0-9]+", "-", self.name.lower())
        return f"term-{words.strip('-')}"

    @property
    def spellings(self) -> tuple[str, ...]:
        """The words that become a link to this term of the glossary, in texts and headings of
        columns; none for a word that other sentences use too.
        """
        if self.is_common:
            return ()
        spellings = (self.name, *self.forms)
        # Headings of tables stand with their unit.
        if self.column:
            spellings += (f"{self.column}, {MICRO}",)
        return spellings


FIGURE_TERMS = (
    Term(
        "cost",
        "How much longer a chain of launches takes for one more launch, on a CPU core that nothing"
        " disturbs.",
        field="complete",
        column="cost",
    ),
    Term(
        "unpinned cost",
        "The cost where the operating system chooses the CPU core and no sample is left out: median"
        " and range of fresh processes (from eight processes on, the 10th to the 90th percentile).",
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
        "How long a launch takes until its call returns. At this time the device may still work.",
        field="issue",
        column="enqueue",
    ),
    Term(
        "CPU time",
        "How long the CPU is busy with one launch: the enqueue time, and CPU time in the wait.",
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
        "The device time of a launch, and the gap after it in which the device waits for the CPU.",
        field="device_span",
        column="device with gaps",
    ),
    Term(
        "one-off cost",
        "The part of a chain's time that does not depend on its length: one submission and one"
        " wait.",
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
        "The single-shot latency after the device was idle for 50 ms.",
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
        "The time of a wait when the device has no work.",
        field="empty_wait",
        column="empty wait",
    ),
    Term(
        "mean of all samples",
        "The cost from all samples, also those that something disturbed. The cost leaves disturbed"
        " samples out.",
        field="everything",
        column="mean of all",
    ),
    Term(
        "preparation",
        "The time to record or compile a chain. No other figure contains it.",
        field="prepare",
        column="preparation",
    ),
    Term(
        "first call",
        "The time of the first call in a fresh process. It may load and compile.",
        field="first",
        column="first call",
    ),
    Term(
        "slowest over fastest turn",
        "The unpinned cost in the slowest turn of a process, divided by that in its fastest turn.",
        field="met_rounds",
    ),
    Term(
        "length at which the queue is full",
        "In a chain of this length or more, the queue is full: a launch waits until the device"
        " takes an earlier one.",
        field="knee_n",
    ),
    Term(
        "queue depth",
        "How many launches wait for the device when the queue is full.",
        field="queue_depth",
    ),
    Term(
        "holds up to n",
        "The number of launches in the longest chain that was seen to have this cost.",
        ("up to n",),
        field="holds_to",
    ),
)
"""The figures of a case. A figure that is not here has the same name everywhere."""

GLOSSARY = (
    *FIGURE_TERMS,
    Term(
        "stack",
        "A library or interface that launches work on a device, such as PyTorch, the CUDA driver or"
        " Dawn.",
        is_common=True,
    ),
    Term(
        "case",
        "One way to launch work: a stack on a device, with its caller, pattern, workload and"
        " parameters.",
        is_common=True,
    ),
    Term(
        "base case",
        "The usual way to launch one small operation through a stack. Every run measures it.",
    ),
    Term(
        "pattern",
        "How a chain is handed to the device, such as per-submit or one-pass.",
        is_common=True,
    ),
    Term(
        "caller",
        "What calls the library: Python, compiled code, or a page in a browser.",
        is_common=True,
    ),
    Term(
        "workload",
        "The computation of a step, such as rmsnorm, or a token of a language model.",
        is_common=True,
    ),
    Term("sample", "One timing of one chain of n launches, its wait included.", is_common=True),
    Term(
        "n",
        "The number of launches in a chain, or of the dispatches, calls or steps that it repeats.",
        is_common=True,
    ),
    Term(
        "unit",
        "In files and in the Python API: what a chain repeats, such as a launch, a dispatch or a"
        " step.",
        is_common=True,
    ),
    Term(
        "turn",
        "A period of at least 100 ms, inside one process, in which the unpinned cost of a case is"
        " measured.",
        is_common=True,
    ),
    Term(
        "share",
        "A part of a time, in per cent of the whole. The whole is named beside it.",
        is_common=True,
    ),
    Term(
        "wait",
        "A call that returns when the device has finished its work.",
        ("synchronisation",),
        is_common=True,
    ),
    Term(
        "kernel launch overhead",
        "The time that a launch takes beyond the work of its kernel: in Python, the library, the"
        " driver and the GPU.",
        ("launch overhead",),
    ),
    Term(
        "dispatch",
        "One kernel handed to the device: a dispatch in WebGPU and Vulkan, a launch in CUDA.",
    ),
    Term(
        "launch",
        "What CUDA calls a dispatch. The launch of a CUDA graph hands over all of its nodes.",
        ("launches",),
    ),
    Term(
        "node",
        "One launch inside a CUDA graph. A graph of 100 nodes is handed to the device by one call.",
    ),
    Term(
        "step",
        "One iteration of a computation, such as a training step. A step may take many launches.",
    ),
    Term(
        "chain",
        "n launches in a row, with one wait at the end. Each reads what the last one wrote. The"
        " whole chain is timed.",
    ),
    Term(
        "variant",
        "One of several ways to run the same computation, such as a CUDA graph or a fused kernel.",
    ),
    Term(
        "host-bound",
        "The CPU sets the time of a step: the device waits for launches.",
        ("CPU-bound", "launch-bound"),
    ),
    Term("device-bound", "The device sets the time of a step: the CPU is ahead, and waits."),
    Term(
        "from Python",
        "The library is called the usual way, through its Python objects.",
        field="binding",
    ),
    Term(
        "from Python, no wrapper objects",
        "The C functions of the library are called from Python through cffi or ctypes.",
        field="ffi",
    ),
    Term(
        "from compiled code",
        "The C functions of the library are called from a compiled (C) loop, without Python.",
        field="native",
    ),
    Term("from JavaScript", "WebGPU is called by a page in a browser.", field="browser"),
    Term(
        "binding (a layer)",
        "The compiled layer between Python and a library: it reads arguments and makes results.",
    ),
    Term("wrapper objects", "The Python objects of a library, above its C functions."),
    Term(
        "interpreter",
        "The CPU time that a Python loop adds to the same C calls from a compiled loop. Wrapper"
        " objects are not in it.",
    ),
    Term(
        "library and driver",
        "The CPU time of the same calls from compiled code: Python has no part in it.",
    ),
    Term(
        "batched",
        "Many dispatches are handed over in one call: in one pass, or as nodes of a graph.",
    ),
    Term(
        "per-submit",
        "Each dispatch has its own command buffer and submission. In CUDA: each launch is one"
        " call.",
    ),
    Term(
        "one-pass",
        "All dispatches are in one pass of one command buffer, which is submitted once.",
        ("one pass",),
    ),
    Term(
        "per-pass",
        "Each dispatch (of a language model: each token) has its own pass. All passes are in one"
        " command buffer.",
    ),
    Term("per-k", "A submission follows every k dispatches."),
    Term(
        "replay",
        "A recorded graph or command buffer is launched again. The cost is that of one node.",
    ),
    Term(
        "launches (a pattern)",
        "A whole graph, or a prepared command buffer, is launched n times. The cost is that of one"
        " graph.",
    ),
    Term(
        "fused",
        "All steps run inside one kernel (a megakernel). For a token of a language model, fused"
        " means something else: neighbouring kernels are merged into fewer.",
        ("megakernel",),
    ),
    Term("wait-each", "The CPU waits after each dispatch (a synchronisation)."),
    Term("read-each", "The CPU reads a value back after each dispatch."),
    Term(
        "hybrid",
        "Steps run on the CPU and on the device in turn. The state is copied before each step.",
    ),
    Term(
        "interval",
        "The range in brackets: 95 % confidence within this run. Another run may lie outside.",
    ),
    Term(
        "noisy",
        "The interval is wider than the profile allows, or a check of the figure failed. A noisy"
        " mark is hollow.",
    ),
    Term(
        "two speeds",
        "The processes, or the turns of a process, form two groups with different costs.",
        ("bimodal",),
        field="bimodal",
    ),
    Term(
        "nonlinear",
        "The time of a chain does not grow in proportion to its launches. So no single cost fits,"
        " and none is given.",
    ),
    Term(
        "below-resolution",
        "The cost is smaller than the clock can tell, or than the variation of the wait. So none is"
        " given.",
    ),
    Term(
        "reference loop",
        "A fixed piece of work, timed beside every sample. It shows when the CPU core changes its"
        " speed.",
    ),
    Term(
        "profile",
        "How long a run measures: quick, default or thorough. A profiler is another thing: it"
        " traces a step.",
    ),
    Term(
        "software adapter",
        "A GPU driver that computes on the CPU. Its figures say nothing about a GPU.",
        ("(software)",),
    ),
)


@functools.cache
def _by_field() -> Mapping[str, Term]:
    return {term.field: term for term in FIGURE_TERMS if term.field}


def figure_name(field: str) -> str:
    """What sentences call a figure of the file: ``unpinned cost`` for ``met``."""
    term = _by_field().get(field)
    return term.name if term is not None else field


def figure_column(field: str) -> str:
    """The heading of the column of a figure of the file, without the unit: ``unpinned`` for
    ``met``.
    """
    term = _by_field().get(field)
    return term.column if term is not None and term.column else field
