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


BACK = "Back to your machine"
"""The link from the pages of the example."""


def example_link(run: Fingerprint) -> str:
    """The link to the pages of the example, from those of a machine without a GPU."""
    name = machine_name(run.machine)
    return f"What a page with a GPU looks like: an example, measured on an {name}"


def example_heading(heading: str) -> str:
    """The heading of a page of the example."""
    return f"Example: {heading}"


def example_of_another(about: str) -> str:
    """The line below this heading. ``about``: which machine the figures are of."""
    return f"These figures are of another machine, not of yours: {about}"
