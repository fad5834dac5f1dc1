"""``bench.py agreement``: our figures beside the tools of NVIDIA's and PyTorch's engineers, in one run on one GPU.

Only the same quantity is judged. What is another quantity is printed with what it is. A tool that is missing or fails
is named with its reason, and the others go on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from scripts.agreement.protocol import INTERVAL, PATIENCE_S, TO, ToolAnswer
from scripts.agreement.subjects import ADD, ADD_GRAPH, STEP, STEP_GRAPH

WITHIN = 0.05
"""How far the ratio of two figures of one quantity may be from 1."""
GOAL = 1 / 3
"""Of the fastest tool's seconds: what ours should take."""


@dataclass(frozen=True)
class AgreementRow:
    """One of theirs beside ours. ``same``: whether it is the same quantity, ``what``: else what it is."""

    theirs: ToolAnswer
    ours: ToolAnswer
    same: bool
    what: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over theirs."""
        return self.ours.value / self.theirs.value if self.ours.value and self.theirs.value else None

    @property
    def within(self) -> bool | None:
        """Whether they agree; None where that is not asked or not known."""
        return None if not self.same or self.ratio is None else abs(self.ratio - 1) <= WITHIN


@dataclass(frozen=True)
class Race:
    """One quantity's seconds to a 1 % interval, each by its own account: ours, and the tools of the same quantity."""

    ours: ToolAnswer
    theirs: tuple[ToolAnswer, ...]

    @property
    def share(self) -> float | None:
        """Ours over the fastest tool's, at the most where that did not get there; None where ours did not."""
        fastest = min((a.seconds or PATIENCE_S for a in self.theirs), default=None)
        return None if fastest is None or self.ours.seconds is None else self.ours.seconds / fastest

    @property
    def held(self) -> bool:
        """Whether ours takes a third of the fastest's, or less."""
        return self.share is not None and self.share <= GOAL


@dataclass(frozen=True)
class Wanted:
    """A quantity of theirs and ours to set beside it, by tool, subject and quantity."""

    tool: str
    subject: str
    quantity: str
    against: str
    same: bool = True
    what: str = ""


_COLD = "one launch at a time on an emptied L2 cache, between two events: it holds the device's start and end"
_STARVED = (
    "only two launches wait behind its blocker, so where launching takes longer than the kernel this is the host's rate"
)
WANTED: tuple[Wanted, ...] = (
    Wanted("torch.utils.benchmark", ADD, "complete", "complete"),
    Wanted("nvbench", ADD_GRAPH, "batch", "device_busy"),
    Wanted("nvbench", STEP_GRAPH, "batch", "device_busy"),
    Wanted("do_bench_cudagraph", ADD, "node", "node"),
    Wanted("do_bench_cudagraph", STEP, "node", "node"),
    Wanted("nvbench", ADD, "batch", "device_busy", False, _STARVED),
    Wanted("nvbench", STEP, "batch", "device_busy", False, _STARVED),
    Wanted("nvbench", ADD, "cold", "device_busy", False, _COLD),
    Wanted("nvbench", STEP, "cold", "device_busy", False, _COLD),
    Wanted("do_bench", ADD, "median", "complete", False, f"{_COLD}; the cache is emptied by a kernel before each"),
    Wanted(
        "torch.profiler", ADD, "cudaLaunchKernel", "host", False,
        "the runtime call alone, slowed by the tracing: neither Python nor torch's dispatcher are in it",
    ),
)  # fmt: skip


def rows(theirs: Iterable[ToolAnswer], ours: Iterable[ToolAnswer]) -> list[AgreementRow]:
    """Every wanted pair; what was not answered carries the tool's reason, or that it said nothing.

    A tool may bring our figure with its own, where only one process, or turns, make them comparable.
    """
    named = {(a.tool, a.subject, a.quantity): a for a in theirs}
    beside = [a for a in named.values() if a.tool == "overhead" and a.value is not None]
    mine = {(a.subject, a.quantity): a for a in [*ours, *beside]}
    silent = {a.tool: a.reason for a in named.values() if a.reason and not a.subject}
    found = []
    for w in WANTED:
        missing = ToolAnswer(w.tool, w.subject, w.quantity, reason=silent.get(w.tool, "it said nothing of this"))
        own = ToolAnswer("overhead", w.subject, w.against, reason="not measured")
        them, us = named.get((w.tool, w.subject, w.quantity), missing), mine.get((w.subject, w.against), own)
        found.append(AgreementRow(them, us, w.same, w.what))
    return found


def races(found: Iterable[AgreementRow], ours: Iterable[ToolAnswer]) -> list[Race]:
    """For each quantity whose seconds we took, the tools that measure the same one and say when they are there."""
    timed: dict[tuple[str, str], list[ToolAnswer]] = {}
    for r in found:
        if r.same and r.theirs.rule:
            timed.setdefault((r.theirs.subject, f"{r.ours.quantity}{TO}"), []).append(r.theirs)
    return [Race(a, tuple(timed.get((a.subject, a.quantity), ()))) for a in ours if a.quantity.endswith(TO)]


def attempt(tool: str, act: Callable[[], list[ToolAnswer]]) -> list[ToolAnswer]:
    """The tool's answers, or one that says why there are none; each tool starts on a processor that is not slow."""
    from overhead.measure.sampling.clock import SystemClock
    from overhead.measure.sampling.quiet_processor import QuietProcessor

    try:
        with contextlib.closing(QuietProcessor(SystemClock())):
            return act()
    except (Exception, SystemExit) as error:
        words = " ".join(str(error).split())[:300]
        return [ToolAnswer(tool, "", "", reason=f"{type(error).__name__}: {words}")]


def no_cuda() -> str:
    """Why nothing can be compared here; empty where it can."""
    from overhead.probes._support.torch.targets import cuda_torch
    from overhead.probes.base import Unavailable

    try:
        cuda_torch()
    except Unavailable as error:
        return error.reason
    return ""


def agreement(options: argparse.Namespace, console: Console) -> bool:
    """All tools on this machine's first GPU; tables, or JSON. Holds where no ratio of one quantity is beyond 5 %."""
    reason = no_cuda()
    if reason:
        note = {"agreement": [], "reason": reason}
        print(json.dumps(note)) if options.json else console.print(f"agreement: not run: {reason}", highlight=False)
        return True
    from scripts.agreement.ours import ours as measure
    from scripts.agreement.tools import TOOLS

    ours = attempt("overhead", measure)
    theirs = [a for name, act in TOOLS.items() for a in attempt(name, act)]
    found = rows(theirs, ours)
    if options.json:
        body = [{**asdict(r), "ratio": r.ratio, "within": r.within} for r in found]
        timed = [{**asdict(r), "share": r.share, "held": r.held} for r in races(found, ours)]
        print(json.dumps({"agreement": body, "seconds": timed, "ours": [asdict(a) for a in ours]}, indent=1))
    else:
        show(found, ours, console)
    return all(r.within is not False for r in found)


def show(found: list[AgreementRow], ours: list[ToolAnswer], console: Console) -> None:
    """Three tables: the same quantities, the others, and the time to a 1 % interval."""
    console.print(_agreement_table([r for r in found if r.same]))
    others = Table(title="other quantities, for orientation", title_justify="left")
    for name in ("tool", "of", "says, us", "ours, us", "what it is"):
        others.add_column(name, justify="right" if name.endswith("us") else "left")
    for r in found:
        if not r.same:
            named = f"{r.theirs.subject}: {r.theirs.quantity}"
            ours_named = f"{r.ours.quantity} {_micro(r.ours)}"
            others.add_row(r.theirs.tool, named, _micro(r.theirs), ours_named, r.theirs.reason or r.what)
    console.print(others)
    console.print(_seconds_table(found, ours))
    for race in races(found, ours):
        console.print(_verdict(race), highlight=False)
    for a in ours:
        if a.reason:
            console.print(f"overhead: {a.subject} {a.quantity}: {a.reason}", highlight=False)


def _agreement_table(found: list[AgreementRow]) -> Table:
    table = Table(title="the same quantity, measured by both in this run", title_justify="left")
    for name in ("tool", "of", "theirs, us", "ours", "ours, us", "ours / theirs", f"within {WITHIN:.0%}"):
        table.add_column(name, justify="right" if name.endswith("us") or "/" in name else "left")
    for r in found:
        ratio = f"{r.ratio:.3f}" if r.ratio is not None else "-"
        verdict = {True: "yes", False: "no", None: r.theirs.reason or r.ours.reason or "no value"}[r.within]
        named = f"{r.theirs.subject}: {r.theirs.quantity}"
        table.add_row(r.theirs.tool, named, _micro(r.theirs), r.ours.quantity, _micro(r.ours), ratio, verdict)
    return table


def _seconds_table(found: list[AgreementRow], ours: list[ToolAnswer]) -> Table:
    table = Table(title=f"seconds to an interval of {INTERVAL:.0%}, by each one's own account", title_justify="left")
    for name in ("tool", "of", "seconds", f"what is {INTERVAL:.0%}"):
        table.add_column(name, justify="right" if name == "seconds" else "left")
    for a in [*ours, *(r.theirs for r in found)]:
        if a.rule:
            within = f"{a.seconds:.2f}" if a.seconds is not None else f"over {PATIENCE_S:.0f}"
            table.add_row(a.tool, f"{a.subject}: {a.quantity}", within, a.rule)
    return table


def _verdict(race: Race) -> str:
    """Whether the goal was met, in a line."""
    met = "met    " if race.held else "NOT MET"
    start = f"{met} goal, a third of the fastest tool's time: {race.ours.subject}, {race.ours.quantity}"
    if not race.theirs:
        return f"{start}: no tool of the same quantity says when it is there"
    fastest = min(race.theirs, key=lambda a: a.seconds or PATIENCE_S)
    if race.share is None:
        return f"{start}: ours took over {PATIENCE_S:.0f} s"
    most = "at most " if fastest.seconds is None else ""
    return f"{start}: ours takes {most}{race.share:.2f} times that of {fastest.tool}"


def _micro(answer: ToolAnswer) -> str:
    return "-" if answer.value is None else f"{answer.value / 1e3:.3f}"
