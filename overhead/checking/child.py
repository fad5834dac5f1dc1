"""The child process of a check: it loads the plugins, and checks the cases of one stack in one environment.

It answers with a ``StepBegun`` before every step that may hang or crash, and a ``RowChecked`` for each case.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from overhead.checking import contract
from overhead.checking.findings import CheckRow, Findings, Result
from overhead.child import Send, serve
from overhead.errors import UsageError
from overhead.measure.sampling.chain import Chain
from overhead.probes import load_plugin, registry
from overhead.probes.arms import open_case
from overhead.probes.base import Probe
from overhead.probes.workload_chain import WorkChain
from overhead.results import Case, Target
from overhead.workloads import stack_works

_HEAVY = ("cupy", "jax", "mlx", "numba", "pyopencl", "tensorflow", "torch", "triton", "vulkan", "wgpu", "wgpudawn")
"""Libraries that a plugin must not import while it is loaded."""


class CheckJob(Struct, frozen=True):
    """``stacks``: empty for those of the plugins. ``environment``: the index into each stack's ``environments``.

    ``done``: the rows that an earlier child has answered. ``seconds``: no case begins later than this after the child's
    start; 0 for no limit. ``stuck_s``: after this time in one step the child writes where it is into ``trace_file``.
    """

    plugins: list[str] = []
    stacks: list[str] = []
    environment: int = 0
    done: list[str] = []
    seconds: float = 0.0
    stuck_s: float = 0.0
    trace_file: str = ""


class StepBegun(Struct, frozen=True, tag="doing"):
    """The next step, and the row that it belongs to."""

    row: str
    step: str


class RowChecked(Struct, frozen=True, tag="answer"):
    """A finished row."""

    row: CheckRow


class CheckEnded(Struct, frozen=True, tag="ended"):
    """The check is complete. ``environments``: how many environments the stacks ask for, at most."""

    environments: int


CheckMessage = StepBegun | RowChecked | CheckEnded
decode_message = msgspec.json.Decoder(CheckMessage).decode


class _Check:
    """Answers one job."""

    def __init__(self, job: CheckJob, answer: Send) -> None:
        self.job, self._answer, self.began = job, answer, time.monotonic()
        self.trace = open(job.trace_file, "w")  # noqa: SIM115 - open until the process ends
        faulthandler.enable(self.trace)

    def send(self, message: CheckMessage) -> None:
        faulthandler.dump_traceback_later(self.job.stuck_s, file=self.trace)
        self._answer(message)

    def findings(self, row: str) -> Findings:
        """Findings that tell the parent each step before it runs."""
        return Findings(lambda step: self.send(StepBegun(row, step)))

    def run(self) -> None:
        probes: list[Probe] = []
        with self.row("loading") as found:
            probes = self.load(found)
        most = 1
        for probe in probes:
            environments: list[dict[str, str]] = []
            with self.row(f"{probe.name} environments") as found, found.catching("environments()"):
                environments = list(probe.environments())
            most = max(most, len(environments))
            if self.job.environment < len(environments):
                os.environ.update(environments[self.job.environment])
                self.check_stack(probe, environments[self.job.environment])
        self.send(CheckEnded(most))

    @contextlib.contextmanager
    def row(self, what: str) -> Iterator[Findings]:
        """A row for a step; it is sent only if it has findings."""
        found = self.findings(what)
        yield found
        if (found.found or found.unavailable) and what not in self.job.done:
            self.answer(what, "noted", found, 0.0)

    def answer(self, what: str, good: Result, found: Findings, seconds: float, remark: str = "") -> None:
        result = "failed" if found.failed else "unavailable" if found.unavailable else good
        reason = remark if result == good else found.unavailable
        self.send(RowChecked(CheckRow(what, result, reason, found.found, round(seconds, 2))))

    def load(self, found: Findings) -> list[Probe]:
        """The stacks to check."""
        before = registry()
        loaded = set(sys.modules)
        for plugin in self.job.plugins:
            with found.catching(f"loading {Path(plugin).name}"):
                try:
                    load_plugin(Path(plugin))
                except UsageError as error:
                    raise error.__cause__ or error from None
        if early := [name for name in _HEAVY if name in sys.modules and name not in loaded]:
            found.warn(f"the file imports {', '.join(early)}; import libraries in targets() and open(), not at the top")
        after = registry()
        own = [name for name in after if after[name] is not before.get(name)]
        return [after[name] for name in self.job.stacks or own if name in after]

    def check_stack(self, probe: Probe, environment: dict[str, str]) -> None:
        targets: list[Target] = []
        with self.row(f"{probe.name} targets") as found:
            targets = contract.check_targets(found, probe)
        for target in (msgspec.structs.replace(each, environment=environment) for each in targets):
            cases: list[Case] = []
            with self.row(f"{target.key} space") as found:
                cases = contract.check_space(found, probe, target)
            self.check_cases(probe, target, cases)

    def check_cases(self, probe: Probe, target: Target, cases: list[Case]) -> None:
        """Check each case while the chain of the base case stays open, as all chains do in a run."""
        base: Chain | None = None
        for case in sorted(cases, key=_length):
            key = f"{target.key} {case.key}"
            if key in self.job.done:
                continue
            late = 0 < self.job.seconds < time.monotonic() - self.began
            if late and case is not cases[0]:
                self.send(RowChecked(CheckRow(key, "not checked")))
                continue
            began, found = time.monotonic(), self.findings(key)
            varied = contract.base_parameters(cases, case)
            chain = contract.check_case(found, probe, target, case, varied)
            if chain is not None and base is not None and not found.failed:
                contract.check_neighbour(found, base)
            compared = f"compared with {case.workload} in NumPy" if isinstance(chain, WorkChain) else ""
            took = time.monotonic() - began
            self.answer(key, "verified" if target.executes else "opened", found, took, compared)
            if base is None and chain is not None and not found.failed:
                self.send(StepBegun(key, "open() again, beside the other cases"))
                with contextlib.suppress(Exception):
                    base = open_case(probe, target, case)
        if base is not None:
            with contextlib.suppress(Exception):
                base.close()


def _length(case: Case) -> tuple[int, bool]:
    """A key to sort cases by how long they take: workloads take longer than steps, and heavy work of stacks longest."""
    work = stack_works().get(case.workload)
    return work.weight if work is not None else 0, "elements" in case.params


if __name__ == "__main__":
    serve(CheckJob, lambda job, send: _Check(job, send).run())
