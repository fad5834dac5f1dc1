"""What a run says while it measures, and what it says that it lacks."""

from __future__ import annotations

from overhead.results import Target, Why
from overhead.runner.events import (
    AnswersCame,
    CaseFailed,
    CasesLeftOut,
    MeasuredAgain,
    MeasuredSoFar,
    MeasuringProcess,
    MoreFailedAlike,
    Opening,
    RunNote,
    RunStep,
    WorkNeeds,
)
from overhead.words.format import few
from overhead.words.reasons import sentence

STACKS_HERE = "Stacks on this machine"
NOT_HERE = "Not available on this machine"
UNUSABLE_PACKAGE = "a package that cannot be used"


def device(target: Target) -> str:
    """The adapter of a target, and whether it is none that works on a GPU."""
    if target.software:
        return f"{target.adapter} (software)"
    return target.adapter if target.executes else f"{target.adapter} (runs nothing)"


def driver(target: Target) -> str:
    """The driver of a target, each word once: a library may write one version in two ways,
    ``580.9.04 580.9.4.0``.
    """
    by_spelling: dict[str, str] = {}  # the first word of each spelling stays, as it is written
    for word in target.driver.split(" "):
        by_spelling.setdefault(_spelling(word), word)
    return " ".join(by_spelling.values())


def _spelling(word: str) -> str:
    """The form that two spellings of a name or a version share, to compare them: lower case without
    a colon; of a version its numbers without zeros at the start or end, ``580.9.4``.
    """
    # A name with a colon behind it is the same word as the name alone.
    name = word.removesuffix(":")
    parts = name.split(".")
    is_version = all(part.isdecimal() for part in parts)
    if not is_version:
        return name.lower()
    numbers = [str(int(part)) for part in parts]
    while len(numbers) > 1 and numbers[-1] == "0":
        numbers.pop()
    return ".".join(numbers)


def note(told: RunNote) -> str:
    """The line that a run prints for something that happened, such as a failed case; a text or
    another reason is shown as it is. ``side``: BASE or NEW, where a run measures both.
    """
    match told:
        case CaseFailed():
            case = f"{told.target} {told.case}"
            return _of_side(told.side, f"{case}: {told.status}: {sentence(told.reason)}")
        case MoreFailedAlike():
            return _of_side(
                told.side,
                f"{told.target}: more cases {told.status} alike; overhead show --all lists them",
            )
        case MeasuredAgain():
            process = f"{told.target}, process {told.process + 1}"  # counted from 0
            return _of_side(told.side, f"{process}: {sentence(told.reason)}; measured again")
        case CasesLeftOut():
            return f"left out ({sentence(told.reason)}): {few(list(told.names))}"
        case MeasuredSoFar():
            files = " and ".join(map(str, told.files))
            return f"everything measured is in {files}; overhead show shows it"
        case WorkNeeds():
            return f"{told.workload}: {sentence(told.needs)}"
        case _:
            return sentence(told)


def step(now: RunStep) -> str:
    """What a run does now, for its line of progress; a text or another reason is shown as it is."""
    match now:
        case AnswersCame():
            waiting = f"; waiting for {', '.join(now.running)}" if now.running else ""
            return f"{now.answered} of {now.asked} answers{waiting}"
        case Opening():
            return _of_side(now.side, f"opening {now.target}")
        case MeasuringProcess():
            return _of_side(now.side, f"{now.target}, process {now.process + 1}")
        case _:
            return sentence(now)


def _of_side(side: str, text: str) -> str:
    return f"{side}: {text}" if side else text


def waiting_for_another_run(seconds: float, holder: int | None, lock: str) -> str:
    """That this run has waited so long for another one. ``holder``: its process. ``lock``: the file
    that it holds.
    """
    which = f"process {holder}" if holder is not None else f"which holds {lock}"
    return f"waiting for another run on this machine ({which}), {seconds:.0f} s so far"


def time_left(seconds: float) -> str:
    """How much longer the run takes."""
    if seconds < 120:
        return f"about {max(1.0, seconds):.0f} s left"
    return f"about {seconds / 60:.1f} min left"


def to_add(stacks: int, mend: Why) -> str:
    """What would add so many stacks."""
    them = "it" if stacks == 1 else "them"
    return f"to add {them}: {sentence(mend)}"
