"""One complete run: find the targets (stacks on devices), plan, measure, store all samples, write
the figures.

``run`` is the function of the Python API. It makes a ``RunRequest`` of its arguments, which
``measure`` carries out. Commands that measure something else than all cases make a request too.
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
from overhead.profiles import Plan, Scope, profiles, scope_of, times_seconds
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
    times_planned_seconds,
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
    """What a run is to measure, and where its files go, as in ``run``.

    ``plan``: how long the run takes. ``scope``: which cases it measures, and what after them.
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
    scope: Scope = dataclasses.field(default_factory=Scope)


@dataclasses.dataclass(frozen=True)
class Measuring:
    """What ``Scope.after`` gets, so that a feature can measure more after the cases of a run.

    ``targets``: those that the user wants, in the order of their stacks. ``add``: appends entries
    to the journal, and puts them on the disk. ``seconds``: how long all of this may take; None if
    the feature has its own limit.
    """

    request: RunRequest
    targets: Sequence[Target]
    add: Callable[[Iterable[results.JournalEntry]], None]
    listener: Listener
    interpreter: Interpreter = HERE
    seconds: float | None = None


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
    patterns, workloads: empty for all but the heavy ones.
    profile: "quick", "default" or "thorough".
    plugins: files that register stacks or workloads.
    software: measure software adapters beside a GPU too.
    out: the file (.json) or the folder; without it reports/local/TIME.json.
    pythons: the interpreter of the workers. Two interpreters alternate, process by process, and
        their files go to the folders "base" and "new".
    env: variables (NAME=VALUE) for the workers.
    env_new: variables for "new" only. Its workers then alternate with workers without them.
    require: stacks that the run must measure.
    plan: in place of that of the profile.
    progress: True prints what is done now and the time left to standard error, False prints
        nothing. None: True in a terminal and in a notebook. An object of your own class of
        ``overhead.runner.progress.Listener`` gets them.

    The result prints as the tables at the end of ``overhead run``. Its ``fingerprint`` holds all
    figures, its ``path`` is the file.

    Raises ``UsageError`` for wrong use or if a file cannot be written. Ctrl-C raises
    ``Interrupted``, whose ``journals`` are the files with everything measured until then;
    ``overhead.load`` reads them.
    """
    request = request_of(
        stacks,
        patterns=patterns,
        workloads=workloads,
        profile=profile,
        plugins=plugins,
        software=software,
        out=out,
        pythons=pythons,
        env=env,
        env_new=env_new,
        require=require,
        plan=plan,
    )
    with listening(progress) as listener:
        return measure(request, listener)


def request_of(  # noqa: PLR0913 - the arguments of a public interface
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
    scope: Scope | None = None,
) -> RunRequest:
    """The arguments of ``run`` as one object, which says what to measure; the command line makes it
    too. Raises ``UsageError`` for an unknown pattern or profile.

    ``plan`` (how long) and ``scope`` (which cases, and what after them): in place of those of the
    profile.
    """
    # ``Pattern`` is a ``Literal``: its arguments are the names.
    known_patterns = Pattern.__args__  # type: ignore[attr-defined]
    for name in _listed(patterns):
        if name not in known_patterns:
            raise unknown_name("pattern", name, known_patterns)
    known_profiles = profiles()
    if profile not in known_profiles:
        raise unknown_name("profile", profile, known_profiles)
    choice = Choice(
        patterns=frozenset(_listed(patterns)),
        workloads=frozenset(_listed(workloads)),
        software=software,
        full=profile == "thorough",
    )
    return RunRequest(
        stacks=_listed(stacks),
        choice=choice,
        profile=cast(Profile, profile),
        plan=plan or known_profiles[profile],
        scope=scope or scope_of(profile),
        out=None if out is None else Path(out),
        plugins=_listed(plugins),
        pythons=_listed(pythons),
        env=_listed(env),
        env_new=_listed(env_new),
        require=_listed(require),
    )


def _listed(given: str | Path | Sequence[str | Path]) -> list[str]:
    """One name or path, or several, as a list."""
    if isinstance(given, str | Path):
        return [str(given)]
    return [str(each) for each in given]


def measure(request: RunRequest, listener: Listener) -> Outcome:
    """Measure what is requested and return the finished run; raises what ``run`` raises. This is
    behind ``overhead run`` and the function ``run``.

    The names of the files are reserved before anything is measured, so a run that cannot be saved
    does not begin.
    """
    if len(request.pythons) > len(SIDES):
        raise UsageError(
            f"--python: {len(request.pythons)} interpreters given; give one, or two to compare"
        )
    # Two interpreters, or one with and without variables, are compared: two runs in two folders.
    compares = bool(request.env_new) or len(request.pythons) == len(SIDES)
    sides = SIDES if compares else ("",)

    # Everything that the run makes is closed or removed at the end of this block, in reverse order.
    with ending_on_signals(), contextlib.ExitStack() as at_end:
        at_end.callback(scratch.remove)
        # What killed runs left is removed; where no lock of the devices can be, nothing begins.
        scratch.sweep()
        check_device_lock()
        _load_plugins(request.plugins, listener)
        stacks = _stacks_to_measure(request)
        # First everything that may be wrong with what was asked for; then the files; then
        # measuring.
        interpreters = with_variables(
            find_interpreters(request.pythons, stacks), request.env, request.env_new
        )
        journals = reserve_journals(request.out, sides, per_node=request.scope.folder_per_node)
        for journal in journals:
            at_end.callback(journal.close)
        try:
            return _measure_into(journals, stacks, request, interpreters, listener)
        except BaseException as error:
            # Journals with samples stay, and the user is told where; a ``UsageError`` says so
            # itself.
            kept = [journal.path for journal in journals if journal.kept]
            if kept and isinstance(error, KeyboardInterrupt):
                raise Interrupted(kept) from None
            if kept and not isinstance(error, UsageError):
                listener.note(MeasuredSoFar(kept))
            raise


def _load_plugins(plugins: Sequence[str], listener: Listener) -> None:
    """Load the user's plugins, and tell which stack of an installed package one replaces."""
    for path in plugins:
        replaced = load_plugin(Path(path), trial=True)
        for why in replaced.values():
            listener.note(why)


def _stacks_to_measure(request: RunRequest) -> list[str]:
    """The names of the stacks that the run measures. Raises ``UsageError`` for an unknown one, and
    for one that ``--require`` names and the run leaves out.
    """
    # Some profiles measure only stacks of one role, if the user names none.
    role = request.scope.role
    stacks_of_profile = stacks_with(role) if role else ()
    stacks = known_stacks(request.stacks or stacks_of_profile)
    check_workload_names(request.choice, stacks)
    # ``--require`` names stacks that must be measured; one that is left out anyway is an error at
    # once.
    if request.require:
        for name in known_stacks(request.require):
            if name not in stacks:
                raise UsageError(f"--require {name}: this run does not measure it; add -p {name}")
    return stacks


def _measure_into(
    journals: Sequence[Journal],
    stacks: Sequence[str],
    request: RunRequest,
    interpreters: Sequence[Interpreter],
    listener: Listener,
) -> Outcome:
    """The steps of a run once its journals are there: find the targets (stacks on devices), plan
    their cases, measure, and make the files of the run. One journal for each interpreter.
    """
    plans = [_plan_for(stacks, request, interpreter, listener) for interpreter in interpreters]
    runs = _begin(plans, request, journals, listener)
    # The name of a file is the time, so each run has another order of its cases, which can be
    # repeated from the file.
    rng = random.Random(os.fsencode(journals[0].path.name))
    # A run takes so many times as long on a machine with more GPUs than its profile is planned for.
    times_longer = max(planned.times_longer for planned in plans)
    try:
        _measure_planned(runs, request, times_longer, listener, rng)
        listener.working(because("forming-the-figures"))
        return write_files(journals)
    finally:
        listener.end()


def _measure_planned(
    runs: Sequence[InterpreterRun],
    request: RunRequest,
    times_longer: float,
    listener: Listener,
    rng: random.Random,
) -> None:
    """Measure the planned cases, then what the profile adds (such as many processes at once).

    ``times_longer``: how many times its seconds the profile takes, for a machine with more GPUs
    than it is planned for.
    """
    plan, scope = request.plan.lengthened(times_longer), request.scope
    if scope.cases != "none":
        Campaign(runs, plan, listener, request.plugins, rng, request.limits).run()
    if scope.after is None:
        return
    # What the profile adds, for each interpreter.
    seconds = times_seconds(scope.after_s, times_longer)
    for of_interpreter in runs:
        scope.after(
            Measuring(
                request,
                of_interpreter.targets,
                of_interpreter.journal.append,
                listener,
                of_interpreter.interpreter,
                seconds,
            )
        )


@dataclasses.dataclass(frozen=True)
class _InterpreterPlan:
    """What the run measures under one interpreter, and what it does not.

    ``found``: all targets, and what is missing. ``targets``: those that the user wants.
    ``times_longer``: how many times its seconds the profile takes with these targets.
    """

    interpreter: Interpreter
    found: Discovery
    targets: list[Target]
    tasks: list[Task]
    left_out: list[results.LeftOut]
    times_longer: float


def _plan_for(
    stacks: Sequence[str], request: RunRequest, interpreter: Interpreter, listener: Listener
) -> _InterpreterPlan:
    """Find the targets of these stacks (the devices that they find) under an interpreter, choose
    those that the user wants, and plan their cases. Raises ``UsageError`` if there is nothing to
    measure.
    """
    found = discover(stacks, request.plugins, listener.working, interpreter)
    packages = unavailable_packages()
    for package in packages:
        listener.note(about("unavailable", package.reason))
    found = dataclasses.replace(found, missing=[*found.missing, *packages])
    # Where a stack and the user set the same variable, the stack's value counts.
    for target in found.targets:
        for name in sorted(target.environment.keys() & interpreter.variables.keys()):
            listener.note(because("stack-sets-variable", target=target.key, variable=name))

    chosen = choose_targets(found.targets, request.choice)
    times_longer = times_planned_seconds(chosen.targets, request.scope)
    plan = request.plan.lengthened(times_longer)
    scheduled = schedule(chosen.targets, request.choice, plan, request.scope.cases)
    left_out = [*chosen.left_out, *scheduled.left_out]
    # A profile may measure something after the cases (``scope.after``), so no case at all is no
    # error then, as long as there is a target.
    measures_more = request.scope.after is not None and bool(chosen.targets)
    if not scheduled.tasks and not measures_more:
        raise UsageError(_nothing_to_measure(found.missing, left_out))
    return _InterpreterPlan(
        interpreter, found, chosen.targets, scheduled.tasks, left_out, times_longer
    )


def _begin(
    plans: Sequence[_InterpreterPlan],
    request: RunRequest,
    journals: Sequence[Journal],
    listener: Listener,
) -> list[InterpreterRun]:
    """Write the first entries of each interpreter's journal (header and plan), and tell the user
    what is left out. Returns for each interpreter what ``Campaign`` measures with it.
    """
    header = results.HeaderEntry(
        schema_version=results.SCHEMA_VERSION,
        method_version=results.METHOD_VERSION,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        profile=request.profile,
        machine=machine.identity(),
        # The present state, which may differ in the next run: load, frequencies, power.
        volatile=machine.volatile(),
    )
    # Two runs that take turns have one id, so that readers find the one that belongs to the other.
    id_of_both = secrets.token_hex(6)
    # A journal for each interpreter, with the same header but for its own software.
    runs = []
    for number, (planned, journal) in enumerate(zip(plans, journals, strict=True)):
        together = None
        if len(plans) > 1:
            together = results.Together(id=id_of_both, side=SIDES[number])
        _write_plan(journal, _header_for(planned, header, together), planned)
        runs.append(
            InterpreterRun(journal, planned.tasks, planned.interpreter, together, planned.targets)
        )
    # A dict, so that what both interpreters leave out is told once, in order.
    left_out: dict[results.LeftOut, None] = {}
    for planned in plans:
        left_out |= dict.fromkeys(planned.left_out)
    _note_left_out(listener, left_out)
    return runs


def _header_for(
    planned: _InterpreterPlan, header: results.HeaderEntry, together: results.Together | None
) -> results.HeaderEntry:
    """The header of a run under this interpreter: with the versions of its software, and with the
    facts of stacks of other packages, so that a reader without these packages can show them.
    """
    targets = planned.found.targets
    versions: dict[str, str] = {}
    for target in targets:
        versions |= target.versions
    distributions: set[str] = set()
    for target in targets:
        distributions.update(registry()[target.stack].distributions)
    versions |= planned.interpreter.versions(sorted(distributions))
    # Facts of our own stacks are known to every reader; those of others go into the file.
    stacks = {target.stack for target in targets}
    stacks_of_others = sorted(stacks - results.own_stacks().keys())
    return msgspec.structs.replace(
        header,
        versions=versions,
        together=together,
        environment=variables_for_file(planned.interpreter),
        stacks={name: facts_of_stack(name) for name in stacks_of_others},
    )


def _write_plan(journal: Journal, header: results.HeaderEntry, planned: _InterpreterPlan) -> None:
    """Write the header, what is missing or left out, and the planned cases. The journal holds all
    of it back until the first sample.
    """
    # ``redacted``: without what tells about the user, such as paths.
    journal.write([header])
    for missing in planned.found.missing:
        journal.write([machine.redacted(results.MissingEntry(unavailable=missing))])
    for left_out in planned.left_out:
        journal.write([results.OmittedEntry(left_out=left_out)])
    for task in planned.tasks:
        for assignment in task.assignments:
            entry = results.PlannedEntry(
                worker=task.target.key,
                target=assignment.target,
                case=assignment.case,
                processes=task.processes,
            )
            journal.write([machine.redacted(entry)])
    journal.sync()


def _note_left_out(listener: Listener, left_out: Iterable[results.LeftOut]) -> None:
    """Tell the listener each reason once, with all cases and targets that it holds for."""
    by_reason: dict[Why, list[str]] = {}
    for omitted in left_out:
        name = omitted.target
        # ``all``: the whole target is left out.
        if omitted.case != "all":
            name = f"{omitted.target} {omitted.case}"
        by_reason.setdefault(omitted.reason, []).append(name)
    for reason, names in by_reason.items():
        listener.note(CasesLeftOut(reason, names))


def _nothing_to_measure(
    missing: Sequence[results.MissingStack], left_out: Sequence[results.LeftOut]
) -> Why:
    """The reason in the error of a run that has nothing to measure: for each missing stack why,
    with the step that adds it, and for each target (a stack on a device) why it is left out.
    """
    reasons = []
    for mend, stacks in by_mend(missing).items():
        why = together(*(about(stack.stack, stack.reason) for stack in stacks))
        reasons.append(with_mend(why, mend))
    for omitted in left_out:
        # A single case that is left out does not explain why a whole target is not measured.
        if omitted.case == "all":
            reasons.append(about(omitted.target, omitted.reason))
    return because("nothing-to-measure", why=together(*reasons) or because("no-case-matches"))
