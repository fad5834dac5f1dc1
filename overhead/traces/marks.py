"""What the names of ranges on the host mean: marks of steps and of lines, and a DataLoader's range.

A program names its ranges, or a library does; so the names are the same in traces of all formats.
"""

from __future__ import annotations

import re

from overhead.traces.events import EventKind
from overhead.traces.trace import CallSite

STEP_MARK = "overhead step "
"""How the name of the range begins that ``overhead explain`` puts around a step of its own
profile.
"""
SITE_MARK = "overhead site "
"""How the name of the range begins that holds the line of an operation: ``line|line of a
library`` follows.
"""
PROFILER_STEP = "ProfilerStep#"
"""How PyTorch's profiler marks a step."""
LOADER = "enumerate(DataLoader)#"
"""How the annotation of PyTorch begins that holds a DataLoader's ``next``; it counts as an
operation.
"""
_STEP_WORDS = ("step", "iter", "iteration", "batch", "token")
_STEP = re.compile(
    rf"(?:{PROFILER_STEP}|(?:\w+ )?(?:{'|'.join(_STEP_WORDS)})[ _#:=-]+)\d+", re.I | re.A
)
"""A range with such a name and a number is a step: ``train step 12``, ``iter:3``."""


def kind_of_range(name: str, otherwise: EventKind) -> EventKind:
    """What a range on the host is, by its name: a mark of a step or of a line of the program, or an
    operation; ``otherwise`` where the name is none of these.
    """
    # PyTorch annotates the ``next`` of a DataLoader like a mark; but it is work of the host.
    if name.startswith(LOADER):
        return EventKind.OPERATION
    if _STEP.fullmatch(name):
        return EventKind.STEP
    if name.startswith(SITE_MARK):
        return EventKind.SITE
    return otherwise


def site_in(name: str) -> CallSite:
    """The line of the program that a mark of a line holds."""
    line, _, inside = name.removeprefix(SITE_MARK).partition("|")
    return CallSite(line=line, inside=inside)
