"""What the names of ranges on the host mean: marks of steps and of lines, and a DataLoader's range.

A program names its ranges, or a library does; so the names are the same in traces of all formats.
"""

from __future__ import annotations

import functools
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
WORKERS = f"{LOADER}_MultiProcessing"
"""Such a ``next`` waits for processes that load the data."""
"""How the annotation of PyTorch begins that holds a DataLoader's ``next``; it counts as an
operation.
"""
COLLECTIVES = ("nccl:", "gloo:", "rccl:", "mpi:", "ucc:", "xccl:")
"""How PyTorch begins the range around a collective, such as ``nccl:all_to_all``."""
_STEP_WORDS = "step|iteration|iter|batch|token"
_NUMBERED = re.compile(
    rf"(?:^|[\W_])[a-z]*(?:{_STEP_WORDS})[\s_#:=\-\[(/]*(?P<number>\d+)", re.I | re.A
)
"""A range whose name has such a word and a number behind it is a step: ``train step 12``,
``iter:3``, ``Step 7 (epoch 3)``, ``iteration/engine/step-1``, and TensorRT-LLM's ``[Executor]
_forward_step 71: 0 ctx reqs``.
"""
_EPOCH = re.compile(r"epoch[\s_#:=\-\[(/]*(?P<number>\d+)", re.I | re.A)
_NAMED = re.compile(
    # vLLM, SGLang and xDiT: execute_context_1(888)_generation_0(0), execute_diffusion_1_256x256.
    r"execute_(?:\d+_)?(?:context|new|diffusion|model)\w*(?:\(.*\).*)?"
    # SGLang: step[DECODE bs=32].
    r"|step\[.*\]"
    # TensorRT-LLM: [Executor] _forward_step: 0 ctx reqs.
    r"|\[Executor\] _forward_step\b.*"
    # Lightning.
    r"|(?:\[pl\]\[profile\])?run_(?:training|evaluation|prediction)_batch"
    r"|\[pl\]\[profile\].*\b(?:training|validation|test|predict)_step"
    # People.
    r"|(?:(?:train|training|eval|evaluation|validation|inference|decode|decoding|denoise|denoising"
    r"|generation|model|engine|forward_backward|optimi[sz]ation|main|one|single)[ _.:/-]?)?"
    r"(?:step|iteration|iter)",
    re.I | re.A,
)
"""Such a range is a step, although its name has no number of a step: the numbers in the names of
inference engines are counts of requests and tokens.
"""
_NO_STEP = re.compile(r"::|^##|^Optimizer\.|^autograd|^triton_|^nccl:|^gloo:|^cudagraph", re.I)
"""Names of libraries that only look like those of steps, such as ``Optimizer.step#SGD.step``."""
_DIGITS = re.compile(r"\d+")
_EPOCHS_APART = 10**9
"""A step 7 of epoch 3 gets the number 3,000,000,007, so that no two steps share a number."""
_MOST_DIGITS = 18
"""A number of a step fits into 64 bits with so many digits."""
_MOST_NAME = 1000
"""Most characters of a name that are looked at."""


def kind_of_range(name: str, otherwise: EventKind) -> EventKind:
    """What a range on the host is, by its name: a mark of a step or of a line of the program, or an
    operation; ``otherwise`` where the name is none of these.
    """
    # PyTorch annotates the ``next`` of a DataLoader like a mark; but it is work of the host.
    if name.startswith(LOADER):
        return EventKind.OPERATION
    if name.startswith(SITE_MARK):
        return EventKind.SITE
    if is_step(name):
        return EventKind.STEP
    return otherwise


@functools.lru_cache(maxsize=100_000)
def is_step(name: str) -> bool:
    """Whether a range with this name is a step."""
    name = name[:_MOST_NAME]
    if _NO_STEP.search(name):
        return False
    return bool(_NUMBERED.search(name) or _NAMED.fullmatch(name))


@functools.lru_cache(maxsize=100_000)
def family(name: str) -> str:
    """The name with ``N`` in place of each number: ranges of one family are repetitions of one
    thing.
    """
    return _DIGITS.sub("N", name[:_MOST_NAME])


def step_number(name: str) -> int | None:
    """The number of the step in its name; None if the name has no such number."""
    found = _NUMBERED.search(name[:_MOST_NAME])
    if found is None:
        return None
    number = int(found["number"][:_MOST_DIGITS])
    epoch = _EPOCH.search(name[:_MOST_NAME])
    if epoch is None or number >= _EPOCHS_APART:
        return number
    return int(epoch["number"][:_MOST_DIGITS]) % _EPOCHS_APART * _EPOCHS_APART + number


def site_in(name: str) -> CallSite:
    """The line of the program that a mark of a line holds."""
    line, _, inside = name.removeprefix(SITE_MARK).partition("|")
    return CallSite(line=line, inside=inside)
