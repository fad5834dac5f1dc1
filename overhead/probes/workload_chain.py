"""How a stack runs workloads: its cases, and chains that are compared with NumPy when they open.

A workload is a computation that repeats one step on its own result, for many elements at once.
"""

from __future__ import annotations

import abc
import dataclasses
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from overhead.probes.base import Space, Unsupported, Unverified
from overhead.probes.held_chain import HeldChain
from overhead.results import Caller, Case, Pattern, Scalar, because
from overhead.workloads import sources, workloads
from overhead.workloads.base import Array, KernelEntry, Workload
from overhead.workloads.equivalence import Differs, check_chain

_COUNTER_VALUES = 1 << 32
"""A counter on the device has 32 bits and starts again from 0 after so many steps."""


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


def with_workloads(space: Space, arms: Sequence[WorkloadArm], *, software: bool) -> Space:
    """The cases of a stack (``space``), extended by every workload with every arm (way to run it)
    and size.

    ``software``: True for a CPU or a software adapter, which get smaller numbers of elements. Every
    run measures the ``early`` arms of light workloads, and on a GPU of those that are ``usual``,
    with the first number of elements.
    """
    registered = list(workloads().values())
    light = [workload for workload in registered if not workload.heavy]
    # Heavy ones are measured only if named, but for the usual ones, by every run on a GPU.
    usual_heavy = [workload for workload in registered if workload.heavy and workload.usual]
    early_workloads = light if software else [*light, *usual_heavy]

    early_arms = [arm for arm in arms if arm.early]
    early = list(space.early)
    for workload in early_workloads:
        cases = _cases(workload, early_arms, software)
        # The first of them, as many as there are arms: ``_cases`` begins with the first variant in
        # its first size.
        early += cases[: len(early_arms)]

    # Then every workload with every arm. A case that is among the early ones too is measured once.
    extra = list(space.extra)
    for workload in registered:
        extra += _cases(workload, arms, software)

    # ``space.allowed``: the rule by which a stack leaves out cases of its own.
    def is_allowed(case: Case) -> bool:
        is_of_workload = "elements" in case.params  # the stack's own rule does not know these cases
        return is_of_workload or space.allowed(case)

    return dataclasses.replace(space, early=early, extra=extra, allowed=is_allowed)


@dataclasses.dataclass(frozen=True)
class _SizedVariant:
    """A variant of a workload with a number of elements.

    ``params``: what selects the variant. ``is_first_size``: False for the larger sizes.
    """

    params: Mapping[str, Scalar]
    workload: Workload
    elements: int
    is_first_size: bool


def _cases(workload: Workload, arms: Sequence[WorkloadArm], software: bool) -> list[Case]:
    """The cases of a workload: every variant in every size, with every arm that can run it and
    with every body (way to write a step) that workload and arm have in common.
    """
    cases = []
    for variant in _sized_variants(workload, software):
        for arm in arms:
            if not _has_cases(arm, variant):
                continue
            for body_params in _body_params(arm, variant.workload):
                params = {
                    **arm.params,
                    **variant.params,
                    "elements": variant.elements,
                    **body_params,
                }
                case = Case(
                    pattern=arm.pattern,
                    caller=arm.caller,
                    unit="step",
                    workload=workload.name,
                    params=params,
                )
                cases.append(case)
    return cases


def _sized_variants(workload: Workload, software: bool) -> Iterator[_SizedVariant]:
    """All variants in their first size, then all in their second size, and so on.

    A run measures cases in this order. So if its time is too short for all sizes, it still has each
    variant in one size.
    """
    # ``at``: the workload with these parameters, which change what it computes.
    variants = [workload.at(params) for params in workload.variants]
    most_sizes = max((len(variant.sizes(software)) for variant in variants), default=0)
    for rank in range(most_sizes):
        for params, variant in zip(workload.variants, variants, strict=True):
            sizes = variant.sizes(software)
            if rank < len(sizes):
                yield _SizedVariant(params, variant, sizes[rank], is_first_size=rank == 0)


def _has_cases(arm: WorkloadArm, variant: _SizedVariant) -> bool:
    """Whether a run has cases of this variant of a workload, in its size, with this arm (way to run
    it).

    A variant that is not written in the language of the arm has a case in its first size alone: its
    record says why there is no figure, and once is enough.
    """
    if not arm.fits(variant.workload):
        return False
    # ``missing``: the languages in which the workload is not written, with the reasons.
    is_written = arm.language not in variant.workload.missing
    return is_written or variant.is_first_size


def _body_params(arm: WorkloadArm, workload: Workload) -> list[dict[str, Scalar]]:
    """The parameter ``body`` of a case, for each body (way to write a step, such as ``separate``
    kernels) that the workload has and the arm can run.

    One empty dict, which is a case without the parameter, if workload or arm have no choice.
    """
    if not workload.bodies or not arm.bodies:
        return [{}]
    # In the order of the arm.
    return [{"body": name} for name in arm.bodies if name in workload.bodies]


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
    __steps_in_all: int
    """The steps since the chain was opened, up to the last count."""
    __last_count: int
    """What the counters showed when they were last read."""
    __steps_since_put: int
    """The steps since ``put`` set the state, including those that are about to run."""

    def __init__(self, case: Case) -> None:
        """Find the workload of the case, and make random inputs for it. Raises ``Unsupported`` if
        there is no such workload or variant.
        """
        known = workloads()
        if case.workload not in known:
            raise Unsupported(because("no-such-workload", workload=case.workload))
        self.case = case
        try:
            # ``at``: the workload in the variant that the parameters name.
            self.workload = known[case.workload].at(case.params)
        except KeyError as error:
            reason = because("no-such-variant", workload=case.workload, text=error)
            raise Unsupported(reason) from error
        self.elements = int(case.params["elements"])

        # A new seed for each chain: a kernel that is right for some inputs alone is found in time.
        # The reason of a failed comparison names the seed, so that the failure can be repeated.
        self.__seed = secrets.randbits(32)
        self.rng = np.random.default_rng(self.__seed)
        inputs = self.workload.inputs(self.elements, self.rng)
        dtype = self.workload.dtype
        self.inputs = {name: np.asarray(values, dtype) for name, values in inputs.items()}

        self.start_state: dict[str, Array] = {}  # empty until ``verify`` has compared the chain
        # Count steps from 0.
        self.__forget_steps()

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
        """The number of steps that all counters show. Raises ``Unverified`` if they differ, or if
        there is not one for each element. ``counters``: the steps that each element has made.
        """
        elements_differ = (counters != counters[0]).any()
        if len(counters) != self.elements or elements_differ:
            raise Unverified(
                because("elements-disagree", least=counters.min(), most=counters.max())
            )
        return int(counters[0])

    def advance(self, steps: int) -> None:
        """Run this many steps and wait for them, in pieces of at most ``max_n`` steps."""
        whole_pieces, rest = divmod(steps, self.max_n)
        for n in [self.max_n] * whole_pieces + [rest]:
            self.prepare(n)
            self.issue(n)
            self.wait()

    def count(self) -> int:
        """The number of steps since ``put``. Subclasses may override it to read only the
        counters.
        """
        return self.get()[1]

    def executed(self) -> int:
        """The number of steps since the chain was opened, without those of ``aside``, the steps
        that are not to be counted. Raises ``Unverified`` if elements disagree, or if the chain was
        not compared with NumPy.
        """
        if not self.start_state:
            raise Unverified(because("chain-without-reference"))
        # ``count``: the steps since the state was last set, modulo 2^32.
        count = self.count()
        # A counter that has started again from 0 shows less than before.
        self.__steps_in_all += (count - self.__last_count) % _COUNTER_VALUES
        self.__last_count = count
        return self.__steps_in_all - self.aside

    def verify(self) -> None:
        """Compare the chain with NumPy on random inputs, then set a start state. Raises
        ``Unverified`` if the results differ; the reason names the seed of the inputs.
        """
        self.start_state = {}  # so that ``renew`` does not replace the states of the comparison
        try:
            # Runs steps here and in NumPy from the same states; raises ``Differs``.
            check_chain(self.workload, self.elements, self.inputs, self, self.rng)
        except Differs as error:
            reason = because("differs-from-reference", why=error.reason, seed=self.__seed)
            raise Unverified(reason) from error
        # A new random start state, and a count of 0: the steps of the comparison are no units.
        self.begin()
        if self.on_host and self.workload.lasts:
            # Numbers become subnormal after ``lasts`` steps, so no chain on a CPU may be longer.
            self.max_n = min(self.max_n, self.workload.lasts)

    def begin(self) -> None:
        """Set a new random start state, and count steps from there."""
        self.start_state = self.workload.fresh(self.elements, self.rng)
        self.put(self.start_state)
        self.aside = 0
        self.__forget_steps()

    def __forget_steps(self) -> None:
        self.__last_count = 0
        self.__steps_in_all = 0
        self.__steps_since_put = 0

    def prepare(self, n: int) -> None:
        """Call ``renew``. A subclass that overrides this must call it too."""
        self.renew(n)

    def renew(self, n: int) -> None:
        """Set the start state again if n more steps would make numbers subnormal, that is, nearly
        zero. Only where a CPU computes: it may need six times as long for them (docs/workloads.md),
        and the samples would not be of equal work.

        ``lasts`` of the workload: the number of steps until then; 0 if its numbers never become
        subnormal.
        """
        lasts = self.workload.lasts
        is_at_start = self.__steps_since_put == 0  # to set the state again would change nothing
        becomes_subnormal = 0 < lasts < self.__steps_since_put + n
        if self.on_host and self.start_state and becomes_subnormal and not is_at_start:
            self.executed()  # adds the steps so far to the sum, because put sets counters to 0
            self.put(self.start_state)
            self.__last_count = 0
            self.__steps_since_put = 0
        self.__steps_since_put += n

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
        state = {}
        for field in self.workload.state:
            shape = (self.elements, *field.shape)
            state[field.name] = np.zeros(shape, self.workload.dtype)
        return state


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
    of a step, in launch order.

    A text has several bodies, that is, ways to run a step: the case's parameter ``body`` chooses
    one, ``fused`` is that of a fused case. Raises ``Unsupported`` if the workload, or this body, is
    not written in the language.
    """
    name = chain.workload.name
    kernels = sources.kernels_of(chain.workload, language, chain.elements)
    if kernels is None:
        why = chain.workload.missing.get(language, because("not-written-in-language"))
        reason = because("no-kernel-in-language", why=why, workload=name, language=language)
        raise Unsupported(reason)

    # Without the parameter a step is one kernel.
    body = str(chain.case.params.get("body", "one"))
    if chain.case.pattern == "fused":
        body = "fused"
    if body not in kernels.entries:
        reason = because("no-body-in-language", workload=name, body=body, language=language)
        raise Unsupported(reason)
    return kernels.text, kernels.entries[body]


def step_of(chain: WorkChain, xp: Any, fixed: dict[str, Any]) -> Any:
    """A function that computes the next state from a state by an array library, ``xp`` (numpy,
    torch, ...). Both are dicts of its arrays.

    The state includes the counters, as ``steps``: int32, shape ``(elements,)``. ``fixed``: the
    read-only inputs, ``chain.inputs``, as arrays of ``xp``. A case with the body ``library`` runs
    the workload's step that calls one function of the library, such as a matrix product.
    """
    by_library = chain.case.params.get("body") == "library"
    step = chain.workload.library if by_library else chain.workload.step

    def run(state: dict[str, Any]) -> dict[str, Any]:
        # ``steps[:1]``: the index of the step, which is the same for all elements, as an array.
        steps = state["steps"]
        return {**step(xp, state, fixed, steps[:1]), "steps": steps + 1}

    return run
