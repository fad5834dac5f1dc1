"""The model of equal nodes, its tests, and their limits.

    ln y = level of the figure + factor of the node and side + residual of the stack + noise

Level: the median over the nodes of each node's mean over its runs. Factor: the median of the
deviations from the level over the node's figures of one side (host, device, all devices together).
Residual: the median over the stack's figures of a side, after the factor is taken off. So a slow
host and a slow stack are told apart, and the tests are few.

A run is beyond the limit of a test if it deviates by more than a scale times Student's t with
``DEGREES`` degrees of freedom, for the heavy tails. The scale is the robust spread between the
nodes (MAD), at least ``FLOORS``. The tests of a node share the chance ``FALSE_ALARMS`` (Bonferroni,
weighted by ``SHARES``), however alike two runs of a node are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from overhead.fleet.node_files import JudgedFigure, NodePart, NodeSide
from overhead.measure.fitting.line import Floats, Mask
from overhead.numerics import student_t_quantile, student_t_tail

NEWEST_RUNS = 2
"""The newest runs of a node that count. The node is slow if each of them is beyond the limit of one
test.
"""
LEAST_NODES = 5
"""With fewer equal nodes a test has no result."""
FALSE_ALARMS = 1e-3
"""The largest share of healthy nodes that are called slow."""
DEGREES = 8
"""More call healthy nodes slow too often, fewer find slow hosts too rarely
(``tests/fleet/power.py``).
"""
SHARES = {"host": 0.55, "device": 0.05, "together": 0.05, "stacks": 0.35}
FLOORS = {"host": 0.036, "device": 0.0121, "together": 0.036, "stacks": 0.020}
"""The least scales of ln(figure): spreads between the committed H100 boards; that of the device is
that of ``reading/next_run.json``. No committed run measured ``together``: it is as for ``host``.
"""
_FEW = 3.0
"""The scale is multiplied by 1 + ``_FEW`` over the number of nodes: the MAD of few nodes is often
too small.
"""
_OWN_PART = 1.05
"""A slow node itself raises the level and the scale a little: a slowdown must be larger to be
found.
"""
_OTHER_FLEET = 3.3
"""The smallest slowdown is multiplied by 1 + ``_OTHER_FLEET`` over the number of nodes, since the
limits of another fleet of the same kind differ. On pairs of made fleets 95 % need 1.65 with 5
nodes, 1.45 with 7, 1.27 with 10, 1.1 with 20 and 1.02 with 30 (``tests/fleet/power.py``,
``stated``).
"""
APART = {"host": 5.0, "device": 5.0, "together": 5.0, "stacks": 8.0}
"""Nodes are two groups if the means of the groups are further apart than this many standard
deviations in a group. One group of made nodes reaches 5.0 on a side in less than 1 of 5,000 fleets.
Boards differ more at single stacks: 7.4 was the most in 600 fleets.
"""
_LEAST_GROUP = 0.2
"""The smaller of two groups has this share of the nodes or more; the limits find fewer nodes, as
the MAD holds then.
"""
WIDE = 3.0
"""Nodes whose spread on a side is so many times ``FLOORS`` do not tell a slow one: made nodes
exceed it in 1 fleet of 1,000 with 5 nodes, in fewer with more.
"""
_MAD_TO_SIGMA, _POWER = 1.4826, 0.95


@dataclass(frozen=True)
class NodeTests:
    """The tests of equal nodes, each of a side or of a stack on it. All numbers are of ln(figure).

    ``deviations``: by test, run (the newest first) and node, else NaN. ``half_widths``: 95 % of
    healthy nodes are so near their level. ``smallest``: by number of runs and test what is found
    with 95 % power in another fleet like this one. ``shares``: of all alarms. ``kinds``: the keys
    of ``FLOORS``.
    """

    parts: Sequence[NodePart]
    kinds: Sequence[str]
    deviations: Floats
    scales: Floats
    limits: Floats
    half_widths: Floats
    smallest: Floats
    shares: Floats

    def chance(self, test: int, deviation: float) -> float:
        """The largest share of healthy nodes that are as far beyond the limit of any test."""
        return min(
            1.0,
            student_t_tail(float(deviation / self.scales[test]), DEGREES)
            / float(self.shares[test]),
        )

    def two_groups(self, test: int, alike: Mask) -> TwoGroups | None:
        """The two groups in which these nodes fall; None if they are one. ``alike``: nodes that no
        limit names.
        """
        kind = self.kinds[test]
        means = np.where(alike, _mean_of_runs(self.deviations[test], 0), np.nan)
        return two_groups(means, FLOORS[kind], APART[kind])

    def far_faster(self, test: int) -> Mask:
        """The nodes that are far faster: each run lies as far below the level as the limit of a
        slow node is above it.

        Of healthy made fleets with 5 to 30 nodes at most 5 of 1,000 have one, with 100 nodes 1 of
        60. With 9 of 10 hosts 1.5 times slow the tenth is one in 81 to 88 of 100 fleets, with 29 of
        30 in 99.
        """
        runs = self.deviations[test]
        below: Mask = (runs < -self.limits[test]) | np.isnan(runs)
        found: Mask = np.all(below, axis=0) & np.any(np.isfinite(runs), axis=0)
        return found

    def too_wide(self, test: int) -> float:
        """The standard deviation between the nodes if it is so large that a slow node cannot be
        told; else 0.
        """
        kind, nodes = self.kinds[test], self.deviations.shape[-1]
        spread = float(self.scales[test]) / (1 + _FEW / nodes)
        return spread if kind != "stacks" and spread > WIDE * FLOORS[kind] else 0.0


@dataclass(frozen=True)
class TwoGroups:
    """Nodes that fall into two groups. ``slower``, ``faster``: their positions. ``log``, ``low``,
    ``high``: ln of how many times as long the slower group takes, with a 95 % interval.
    """

    slower: Sequence[int]
    faster: Sequence[int]
    log: float
    low: float
    high: float


def two_groups(values: Floats, floor: float, apart: float) -> TwoGroups | None:
    """The division into two groups with the least squares inside them, if the means of both are far
    apart.

    ``values``: ln(figure) by node, or NaN. ``floor``: the least standard deviation in a group.
    ``apart``: of how many standard deviations.
    """
    order = np.argsort(values)[: int(np.isfinite(values).sum())]
    count = order.size
    least = max(2, math.ceil(_LEAST_GROUP * count))
    if count < LEAST_NODES or count < 2 * least:
        return None
    ordered = values[order] - values[order].mean()
    sizes = np.arange(least, count - least + 1)
    sums = np.cumsum(ordered)
    between = sums[sizes - 1] ** 2 / sizes + (sums[-1] - sums[sizes - 1]) ** 2 / (count - sizes)
    best = int(sizes[between.argmax()])
    faster, slower = ordered[:best], ordered[best:]
    squares = faster.var() * faster.size + slower.var() * slower.size
    inside = max(floor, math.sqrt(squares / (count - 2)))
    log = float(slower.mean() - faster.mean())
    if log <= apart * inside:
        return None
    half = (
        student_t_quantile((1 + _POWER) / 2, count - 2)
        * inside
        * math.sqrt(1 / faster.size + 1 / slower.size)
    )
    return TwoGroups(order[best:].tolist(), order[:best].tolist(), log, log - half, log + half)


def tests_of(logs: Floats, keys: Sequence[JudgedFigure]) -> NodeTests:
    """The tests of nodes, with the limits that the spread between these nodes gives.

    ``logs``: ln(figure) by run, node and figure, NaN where there is none. ``keys``: of the figures.
    """
    from_level = logs - median_of(_mean_of_runs(logs, 0), 0)
    of_stack, of_side = np.array([key.stack for key in keys]), np.array([key.side for key in keys])
    found: dict[NodePart, Floats] = {}
    kinds: list[str] = []
    for side in (side for side in get_args(NodeSide) if side in of_side):
        whole = median_of(from_level[:, :, of_side == side], 2)
        found[NodePart(side=side)] = whole
        own = sorted({*of_stack[of_side == side].tolist()}) if side != "together" else []
        for stack in own:
            figures = (of_side == side) & (of_stack == stack)
            found[NodePart(stack, side)] = median_of(from_level[:, :, figures], 2) - whole
        kinds += [side] + ["stacks"] * len(own)
    deviations = np.array([*found.values()]).reshape(len(found), *logs.shape[:2])
    deviations -= median_of(_mean_of_runs(deviations, 1), 1)[:, None, None]
    deviations[np.isfinite(deviations).any(axis=1).sum(axis=1) < LEAST_NODES] = np.nan

    shares = np.array(
        [SHARES[kind] / (kinds.count(kind) if kind == "stacks" else 1) for kind in kinds]
    )
    few = 1 + _FEW / logs.shape[1]
    scales = np.fmax(few * _spread(_mean_of_runs(deviations, 1)), [FLOORS[kind] for kind in kinds])
    limits = _quantiles(1 - FALSE_ALARMS * shares) * scales
    of_runs = np.fmax(
        scales, _spread(deviations.reshape(len(found), logs.shape[0] * logs.shape[1]))
    )
    powers = _quantiles(1 - (1 - _POWER) / np.arange(1, NEWEST_RUNS + 1))
    another = 1 + _OTHER_FLEET / logs.shape[1]
    smallest = _OWN_PART * few * another * (limits + powers[:, None] * of_runs)
    half_widths = student_t_quantile((1 + _POWER) / 2, DEGREES) * scales
    return NodeTests([*found], kinds, deviations, scales, limits, half_widths, smallest, shares)


def _quantiles(probabilities: Floats) -> Floats:
    """Those of Student's t with ``DEGREES`` degrees of freedom."""
    return np.array(
        [student_t_quantile(probability, DEGREES) for probability in probabilities.tolist()]
    )


def _spread(deviations: Floats) -> Floats:
    """The MAD along the last axis as a standard deviation, for deviations with the median zero."""
    return _MAD_TO_SIGMA * median_of(abs(deviations), -1)


def _mean_of_runs(values: Floats, axis: int) -> Floats:
    """The mean along the axis of the runs without NaN; NaN where there is no run."""
    count = np.isfinite(values).sum(axis=axis)
    return np.where(count, np.nansum(values, axis=axis) / np.maximum(count, 1), np.nan)


def median_of(values: Floats, axis: int) -> Floats:
    """The median along an axis without NaN; NaN where nothing is left. Much faster than
    ``numpy.nanmedian``.
    """
    ordered = np.sort(np.moveaxis(values, axis, -1), axis=-1)
    count = np.isfinite(ordered).sum(axis=-1, keepdims=True)
    ends = [
        np.take_along_axis(ordered, np.maximum(at, 0), axis=-1)
        for at in ((count - 1) // 2, count // 2)
    ]
    return 0.5 * (ends[0] + ends[1])[..., 0]
