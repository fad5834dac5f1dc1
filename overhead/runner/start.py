"""Start a run: find targets and plan cases for each interpreter, and write the plan or continue an old one."""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from overhead import machine, results
from overhead.errors import UsageError, unknown
from overhead.probes import registry, unavailable_packages
from overhead.profiles import PROFILES, Plan
from overhead.reading.missing_values import by_mend
from overhead.results import HeaderLine, LeftOut, MissingLine, OmittedLine, PlannedLine, Profile, Target, Together
from overhead.runner.discovery import Discovery, discover
from overhead.runner.interpreter import Interpreter
from overhead.runner.interpreter_run import InterpreterRun
from overhead.runner.journal import Journal, NothingMeasured, Past, holds_measurements
from overhead.runner.output import SIDES, check_own
from overhead.runner.progress import Listener
from overhead.runner.schedule import Choice, Task, resumed, schedule
from overhead.runner.variables import in_words, recorded


@dataclasses.dataclass(frozen=True)
class _Prepared:
    """The plan for one interpreter."""

    interpreter: Interpreter
    found: Discovery
    tasks: list[Task]
    left_out: list[LeftOut]


def begin(
    stacks: Sequence[str],
    choice: Choice,
    profile: Profile,
    journals: Sequence[Journal],
    given: Sequence[Interpreter],
    plugins: Sequence[str],
    listener: Listener,
    plan: Plan | None = None,
) -> tuple[Plan, list[InterpreterRun]]:
    """Begin a new run: find targets and plan for each interpreter, then write the first lines of the journals.

    ``plan`` replaces the plan of the profile.
    """
    plan = plan or PROFILES[profile]
    prepared = [_prepare(stacks, choice, plan, one, plugins, listener) for one in given]
    header = HeaderLine(
        schema_version=results.SCHEMA_VERSION,
        method_version=results.METHOD_VERSION,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        profile=profile,
        machine=machine.identity(),
        volatile=machine.volatile(),
    )
    runs = []
    for one, together, journal in zip(prepared, _together(len(given)), journals, strict=True):
        versions = _versions(one.found.targets, one.interpreter)
        planned = sum(len(task.assignments) for task in one.tasks)
        variables = recorded(one.interpreter)
        own = msgspec.structs.replace(
            header, versions=versions, together=together, environment=variables, planned=planned
        )
        _write_plan(journal, own, one)
        runs.append(InterpreterRun(journal, one.tasks, interpreter=one.interpreter, together=together))
    for journal in journals:
        journal.keep()
    _note_left_out(listener, dict.fromkeys(left for one in prepared for left in one.left_out))
    return plan, runs


def _prepare(
    stacks: Sequence[str],
    choice: Choice,
    plan: Plan,
    interpreter: Interpreter,
    plugins: Sequence[str],
    listener: Listener,
) -> _Prepared:
    found = discover(stacks, plugins, listener.working, interpreter)
    packages = unavailable_packages()
    for package in packages:
        listener.note(f"unavailable: {package.reason}")
    found = dataclasses.replace(found, missing=[*found.missing, *packages])
    for target in found.targets:
        for name in sorted(target.environment.keys() & interpreter.variables.keys()):
            listener.note(f"{target.key}: the stack sets {name} itself, so --env does not change it there")
    tasks, left_out = schedule(found.targets, choice, plan)
    if not tasks:
        raise UsageError(_nothing_to_measure(found.missing, left_out))
    return _Prepared(interpreter, found, tasks, left_out)


def _together(count: int) -> Sequence[Together | None]:
    if count == 1:
        return [None]
    common = secrets.token_hex(6)
    return [Together(id=common, side=side) for side in SIDES]


def _write_plan(journal: Journal, header: HeaderLine, prepared: _Prepared) -> None:
    journal.write([header])
    journal.write(machine.redacted(MissingLine(unavailable=m)) for m in prepared.found.missing)
    journal.write(OmittedLine(left_out=omitted) for omitted in prepared.left_out)
    for task in prepared.tasks:
        key = task.target.key
        journal.write(
            machine.redacted(PlannedLine(worker=key, target=a.target, case=a.case, processes=task.processes))
            for a in task.assignments
        )
    journal.sync()


def reopen(path: Path, count: int) -> list[Journal]:
    """The journal, or the journals of both sides if two are compared. Raises ``UsageError``."""
    with contextlib.ExitStack() as stack:
        journals = []
        for one in _sides_of(path, count):
            journals.append(Journal.reopen(one))
            stack.callback(journals[-1].close)
        stack.pop_all()
    return journals


def resume_run(
    journals: Sequence[Journal],
    given: Sequence[Interpreter],
    plugins: Sequence[str],
    listener: Listener,
    plan: Plan | None = None,
) -> tuple[Plan, list[InterpreterRun]]:
    """Continue an interrupted run with the part of its plan that its one or two journals lack.

    Raises ``UsageError`` if none of that part can be measured now.
    """
    pasts = [Past(journal.path) for journal in journals]
    plan = plan or PROFILES[pasts[0].header.profile]
    runs = []
    for journal, past, interpreter in zip(journals, pasts, given, strict=True):
        check_own(journal.path, past.header.created)
        _same_variables(journal.path, past.header, interpreter)
        if not past.lacking:
            runs.append(InterpreterRun(journal, [], past, interpreter, past.header.together))
            continue
        stacks = sorted({p.target.stack for p in past.planned})
        found = discover(known_stacks(stacks), plugins, listener.working, interpreter)
        _same_builds(journal.path, past.header, found.targets, interpreter)
        tasks, gone = resumed(past.planned, past.header.profile, plan, found.targets)
        if past.lacking.isdisjoint(task.target.key for task in tasks):
            reasons = "; ".join(f"{m.stack}: {m.reason}" for m in found.missing)
            raise UsageError(
                f"{journal.path}: nothing that it lacks can be measured now: {reasons or 'no such device'}"
            )
        for key in sorted(gone):
            listener.note(f"{key}: planned, but the device or library is missing now")
        runs.append(InterpreterRun(journal, tasks, past, interpreter, past.header.together))
    return plan, runs


def _sides_of(path: Path, count: int) -> list[Path]:
    """The journals that are continued together with this one, itself included. Raises ``UsageError``."""
    together = Past(path).header.together
    if together is None and count == 1:
        return [path]
    if together is None:
        raise UsageError(f"{path}: it has one side; continue it without --env-new and with at most one --python")
    if count == 1:
        options = "--python BASE --python NEW, or --env and --env-new"
        raise UsageError(f"{path}: measured in turn with a second run; to continue, give both again: {options}")
    both = [path.parent.parent / side / path.name for side in SIDES]
    for journal in both:
        if not journal.exists() and not holds_measurements(path):
            raise NothingMeasured(path)
        other = Past(journal).header.together
        if other is None or other.id != together.id:
            raise UsageError(f"{journal}: this is not the other half of {path}")
    return both


def _same_variables(path: Path, header: HeaderLine, interpreter: Interpreter) -> None:
    """Raise ``UsageError`` if the user's environment variables are not those of the interrupted run."""
    before, now = header.environment, recorded(interpreter)
    if before != now:
        raise UsageError(
            f"{path}: started with {in_words(before)}, but given are {in_words(now)}; "
            "to continue, give the same --env and --env-new again"
        )


def _same_builds(path: Path, header: HeaderLine, targets: Sequence[Target], interpreter: Interpreter) -> None:
    """Raise ``UsageError`` if a version has changed, because a file describes one build of each package."""
    now = _versions(targets, interpreter)
    for name in ("python", *_distributions(targets)):
        if name in now and name in header.versions and header.versions[name] != now[name]:
            raise UsageError(f"{path}: started with {name} {header.versions[name]}, but {now[name]} is installed now")


def known_stacks(stacks: Sequence[str]) -> list[str]:
    """The named stacks, or all stacks except those that are measured only on request. Raises ``UsageError``."""
    known = registry()
    for name in stacks:
        if name not in known:
            broken = "".join(f"; unavailable: {package.reason}" for package in unavailable_packages())
            raise UsageError(f"{unknown('stack', name, known)}{broken}")
    return list(dict.fromkeys(stacks)) or [name for name, probe in known.items() if not probe.on_request]


def check_required(required: Sequence[str], measured: Sequence[str]) -> None:
    """Raise ``UsageError`` if a required stack is unknown or not among those that are measured."""
    for name in known_stacks(required) if required else ():
        if name not in measured:
            raise UsageError(f"--require {name}: this run does not measure it; add -p {name}")


def _distributions(targets: Sequence[Target]) -> list[str]:
    return sorted({d for name in {t.stack for t in targets} for d in registry()[name].distributions})


def _versions(targets: Sequence[Target], interpreter: Interpreter) -> dict[str, str]:
    of_targets = {k: v for t in targets for k, v in t.versions.items()}
    return of_targets | interpreter.versions(_distributions(targets))


def _note_left_out(listener: Listener, left_out: Iterable[LeftOut]) -> None:
    by_reason: dict[str, list[str]] = {}
    for one in left_out:
        by_reason.setdefault(one.reason, []).append(one.target if one.case == "all" else f"{one.target} {one.case}")
    for reason, names in by_reason.items():
        some = "; ".join(names[:3]) + (f"; and {len(names) - 3} more" if len(names) > 3 else "")
        listener.note(f"left out ({reason}): {some}")


def _nothing_to_measure(missing: Sequence[results.MissingStack], left_out: Sequence[LeftOut]) -> str:
    reasons = [
        "; ".join(f"{m.stack}: {m.reason}" for m in stacks) + (f" (to add it: {mend})" if mend else "")
        for mend, stacks in by_mend(missing).items()
    ]
    reasons += [f"{one.target}: {one.reason}" for one in left_out if one.case == "all"]
    return f"nothing to measure: {'; '.join(reasons) or 'no case matches the options given'}"
