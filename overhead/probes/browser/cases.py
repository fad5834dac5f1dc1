"""The cases that the page can run, and the contents of the timed window of each case."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from overhead.probes.base import Space, Unsupported
from overhead.probes.browser import messages
from overhead.probes.browser.chain import WAITING_PATTERNS
from overhead.probes.common.availability import is_accepted
from overhead.probes.common.step import webgpu_window
from overhead.probes.kernels import LLVMPIPE_TURNS
from overhead.results import Case, Scalar

_MAY_BE_INDEPENDENT = frozenset({"per-submit", "per-k", "per-pass", "one-pass"})


def case_spec(case: Case) -> messages.CaseSpec:
    """The case in the form that is sent to the page. Raises ``Unsupported`` if the page cannot run it."""
    if case.workload != "step" or case.caller != "browser":
        raise Unsupported(f"the page runs the step from JavaScript, not {case.workload} by {case.caller}")
    try:
        spec = msgspec.convert(
            {"pattern": case.pattern, "dependency": case.dependency, **case.params}, messages.CaseSpec
        )
    except msgspec.ValidationError as error:
        raise Unsupported(f"the page has no such case: {error}") from None
    if spec.dependency == "independent" and (spec.bindgroup == "once" or spec.pattern not in _MAY_BE_INDEPENDENT):
        raise Unsupported("independent dispatches rotate bind groups, many to a wait")
    if "wait" in case.params and case.pattern in WAITING_PATTERNS:
        raise Unsupported(f"{case.pattern} brings its own wait")
    if (spec.pattern == "per-k") != (spec.k > 1):
        raise Unsupported("per-k, and it alone, takes k of at least 2")
    return spec


def window(case: Case, page: messages.Page) -> dict[str, Scalar]:
    """The contents of the timed window, with the same keys and words as the native WebGPU stacks use."""
    spec = case_spec(case)
    per = {"per-k": spec.k, "per-pass": 0, "one-pass": 0, "fused": 0}.get(spec.pattern, 1)
    reads = spec.wait == "map" or case.pattern == "read-each"
    wait = "mapAsync of a 4-byte copy" if reads else "onSubmittedWorkDone"
    split = case.pattern == "fused" and page.adapter is not None and page.adapter.fallback
    dispatches: dict[str, Scalar] = {"dispatches": f"1 per {LLVMPIPE_TURNS} units"} if split else {}
    return webgpu_window(spec.pattern, per, spec.bindgroup, wait, **dispatches)


def space() -> Space:
    """The cases of every browser, most informative first: if the wait polls rarely, there is time for only a few."""
    base = Case(pattern="per-submit", caller="browser")
    rotated: dict[str, Scalar] = {"bindgroup": "rotated"}
    extra = [
        *(Case(pattern="per-k", caller="browser", params={"k": k}) for k in (16, 4, 64, 256)),
        Case(pattern="per-submit", caller="browser", dependency="independent", params=rotated),
        Case(pattern="one-pass", caller="browser", dependency="independent", params=rotated),
        Case(pattern="one-pass", caller="browser", params=rotated),
    ]
    axes: dict[str, Sequence[Scalar | None]] = {
        "pattern": ["one-pass", "fused", "per-pass", "wait-each", "read-each"],
        "wait": [None, "map"],
    }
    return Space(base, axes, extra, lambda case: is_accepted(case_spec, case))
