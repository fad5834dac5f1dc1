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
"""With fewer equal nodes a test has no result. Chosen; with 5, made fleets give at most 1 false
alarm of 1,000 nodes (``tests/data/fleet_power.json``).
"""
FALSE_ALARMS = 1e-3
"""The largest share of healthy nodes that are called slow. Chosen: a fleet of 100 nodes has a false
alarm in one run of ten.
"""
DEGREES = 8
"""More call healthy nodes slow too often, fewer find slow hosts too rarely
(``tests/fleet/power.py``).
"""
SHARES = {"host": 0.55, "device": 0.05, "together": 0.05, "stacks": 0.35}
"""How the tests of a node divide the chance ``FALSE_ALARMS``. Chosen, not measured one by one; a
larger share finds smaller slowdowns there, and larger ones elsewhere (``tests/fleet/power.py``).
"""
FLOORS = {"host": 0.036, "device": 0.0121, "together": 0.036, "stacks": 0.020}
"""The least scales of ln(figure): spreads between the committed H100 boards; that of the device is
that of ``reading/next_run.json``. No committed run measured ``together``: it is as for ``host``.
"""
_FEW = 3.0
"""The scale is multiplied by 1 + ``_FEW`` over the number of nodes: the MAD of few nodes is often
too small. With less, fleets of 5 nodes give more false alarms (``tests/fleet/power.py``).
"""
_OWN_PART = 1.05
"""A slow node itself raises the level and the scale a little: a slowdown must be larger to be
found (``stated`` of ``tests/fleet/power.py``).
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
_MAD_TO_SIGMA = 1.4826
"""What makes the median absolute deviation of a normal distribution its standard deviation."""
_POWER = 0.95


@dataclass(frozen=True)
class NodeTests:
    """The tests of equal nodes, each of a side (host, device, all devices together) or of one stack
    on it. All numbers are of ln(figure).

    ``parts``: what each test is of. ``deviations``: how far a run is above the usual level, by
    test, run (the newest first) and node; NaN without a result. ``scales``: the spread between the
    nodes. ``limits``: a run above it is slow. ``half_widths``: 95 % of healthy nodes are so near
    their level. ``smallest``: by number of runs and test the slowdown that is found with 95 % power
    in another fleet like this one. ``shares``: of all false alarms. ``kinds``: the keys of
    ``FLOORS``.
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
        tail = student_t_tail(float(deviation / self.scales[test]), DEGREES)
        return min(1.0, tail / float(self.shares[test]))

    def two_groups(self, test: int, alike: Mask) -> TwoGroups | None:
        """The two groups in which these nodes fall; None if they are one. ``alike``: nodes that no
        limit names.
        """
        kind = self.kinds[test]
        # Nodes beyond a limit are left out: they are told as slow. Of the others the mean over the
        # runs (axis 0).
        means = np.where(alike, _mean_of_runs(self.deviations[test], 0), np.nan)
        # ``FLOORS``: the least standard deviation; ``APART``: so many of them the groups must be
        # apart.
        return two_groups(means, FLOORS[kind], APART[kind])

    def far_faster(self, test: int) -> Mask:
        """The nodes that are far faster than the others in this test: each run lies as far below
        the level as the limit of a slow node is above it. Where there is one, the others may be the
        slow ones.

        In simulations at most 5 of 1,000 healthy fleets with 5 to 30 nodes have one, and 1 of 60
        with 100 nodes. Where 9 of 10 hosts are 1.5 times slow, the tenth is one in 81 to 88 of 100
        fleets; where 29 of 30 are, the last one in 99.
        """
        # By run and node how far each is above the usual level; NaN without a result.
        runs = self.deviations[test]
        is_below_or_absent = (runs < -self.limits[test]) | np.isnan(runs)
        has_a_run = np.any(np.isfinite(runs), axis=0)
        far_faster: Mask = np.all(is_below_or_absent, axis=0) & has_a_run
        return far_faster

    def too_wide(self, test: int) -> float:
        """The standard deviation between the nodes in this test if it is so large that a slow node
        cannot be told; else 0. A test of one stack is never too wide.
        """
        kind = self.kinds[test]
        # GPU boards differ more at single stacks than at a whole side.
        if kind == "stacks":
            return 0.0
        # The last axis of the deviations is that of the nodes.
        nodes = self.deviations.shape[-1]
        # The scale contains an allowance for few nodes, which is taken off.
        spread = float(self.scales[test]) / (1 + _FEW / nodes)
        return spread if spread > WIDE * FLOORS[kind] else 0.0


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
    """Whether values of nodes fall into two groups rather than one: the division with the least
    squares inside the groups, if the means of both are far apart; else None.

    ``values``: ln(figure) by node, or NaN. ``floor``: the least standard deviation in a group.
    ``apart``: how many standard deviations apart the means must be.
    """
    # NaN sorts last, so only the nodes with a value stay.
    fastest_first = np.argsort(values)[: int(np.isfinite(values).sum())]
    count = fastest_first.size
    # The smallest size of a group: a fifth of the nodes, two at least.
    least = max(2, math.ceil(_LEAST_GROUP * count))
    if count < LEAST_NODES or count < 2 * least:
        return None
    ordered = values[fastest_first] - values[fastest_first].mean()

    # The squares inside the groups are least where those between them are most. With the mean of
    # all at 0, these are (sum of a group)² / its size, added over both groups.
    sizes = np.arange(least, count - least + 1)
    sums = np.cumsum(ordered)
    sum_of_faster = sums[sizes - 1]
    sum_of_slower = sums[-1] - sum_of_faster
    between = sum_of_faster**2 / sizes + sum_of_slower**2 / (count - sizes)
    best = int(sizes[between.argmax()])
    faster = ordered[:best]
    slower = ordered[best:]

    squares = faster.var() * faster.size + slower.var() * slower.size
    # ``count - 2``: two means were taken from the same values.
    inside = max(floor, math.sqrt(squares / (count - 2)))
    log_ratio = float(slower.mean() - faster.mean())
    if log_ratio <= apart * inside:
        return None
    # The half-width of the difference of two means, with a variance common to both groups.
    # ``_POWER`` is 0.95, so it is the quantile of 97.5 %: 95 % lie between both ends.
    quantile = student_t_quantile((1 + _POWER) / 2, count - 2)
    half_width = quantile * inside * math.sqrt(1 / faster.size + 1 / slower.size)
    return TwoGroups(
        fastest_first[best:].tolist(),
        fastest_first[:best].tolist(),
        log_ratio,
        log_ratio - half_width,
        log_ratio + half_width,
    )


def tests_of(logs: Floats, keys: Sequence[JudgedFigure]) -> NodeTests:
    """The tests of equal nodes: how far each run is from the usual level at each side and stack,
    and the limit beyond which it is slow, from the spread between these nodes.

    ``logs``: ln(figure) by run, node and figure, NaN where there is none. ``keys``: what the
    figures are.
    """
    # The axes below: test, run, node. First how far each run is from the level, in each test.
    runs, nodes = logs.shape[:2]
    by_part = _deviations_by_part(logs, keys)
    parts = [*by_part]
    kinds = ["stacks" if part.stack else str(part.side) for part in parts]
    deviations = np.array([*by_part.values()]).reshape(len(parts), runs, nodes)
    # The median node is put at 0. One number for each test is subtracted: of the means over the
    # runs (axis 1) the median over the nodes (axis 1 of what is left).
    deviations -= median_of(_mean_of_runs(deviations, 1), 1)[:, None, None]
    # A test with results of too few nodes has none.
    nodes_with_test = np.isfinite(deviations).any(axis=1).sum(axis=1)
    deviations[nodes_with_test < LEAST_NODES] = np.nan

    # The tests of all stacks share one part of the false alarms (Bonferroni). ``SHARES``: of the
    # chance of a false alarm, by kind of test, for the host more than half.
    shares = np.array([SHARES[kind] for kind in kinds])
    shares[[kind == "stacks" for kind in kinds]] /= max(1, kinds.count("stacks"))
    # Then the scale and the limit of each test: ``limits`` = quantile of Student's t times the
    # scale.
    least_scales = [FLOORS[kind] for kind in kinds]
    few_nodes = 1 + _FEW / nodes
    # The spread of few nodes is often too small by chance: it is enlarged, and has a floor.
    # ``_spread``: by the median absolute deviation, which a slow node hardly changes. ``fmax``
    # gives the floor where there is no spread (NaN).
    scales = np.fmax(few_nodes * _spread(_mean_of_runs(deviations, 1)), least_scales)
    # ``_quantiles``: the values below which these shares of healthy nodes lie.
    limits = _quantiles(1 - FALSE_ALARMS * shares) * scales

    # Of a slow node each of 1, 2, ... runs must be beyond the limit. They are, together, with 95 %
    # (``_POWER``): the other 5 % are divided among the runs.
    spread_of_runs = np.fmax(scales, _spread(deviations.reshape(len(parts), runs * nodes)))
    # Rows of ``smallest``: 1, 2, ... runs; columns: tests. By chance a run may fall short of the
    # true slowdown by ``powers`` times the spread of runs.
    powers = _quantiles(1 - (1 - _POWER) / np.arange(1, NEWEST_RUNS + 1))
    # The limits of another fleet of the same kind may be wider than those of this one.
    another_fleet = 1 + _OTHER_FLEET / nodes
    beyond_limits = limits + powers[:, None] * spread_of_runs
    # That sum is enlarged by three factors: for the level and scale that a slow node itself raises
    # a little (``_OWN_PART``, 1.05), for few nodes once more, and for another fleet's limits.
    smallest = _OWN_PART * few_nodes * another_fleet * beyond_limits
    # 95 % of the healthy nodes are so near their level: 2.5 % lie above and as many below.
    half_widths = student_t_quantile((1 + _POWER) / 2, DEGREES) * scales
    return NodeTests(parts, kinds, deviations, scales, limits, half_widths, smallest, shares)


def _deviations_by_part(logs: Floats, keys: Sequence[JudgedFigure]) -> dict[NodePart, Floats]:
    """By run and node, how far each side (host, device, all devices together) lies from the usual
    level, and how far each stack on a side lies from that side. A slow host then shows in its side
    alone, and a slow stack in the stack alone. ``logs``: ln(figure) by run, node and figure.
    """
    # The usual level of each figure: the mean over the runs of each node (axis 0 of logs), then the
    # median over the nodes (axis 0 of what is left).
    from_level = logs - median_of(_mean_of_runs(logs, 0), 0)
    stack_of = np.array([key.stack for key in keys])
    side_of = np.array([key.side for key in keys])
    by_part: dict[NodePart, Floats] = {}
    for side in get_args(NodeSide):
        # A mask of the figures (axis 2) of this side.
        of_side = side_of == side
        if not of_side.any():
            continue
        # By run and node the median over these figures: how far the side as a whole is off.
        factor = median_of(from_level[:, :, of_side], 2)
        by_part[NodePart(side=side)] = factor
        # Figures of all devices together are not split into stacks.
        if side == "together":
            continue
        for stack in sorted({*stack_of[of_side].tolist()}):
            of_both = of_side & (stack_of == stack)
            # What is left of the stack when the side's own factor is taken off.
            by_part[NodePart(stack, side)] = median_of(from_level[:, :, of_both], 2) - factor
    return by_part


def _quantiles(probabilities: Floats) -> Floats:
    """Those of Student's t with ``DEGREES`` degrees of freedom."""
    quantiles = [student_t_quantile(each, DEGREES) for each in probabilities.tolist()]
    return np.array(quantiles)


def _spread(deviations: Floats) -> Floats:
    """The MAD along the last axis as a standard deviation, for deviations with the median zero."""
    return _MAD_TO_SIGMA * median_of(abs(deviations), -1)


def _mean_of_runs(values: Floats, axis: int) -> Floats:
    """The mean along the axis of the runs without NaN; NaN where there is no run."""
    count = np.isfinite(values).sum(axis=axis)
    means = np.nansum(values, axis=axis) / np.maximum(count, 1)
    return np.where(count, means, np.nan)


def median_of(values: Floats, axis: int) -> Floats:
    """The median along an axis of the values that are not NaN; NaN where nothing is left. As
    ``numpy.nanmedian``, but much faster.
    """
    ordered = np.sort(np.moveaxis(values, axis, -1), axis=-1)  # NaN comes last
    # The positions of the middle values among those that are not NaN; equal for an odd number.
    count = np.isfinite(ordered).sum(axis=-1, keepdims=True)
    lower_middle = np.maximum((count - 1) // 2, 0)
    upper_middle = count // 2
    lower = np.take_along_axis(ordered, lower_middle, axis=-1)
    upper = np.take_along_axis(ordered, upper_middle, axis=-1)
    return 0.5 * (lower + upper)[..., 0]
