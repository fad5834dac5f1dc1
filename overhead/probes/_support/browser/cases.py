"""The cases that the page can run, and what their windows hold."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from overhead.probes._support.browser import wire
from overhead.probes._support.browser.chain import LATENT
from overhead.probes.base import Space, Unsupported
from overhead.probes.kernels import LLVMPIPE_TURNS
from overhead.results import Case, Scalar

_ORDERLESS = frozenset({"per-submit", "per-k", "per-pass", "one-pass"})


def spec(case: Case) -> wire.CaseSpec:
    """The case in the page's words. Raises ``Unsupported`` where the page has none for it."""
    if case.workload != "step" or case.caller != "browser":
        raise Unsupported(f"the page runs the step from JavaScript, not {case.workload} by {case.caller}")
    try:
        asked = msgspec.convert({"pattern": case.pattern, "dependency": case.dependency, **case.params}, wire.CaseSpec)
    except msgspec.ValidationError as error:
        raise Unsupported(f"the page has no such case: {error}") from None
    if asked.dependency == "independent" and (asked.bindgroup == "once" or asked.pattern not in _ORDERLESS):
        raise Unsupported("independent dispatches rotate bind groups, many to a wait")
    if "wait" in case.params and case.pattern in LATENT:
        raise Unsupported(f"{case.pattern} brings its own wait")
    if (asked.pattern == "per-k") != (asked.k > 1):
        raise Unsupported("per-k, and it alone, takes k of at least 2")
    return asked


def window(case: Case, page: wire.Page) -> dict[str, Scalar]:
    """What the timed window holds: the same keys and words as the native WebGPU stacks."""
    split = case.pattern == "fused" and page.adapter is not None and page.adapter.fallback
    asked = spec(case)
    each = {"per-k": f"1 per {asked.k} units", "per-pass": "1", "one-pass": "1", "fused": "1"}.get(
        case.pattern, "1 per unit"
    )
    every = asked.bindgroup == "rotated" or case.pattern == "per-pass"
    reads = asked.wait == "map" or case.pattern == "read-each"
    return {
        "submits": each,
        **({"dispatches": f"1 per {LLVMPIPE_TURNS} units"} if split else {}),
        "passes": "1 per unit" if case.pattern == "per-pass" else each,
        "bind_changes": "1 per unit" if every else each,
        "bindgroup": asked.bindgroup,
        "bindings": 1,
        "argument": "none",
        "indirect": False,
        "wait": "mapAsync of a 4-byte copy" if reads else "onSubmittedWorkDone",
        "recording": "inside",
        "validation": "on",
        "checks": "on",
        "precision": "u32",
        "workgroups": 4,
    }


def space() -> Space:
    """The star of every browser: what tells most first, since a polling wait leaves time for little."""
    base = Case(pattern="per-submit", caller="browser")
    rotated: dict[str, Scalar] = {"bindgroup": "rotated"}
    extra = [
        *(Case(pattern="per-k", caller="browser", params={"k": k}) for k in (16, 4, 64, 256)),
        Case(pattern="per-submit", caller="browser", dependency="independent", params=rotated),
        Case(pattern="one-pass", caller="browser", dependency="independent", params=rotated),
        Case(pattern="one-pass", caller="browser", params=rotated),
    ]
    axes: dict[str, Sequence[Scalar]] = {
        "pattern": ["one-pass", "fused", "per-pass", "wait-each", "read-each"],
        "wait": ["map"],
    }
    return Space(base, axes, extra, _allowed)


def _allowed(case: Case) -> bool:
    try:
        spec(case)
    except Unsupported:
        return False
    return True
