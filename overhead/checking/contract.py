"""Check one case of a stack in this process: call each method of its chain as a run does, and count
units by values.
"""

from __future__ import annotations

import functools
from collections import UserDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from overhead.checking.calls import FEW, UNITS, CheckedCalls
from overhead.checking.findings import Findings
from overhead.measure.sampling.chain import Chain
from overhead.measure.sampling.description import describe, opening_of
from overhead.probes.arms import open_case
from overhead.probes.base import Probe
from overhead.probes.common.availability import CANNOT, cannot_here
from overhead.probes.workload_chain import WorkChain
from overhead.results import Case, Target, because
from overhead.workloads import workloads

_MANY_UNITS = 1001
"""Issued too where a unit takes well under a microsecond."""


class _Watched(UserDict[str, Any]):
    """The parameters of a case, which note in ``read`` the keys of those that a stack reads."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.read: set[str] = set()
        super().__init__(params)

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)


def check_case(
    found: Findings,
    probe: Probe,
    target: Target,
    case: Case,
    varied: Iterable[str] = (),
    *,
    is_first: bool = False,
) -> Chain | None:
    """Open a chain for the case, call all of its methods and close it. What is wrong is added to
    ``found``. Returns the closed chain; None if the stack could not open it.

    ``varied``: the parameters that tell this case from the base case; a stack that does not read
    them measures the base case again. ``is_first``: no case of the target has run yet.
    """
    # Before anything has run, an error may mean that this machine cannot use the stack: ``judge``
    # then gives ``Unavailable`` in its place. ``cheap``: a unit takes well under 1 µs.
    if is_first:
        found.judge = functools.partial(cannot_here, probe=probe, what=CANNOT)
    chain = _open(found, probe, target, case, varied)
    if chain is not None:
        check_chain(found, chain, case, cheap=probe.cost == "cheap")
    return chain


def _open(
    found: Findings, probe: Probe, target: Target, case: Case, varied: Iterable[str]
) -> Chain | None:
    """The open chain of the case; None, with a finding, if the stack gave none.

    The stack gets a copy of the case whose parameters note which of them it reads.
    """
    params = _Watched(case.params)
    # A case is frozen and takes only a plain dict, so the parameters are forced into a copy of it.
    given = msgspec.structs.replace(case)
    msgspec.structs.force_setattr(given, "params", params)
    chain: Any = None
    with found.catching("open()"):
        chain = open_case(probe, target, given)
    if not isinstance(chain, Chain):
        # If ``open`` raised something, that is the finding.
        if not found.failed and not found.unavailable:
            found.error(because("open-gave-no-chain", returned=f"{chain!r:.80}"))
        return None
    # Not asked of a chain with a loop of its own, such as one that runs in a browser page.
    if not chain.own_loop:
        # ``params.read``: the names of the parameters that the stack has asked for.
        for name in sorted(set(varied) - params.read):
            found.warn(because("parameter-not-read", parameter=repr(name)))
    # A ``WorkChain`` is compared with NumPy when it opens; another chain of a workload is not.
    if case.workload in workloads() and not isinstance(chain, WorkChain):
        found.warn(because("chain-not-compared", workload=case.workload))
    return chain


def check_chain(found: Findings, chain: Chain, case: Case, *, cheap: bool = False) -> None:
    """Check an open chain: its fields first, and then its methods. It is closed in any case. What
    is wrong is added to ``found``.

    ``cheap``: a unit takes well under 1 µs, so that 1001 units are tried too.
    """
    try:
        with found.catching("fields"):
            # These raise at the first field with a bad value.
            describe(chain)
            opening_of(chain)
        if not found.failed:
            _check_fields(found, chain, case)
        if not found.failed:
            # ``UNITS``: how many to issue at once: none, one, some, and one again after some.
            units = [*UNITS]
            if cheap and case.workload == "step":
                units.append(_MANY_UNITS)
            CheckedCalls(found, chain, case).check([min(n, chain.max_n) for n in units])
    finally:
        with found.catching("close()"):
            chain.close()


def _check_fields(found: Findings, chain: Chain, case: Case) -> None:
    """Check that the fields of a chain fit to each other and to the case; add to ``found`` what
    does not.
    """
    # The largest n that the chain takes; the checks of its methods need a few units.
    too_small = because("max-n-too-small", max_n=chain.max_n, least=FEW)
    found.expect(chain.max_n >= FEW, too_small)
    # What the chain and the case call one unit, such as a launch.
    unit = getattr(chain, "unit", case.unit)
    if unit != case.unit:
        found.warn(because("units-named-differently", chain=repr(unit), case=repr(case.unit)))
    # If each call returns when its work is done, no work can overlap with the next call. Then
    # ``overlap`` must be ``serial``: the device does not work while units are issued.
    if chain.synchronous and chain.overlap != "serial":
        found.warn(because("synchronous-yet-pipelined"))


def varied_parameters(cases: Sequence[Case], case: Case) -> list[str]:
    """The names of the parameters in which a case differs from the base case, the first of
    ``cases``.
    """
    base = cases[0].params
    return [name for name, value in case.params.items() if base.get(name) != value]
