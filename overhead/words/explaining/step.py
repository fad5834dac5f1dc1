"""What was explained, and how, in words."""

from __future__ import annotations

from overhead.explaining.record import BETWEEN, ExplainedProgram, Explanation, ReplayCheck
from overhead.reading.plain_text import plain
from overhead.words.format import percent
from overhead.words.reasons import sentence

UNRANKED = (
    "Operations are not listed, because the profile failed its check. The JSON file has their"
    " times, which are not checked."
)


def operation_name(name: str) -> str:
    """What a row of host work is called."""
    return "between operations" if name == BETWEEN else name


def heading(function: str, file: str, device: str) -> str:
    """The step that is explained."""
    return f"{function} in {file}, on {device}"


def device_of(found: Explanation) -> str:
    """Where the step runs: the device that it uses, else the processor."""
    processor = (
        "a processor that the trace does not name" if found.is_of_a_trace else found.machine.cpu
    )
    return found.program.device or processor


def question(program: ExplainedProgram) -> str:
    """The question that the page of an explained step answers: its heading."""
    return (
        f"What limits {plain(program.function, 60)} in {plain(program.file, 80)}: CPU, GPU or"
        " synchronisation?"
    )


def measured_when(found: Explanation) -> str:
    """The device and the time of the measurement, and what was taken as the step."""
    device = device_of(found)
    taken = taken_as_step(found.program)
    what = "explained" if found.is_of_a_trace else "measured"
    when = f"{device}; {what} {found.created[:10]} at {found.created[11:16]} UTC"
    return f"{when}. {taken}" if taken else when


def taken_as_step(program: ExplainedProgram) -> str:
    """Which of two things was taken as the step: the function that the user named, or what it
    returns, if that can be called. Empty where this is not known, as in a trace.
    """
    # plain(): names from outside, in one line of at most 60 characters.
    name = plain(program.function, 60)
    type_name = plain(program.returned, 60)
    if program.taken == "returned":
        return f"The step is the {type_name} that {name} returns."
    if program.taken == "itself":
        returned = f"a value of type {type_name}" if type_name else "nothing"
        return f"The step is {name} itself: it returns {returned}, not a function."
    return ""


def how_replayed(replay: ReplayCheck) -> str:
    """How the profile was checked, and with which result: a step that is computed from it (the
    replay) should take as long as the step without the profiler.
    """
    if replay.ratio is None:
        return f"The profile was not checked: {sentence(replay.reason)}."
    doubt = ""
    # ``ok``: the computed time is within 15 % of the measured one. ``ratio``: the first over the
    # second.
    if not replay.ok:
        if replay.ratio > 1:
            doubt = ": the profile counts too much"
        else:
            doubt = ": the profile misses part of the step"
    took = "the step takes in the same process without the profiler"
    if replay.unchecked:  # a trace that somebody recorded
        took = "a step takes in the trace"
    return (
        f"A model of the queue, made from the profile, gives {percent(replay.ratio)} of the time"
        f" that {took}{doubt}."
    )


def how_counted(found: Explanation) -> str:
    """Where counts and lines are from."""
    if found.is_of_a_trace:
        return f"From the trace: {found.profiled_steps} steps."
    return f"From a profile of {found.profiled_steps} steps, in a process of its own."


def how_timed(found: Explanation) -> str:
    """Where the times are from."""
    if found.is_of_a_trace:
        return "As recorded, with the cost of the profiler."
    return "How much longer more steps take, in fresh processes without a profiler."
