"""Sentences on a whole run: the processor's speed, software adapters, what is missing."""

from __future__ import annotations

from overhead.reading.summary import is_software_only, missing_stacks, speed_change
from overhead.reading.view import View
from overhead.results import Origin, Value, exactly
from overhead.words.format import MICRO, count, listed, percent
from overhead.words.printed import printed
from overhead.words.reasons import sentence


def speed_sentence(view: View) -> str:
    """How the processor's speed changed between processes; '' where it was steady or is not
    known.
    """
    canary = speed_change(view)
    if canary is None:
        return ""
    run = view.fingerprint
    least = Value(
        canary.least_us,
        origin=Origin(operation="state of the run", of=run, words="canary_us_least"),
    )
    most = Value(
        canary.most_us, origin=Origin(operation="state of the run", of=run, words="canary_us_most")
    )
    change = percent(most / least - exactly(1.0))
    return (
        f"The speed of the CPU changed by {change} between the processes of this run: the reference"
        f" loop, which is timed beside every sample, took {_four_digits(least)} to"
        f" {_four_digits(most)} {MICRO}. CPU-bound costs change with this speed."
    )


def _four_digits(time: Value) -> str:
    return printed(f"{time.value:.4g}", time)


def software_sentence(view: View) -> str:
    """A warning where every adapter is a software one, else ''."""
    if not is_software_only(view):
        return ""
    return (
        "No GPU was measured: every adapter here is software and computes on the CPU. These figures"
        " show only that the measurement works. They say nothing about a GPU."
    )


def missing_sentences(view: View, where: str = "below") -> str:
    """The stacks that this machine lacks and the commands that add them; '' where none is missing.

    A stack of an NVIDIA GPU has no command where there is no such GPU. ``where``: where the reader
    finds the reasons.
    """
    found = missing_stacks(view)
    said = []
    if found.addable:
        names = listed([one.stack for one in found.addable])
        said.append(f"Not measured here: {names}. The reasons are {where}.")
    if found.by_command:
        adds = [
            f"{listed(stacks)}: {sentence(command)}" for command, stacks in found.by_command.items()
        ]
        said.append(f"To add these stacks: {'; '.join(adds)}.")
    if found.for_nvidia:
        names = listed([one.stack for one in found.for_nvidia])
        said.append(f"These need an NVIDIA GPU, which this machine does not have: {names}.")
    return " ".join(said)


def left_out_sentence(number_of: int) -> str:
    """How many cases the run left out; '' for none."""
    return (
        f"This run left out {count(number_of, 'case')}. A larger --profile, or --pattern with their"
        " pattern, measures them."
        if number_of
        else ""
    )
