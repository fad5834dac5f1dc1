"""What is suspicious about times of a chain that ``overhead check`` measured: legal, but probably wrong."""

from __future__ import annotations

from overhead.measure.sampling.chain import DeviceTime

_LEAST_WAIT_NS = 2_000
"""A wait that is this much longer than an empty one waits for something."""
_LARGEST_SHARE = 300
"""A unit whose part of T(n) exceeds its device time by more than this is suspicious."""
_LEAST_GROWTH = 1.5
"""Many units take at least this many times as long on the device as an eighth of them."""


def blocking_warning(synchronous: bool, issue: float, empty: float, one: float, most: float) -> str:
    """What is suspicious about these times, ns; empty if nothing is.

    ``issue``: of one unit. ``empty``, ``one``, ``most``: of the wait after no unit, one unit and the most units.
    """
    waited = f"wait() takes {one / 1e3:.1f} us after one unit and {empty / 1e3:.1f} us after none"
    if synchronous and one > 3 * empty + 10 * _LEAST_WAIT_NS:
        return f"synchronous is True, but {waited}: does issue() return before the work is done?"
    # A CPU device may have run one unit before issue() returns, but not all of them.
    nothing_left = max(one, most) < 1.2 * empty + _LEAST_WAIT_NS / 10
    if not synchronous and nothing_left and issue > 2 * empty:
        return (
            f"{waited}: if issue() returns only when the work is done, synchronous must be True; "
            "if it returns earlier, does wait() wait for the work?"
        )
    return ""


def unread_warning(pattern: str, empty: float, left: float, full: float) -> str:
    """What is suspicious about a unit that contains its own wait or read; empty if nothing is.

    ``full``: the wait after some units without it, ns. ``left``: the wait after the same units with it. ``empty``: the
    wait after no unit.
    """
    if left < empty + max(10 * _LEAST_WAIT_NS, 0.5 * (full - empty)):
        return ""
    return (
        f"the pattern is {pattern}, but {(left - empty) / 1e3:.1f} us of work are left for wait() afterwards: "
        "does the call in each unit return before the unit has run?"
    )


def unfinished_warning(few: float, many: float, window: float, n: int) -> str:
    """What is suspicious about these times of ``executed``, ns; empty if nothing is.

    ``few``: after one unit and its wait. ``many``: after n units and their wait, which took ``window``.
    """
    if many - few < max(10 * _LEAST_WAIT_NS, window / 2):
        return ""
    return (
        f"executed() takes {few / 1e3:.0f} us after 1 unit and its wait, and {many / 1e3:.0f} us after {n} units and "
        "their wait: does wait() return before the work is done, or does the library do it only when values are read?"
    )


def device_time_warning(per_unit: float, window: float, *, fused: bool = False) -> str:
    """What is suspicious about the device time of a unit, when a unit adds ``window`` to T(n); both in ns.

    ``fused``: a unit is one turn of a loop on the device, which may take less than 1 ns.
    """
    if per_unit >= max(0.0 if fused else 1.0, window / _LARGEST_SHARE):
        return ""
    return f"the device time of a unit is {per_unit:.2g} ns, but a unit adds {window:.0f} ns to T(n): is span in ns?"


def span_warning(few: DeviceTime, many: DeviceTime) -> str:
    """What is suspicious about device times of few and of many units; empty if nothing is."""
    if many.span > _LEAST_GROWTH * few.span:
        return ""
    return (
        f"span is {few.span:.0f} ns for {few.n} units and {many.span:.0f} ns for {many.n}: "
        "it must be the time of all n units, not of one"
    )
