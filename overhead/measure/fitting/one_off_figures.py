"""Figures from values that each process measures once, outside the ladder (the sizes of n of the
fit).
"""

from __future__ import annotations

from collections.abc import Sequence
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
from overhead.results import Figure, Reason, Why, because, together

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
    """When a spread has percentiles, and when the device's clock is fine enough."""

    percentiles_from: int = 8
    """With this many processes the met cost has percentiles instead of its lowest and highest
    value: with fewer they would be interpolated between two processes.
    """
    in_rounds: int = 7
    """With fewer samples in the rounds a wait keeps the values that were measured in one go."""
    waits_target: float = 0.10
    """The relative half-width of a wait that is ``ok``, where the profile does not allow more."""
    clock_steps: int = 30
    """Steps of the device's clock that the slope must add over the range of n: fewer make it
    uncertain by over 3 %.
    """


_RULE = _OneOffRule()


def one_off_figures(series: Series, target: float) -> dict[str, Figure]:
    """The one-off figures of a case by name, in ns unless noted.

    ``naive``, ``naive_idle``, ``legacy`` (T(100)/100), ``empty_wait``, ``first``, ``prepare``,
    ``start_latency``, ``compile``, ``peak_memory`` (bytes); ``p50`` ``p95`` ``p99`` of the latency;
    ``device_busy`` or ``device_span`` per unit; ``stage:NAME``, ``unstaged`` and ``stages_gap``
    (the sum of the stages minus the unstaged ``issue`` of the same round); ``making:PART`` per
    recorded unit and ``making:PART:fixed``.

    A figure whose values no process could measure is ``unavailable`` with the reason.
    """
    values: dict[str, list[float]] = {}
    refused: dict[str, Why] = {}
    for process in series.processes:
        for name, value in _of_process(process, series.anchored).items():
            values.setdefault(name, []).append(value)
        refused |= {
            name: taken.reason
            for name, taken in process.one_off.items()
            if taken.reason and not taken.values and not name.startswith("anchor")
        }
    if all(name in values for name in _DEVICE_SLOPES):
        values.pop(min(_DEVICE_SLOPES, key=lambda name: len(values[name])))
    missing = {
        name: Figure(name=name, status="unavailable", reason=why) for name, why in refused.items()
    }
    return missing | {name: _figure(name, found, series, target) for name, found in values.items()}


def met_figures(series: Series) -> dict[str, Figure]:
    """``met``, what a program pays when nothing is left out (ns), and ``met_rounds`` (a ratio);
    empty if not measured.

    ``met`` is the median of the means of the processes, with the lowest and the highest; from eight
    processes on with the 10th and the 90th percentile. ``met_rounds`` is the highest turn of a
    process over its lowest one.
    """
    turns = [
        np.asarray(p.values("met"), dtype=np.float64) for p in series.processes if p.values("met")
    ]
    if not turns:
        return {}
    if any(own.mean() <= 0 for own in turns):
        reason = because("slope-not-above-zero", least_ns=min(own.mean() for own in turns))
        return {
            "met": Figure(
                name="met", status="below-resolution", reason=reason, processes=len(turns)
            )
        }
    found = {"met": _spread("met", [float(own.mean()) for own in turns])}
    ratios = [float(own.max() / own.min()) for own in turns if own.size > 1 and own.min() > 0]
    if ratios:
        found["met_rounds"] = replace(_spread("met_rounds", ratios), unit="ratio")
    return found


def _spread(name: Literal["met", "met_rounds"], values: Sequence[float]) -> Figure:
    """The median of one value per process, with the ends of their spread."""
    count = len(values)
    many = count >= _RULE.percentiles_from
    low, middle, high = np.percentile(values, [10, 50, 90] if many else [0, 50, 100])
    rule = _rule_of_means(count, many) if name == "met" else _rule_of_turns(count, many)
    return Figure(
        name=name, value=float(middle), low=float(low), high=float(high), rule=rule, processes=count
    )


def _rule_of_means(count: int, many: bool) -> Reason:
    if count == 1:
        return because("mean-of-one-process")
    if many:
        return because("percentiles-of-means", processes=count)
    return because("lowest-and-highest-mean", processes=count)


def _rule_of_turns(count: int, many: bool) -> Reason:
    """The same for the ratios of the highest to the lowest turn."""
    if count == 1:
        return because("turns-of-one-process")
    if many:
        return because("percentiles-of-turns", processes=count)
    return because("lowest-and-highest-turns", processes=count)


def _figure(name: str, values: list[float], series: Series, target: float) -> Figure:
    """One figure from its value in each process."""
    scale = None
    if name == "stages_gap":  # its precision is relative to the unstaged issue
        scale = float(
            np.mean([np.median(p.values(UNSTAGED)) for p in series.processes if p.values(UNSTAGED)])
        )
    wanted = max(target, _RULE.waits_target) if series.anchored and name in _WAITS else target
    found = mean_of_processes(
        name, values, wanted, scale=scale, unit="bytes" if name == "peak_memory" else "ns"
    )
    if series.anchored and name in _SINGLE_WAITS:
        return _refused_if_waits_differ(found, series, wanted)
    if name not in _DEVICE_SLOPES or found.value is None:
        return found
    quantum = max(
        (p.values("device_quantum")[0] for p in series.processes if p.values("device_quantum")),
        default=0.0,
    )
    lengths = [p.one_off[name].at for p in series.processes if name in p.one_off]
    reach = found.value * max((max(ns) - min(ns) for ns in lengths if ns), default=0)
    if reach < _RULE.clock_steps * quantum:
        reason = because("slope-too-small-for-device-clock", reach_ns=reach, step_ns=quantum)
        return without_value(found, "below-resolution", reason)
    return found


def _refused_if_waits_differ(found: Figure, series: Series, target: float) -> Figure:
    """The median of waits; ``noisy`` where so many differ in most processes that it says nothing of
    the mean.
    """
    if (
        found.value is None
        or found.low is None
        or found.high is None
        or any(map(wait_quantum, series.processes))
    ):
        return found
    waits = [_values(process, found.name, series.anchored) for process in series.processes]
    seen = slow_waits(series.processes, waits)
    if seen is None or not seen.matter(found.value, (found.high - found.low) / 2, target):
        return found
    return replace(found, status="noisy", reason=together(found.reason, seen.reason))


def _of_process(process: Process, in_rounds: bool) -> dict[str, float]:
    """The values of one process by figure. ``in_rounds``: waits are taken from the rounds too
    (method 4).
    """
    once = {
        name: _values(process, name, in_rounds)
        for name, taken in process.one_off.items()
        if taken.values
    }
    found = {name: float(np.median(once[name])) for name in _MEDIANS if name in once}
    if "latency" in once:
        found |= {
            name: float(np.percentile(once["latency"], percent))
            for name, percent in _PERCENTILES.items()
        }
    if "prepare" in once:
        found["prepare"] = float(once["prepare"][0])
    for name in _DEVICE_SLOPES:
        if name in once and len(at := process.one_off[name].at) == once[name].size:
            line = theil_sen(np.asarray(at, dtype=np.float64), once[name])
            if line is not None:
                found[name] = line.slope
    stages = {name: values for name, values in once.items() if name.startswith("stage:")}
    found |= {name: float(np.median(values)) for name, values in stages.items()}
    if stages and UNSTAGED in once:
        rounds = min(values.size for values in (*stages.values(), once[UNSTAGED]))
        gaps = sum(values[:rounds] for values in stages.values()) - once[UNSTAGED][:rounds]
        found["stages_gap"] = float(np.median(gaps))
    for name in (name for name in once if name.startswith("making:")):
        line = theil_sen(np.asarray(process.one_off[name].at, dtype=np.float64), once[name])
        if line is not None:
            found |= {name: line.slope, f"{name}:fixed": line.intercept}
    legacy = _legacy(process, once.get("legacy"))
    return found | ({} if legacy is None else {"legacy": legacy})


def _values(process: Process, name: str, in_rounds: bool) -> Floats:
    """The one-off values of this name, or those of the rounds; empty without any."""
    values = np.asarray(process.values(name), dtype=np.float64)
    if not in_rounds or name not in _IN_ROUNDS or not values.size:
        return values
    rows = totals_at(process, _IN_ROUNDS[name])
    return rows if rows.size >= _RULE.in_rounds else values


def _legacy(process: Process, taken: Floats | None) -> float | None:
    """T(100)/100, ns, from the one-off values if there are any, else from the ladder; None without
    T(100).
    """
    if taken is not None:
        return float(np.median(taken)) / LEGACY_N
    rows = totals_at(process, LEGACY_N)
    return float(np.median(rows)) / LEGACY_N if rows.size else None
