"""The stack ``call``: the user's statements. ``timing`` loads this file as a plugin; no module may import it."""

from __future__ import annotations

import os
import sys

from overhead.explain.call_spec import read_spec
from overhead.explain.user_statement import CallChain
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
        """One target: the first device that a statement uses, else the CPU."""
        found = read_spec().found
        first = next((one for one in found if one.api != "CPU"), found[0])
        return [Target(stack=self.name, api=first.api, adapter=first.adapter)]

    def space(self, target: Target) -> Space:
        """A case for each statement, by its position from 0."""
        base = Case(pattern="per-submit", unit="call", params={"position": 0})
        return Space(base, extra=[vary(base, "position", n) for n in range(1, len(read_spec().calls))])

    def open(self, target: Target, case: Case) -> Chain:
        """A chain of calls of one statement; what they print is thrown away."""
        spec = read_spec()
        spec.add_path()
        sys.stdout.flush()
        with open(os.devnull, "wb") as nowhere:  # what the statements print would fill the pipe
            os.dup2(nowhere.fileno(), 1)
        return CallChain(spec, int(case.params["position"]))
