"""This machine compared with others: sentences, titles and captions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from overhead.blocks.parts import InMicroseconds
from overhead.reading.beside import Apart, Beside, Spreads, version_changes
from overhead.reading.key_figures import key_figures
from overhead.reading.next_run import has_next_run, kind_of
from overhead.reading.plain_text import plain
from overhead.reading.view import View, boards_of
from overhead.results import Fingerprint, Machine, Origin, formed
from overhead.words.beside import WHY_APART, version_changes_text
from overhead.words.format import count, whole
from overhead.words.printed import named_in_a_file
from overhead.words.report.machines import machine_name

NO_OTHER_RUN = "No other run is compared with this one. overhead report --reference RUN names one."
UNIT = "this run divided by the other run; left of 1: this run costs less"
"""Below the axis."""
NOISY = "hollow: noisy, not judged"
BAND = "run-to-run range: 9 of 10 runs"
RED = "outside of the range"
THIS_RUN = "this run"
"""In the legend."""
NEXT_RUN = InMicroseconds("run-to-run")
PANELS = {
    "host": "Host-bound: the CPU is the limit",
    "device": "Device-bound, or bound by both",
    "": "Waits and shares",
}
"""The title of each panel, by what bounds its figures."""


def other_run(found: Beside) -> str:
    """The run that this one is compared with, with its day: ``NVIDIA H200 (2026-11-23)``, or ``an
    earlier run on another board (2026-11-25)``.
    """
    own, run = found.view.fingerprint, found.other.fingerprint
    # The first ten characters of the time are the day.
    day = f"({run.created[:10]})"
    if not _is_same_machine(own, run):
        return f"{machine_name(run.machine)} {day}"
    name = "an earlier run" if run.created < own.created else "a later run"
    if _is_of_other_board(own, run):
        name = f"{name} on another board"
    return f"{name} {day}"


def head(found: Beside) -> str:
    """The same in two short lines, above a column of values."""
    own, run = found.view.fingerprint, found.other.fingerprint
    day = run.created[:10]
    if not _is_same_machine(own, run):
        return f"{machine_name(run.machine)}\n{day}"
    board = "other board" if _is_of_other_board(own, run) else "this machine"
    return f"{board}\n{day}"


def _is_same_machine(own: Fingerprint, run: Fingerprint) -> bool:
    """Whether both runs are of one machine: its id is a hash of what it has."""
    return own.machine.id == run.machine.id


def _is_of_other_board(own: Fingerprint, run: Fingerprint) -> bool:
    """Whether both runs know the board of their first GPU, and these differ."""
    own_boards = boards_of(own.records)
    boards = boards_of(run.records)
    return bool(own_boards) and bool(boards) and own_boards[0] != boards[0]


def picture_title(machine: Machine, found: Beside) -> str:
    """This machine compared with the other run."""
    return f"{machine_name(machine)} compared with {other_run(found)}"


def caption(found: Sequence[Beside], spreads: Spreads, view: View) -> str:
    """The text below the picture that compares runs: what a pair has in common, where its
    run-to-run ranges come from, and how many figures are not compared. ``spreads``: how far two
    runs differ, by class of figure.
    """
    sentences = [
        "Both runs of a pair use the same stack, caller and parameters.",
        _band(spreads, view),
    ]
    sentences += [_not_compared(comparison) for comparison in found if comparison.left_out]
    each_once = dict.fromkeys(sentences)  # two comparisons can give the same sentence
    return " ".join(each_once)


VERSIONS = "Versions and settings that differ"
"""The title of the folded list."""


def differences(found: Sequence[Beside]) -> list[str]:
    """What else differs between this run and each other one: profile, and versions of software and
    of the method.
    """
    lines = []
    for comparison in found:
        own, run = comparison.view.fingerprint, comparison.other.fingerprint
        changed = version_changes(run, own)
        texts = [f"profile {run.profile} → {own.profile}"] if run.profile != own.profile else []
        texts.append(plain(version_changes_text(changed), 600))
        said = "; ".join(filter(None, texts))
        if said:
            lines.append(f"From {other_run(comparison)} to this run: {said}.")
    return lines


def _not_compared(found: Beside) -> str:
    """How many figures are in no pair, by reason."""
    texts = []
    for reason, number in Counter(found.left_out.values()).items():
        texts.append(f"{_counted(found, reason, number)} {WHY_APART[reason]}")
    return f"Not compared: {'; '.join(texts)}."


def _counted(found: Beside, reason: Apart, number: int) -> str:
    """``3 figures``: how many this reason leaves out of the comparison. The text knows the origin
    of each, in the run that has it, so that the check of the page's numbers can count them again.
    """
    # Where both runs have a figure, the origin of this run counts, which comes last.
    origins: dict[str, Origin | None] = {}
    for run in (found.other, found.view):
        # ``once``: what this function gives for the run, computed only the first time.
        for figure in run.once(key_figures):
            if figure.measured is not None:
                origins[figure.key] = figure.measured.origin
    counted = []
    for key, why in found.left_out.items():
        if why == reason:
            counted.append(origins.get(key))
    return count(number, "figure", formed("count", *counted))


def _band(spreads: Spreads, view: View) -> str:
    """Sentences on the run-to-run range, the area in each row in which 9 of 10 runs lie: from how
    many boards or runs it is known, and what a mark outside of it means. ``spreads``: how far runs
    differ; empty where that is not known.
    """
    if not spreads:
        return (
            "How much runs differ on this machine is not known. Measure a second time to learn it"
            " (make report)."
        )
    machine = view.fingerprint.machine
    # ``boards``: from how many boards (GPUs), or runs of this machine, a spread is known.
    most = max(spread.boards for spread in spreads.values())
    # Of a known kind of machine the spread is of many boards, else of runs of this one.
    if has_next_run(machine):
        boards = whole(most, formed("boards of a spread", words=kind_of(machine)))
        kind = named_in_a_file(kind_of(machine))
        source = f"published runs on {boards} boards of this kind ({kind}), whatever their stacks"
    else:
        source = f"{whole(most, None)} runs of this machine"
    return (
        f"The blue range is known from {source}. An interval that reaches more than 10 % to one"
        " side is noisy."
    )


def table_title(device: str) -> str:
    """The title of the table of key figures. ``device``: the one that all of them are of, or ''."""
    return f"Key figures, {device}" if device else "Key figures"
