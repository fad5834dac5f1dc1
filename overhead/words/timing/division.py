"""Python or the library? How the host's time of a call divides, in words."""

from __future__ import annotations

from overhead.reading.plain_text import plain
from overhead.results import Figure
from overhead.timing.division import CallPart, Division
from overhead.words.format import MICRO, listed, micro_spread, percent, percent_spread
from overhead.words.reasons import sentence

_LEAST_SHOWN = 0.005
"""A smaller part is left out of the sentence."""
_MOST_NAMED = 2
"""So many packages, and files with compiled code, are named for a part."""
_LEAST_NAMED = 0.02
"""A file with a smaller share of the time of the call is not named."""
_WIDE, _AT_AN_END = 0.1, 3
"""An interval this wide is shown without the value if one side of the value is so many times the
other one: the value supposes that memory functions divide as the rest does, which nobody measured.
"""
_CALLED = {"nvidia": "CUDA libraries"}
"""Packages whose name says little: ``nvidia`` is the folder of all CUDA libraries that pip
installs.
"""


def division_sentence(
    call: str, division: Division, cost: Figure | None, *, on_device: bool
) -> str:
    """A sentence on how the CPU time of a call divides into the user's Python, libraries and the
    driver. ``cost``: that time; None where it is not known. ``on_device``: the call starts work on
    a device, so the CPU time is that until the call returns, and not the cost.
    """
    if not division.parts:
        return f"Python or the library? Not known for {call}: {sentence(division.reason)}."
    parts = [f"{_share(part.share)} {_name_with_files(part)}" for part in _shown(division)]
    # _whole(): the call with its CPU time, which is what the shares are of.
    return f"Python or the library? {_whole(call, cost, on_device)}: {listed(parts)}."


def division_rule(samples: str) -> str:
    """Where the shares are from. ``samples``: how many, of each call."""
    return (
        f"The shares are from {samples} samples of one process, taken at random moments, with 95 %"
        " intervals. In another process the shares may be a few points higher or lower."
    )


DEVICE_APART = "These are shares of the CPU's time. The time of the device's own work is separate."
WAIT_IN_DRIVER = (
    "If a call waits for the device, as item() and synchronize() do, the driver's share contains"
    " that wait: the CPU waits inside the driver."
)
BINDING_MEANS = (
    "The binding is the library's code that reads the arguments from Python and makes Python"
    " objects of the results. Its share contains the interpreter's functions that the binding"
    " calls. A sample in a memory function such as malloc does not tell which compiled code called"
    " it. This makes the intervals wide; where no value is likely, only the interval is shown."
)


def short_division(division: Division) -> str:
    """The division in a few words, for one line: ``9 % your Python, 91 % compiled code of
    torch``.
    """
    return ", ".join(f"{_short_share(part.share)} {_name(part)}" for part in _shown(division))


def _share(share: Figure) -> str:
    """The share with its interval; the interval alone where the value lies near one end of a wide
    one.
    """
    return _interval_alone(share) or percent_spread(share.measured)


def _short_share(share: Figure) -> str:
    return _interval_alone(share) or percent(share.value or 0.0)


def _interval_alone(share: Figure) -> str:
    """The interval of a share as text, where the interval is wide and the value lies near one end
    of it: such a value is not likely, so it is not shown. '' for other shares.
    """
    found = share.measured
    if found is None or found.low is None or found.high is None:
        return ""
    below = found.value - found.low
    above = found.high - found.value
    # ``_WIDE``: so wide, as a part of 1. ``_AT_AN_END``: the value is so many times as far from one
    # end as from the other.
    is_narrow = below + above < _WIDE
    is_in_the_middle = max(below, above) < _AT_AN_END * min(below, above)
    if is_narrow or is_in_the_middle:
        return ""
    return f"{100 * found.low:.0f} to {100 * found.high:.0f} %"


def _whole(call: str, cost: Figure | None, on_device: bool) -> str:
    """What is divided: a call and its time on the host."""
    until = " on the CPU until it returns" if on_device else ""
    if cost is None or not cost.measured:
        return f"{call}{until}"
    return f"{call}, {micro_spread(cost)} {MICRO}{until}"


def _shown(division: Division) -> list[CallPart]:
    """The parts of a call's CPU time that a sentence names: the user's own Python, even if tiny,
    and every other that takes at least 0.5 %.
    """
    shown = []
    for part in division.parts:
        share = part.share.value or 0.0
        if part.name == "own-python" or share >= _LEAST_SHOWN:
            shown.append(part)
    return shown


def _name_with_files(part: CallPart) -> str:
    """The name of a part of the call's CPU time, with the files of compiled code that take most of
    it, at most two: ``compiled code of torch (libtorch_cpu)``.
    """
    named = [plain(name, 40) for name, share in part.objects.items() if share >= _LEAST_NAMED]
    files = [_without_ending(name) for name in named[:_MOST_NAMED]]
    name = _name(part)
    # ``of``: the packages of the part. A file with the name of its package tells nothing more.
    if not files or files == part.of:
        return name
    return f"{name} ({', '.join(files)})"


def _without_ending(file: str) -> str:
    """The name of a file of compiled code: ``libtorch_cpu`` of ``libtorch_cpu.so``."""
    return file.partition(".so")[0].partition(".cpython-")[0]


def _name(part: CallPart) -> str:
    """What a sentence calls a part of the call's CPU time, with the packages it is of: ``compiled
    code of torch``.
    """
    packages = [_CALLED.get(name) or plain(name, 40) for name in part.of]
    named = packages[:_MOST_NAMED]
    if len(packages) > _MOST_NAMED:
        named.append("others")
    of = listed(named)
    match part.name:
        case "own-python":
            return "your Python"
        case "library-python":
            return f"Python of {of}"
        case "binding":
            return f"the binding of {of}"
        case "library":
            return f"compiled code of {of}"
        case "binding-and-library":
            return f"compiled code of {of}, the binding included"
        case "driver":
            return f"the driver {of}" if of else "the driver"
        case "system":
            return "the operating system, waits included"
