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
from overhead.results import Case, RoundEntry
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


def _graph(maker: str) -> Case:
    return Case(pattern="replay", unit="node", params={"maker": maker})


def _launches(maker: str) -> Case:
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
    f"{TORCH_ADD} node": ("cuda-graph", _graph("torch")),
    f"{LCG_STEP} node": ("cuda-graph", _graph("driver")),
    TORCH_ADD_GRAPH: ("cuda-graph", _launches("torch")),
    LCG_STEP_GRAPH: ("cuda-graph", _launches("driver")),
}
"""The stack and the case of each subject."""


def opened(subject: str) -> Any:
    """A new chain of the subject on the first device."""
    stack, case = _CASES[subject]
    probe = registry()[stack]
    target = next(t for t in probe.targets() if t.api == "CUDA")
    return probe.open(target, case)


def measured(chains: Mapping[str, Any], seconds: float) -> list[ToolAnswer]:
    """The figures of newly opened chains, measured in alternation like in one process of the
    default profile.
    """
    seen, answers = Seen(), list[ToolAnswer]()
    measure_cases(
        chains,
        SystemClock(),
        Settings(seconds, _PLAN.precision, _PLAN.min_rounds, _PLAN.max_rounds),
        seen.take,
    )
    for subject, chain in chains.items():
        series = Series([seen.process(subject)], chain.synchronous, chain.wait_spins, chain.overlap)
        figures = estimate(series, _PLAN.precision)
        node = subject.endswith(" node")
        for name in _FIGURES[:1] if node else _FIGURES:
            found = figures.get(name)
            reason = seen.dropped.get(subject, "") or (found.reason if found else "not measured")
            value = found.value if found else None
            said = "node" if node else name
            plain = subject.removesuffix(" node")
            answers.append(
                ToolAnswer("overhead", plain, said, value, "" if value is not None else reason)
            )
    return answers


def ours(
    subjects: Sequence[str] = (TORCH_ADD, LCG_STEP, f"{TORCH_ADD} node", f"{LCG_STEP} node"),
) -> list[ToolAnswer]:
    """The figures of these subjects, measured in alternation."""
    answers, chains = list[ToolAnswer](), dict[str, Any]()
    for subject in subjects:
        try:
            chains[subject] = opened(subject)
        except Exception as error:  # if a chain does not open, only its own rows are missing
            answers.append(
                ToolAnswer("overhead", subject, "", reason=f"{type(error).__name__}: {error}")
            )
    try:
        answers += measured(chains, _PLAN.case_s * MAX_TIMES_NEED * len(chains))
    finally:
        for chain in chains.values():
            chain.close()
    return answers


class Passes:
    """Measures slopes of a chain, ns per unit, in single passes of its ladder. The constructor
    calibrates the chain.
    """

    def __init__(self, width: float, chain: Any, clock: Clock, facts: ClockFacts) -> None:
        self.chain, self.clock, self.dice, self.number = chain, clock, random.Random(0), 0
        self.series = Series([], chain.synchronous, chain.wait_spins, chain.overlap)
        self.ladder = calibrate(chain, clock, Limits(width, _PLAN.case_s, knee=False, facts=facts))
        self.issued = self.ladder.issued

    def more(self, passes: int = 1) -> list[float]:
        """A list with the slope over this number of passes; empty if there is no slope."""
        ns = self.ladder.draw(passes, self.dice)
        rows = window.sample(self.chain, ns, self.clock)
        one = RoundEntry(target="", case="", worker="", process=0, round=self.number, samples=rows)
        self.issued += self.chain.units(ns)
        self.number += 1
        return list(slopes_by_round(Process([one]), self.series, "complete", None).values())

    def verify(self) -> None:
        """Raise ``Unverified`` unless the device ran as many units as were issued."""
        if (done := self.chain.executed()) != self.issued:
            raise Unverified(f"{self.issued} units issued, {done} executed")
