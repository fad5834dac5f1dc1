"""What a value can be used for: is it above zero, has it two speeds, is it precise enough to
compare two runs?
"""

from __future__ import annotations

import dataclasses

from overhead.results import Figure, Origin, Value

COMPARED_WITHIN = 0.10
"""The wanted half-width of the quick profile, which is the widest of all profiles. A run of another
profile calls a value of half this width noisy, so the status of a figure says nothing where runs of
several profiles stand side by side.
"""


def is_steady(value: Value) -> bool:
    """Whether the half-width of the interval is at most ``COMPARED_WITHIN`` of the value."""
    if value.low is None or value.high is None or value.value <= 0:
        return False
    half_width = (value.high - value.low) / 2
    return half_width <= COMPARED_WITHIN * value.value


def by_interval(value: Value) -> Value:
    """The value, called ``ok`` or ``noisy`` by its interval alone; other statuses stay."""
    if value.status not in ("ok", "noisy"):
        return value
    return dataclasses.replace(value, status="ok" if is_steady(value) else "noisy")


def resolved(figure: Figure | None) -> bool:
    """Whether the figure has a value above zero, and its interval, if it has one, lies above zero
    too.
    """
    value = figure.measured if figure is not None else None
    return value is not None and value.resolved


def two_speeds(figure: Figure) -> tuple[float, ...]:
    """The lower and the higher value of a figure with status ``bimodal``, in its unit; () of any
    other.
    """
    if figure.status != "bimodal" or len(figure.modes) < 2:
        return ()
    return min(figure.modes), max(figure.modes)


def mode_of(figure: Figure, mode: float) -> Value:
    """One of the figure's ``modes`` as a value in its unit, without an interval."""
    origin = Origin(figure=figure, mode=figure.modes.index(mode))
    return Value(mode, status=figure.status, origin=origin)
