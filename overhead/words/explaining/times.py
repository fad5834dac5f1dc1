"""The times of a step as text."""

from __future__ import annotations

from overhead.explaining.record import ReplayCheck
from overhead.explaining.verdict import resolved_times
from overhead.results import Figure
from overhead.words.format import (
    MICRO,
    factor,
    micro_of,
    micro_or_why,
    micro_spread,
    number,
    positive_spread,
)
from overhead.words.reasons import sentence
from overhead.words.templates import micro_interval

QUOTE_THIS = "pinned to a CPU core; quote this time"


def time_text(time: Figure) -> str:
    """A time in µs with its interval, without unit, for a cell of a table. If the time has two
    speeds (its samples form two groups), both; if its interval is too wide, that it is "too
    uncertain"; if it has no value, its status.
    """
    times = resolved_times(time)  # two for a time with two speeds, none if it is too uncertain
    if len(times) > 1:
        return " or ".join(number(each / 1e3) for each in times)
    if times:
        return micro_spread(time)
    if time.measured is None:
        return time.status
    interval = micro_interval(time.measured)
    return f"too uncertain ({interval})" if interval else "too uncertain"


def given_text(time: Figure) -> str:
    """A time in µs with all digits that the user gave."""
    return f"{(time.value or 0.0) / 1e3:,.10g}"


def device_text(time: Figure) -> str:
    """The device's time in µs with the shortest and the longest step; alone where all are equal."""
    measured = time.measured
    if measured is not None and measured.low == measured.high is not None and measured.value > 0:
        return micro_of(measured.value)
    return micro_or_why(time)


def mean_text(mean: Figure) -> str:
    """A mean in µs with its interval; few slow steps make it so wide that it may begin below
    zero.
    """
    return positive_spread(mean.measured / 1e3) if mean.measured is not None else mean.status


def replayed_text(replayed: Figure) -> str:
    """The replayed step in µs, with as many digits as in the sentence about it."""
    return micro_of(replayed.measured) if replayed.measured is not None else micro_or_why(replayed)


def replay_remark(replay: ReplayCheck) -> str:
    """The remark beside the replayed step, which is computed from the profile: its ratio to the
    measured step, and what is wrong with the profile if the two are too far apart.
    """
    measured_ns = replay.measured.value or 0
    how_measured = sentence(replay.measured.rule)  # where that time is from
    ratio = replay.ratio or 0.0
    doubt = ""
    # ``ok``: the computed time is within 15 % of the measured one.
    if not replay.ok:
        if ratio > 1:
            doubt = ": the profile counts too much"
        else:
            doubt = ": the profile misses part of the step"
    return f"{factor(ratio)} the {micro_of(measured_ns)} {MICRO} {how_measured}{doubt}"
