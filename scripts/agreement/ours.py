"""Our own measurement of what the tools of ``bench.py agreement`` launch; loaded only where a CUDA GPU is."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping, Sequence
from typing import Any

from overhead.errors import Unverified
from overhead.measure.fitting.case_figures import estimate
from overhead.measure.fitting.data import Process, Round, Series
from overhead.measure.fitting.one_process import by_round
from overhead.measure.sampling import window
from overhead.measure.sampling.calibrate import Limits, calibrate
from overhead.measure.sampling.clock import Clock, ClockFacts, SystemClock, clock_facts
from overhead.measure.sampling.events import Settings
from overhead.measure.sampling.rounds import measure_cases
from overhead.probes import registry
from overhead.profiles import PROFILES
from overhead.results import Case
from overhead.runner.budget import MAX_TIMES_NEED
from scripts.agreement.protocol import INTERVAL, PATIENCE_S, TO, Seen, ToolAnswer, narrow
from scripts.agreement.subjects import ADD, ADD_GRAPH, NODES, STEP, STEP_GRAPH

PLAN = PROFILES["default"]
FIGURES = ("complete", "host", "device_busy")


def _graph(maker: str) -> Case:
    return Case(pattern="replay", unit="node", params={"maker": maker})


def _launches(maker: str) -> Case:
    return Case(pattern="launches", unit="launch", params={"maker": maker, "nodes": NODES})


_ADD = Case(pattern="per-submit", unit="launch", params={"alloc": "in-place", "operand": "number", "wait": "stream"})
_STEP = Case(pattern="per-submit", unit="launch", params={"arguments": 1, "stream": "default", "wait": "stream"})
CHAINS: Mapping[str, tuple[str, Case]] = {
    ADD: ("torch", _ADD), STEP: ("cuda-driver", _STEP),
    f"{ADD} node": ("cuda-graph", _graph("torch")), f"{STEP} node": ("cuda-graph", _graph("driver")),
    ADD_GRAPH: ("cuda-graph", _launches("torch")), STEP_GRAPH: ("cuda-graph", _launches("driver")),
}  # fmt: skip
"""By subject: the stack, and its case."""


def opened(subject: str) -> Any:
    """A fresh chain of the subject on the first device."""
    stack, case = CHAINS[subject]
    probe = registry()[stack]
    target = next(t for t in probe.targets() if t.api == "CUDA")
    return probe.open(target, case)


def measured(chains: Mapping[str, Any], seconds: float) -> list[ToolAnswer]:
    """The figures of chains just opened, in alternation, as one process of the default profile gives them."""
    seen, answers = Seen(), list[ToolAnswer]()
    measure_cases(chains, SystemClock(), Settings(seconds, PLAN.target, PLAN.min_rounds, PLAN.max_rounds), seen.take)
    for subject, chain in chains.items():
        series = Series([seen.process(subject)], chain.synchronous, chain.wait_spins, chain.overlap)
        figures = estimate(series, PLAN.target)
        node = subject.endswith(" node")
        for name in FIGURES[:1] if node else FIGURES:
            found = figures.get(name)
            reason = seen.dropped.get(subject, "") or (found.reason if found else "not measured")
            value = found.value if found else None
            said = "node" if node else name
            plain = subject.removesuffix(" node")
            answers.append(ToolAnswer("overhead", plain, said, value, "" if value is not None else reason))
    return answers


def ours(subjects: Sequence[str] = (ADD, STEP, f"{ADD} node", f"{STEP} node")) -> list[ToolAnswer]:
    """These subjects in alternation, then those that a tool is raced on alone, to see how long 1 % takes."""
    answers, chains = list[ToolAnswer](), dict[str, Any]()
    for subject in subjects:
        try:
            chains[subject] = opened(subject)
        except Exception as error:  # one chain that does not open costs its own rows
            answers.append(ToolAnswer("overhead", subject, "", reason=f"{type(error).__name__}: {error}"))
    try:
        answers += measured(chains, PLAN.case_s * MAX_TIMES_NEED * len(chains))
    finally:
        for chain in chains.values():
            chain.close()
    told = {answer.subject for answer in answers if answer.value is not None}
    return answers + [_alone(s) for s in chains if s != STEP and s.removesuffix(" node") in told]


def _alone(subject: str) -> ToolAnswer:
    """How long a fresh chain takes alone to a 1 % interval."""
    rule = "half-width of the trimmed mean of the rounds' slopes, 95 %; calibration included"
    quantity = "node" if subject.endswith(" node") else "complete"
    with contextlib.closing(opened(subject)) as chain:
        taken = seconds_to(INTERVAL, chain, SystemClock(), PATIENCE_S)
    return ToolAnswer("overhead", subject.removesuffix(" node"), f"{quantity}{TO}", seconds=taken, rule=rule)


class Passes:
    """A chain's slopes, ns a unit, a pass of its ladder at a time; calibrated when made."""

    def __init__(self, width: float, chain: Any, clock: Clock, facts: ClockFacts) -> None:
        self.chain, self.clock, self.dice, self.number = chain, clock, random.Random(0), 0
        self.series = Series([], chain.synchronous, chain.wait_spins, chain.overlap)
        self.ladder = calibrate(chain, clock, Limits(width, PLAN.case_s, knee=False, facts=facts))
        self.issued = self.ladder.issued

    def more(self, passes: int = 1) -> list[float]:
        """The slope of so many passes, or nothing where they give none."""
        ns = self.ladder.draw(passes, self.dice)
        one = Round(window.sample(self.chain, ns, self.clock), number=self.number)
        self.issued += self.chain.units(ns)
        self.number += 1
        return list(by_round(Process([one]), self.series, "complete", None).values())

    def verify(self) -> None:
        """Raises ``Unverified`` where the device ran another number of units."""
        if (done := self.chain.executed()) != self.issued:
            raise Unverified(f"{self.issued} units issued, {done} executed")


def seconds_to(width: float, chain: Any, clock: Clock, patience: float) -> float | None:
    """Seconds until the trimmed mean of the slopes of rounds, a pass of the ladder each, is so narrow; None if never.

    Calibration and arithmetic count, what a process knows of its clock does not. Raises ``Unverified``.
    """
    facts, slopes, reached = clock_facts(clock), list[float](), False
    narrow([1.0] * 6, width)  # loads what it needs
    start = clock.now()
    passes = Passes(width, chain, clock, facts)
    while not reached and (clock.now() - start) / 1e9 < patience:
        slopes += passes.more()
        reached = narrow(slopes, width)
    taken = (clock.now() - start) / 1e9
    passes.verify()
    return taken if reached else None
