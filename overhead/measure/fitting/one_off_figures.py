"""Figures from values that each process measures once, outside the ladder (the sizes of n of the
fit).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from msgspec.structs import replace

from overhead.measure.fitting.interval import mean_of_processes, without_value
from overhead.measure.fitting.line import Floats, theil_sen
from overhead.measure.fitting.one_process import (
    LEGACY_N,
    UNSTAGED,
    Process,
    Series,
    totals_at,
    wait_quantum,
)
from overhead.measure.fitting.slow_samples import slow_waits
from overhead.measure.fitting.spread import median
from overhead.results import Figure, Reason, because, together

_PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0}
"""Of the values named ``latency``."""
_MEDIANS = (
    "naive",
    "naive_idle",
    "empty_wait",
    "first",
    "start_latency",
    "compile",
    "peak_memory",
    UNSTAGED,
)
"""Figures that are the median of the values of a process."""
_IN_ROUNDS = {"empty_wait": 0, "naive": 1}
"""Waits that every round samples too, as T(n) of this n."""
_SINGLE_WAITS = ("naive", "naive_idle", "empty_wait")
"""Figures that are the median of many waits."""
_WAITS = (*_IN_ROUNDS, *_PERCENTILES)
_DEVICE_SLOPES = ("device_busy", "device_span")
"""Figures that are a slope over n. Where processes measured different ones, the more frequent one
stays.
"""


@dataclass(frozen=True)
class _OneOffRule:
    """When a spread has percentiles, and when the device's clock is fine enough.

    The numbers were chosen, not measured, where a line does not name a run.
    """

    percentiles_from: int = 8
    """With this many processes the unpinned cost has percentiles instead of its lowest and highest
    value: with fewer they would be interpolated between two processes.
    """
    in_rounds: int = 7
    """With fewer samples in the rounds a wait keeps the values that were measured in one go."""
    waits_precision: float = 0.10
    """The relative half-width of a wait that is ``ok``, where the profile does not allow more."""
    clock_steps: int = 30
    """Steps of the device's clock that the slope must add over the range of n: fewer make it
    uncertain by over 3 %. Computed, not measured: each end is uncertain by a step.
    """


_RULE = _OneOffRule()


def one_off_figures(series: Series, precision: float) -> dict[str, Figure]:
    """The figures of a case, by name, that do not come from the line through its rounds but from
    values that each process measured once, in ns unless noted.

    ``naive`` (a single unit and its wait), ``naive_idle`` (the same after idle time), ``legacy``
    (T(100)/100), ``empty_wait``, ``first`` (call), ``prepare``, ``start_latency``, ``compile``,
    ``peak_memory`` (bytes); ``p50`` ``p95`` ``p99`` of the latency; ``device_busy`` or
    ``device_span`` per unit; ``stage:NAME``, ``unstaged`` and ``stages_gap`` (the sum of the stages
    minus the unstaged ``issue`` of the same round); ``making:PART`` per recorded unit and
    ``making:PART:fixed``.

    A figure whose values no process could measure is ``unavailable`` with the reason.
    """
    # By figure its value in each process that measured it.
    values: dict[str, list[float]] = {}
    figures: dict[str, Figure] = {}
    for process in series.processes:
        # ``anchored``: the method of the run takes anchors (far longer chains); it also takes waits
        # from the samples of the rounds.
        for name, value in _values_of_process(process, series.anchored).items():
            values.setdefault(name, []).append(value)
        for name, entry in process.one_off.items():
            # Replaced below if another process has values. Anchors are no figures: they check the
            # lines of others.
            if entry.reason and not entry.values and not name.startswith("anchor"):
                figures[name] = Figure(name=name, status="unavailable", reason=entry.reason)

    # Some processes saw the device wait within its time and others did not: two kinds of figure.
    if all(name in values for name in _DEVICE_SLOPES):
        rarer = min(_DEVICE_SLOPES, key=lambda name: len(values[name]))
        del values[rarer]
    for name, of_processes in values.items():
        figures[name] = _figure(name, of_processes, series, precision)
    return figures


def unpinned_figures(series: Series) -> dict[str, Figure]:
    """``met``, the cost of a unit in a program that uses any processor and leaves nothing out (ns),
    and ``met_rounds``, how much it varies within a process (a ratio); empty if not measured.

    ``met`` is the median of the means of the processes, with the lowest and the highest; from eight
    processes on with the 10th and the 90th percentile. ``met_rounds`` is the highest turn of a
    process over its lowest one; a turn is a period of some 100 ms.
    """
    turns_by_process: list[Floats] = []
    for process in series.processes:
        if process.values("met"):
            turns_by_process.append(np.asarray(process.values("met"), dtype=np.float64))
    if not turns_by_process:
        return {}

    means = [float(costs.mean()) for costs in turns_by_process]
    if min(means) <= 0:
        reason = because("slope-not-above-zero", least_ns=min(means))
        failed = Figure(
            name="met", status="below-resolution", reason=reason, processes=len(turns_by_process)
        )
        return {"met": failed}

    figures = {"met": _spread("met", means)}
    ratios: list[float] = []
    for costs in turns_by_process:
        lowest = costs.min()
        if costs.size > 1 and lowest > 0:
            ratios.append(float(costs.max() / lowest))
    if ratios:
        figures["met_rounds"] = replace(_spread("met_rounds", ratios), unit="ratio")
    return figures


def _spread(name: Literal["met", "met_rounds"], values: Sequence[float]) -> Figure:
    """The median of one value per process, with the ends of their spread in place of an interval:
    the lowest and the highest, or with many processes the 10th and the 90th percentile.
    """
    count = len(values)
    # With fewer than eight the percentiles would be interpolated between two processes.
    many = count >= _RULE.percentiles_from
    # The median in the middle; the ends are percentiles or, of few values, the extremes.
    low, middle, high = np.percentile(values, [10, 50, 90] if many else [0, 50, 100])
    rule = _rule_of_turns(count, many)
    if name == "met":
        rule = _rule_of_means(count, many)
    return Figure(
        name=name, value=float(middle), low=float(low), high=float(high), rule=rule, processes=count
    )


def _rule_of_means(count: int, many: bool) -> Reason:
    """What the value and the ends of ``met`` are. ``many``: the ends are percentiles."""
    if count == 1:
        return because("mean-of-one-process")
    if many:
        return because("percentiles-of-means", processes=count)
    return because("lowest-and-highest-mean", processes=count)


def _rule_of_turns(count: int, many: bool) -> Reason:
    """What the value and the ends of ``met_rounds`` are, the ratios of a process's highest to its
    lowest turn. ``many``: the ends are percentiles.
    """
    if count == 1:
        return because("turns-of-one-process")
    if many:
        return because("percentiles-of-turns", processes=count)
    return because("lowest-and-highest-turns", processes=count)


def _figure(name: str, values: list[float], series: Series, precision: float) -> Figure:
    """One figure, the mean of its values in the processes, with a check of its own where it has
    one: waits may differ too much for their median, device times may be too short for the device's
    clock.
    """
    # Waits scatter more than costs do, so they may have a wider interval: 10 %. Not in runs of
    # earlier methods, which took no anchors.
    if series.anchored and name in _WAITS:
        precision = max(precision, _RULE.waits_precision)
    figure = mean_of_processes(
        name,
        values,
        precision,
        # The precision of the gap between the stages is relative to the unstaged issue.
        scale=_mean_unstaged(series) if name == "stages_gap" else None,
        unit="bytes" if name == "peak_memory" else "ns",
    )
    if series.anchored and name in _SINGLE_WAITS:
        return _noisy_if_waits_differ(figure, series, precision)
    if name in _DEVICE_SLOPES:
        return _below_resolution_if_device_clock_is_coarse(figure, series)
    return figure


def _mean_unstaged(series: Series) -> float:
    """The mean over the processes of ``unstaged`` (``issue`` of a staged chain as a whole), ns."""
    unstaged = [process.values(UNSTAGED) for process in series.processes]
    medians = [np.median(values) for values in unstaged if values]
    return float(np.mean(medians))


def _below_resolution_if_device_clock_is_coarse(figure: Figure, series: Series) -> Figure:
    """The device time per unit; ``below-resolution`` if from the shortest to the longest chain it
    adds too few steps of the device's clock, of the process with the coarsest one.
    """
    if figure.value is None:
        return figure
    # The coarsest clock, and the widest range of n, of all processes.
    step_ns = 0.0
    range_of_n = 0
    for process in series.processes:
        # The smallest step of the device's clock.
        quantum = process.values("device_quantum")
        if quantum:
            step_ns = max(step_ns, quantum[0])
        if figure.name in process.one_off:
            ns = process.one_off[figure.name].at
            if ns:
                range_of_n = max(range_of_n, max(ns) - min(ns))

    # What the slope adds to a device time over that range.
    added_ns = figure.value * range_of_n
    if added_ns >= _RULE.clock_steps * step_ns:
        return figure
    reason = because("slope-too-small-for-device-clock", reach_ns=added_ns, step_ns=step_ns)
    return without_value(figure, "below-resolution", reason)


def _noisy_if_waits_differ(figure: Figure, series: Series, precision: float) -> Figure:
    """A figure that is the median of single waits; ``noisy`` where so many of them differ in most
    processes that the median says nothing of the mean. Not where the wait polls, which makes all of
    them differ.
    """
    if figure.value is None or figure.low is None or figure.high is None:
        return figure
    if any(wait_quantum(process) for process in series.processes):
        return figure
    # By process all waits; those of the rounds if ``anchored`` (a method that takes anchors).
    waits = [_values(process, figure.name, series.anchored) for process in series.processes]
    # How far their mean is from their median; None with few processes or waits.
    slow = slow_waits(series.processes, waits)
    half_width = (figure.high - figure.low) / 2
    if slow is None or not slow.make_noisy(figure.value, half_width, precision):
        return figure
    return replace(figure, status="noisy", reason=together(figure.reason, slow.reason))


def _values_of_process(process: Process, in_rounds: bool) -> dict[str, float]:
    """The one-off values of one process by figure, each computed from the values measured under the
    same or another name. ``in_rounds``: waits are taken from the samples of the rounds too, which
    are more and spread over more time.
    """
    # By name all values of the process, ns.
    measured: dict[str, Floats] = {}
    for name, entry in process.one_off.items():
        if entry.values:
            measured[name] = _values(process, name, in_rounds)
    values: dict[str, float] = {}
    for name in _MEDIANS:
        if name in measured:
            values[name] = median(measured[name])
    # Percentiles over its waits for single units, ...
    if "latency" in measured:
        for name, percent in _PERCENTILES.items():
            values[name] = float(np.percentile(measured["latency"], percent))
    if "prepare" in measured:
        # Measured once in a process, at its first call.
        values["prepare"] = float(measured["prepare"][0])
    # ... and what takes a computation of its own.
    values |= _device_slopes(process, measured)
    values |= _stages(measured)
    values |= _making(process, measured)
    legacy = _legacy(process, measured.get("legacy"))
    if legacy is not None:
        values["legacy"] = legacy
    return values


def _device_slopes(process: Process, measured: Mapping[str, Floats]) -> dict[str, float]:
    """The device time per unit, ns, by figure: the slope of the measured spans over the n of their
    chains. Nothing for a figure that does not have one span for each n.
    """
    slopes: dict[str, float] = {}
    for name in _DEVICE_SLOPES:
        if name not in measured:
            continue
        # ``at``: the n of the chain behind each value.
        ns = np.asarray(process.one_off[name].at, dtype=np.float64)
        if ns.size != measured[name].size:
            continue
        line = theil_sen(ns, measured[name])
        if line is not None:
            slopes[name] = line.slope
    return slopes


def _stages(measured: Mapping[str, Floats]) -> dict[str, float]:
    """The median time of each stage (one kind of call in ``issue``, timed on its own), ns per unit,
    and ``stages_gap``: by how much their sum exceeds ``issue`` as a whole, the median over the
    rounds. The gap shows whether the stages account for all of ``issue``.
    """
    stages = {name: times for name, times in measured.items() if name.startswith("stage:")}
    values = {name: median(times) for name, times in stages.items()}
    if stages and UNSTAGED in measured:
        unstaged = measured[UNSTAGED]
        # One value per round; the lists may differ in length, so the rounds that all have.
        rounds = min(times.size for times in [*stages.values(), unstaged])
        sums = sum(times[:rounds] for times in stages.values())
        values["stages_gap"] = median(sums - unstaged[:rounds])
    return values


def _making(process: Process, measured: Mapping[str, Floats]) -> dict[str, float]:
    """The cost of making recordings (such as capturing and instantiating a graph) by part, from
    recordings of several sizes: ns per recorded unit, the slope, and as ``:fixed`` what a recording
    costs in addition, whatever its size.
    """
    values: dict[str, float] = {}
    for name, times in measured.items():
        if not name.startswith("making:"):
            continue
        # ``at``: the units of the recording behind each value.
        units = np.asarray(process.one_off[name].at, dtype=np.float64)
        line = theil_sen(units, times)
        if line is not None:
            values[name] = line.slope
            values[f"{name}:fixed"] = line.intercept
    return values


def _values(process: Process, name: str, in_rounds: bool) -> Floats:
    """The values of this name that were measured outside the rounds, or in their place T(n) of the
    rounds, if the figure is a wait that these sample often enough; empty where the process did not
    measure the name.
    """
    values = np.asarray(process.values(name), dtype=np.float64)
    if not in_rounds or name not in _IN_ROUNDS or not values.size:
        return values
    # ``_IN_ROUNDS``: by name the n that stands for it in the rounds (T(0), T(1)).
    # All T(n) of the rounds; with fewer than seven, the values measured in one go stay.
    totals = totals_at(process, _IN_ROUNDS[name])
    return totals if totals.size >= _RULE.in_rounds else values


def _legacy(process: Process, measured: Floats | None) -> float | None:
    """T(100)/100, which most benchmarks print, ns: from the one-off values of T(100) if there are
    any, else from the samples of the rounds; None if neither has T(100).
    """
    if measured is not None:
        return median(measured) / LEGACY_N
    totals = totals_at(process, LEGACY_N)
    if not totals.size:
        return None
    return median(totals) / LEGACY_N
