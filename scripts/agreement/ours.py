"""Our own measurement of the subjects of ``main.py agreement``. Imported only on a machine with a
CUDA GPU.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from overhead.errors import Unverified
from overhead.measure.fitting.case_figures import estimate
from overhead.measure.fitting.one_process import Process, Series, slopes_by_round
from overhead.measure.sampling import window
from overhead.measure.sampling.calibrate import Limits, calibrate
from overhead.measure.sampling.clock import Clock, ClockFacts, SystemClock
from overhead.measure.sampling.events import Settings
from overhead.measure.sampling.rounds import measure_cases
from overhead.probes import registry
from overhead.profiles import PROFILES
from overhead.results import Case, Figure, RoundEntry, Why
from overhead.runner.schedule import MAX_TIMES_NEED
from scripts.agreement.protocol import Seen, ToolAnswer
from scripts.agreement.subjects import (
    GRAPH_NODES,
    LCG_STEP,
    LCG_STEP_GRAPH,
    TORCH_ADD,
    TORCH_ADD_GRAPH,
)

_PLAN = PROFILES["default"]
_FIGURES = ("complete", "host", "device_busy")
_NODE = " node"
"""Ends the name of a subject that is one node of a graph of the operation."""


def _graph(maker: str) -> Case:
    """The cost of one node inside a graph. ``maker``: what made the graph."""
    return Case(pattern="replay", unit="node", params={"maker": maker})


def _launches(maker: str) -> Case:
    """The cost of launching a whole graph. ``maker``: what made the graph."""
    return Case(pattern="launches", unit="launch", params={"maker": maker, "nodes": GRAPH_NODES})


_ADD = Case(
    pattern="per-submit",
    unit="launch",
    params={"alloc": "in-place", "operand": "number", "wait": "stream"},
)
_STEP = Case(
    pattern="per-submit",
    unit="launch",
    params={"arguments": 1, "stream": "default", "wait": "stream"},
)
_CASES: Mapping[str, tuple[str, Case]] = {
    TORCH_ADD: ("torch", _ADD),
    LCG_STEP: ("cuda-driver", _STEP),
    f"{TORCH_ADD}{_NODE}": ("cuda-graph", _graph("torch")),
    f"{LCG_STEP}{_NODE}": ("cuda-graph", _graph("driver")),
    TORCH_ADD_GRAPH: ("cuda-graph", _launches("torch")),
    LCG_STEP_GRAPH: ("cuda-graph", _launches("driver")),
}
"""The stack and the case of each subject."""


def opened(subject: str) -> Any:
    """A new chain of the subject on the first device."""
    stack, case = _CASES[subject]
    probe = registry()[stack]
    cuda_targets = [target for target in probe.targets() if target.api == "CUDA"]
    return probe.open(cuda_targets[0], case)


def measured(chains: Mapping[str, Any], seconds: float) -> list[ToolAnswer]:
    """The figures of newly opened chains, measured in alternation like in one process of the
    default profile.
    """
    seen = Seen()
    settings = Settings(seconds, _PLAN.precision, _PLAN.min_rounds, _PLAN.max_rounds)
    measure_cases(chains, SystemClock(), settings, seen.take)
    answers: list[ToolAnswer] = []
    for subject, chain in chains.items():
        series = Series([seen.process(subject)], chain.synchronous, chain.wait_spins, chain.overlap)
        figures = estimate(series, _PLAN.precision)
        failure = seen.dropped.get(subject, "")
        if subject.endswith(_NODE):
            # Tools give one time of a node, its cost, so ours has no other figure.
            plain = subject.removesuffix(_NODE)
            answers.append(_answer(plain, "node", figures.get("complete"), failure))
            continue
        for name in _FIGURES:
            answers.append(_answer(subject, name, figures.get(name), failure))
    return answers


def _answer(subject: str, quantity: str, figure: Figure | None, failure: Why) -> ToolAnswer:
    """Our value of one quantity, or why there is none. ``failure``: why the case was dropped."""
    if figure is not None and figure.value is not None:
        return ToolAnswer("overhead", subject, quantity, figure.value)
    reason = failure
    if not reason:
        reason = figure.reason if figure is not None else "not measured"
    return ToolAnswer("overhead", subject, quantity, reason=reason)


def ours(
    subjects: Sequence[str] = (TORCH_ADD, LCG_STEP, f"{TORCH_ADD}{_NODE}", f"{LCG_STEP}{_NODE}"),
) -> list[ToolAnswer]:
    """The figures of these subjects, measured in alternation."""
    answers: list[ToolAnswer] = []
    chains: dict[str, Any] = {}
    for subject in subjects:
        try:
            chains[subject] = opened(subject)
        except Exception as error:  # if a chain does not open, only its own rows are missing
            reason = f"{type(error).__name__}: {error}"
            answers.append(ToolAnswer("overhead", subject, "", reason=reason))
    seconds = _PLAN.case_s * MAX_TIMES_NEED * len(chains)
    try:
        answers += measured(chains, seconds)
    finally:
        for chain in chains.values():
            chain.close()
    return answers


class Passes:
    """Measures slopes of a chain, ns per unit, in single passes of its ladder. The constructor
    calibrates the chain.
    """

    def __init__(self, width: float, chain: Any, clock: Clock, facts: ClockFacts) -> None:
        self.chain = chain
        self.clock = clock
        self.dice = random.Random(0)
        self.number = 0
        self.series = Series([], chain.synchronous, chain.wait_spins, chain.overlap)
        limits = Limits(width, _PLAN.case_s, knee=False, facts=facts)
        self.ladder = calibrate(chain, clock, limits)
        self.issued = self.ladder.issued

    def more(self, passes: int = 1) -> list[float]:
        """A list with the slope over this number of passes; empty if there is no slope."""
        ns = self.ladder.draw(passes, self.dice)
        samples = window.sample(self.chain, ns, self.clock)
        entry = RoundEntry(
            target="", case="", worker="", process=0, round=self.number, samples=samples
        )
        self.issued += self.chain.units(ns)
        self.number += 1
        slopes = slopes_by_round(Process([entry]), self.series, "complete", None)
        return list(slopes.values())

    def verify(self) -> None:
        """Raise ``Unverified`` unless the device ran as many units as were issued."""
        executed = self.chain.executed()
        if executed != self.issued:
            raise Unverified(f"{self.issued} units issued, {executed} executed")
