"""The stack ``call``: statements of a user, measured by the suite's method. ``timing.py`` loads this file as a plugin.

No module may import it, because a stack is registered once.
"""

from __future__ import annotations

import os
import sys

from overhead.explain.call_chain import CallChain
from overhead.explain.call_spec import read_spec
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, vary
from overhead.results import Case, Target


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
