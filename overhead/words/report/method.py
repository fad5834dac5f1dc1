"""Why no total is divided by a count, and the rules that a number must pass."""

from __future__ import annotations

from overhead.profiles import PROFILES
from overhead.words.format import listed

ANSWER = (
    "The cost of a launch is the time that one more launch adds to a chain of n of them: the slope"
    " of T(n), and not a total divided by n."
)
IDEA = (
    (
        "A case is a chain of n equal dispatches, launches, calls or steps. The chain is timed for"
        " several n, and a line is fitted: T(n) = one-off cost + cost \u00d7 n. The cost is the"
        " time that one more of them adds. The one-off cost is the time of one submission and one"
        " wait, and does not depend on n."
    ),
    (
        "A total divided by a count mixes the cost with the one-off cost. So such a quotient is too"
        " high, by how much depends on the count and on the wait."
    ),
)


def _processes() -> str:
    """How many processes a case has, by profile."""
    return listed([str(plan.processes) for plan in PROFILES.values()], "or")


RULES = (
    (
        "The work happened",
        "Once in each round, outside of the timed part, values are read back. These values prove "
        "how many calls ran, and in which order.",
    ),
    (
        "It is a line",
        "The times of all lengths n must lie on one line. "
        "A case that bends is called nonlinear and has no cost.",
    ),
    (
        "It is above the noise",
        "Chains grow until n × cost is much longer than a step of the clock and than the "
        "variation of the wait.",
    ),
    (
        "It repeats",
        f"{_processes()} fresh processes measure each case, by profile; "
        "fewer if they would exceed the time limit of the profile. "
        "The interval is over processes, corrected for the speed of the CPU. "
        "A figure is called noisy if its interval is wider than the limit of the profile.",
    ),
    (
        "Drift cancels",
        "Two cases whose difference or ratio is shown are measured in turn, "
        "in each round of one process. "
        "A reference loop shows the rounds in which the CPU was slow. "
        "A cost leaves these rounds out.",
    ),
    ("One at a time", "A lock lets only one run measure on a machine at a time."),
    (
        "What is timed is known",
        "Each case of the file says what is timed. No ratio is formed of two cases that "
        "differ in anything else than what is compared.",
    ),
    (
        "Nothing is hidden",
        "A missing number has its reason. Raw samples are kept, also those that a cost leaves out: "
        "interrupted samples, slow rounds, processes at another clock frequency.",
    ),
)
