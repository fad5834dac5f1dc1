"""A statement of a user as a chain of calls."""

from __future__ import annotations

from collections.abc import Callable

from overhead.explain.call_spec import CallSpec
from overhead.explain.steps import said
from overhead.explain.waits import NOTHING, in_turn, wait_named
from overhead.probes.base import DeviceTime
from overhead.probes.common.statements import StatementError, StatementLoop
from overhead.probes.held_chain import HeldChain
from overhead.results import Scalar

UNCHECKED = "values-not-checked"
"""The flag of every record: the values of an unknown call prove nothing."""
_FEWEST_HELD = 4
"""If the device waits for work even among so few calls, it does so for another reason than its queue."""
_LONG_CALL_NS = 2_500_000
"""Of a longer call, the samples are longer too: four more calls must fit between the shortest and the longest."""


class CallChain(HeldChain):
    """A chain of n calls of a statement. ``executed`` returns the calls made, because their values are unknown.

    Raises ``StatementError`` with the line of the statement if SETUP, CALL or the wait raises.
    """

    flags = (UNCHECKED,)

    def __init__(self, spec: CallSpec, position: int) -> None:
        found = spec.found[position]
        self._said, self._made = found.said, 0
        by_text = not found.waits
        self._statement = StatementLoop(
            spec.calls[position], spec.setup, spec.wait if by_text else "", keep="jax" in found.waits
        )
        self._run(self._statement.open)
        names, results = self._statement.names, self._statement.results
        waits = [wait for name in found.waits if (wait := wait_named(name, names, results))]
        finish = [wait.make(names, results) for wait in waits]
        self._finish = self._statement.wait if by_text else in_turn(finish)
        self._loop = self._statement.issue
        self._clock = next((wait.clock for wait in waits if wait.clock), None)
        self._held_part = 1
        self.least_ns = int(4 * found.one_ns) if found.one_ns > _LONG_CALL_NS else 0
        self.synchronous = found.waits == [NOTHING.name]
        self.overlap = "serial" if self.synchronous else "pipelined"
        self.wait_spins = by_text or any(wait.spins for wait in waits)

    def _run(self, act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as error:
            raise StatementError(said(error, self._statement.describe_error)) from None

    def issue(self, n: int) -> None:
        self._made += n
        try:
            self._loop(n)
        except BaseException as error:
            raise StatementError(said(error, self._statement.describe_error)) from None

    def wait(self) -> None:
        self._finish()

    def executed(self) -> int:
        return self._made - self.aside

    def device(self, n: int) -> DeviceTime | None:
        """Of a part of the n calls, if the device's queue does not hold the launches of all: nobody knows how many."""
        if self._clock is None:
            return None
        while True:
            held = self.held(self._clock(), max(1, n // self._held_part))
            if held.busy or held.n <= _FEWEST_HELD:
                return held
            self._held_part *= 4

    def window(self) -> dict[str, Scalar]:
        return {"wait": self._said, "entry": "python"}

    def close(self) -> None:
        self._statement.close()
