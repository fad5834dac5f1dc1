"""The step, a stack's own unit of work: of array libraries (add 1), and of Vulkan and WebGPU (a
kernel of fixed size).

The step of array libraries adds 1 to 256 int32, so the values show how often it ran.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from overhead.probes.base import Unverified
from overhead.results import Scalar, because

GROUPS = 4
"""Workgroups per dispatch, 64 invocations each."""
WORDS = 64 * GROUPS
"""32-bit words per buffer, one for each invocation."""
RING = 8
"""Number of buffers or bind groups that are used in turn. Must be a power of two: loops index with
a mask.
"""
_COUNT = 256


def start_values() -> NDArray[np.int32]:
    """The values of an array library before the first step: int32, shape (256,)."""
    return np.arange(_COUNT, dtype=np.int32)


def count_steps(values: NDArray[np.int32]) -> int:
    """How often a stack has run the step of array libraries, which adds 1 to each of the 256 start
    values: what was added, modulo 2^32, because int32 overflows. Raises ``Unverified`` if elements
    disagree.
    """
    added = (values.astype(np.int64) - start_values()) % 2**32
    elements_differ = (added != added[0]).any()
    # 256 elements (``_COUNT``), all of which have had the same number added.
    if values.shape != (_COUNT,) or elements_differ:
        raise Unverified(because("elements-disagree", least=added.min(), most=added.max()))
    return int(added[0])


def webgpu_window(
    pattern: str, per: int, bindgroup: str, wait: str, **more: Scalar
) -> dict[str, Scalar]:
    """What is timed in a chain of WebGPU dispatches (the units), as names and values for the
    record: only figures with equal windows are compared.

    ``pattern``: how the chain is handed to the device. ``per``: units in a submission; 0: all of
    them. ``bindgroup``: ``once`` if the bind group is set at the begin of a pass, else it changes
    with the unit. ``wait``: the call that waits. ``more``: further entries, which replace others.
    "inside": the units are recorded in the timed window.
    """
    # In the words of the record: a submission for each unit, one in all, or one for several units.
    submits = {1: "1 per unit", 0: "1"}.get(per, f"1 per {per} units")
    has_pass_each = pattern == "per-pass"
    binds_each = has_pass_each or bindgroup != "once"  # each new pass must set its group
    return {
        "submits": submits,
        # Else a submission has one pass, so there are as many passes as submissions, and where a
        # set is bound once per pass as many changes of it.
        "passes": "1 per unit" if has_pass_each else submits,
        "bind_changes": "1 per unit" if binds_each else submits,
        "bindgroup": bindgroup,
        "bindings": 1,
        "argument": "none",
        "indirect": False,
        "wait": wait,
        "recording": "inside",
        # Validation is of the API's calls; ``checks`` are those that the library adds to kernels.
        "validation": "on",
        "checks": "on",
        "precision": "u32",
        "workgroups": GROUPS,
        **more,
    }
