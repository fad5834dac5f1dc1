"""What can be varied on a WebGPU adapter, most telling first."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.probes._support.webgpu.case import Recipe
from overhead.probes.base import Space, Unsupported
from overhead.results import Caller, Case, Pattern, Scalar, Target

_BASE = Case(pattern="per-submit")
_DETAILS = ("bindgroup", "argument", "wait", "bindings", "indirect", "validation", "checks")


def space(target: Target) -> Space:
    """Base: a submission a dispatch, chained, one bind group, the cheapest wait, the Python API."""
    dawn = target.stack == "dawn"
    waits: dict[str, list[Scalar]] = {"wait": [*(["work-done"] if dawn else []), "map", "read-buffer"]}
    axes: dict[str, list[Scalar]] = {
        "caller": ["ffi"],
        "pattern": ["one-pass", "per-pass", "fused", "wait-each", "read-each"],
        "bindgroup": ["rotated", "fresh"],
        "argument": ["write-buffer", "dynamic-offset", "immediates"],
        **(waits if target.executes else {}),
        "bindings": [4, 8],
        "indirect": [True],
        **({"validation": ["skip"]} if dawn else {}),
        "dependency": ["independent"],
    }
    extra = [case for case in _extra(dawn) if _fits(target, case)]
    native = Case(pattern="per-submit", caller="native")
    return Space(_BASE, axes, extra, lambda case: _fits(target, case), early=[native])


def _extra(dawn: bool) -> Iterator[Case]:
    callers: tuple[Caller, ...] = ("binding", "native", "ffi")
    for caller in callers:
        for k in (4, 16, 64, 256) if caller == "binding" else (16, 64):
            yield Case(pattern="per-k", caller=caller, params={"k": k})
        yield Case(pattern="per-submit", caller=caller, dependency="independent", params={"bindgroup": "rotated"})
        yield Case(pattern="per-submit", caller=caller, params={"bindgroup": "rotated"})
        yield Case(pattern="one-pass", caller=caller, params={"bindgroup": "rotated"})
    patterns: tuple[Pattern, ...] = ("one-pass", "per-pass", "fused", "wait-each")
    for caller in callers[1:]:
        for pattern in patterns:
            yield Case(pattern=pattern, caller=caller)
    if dawn:
        yield Case(pattern="per-submit", caller="native", params={"validation": "skip"})
        yield Case(pattern="one-pass", caller="native", params={"validation": "skip"})
        yield Case(pattern="fused", params={"checks": "off"})
    else:
        yield Case(pattern="fused", params={"checks": "unbounded-loops"})
        yield Case(pattern="fused", params={"checks": "off"})


def _fits(target: Target, case: Case) -> bool:
    """Whether the case means something on the target, with at most one detail changed."""
    try:
        recipe = Recipe.of(case)
    except Unsupported:
        return False
    if not target.executes and recipe.pattern in ("fused", "read-each"):
        return False
    if recipe.wait and (recipe.caller != "binding" or recipe.pattern not in ("per-submit", "wait-each")):
        return False
    return len([name for name in _DETAILS if name in case.params]) <= 1
