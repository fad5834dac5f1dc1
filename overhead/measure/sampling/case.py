"""A case while it is measured: its ladder, its time and its units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from overhead.errors import Unverified
from overhead.measure.sampling.calibrate import Ladder
from overhead.measure.sampling.chain import Chain
from overhead.results import OneOffEntry, Why, because


@dataclass(frozen=True)
class RoundsRule:
    """How the time of a process is divided into rounds.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=known-truth`` shows what a change of one does.
    """

    least: int = 2
    """The least number of rounds of a case, whatever they cost: with fewer there is no spread."""
    most: int = 120
    """Rounds, fewer where the slowest case could not take part in each. Rounds are short because
    one reading of the reference loop (fixed work that shows the processor's speed) stands for a
    whole round; shorter ones cost more readings.
    """
    most_passes: int = 4
    """Passes of its ladder that a case makes in a round: with more, one reference loop
    stands for longer.
    """
    on_one_processor: int = 4
    """Each move makes caches cold: with a move before every round, the first units of NumPy's step
    over 256 KiB took twice as long. With fewer moves, more rounds stay beside a disturbance that
    the reference loop does not show.
    """
    knee_seconds: float = 0.5
    """A case with less time looks for a full queue only if it is one of the extras: the search
    takes long samples.
    """
    overtime: float = 1.5
    """``min_rounds`` may take this many times the seconds allowed, and no more."""


ROUNDS = RoundsRule()


@dataclass
class CaseInProgress:
    """A case (one way to launch work, opened as ``chain``) while it is measured, and what it has
    used so far.

    ``seconds``: its share of the process's time. ``credit``: ns that it may spend now. ``cost``: ns
    per pass (one sample of every n of its ladder), the mean of its rounds. ``issued``: units so
    far. ``reads_cpu``: some of its samples also read the CPU clock. ``staged``: its calls are also
    timed one by one. ``names``: the fields of its journal lines that name it and the process.
    """

    key: str
    chain: Chain
    seconds: float
    ladder: Ladder = field(default_factory=lambda: Ladder((0, 1), 1.0, 1.0, 1.0, 0))
    cost: float = 1.0
    credit: float = 0.0
    issued: int = 0
    rounds: int = 0
    reads_cpu: bool = True
    staged: bool = False
    names: Mapping[str, Any] = field(default_factory=dict)

    def once(
        self, name: str, values: Sequence[float] = (), at: Sequence[int] = (), reason: Why = ""
    ) -> OneOffEntry:
        """The line with values that the case measured outside the ladder, or with the reason why
        there are none.
        """
        return OneOffEntry(**self.names, name=name, values=list(values), at=list(at), reason=reason)

    def verify(self) -> None:
        """Compare the units that ran with those issued. Raises ``Unverified``."""
        executed = self.chain.executed()
        if executed != self.issued and self.chain.executes:
            raise Unverified(because("units-not-executed", issued=self.issued, executed=executed))

    def recount(self, aside: int, least: int = 0) -> None:
        """Bring ``issued`` up to date after work whose number of units is unknown (device time,
        recordings): all units that ran count as issued. Raises ``Unverified`` if units are missing.

        ``executed`` leaves some units out, which the chain counts in ``chain.aside``; ``aside`` is
        that count before this work. ``least``: the units that the work must have run, in one count
        or the other.
        """
        chain = self.chain
        # Units of this work may be in ``executed`` or in ``aside``; the sum of both growths counts.
        executed = chain.executed()
        ran_in_this_work = executed - self.issued + chain.aside - aside
        # Missing if ``executed`` fell, or if the work ran fewer units than it must have.
        missing = max(self.issued - executed, least - ran_in_this_work)
        # ``executes``: the stack runs the work. ``counts_device``: units run for device time are
        # counted.
        if missing > 0 and chain.executes and chain.counts_device:
            raise Unverified(because("uncounted-units-not-run", units=missing))
        self.issued = executed

    def passes(self, is_due: bool) -> int:
        """How many passes of its ladder (one sample of every n) the case makes in this round: what
        its credit of time pays for. In its first rounds it makes one, since its cost is not known
        yet. ``is_due``: the process still owes rounds, so a case with any credit gets at least one
        pass.
        """
        # Two rounds: with fewer there is no spread.
        if self.rounds < ROUNDS.least:
            return 1
        # ``credit``: ns of sampling that it may spend now. ``cost``: ns per pass so far.
        # At most four: one reading of the reference loop stands for all of them.
        affordable = min(ROUNDS.most_passes, round(self.credit / self.cost))
        if is_due and self.credit > 0:
            return max(1, affordable)
        return max(0, affordable)

    def spend(self, ns: float, passes: int) -> None:
        """Book a round that took ``ns`` for this number of passes (one sample of every n): subtract
        the time from the credit, and update ``cost``, the mean time of a pass over the rounds.
        """
        self.credit -= ns
        self.rounds += 1
        # The running mean: each round moves it by its difference over the number of rounds.
        mean = self.cost + (ns / passes - self.cost) / self.rounds
        self.cost = max(1.0, mean)
