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
"""The largest allowed deviation from 1 of the ratio of two figures for the same quantity. Chosen,
not measured.
"""


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
        """Our value divided by theirs; None where one of them is missing."""
        if not self.ours.value or not self.theirs.value:
            return None
        return self.ours.value / self.theirs.value

    @property
    def within(self) -> bool | None:
        """Whether both values agree. None if the quantities differ or a value is missing."""
        if not self.same or self.ratio is None:
            return None
        return abs(self.ratio - 1) <= _MAX_DEVIATION

    @property
    def verdict(self) -> str:
        """Whether both values agree, in a word; or the reason why this is not known."""
        if self.within is None:
            return sentence(self.theirs.reason or self.ours.reason or "no value")
        return "yes" if self.within else "no"


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
    their_answers: dict[tuple[str, str, str], ToolAnswer] = {}
    for answer in theirs:
        their_answers[answer.tool, answer.subject, answer.quantity] = answer
    our_answers = {(answer.subject, answer.quantity): answer for answer in ours}
    reason_of_tool = {}
    for answer in their_answers.values():
        if answer.tool == "overhead" and answer.value is not None:
            # Measured beside the tool, so its value counts in place of the one in ``ours``.
            our_answers[answer.subject, answer.quantity] = answer
        if answer.reason and not answer.subject:
            reason_of_tool[answer.tool] = sentence(answer.reason)

    pairs = []
    for wanted in WANTED:
        their_answer = their_answers.get((wanted.tool, wanted.subject, wanted.quantity))
        if their_answer is None:
            reason = reason_of_tool.get(wanted.tool, "it said nothing of this")
            their_answer = ToolAnswer(wanted.tool, wanted.subject, wanted.quantity, reason=reason)
        our_answer = our_answers.get((wanted.subject, wanted.against))
        if our_answer is None:
            our_answer = ToolAnswer(
                "overhead", wanted.subject, wanted.against, reason="not measured"
            )
        pairs.append(AgreementRow(their_answer, our_answer, wanted.same, wanted.what))
    return pairs


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
    if reason and options.json:
        print(json.dumps({"agreement": [], "reason": reason}))
        return True
    if reason:
        console.print(f"agreement: not run: {reason}", highlight=False)
        return True

    # These modules can be imported only on a machine with a CUDA GPU.
    from scripts.agreement.ours import ours as measure
    from scripts.agreement.tools import TOOLS

    ours = attempt("overhead", measure)
    theirs: list[ToolAnswer] = []
    for name, act in TOOLS.items():
        theirs += attempt(name, act)
    pairs = rows(theirs, ours)
    if options.json:
        as_data = [{**asdict(pair), "ratio": pair.ratio, "within": pair.within} for pair in pairs]
        ours_as_data = [asdict(answer) for answer in ours]
        print(json.dumps({"agreement": as_data, "ours": ours_as_data}, indent=1))
    else:
        show(blocks(pairs, ours), console)
    return all(pair.within is not False for pair in pairs)


def blocks(pairs: list[AgreementRow], ours: list[ToolAnswer]) -> Iterator[Part]:
    """Two tables: pairs of the same quantity, and all other pairs; and why figures of ours are
    missing.
    """
    yield _table_of_same([pair for pair in pairs if pair.same])
    yield _table_of_others([pair for pair in pairs if not pair.same])
    missing = []
    for answer in ours:
        if answer.reason:
            reason = sentence(answer.reason)
            missing.append(f"overhead: {answer.subject} {answer.quantity}: {reason}")
    yield Text(missing)


def _table_of_same(pairs: list[AgreementRow]) -> Table:
    """Pairs of values that must agree, with their ratio."""
    cells = []
    for pair in pairs:
        ratio = f"{pair.ratio:.3f}" if pair.ratio is not None else "-"
        our_cells = [pair.ours.quantity, _micro(pair.ours), ratio, pair.verdict]
        cells.append([*_their_cells(pair.theirs), *our_cells])
    columns = [
        "tool",
        "of",
        "theirs, us",
        "ours",
        "ours, us",
        "ours / theirs",
        f"within {_MAX_DEVIATION:.0%}",
    ]
    return Table(
        "the same quantity, measured by both in this run", columns, cells, numeric=(2, 4, 5)
    )


def _table_of_others(pairs: list[AgreementRow]) -> Table:
    """Pairs of different quantities, with what the tool's quantity is or why it is missing."""
    cells = []
    for pair in pairs:
        our_value = f"{pair.ours.quantity} {_micro(pair.ours)}"
        what = sentence(pair.theirs.reason or pair.what)
        cells.append([*_their_cells(pair.theirs), our_value, what])
    columns = ["tool", "of", "says, us", "ours, us", "what it is"]
    return Table("other quantities, for orientation", columns, cells, numeric=(2, 3))


def _their_cells(answer: ToolAnswer) -> list[str]:
    """The first three cells of a row: the tool, what it measured, and its value."""
    return [answer.tool, f"{answer.subject}: {answer.quantity}", _micro(answer)]


def _micro(answer: ToolAnswer) -> str:
    """The value in us; ``-`` where it is missing."""
    return "-" if answer.value is None else f"{answer.value / 1e3:.3f}"
