"""``main.py agreement``: compare our figures with those of NVIDIA's and PyTorch's tools, in one run
on one GPU.

Only figures of the same quantity must agree. Other figures are printed with a description. If a
tool is missing or fails, the reason is printed, and the other tools continue.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

from rich.console import Console

from overhead.blocks.parts import Part, Table, Text
from overhead.blocks.terminal import show
from overhead.words.reasons import sentence
from scripts.agreement.protocol import ToolAnswer
from scripts.agreement.subjects import LCG_STEP, LCG_STEP_GRAPH, TORCH_ADD, TORCH_ADD_GRAPH

_MAX_DEVIATION = 0.05
"""The largest allowed deviation from 1 of the ratio of two figures for the same quantity."""


@dataclass(frozen=True)
class AgreementRow:
    """A tool's answer and our answer. ``same``: whether both are the same quantity. ``what``: if
    not, what it is.
    """

    theirs: ToolAnswer
    ours: ToolAnswer
    same: bool
    what: str = ""

    @property
    def ratio(self) -> float | None:
        """Our value divided by theirs."""
        return (
            self.ours.value / self.theirs.value if self.ours.value and self.theirs.value else None
        )

    @property
    def within(self) -> bool | None:
        """Whether both values agree. None if the quantities differ or a value is missing."""
        return (
            None if not self.same or self.ratio is None else abs(self.ratio - 1) <= _MAX_DEVIATION
        )


@dataclass(frozen=True)
class Wanted:
    """A quantity of a subject that a tool measures. ``against``: our quantity to compare it
    with.
    """

    tool: str
    subject: str
    quantity: str
    against: str
    same: bool = True
    what: str = ""


_COLD = (
    "one launch at a time on an emptied L2 cache, between two events: it holds the device's start"
    " and end"
)
_STARVED = (
    "only two launches wait behind its blocker, so where launching takes longer than the kernel"
    " this is the host's rate"
)
WANTED: tuple[Wanted, ...] = (
    Wanted("torch.utils.benchmark", TORCH_ADD, "complete", "complete"),
    Wanted("nvbench", TORCH_ADD_GRAPH, "batch", "device_busy"),
    Wanted("nvbench", LCG_STEP_GRAPH, "batch", "device_busy"),
    Wanted("do_bench_cudagraph", TORCH_ADD, "node", "node"),
    Wanted("do_bench_cudagraph", LCG_STEP, "node", "node"),
    Wanted("nvbench", TORCH_ADD, "batch", "device_busy", False, _STARVED),
    Wanted("nvbench", LCG_STEP, "batch", "device_busy", False, _STARVED),
    Wanted("nvbench", TORCH_ADD, "cold", "device_busy", False, _COLD),
    Wanted("nvbench", LCG_STEP, "cold", "device_busy", False, _COLD),
    Wanted(
        "do_bench",
        TORCH_ADD,
        "median",
        "complete",
        False,
        f"{_COLD}; a kernel empties the cache before each",
    ),
    Wanted(
        "torch.profiler",
        TORCH_ADD,
        "cudaLaunchKernel",
        "host",
        False,
        "the runtime call alone, slowed by the tracing: neither Python nor torch's dispatcher are"
        " in it",
    ),
)


def rows(theirs: Iterable[ToolAnswer], ours: Iterable[ToolAnswer]) -> list[AgreementRow]:
    """One row for each wanted pair of values. A missing value has the reason from the tool.

    ``theirs`` also contains our own figures that were measured in the tool's process or in
    alternation with it.
    """
    named = {(a.tool, a.subject, a.quantity): a for a in theirs}
    beside = [a for a in named.values() if a.tool == "overhead" and a.value is not None]
    mine = {(a.subject, a.quantity): a for a in [*ours, *beside]}
    silent = {a.tool: sentence(a.reason) for a in named.values() if a.reason and not a.subject}
    found = []
    for w in WANTED:
        missing = ToolAnswer(
            w.tool, w.subject, w.quantity, reason=silent.get(w.tool, "it said nothing of this")
        )
        own = ToolAnswer("overhead", w.subject, w.against, reason="not measured")
        them, us = (
            named.get((w.tool, w.subject, w.quantity), missing),
            mine.get((w.subject, w.against), own),
        )
        found.append(AgreementRow(them, us, w.same, w.what))
    return found


def attempt(tool: str, act: Callable[[], list[ToolAnswer]]) -> list[ToolAnswer]:
    """The answers of the tool, or one answer with the reason of its failure. Each tool starts on a
    quiet processor.
    """
    from overhead.measure.sampling.clock import SystemClock
    from overhead.measure.sampling.undisturbed_processor import UndisturbedProcessor

    try:
        with contextlib.closing(UndisturbedProcessor(SystemClock())):
            return act()
    except (Exception, SystemExit) as error:
        words = " ".join(str(error).split())[:300]
        return [ToolAnswer(tool, "", "", reason=f"{type(error).__name__}: {words}")]


def no_cuda() -> str:
    """The reason why nothing can be compared on this machine; empty if CUDA works."""
    from overhead.probes.base import Unavailable
    from overhead.probes.torch.devices import cuda_torch

    try:
        cuda_torch()
    except Unavailable as error:
        return sentence(error.reason)
    return ""


def agreement(options: argparse.Namespace, console: Console) -> bool:
    """Run all tools on the first GPU and print tables or JSON. Returns whether all comparable
    figures agree.
    """
    reason = no_cuda()
    if reason:
        note = {"agreement": [], "reason": reason}
        (
            print(json.dumps(note))
            if options.json
            else console.print(f"agreement: not run: {reason}", highlight=False)
        )
        return True
    from scripts.agreement.ours import ours as measure
    from scripts.agreement.tools import TOOLS

    ours = attempt("overhead", measure)
    theirs: list[ToolAnswer] = []
    for name, act in TOOLS.items():
        theirs += attempt(name, act)
    found = rows(theirs, ours)
    if options.json:
        body = [{**asdict(r), "ratio": r.ratio, "within": r.within} for r in found]
        print(json.dumps({"agreement": body, "ours": [asdict(a) for a in ours]}, indent=1))
    else:
        show(blocks(found, ours), console)
    return all(r.within is not False for r in found)


def blocks(found: list[AgreementRow], ours: list[ToolAnswer]) -> Iterator[Part]:
    """Two tables: pairs of the same quantity, and all other pairs; and why figures of ours are
    missing.
    """
    same, others = [], []
    for r in found:
        named = [r.theirs.tool, f"{r.theirs.subject}: {r.theirs.quantity}", _micro(r.theirs)]
        if r.same:
            ratio = f"{r.ratio:.3f}" if r.ratio is not None else "-"
            verdict = {
                True: "yes",
                False: "no",
                None: sentence(r.theirs.reason or r.ours.reason or "no value"),
            }[r.within]
            same.append([*named, r.ours.quantity, _micro(r.ours), ratio, verdict])
        else:
            others.append(
                [*named, f"{r.ours.quantity} {_micro(r.ours)}", sentence(r.theirs.reason or r.what)]
            )
    columns = [
        "tool",
        "of",
        "theirs, us",
        "ours",
        "ours, us",
        "ours / theirs",
        f"within {_MAX_DEVIATION:.0%}",
    ]
    yield Table("the same quantity, measured by both in this run", columns, same, numeric=(2, 4, 5))
    columns = ["tool", "of", "says, us", "ours, us", "what it is"]
    yield Table("other quantities, for orientation", columns, others, numeric=(2, 3))
    yield Text(
        [f"overhead: {a.subject} {a.quantity}: {sentence(a.reason)}" for a in ours if a.reason]
    )


def _micro(answer: ToolAnswer) -> str:
    return "-" if answer.value is None else f"{answer.value / 1e3:.3f}"
