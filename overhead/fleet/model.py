"""The model of equal nodes, its tests, and their limits.

    ln y = level of the figure + factor of the node and side + residual of the stack + noise

Level: the median over the nodes of each node's mean over its runs. Factor: the median of the deviations from the level
over the node's figures of one side (host, device, all devices together). Residual: the median over the stack's figures
of a side, after the factor is taken off. So a slow host and a slow stack are told apart, and the tests are few.

A run is beyond the limit of a test if it deviates by more than a scale times Student's t with ``DEGREES`` degrees of
freedom, for the heavy tails. The scale is the robust spread between the nodes (MAD), at least ``FLOORS``. The tests of
a node share the chance ``FALSE_ALARMS`` (Bonferroni, weighted by ``SHARES``), however alike two runs of a node are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from scipy.special import stdtr, stdtrit

from overhead.fleet.node_files import FigureSide, NodeFigure
from overhead.measure.fitting.line import Floats

RUNS_OF_A_NODE = 2
"""The newest runs of a node that count. The node is slow if each of them is beyond the limit of one test."""
LEAST_NODES = 5
"""With fewer equal nodes a test has no result."""
FALSE_ALARMS = 1e-3
"""The largest share of healthy nodes that are called slow."""
DEGREES = 8
"""With more, made nodes of the committed H100 runs give too many false alarms; with fewer, a host that is 1.35 times as
slow is found too rarely (``tests/fleet/power.py``)."""
SHARES = {"host": 0.55, "device": 0.05, "together": 0.05, "stacks": 0.35}
FLOORS = {"host": 0.036, "device": 0.0121, "together": 0.036, "stacks": 0.020}
"""The least scales of ln(figure). ``host``: the MAD between the boards of the committed H100 runs; ``device``: the
spread in ``reading/next_run.json``; ``stacks``: the median over the stacks of the H100 runs; ``together``: as ``host``,
because no committed run measured it."""
_FEW = 3.0
"""The scale is multiplied by 1 + ``_FEW`` over the number of nodes: the MAD of few nodes is often too small."""
_MAD_TO_SIGMA, _POWER = 1.4826, 0.95


@dataclass(frozen=True)
class NodeTests:
    """The tests of equal nodes. ``names``: ``host``, or ``torch (host)`` for a stack. All numbers are of ln(figure).

    ``deviations``: by test, run (the newest first) and node; NaN where there is none. ``scales``, ``limits``: by test.
    ``half_widths``: 95 % of the healthy nodes are so near their level. ``smallest``: by number of runs and test what
    these runs find with 95 % power. ``shares``: of ``FALSE_ALARMS``, by test.
    """

    names: Sequence[str]
    deviations: Floats
    scales: Floats
    limits: Floats
    half_widths: Floats
    smallest: Floats
    shares: Floats

    def chance(self, test: int, deviation: float) -> float:
        """The largest share of healthy nodes that are as far beyond the limit of any test."""
        return min(1.0, float(stdtr(DEGREES, -deviation / self.scales[test]) / self.shares[test]))


def tests_of(logs: Floats, keys: Sequence[NodeFigure]) -> NodeTests:
    """The tests of nodes, with the limits that the spread between these nodes gives.

    ``logs``: ln(figure) by run, node and figure, NaN where there is none. ``keys``: of the figures.
    """
    from_level = logs - median_of(_mean_of_runs(logs, 0), 0)
    of_stack, of_side = np.array([key.stack for key in keys]), np.array([key.side for key in keys])
    found: dict[str, Floats] = {}
    kinds: list[str] = []
    for side in (side for side in get_args(FigureSide) if side in of_side):
        found[side] = median_of(from_level[:, :, of_side == side], 2)
        own = sorted({*of_stack[of_side == side].tolist()}) if side != "together" else []
        for stack in own:
            figures = (of_side == side) & (of_stack == stack)
            found[f"{stack} ({side})"] = median_of(from_level[:, :, figures], 2) - found[side]
        kinds += [side] + ["stacks"] * len(own)
    deviations = np.array([*found.values()]).reshape(len(found), *logs.shape[:2])
    deviations -= median_of(_mean_of_runs(deviations, 1), 1)[:, None, None]
    deviations[np.isfinite(deviations).any(axis=1).sum(axis=1) < LEAST_NODES] = np.nan

    shares = np.array([SHARES[kind] / (kinds.count(kind) if kind == "stacks" else 1) for kind in kinds])
    few = 1 + _FEW / logs.shape[1]
    scales = np.fmax(few * _spread(_mean_of_runs(deviations, 1)), [FLOORS[kind] for kind in kinds])
    limits = stdtrit(DEGREES, 1 - FALSE_ALARMS * shares) * scales
    of_runs = np.fmax(scales, _spread(deviations.reshape(len(found), logs.shape[0] * logs.shape[1])))
    smallest = [limits + stdtrit(DEGREES, 1 - (1 - _POWER) / runs) * of_runs for runs in range(1, RUNS_OF_A_NODE + 1)]
    half_widths = stdtrit(DEGREES, (1 + _POWER) / 2) * scales
    return NodeTests([*found], deviations, scales, limits, half_widths, np.array(smallest), shares)


def _spread(deviations: Floats) -> Floats:
    """The MAD along the last axis as a standard deviation, for deviations with the median zero."""
    return _MAD_TO_SIGMA * median_of(abs(deviations), -1)


def _mean_of_runs(values: Floats, axis: int) -> Floats:
    """The mean along the axis of the runs without NaN; NaN where there is no run."""
    count = np.isfinite(values).sum(axis=axis)
    return np.where(count, np.nansum(values, axis=axis) / np.maximum(count, 1), np.nan)


def median_of(values: Floats, axis: int) -> Floats:
    """The median along an axis without NaN; NaN where nothing is left. Much faster than ``numpy.nanmedian``."""
    ordered = np.sort(np.moveaxis(values, axis, -1), axis=-1)
    count = np.isfinite(ordered).sum(axis=-1, keepdims=True)
    ends = [np.take_along_axis(ordered, np.maximum(at, 0), axis=-1) for at in ((count - 1) // 2, count // 2)]
    return 0.5 * (ends[0] + ends[1])[..., 0]
