"""One case with the fits of its processes: the first step from its samples to its figures.

The reference loop is a fixed loop that is timed in every round: it shows the processor's speed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.anchors import AnchorVerdict, judge_anchors
from overhead.measure.fitting.interval import mean_of_processes
from overhead.measure.fitting.line import Floats
from overhead.measure.fitting.line_start import LineStart, line_start
from overhead.measure.fitting.one_process import (
    Process,
    ProcessFit,
    Series,
    fit_process,
    slopes_by_round,
    wait_quantum,
)
from overhead.measure.fitting.two_speeds import SPEEDS, Owners, two_groups
from overhead.measure.fitting.undisturbed_rounds import reference_ns, without_slow_rounds
from overhead.results import Figure


@dataclass(frozen=True)
class FittedProcess:
    """One process of a case, with the lines through its samples.

    ``reference_by_round``: by the number of a round the time of its reference loop, ns; 0 where it
    was not timed.
    """

    process: Process
    fit: ProcessFit
    reference_by_round: dict[int, float]


class FittedCase:
    """The processes of a case that have samples, each with the lines fitted to them. The figures of
    the case are means over these processes. ``precision``: the largest relative half-width of a
    figure that is ``ok``.
    """

    def __init__(self, series: Series, precision: float) -> None:
        self.series = series
        self.precision = precision
        self.fitted_processes: list[FittedProcess] = []
        for process in series.processes:
            if any(entry.samples for entry in process.rounds):
                reference = {entry.round: reference_ns(entry) for entry in process.rounds}
                # ``fit_process``: the lines of ``issue`` and of T(n), and the n at which the queue
                # is full.
                fit = fit_process(process, series)
                self.fitted_processes.append(FittedProcess(process, fit, reference))
        self._slopes_by_round: dict[str, list[dict[int, float]]] = {}

    @functools.cached_property
    def processes(self) -> list[Process]:
        """The processes that have samples."""
        return [fitted_process.process for fitted_process in self.fitted_processes]

    @functools.cached_property
    def fits(self) -> list[ProcessFit]:
        """The fit of each process."""
        return [fitted_process.fit for fitted_process in self.fitted_processes]

    @functools.cached_property
    def longest_quantum(self) -> float:
        """The longest time between two polls of the wait, ns; 0 if no process polls."""
        return max(wait_quantum(process) for process in self.processes)

    @property
    def polls(self) -> bool:
        """Whether the wait polls rarely in a process: its T(n) is then a staircase."""
        return any(wait_quantum(process) for process in self.processes)

    @property
    def largest_n(self) -> int:
        """The largest n that a line was fitted to."""
        return max(int(fit.wall[:, 0].max()) for fit in self.fits)

    @property
    def rounds(self) -> int:
        """How many rounds all processes have together."""
        return sum(len(process.rounds) for process in self.processes)

    def values(self, name: str) -> list[float]:
        """The figure in each process that has it, from the line of the process."""
        values = [fit.value(name) for fit in self.fits]
        return [value for value in values if value is not None]

    def mean(self, name: str, beside: float = 0.0) -> Figure:
        """The mean of the figure over the processes, with its interval and a first status. The
        reference loop of each process goes along, since a cost may follow the processor's speed.

        ``beside``: what its half-width is relative to in addition to its value, ns.
        """
        paces: list[float] = []
        for fitted_process in self.fitted_processes:
            if fitted_process.fit.value(name) is not None:
                paces.append(fitted_process.process.pace)
        return mean_of_processes(
            name, self.values(name), self.precision, beside=beside, paces=paces
        )

    def slopes_by_round(self, name: str) -> list[dict[int, float]]:
        """By process the figure in each of its rounds, ns per unit, by the number of the round.
        Several checks ask for it, so it is kept.
        """
        if name not in self._slopes_by_round:
            by_process: list[dict[int, float]] = []
            for fitted_process in self.fitted_processes:
                # ``knee``: the n from which on the queue is full; the slope of ``issue`` is taken
                # below it.
                slopes = slopes_by_round(
                    fitted_process.process, self.series, name, fitted_process.fit.knee
                )
                by_process.append(slopes)
            self._slopes_by_round[name] = by_process
        return self._slopes_by_round[name]

    @property
    def reference_by_round(self) -> list[dict[int, float]]:
        """By process the time of the reference loop in each round, ns."""
        return [fitted_process.reference_by_round for fitted_process in self.fitted_processes]

    def reference_times(self) -> Floats:
        """The times of the reference loop in all rounds, ns; 0 where it was not timed."""
        times: list[float] = []
        for fitted_process in self.fitted_processes:
            times += fitted_process.reference_by_round.values()
        return np.array(times)

    def line_start(self, *, of_enqueue: bool) -> LineStart:
        """From which n on a line holds; nothing where the wait polls, since T(n) is a staircase
        there.
        """
        if self.polls:
            return LineStart()
        return line_start(self.processes, self.fits, self.precision, of_enqueue=of_enqueue)


class CaseFits:
    """The fits that all figures of one case come from.

    ``all_rounds``: the fits to every round. ``at_usual_speed``: to the rounds in which the
    processor ran at its usual speed; the same object if these are all rounds. ``at_two_speeds``: by
    name the figures that the checks have looked at for two speeds; None for one speed.
    """

    def __init__(self, series: Series, precision: float) -> None:
        self.series = series
        self.precision = precision
        self.all_rounds = FittedCase(series, precision)
        # Without the rounds in which the processor was slower; the same object if there are none.
        undisturbed = without_slow_rounds(series)
        # Fitting takes long: where no round is left out, the fits are shared.
        self.at_usual_speed = self.all_rounds
        if undisturbed is not series:
            self.at_usual_speed = FittedCase(undisturbed, precision)
        self.at_two_speeds: dict[str, Figure | None] = {}

    @functools.cached_property
    def searched_for_speeds(self) -> FittedCase:
        """The fits to the rounds in which two speeds of the case are looked for: to every round if
        the reference loop, which shows the processor's speed, itself has two speeds; else to those
        at the usual speed, so that a few disturbed rounds are no speed of the case.
        """
        times = self.all_rounds.reference_times()
        # ``owners``: for each round the position of its process. ``times.all()``: in every round
        # the loop was timed. ``two_groups`` gives None if the times are one group.
        owners = _owners(self.all_rounds.reference_by_round)
        if times.all() and two_groups(times, owners, SPEEDS.reference_share) is not None:
            return self.all_rounds
        return self.at_usual_speed

    @functools.cached_property
    def complete_anchors(self) -> AnchorVerdict:
        """What the anchors, samples of far more units than a line was fitted to, show of T(n)."""
        lines = [fit.complete for fit in self.all_rounds.fits]
        # ``quantum``: ns between two polls of the wait, which rounds the times of anchors up; 0 if
        # it does not poll.
        return judge_anchors(
            self.all_rounds.processes,
            lines,
            of_enqueue=False,
            quantum=self.all_rounds.longest_quantum,
        )

    @functools.cached_property
    def enqueue_anchors(self) -> AnchorVerdict:
        """What the anchors show about the time until ``issue`` returns."""
        lines = [fit.enqueue for fit in self.all_rounds.fits]
        return judge_anchors(self.all_rounds.processes, lines, of_enqueue=True)

    @functools.cached_property
    def complete_start(self) -> LineStart:
        """From which n on T(n) is the line."""
        return self.at_usual_speed.line_start(of_enqueue=False)

    @functools.cached_property
    def enqueue_start(self) -> LineStart:
        """From which n on the time until ``issue`` returns is its line."""
        return self.at_usual_speed.line_start(of_enqueue=True)


def _owners(by_process: Sequence[dict[int, float]]) -> Owners:
    """For each round of all processes the position of its process."""
    rounds = [len(by_round) for by_round in by_process]
    return np.repeat(np.arange(len(by_process)), rounds)
