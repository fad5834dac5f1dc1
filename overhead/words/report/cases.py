"""Cases by name, and what a page of all of them says of the run."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.missing_values import missing_case
from overhead.reading.plain_text import plain
from overhead.reading.view import TargetView
from overhead.results import VALUED, Fingerprint, Record
from overhead.words.names import CALLER_WORDS
from overhead.words.reasons import with_status

NOTHING_MISSING = "Nothing is missing."
NEEDS_NVIDIA = "it needs an NVIDIA GPU"
NO_CASE = "The file holds no case."
CASES_READ_AS = (
    "Times are for one dispatch, launch, call or step, in µs, with 95 % intervals. These are for a"
    " whole chain or call: one-off cost, empty wait, single-shot latency, preparation and first"
    " call. A case is named by its pattern and by what differs from the first case of the target. A"
    " status links to the times behind the figure. Unpinned: the median of several processes that"
    " are not pinned to a CPU core, with their range. Up to n: the longest chain for which the cost"
    " was seen to hold; of two numbers, the first is the shortest chain."
)


def case_name(target: TargetView, record: Record) -> str:
    """A case in a list of several: its target, its pattern and who calls."""
    return f"{target.label} {target.pattern_label(record)} {CALLER_WORDS[record.caller]}"


def case_title(target: TargetView, record: Record) -> str:
    """A case as the title of a picture."""
    return f"{target.short}: {target.pattern_label(record)}, {CALLER_WORDS[record.caller]}"


def number_of_cases(run: Fingerprint) -> str:
    """How many cases the run has, and how many of them have a figure."""
    valued = sum(record.status in VALUED for record in run.records)
    return f"{len(run.records):,}, {valued:,} of them with a figure"


def versions(run: Fingerprint) -> str:
    """The versions of the method and of the file."""
    return f"{run.method_version}, {run.schema_version}"


def to_know(flags: Sequence[str]) -> str:
    """What is to know of a run, from its flags."""
    return f"Notes on this run: {'. '.join(flags)}."


def status(record: Record) -> str:
    """The status of a case; where it has no cost, also why."""
    complete = record.figure("complete")
    has_cost = complete is not None and complete.measured is not None
    why = "" if has_cost else missing_case(record).detail
    return plain(with_status(record.status, why), 120)
