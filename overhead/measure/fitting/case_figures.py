"""From the raw samples of one case to its figures with intervals. Times in ns."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from overhead.measure.fitting.across_processes import across, modes, without_value
from overhead.measure.fitting.data import Estimate, Paired, Process, Round, Series
from overhead.measure.fitting.line import LINE, Floats, Misfit, misfit
from overhead.measure.fitting.one_off_figures import once_figures
from overhead.measure.fitting.one_process import SLOPES, ProcessFit, by_round, fit_process, quantum_of
from overhead.measure.fitting.paired import marginal, paired
from overhead.measure.fitting.quiet_rounds import pace, quiet
from overhead.measure.fitting.two_speeds import APART, CANARY, LONG, Owners, labelled, split, two_groups

CLOCK_STEPS = 100
"""The slope's part of T(top) must be this many times the clock's resolution."""
MODE_ROUNDS, MODE_SHARE = 3, 0.1
"""A process tells a mode's value only with this many rounds in it, and this share of its rounds."""


def estimate(series: Series, target: float) -> dict[str, Estimate]:
    """All figures of one case, by name. ``target``: the relative half-width that ``ok`` asks for.

    ``issue``, ``host``, ``complete``, ``fixed`` always, with a status; ``knee_n``, ``queue_depth`` where ``issue``
    bends; the others where their values were taken. ``fixed`` is judged against T(1) = fixed + complete, and the
    quantum of a polling wait.
    """
    case = _Case(series, target)
    figures = {name: case.slope(name) for name in SLOPES}
    return figures | {"fixed": case.fixed(figures["complete"])} | case.knee() | once_figures(series, target)


def headline(series: Series, target: float) -> Estimate:
    """``complete`` alone, whose status is the record's."""
    return _Case(series, target).slope("complete")


class _Case:
    """One case's processes with their fits."""

    def __init__(self, series: Series, target: float) -> None:
        self.series, self.target = series, target
        self.processes = [p for p in series.processes if any(r.samples for r in p.rounds)]
        self.fits = [fit_process(p, series) for p in self.processes]
        self.weather = [{r.number: pace(r) for r in p.rounds} for p in self.processes]
        self.rounds = functools.cache(self._rounds)

    def slope(self, name: str) -> Estimate:
        """One slope across processes, through every gate."""
        values = self.values(name)
        if not values:
            return self.missing(name)
        if min(values) <= 0:
            words = f"the slope of a process is {min(values):.3g} ns: not told from 0"
            return Estimate(status="below-resolution", reason=words, processes=len(values))
        both = self.speeds.bimodal(name, name)
        usual = self.speeds if both else self.usual
        found = both or usual.gate(name, usual.across(name))
        return self.said(found, usual, *self.remarks(name))

    @functools.cached_property
    def usual(self) -> _Case:
        """The case without the rounds of a slow processor or of another clock."""
        left = quiet(self.series)
        found = self if left is self.series else _Case(left, self.target)
        found.usual = found
        return found

    def said(self, found: Estimate, usual: _Case, *more: str) -> Estimate:
        """The figure of ``usual``, whose rule says what that lacks, and more."""
        return replace(found, rule="; ".join([found.rule, *self.left_out(usual), *more]))

    def left_out(self, usual: _Case) -> list[str]:
        """How many rounds ``usual`` lacks, in words."""
        whole, left = (sum(len(p.rounds) for p in case.processes) for case in (self, usual))
        share = f"{1 - left / whole:.0%}"
        words = f"{share} of the rounds are left out: the processor was slow or at another clock"
        return [words] if left < whole else []

    def remarks(self, name: str) -> list[str]:
        """What a reader of the figure should know besides."""
        said = []
        off = labelled(np.array([value for rounds in self.weather for value in rounds.values() if value]))
        if off.any():
            said.append(f"the canary was off by over {CANARY:.0%} in {off.mean():.0%} of the rounds")
        ladders = [p.one_off["ladder"] for p in self.processes if "ladder" in p.one_off]
        shortfalls = dict.fromkeys(ladder.reason for ladder in ladders if ladder.reason)
        said += [f"the ladder ends below the wanted length: {why}" for why in shortfalls]
        if name == "host" and self.series.wait_spins and not self.series.synchronous:
            said.append("the wait spins, so work deferred into it is not told")
        return said

    def fixed(self, complete: Estimate) -> Estimate:
        """The intercept: worth what its line is worth."""
        values = self.values("fixed")
        if not values or complete.value is None:
            return Estimate(status=complete.status, reason=complete.reason, rule=complete.rule)
        if complete.status == "bimodal":
            both = self.speeds.bimodal("complete", "fixed")
            if both is None:
                return Estimate(status="noisy", reason="two speeds, too few rounds of each for an intercept")
            return self.said(both, self.speeds)
        beside = complete.value + max(map(quantum_of, self.processes))
        return self.said(self.usual.across("fixed", beside), self.usual)

    def knee(self) -> dict[str, Estimate]:
        """Where most processes saw ``issue`` bend."""
        knees = [f.knee for f in self.fits if f.knee]
        if len(knees) * 2 <= len(self.fits):
            return {}
        return {
            "knee_n": across([k.n for k in knees], self.target, unit="n"),
            "queue_depth": across([k.depth for k in knees], self.target, unit="n"),
        }

    def values(self, name: str) -> list[float]:
        return [v for fit in self.fits if (v := fit.value(name)) is not None]

    def across(self, name: str, beside: float = 0.0) -> Estimate:
        """A figure of the processes that tell it."""
        paces = [p.pace for p, fit in zip(self.processes, self.fits, strict=True) if fit.value(name) is not None]
        return across(self.values(name), self.target, beside=beside, paces=paces)

    def _rounds(self, name: str) -> list[dict[int, float]]:
        """By process, each round's own value; empty where a polling wait rounds it up."""
        return [by_round(p, self.series, name, f.knee) for p, f in zip(self.processes, self.fits, strict=True)]

    def missing(self, name: str) -> Estimate:
        if not self.processes:
            return Estimate(status="failed", reason="no round was sampled")
        if name == "host":
            return Estimate(status="unavailable", reason="the caller's CPU clock cannot be read in this wait")
        if name == "complete" and any(map(quantum_of, self.processes)):
            return Estimate(status="below-resolution", reason="all samples lie on one step of the polling wait")
        return Estimate(status="failed", reason="fewer than two different n were sampled")

    def gate(self, name: str, found: Estimate) -> Estimate:
        """Refuse what the clock cannot resolve or a line does not describe."""
        if found.value is None:
            return found
        reach = min(abs(found.value) * float(np.ptp(fit.wall[:, 0])) for fit in self.fits if fit.wall.size)
        resolution = max((float(p.values("clock")[0]) for p in self.processes if p.values("clock")), default=0.0)
        if reach < CLOCK_STEPS * resolution:
            words = f"the slope adds {reach:.0f} ns over the whole ladder, the clock steps by {resolution:.0f} ns"
            return without_value(found, "below-resolution", words)
        bent = [m for p, f in zip(self.processes, self.fits, strict=True) if (m := _misfit(name, p, f)) is not None]
        share = float(np.median([m.share for m in bent])) if bent else 0.0
        if abs(share) > max(self.target, LINE):
            worst = max(bent, key=lambda m: abs(m.share))
            words = f"T({worst.at}) lies {worst.share:+.0%} of the ladder's rise off the line, beyond its own spread"
            return without_value(found, "nonlinear", words)
        return found

    @functools.cached_property
    def speeds(self) -> _Case:
        """The rounds that tell of two speeds: all where the canary has two itself, else the usual ones."""
        canaries = np.array([value for own in self.weather for value in own.values()])
        owners = np.repeat(np.arange(len(self.weather)), [len(own) for own in self.weather])
        return self if canaries.all() and two_groups(canaries, owners, LONG) is not None else self.usual

    def told(self, rounds: list[dict[int, float]]) -> tuple[Floats, Floats, Owners]:
        """The figure's rounds, all processes' in a row: values, canaries (ns; empty where not known) and process."""
        values = [value for own in rounds for value in own.values()]
        canaries = [self.weather[i][number] for i, own in enumerate(rounds) for number in own]
        owners = [i for i, own in enumerate(rounds) for _ in own]
        told = np.array(canaries) if all(canaries) else np.zeros(0)
        return np.array(values), told, np.array(owners, dtype=np.intp)

    def bimodal(self, told_by: str, name: str) -> Estimate | None:
        """Both values of a figure, the rounds of each speed fitted apart, process by process; None where the rounds of
        ``told_by`` have one speed, or their slopes come out alike after all."""
        rounds = self.rounds(told_by)
        two = split(*self.told(rounds))
        if two is None:
            return None
        labels = iter(two.slow)
        groups: dict[bool, list[float]] = {False: [], True: []}
        for process, own in zip(self.processes, rounds, strict=True):
            is_slow = {number: bool(next(labels)) for number in own}
            for label, group in groups.items():
                chosen = [r for r in process.rounds if is_slow.get(r.number) is label]
                enough = len(chosen) >= max(MODE_ROUNDS, MODE_SHARE * len(own))
                value = fit_process(replace(process, rounds=chosen), self.series).value(name) if enough else None
                if value is not None:
                    group.append(value)
        fast, slow = (across(groups[label], self.target) for label in (False, True))
        if fast.value is None or slow.value is None or (name != "fixed" and slow.value < APART * fast.value):
            return None
        return modes(fast, slow, two, len(self.processes))


def _misfit(name: str, process: Process, fit: ProcessFit) -> Misfit | None:
    """How far one process's rungs lie off the line of ``complete``, or of ``issue`` (which ``host`` stands on)."""
    if name == "complete":
        return (
            misfit(fit.wall[:, 0], fit.wall[:, 2], fit.complete) if fit.complete and not quantum_of(process) else None
        )
    below = fit.wall[fit.below]
    return misfit(below[:, 0], below[:, 1], fit.issue) if fit.issue else None


def bound(series: Series, figures: Mapping[str, Estimate]) -> str:
    """``host``, ``device`` or ``balanced`` for pipelined patterns, ``host`` for synchronous stacks, else empty.

    ``host`` when the host's work alone accounts for 90 % of ``complete``, ``device`` when for less than 75 %.
    """
    if series.synchronous:
        return "host"
    host, complete = figures.get("host"), figures.get("complete")
    if series.overlap != "pipelined" or not host or not complete or host.value is None or not complete.value:
        return ""
    share = host.value / complete.value
    return "host" if share >= 0.9 else "device" if share < 0.75 else "balanced"


__all__ = ["Estimate", "Paired", "Process", "Round", "Series", "bound", "estimate", "headline", "marginal", "paired"]
