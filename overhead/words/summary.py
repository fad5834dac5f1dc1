"""Sentences on a whole run: the processor's speed, software adapters, what is missing."""

from __future__ import annotations

from overhead.extras import install_command
from overhead.reading.plain_text import plain
from overhead.reading.summary import (
    CanaryRange,
    addable_on_cpu,
    is_software_only,
    missing_stacks,
    speed_change,
)
from overhead.reading.view import View
from overhead.results import Origin, Value, exactly
from overhead.words.format import MICRO, count, listed, percent, point
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
    least = _least_us(view, reference_loop)
    most = _most_us(view, reference_loop)
    # Values, not numbers, so that the result has an origin too. exactly(1.0): without uncertainty.
    change = percent(most / least - exactly(1.0))
    return (
        f"The speed of the CPU changed by {change} between the processes of this run: the reference"
        f" loop, which is timed beside every sample, took {_four_digits(least)} to"
        f" {_four_digits(most)} {MICRO}. CPU-bound costs change with this speed."
    )


def rough_sentence(view: View) -> str:
    """A short warning, for costs without their third digit, that the processor's speed changed; ''
    where it was steady or is not known.
    """
    reference_loop = speed_change(view)
    if reference_loop is None:
        return ""
    times = _most_us(view, reference_loop) / _least_us(view, reference_loop)
    return (
        f"The speed of the CPU changed by up to {point(times)} times during this run, so all costs"
        " are rough. overhead doctor names what disturbs a measurement here."
    )


def _least_us(view: View, reference_loop: CanaryRange) -> Value:
    """The shortest time of the reference loop. Its origin says where it stands in the run, so that
    the check of a page's numbers finds it again.
    """
    origin = Origin(operation="state of the run", of=view.fingerprint, words="canary_us_least")
    return Value(reference_loop.least_us, origin=origin)


def _most_us(view: View, reference_loop: CanaryRange) -> Value:
    """The longest time of the reference loop, with its origin."""
    origin = Origin(operation="state of the run", of=view.fingerprint, words="canary_us_most")
    return Value(reference_loop.most_us, origin=origin)


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
    them. On a machine without any GPU one command is told, for stacks that compute on the CPU.
    ``where``: where the reader finds the reasons.
    """
    if not view.has_gpu:
        return _missing_without_gpu(view, where)
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


def _missing_without_gpu(view: View, where: str) -> str:
    """What adds stacks to a run on a machine without a GPU, in one line."""
    sentences = []
    found = addable_on_cpu(view)
    if found.stacks:
        names = [plain(view.facts(stack).label, 40) for stack in found.stacks]
        sentences.append(f"To add {listed(names)}: {install_command(*found.extras)}.")
    sentences.append("To measure a GPU, run overhead on a machine with one.")
    if view.fingerprint.unavailable:
        sentences.append(f"All missing stacks and the reasons are {where}.")
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
