"""The cases of the step on WebGPU: their parameters, the steps of their loops by name, and those of
a target.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from overhead.probes.base import Space, Unsupported, vary
from overhead.probes.common.availability import AllowedValues, check_parameters, is_accepted
from overhead.probes.common.step import RING
from overhead.results import Caller, Case, Overlap, Scalar, Target, because

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
        if (spec.pattern == "per-k") != (spec.k > 1):
            raise Unsupported(because("per-k-takes-k"))
        if spec.independent and spec.bindgroup == "once":
            raise Unsupported(because("independent-rotates-groups"))
        if spec.pattern == "fused" and (spec.bindgroup != "once" or spec.indirect):
            raise Unsupported(because("fused-has-one-group"))
        if spec.pattern == "read-each" and spec.caller != "binding":
            raise Unsupported(because("reading-needs-python"))
        if spec.caller != "binding" and (spec.bindgroup == "fresh" or spec.indirect):
            raise Unsupported(because("measured-from-python-alone"))
        return spec

    @property
    def per(self) -> int:
        """Units per submission; 0: all units are one submission."""
        return {"per-k": self.k, "per-pass": 0, "one-pass": 0, "fused": 0}.get(self.pattern, 1)

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
    binds_each = spec.bindgroup != "once"
    bind = {"fresh": ("create bind group", "set bind group", "release bind group")}.get(
        spec.bindgroup, ("set bind group",)
    )
    unit = (*bind, "dispatch") if binds_each else ("dispatch",)
    begin = ("begin pass", "set pipeline", *(() if binds_each else bind))
    close = {"wait-each": ("wait",), "read-each": ("read",)}.get(spec.pattern, ())
    if spec.pattern == "per-pass":
        whole = (*begin, *unit, "end pass", "release pass")
        return Steps(("create encoder",), whole, ("finish", "submit", "release"), 0)
    head = ("create encoder", *begin)
    tail = ("end pass", "finish", "submit", "release pass", "release", *close)
    if spec.pattern == "fused":
        return Steps((*head, *unit), (), tail, 0)
    return Steps(head, unit, tail, spec.per)


def space(target: Target) -> Space:
    """The cases of a target, the most informative first. The base has one dispatch per submission,
    from Python.
    """
    dawn = target.stack == "dawn"
    axes: dict[str, list[Scalar | None]] = {
        "caller": ["ffi"],
        "pattern": ["one-pass", "per-pass", "fused", "wait-each", "read-each"],
        "bindgroup": [None, "rotated", "fresh"],
        "wait": [None, "map", "read-buffer"],
        "indirect": [None, True],
        **({"validation": [None, "skip"]} if dawn else {}),
        "dependency": ["independent"],
    }
    base = Case(pattern="per-submit")
    early = [
        vary(base, "pattern", name) for name in ("one-pass", "fused", "wait-each", "read-each")
    ]
    early = [vary(base, "caller", "native"), *early, vary(base, "caller", "ffi")]
    return Space(base, axes, list(_extra_cases(dawn)), _offers, early)


def _extra_cases(dawn: bool) -> Iterator[Case]:
    callers: tuple[Caller, ...] = ("binding", "native", "ffi")
    for caller in callers:
        for k in (4, 16, 64, 256) if caller == "binding" else (16, 64):
            yield Case(pattern="per-k", caller=caller, params={"k": k})
        yield Case(
            pattern="per-submit",
            caller=caller,
            dependency="independent",
            params={"bindgroup": "rotated"},
        )
        yield Case(pattern="per-submit", caller=caller, params={"bindgroup": "rotated"})
        yield Case(pattern="one-pass", caller=caller, params={"bindgroup": "rotated"})
    base = Case(pattern="per-submit")
    for caller, pattern in itertools.product(
        callers[1:], ("one-pass", "per-pass", "fused", "wait-each")
    ):
        yield vary(vary(base, "caller", caller), "pattern", pattern)
    for pattern in ("per-submit", "one-pass") if dawn else ():
        yield vary(
            Case(pattern="per-submit", caller="native", params={"validation": "skip"}),
            "pattern",
            pattern,
        )


def _offers(case: Case) -> bool:
    """Whether WebGPU can run the case, and the case differs from the base in at most one detail."""
    if not is_accepted(StepSpec.of, case):
        return False
    spec = StepSpec.of(case)
    if spec.wait and (spec.caller != "binding" or spec.pattern not in ("per-submit", "wait-each")):
        return False
    return len({"bindgroup", "wait", "indirect", "validation"} & set(case.params)) <= 1
