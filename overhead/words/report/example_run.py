"""The lines above the example run, which is shown where nothing was measured on this machine."""

from __future__ import annotations

from overhead.results import Fingerprint
from overhead.words.report.machines import machine_name

TO_MEASURE = (
    "To measure this machine: overhead run (some minutes), or overhead run --profile quick"
    " (faster)."
)
NO_RUN_YET = f"Nothing was measured here yet. {TO_MEASURE}"


def example_lines(run: Fingerprint) -> list[str]:
    """Two lines for the example run that is shown where nothing was measured yet: that it is one,
    and what to type to measure this machine. [] for any other run.
    """
    if not run.example:
        return []
    name = machine_name(run.machine)
    example = (
        f"Nothing was measured here yet. This is a run on an {name} that comes with overhead, as an"
        " example."
    )
    return [example, TO_MEASURE]
