"""Sentences on a whole run: the processor's speed, software adapters, what is missing."""

from __future__ import annotations

from overhead.reading.summary import is_software_only, missing_stacks, speed_change
from overhead.reading.view import View
from overhead.results import Origin, Value, exactly
from overhead.words.format import MICRO, count, listed, percent
from overhead.words.printed import printed
from overhead.words.reasons import sentence


def speed_sentence(view: View) -> str:
    """A warning that the processor's speed changed between the processes of a run, by the reference
    loop, a fixed piece of work that is timed beside every sample. '' where the speed was steady or
    is not known.
    """
    reference_loop = speed_change(view)
    if reference_loop is None:
        return ""
    run = view.fingerprint
    # ``canary``: the name of the reference loop in files. ``_us_least``, ``_us_most``: its median
    # time in the process where it was shortest, and where it was longest.
    # Where these numbers stand in the run, so that the check of a page's numbers finds them again.
    from_least = Origin(operation="state of the run", of=run, words="canary_us_least")
    from_most = Origin(operation="state of the run", of=run, words="canary_us_most")
    least = Value(reference_loop.least_us, origin=from_least)
    most = Value(reference_loop.most_us, origin=from_most)
    # Values, not numbers, so that the result has an origin too. exactly(1.0): without uncertainty.
    change = percent(most / least - exactly(1.0))
    return (
        f"The speed of the CPU changed by {change} between the processes of this run: the reference"
        f" loop, which is timed beside every sample, took {_four_digits(least)} to"
        f" {_four_digits(most)} {MICRO}. CPU-bound costs change with this speed."
    )


def _four_digits(time: Value) -> str:
    return printed(f"{time.value:.4g}", time)


def software_sentence(view: View) -> str:
    """A warning where every adapter (GPU as an API names it) is software on the CPU, else ''."""
    if not is_software_only(view):
        return ""
    return (
        "No GPU was measured: every adapter here is software and computes on the CPU. These figures"
        " show only that the measurement works. They say nothing about a GPU."
    )


def missing_sentences(view: View, where: str = "below") -> str:
    """Sentences on the stacks that the run could not measure, and the commands that install them;
    '' where none is missing.

    Stacks that need an NVIDIA GPU are named apart where there is none, because no command adds
    them. ``where``: where the reader finds the reasons.
    """
    missing = missing_stacks(view)
    sentences = []
    # ``addable``: those that this machine could have. ``by_command``: their names, by the command
    # that adds them.
    if missing.addable:
        names = listed([one.stack for one in missing.addable])
        sentences.append(f"Not measured here: {names}. The reasons are {where}.")
    if missing.by_command:
        commands = []
        for command, stacks in missing.by_command.items():
            commands.append(f"{listed(stacks)}: {sentence(command)}")
        sentences.append(f"To add these stacks: {'; '.join(commands)}.")
    if missing.for_nvidia:
        names = listed([one.stack for one in missing.for_nvidia])
        sentences.append(f"These need an NVIDIA GPU, which this machine does not have: {names}.")
    return " ".join(sentences)


def left_out_sentence(number_of: int) -> str:
    """A sentence on how many cases the plan of a run left out, and how to measure them; '' for
    none.
    """
    if not number_of:
        return ""
    cases = count(number_of, "case")
    return (
        f"This run left out {cases}. A larger --profile, or --pattern with their pattern, measures"
        " them."
    )
