"""Why no total is divided by a count, and the rules that a number must pass."""

from __future__ import annotations

from overhead.profiles import PROFILES
from overhead.words.format import listed

IDEA = (
    "A case is a chain of identical units of work. It is timed for several n, and a line is fitted with its intercept: "
    "T(n) = fixed + slope × n. The slope is what one more unit costs. The intercept is what a submission and a wait "
    "cost, whatever they hold.",
    "Dividing a total by a count mixes the two, and by how much depends on the count and on the wait.",
)


def _processes() -> str:
    """How many processes a case has, by profile."""
    return listed([str(plan.processes) for plan in PROFILES.values()], "or")


RULES = (
    ("The work happened", "Values read back prove the number and the order of the units, once a round, outside every "
     "window."),
    ("It is a line", "The medians of the rungs are held against the line; one that bends is called nonlinear and "
     "carries no value."),
    ("It stands clear", "The ladder climbs until what the slope adds stands clear of the clock and of the wait's own "
     "step."),
    ("It repeats", f"{_processes()} fresh processes by profile, fewer if they would end after the profile's time "
     "limit; the interval is over processes, at their canary, and a figure whose interval is wider than the "
     "profile's target is called noisy. Another run may meet another clock."),
    ("Drift cancels", "What is subtracted or divided alternated within each round in one process; differences are "
     "formed per round. A canary tells rounds of a slow processor or of another clock; they are left out of the fit."),
    ("One at a time", "A worker measures only while its run holds the lock of the machine's devices."),
    ("The window is known", "Each record says what its window holds; a ratio is refused where windows differ in "
     "anything but the named axis."),
    ("Nothing is hidden", "A missing number has its reason in words. Raw samples are kept, also those that a fit "
     "leaves out: interrupted samples, slow rounds, processes at another clock."),
)  # fmt: skip
