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
    """The statements of the user that ``overhead time`` measures, as a stack: one target (a device
    and its API), and a case for each statement with each value that is varied.
    """

    name = "call"
    title = "a statement of your own"
    on_request = True

    def environments(self) -> list[dict[str, str]]:
        """One for each number of library threads."""
        return [dict.fromkeys(THREAD_VARIABLES, number) for number in read_spec().threads]

    def targets(self) -> list[Target]:
        """One target: the first device that a statement uses, else the CPU. Where the number of
        library threads varies, the target's ``device`` has how many this process uses, which tells
        its results from those of the others.
        """
        spec = read_spec()
        on_devices = [found for found in spec.found if found.api != "CPU"]
        first = on_devices[0] if on_devices else spec.found[0]
        threads = ""
        if spec.threads:  # all variables hold the same number
            threads = f"threads {os.environ[THREAD_VARIABLES[0]]}"
        return [Target(stack=self.name, api=first.api, adapter=first.adapter, device=threads)]

    def space(self, target: Target) -> Space:
        """A case for each statement with each assignment of ``--vary``. The parameters of a case
        are the position of the statement and the number of the assignment, both from 0.
        """
        spec = read_spec()
        # ``per-submit``: n times the unit, and one wait at the end.
        base = Case(pattern="per-submit", unit="call", params={"position": 0, "given": 0})
        cases = []
        for position in range(len(spec.calls)):
            call = vary(base, "position", position)
            cases += [vary(call, "given", number) for number in range(len(spec.given))]
        return Space(base, extra=cases)

    def open(self, target: Target, case: Case) -> Chain:
        """A chain, which repeats the statement of this case n times; what it prints is thrown
        away.
        """
        spec = read_spec()
        spec.add_path()
        sys.stdout.flush()
        with open(os.devnull, "wb") as nowhere:  # what the statements print would fill the pipe
            os.dup2(nowhere.fileno(), 1)
        position = int(case.params["position"])
        assignment = int(case.params["given"])
        # The number of the case: those of one statement follow one another.
        return CallChain(spec, position * len(spec.given) + assignment)
