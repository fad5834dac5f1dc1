"""Chains that run a workload. Each one is checked against the reference when it opens. The device counts the steps."""

from __future__ import annotations

import abc
import dataclasses
import itertools
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

from overhead.probes._support.cuda.device_time import HeldChain
from overhead.probes.base import Space, Unsupported, Unverified
from overhead.results import Caller, Case, Pattern, Scalar
from overhead.workloads import sources, workloads
from overhead.workloads.base import Array, KernelEntry, Workload
from overhead.workloads.equivalence import Differs, check

_WRAP = 1 << 32
"""Counters are 32 bits wide."""


@dataclasses.dataclass(frozen=True)
class WorkloadArm:
    """One way to run workloads: a pattern with parameters and a caller.

    ``bodies``: the bodies it can run, for a workload with several. ``fits``: whether it can run a workload.
    ``language``: the language of its kernels, if it has any. ``early``: whether a short run measures it too.
    """

    pattern: Pattern
    params: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)
    caller: Caller = "binding"
    bodies: tuple[str, ...] = ()
    fits: Callable[[Workload], bool] = lambda workload: True
    language: str = ""
    early: bool = False


def eager(*bodies: str) -> WorkloadArm:
    """The arm that runs eager operations of an array library."""
    return WorkloadArm("per-submit", bodies=bodies)


def fused(language: str, params: Mapping[str, Scalar] | None = None) -> WorkloadArm:
    """The arm that runs one kernel, which loops over the steps."""
    return WorkloadArm("fused", params or {}, bodies=("one",), language=language, early=True)


def launches(language: str, *bodies: str) -> WorkloadArm:
    """The arm that launches each kernel of each step."""
    return WorkloadArm("per-submit", bodies=bodies, language=language)


IN_TURN = WorkloadArm("hybrid", fits=lambda w: w.host_works)
"""Every other step on the host, for workloads that compare host and device."""
IN_TURN_TOO = WorkloadArm("hybrid", fits=lambda w: not w.host_works and not w.bodies)
"""The same pattern for all other workloads whose step is not split."""


def on_all_threads(pattern: Pattern) -> WorkloadArm:
    """The arm with this pattern on all threads of the host, for workloads that compare host and device."""
    return WorkloadArm(pattern, {"threads": "all"}, fits=lambda w: w.host_works)


def space(star: Space, arms: Sequence[WorkloadArm], *, software: bool, late: Sequence[WorkloadArm] = ()) -> Space:
    """The cases of a stack (``star``), extended by every workload with every arm and each number of elements.

    For light workloads, the first arm and the ``early`` arms come directly after the base case, with the first number
    of elements, so that a short run measures them. ``late`` arms come last.
    """
    found = workloads().values()
    soon = [arm for i, arm in enumerate(arms) if i == 0 or arm.early]
    first = [case for w in found if not w.heavy for case in _cases(w, soon, software)[: len(soon)]]
    all_of_them = [case for some in (arms, late) for w in found for case in _cases(w, some, software)]
    allowed = star.allowed
    return dataclasses.replace(
        star,
        early=[*star.early, *first],
        extra=[*star.extra, *all_of_them],
        allowed=lambda case: "elements" in case.params or allowed(case),
    )


def _cases(workload: Workload, arms: Sequence[WorkloadArm], software: bool) -> list[Case]:
    """All variants with every arm and body: first with the first number of elements, then with the second, and so on.

    If a workload is not written in the language of an arm, there is one case, whose record contains the reason.
    """
    made = [(variant, workload.at(variant)) for variant in workload.variants]
    ranks = itertools.zip_longest(*([(v, w, n) for n in w.sizes(software)] for v, w in made))
    return [
        Case(pattern=arm.pattern, caller=arm.caller, unit="step", workload=workload.name,
             params={**arm.params, **variant, "elements": elements, **body})
        for variant, at, elements in filter(None, itertools.chain.from_iterable(ranks))
        for arm in arms
        if arm.fits(at) and (arm.language not in at.missing or elements == at.sizes(software)[0])
        for body in _bodies(at, arm)
    ]  # fmt: skip


def _bodies(workload: Workload, arm: WorkloadArm) -> list[dict[str, Scalar]]:
    """The bodies of the arm as parameters; no parameter if the workload or the arm has no choice of bodies."""
    if not workload.bodies or not arm.bodies:
        return [{}]
    return [{"body": body} for body in arm.bodies if body in workload.bodies]


def wgsl_arms(stack: str, caller: Caller = "binding") -> list[WorkloadArm]:
    """The arms that run WGSL.

    One arm has the parameter ``checks``: it omits the checks that the library adds to kernels, which are loop bounds
    (wgpu-native) or index clamps (Dawn).
    """
    fewer = {"wgpu-native": "unbounded-loops", "dawn": "off"}.get(stack)
    unchecked = [fused("wgsl", {"checks": fewer})] if fewer else []
    each = WorkloadArm("one-pass", bodies=("separate", "one"), language="wgsl")
    submitted = dataclasses.replace(each, pattern="per-submit", fits=lambda w: bool(w.bodies))
    return [dataclasses.replace(arm, caller=caller) for arm in (fused("wgsl"), *unchecked, each, submitted)]


def wgsl_submitted(caller: Caller = "binding") -> WorkloadArm:
    """The arm with one submission per step, for workloads whose step is one dispatch."""
    return WorkloadArm("per-submit", caller=caller, fits=lambda w: not w.bodies, language="wgsl")


WGSL_BINDINGS: tuple[Literal["storage", "read-only-storage", "uniform"], ...] = (
    "storage", "storage", "read-only-storage", "uniform",
)  # fmt: skip
"""Bindings of the generated WGSL in group 0: state, counters, inputs, and 16 bytes with the number of steps first."""


def refuse_wgsl(case: Case) -> None:
    """Raise ``Unsupported`` if the WGSL of workloads cannot run the pattern of this case."""
    if case.pattern not in ("one-pass", "per-submit", "fused"):
        raise Unsupported(f"a workload's WGSL runs as one-pass, per-submit or fused, not {case.pattern}")


def wgsl_window(pattern: Pattern, entries: Sequence[KernelEntry]) -> dict[str, Scalar]:
    """The contents of the timed window for the WGSL of a workload."""
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


IN_SPIRV = frozenset({"recurrence"})
"""Workloads whose SPIR-V is committed, as ``<name>_once`` and ``<name>_fused``."""


def spirv_arms() -> list[WorkloadArm]:
    """The arms that run SPIR-V.

    ``fused`` is one dispatch that loops. ``replay`` is one dispatch per step, all in one recording.
    """
    loop = WorkloadArm("fused", caller="ffi", fits=lambda w: w.name in IN_SPIRV, early=True)
    return [loop, dataclasses.replace(loop, pattern="replay")]


class WorkChain(HeldChain):
    """A chain that runs a workload. A unit is one step of all elements."""

    language = "array"
    on_host = False
    """Whether a CPU computes the steps. Subnormal numbers may make it six times slower."""

    def __init__(self, case: Case) -> None:
        known = workloads()
        if case.workload not in known:
            raise Unsupported(f"no workload {case.workload} here")
        try:
            self.case, self.workload = case, known[case.workload].at(case.params)
        except KeyError as error:
            raise Unsupported(f"{case.workload} has no such variant: {error}") from error
        self.elements = int(case.params["elements"])
        self._seed = secrets.randbits(32)
        self.rng = np.random.default_rng(self._seed)
        made = self.workload.inputs(self.elements, self.rng)
        self.inputs = {name: np.asarray(values, self.workload.dtype) for name, values in made.items()}
        self._last = self._total = self._age = 0
        self._start: dict[str, Array] = {}

    @abc.abstractmethod
    def put(self, state: dict[str, Array]) -> None:
        """Set the state (arrays in the precision of the workload), and set all counters to 0."""

    @abc.abstractmethod
    def fetch(self) -> tuple[dict[str, Array], Array]:
        """The state, and the number of steps of each element (uint32)."""

    def get(self) -> tuple[dict[str, Array], int]:
        """The state and its number of steps. Raises ``Unverified`` if elements have different numbers of steps."""
        state, counters = self.fetch()
        return state, self.agreed(counters)

    def agreed(self, counters: Array) -> int:
        """The common value of all counters. Raises ``Unverified`` if they differ."""
        if len(counters) != self.elements or (counters != counters[0]).any():
            raise Unverified(f"elements disagree: between {counters.min()} and {counters.max()} steps")
        return int(counters[0])

    def advance(self, steps: int) -> None:
        """Run this many steps and wait for them."""
        for n in [self.max_n] * (steps // self.max_n) + [steps % self.max_n]:
            self.prepare(n)
            self.issue(n)
            self.wait()

    def count(self) -> int:
        """The number of steps. Subclasses may override it to read only the counters."""
        return self.get()[1]

    def executed(self) -> int:
        now = self.count()
        self._total += (now - self._last) % _WRAP
        self._last = now
        return self._total - self.aside

    def verify(self) -> None:
        """Check the chain on fresh random inputs, then set its start state. Raises ``Unverified``."""
        self._start = {}
        try:
            check(self.workload, self.elements, self.inputs, self, self.rng)
        except Differs as error:
            raise Unverified(f"differs from the reference: {error} (seed {self._seed})") from error
        self._start = self.workload.fresh(self.elements, self.rng)
        self.put(self._start)
        self._last = self._total = self.aside = self._age = 0
        if self.on_host and self.workload.lasts:
            self.max_n = min(self.max_n, self.workload.lasts)

    def renew(self, n: int) -> None:
        """Must be called before n steps. On a CPU, restarts from the start state before numbers become subnormal."""
        lasts = self.workload.lasts
        if self.on_host and self._start and 0 < lasts < self._age + n and self._age:
            self.executed()
            self.put(self._start)
            self._last = self._age = 0
        self._age += n

    def window(self) -> dict[str, Scalar]:
        return {"language": self.language, "precision": self.workload.precision, "elements": self.elements}

    def zeros(self) -> dict[str, Array]:
        """A state that contains only zeros."""
        return {f.name: np.zeros((self.elements, *f.shape), self.workload.dtype) for f in self.workload.state}


C = TypeVar("C", bound=WorkChain)


def verified(chain: C) -> C:
    """Check the chain against the reference and return it. If the check fails, close it and raise ``Unverified``."""
    try:
        chain.verify()
    except BaseException:
        chain.close()
        raise
    return chain


def kernels_of(chain: WorkChain, language: str) -> tuple[str, tuple[KernelEntry, ...]]:
    """The source text of a workload in a language, and the kernels of one unit in launch order.

    Raises ``Unsupported`` if the workload is not written in the language.
    """
    name, found = chain.workload.name, sources.kernels(chain.workload, language, chain.elements)
    if found is None:
        reason = chain.workload.missing.get(language, "it is not written in it")
        raise Unsupported(f"{name} has no {language}: {reason}")
    body = "fused" if chain.case.pattern == "fused" else str(chain.case.params.get("body", "one"))
    if body not in found.entries:
        raise Unsupported(f"{name} has no body {body} in {language}")
    return found.text, found.entries[body]


def step_of(chain: WorkChain, xp: Any, fixed: dict[str, Any]) -> Any:
    """A function that computes the next state from a state. The state includes the counters, as ``steps``."""
    by_library = chain.case.params.get("body") == "library"
    step = chain.workload.library if by_library else chain.workload.step

    def run(state: dict[str, Any]) -> dict[str, Any]:
        steps = state["steps"]
        return {**step(xp, state, fixed, steps[:1]), "steps": steps + 1}

    return run
