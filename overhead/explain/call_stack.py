"""The stack ``call``: statements of a user, measured by the suite's method. ``timing.py`` loads this file as a plugin.

No module may import it, because a stack is registered once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from overhead.errors import Unsupported
from overhead.explain.call_spec import CallSpec, read_spec
from overhead.explain.statements import Statement
from overhead.explain.waits import NOTHING, in_turn, wait_named
from overhead.probes import register
from overhead.probes._support.cuda.device_time import HeldChain
from overhead.probes.base import Chain, DeviceTime, Probe, Space, vary
from overhead.results import Case, Scalar, Target

UNCHECKED = "values-not-checked"
"""The flag of every record: the values of an unknown call prove nothing."""
_LONG_CALL_NS = 2_500_000
"""Of a longer call, the samples are longer too: four more calls must fit between the shortest and the longest."""


@register
class CallProbe(Probe):
    """The statements of ``read_spec``: one target, a case for each statement."""

    name = "call"
    title = "a statement of your own"
    on_request = True

    def targets(self) -> list[Target]:
        found = read_spec().found
        first = next((one for one in found if one.api != "CPU"), found[0])
        return [Target(stack=self.name, api=first.api, adapter=first.adapter)]

    def space(self, target: Target) -> Space:
        base = Case(pattern="per-submit", unit="call", params={"position": 0})
        return Space(base, extra=[vary(base, "position", n) for n in range(1, len(read_spec().calls))])

    def open(self, target: Target, case: Case) -> Chain:
        spec = read_spec()
        spec.add_path()
        discard_output()
        return CallChain(spec, int(case.params["position"]))


def discard_output() -> None:
    """Send what the statements print to nowhere, so that it fills no pipe."""
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


class CallChain(HeldChain):
    """A chain of n calls of a statement. ``executed`` returns the calls made, because their values are unknown.

    Raises ``Unsupported`` with the line of the statement if SETUP, CALL or the wait raises.
    """

    flags = (UNCHECKED,)

    def __init__(self, spec: CallSpec, position: int) -> None:
        found = spec.found[position]
        self._said, self._made = found.said, 0
        by_text = not found.waits
        self._statement = Statement(
            spec.calls[position], spec.setup, spec.wait if by_text else "", keep="jax" in found.waits
        )
        self._run(self._statement.open)
        names, results = self._statement.names, self._statement.results
        waits = [wait for name in found.waits if (wait := wait_named(name, names, results))]
        finish = [wait.make(names, results) for wait in waits]
        self._finish = self._statement.wait if by_text else in_turn(finish)
        self._loop = self._statement.issue
        self._clock = next((wait.clock for wait in waits if wait.clock), None)
        self.launches = max(1, found.launches)
        self.least_ns = int(4 * found.one_ns) if found.one_ns > _LONG_CALL_NS else 0
        self.synchronous = found.waits == [NOTHING.name]
        self.overlap = "serial" if self.synchronous else "pipelined"
        self.wait_spins = by_text or any(wait.spins for wait in waits)

    def _run(self, act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as error:
            raise Unsupported(self._statement.said(error)) from None

    def issue(self, n: int) -> None:
        self._made += n
        try:
            self._loop(n)
        except BaseException as error:
            raise Unsupported(self._statement.said(error)) from None

    def wait(self) -> None:
        self._finish()

    def executed(self) -> int:
        return self._made - self.aside

    def device(self, n: int) -> DeviceTime | None:
        return self.held(self._clock(), n) if self._clock is not None else None

    def window(self) -> dict[str, Scalar]:
        return {"wait": self._said, "entry": "python"}

    def close(self) -> None:
        self._statement.close()
