"""``overhead time``: what one call costs, by the suite's method, for a statement or a function of
your own.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from overhead import __version__, machine, results
from overhead.errors import BadFile, SaidInOneLine, UsageError, check_text, in_words
from overhead.measure.sampling.anchors import ANCHORS
from overhead.probes import unload_plugin
from overhead.profiles import Plan
from overhead.public import Shown
from overhead.results import (
    METHOD_VERSION,
    Figure,
    Fingerprint,
    Machine,
    Reason,
    Record,
    Scalar,
    Why,
    WithFigures,
    about,
    because,
    code_of,
    codes_of,
    ratio,
    together,
)
from overhead.runner.campaign import WorkerLimits
from overhead.runner.interpreter import Interpreter, find_interpreters
from overhead.runner.output import Outcome
from overhead.runner.progress import Listener, listening
from overhead.runner.run import Interrupted, RunRequest, measure
from overhead.runner.schedule import Choice
from overhead.timing.call_spec import (
    CALLED_AS,
    FOUND_AS,
    THREAD_VARIABLES,
    CallSpec,
    FoundCall,
    handing_over_spec,
    refuse_in_script_run_again,
    setup_of,
)
from overhead.timing.call_syntax import (
    assignments,
    check_does_something,
    check_varied,
    named_function,
    shown_statement,
)
from overhead.timing.division import Division
from overhead.timing.steps import step_named
from overhead.timing.user_statement import SILENCE_S, try_statements
from overhead.timing.waits import NOTHING

if TYPE_CHECKING:
    from overhead.comparing import CaseVerdict

_STACK = Path(__file__).with_name("call_stack.py")
_MOST_CALLS = 8
_SLOW_CALL_S = 0.03
_LEAST_SILENCE_S = 10.0
"""A process that measures may be silent for this long, and for three times the time of the
trial.
"""
_CALLS_PER_PROCESS = 60
"""Calls of a slow statement that a process samples."""
_MOST_VERSIONS = 32
"""So many versions that differ are named."""
_OF_RECORD = ("status", "reason", "bound", "flags", "figures")


class CallTiming(Shown, WithFigures, frozen=True, kw_only=True):
    """The figures of one statement, times in ns. ``wait``: how the end of the work is awaited.
    ``on``: the device.

    ``bound``: ``host``, ``device``, ``balanced`` or empty. ``flags``: remarks, such as
    ``values-not-checked``. ``next_run``: the range, ns, in which the next run should find
    ``complete``; None if there is none. ``varied``: the value of the variable, the number of
    threads or the interpreter, where these vary. ``libraries``: the packages whose objects the
    statement uses, with their versions. ``taken``: of a function that is named, ``returned`` if
    what it returns is timed, ``itself`` if it is; ``returned``: the type of what it returns.
    ``division``: how the host's time of a call divides, Python or a library; None where that was
    not asked for.
    """

    call: str
    varied: dict[str, str] = msgspec.field(default_factory=dict)
    libraries: dict[str, str] = msgspec.field(default_factory=dict)
    taken: Literal["", "returned", "itself"] = ""
    returned: str = ""
    status: results.Status
    reason: Why
    wait: Why
    on: str
    bound: str = ""
    flags: list[str]
    figures: list[Figure]
    next_run: list[float] | None = None
    division: Division | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether something waits for the work of the call, so that it may return before its work
        is done.
        """
        if isinstance(
            self.wait, str
        ):  # the call of a library that waits; in older files also what says that none does
            return self.on != "CPU"
        return self.wait != NOTHING.said


def untimed(tried: FoundCall, reason: Why, figures: list[Figure]) -> CallTiming:
    """The result for a step that was not timed. ``reason``: why not."""
    return CallTiming(
        call="step()",
        status="unavailable",
        reason=reason,
        wait=tried.said,
        on=tried.adapter,
        flags=[],
        figures=figures,
    )


class CallRatio(Struct, frozen=True, kw_only=True):
    """``complete`` of the row at ``position`` (from 1) over that of the row ``against``, measured
    in turn.

    ``difference``: None if they were measured in two processes. ``verdict``: of ``compare``, for
    two interpreters.
    """

    position: int
    against: int = 1
    difference: Figure | None = None
    ratio: Figure
    verdict: str = ""


class Timing(Shown, Struct, frozen=True, kw_only=True):
    """The result of ``time``. ``notes``: what disturbed the measurement, or what is missing.

    ``quick``: only first answers. ``setup``: as it was given. ``versions``: of the first
    interpreter; ``second_versions``: of the second one, where there are two. ``suite``,
    ``method_version``: of the program that measured.
    """

    format: str = "overhead-time"
    version: int = 1
    created: str
    setup: str
    machine: Machine
    versions: dict[str, str]
    second_versions: dict[str, str] = {}
    suite: str = ""
    method_version: int = 0
    calls: list[CallTiming]
    ratios: list[CallRatio] = []
    notes: list[Why] = []
    quick: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, for JSON."""
        found: dict[str, Any] = results.to_builtins(self)
        return found


class TimeInterrupted(SaidInOneLine, KeyboardInterrupt):
    """Ctrl-C or another signal ended ``time``. ``timing``: what was measured until then; no file
    holds it.
    """

    def __init__(self, timing: Timing) -> None:
        super().__init__(because("interrupted-time", calls="; ".join(map(str, timing.calls))))
        self.timing = timing

    def __str__(self) -> str:
        return in_words(self.args[0])


class _Named(Struct, frozen=True, kw_only=True):
    """What the statements are called, and what they need. ``before``, ``path``: of functions, for
    the workers.
    """

    texts: list[str]
    labels: list[str]
    before: str
    path: list[str]


def time(  # noqa: PLR0913 - a public interface
    call: str | Callable[[], object],
    *others: str | Callable[[], object],
    setup: str = "",
    wait: str = "",
    names: Sequence[str] = (),
    quick: bool = False,
    vary: str = "",
    threads: str = "",
    pythons: Sequence[str] = (),
    arguments: Sequence[str] = (),
    progress: bool | Listener | None = None,
) -> Timing:
    """Measure one call, or several in turn: the cost of one more call, and its parts.

    call, others: a statement; or a function without arguments, also a lambda or one of a notebook;
    or the name of a
        function: "FILE.py:FUNCTION" or "module:function". If that returns a function, the returned
        one is measured.
    setup: a statement that runs in each process, once for each call. It defines the names that
    statements use. wait: a name of a library ("torch", "jax", ...), "none", or a statement that
    returns when all work is done. Without
        it the library in use is found.
    names: what the calls are called. quick: end after the first answers, within seconds. vary:
    "NAME=VALUE,VALUE": measure with each value of a variable, which is assigned before the setup.
    threads: "N,N": measure with each number of library threads. pythons: one interpreter, or two,
    whose processes alternate. arguments: for functions that are named: texts such as "layers=4".
    progress: True prints the first answers within seconds and the time left to standard error,
    False prints nothing.
        None: True in a terminal and in a notebook. An object of your own class of
        ``overhead.runner.progress.Listener`` gets them.

    Takes up to a minute, twice that for two interpreters. The result prints as the tables of
    ``overhead time``. Its attributes are numbers in ns.

    Raises ``UsageError``, one line, for a statement that raises, does nothing, cannot be repeated,
    hangs or takes too long. Ctrl-C after a first answer raises ``TimeInterrupted``, whose
    ``timing`` holds what was measured until then.
    """
    calls = [call, *others]
    variable, *_ = [*assignments(vary)[0], ""]
    named = _named(calls, arguments, variable)
    spec = CallSpec(
        calls=named.texts,
        setup=setup,
        before=named.before,
        wait=wait,
        path=[
            *named.path,
            *([os.getcwd()] if pythons else []),
        ],  # which starts elsewhere than this one
        vary=vary,
        threads=[*dict.fromkeys(threads.split(","))] if threads else [],
        pythons=[*pythons],
        first=True,
    )
    _check_number(spec)
    if variable:
        statements = [one for one in calls if isinstance(one, str) and not named_function(one)]
        functions = any(isinstance(one, str) and named_function(one) for one in calls)
        check_varied(variable, statements, setup, wait, reaches_functions=functions)
    if not all(number.isdecimal() and int(number) for number in spec.threads):
        raise UsageError(f"--threads {threads}: not numbers of 1 or more, such as 1,4")
    if threads and pythons:
        raise UsageError("--threads and --python: give one of them")
    if names and len(names) != len(calls):
        raise UsageError(
            f"--label: {len(names)} given for {len(calls)} calls; give one for each call, in order"
        )
    with listening(progress) as listener:
        return time_statements(spec, listener, labels=names or named.labels, quick=quick)


def _check_number(spec: CallSpec) -> None:
    if not 1 <= len(spec.cases) <= _MOST_CALLS:
        raise UsageError(
            f"{len(spec.cases)} statements given; 1 to {_MOST_CALLS} are measured in turn"
        )


def _named(
    calls: Sequence[str | Callable[[], object]], arguments: Sequence[str], variable: str
) -> _Named:
    """The calls as statements; a function becomes a name that a text of the setup defines. Raises
    ``UsageError``.

    ``variable``: what ``--vary`` varies. A function that is named gets it as an argument: the setup
    could bring it there through a module only, which all cases of a process share.
    """
    texts: list[str] = []
    labels: list[str] = []
    before: list[str] = []
    path: list[str] = []
    if arguments and not any(isinstance(one, str) and named_function(one) for one in calls):
        raise UsageError(
            "--arg: only for FILE.py:FUNCTION or module:function; write the arguments into the"
            " statement"
        )
    for number, one in enumerate(calls):
        name = f"{CALLED_AS}{number}"
        if isinstance(one, str) and not named_function(one):
            check_does_something(one)
            texts.append(one)
            labels.append(shown_statement(one))
            continue
        texts.append(f"{name}()")
        if isinstance(one, str):
            source = step_named(named_function(one), arguments, variable)
            _check_module(one)
            before.append(
                f"{source.setup}\n{name} = step\n{FOUND_AS}{number} = found_step\ndel step,"
                " found_step\n"
            )
            labels.append(named_function(one))
            path += source.path
        else:
            before.append(f"{setup_of(one, name)}\n")
            labels.append(f"{getattr(one, '__qualname__', type(one).__qualname__)}()")
            path += sys.path
    return _Named(
        texts=texts, labels=labels, before="".join(before), path=list(dict.fromkeys(path))
    )


def _check_module(named: str) -> None:
    """Raise ``UsageError`` if ``module:function`` names no module: it may be meant as a
    statement.
    """
    place = named.strip().rpartition(":")[0]
    top = place.partition(".")[0]
    if place.endswith(".py") or top in sys.modules:
        return
    finder = importlib.machinery.PathFinder()
    if finder.find_spec(top, [os.getcwd(), *sys.path]) is None:
        raise UsageError(
            f"{named}: names a function of a module, and there is no module {top} here or among the"
            " installed ones; name FILE.py:FUNCTION, or write a Python statement"
        )


def time_statements(
    spec: CallSpec,
    listener: Listener | None = None,
    *,
    silence_s: float = SILENCE_S,
    plan: Plan | None = None,
    labels: Sequence[str] = (),
    others_may_fail: bool = False,
    quick: bool = False,
) -> Timing:
    """Measure the statements of ``spec``; they are tried first unless ``spec.found`` has what a
    trial found out.

    ``silence_s``: the longest that SETUP or a call may take. ``plan``: None for that of ``overhead
    time``. ``labels``: what the reader sees instead of the statements. ``others_may_fail``: only
    the first one must give a figure. ``quick``: end after the first answers.
    """
    refuse_in_script_run_again()
    _check_number(spec)
    check_text(*spec.calls, spec.setup, spec.wait, spec.vary, *labels)
    listener = listener or Listener()
    began = monotonic()
    variants = _variants(spec)
    rows: list[CallTiming] = []
    with _keeping_first_answers(spec, rows):
        trials = _try_all(spec, variants, listener, silence_s, labels, rows)
        packages = sorted({package for one in trials[0] for package in one.packages})
        first = replace(
            _first_answers(spec, rows),
            versions=variants[0][1].versions(packages),
            second_versions=variants[-1][1].versions(packages) if len(spec.pythons) > 1 else {},
        )
        answered = [row for row in rows if row.figures and not quick]
        for row in answered:
            listener.note(because("first-answer-of-row", row=str(row)))
    if quick:
        return first
    if not spec.found:
        spec = replace(spec, found=trials[0])
        anchors_s = 3 * ANCHORS.longest_ns / 1e9
        slowest_s = max(one.one_ns for one in spec.found) / 1e9
        silence_s = min(
            silence_s, _LEAST_SILENCE_S + 3 * (monotonic() - began) + 100 * slowest_s + anchors_s
        )
    plan = plan or sampling_plan(spec.found * max(1, len(spec.threads)))
    outcome, judged = _measured(spec, first, plan, silence_s, listener)
    return _timing(first, outcome, judged, others_may_fail, plan.wall_s)


@contextlib.contextmanager
def _keeping_first_answers(spec: CallSpec, rows: Sequence[CallTiming]) -> Iterator[None]:
    """A ``with`` block of which Ctrl-C raises ``TimeInterrupted`` once there is a first answer."""
    try:
        yield
    except KeyboardInterrupt:
        if not rows:
            raise
        raise TimeInterrupted(_cut_short(_first_answers(spec, rows))) from None


def _try_all(
    spec: CallSpec,
    variants: Sequence[tuple[dict[str, str], Interpreter]],
    listener: Listener,
    silence_s: float,
    labels: Sequence[str],
    rows: list[CallTiming],
) -> list[list[FoundCall]]:
    """What the trials found, by interpreter. Appends to ``rows`` the first answers, which an
    interruption keeps.
    """
    trials: list[list[FoundCall]] = []
    for varied, interpreter in variants:
        listener.working(because("trying-each-statement"))
        found = spec.found or try_statements(spec, interpreter, silence_s=silence_s).found
        trials.append(found)
        if [one.waits for one in found] != [one.waits for one in trials[0]]:
            raise UsageError(
                "the two interpreters need different waits, so nothing is compared; give --wait"
            )
        rows += [_first_row(one, spec, labels, varied, number) for number, one in enumerate(found)]
    return trials


def _first_answers(spec: CallSpec, rows: Sequence[CallTiming]) -> Timing:
    return Timing(
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        setup=spec.setup,
        machine=machine.identity(),
        versions={},
        suite=__version__,
        method_version=METHOD_VERSION,
        calls=list(rows),
        quick=True,
    )


def _measured(
    spec: CallSpec, first: Timing, plan: Plan, silence_s: float, listener: Listener
) -> tuple[Outcome, dict[str, CaseVerdict]]:
    """The finished run, and by case the verdicts for two interpreters. Raises
    ``TimeInterrupted``.
    """
    from overhead.comparing import (
        compare,
    )  # not needed for the first answer, which comes sooner without it

    with (
        handing_over_spec(spec),
        tempfile.TemporaryDirectory() as folder,
    ):  # ``measure`` empties ``scratch``
        try:
            limits, plugins = WorkerLimits(silence_s=silence_s), [str(_STACK)]
            request = RunRequest(
                ["call"],
                Choice(),
                "quick",
                plan,
                plugins,
                Path(folder),
                spec.pythons,
                limits=limits,
            )
            outcome = measure(request, listener)
        except BadFile:
            raise UsageError(
                "the answers of a process cannot be read: the program writes to a file descriptor"
                " that it has not opened, or forks a child process that runs on (os.fork)"
            ) from None
        except (
            Interrupted
        ) as stopped:  # its journals are in this folder, which ends with this block
            raise TimeInterrupted(_cut_short(first, stopped.journals)) from None
        except KeyboardInterrupt:
            raise TimeInterrupted(_cut_short(first)) from None
        finally:
            unload_plugin(_STACK, "call")
        judged = compare(outcome, outcome.second).cases if outcome.second else ()
    return outcome, {case.case: case for case in judged}


def _first_row(
    found: FoundCall, spec: CallSpec, labels: Sequence[str], varied: Mapping[str, str], number: int
) -> CallTiming:
    """The row of one case with its first answer. ``number``: of the case."""
    position, given = spec.cases[number]
    return CallTiming(
        call=(labels or spec.calls)[position],
        varied={**varied, **given},
        libraries=found.libraries,
        taken=found.taken,
        returned=found.returned,
        status="noisy",
        reason=found.first.reason if found.first else "",
        wait=found.said,
        on=found.adapter,
        flags=["values-not-checked"],
        figures=[found.first] if found.first else [],
        division=found.division,
    )


def _cut_short(first: Timing, journals: Sequence[Path] = ()) -> Timing:
    """What was measured before an interruption: the costs in the journals, and first answers where
    there is none.
    """
    from overhead.loading.reduce import load

    records: list[Record] = []
    for journal in journals:
        with contextlib.suppress(UsageError):  # it ends before the first process did
            records += load(journal).records
    calls = list(first.calls)
    if len(records) == len(calls):
        measured = [record.measured("complete") is not None for record in records]
        calls = [
            replace(row, **_of_record(record)) if known else row
            for row, record, known in zip(calls, records, measured, strict=True)
        ]
    only_first = calls == first.calls
    note = (
        because("interrupted-with-first-answers")
        if only_first
        else because("interrupted-with-fewer-processes")
    )
    return replace(first, calls=calls, notes=[note], quick=only_first)


def _of_record(record: Record) -> dict[str, Any]:
    """What a row takes over from its record."""
    return {name: getattr(record, name) for name in _OF_RECORD}


def _variants(spec: CallSpec) -> list[tuple[dict[str, str], Interpreter]]:
    """What differs between processes, a number of threads or the interpreter, each with how to
    start one.
    """
    if spec.threads:
        return [
            ({"threads": n}, Interpreter(environment=dict.fromkeys(THREAD_VARIABLES, n)))
            for n in spec.threads
        ]
    named = [{"python": path} for path in spec.pythons] or [{}]
    return list(zip(named, find_interpreters(spec.pythons), strict=True))


def sampling_plan(found: Sequence[FoundCall]) -> Plan:
    """The plan of a run: 20 s of sampling in five processes; if calls are slow, three with at least
    60 calls each.
    """
    slowest_s = max(one.one_ns for one in found) / 1e9
    slow = slowest_s > _SLOW_CALL_S
    processes = 3 if slow else 5
    case_s = max(20.0 / processes / len(found), _CALLS_PER_PROCESS * slowest_s if slow else 0.0)
    sampling_s = case_s * processes * len(found)
    wall_s = max(45.0, 1.5 * sampling_s)
    return Plan(
        processes=processes,
        precision=0.03,
        sampling_s=1.001 * sampling_s,
        wall_s=wall_s,
        case_s=case_s,
    )


def _notes_of(side: Fingerprint, wall_s: float | None) -> Iterator[Why]:
    """The flags of a run of this time limit, without the names that the run has for its
    processes.
    """
    died = any(codes_of(flag) & {"worker-died", "workers-died"} for flag in side.flags)
    for flag in side.flags:
        values = flag.values if isinstance(flag, Reason) else {}
        match code_of(flag):
            case "processes-measured":
                counts = {name: values[name] for name in ("measured", "planned")}
                if died or wall_s is None:
                    yield because("processes-of-call", **counts)
                else:
                    yield because("processes-of-call-in-time", **counts, limit_s=wall_s)
            case "worker-died":
                yield because("process-of-call-died", why=values["why"])
            case "workers-died":
                yield because(
                    "processes-of-call-died", processes=values["processes"], why=values["why"]
                )
            case _:
                yield flag


def _timing(
    first: Timing,
    outcome: Outcome,
    judged: Mapping[str, CaseVerdict],
    others_may_fail: bool,
    wall_s: float | None,
) -> Timing:
    from overhead.comparing import changed_versions
    from overhead.reading.next_run import next_run

    sides = [one.fingerprint for one in (outcome, outcome.second) if one]
    records = [record for side in sides for record in side.records]
    for number, record in enumerate(records[: 1 if others_may_fail else None], 1):
        if record.status in ("failed", "unavailable", "unverified") and not record.figures:
            raise UsageError(
                about(f"statement {number}" if len(records) > 1 else "", record.reason)
            )
    calls = []
    for row, record in zip(first.calls, records, strict=True):
        again = next_run(record, first.machine)
        calls.append(
            replace(
                row, **_of_record(record), next_run=[again.floor, again.ceiling] if again else None
            )
        )
    notes: list[Why] = list(
        dict.fromkeys(note for side in sides for note in _notes_of(side, wall_s))
    )
    if len(sides) > 1 and (changed := changed_versions(sides[0], sides[1])):
        versions = [
            because("versions-of-both", field=one.field, base=one.base, new=one.new)
            for one in changed
        ]
        notes.append(
            because("versions-of-interpreters", versions=together(*versions[:_MOST_VERSIONS]))
        )
    return replace(first, calls=calls, ratios=[*_ratios(sides, judged)], notes=notes, quick=False)


def _ratios(sides: Sequence[Fingerprint], judged: Mapping[str, CaseVerdict]) -> Iterator[CallRatio]:
    """The calls against the first one; the same case in other processes against the first of
    these.
    """
    records: list[Record] = []
    firsts: dict[tuple[Scalar, ...], int] = {}
    for side in sides:
        at = {record.key: number for number, record in enumerate(side.records, len(records) + 1)}
        records += side.records
        for one in side.comparisons:
            if one.name == "call-ratio":
                of = {figure.name: figure for figure in one.figures}
                position, against = at[one.of], at[one.against[0]]
                yield CallRatio(
                    position=position,
                    against=against,
                    difference=of["difference"],
                    ratio=of["ratio"],
                )
    for number, record in enumerate(records, 1):
        against = firsts.setdefault(tuple(record.params.values()), number)
        if against < number:
            case, base = judged.get(record.key), records[against - 1]
            times = (
                case.ratio
                if case
                else ratio(record.measured("complete"), base.measured("complete"))
            )
            lacking = [
                n
                for n, one in ((against, base), (number, record))
                if one.measured("complete") is None
            ]
            reason = (
                _without_cost(lacking)
                or (case.reason if case else "")
                or because("ratio-not-formed")
            )
            found = Figure(name="ratio", unit="ratio", status="unavailable", reason=reason)
            if times is not None:
                found = Figure(
                    name="ratio", unit="ratio", value=times.value, low=times.low, high=times.high
                )
            yield CallRatio(
                position=number, against=against, ratio=found, verdict=case.verdict if case else ""
            )


def _without_cost(rows: Sequence[int]) -> Why:
    """Why there is no ratio of rows, of which these have no cost; '' if all have."""
    match rows:
        case [row]:
            return because("row-without-cost", row=row)
        case [first, second]:
            return because("rows-without-cost", first=first, second=second)
    return ""
