"""One complete run: find the targets (stacks on devices), plan, measure, store all samples, write
the figures.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import secrets
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import msgspec

from overhead import machine, results, scratch
from overhead.errors import SaidInOneLine, UsageError, in_words, unknown_name
from overhead.locks import check_device_lock
from overhead.probes import facts_of_stack, load_plugin, registry, stacks_with, unavailable_packages
from overhead.profiles import Plan, profiles
from overhead.reading.missing_values import by_mend
from overhead.results import Pattern, Profile, Target, Why, about, because, together, with_mend
from overhead.runner.campaign import Campaign, InterpreterRun, WorkerLimits
from overhead.runner.discovery import Discovery, discover, known_stacks
from overhead.runner.events import CasesLeftOut, MeasuredSoFar
from overhead.runner.interpreter import (
    HERE,
    Interpreter,
    find_interpreters,
    variables_for_file,
    with_variables,
)
from overhead.runner.output import SIDES, Journal, Outcome, reserve_journals, write_files
from overhead.runner.progress import Listener, listening
from overhead.runner.schedule import (
    Choice,
    Task,
    check_workload_names,
    choose_targets,
    schedule,
    with_seconds_for,
)
from overhead.scratch import ending_on_signals


class Interrupted(SaidInOneLine, KeyboardInterrupt):
    """Ctrl-C, or a signal that ends the run. Everything measured is in the files ``journals``."""

    def __init__(self, journals: Sequence[Path]) -> None:
        self.journals = list(journals)
        files = " and ".join(map(str, self.journals))
        super().__init__(because("interrupted-run", files=files, first=str(self.journals[0])))

    def __str__(self) -> str:
        return in_words(self.args[0])


@dataclasses.dataclass(frozen=True)
class RunRequest:
    """What a run is to measure, and where its files go, as in ``run``; ``plan`` is how long it
    takes.
    """

    stacks: Sequence[str]
    choice: Choice
    profile: Profile
    plan: Plan
    plugins: Sequence[str] = ()
    out: Path | None = None
    pythons: Sequence[str] = ()
    env: Sequence[str] = ()
    env_new: Sequence[str] = ()
    require: Sequence[str] = ()
    limits: WorkerLimits = dataclasses.field(default_factory=WorkerLimits)


@dataclasses.dataclass(frozen=True)
class Measuring:
    """What ``Plan.more`` gets, so that a slice can measure more after the cases of a run.

    ``targets``: those that the user wants, in the order of their stacks. ``add``: appends lines to
    the journal, and puts them on the disk.
    """

    request: RunRequest
    targets: Sequence[Target]
    add: Callable[[Iterable[results.JournalEntry]], None]
    listener: Listener
    interpreter: Interpreter = HERE


Texts = str | Sequence[str]
"""One name, or several."""


def run(  # noqa: PLR0913 - a public interface
    stacks: Texts = (),
    *,
    patterns: Texts = (),
    workloads: Texts = (),
    profile: str = "default",
    plugins: str | Path | Sequence[str | Path] = (),
    software: bool = False,
    out: str | Path | None = None,
    pythons: str | Path | Sequence[str | Path] = (),
    env: Texts = (),
    env_new: Texts = (),
    require: Texts = (),
    plan: Plan | None = None,
    progress: bool | Listener | None = None,
) -> Outcome:
    """Measure this machine and return the finished run, whose raw samples are in a file beside it.

    stacks: the stacks to measure; empty for all except those that are measured only on request.
    patterns, workloads: empty for all but the heavy ones. profile: "quick", "default" or
    "thorough". plugins: files that register stacks or workloads. software: measure software
    adapters beside a GPU too. out: the file (.json) or the folder; without it
    reports/local/TIME.json. pythons: the interpreter of the workers. Two interpreters alternate,
    process by process, and their files go to the
        folders "base" and "new".
    env: variables (NAME=VALUE) for the workers. env_new: variables for "new" only. Its workers then
    alternate with workers without them. require: stacks that the run must measure. plan: in place
    of that of the profile. progress: True prints what is done now and the time left to standard
    error, False prints nothing. None: True in a
        terminal and in a notebook. An object of your own class of
        ``overhead.runner.progress.Listener`` gets them.

    The result prints as the tables at the end of ``overhead run``. Its ``fingerprint`` holds all
    figures, its ``path`` is the file.

    Raises ``UsageError`` for wrong use or if a file cannot be written. Ctrl-C raises
    ``Interrupted``, whose ``journals`` are the files with everything measured until then;
    ``overhead.load`` reads them.
    """
    allowed = Pattern.__args__  # type: ignore[attr-defined]
    for name in _listed(patterns):
        if name not in allowed:
            raise unknown_name("pattern", name, allowed)
    known = profiles()
    if profile not in known:
        raise unknown_name("profile", profile, known)
    full = profile == "thorough"
    request = RunRequest(
        stacks=_listed(stacks),
        choice=Choice(
            frozenset(_listed(patterns)), frozenset(_listed(workloads)), software, full=full
        ),
        profile=cast(Profile, profile),
        plan=plan or known[profile],
        out=None if out is None else Path(out),
        plugins=_listed(plugins),
        pythons=_listed(pythons),
        env=_listed(env),
        env_new=_listed(env_new),
        require=_listed(require),
    )
    with listening(progress) as listener:
        return measure(request, listener)


def _listed(given: str | Path | Sequence[str | Path]) -> list[str]:
    """One name or path, or several, as a list."""
    if isinstance(given, str | Path):
        return [str(given)]
    return [str(one) for one in given]


def measure(request: RunRequest, listener: Listener) -> Outcome:
    """Measure what is requested and return the finished run; raises what ``run`` raises."""
    if len(request.pythons) > len(SIDES):
        raise UsageError(
            f"--python: {len(request.pythons)} interpreters given; give one, or two to compare"
        )
    sides = SIDES if request.env_new or len(request.pythons) == len(SIDES) else ("",)
    with ending_on_signals(), contextlib.ExitStack() as stack:
        stack.callback(scratch.remove)
        scratch.sweep()
        check_device_lock()
        for name in request.plugins:
            for replaced in load_plugin(Path(name), trial=True).values():
                listener.note(replaced)
        planned = stacks_with(request.plan.role) if request.plan.role else ()
        stacks = known_stacks(request.stacks or planned)
        check_workload_names(request.choice, stacks)
        for name in known_stacks(request.require) if request.require else ():
            if name not in stacks:
                raise UsageError(f"--require {name}: this run does not measure it; add -p {name}")
        given = with_variables(
            find_interpreters(request.pythons, stacks), request.env, request.env_new
        )
        journals = reserve_journals(request.out, sides, per_node=request.plan.folder_per_node)
        for journal in journals:
            stack.callback(journal.close)
        try:
            runs = _begin(stacks, request, journals, given, listener)
            rng = random.Random(os.fsencode(journals[0].path.name))
            try:
                _measure_planned(runs, request, listener, rng)
                listener.working(because("forming-the-figures"))
                return write_files(journals)
            finally:
                listener.end()
        except BaseException as error:
            kept = [journal.path for journal in journals if journal.kept]
            if kept and isinstance(error, KeyboardInterrupt):
                raise Interrupted(kept) from None
            if kept and not isinstance(error, UsageError):
                listener.note(MeasuredSoFar(kept))
            raise


def _measure_planned(
    runs: Sequence[InterpreterRun], request: RunRequest, listener: Listener, rng: random.Random
) -> None:
    """Measure the planned cases, then what the profile adds."""
    plan = with_seconds_for((target for one in runs for target in one.targets), request.plan)
    request = dataclasses.replace(request, plan=plan)
    if plan.cases:
        Campaign(runs, plan, listener, request.plugins, rng, request.limits).run()
    for one in runs:
        if plan.more is not None:
            plan.more(
                Measuring(request, one.targets, one.journal.append, listener, one.interpreter)
            )


_Prepared = tuple[Discovery, list[Task], list[results.LeftOut]]
"""The plan for one interpreter: what was found, the tasks, and the cases left out."""


def _begin(
    stacks: Sequence[str],
    request: RunRequest,
    journals: Sequence[Journal],
    given: Sequence[Interpreter],
    listener: Listener,
) -> list[InterpreterRun]:
    """Find targets and plan for each interpreter, then write the first lines of the journals."""
    prepared = [_prepare(stacks, request, one, listener) for one in given]
    header = results.HeaderEntry(
        schema_version=results.SCHEMA_VERSION,
        method_version=results.METHOD_VERSION,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        profile=request.profile,
        machine=machine.identity(),
        volatile=machine.volatile(),
    )
    common, runs = secrets.token_hex(6), []
    for number, (interpreter, one, journal) in enumerate(
        zip(given, prepared, journals, strict=True)
    ):
        found, tasks, _ = one
        together = results.Together(id=common, side=SIDES[number]) if len(given) > 1 else None
        versions = {k: v for t in found.targets for k, v in t.versions.items()}
        versions |= interpreter.versions(
            sorted({d for t in found.targets for d in registry()[t.stack].distributions})
        )
        variables = variables_for_file(interpreter)
        of_others = sorted({t.stack for t in found.targets} - results.own_stacks().keys())
        own = msgspec.structs.replace(
            header,
            versions=versions,
            together=together,
            environment=variables,
            stacks={name: facts_of_stack(name) for name in of_others},
        )
        _write_plan(journal, own, one)
        targets = choose_targets(found.targets, request.choice)[0]
        runs.append(InterpreterRun(journal, tasks, interpreter, together, targets))
    _note_left_out(listener, dict.fromkeys(left for *_, left_out in prepared for left in left_out))
    return runs


def _prepare(
    stacks: Sequence[str], request: RunRequest, interpreter: Interpreter, listener: Listener
) -> _Prepared:
    found = discover(stacks, request.plugins, listener.working, interpreter)
    packages = unavailable_packages()
    for package in packages:
        listener.note(about("unavailable", package.reason))
    found = dataclasses.replace(found, missing=[*found.missing, *packages])
    for target in found.targets:
        for name in sorted(target.environment.keys() & interpreter.variables.keys()):
            listener.note(because("stack-sets-variable", target=target.key, variable=name))
    tasks, left_out = schedule(found.targets, request.choice, request.plan)
    if not tasks and not (request.plan.more and choose_targets(found.targets, request.choice)[0]):
        raise UsageError(_nothing_to_measure(found.missing, left_out))
    return found, tasks, left_out


def _write_plan(journal: Journal, header: results.HeaderEntry, prepared: _Prepared) -> None:
    found, tasks, left_out = prepared
    journal.write([header])
    journal.write(machine.redacted(results.MissingEntry(unavailable=m)) for m in found.missing)
    journal.write(results.OmittedEntry(left_out=omitted) for omitted in left_out)
    planned = [(task, a) for task in tasks for a in task.assignments]
    lines = (
        results.PlannedEntry(
            worker=t.target.key, target=a.target, case=a.case, processes=t.processes
        )
        for t, a in planned
    )
    journal.write(map(machine.redacted, lines))
    journal.sync()


def _note_left_out(listener: Listener, left_out: Iterable[results.LeftOut]) -> None:
    by_reason: dict[Why, list[str]] = {}
    for one in left_out:
        by_reason.setdefault(one.reason, []).append(
            one.target if one.case == "all" else f"{one.target} {one.case}"
        )
    for reason, names in by_reason.items():
        listener.note(CasesLeftOut(reason, names))


def _nothing_to_measure(
    missing: Sequence[results.MissingStack], left_out: Sequence[results.LeftOut]
) -> Why:
    reasons = []
    for mend, stacks in by_mend(missing).items():
        why = together(*(about(one.stack, one.reason) for one in stacks))
        reasons.append(with_mend(why, mend))
    reasons += [about(one.target, one.reason) for one in left_out if one.case == "all"]
    return because("nothing-to-measure", why=together(*reasons) or because("no-case-matches"))
