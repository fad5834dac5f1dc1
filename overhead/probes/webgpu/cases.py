"""The cases of the step on WebGPU: their parameters, the steps of their loops by name, and those of
a target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from overhead.probes.base import Space, Unsupported, vary
from overhead.probes.common.availability import AllowedValues, check_parameters, is_accepted
from overhead.probes.common.step import RING
from overhead.results import Caller, Case, Overlap, Pattern, Scalar, Target, because

_PATTERNS = ("per-submit", "per-k", "per-pass", "one-pass", "fused", "wait-each", "read-each")
_PARAMETERS: AllowedValues = {
    "k": None,
    "bindgroup": ("once", "rotated", "fresh"),
    "indirect": (False, True),
    "wait": ("", "map", "read-buffer"),
    "validation": ("on", "skip"),
}


@dataclass(frozen=True)
class StepSpec:
    """A case of the step (the stack's own unit of work) with a value for every parameter."""

    pattern: str
    caller: str
    independent: bool
    k: int = 0
    bindgroup: str = "once"
    indirect: bool = False
    wait: str = ""
    validation: str = "on"

    @classmethod
    def of(cls, case: Case) -> StepSpec:
        """The ``StepSpec`` of a case. Raises ``Unsupported`` if WebGPU cannot run the case."""
        if case.pattern not in _PATTERNS:
            raise Unsupported(because("webgpu-has-no-pattern", pattern=case.pattern))
        if case.workload != "step":
            raise Unsupported(because("no-such-workload", workload=case.workload))
        if case.caller not in ("binding", "ffi", "native"):
            raise Unsupported(because("no-such-caller", caller=case.caller))
        check_parameters(case, _PARAMETERS)
        spec = cls(case.pattern, case.caller, case.dependency == "independent", **case.params)  # type: ignore[arg-type]
        spec._check()
        return spec

    def _check(self) -> None:
        """Raise ``Unsupported`` for values that exclude each other."""
        has_k = self.k > 1
        is_from_python = self.caller == "binding"
        if (self.pattern == "per-k") != has_k:
            raise Unsupported(because("per-k-takes-k"))
        if self.independent and self.bindgroup == "once":
            raise Unsupported(because("independent-rotates-groups"))
        if self.pattern == "fused" and (self.bindgroup != "once" or self.indirect):
            raise Unsupported(because("fused-has-one-group"))
        if self.pattern == "read-each" and not is_from_python:
            raise Unsupported(because("reading-needs-python"))
        if not is_from_python and (self.bindgroup == "fresh" or self.indirect):
            raise Unsupported(because("measured-from-python-alone"))

    @property
    def per(self) -> int:
        """Units per submission; 0: all units are one submission."""
        if self.pattern == "per-k":
            return self.k
        if self.pattern in ("per-pass", "one-pass", "fused"):
            return 0
        return 1

    @property
    def overlap(self) -> Overlap:
        """``pipelined`` if the device can start while the host is still issuing units, else
        ``serial``.
        """
        return "pipelined" if self.pattern in ("per-submit", "per-k") else "serial"

    @property
    def waits_each(self) -> bool:
        """True if each unit contains a wait."""
        return self.pattern in ("wait-each", "read-each")

    @property
    def buffers(self) -> int:
        """The number of data buffers. Unit i works on buffer ``i % buffers``."""
        return RING if self.independent else 1

    @property
    def kernel(self) -> str:
        """The file name of the WGSL kernel."""
        return "fused.wgsl" if self.pattern == "fused" else "step.wgsl"


@dataclass(frozen=True)
class Steps:
    """The steps of a loop by name. Head and tail run once per group of ``per`` units, body runs
    once per unit.

    ``per`` = 0: all units are one group. Each name is also a stage that can be timed.
    """

    head: tuple[str, ...]
    body: tuple[str, ...]
    tail: tuple[str, ...]
    per: int


def steps(spec: StepSpec) -> Steps:
    """The steps of the loop of a case. They are the same for every caller."""
    begin: tuple[str, ...] = ("begin pass", "set pipeline")
    unit: tuple[str, ...] = ("dispatch",)
    if spec.bindgroup == "once":
        begin = (*begin, "set bind group")
    elif spec.bindgroup == "fresh":
        unit = ("create bind group", "set bind group", "release bind group", *unit)
    else:
        unit = ("set bind group", *unit)

    if spec.pattern == "per-pass":
        whole_pass = (*begin, *unit, "end pass", "release pass")
        return Steps(("create encoder",), whole_pass, ("finish", "submit", "release"), 0)

    head = ("create encoder", *begin)
    tail: tuple[str, ...] = ("end pass", "finish", "submit", "release pass", "release")
    if spec.pattern == "wait-each":
        tail = (*tail, "wait")
    elif spec.pattern == "read-each":
        tail = (*tail, "read")
    if spec.pattern == "fused":
        return Steps((*head, *unit), (), tail, 0)
    return Steps(head, unit, tail, spec.per)


def space(target: Target) -> Space:
    """The cases of a target, the most informative first. The base has one dispatch per submission,
    from Python.
    """
    on_dawn = target.stack == "dawn"
    axes: dict[str, list[Scalar | None]] = {
        "caller": ["ffi"],
        "pattern": ["one-pass", "per-pass", "fused", "wait-each", "read-each"],
        "bindgroup": [None, "rotated", "fresh"],
        "wait": [None, "map", "read-buffer"],
        "indirect": [None, True],
    }
    if on_dawn:
        axes["validation"] = [None, "skip"]
    axes["dependency"] = ["independent"]

    base = Case(pattern="per-submit")
    early = [vary(base, "caller", "native")]
    for pattern in ("one-pass", "fused", "wait-each", "read-each"):
        early.append(vary(base, "pattern", pattern))
    early.append(vary(base, "caller", "ffi"))
    return Space(base, axes, list(_extra_cases(on_dawn)), _offers, early)


def _extra_cases(on_dawn: bool) -> Iterator[Case]:
    """The cases that differ from the base in several axes. Python has more sizes of a submission
    than the other callers.
    """
    rotated: dict[str, Scalar] = {"bindgroup": "rotated"}
    callers: tuple[Caller, ...] = ("binding", "native", "ffi")
    for caller in callers:
        sizes = (4, 16, 64, 256) if caller == "binding" else (16, 64)
        for k in sizes:
            yield Case(pattern="per-k", caller=caller, params={"k": k})
        yield Case(pattern="per-submit", caller=caller, dependency="independent", params=rotated)
        yield Case(pattern="per-submit", caller=caller, params=rotated)
        yield Case(pattern="one-pass", caller=caller, params=rotated)

    without_python: tuple[Caller, ...] = ("native", "ffi")
    patterns: tuple[Pattern, ...] = ("one-pass", "per-pass", "fused", "wait-each")
    base = Case(pattern="per-submit")
    for caller in without_python:
        for pattern in patterns:
            yield vary(vary(base, "caller", caller), "pattern", pattern)

    if on_dawn:
        unvalidated: dict[str, Scalar] = {"validation": "skip"}
        yield Case(pattern="per-submit", caller="native", params=unvalidated)
        yield Case(pattern="one-pass", caller="native", params=unvalidated)


def _offers(case: Case) -> bool:
    """Whether WebGPU can run the case, and the case differs from the base in at most one detail."""
    if not is_accepted(StepSpec.of, case):
        return False
    spec = StepSpec.of(case)
    may_name_wait = spec.caller == "binding" and spec.pattern in ("per-submit", "wait-each")
    if spec.wait and not may_name_wait:
        return False
    details = {"bindgroup", "wait", "indirect", "validation"} & set(case.params)
    return len(details) <= 1
