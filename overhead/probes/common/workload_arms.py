"""The ways (arms) in which stacks run workloads in WGSL, and what all WGSL of workloads shares."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

from overhead.probes.base import Unsupported
from overhead.probes.workload_chain import WorkloadArm
from overhead.results import Caller, Case, Pattern, Scalar, because
from overhead.workloads.base import KernelEntry


def wgsl_arms(caller: Caller = "binding", fewer_checks: str = "") -> list[WorkloadArm]:
    """The ways (arms) in which a WebGPU stack runs the steps of a workload in WGSL: one dispatch
    that loops (``fused``), all dispatches in one pass, and a submission per dispatch. ``bodies``:
    whether a step is one kernel, or separate kernels, one for each operation.

    With ``fewer_checks``, one more arm has that value of the parameter ``checks``. It omits the
    checks that the library adds to kernels.
    """
    # Every run measures the early arms. A browser, the other caller, is measured on request.
    is_early = caller == "binding"
    fused = WorkloadArm("fused", bodies=("one",), language="wgsl", early=is_early)
    one_pass = WorkloadArm("one-pass", bodies=("separate", "one"), language="wgsl")
    per_submit = dataclasses.replace(one_pass, pattern="per-submit")
    arms = [fused]
    if fewer_checks:
        # Only in the pattern ``fused``, and not in every run.
        arms.append(dataclasses.replace(fused, params={"checks": fewer_checks}, early=False))
    arms += [one_pass, per_submit]
    return [dataclasses.replace(arm, caller=caller) for arm in arms]


WGSL_BINDINGS: tuple[Literal["storage", "read-only-storage", "uniform"], ...] = (
    "storage",
    "storage",
    "read-only-storage",
    "uniform",
)
"""Bindings of the generated WGSL in group 0: state, counters, inputs, and 16 bytes with the number
of steps first.
"""


def refuse_wgsl(case: Case) -> None:
    """Raise ``Unsupported`` if the WGSL of workloads cannot run the pattern of this case."""
    if case.pattern not in ("one-pass", "per-submit", "fused"):
        raise Unsupported(because("pattern-not-for-wgsl", pattern=case.pattern))


def wgsl_window(pattern: Pattern, entries: Sequence[KernelEntry]) -> dict[str, Scalar]:
    """What is timed of a workload in WGSL, as names and values for the record. ``entries``: the
    kernels of a step, which is the unit. A step takes one dispatch of each kernel; in the pattern
    ``fused``, one dispatch runs all steps.
    """
    dispatches = f"{len(entries)} per unit"
    # A submission for each dispatch, or one of all.
    submissions = dispatches if pattern == "per-submit" else "1"
    workgroups = [str(entry.groups) for entry in entries]
    return {
        "submits": submissions,
        # Each submission has one pass, which sets the bind group once.
        "passes": submissions,
        "bind_changes": submissions,
        "dispatches": "1" if pattern == "fused" else dispatches,
        "recording": "inside",
        "workgroups": ", ".join(workgroups),
    }
