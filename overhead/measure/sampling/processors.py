"""The processors that a measuring thread may use: those allowed to it, without those that serve a GPU's interrupts.

A driver that signals each submission by an interrupt takes time from the thread that runs on the serving processor.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

_GPU_DRIVER = re.compile(r"(nvidia|nouveau|amdgpu|radeon|i915|xe)([-@:,0-9].*)?", re.IGNORECASE)
_SERVING_SHARE = 0.05
"""A processor serves an interrupt line if it took this share of the line's interrupts."""
INTERRUPTS = Path("/proc/interrupts")


def every() -> list[int]:
    """All processors that the calling thread may use; empty where a thread cannot be bound to processors."""
    if sys.platform != "linux":
        return []
    return sorted(os.sched_getaffinity(0))


def allowed() -> list[int]:
    """The processors to choose from; empty where a thread cannot be bound to processors."""
    everything = set(every())
    if not everything:
        return []
    try:
        serving = serving_gpus(INTERRUPTS.read_text(encoding="ascii", errors="replace"))
    except OSError:
        serving = set()
    return sorted(everything - serving or everything)


def serving_gpus(table: str) -> set[int]:
    """The processors that served a GPU's interrupts, from the text of ``/proc/interrupts``."""
    head, *lines = table.splitlines() or [""]
    processors = [int(word.removeprefix("CPU")) for word in head.split() if word.startswith("CPU")]
    found: set[int] = set()
    for line in lines:
        words = line.split()
        counts, described = words[1 : 1 + len(processors)], words[1 + len(processors) :]
        if not any(map(_GPU_DRIVER.fullmatch, described[1:])):
            continue
        if len(counts) == len(processors) and all(count.isdigit() for count in counts):
            served = [int(count) for count in counts]
            found |= {cpu for cpu, n in zip(processors, served, strict=True) if n and n >= _SERVING_SHARE * sum(served)}
    return found
