"""The child process of a check: it loads the plugins, and checks the cases of targets in one
environment.

It answers with a ``StepBegun`` before every step that may hang or crash, and a ``RowChecked`` for
each case.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
from msgspec import Struct

from overhead.checking import contract
from overhead.checking.findings import CheckRow, Findings, Result
from overhead.child import Send, serve
from overhead.probes import load_plugin, registry, space_of
from overhead.probes.base import Probe
from overhead.probes.workload_chain import WorkChain
from overhead.results import Case, Target, Why, because
from overhead.workloads import stack_works


class CheckJob(Struct, frozen=True):
    """What a child process is to check: all cases of the stacks on ``targets``.

    ``plugins``: files to load first. ``done``: names of the cases that an earlier child, which hung
    or crashed, has answered. ``seconds``: no case but the base case of a target begins later than
    this after the child's start; 0 for no limit.
    """

    plugins: list[str] = []
    targets: list[Target] = []
    done: list[str] = []
    seconds: float = 0.0


class StepBegun(Struct, frozen=True, tag="doing"):
    """The next step, and the row that it belongs to."""

    row: str
    step: str


class RowChecked(Struct, frozen=True, tag="answer"):
    """A finished row."""

    row: CheckRow


class CheckEnded(Struct, frozen=True, tag="ended"):
    """The check is complete."""


CheckMessage = StepBegun | RowChecked | CheckEnded
decode_message = msgspec.json.Decoder(CheckMessage).decode


def _check(job: CheckJob, send: Send) -> None:
    """Check the cases of one job. ``send`` takes the messages to the parent process: a row for each
    case, and ``CheckEnded`` at the end. ``star``: the base case of a target, and the cases that
    differ from it in one parameter. ``job.done``: the rows that an earlier child has sent.
    """
    began = time.monotonic()
    for plugin in job.plugins:
        load_plugin(Path(plugin))
    for target in job.targets:
        probe = registry()[target.stack]
        # The first of them is the base case.
        cases = list(space_of(probe, target).star())
        # No case of this target has run yet, here or in an earlier child. Then an error may mean
        # that this machine cannot use the stack.
        is_first = not any(f"{target.key} {case.key}" in job.done for case in cases)
        # The shortest first: those that begin late are not checked.
        for case in sorted(cases, key=_how_long):
            key = f"{target.key} {case.key}"
            if key in job.done:
                continue
            # Later than the job's time; 0 seconds stand for no limit.
            is_late = 0 < job.seconds < time.monotonic() - began
            # The base case of each target is always checked.
            if is_late and case is not cases[0]:
                send(RowChecked(CheckRow(key, "not checked")))
                continue
            row = _checked_row(key, probe, target, cases, case, send, is_first)
            # As long as all cases are unavailable, none has run: the next one counts as first too.
            is_first = is_first and row.result == "unavailable"
            send(RowChecked(row))
    send(CheckEnded())


def _checked_row(
    key: str,
    probe: Probe,
    target: Target,
    cases: list[Case],
    case: Case,
    send: Send,
    is_first: bool,
) -> CheckRow:
    """Check one case, and return its row. The parent is told of each step before it runs, so that
    it knows where a child hung or crashed.

    ``key``: the name of the row. ``cases``: all of the target. ``is_first``: none of them has run
    yet.
    """
    began = time.monotonic()
    found = Findings(lambda step: send(StepBegun(key, step)))
    # The parameters that tell this case from the base case: the stack must read them.
    varied = contract.varied_parameters(cases, case)
    chain = contract.check_case(found, probe, target, case, varied, is_first=is_first)
    took_s = round(time.monotonic() - began, 2)

    reason: Why = found.unavailable
    result: Result
    if found.failed:
        result = "failed"
    elif found.unavailable:
        result = "unavailable"
    else:
        # A null backend runs nothing, so nothing can be verified.
        result = "verified" if target.executes else "opened"
        reason = ""
        # A chain of a workload: its results were compared with those of NumPy when it opened.
        if isinstance(chain, WorkChain):
            reason = because("compared-in-numpy", workload=case.workload)
    return CheckRow(key, result, reason, found.found, took_s)


def _how_long(case: Case) -> tuple[int, bool]:
    """A key to sort cases by how long they take: workloads take longer than steps, and heavy work
    of stacks longest.
    """
    work = stack_works().get(case.workload)
    weight = 0 if work is None else work.weight
    return weight, "elements" in case.params


if __name__ == "__main__":
    serve(CheckJob, _check)
