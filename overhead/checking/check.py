"""Check a plugin or a stack from the parent process: a hang or a crash of a case becomes one row,
the others go on.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from overhead.checking.child import CheckEnded, CheckJob, RowChecked, decode_message
from overhead.checking.findings import CheckFinding, CheckRow, Result
from overhead.child import ChildEnded, ChildLimits, ChildProcess
from overhead.errors import UsageError
from overhead.probes import load_plugin, registry
from overhead.results import Target, Why, because, with_mend
from overhead.runner.campaign import WorkerLimits
from overhead.runner.discovery import ask_stacks, known_stacks

SECONDS = 10.0
"""No case but the base case of a target begins later than this after the start, unless every case
is wanted.
"""
_SILENCE_S = WorkerLimits.silence_s
"""The longest that one step of a case may take: as long as in a run, which waits for compilers
too.
"""


_Environment = tuple[tuple[str, str], ...]
"""Environment variables, sorted by name, so that they can be a key of a dict."""


class Report(Struct, frozen=True):
    """The result of a check: a row for each case, or for a stack that has none."""

    rows: list[CheckRow]

    @property
    def failed(self) -> bool:
        """Whether something is wrong, or nothing could be checked."""
        is_any_checked = any(row.result in ("verified", "opened") for row in self.rows)
        is_any_wrong = any(row.failed for row in self.rows)
        return is_any_wrong or not is_any_checked


def check(
    plugins: Sequence[str | Path] = (),
    stacks: Sequence[str] = (),
    *,
    seconds: float = SECONDS,
    silence_s: float = _SILENCE_S,
    answered: Callable[[CheckRow], None] = lambda row: None,
) -> Report:
    """Check that stacks keep to the contract with the suite: those that the plugin files register,
    or the named ``stacks``. The result has a row for each case.

    ``seconds``: no case but the first of a target begins later; 0 checks every case. ``silence_s``:
    the longest that a call may take. ``answered`` is called with each row as it comes. Raises
    ``UsageError`` if there is nothing to check, or if a plugin cannot be loaded.
    """
    if not plugins and not stacks:
        raise UsageError("name what to check: --plugin FILE.py or -p STACK")
    files = [str(plugin) for plugin in plugins]
    # To see below which stacks the plugins add.
    before = registry()
    # ``trial``: a child process imports the file first, because it may crash or hang.
    for file in files:
        load_plugin(Path(file), trial=True)
    # Raises ``UsageError`` for a name that is no stack.
    known_stacks(stacks)
    names = list(stacks)
    if not names:
        # A plugin may also register a stack under a name that is known already.
        names = [name for name, probe in registry().items() if probe is not before.get(name)]
    if not names:
        listed = ", ".join(files)
        raise UsageError(
            f"{listed}: no stack to check; a file with a workload alone is checked with a"
            " stack: -p STACK, such as -p numpy"
        )
    rows: list[CheckRow] = []

    def keep(row: CheckRow) -> None:
        rows.append(row)
        answered(row)

    began = time.monotonic()
    for environment, targets in _targets(names, files, keep).items():
        # A child that hangs or crashes is followed by another one, which goes on after its case.
        is_complete = False
        while not is_complete:
            left_s = seconds
            # Not 0, which would mean no limit.
            if seconds:
                left_s = max(0.1, seconds - (time.monotonic() - began))
            # The child leaves out the cases that have a row already.
            job = CheckJob(files, targets, [row.what for row in rows], left_s)
            is_complete = _one_child(job, dict(environment), silence_s, keep)
    return Report(rows)


def _targets(
    names: Sequence[str], plugins: Sequence[str], keep: Callable[[CheckRow], None]
) -> dict[_Environment, list[Target]]:
    """The targets (devices) of these stacks, by the environment variables with which a process must
    be started to find them.

    A stack that has no target, or gave a wrong answer, becomes a row at once: ``keep`` gets it.
    ``ask_stacks`` asks each stack in a child process; ``with_mend`` adds to a reason what the user
    can do, such as a package to install.
    """
    by_environment: dict[_Environment, list[Target]] = {}
    for name, environment, answer in ask_stacks(names, plugins):
        # A case is named by the key of its target, so two targets must not share one.
        counts = Counter(target.key for target in answer.targets)
        errors: list[Why] = [
            because("targets-share-key", key=key) for key, count in counts.items() if count > 1
        ]
        # ``failed``: the stack gave no answer because of an error, not for lack of a device.
        if answer.failed and not errors:
            errors = [answer.reason]
        if errors:
            findings = [CheckFinding("error", "targets() and space()", why) for why in errors]
            keep(CheckRow(f"{name} targets", "failed", findings=findings))
            continue
        if not answer.targets:
            why = with_mend(answer.reason or because("no-device-found"), answer.mend)
            keep(CheckRow(f"{name} targets", "unavailable", why))
            continue
        of_environment = by_environment.setdefault(tuple(sorted(environment.items())), [])
        for target in answer.targets:
            of_environment.append(msgspec.structs.replace(target, environment=environment))
    return by_environment


def _one_child(
    job: CheckJob, environment: dict[str, str], silence_s: float, keep: Callable[[CheckRow], None]
) -> bool:
    """Check the cases of ``job`` in one child process. True if no other child is needed: all cases
    have a row, or the child ended before its first case, as any other would. False if it hung or
    crashed at a case, so that another child must check those after it.

    ``keep`` gets the row of each case; the case of a hang or a crash becomes a row too.
    """
    # What the child is doing, by its last message.
    row = "loading"
    step = "starting"
    began = time.monotonic()
    child = ChildProcess(
        "overhead.checking.child", job, decode_message, ChildLimits(silence_s), environment
    )
    try:
        with child:
            for message in child:
                if isinstance(message, CheckEnded):
                    return True
                if isinstance(message, RowChecked):
                    keep(message.row)
                else:
                    row, step = message.row, message.step
    except ChildEnded as ended:
        result: Result = "hung" if ended.why == "time" else "crashed"
        finding = CheckFinding("error", step, ended.reason)
        took_s = round(time.monotonic() - began, 2)
        keep(CheckRow(row, result, "", [finding], took_s))
    # Still "loading": no case had begun. Another child would fail in the same way.
    return row == "loading"
