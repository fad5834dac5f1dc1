"""How a stack runs workloads: its cases, and chains that are compared with NumPy when they open.

A workload is a computation that repeats one step on its own result, for many elements at once.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from overhead.probes.base import Space, Unsupported, Unverified
from overhead.probes.held_chain import HeldChain
from overhead.results import Caller, Case, Pattern, Scalar, because
from overhead.workloads import sources, workloads
from overhead.workloads.base import Array, KernelEntry, Workload
from overhead.workloads.equivalence import Differs, check_chain

_WRAP = 1 << 32
"""Counters are 32 bits wide."""


@dataclasses.dataclass(frozen=True)
class WorkloadArm:
    """One way to run workloads on a stack: the ``pattern``, ``params`` and ``caller`` of its cases.

    ``bodies``: which of ``Workload.bodies`` (several ways to run a step) it can run. ``fits``:
    returns True if it can run a workload. ``language``: the language of its kernels; '' if it has
    none. ``early``: True if every run measures it.
    """

    pattern: Pattern
    params: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)
    caller: Caller = "binding"
    bodies: tuple[str, ...] = ()
    fits: Callable[[Workload], bool] = lambda workload: True
    language: str = ""
    early: bool = False


def with_workloads(star: Space, arms: Sequence[WorkloadArm], *, software: bool) -> Space:
    """The cases of a stack (``star``), extended by every workload with every arm (way to run it)
    and size.

    ``software``: True for a CPU or a software adapter, which get smaller numbers of elements. Every
    run measures the ``early`` arms of light workloads, and on a GPU of those that are ``usual``,
    with the first number of elements.
    """
    found, allowed = workloads().values(), star.allowed
    soon = [arm for arm in arms if arm.early]
    usual = sorted(
        (w for w in found if not w.heavy or (w.usual and not software)), key=lambda w: w.heavy
    )
    return dataclasses.replace(
        star,
        early=[
            *star.early,
            *(case for w in usual for case in _cases(w, soon, software)[: len(soon)]),
        ],
        extra=[*star.extra, *(case for w in found for case in _cases(w, arms, software))],
        allowed=lambda case: "elements" in case.params or allowed(case),
    )


def _cases(workload: Workload, arms: Sequence[WorkloadArm], software: bool) -> list[Case]:
    """All variants with every arm and body: first with the first number of elements, then with the
    second, and so on.

    If a workload is not written in the language of an arm, there is one case, whose record contains
    the reason. Where the workload or the arm has no choice of bodies, there is no parameter for it.
    """
    made = [(variant, workload.at(variant)) for variant in workload.variants]
    ranks = itertools.zip_longest(*([(v, w, n) for n in w.sizes(software)] for v, w in made))
    return [
        Case(
            pattern=arm.pattern,
            caller=arm.caller,
            unit="step",
            workload=workload.name,
            params={**arm.params, **variant, "elements": elements, **body},
        )
        for variant, at, elements in filter(None, itertools.chain.from_iterable(ranks))
        for arm in arms
        if arm.fits(at) and (arm.language not in at.missing or elements == at.sizes(software)[0])
        for body in (
            [{"body": name} for name in arm.bodies if name in at.bodies]
            if at.bodies and arm.bodies
            else [{}]
        )
    ]


class WorkChain(HeldChain):
    """A chain that runs the workload of its case. A unit is one step of all elements.

    A subclass implements ``put`` (set the state), ``fetch`` (read it), ``issue`` and ``wait``.
    Every element has a counter that each step increases by one, so that the values tell how many
    steps ran. A stack's ``open`` must return ``verified(chain)``, which compares the chain with
    NumPy in float64; else the case is ``unverified``.

    Attributes: ``case``; ``workload``, in the variant of the case; ``elements``, their number;
    ``inputs``, the read-only arrays by name, in the precision of the workload; ``rng``, a random
    generator.
    """

    language: str = "array"
    """The language of the kernels, for the record."""
    on_host: bool = False
    """True if a CPU computes the steps. Then subnormal numbers, which may be six times slower, are
    avoided.
    """

    def __init__(self, case: Case) -> None:
        known = workloads()
        if case.workload not in known:
            raise Unsupported(because("no-such-workload", workload=case.workload))
        try:
            self.case, self.workload = case, known[case.workload].at(case.params)
        except KeyError as error:
            raise Unsupported(
                because("no-such-variant", workload=case.workload, text=error)
            ) from error
        self.elements = int(case.params["elements"])
        self.__seed = secrets.randbits(32)
        self.rng = np.random.default_rng(self.__seed)
        made = self.workload.inputs(self.elements, self.rng)
        self.inputs = {
            name: np.asarray(values, self.workload.dtype) for name, values in made.items()
        }
        self.__last = self.__total = self.__age = 0
        self.start_state: dict[str, Array] = {}

    @abc.abstractmethod
    def put(self, state: dict[str, Array]) -> None:
        """Set the state (by name, arrays in the workload's precision, shape ``(elements, ...)``),
        and counters to 0.
        """

    @abc.abstractmethod
    def fetch(self) -> tuple[dict[str, Array], Array]:
        """The state, as in ``put``, and the number of steps of each element: uint32, shape
        ``(elements,)``.
        """

    def get(self) -> tuple[dict[str, Array], int]:
        """The state and the number of steps. Raises ``Unverified`` if elements have different
        numbers of steps.
        """
        state, counters = self.fetch()
        return state, self.agreed(counters)

    def agreed(self, counters: Array) -> int:
        """The number of steps that all counters show. Raises ``Unverified`` if they differ."""
        if len(counters) != self.elements or (counters != counters[0]).any():
            raise Unverified(
                because("elements-disagree", least=counters.min(), most=counters.max())
            )
        return int(counters[0])

    def advance(self, steps: int) -> None:
        """Run this many steps and wait for them."""
        for n in [self.max_n] * (steps // self.max_n) + [steps % self.max_n]:
            self.prepare(n)
            self.issue(n)
            self.wait()

    def count(self) -> int:
        """The number of steps since ``put``. Subclasses may override it to read only the
        counters.
        """
        return self.get()[1]

    def executed(self) -> int:
        """The number of steps since the chain was opened, without those of ``aside``. Raises
        ``Unverified``.
        """
        if not self.start_state:
            raise Unverified(because("chain-without-reference"))
        now = self.count()
        self.__total += (now - self.__last) % _WRAP
        self.__last = now
        return self.__total - self.aside

    def verify(self) -> None:
        """Compare the chain with NumPy on random inputs, then set a start state. Raises
        ``Unverified``.
        """
        self.start_state = {}
        try:
            check_chain(self.workload, self.elements, self.inputs, self, self.rng)
        except Differs as error:
            raise Unverified(
                because("differs-from-reference", why=error.reason, seed=self.__seed)
            ) from error
        self.begin()
        if self.on_host and self.workload.lasts:
            self.max_n = min(self.max_n, self.workload.lasts)

    def begin(self) -> None:
        """Set a new random start state, and count steps from there."""
        self.start_state = self.workload.fresh(self.elements, self.rng)
        self.put(self.start_state)
        self.__last = self.__total = self.aside = self.__age = 0

    def prepare(self, n: int) -> None:
        """Call ``renew``. A subclass that overrides this must call it too."""
        self.renew(n)

    def renew(self, n: int) -> None:
        """Set the start state again if n more steps would make numbers subnormal. Does so only if
        ``on_host``.
        """
        lasts = self.workload.lasts
        if self.on_host and self.start_state and 0 < lasts < self.__age + n and self.__age:
            self.executed()
            self.put(self.start_state)
            self.__last = self.__age = 0
        self.__age += n

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values for the results file: language, precision, number of
        elements.
        """
        return {
            "language": self.language,
            "precision": self.workload.precision,
            "elements": self.elements,
        }

    def zeros(self) -> dict[str, Array]:
        """A state, as for ``put``, that contains only zeros."""
        return {
            f.name: np.zeros((self.elements, *f.shape), self.workload.dtype)
            for f in self.workload.state
        }


class _Verifiable(Protocol):
    def verify(self) -> None: ...
    def close(self) -> None: ...


C = TypeVar("C", bound=_Verifiable)


def verified(chain: C) -> C:
    """Call ``chain.verify()`` and return the chain. If the check fails, close the chain and raise
    ``Unverified``.
    """
    try:
        chain.verify()
    except BaseException:
        chain.close()
        raise
    return chain


def kernels_of(chain: WorkChain, language: str) -> tuple[str, tuple[KernelEntry, ...]]:
    """The source text of the chain's workload in ``language`` (such as ``wgsl``), and the kernels
    of a step.

    The kernels are in launch order. Raises ``Unsupported`` if the workload is not written in the
    language.
    """
    name, found = chain.workload.name, sources.kernels_of(chain.workload, language, chain.elements)
    if found is None:
        why = chain.workload.missing.get(language, because("not-written-in-language"))
        raise Unsupported(
            because("no-kernel-in-language", why=why, workload=name, language=language)
        )
    body = "fused" if chain.case.pattern == "fused" else str(chain.case.params.get("body", "one"))
    if body not in found.entries:
        raise Unsupported(
            because("no-body-in-language", workload=name, body=body, language=language)
        )
    return found.text, found.entries[body]


def step_of(chain: WorkChain, xp: Any, fixed: dict[str, Any]) -> Any:
    """A function that computes the next state from a state. Both are dicts of arrays of ``xp``
    (numpy, torch, ...).

    The state includes the counters, as ``steps``: int32, shape ``(elements,)``. ``fixed``:
    ``chain.inputs`` as arrays of ``xp``.
    """
    by_library = chain.case.params.get("body") == "library"
    step = chain.workload.library if by_library else chain.workload.step

    def run(state: dict[str, Any]) -> dict[str, Any]:
        steps = state["steps"]
        return {**step(xp, state, fixed, steps[:1]), "steps": steps + 1}

    return run
