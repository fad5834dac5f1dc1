"""Cases by name, and what a page of all of them says of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from overhead.reading.missing_values import missing_case
from overhead.reading.plain_text import plain
from overhead.reading.view import TargetView, View
from overhead.results import VALUED, Fingerprint, Record
from overhead.words.format import count, listed
from overhead.words.names import CALLER_WORDS
from overhead.words.reasons import sentence

NOTHING_MISSING = "Nothing is missing."
NEEDS_NVIDIA = "it needs an NVIDIA GPU"
NO_CASE = "The file holds no case."
HOW_TO_READ_TABLES = "How to read these tables"
CASES_READ_AS = (
    "Times are for one dispatch, launch, call or step, in µs, with 95 % intervals. In the table of"
    " the other figures, these are for a whole chain or call: one-off cost, empty wait, single-shot"
    " latency, preparation and first call.",
    "A case is named by its pattern and by what differs from the first case of the target.",
    "A status links to the times behind the figure.",
    "Unpinned: the median of several processes that are not pinned to a CPU core, and their range.",
    "Up to n: the longest chain for which the cost was seen to hold; of two numbers, the first is"
    " the shortest chain.",
)
OTHER_FIGURES = "The other figures of each case"


def answer(view: View) -> str:
    """How many cases of how many stacks a run has, and how many of them have which status."""
    statuses = Counter(record.status for record in view.counted)
    stacks = count(len(view.stacks), "stack")
    cases = f"{count(statuses.total(), 'case')} of {stacks}"
    others = [f"{number:,} {status}" for status, number in statuses.items() if status != "ok"]
    ok = f"{statuses['ok']:,} ok"
    answered = f"{cases}: {listed([ok, *others])}."
    return " ".join(filter(None, [answered, not_counted(view)]))


def not_counted(view: View) -> str:
    """Which cases of the run sentences do not count, because they measure no stack; '' for none."""
    counted = {record.key for record in view.counted}
    empty_calls = 0
    names: list[str] = []
    run_nothing = 0
    for target in view.targets:
        if target.executes:
            empty = [record for record in target.records if record.key not in counted]
            empty_calls += len(empty)
            names += [record.stack for record in empty]
        else:
            run_nothing += len(target.records)
    texts = []
    if empty_calls:
        named = listed([*dict.fromkeys(names)])
        texts.append(f"{count(empty_calls, 'case')} of {named}, an empty call")
    if run_nothing:
        texts.append(f"{count(run_nothing, 'case')} on devices that run nothing")
    return f"Not counted, since no stack runs: {listed(texts)}." if texts else ""


def targets_title(adapter: str) -> str:
    """The title of the table of targets. ``adapter``: that of most, which the rows leave out."""
    return (
        f"Targets; where no adapter is named, it is {plain(adapter, 80)}" if adapter else "Targets"
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


def why_no_cost(record: Record) -> str:
    """Why a case has no cost; '' where it has one."""
    complete = record.figure("complete")
    has_cost = complete is not None and complete.measured is not None
    return "" if has_cost else plain(sentence(missing_case(record).detail), 200)
