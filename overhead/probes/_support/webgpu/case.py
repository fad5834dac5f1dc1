"""What one case asks of WebGPU, checked, and the steps of its loop by name: the one list that all callers render."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from overhead.probes.base import Unsupported
from overhead.results import Case, Overlap

RING = 8
"""Bind groups that rotate; a power of two, so that no caller divides."""
GROUPS = 4
"""Workgroups of 64 in a dispatch."""

PATTERNS = ("per-submit", "per-k", "per-pass", "one-pass", "fused", "wait-each", "read-each")
_CHOICES: dict[str, tuple[Any, ...]] = {
    "bindgroup": ("once", "rotated", "fresh"),
    "argument": ("none", "write-buffer", "dynamic-offset", "immediates"),
    "bindings": (1, 4, 8),
    "indirect": (False, True),
    "wait": ("", "work-done", "map", "read-buffer"),
    "validation": ("on", "skip"),
    "checks": ("on", "unbounded-loops", "off"),
}


@dataclass(frozen=True)
class Recipe:
    """A case, its parameters filled in."""

    pattern: str
    caller: str
    independent: bool
    k: int = 0
    bindgroup: str = "once"
    argument: str = "none"
    bindings: int = 1
    indirect: bool = False
    wait: str = ""
    validation: str = "on"
    checks: str = "on"

    @classmethod
    def of(cls, case: Case) -> Recipe:
        """Raises ``Unsupported`` where the case names what WebGPU, or this probe, has not."""
        if case.pattern not in PATTERNS:
            raise Unsupported(f"WebGPU compute has no {case.pattern}")
        if case.workload != "step":
            raise Unsupported(f"no workload {case.workload} here")
        if case.caller not in ("binding", "ffi", "native"):
            raise Unsupported(f"no caller {case.caller} here")
        unknown = set(case.params) - {field.name for field in fields(cls)[3:]}
        if unknown:
            raise Unsupported(f"no parameter {', '.join(sorted(unknown))} here")
        for name, choices in _CHOICES.items():
            if name in case.params and case.params[name] not in choices:
                raise Unsupported(f"{name} has no value {case.params[name]}")
        recipe = cls(case.pattern, case.caller, case.dependency == "independent", **case.params)  # type: ignore[arg-type]
        reason = recipe._nonsense()
        if reason:
            raise Unsupported(reason)
        return recipe

    def _nonsense(self) -> str:
        """Why this combination means nothing, or empty."""
        if (self.pattern == "per-k") != (self.k > 1):
            return "per-k, and it alone, takes k: dispatches a submission, at least 2"
        if self.independent and self.bindgroup == "once":
            return "independent dispatches rotate bind groups: each on a buffer of its own"
        if self.argument == "write-buffer" and self.pattern not in ("per-submit", "wait-each"):
            return "write_buffer takes effect between submissions, so it needs one a dispatch"
        if self.pattern == "fused" and (self.bindgroup, self.argument, self.bindings, self.indirect) != _PLAIN:
            return "the fused dispatch is one, with one bind group"
        if self.pattern != "fused" and self.checks == "unbounded-loops":
            return "only the fused kernel holds a loop"
        if self.argument != "none" and (self.bindings != 1 or self.bindgroup != "once" or self.independent):
            return "arguments are varied on one bind group of one buffer"
        if self.pattern == "read-each" and self.caller != "binding":
            return "reading back needs a callback into Python"
        return ""

    @property
    def per(self) -> int:
        """Units a group of the loop, that is, a submission; 0: one submission for all."""
        return {"per-k": self.k, "per-pass": 0, "one-pass": 0, "fused": 0}.get(self.pattern, 1)

    @property
    def overlap(self) -> Overlap:
        """Whether the device can work while the host still issues."""
        return "pipelined" if self.pattern in ("per-submit", "per-k") else "serial"

    @property
    def waits_each(self) -> bool:
        return self.pattern in ("wait-each", "read-each")

    @property
    def buffers(self) -> int:
        """Data buffers: unit i is on buffer ``i % buffers``."""
        return RING if self.independent else 1

    @property
    def kernel(self) -> str:
        """File name of the kernel."""
        if self.pattern == "fused":
            return "fused.wgsl"
        if self.bindings > 1:
            return f"step_{self.bindings}_bindings.wgsl"
        named = {"none": "step", "immediates": "step_immediate"}
        return f"{named.get(self.argument, 'step_uniform')}.wgsl"

    @property
    def uniform(self) -> bool:
        """Whether the kernel has a uniform at binding 1."""
        return self.pattern == "fused" or self.argument in ("write-buffer", "dynamic-offset")


_PLAIN = ("once", "none", 1, False)


@dataclass(frozen=True)
class Steps:
    """Names of the loop's steps, which are also the stages that are timed."""

    head: tuple[str, ...]
    body: tuple[str, ...]
    tail: tuple[str, ...]
    per: int


def steps(recipe: Recipe) -> Steps:
    """The loop of a case, the same for every caller."""
    every = recipe.bindgroup != "once" or recipe.argument == "dynamic-offset"
    bind = {"fresh": ("create bind group", "set bind group", "release bind group")}.get(
        recipe.bindgroup, ("set bind group",)
    )
    dispatch = (*(("set immediates",) if recipe.argument == "immediates" else ()), "dispatch")
    unit = (*bind, *dispatch) if every else dispatch
    begin = ("begin pass", "set pipeline", *(() if every else bind))
    write = ("write buffer",) if recipe.argument == "write-buffer" else ()
    close = {"wait-each": ("wait",), "read-each": ("read",)}.get(recipe.pattern, ())
    if recipe.pattern == "per-pass":
        whole = (*begin, *unit, "end pass", "release pass")
        return Steps(("create encoder",), whole, ("finish", "submit", "release"), 0)
    head = (*write, "create encoder", *begin)
    tail = ("end pass", "finish", "submit", "release pass", "release", *close)
    if recipe.pattern == "fused":
        return Steps((*head, *unit), (), tail, 0)
    return Steps(head, unit, tail, recipe.per)
