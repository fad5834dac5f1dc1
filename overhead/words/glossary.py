"""The terms of the figures, each with its meaning in one line."""

from __future__ import annotations

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Term:
    """A term. ``forms``: further spellings in texts that mean the same."""

    name: str
    meaning: str
    forms: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The id that links on pages use: ``term-fixed-cost``."""
        return "term-" + re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


GLOSSARY = (
    Term("dispatch", "One kernel handed to the device: a dispatch in WebGPU and Vulkan, a launch in CUDA."),
    Term("launch", "What CUDA and array libraries call a dispatch.", ("launches",)),
    Term("node", "One launch that was recorded in a graph."),
    Term("step", "One iteration of a chain, however many dispatches it takes."),
    Term("chain", "The same unit of work n times in a row, each reading what the last one wrote, timed as a whole."),
    Term("slope", "The cost of one more unit: how much longer a chain takes for each unit that it is longer."),
    Term(
        "fixed cost",
        "The part of a chain's time that does not depend on its length: one submission and one wait.",
        ("fixed, µs",),
    ),
    Term("T(1)", "The time of one unit and its wait, as a stopwatch around a single dispatch reports it."),
    Term("from Python", "Called the usual way, through the library's Python objects."),
    Term("from Python, no wrapper objects", "The same C functions called from Python by cffi or ctypes."),
    Term("from compiled code", "The same C functions in a loop without an interpreter."),
    Term("from JavaScript", "Called by a page in a browser."),
    Term("wrapper objects", "The library's Python layer above its C functions."),
    Term("interpreter", "What a loop in Python adds to the same calls in compiled code, wrapper objects left out."),
    Term("library and driver", "The CPU time that is left when the calls come from compiled code."),
    Term("batched", "Many dispatches for one call to the driver: in one pass, or as nodes of a graph."),
    Term("per-submit", "A command buffer and a submit for each dispatch."),
    Term("one-pass", "All dispatches in one pass of one command buffer, submitted once.", ("one pass",)),
    Term("per-pass", "A pass for each dispatch, all in one command buffer."),
    Term("per-k", "A submit after every k dispatches."),
    Term("replay", "A recorded graph or command buffer that is launched again."),
    Term("launches (a pattern)", "A whole graph, or a prepared command buffer, launched as one unit."),
    Term(
        "fused", "All steps inside one kernel. For a token of a language model: neighbouring kernels merged into fewer."
    ),
    Term("wait-each", "The CPU waits after each dispatch."),
    Term("read-each", "The CPU reads a value back after each dispatch."),
    Term("hybrid", "Part of each step on the CPU, part on the device."),
    Term("CPU time", "How long the CPU is busy with one unit; the device may work meanwhile.", ("host time",)),
    Term("bound", "What limits the chain: the CPU (host) or the device."),
    Term(
        "met",
        "The cost in fresh processes that are not pinned to a processor: lowest to highest, or 10th to 90th "
        "percentile from eight processes on.",
    ),
    Term("next run", "The range that should hold the figure of another run on this kind of machine, in 90 % of cases."),
    Term("interval", "The range in brackets: where the value lies with 95 % confidence, within this run."),
    Term(
        "noisy",
        "The interval is wider than the profile allows, or long chains were not seen to cost the same: a hollow mark.",
    ),
    Term("two speeds", "Two groups of processes with different costs; the file calls it bimodal.", ("bimodal",)),
    Term("nonlinear", "The time does not grow in proportion to the number of units, so there is no slope."),
    Term("below-resolution", "Too small to be told from the clock's step and the wait's own variation."),
    Term("canary", "A fixed piece of work timed beside every sample; it shows when the processor changes its speed."),
    Term("profile", "How long a run measures: quick, default or thorough."),
    Term("software adapter", "A GPU driver that computes on the CPU; it says nothing of a GPU.", ("(software)",)),
)
