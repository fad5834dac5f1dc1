"""The stack ``call``: the user's statements. ``timing`` loads this file as a plugin; no module may
import it.
"""

from __future__ import annotations

import os
import sys

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, vary
from overhead.results import Case, Target
from overhead.timing.call_spec import THREAD_VARIABLES, read_spec
from overhead.timing.user_statement import CallChain


@register
class CallProbe(Probe):
    """The statements of ``read_spec``: one target, a case for each statement."""

    name = "call"
    title = "a statement of your own"
    on_request = True

    def environments(self) -> list[dict[str, str]]:
        """One for each number of library threads."""
        return [dict.fromkeys(THREAD_VARIABLES, number) for number in read_spec().threads]

    def targets(self) -> list[Target]:
        """One target: the first device that a statement uses, else the CPU."""
        spec = read_spec()
        first = next((one for one in spec.found if one.api != "CPU"), spec.found[0])
        threads = f"threads {os.environ[THREAD_VARIABLES[0]]}" if spec.threads else ""
        return [Target(stack=self.name, api=first.api, adapter=first.adapter, device=threads)]

    def space(self, target: Target) -> Space:
        """A case for each statement, by its position from 0, with each assignment, by its number
        from 0.
        """
        spec = read_spec()
        base = Case(pattern="per-submit", unit="call", params={"position": 0, "given": 0})
        calls = [vary(base, "position", n) for n in range(len(spec.calls))]
        return Space(
            base, extra=[vary(call, "given", n) for call in calls for n in range(len(spec.given))]
        )

    def open(self, target: Target, case: Case) -> Chain:
        """A chain of calls of one statement; what they print is thrown away."""
        spec = read_spec()
        spec.add_path()
        sys.stdout.flush()
        with open(os.devnull, "wb") as nowhere:  # what the statements print would fill the pipe
            os.dup2(nowhere.fileno(), 1)
        position, given = int(case.params["position"]), int(case.params["given"])
        return CallChain(spec, position * len(spec.given) + given)
