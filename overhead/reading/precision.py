"""Whether a value is precise enough to be compared with one of another run."""

from __future__ import annotations

import dataclasses

from overhead.results import Value

COMPARED_WITHIN = 0.10
"""The target of the quick profile, which is the widest of all profiles. A run of another profile calls a value of half
this width noisy, so the status of a figure says nothing where runs of several profiles stand side by side."""


def is_steady(value: Value) -> bool:
    """Whether the half-width of the interval is at most ``COMPARED_WITHIN`` of the value."""
    if value.low is None or value.high is None or value.value <= 0:
        return False
    return (value.high - value.low) / 2 <= COMPARED_WITHIN * value.value


def by_interval(value: Value) -> Value:
    """The value, called ``ok`` or ``noisy`` by its interval alone; other statuses stay."""
    if value.status not in ("ok", "noisy"):
        return value
    return dataclasses.replace(value, status="ok" if is_steady(value) else "noisy")
