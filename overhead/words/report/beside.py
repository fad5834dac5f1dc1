"""This machine compared with others, and its runs over time: sentences, titles and captions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from overhead.blocks.parts import InMicroseconds
from overhead.reading.beside import (
    Apart,
    Beside,
    Spreads,
    version_changes,
)
from overhead.reading.key_figures import (
    KeyFigure,
    key_figures,
)
from overhead.reading.next_run import (
    has_next_run,
    kind_of,
)
from overhead.reading.plain_text import plain
from overhead.reading.view import View, boards_of
from overhead.results import Machine, Origin, formed
from overhead.words.beside import WHY_APART, version_changes_text
from overhead.words.format import count, whole
from overhead.words.key_figures import label, value_text
from overhead.words.report.machines import machine_name

NO_OTHER_RUN = "No other run is compared with this one. overhead report --reference RUN names one."
UNIT = "figure of this run divided by the figure of the other run; left of 1: this run costs less"
OVER_TIME = (
    "Each mark is a figure divided by the same figure of the first run. Hollow: noisy. A vertical"
    " line: a version changed since the run before. Rented machines of one kind can have different"
    " boards, so the board can be the cause too."
)
NEXT_RUN = InMicroseconds("run-to-run")
PANELS = {
    "host": "Host-bound: the CPU is the limit",
    "device": "Device-bound, or bound by both",
    "": "Waits and shares",
}
"""The title of each panel, by what bounds its figures."""
_HOLLOW = (
    "A hollow mark is noisy: its interval reaches more than 10 % to one side, so it is not judged."
)


def other_run(found: Beside) -> str:
    """The other run, with its board where that is known to be another."""
    own, run = found.view.fingerprint, found.other.fingerprint
    boards = boards_of(own.records)[:1], boards_of(run.records)[:1]
    board = ", other board" if all(boards) and boards[0] != boards[1] else ""
    when = "an earlier" if run.created < own.created else "a later"
    name = f"{when} run{board}" if own.machine.id == run.machine.id else machine_name(run.machine)
    return f"{name} ({run.created[:10]}, {run.profile}, method {run.method_version})"


def picture_title(machine: Machine, found: Beside) -> str:
    """This machine compared with the other run."""
    return f"{machine_name(machine)} compared with {other_run(found)}"


def caption(found: Sequence[Beside], spreads: Spreads, view: View) -> str:
    """How to read the picture, where its run-to-run ranges come from, which versions differ and
    what is left out.
    """
    said = [
        "Both runs of a pair use the same stack, caller and parameters.",
        "The values of the other runs stand at the end of each row.",
        _band(spreads, view),
    ]
    for one in found:
        changes = plain(
            version_changes_text(version_changes(one.other.fingerprint, view.fingerprint)), 300
        )
        if changes:
            said.append(f"Versions that changed between {other_run(one)} and this run: {changes}.")
        if one.left_out:
            reasons = Counter(one.left_out.values())
            numbers = [
                f"{_counted(one, reason, number)} {WHY_APART[reason]}"
                for reason, number in reasons.items()
            ]
            said.append(f"Not compared: {'; '.join(numbers)}.")
    return " ".join(dict.fromkeys(said))


def _counted(found: Beside, reason: Apart, number: int) -> str:
    """How many figures this reason leaves out; each is one that either run has."""
    keys = [key for key, own in found.left_out.items() if own == reason]
    origins: dict[str, Origin | None] = {}
    for run in (found.other, found.view):
        for figure in run.once(key_figures):
            if figure.measured is not None:
                origins[figure.key] = figure.measured.origin
    return count(number, "figure", formed("count", *(origins.get(key) for key in keys)))


def _band(spreads: Spreads, view: View) -> str:
    """Where the run-to-run range of each row comes from, and what a mark outside of it means."""
    if not spreads:
        return (
            "How much runs differ on this machine is not known. Measure a second time to learn it"
            " (make report)."
        )
    most = max(spreads.values(), key=lambda spread: spread.boards)
    known = has_next_run(view.fingerprint.machine)
    machine = view.fingerprint.machine
    boards = whole(
        most.boards, formed("boards of a spread", words=kind_of(machine)) if known else None
    )
    source = f"{boards} {'boards' if known else 'runs of this machine'}"
    return (
        f"Blue area: the run-to-run range, which holds 9 of 10 runs (from {source}). Red: outside"
        f" of this range. {_HOLLOW}"
    )


def row_label(figure: KeyFigure) -> str:
    """A key figure with its value in this run."""
    return f"{label(figure)}: {value_text(figure)}"


def table_title(device: str) -> str:
    """The title of the table of key figures. ``device``: the one that all of them are of, or ''."""
    return "Key figures" + (f", {device}" if device else "")


def over_time_alternative(figures: int, runs: int) -> str:
    """What the picture over time has, for screen readers."""
    return f"{count(figures, 'figure')} of {count(runs, 'run')}"
