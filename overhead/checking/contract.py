"""The contract of a stack, checked in this process: its targets, its cases, and each chain.

``check_case`` calls every method of a chain as a run does, counts by values, and looks for what is legal but wrong.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from overhead.checking.calls import FEW, UNITS, CheckedCalls
from overhead.checking.findings import Findings
from overhead.checking.watched import watched
from overhead.measure.sampling.chain import Chain
from overhead.measure.sampling.description import describe, opening_of
from overhead.probes import space_of, targets_of
from overhead.probes.arms import open_case
from overhead.probes.base import Probe
from overhead.probes.workload_chain import WorkChain
from overhead.results import Case, Target
from overhead.workloads import workloads

_MANY_UNITS = 1001
"""Issued too where a unit takes well under a microsecond."""


def check_targets(found: Findings, probe: Probe) -> list[Target]:
    """The targets of the stack, each checked. Adds what is wrong to ``found``."""
    targets: list[Target] = []
    with found.catching("targets()"):
        targets = targets_of(probe)
        if not targets:
            found.warn("targets() returned no device; raise Unavailable(reason, mend) to say why")
    for key, count in Counter(target.key for target in targets).items():
        found.expect(count == 1, f"two targets have the key {key}; give each its own Target.device")
    for target in targets:
        if not target.versions:
            found.warn(f"{target.key} has no versions; the record should name those of the library and driver")
    return targets


def check_space(found: Findings, probe: Probe, target: Target) -> list[Case]:
    """The cases of the target, the base first. Adds what is wrong to ``found``."""
    star: list[Case] = []
    with found.catching("space()"):
        space = space_of(probe, target)
        star = list(space.star())
        for cases in (star, list(itertools.islice(space.cross(), 1))):  # all combinations may be very many
            if not found.expect(bool(cases), "space() has no case: allowed() refuses every one"):
                return []
            found.expect(cases[0].key == space.base.key, "allowed() refuses the base case")
    return star


def check_case(found: Findings, probe: Probe, target: Target, case: Case, varied: Iterable[str] = ()) -> Chain | None:
    """Open a chain for the case, check and close it. Adds what is wrong to ``found``.

    ``varied``: the parameters that the stack must read. Returns the closed chain; None if there is none.
    """
    chain = _open(found, probe, target, case, varied)
    if chain is not None:
        check_chain(found, chain, case, cheap=probe.cost == "cheap")
    return chain


def _open(found: Findings, probe: Probe, target: Target, case: Case, varied: Iterable[str]) -> Chain | None:
    given, params = watched(case)
    chain: Any = None
    with found.catching("open()"):
        chain = open_case(probe, target, given)
    if not isinstance(chain, Chain):
        if not found.failed and not found.unavailable:
            found.error(f"open() returned {chain!r:.80}; it must be a Chain")
        return None
    if not chain.own_loop:
        for name in sorted(set(varied) - params.read):
            found.warn(f"open() never reads params[{name!r}], so this case is measured like the base case")
    if case.workload in workloads() and not isinstance(chain, WorkChain):
        found.warn(f"the chain is no WorkChain, so nothing compares it with the reference of {case.workload}")
    return chain


def check_chain(found: Findings, chain: Chain, case: Case, *, cheap: bool = False) -> None:
    """Check an open chain, and close it. ``cheap``: a unit of the step takes well under a microsecond."""
    try:
        with found.catching("fields"):
            describe(chain)
            opening_of(chain)
        if not found.failed:
            found.expect(chain.max_n >= FEW, f"max_n is {chain.max_n}; a ladder needs at least {FEW}")
            for doubt in filter(None, (look(chain, case) for look in _DOUBTS)):
                found.warn(doubt)
        if not found.failed:
            many = cheap and case.workload == "step"
            units = (*UNITS, _MANY_UNITS) if many else UNITS
            CheckedCalls(found, chain, case).check([min(n, chain.max_n) for n in units])
    finally:
        with found.catching("close()"):
            chain.close()


def _unit(chain: Chain, case: Case) -> str:
    unit = getattr(chain, "unit", case.unit)
    same = unit == case.unit
    return "" if same else f"the chain's unit {unit!r} differs from the case's {case.unit!r}, which is in the record"


def _window(chain: Chain, case: Case) -> str:
    named = chain.window()
    if not named:
        return "window() is empty; it must name everything that is timed: the operation, the wait, the precision"
    if not chain.synchronous and "wait" not in {*named, *case.params}:
        return "window() names no wait, and neither do the parameters: two waits would count as the same"
    return ""


def _overlap(chain: Chain, case: Case) -> str:
    wrong = chain.synchronous and chain.overlap != "serial"
    return "synchronous is True, but overlap is 'pipelined'; it must be 'serial', as nothing overlaps" if wrong else ""


def _latency(chain: Chain, case: Case) -> str:
    several = case.unit[:1].isdigit()  # a unit of 10 launches and one wait has no latency of one launch
    wrong = case.pattern in ("wait-each", "read-each") and not chain.latency and not several
    return f"the pattern is {case.pattern}, but latency is False: there will be no percentiles" if wrong else ""


_DOUBTS: Sequence[Callable[[Chain, Case], str]] = (_unit, _window, _overlap, _latency)
"""What is legal in the description of a chain, but probably wrong; each returns a sentence, or nothing."""


def base_parameters(cases: Sequence[Case], case: Case) -> list[str]:
    """The parameters in which a case differs from the base case, which is the first."""
    base = cases[0].params
    return [name for name, value in case.params.items() if base.get(name) != value]


def check_neighbour(found: Findings, chain: Chain) -> None:
    """Check that another chain, open all the time, still counts by itself. Adds what is wrong to ``found``."""
    if not chain.executes:
        return
    before, ran = 0, 0
    with found.catching("the base case, which stayed open while this case was opened and closed"):
        before = int(chain.executed())
        chain.prepare(3)
        chain.issue(3)
        chain.wait()
        ran = int(chain.executed()) - before
    if not found.failed:
        wrong = f"its count was {before} before this and rose by {ran} with 3 units" if before % 3 or ran != 3 else ""
        found.expect(
            not wrong, f"{wrong}: do two open chains share their values, or does open() start the library again?"
        )
