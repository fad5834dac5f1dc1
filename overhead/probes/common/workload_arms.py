"""The ways (arms) in which the stacks of this package run workloads, and what all WGSL of workloads shares."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

from overhead.probes.base import Unsupported
from overhead.probes.workload_chain import WorkloadArm
from overhead.results import Caller, Case, Pattern, Scalar
from overhead.workloads.base import KernelEntry


def eager(*bodies: str, early: bool = False) -> WorkloadArm:
    """The arm that calls an array library for each operation. ``bodies``: the ways to run a step that it has."""
    return WorkloadArm("per-submit", bodies=bodies, early=early)


def fused(language: str, params: Mapping[str, Scalar] | None = None, *, early: bool = False) -> WorkloadArm:
    """The arm that runs one kernel in this language, which loops over the steps."""
    return WorkloadArm("fused", params or {}, bodies=("one",), language=language, early=early)


def launches(language: str, *bodies: str) -> WorkloadArm:
    """The arm that launches each kernel of each step. ``bodies``: the ways to run a step that it has."""
    return WorkloadArm("per-submit", bodies=bodies, language=language)


IN_TURN = WorkloadArm("hybrid", fits=lambda w: w.host_works or not w.bodies)
"""Every other step on the host, for workloads whose step is not split."""
ALL_THREADS = WorkloadArm("per-submit", {"threads": "all"}, fits=lambda w: w.host_works)
"""Steps on all threads of the host, for workloads that compare host and device."""


def wgsl_arms(stack: str, caller: Caller = "binding") -> list[WorkloadArm]:
    """The arms that run WGSL on the stack with this name: fused, in one pass, and a submission per dispatch.

    For wgpu-native and Dawn, one more arm has the parameter ``checks``. It omits the checks that the library adds to
    kernels, which are loop bounds (wgpu-native) or index clamps (Dawn).
    """
    fewer = {"wgpu-native": "unbounded-loops", "dawn": "off"}.get(stack)
    unchecked = [fused("wgsl", {"checks": fewer})] if fewer else []
    each = WorkloadArm("one-pass", bodies=("separate", "one"), language="wgsl")
    arms = [fused("wgsl", early=caller == "binding"), *unchecked, each, dataclasses.replace(each, pattern="per-submit")]
    return [dataclasses.replace(arm, caller=caller) for arm in arms]


WGSL_BINDINGS: tuple[Literal["storage", "read-only-storage", "uniform"], ...] = (
    "storage",
    "storage",
    "read-only-storage",
    "uniform",
)
"""Bindings of the generated WGSL in group 0: state, counters, inputs, and 16 bytes with the number of steps first."""


def refuse_wgsl(case: Case) -> None:
    """Raise ``Unsupported`` if the WGSL of workloads cannot run the pattern of this case."""
    if case.pattern not in ("one-pass", "per-submit", "fused"):
        raise Unsupported(f"a workload's WGSL runs as one-pass, per-submit or fused, not {case.pattern}")


def wgsl_window(pattern: Pattern, entries: Sequence[KernelEntry]) -> dict[str, Scalar]:
    """What is timed of a workload in WGSL, as names and values. ``entries``: the kernels of a step."""
    dispatches = f"{len(entries)} per unit"
    each = dispatches if pattern == "per-submit" else "1"
    return {
        "submits": each,
        "passes": each,
        "bind_changes": each,
        "dispatches": "1" if pattern == "fused" else dispatches,
        "recording": "inside",
        "workgroups": ", ".join(str(entry.groups) for entry in entries),
    }
