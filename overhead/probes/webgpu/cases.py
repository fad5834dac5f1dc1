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
    """A case of the step (the stack's own unit of work, one dispatch of a small kernel) with a
    value for every parameter.

    ``independent``: the units work on buffers in turn, so that they need not wait for one another.
    ``k``: units per submission in the pattern ``per-k``. ``bindgroup``: whether the bind group is
    set once, is one of several in turn (``rotated``), or is created for each unit (``fresh``).
    ``indirect``: the number of workgroups comes from a buffer. ``wait``: '' for the cheapest wait.
    """

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
        """The ``StepSpec`` of a case; parameters that the case leaves out get their default. Raises
        ``Unsupported`` if WebGPU cannot run the case.
        """
        if case.pattern not in _PATTERNS:
            raise Unsupported(because("webgpu-has-no-pattern", pattern=case.pattern))
        if case.workload != "step":
            raise Unsupported(because("no-such-workload", workload=case.workload))
        if case.caller not in ("binding", "ffi", "native"):
            raise Unsupported(because("no-such-caller", caller=case.caller))
        # Raises for a parameter, or a value of one, that is not in ``_PARAMETERS``.
        check_parameters(case, _PARAMETERS)
        # Parameters have the names of the fields; ``_check`` finds those that exclude each other.
        spec = cls(case.pattern, case.caller, case.dependency == "independent", **case.params)  # type: ignore[arg-type]
        spec._check()
        return spec

    def _check(self) -> None:
        """Raise ``Unsupported`` for parameters that exclude each other, or that no loop is written
        for.
        """
        # Only the pattern ``per-k`` has a number k of units in a submission.
        has_k = self.k > 1
        is_from_python = self.caller == "binding"
        needs_k = self.pattern == "per-k"
        if needs_k != has_k:
            raise Unsupported(because("per-k-takes-k"))
        # Another buffer needs another bind group.
        if self.independent and self.bindgroup == "once":
            raise Unsupported(because("independent-rotates-groups"))
        # All units are one dispatch.
        if self.pattern == "fused" and (self.bindgroup != "once" or self.indirect):
            raise Unsupported(because("fused-has-one-group"))
        # The loops of C calls have no such steps.
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
    """What a loop over units (dispatches) does, as names such as ``submit``, which a caller turns
    into statements of Python or calls of C. Head and tail run once per group of ``per`` units, body
    runs once per unit.

    ``per`` = 0: all units are one group. Each name is also a stage that can be timed.
    """

    head: tuple[str, ...]
    body: tuple[str, ...]
    tail: tuple[str, ...]
    per: int


def steps(spec: StepSpec) -> Steps:
    """What the loop of a case does, by name. The same for every caller (Python, C calls from
    Python, compiled code), so that their difference is the cost of the caller.

    A command encoder records passes with dispatches; it is finished and submitted. ``begin`` starts
    a pass, and ``unit`` is what each dispatch needs. A group of units is one submission.
    """
    begin: tuple[str, ...] = ("begin pass", "set pipeline")
    unit: tuple[str, ...] = ("dispatch",)
    if spec.bindgroup == "once":  # once in a pass
        begin = (*begin, "set bind group")
    elif spec.bindgroup == "fresh":
        unit = ("create bind group", "set bind group", "release bind group", *unit)
    else:
        unit = ("set bind group", *unit)

    # A pass for each unit, all in one submission.
    if spec.pattern == "per-pass":
        whole_pass = (*begin, *unit, "end pass", "release pass")
        # 0: the number of units in a group; all units are one.
        return Steps(("create encoder",), whole_pass, ("finish", "submit", "release"), 0)

    head = ("create encoder", *begin)
    tail: tuple[str, ...] = ("end pass", "finish", "submit", "release pass", "release")
    if spec.pattern == "wait-each":
        tail = (*tail, "wait")
    elif spec.pattern == "read-each":
        tail = (*tail, "read")
    if spec.pattern == "fused":  # one dispatch for all units: no step is repeated
        # The last number is of the units in a group; 0: all are one group.
        return Steps((*head, *unit), (), tail, 0)
    # ``per``: the units in a submission, 0 where all are in one.
    return Steps(head, unit, tail, spec.per)


def space(target: Target) -> Space:
    """The cases, ways to dispatch a kernel, that are measured on a target (an adapter of
    wgpu-native or Dawn). The base has one dispatch per submission, from Python. Each of the
    ``axes``, the most informative first, changes one thing of it; every run measures the ``early``
    cases. Other callers are compiled code (``native``) and Python without wrapper objects
    (``ffi``). None among the values of an axis means that the base has no such parameter.
    """
    on_dawn = target.stack == "dawn"
    axes: dict[str, list[Scalar | None]] = {
        "caller": ["ffi"],
        "pattern": ["one-pass", "per-pass", "fused", "wait-each", "read-each"],
        "bindgroup": [None, "rotated", "fresh"],
        "wait": [None, "map", "read-buffer"],
        "indirect": [None, True],
    }
    if on_dawn:  # wgpu-native cannot skip its validation
        axes["validation"] = [None, "skip"]
    axes["dependency"] = ["independent"]

    base = Case(pattern="per-submit")
    early = [vary(base, "caller", "native")]
    for pattern in ("one-pass", "fused", "wait-each", "read-each"):
        early.append(vary(base, "pattern", pattern))
    early.append(vary(base, "caller", "ffi"))
    return Space(base, axes, list(_extra_cases(on_dawn)), _is_offered, early)


def _extra_cases(on_dawn: bool) -> Iterator[Case]:
    """The cases that differ from the base (one dispatch per submission, from Python) in several
    ways: k dispatches per submission, bind groups in turn, and the patterns of the other callers.
    Python has more sizes of a submission than these.
    """
    rotated: dict[str, Scalar] = {"bindgroup": "rotated"}
    callers: tuple[Caller, ...] = ("binding", "native", "ffi")
    for caller in callers:
        sizes = (4, 16, 64, 256) if caller == "binding" else (16, 64)
        for k in sizes:
            yield Case(pattern="per-k", caller=caller, params={"k": k})
        # Independent units work on several buffers, so their bind groups must rotate. The second is
        # the same as the first, but its units depend on each other.
        yield Case(pattern="per-submit", caller=caller, dependency="independent", params=rotated)
        yield Case(pattern="per-submit", caller=caller, params=rotated)
        yield Case(pattern="one-pass", caller=caller, params=rotated)

    of_c_calls: tuple[Caller, ...] = ("native", "ffi")
    patterns: tuple[Pattern, ...] = ("one-pass", "per-pass", "fused", "wait-each")
    # Without ``read-each``, which needs Python.
    base = Case(pattern="per-submit")
    for caller in of_c_calls:
        # What the axes of ``space`` have from Python, by the other callers.
        for pattern in patterns:
            yield vary(vary(base, "caller", caller), "pattern", pattern)

    if on_dawn:
        unvalidated: dict[str, Scalar] = {"validation": "skip"}
        yield Case(pattern="per-submit", caller="native", params=unvalidated)
        yield Case(pattern="one-pass", caller="native", params=unvalidated)


def _is_offered(case: Case) -> bool:
    """Whether a case belongs to those that are measured, asked for every case that the axes give.
    WebGPU must be able to run it; only launches from Python have another wait than the cheapest;
    and combinations of the lesser parameters are left out.
    """
    if not is_accepted(StepSpec.of, case):
        return False
    spec = StepSpec.of(case)
    may_name_wait = spec.caller == "binding" and spec.pattern in ("per-submit", "wait-each")
    if spec.wait and not may_name_wait:
        return False
    # A case may have one of these parameters, not two.
    lesser = {"bindgroup", "wait", "indirect", "validation"} & set(case.params)
    return len(lesser) <= 1
