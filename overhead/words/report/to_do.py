"""What to do here, in words: what a reader finds and can cite besides findings."""

from __future__ import annotations

from overhead.results import Fingerprint
from overhead.words.format import run_time
from overhead.words.printed import named_in_a_file
from overhead.words.report.machines import machine_name

TO_DO = "What to do here"
NO_SAVING = (
    "No change was found in this run that makes a launch clearly cheaper (1.5 times, in some cases"
    " 1.2 times)."
)
RUN_AS_JSON = "The run as JSON"
MORE = "More findings"
"""The words above those that a page folds."""


def how_to_check(samples: str, *, beside_run: bool) -> tuple[str, str]:
    """What to do to check the numbers, and the details. ``samples``: the path of the file of raw
    samples, from the current folder; with ``beside_run`` from the folder of the run's file. ''
    where it was not found.
    """
    title = "Compute a number again: the run's file has every figure, its interval and its status."
    if not samples:
        return title, ""
    from_run = ", beside the file of the run" if beside_run else ""
    return title, f"Raw samples: {named_in_a_file(samples)}{from_run}."


def how_to_cite(run: Fingerprint) -> tuple[str, str]:
    """What to name when a number of this run is cited, and the details."""
    created = run_time(run.created)
    title = (
        f"Cite a number as: overhead, method {run.method_version}, run of {created}, profile"
        f" {run.profile}, machine {run.machine.id}."
    )
    others = "Numbers of other runs name their own run: cite that one."
    return title, f"{machine_name(run.machine)}. {others}"
