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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

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
    Value,
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
"""Statements that are measured in turn, at most. Chosen, not measured; more of them leave each too
little of the minute.
"""
_SAMPLED_S = 20.0
_PROCESSES = 5
_WALL_S = 45.0
"""Seconds of sampling over all processes, fresh processes, and the limit of a run in seconds.
Chosen, not measured; the whole takes up to a minute.
"""
_SLOW_CALL_S = 0.03
_SLOW_PROCESSES = 3
_SLOW_CALLS = 60
"""Calls that take longer than ``_SLOW_CALL_S`` are measured in fewer processes, of which each
samples at least so many calls. Chosen, not measured; fewer calls give no line.
"""
_PRECISION = 0.03
"""The half-width that sampling aims at, as a share of the cost. Chosen, not measured."""
_LEAST_SILENCE_S = 10.0
"""A process that measures may be silent for this long, and for three times the time of the
trial.
"""
_MOST_VERSIONS = 32
"""So many versions that differ are named."""
_OF_RECORD = ("status", "reason", "bound", "flags", "figures")
"""What the row of a statement takes over from its record."""


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
        """Whether something waits for the work of the call, since the call may return before its
        work is done.
        """
        if isinstance(self.wait, str):
            # The call of a library that waits. Older files have a text also where nothing waits:
            # on the CPU it is taken for that, as a call there has ended its work when it returns.
            return self.on != "CPU"
        # ``NOTHING``: the wait of a call that leaves no work behind when it returns.
        return self.wait != NOTHING.said


def untimed(tried: FoundCall, reason: Why, figures: list[Figure]) -> CallTiming:
    """The row of a step whose cost was not measured, for ``overhead explain``, with the ``figures``
    that are known all the same. ``tried``: what a trial found out; ``reason``: why it was not
    measured.
    """
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
        calls = "; ".join(str(call) for call in timing.calls)
        super().__init__(because("interrupted-time", calls=calls))
        self.timing = timing

    def __str__(self) -> str:
        return in_words(self.args[0])


class _Statements(Struct, frozen=True, kw_only=True):
    """The calls to measure as statements (``texts``), what the table calls them (``labels``), and
    what workers need to find functions: Python text that runs ``before``, and entries of
    ``sys.path``.
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
        or the name of a function: "FILE.py:FUNCTION" or "module:function". If that returns a
        function, the returned one is measured.
    setup: a statement that runs in each process, once for each call. It defines the names that
        statements use.
    wait: a name of a library ("torch", "jax", ...), "none", or a statement that returns when all
        work is done. Without it the library in use is found.
    names: what the calls are called.
    quick: end after the first answers, within seconds.
    vary: "NAME=VALUE,VALUE": measure with each value of a variable, which is assigned before the
        setup.
    threads: "N,N": measure with each number of library threads.
    pythons: one interpreter, or two, whose processes alternate.
    arguments: for functions that are named: texts such as "layers=4".
    progress: True prints the first answers within seconds and the time left to standard error,
        False prints nothing. None: True in a terminal and in a notebook. An object of your own
        class of ``overhead.runner.progress.Listener`` gets them.

    Takes up to a minute, twice that for two interpreters. The result prints as the tables of
    ``overhead time``. Its attributes are numbers in ns.

    Raises ``UsageError``, one line, for a statement that raises, does nothing, cannot be repeated,
    hangs or takes too long. Ctrl-C after a first answer raises ``TimeInterrupted``, whose
    ``timing`` holds what was measured until then.
    """
    calls = [call, *others]
    varied_names = list(assignments(vary)[0])
    variable = varied_names[0] if varied_names else ""
    named = _as_statements(calls, arguments, variable)
    path = list(named.path)
    if pythons:
        path.append(os.getcwd())  # another interpreter starts elsewhere than this one
    spec = CallSpec(
        calls=named.texts,
        setup=setup,
        before=named.before,
        wait=wait,
        path=path,
        vary=vary,
        threads=_different(threads.split(",")) if threads else [],
        pythons=list(pythons),
        first=True,
    )
    _check_number(spec)
    if variable:
        statements = [text for text in calls if isinstance(text, str) and not named_function(text)]
        check_varied(
            variable, statements, setup, wait, reaches_functions=_any_named_function(calls)
        )
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


def _different(texts: Iterable[str]) -> list[str]:
    """The texts in their order, each once."""
    return list(dict.fromkeys(texts))


def _any_named_function(calls: Iterable[str | Callable[[], object]]) -> bool:
    """Whether one of the calls is ``FILE.py:FUNCTION`` or ``module:function``."""
    return any(isinstance(call, str) and named_function(call) for call in calls)


def _check_number(spec: CallSpec) -> None:
    """Raise ``UsageError`` for no statement, and for more than are measured in turn."""
    if not 1 <= len(spec.cases) <= _MOST_CALLS:
        raise UsageError(
            f"{len(spec.cases)} statements given; 1 to {_MOST_CALLS} are measured in turn"
        )


def _as_statements(
    calls: Sequence[str | Callable[[], object]], arguments: Sequence[str], variable: str
) -> _Statements:
    """The calls of ``time`` as statements, which other processes run. A function, or the name of
    one such as ``FILE.py:FUNCTION``, becomes the call of a name that a text defines before. Raises
    ``UsageError``.

    ``arguments``: ``NAME=VALUE`` for named functions. ``variable``: what ``--vary`` varies. A named
    function gets it as an argument: the setup could bring it there through a module only, which all
    cases of a process share.
    """
    if arguments and not _any_named_function(calls):
        raise UsageError(
            "--arg: only for FILE.py:FUNCTION or module:function; write the arguments into the"
            " statement"
        )
    texts: list[str] = []
    labels: list[str] = []
    before: list[str] = []
    path: list[str] = []
    for number, call in enumerate(calls):
        # A name of its own for each call, under which the text before defines the function.
        name = f"{CALLED_AS}{number}"
        if not isinstance(call, str):  # a function of this process
            texts.append(f"{name}()")
            labels.append(f"{getattr(call, '__qualname__', type(call).__qualname__)}()")
            before.append(f"{setup_of(call, name)}\n")
            path += sys.path
        elif named_function(call):
            source = step_named(named_function(call), arguments, variable)
            _check_module(call)
            # The text of ``step_named`` defines ``step`` and ``found_step``, which get names of
            # this call, since the next one defines them again. ``found_step`` tells later whether
            # what the function returned is measured, or the function itself.
            texts.append(f"{name}()")
            labels.append(named_function(call))
            before.append(
                f"{source.setup}\n{name} = step\n{FOUND_AS}{number} = found_step\ndel step,"
                " found_step\n"
            )
            path += source.path
        else:
            check_does_something(call)
            texts.append(call)
            labels.append(shown_statement(call))
    return _Statements(texts=texts, labels=labels, before="".join(before), path=_different(path))


def _check_module(named: str) -> None:
    """Raise ``UsageError`` if ``module:function`` names no module: it may be meant as a statement,
    an annotation. Looks for the module without importing it.
    """
    place = named.strip().rpartition(":")[0]
    top = place.partition(".")[0]
    # A file is looked for elsewhere, and what is imported exists.
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
    """Measure the statements of ``spec``. A trial in a child process runs each of them first, which
    gives a first answer within seconds; not if ``spec.found`` has what a trial found out.

    ``silence_s``: the longest that SETUP or a call may take. ``plan``: None for that of ``overhead
    time``. ``labels``: what the reader sees instead of the statements. ``others_may_fail``: only
    the first one must give a figure. ``quick``: end after the first answers.
    """
    refuse_in_script_run_again()
    _check_number(spec)
    check_text(*spec.calls, spec.setup, spec.wait, spec.vary, *labels)
    listener = listener or Listener()
    began = monotonic()
    process_kinds = _process_kinds(spec)
    rows: list[CallTiming] = []
    with _keeping_first_answers(spec, rows):
        trials = _try_all(spec, process_kinds, listener, silence_s, labels, rows)
        first = _with_versions(_first_answers(spec, rows), spec, process_kinds, trials[0])
        if not quick:
            for row in rows:
                if row.figures:
                    listener.note(because("first-answer-of-row", row=str(row)))
    if quick:
        return first

    if not spec.found:
        # The trials of all kinds of processes found the same waits, or they would be refused.
        spec = replace(spec, found=trials[0])
        trial_s = monotonic() - began
        silence_s = min(silence_s, _silence_s(trial_s, spec.found))
    # Each number of threads needs processes of its own, so the cases count that many times.
    plan = plan or sampling_plan(spec.found * max(1, len(spec.threads)))
    outcome, judged = _measured(spec, first, plan, silence_s, listener)
    return _timing(first, outcome, judged, others_may_fail, plan.wall_s)


def _with_versions(
    first: Timing,
    spec: CallSpec,
    process_kinds: Sequence[_ProcessKind],
    trials: Iterable[FoundCall],
) -> Timing:
    """The first answers with the versions of the packages that the statements use, in each of the
    interpreters, of which there are two at most. ``process_kinds``: how their processes are
    started; ``trials``: what the trials found out, of each statement the packages that it uses.
    """
    used: set[str] = set()
    for trial in trials:
        used.update(trial.packages)
    packages = sorted(used)
    second_versions: dict[str, str] = {}
    if len(spec.pythons) > 1:
        second_versions = process_kinds[-1].interpreter.versions(packages)
    return replace(
        first,
        versions=process_kinds[0].interpreter.versions(packages),
        second_versions=second_versions,
    )


def _silence_s(trial_s: float, trials: Sequence[FoundCall]) -> float:
    """For how long a process that measures may be silent before it counts as hung, s. ``trial_s``:
    how long the trial of the statements took.

    It may set up and try like the trial did, make some of the slowest calls, and wait for the
    longest anchors: much longer chains of calls, which check the result. Chosen, not measured:
    three times the trial, 100 calls, and three times the longest anchor, with 10 s for all else.
    """
    anchors_s = 3 * ANCHORS.longest_ns / 1e9
    slowest_s = max(trial.one_ns for trial in trials) / 1e9
    return _LEAST_SILENCE_S + 3 * trial_s + 100 * slowest_s + anchors_s


@contextlib.contextmanager
def _keeping_first_answers(spec: CallSpec, rows: Sequence[CallTiming]) -> Iterator[None]:
    """A ``with`` block in which Ctrl-C loses no first answer: it raises ``TimeInterrupted``, which
    holds them. ``rows``: the list to which the block adds a row for each first answer.
    """
    try:
        yield
    except KeyboardInterrupt:
        if not rows:  # there is nothing to keep
            raise
        raise TimeInterrupted(_until_interruption(_first_answers(spec, rows))) from None


def _try_all(
    spec: CallSpec,
    process_kinds: Sequence[_ProcessKind],
    listener: Listener,
    silence_s: float,
    labels: Sequence[str],
    rows: list[CallTiming],
) -> list[list[FoundCall]]:
    """Try each statement in a child process of each kind, which is an interpreter or a number of
    library threads. Returns what the trials found, a list for each kind of process.

    Appends the first answers to ``rows`` as they come, so that an interruption keeps them.
    """
    trials: list[list[FoundCall]] = []
    for process_kind in process_kinds:
        listener.working(because("trying-each-statement"))
        found_calls = spec.found
        if not found_calls:
            found_calls = try_statements(spec, process_kind.interpreter, silence_s=silence_s).found
        trials.append(found_calls)
        # The measurement waits in the way that the first trial found.
        if [call.waits for call in found_calls] != [call.waits for call in trials[0]]:
            raise UsageError(
                "the two interpreters need different waits, so nothing is compared; give --wait"
            )
        for number, call in enumerate(found_calls):
            rows.append(_first_row(call, spec, labels, process_kind.varied, number))
    return trials


def _first_answers(spec: CallSpec, rows: Sequence[CallTiming]) -> Timing:
    """The first answers, which the trials gave, as a result. The versions are added later."""
    return Timing(
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        setup=spec.setup,
        machine=machine.identity(),
        versions={},
        suite=__version__,
        method_version=METHOD_VERSION,
        calls=list(rows),
        # It has first answers only.
        quick=True,
    )


class _Measured(NamedTuple):
    """The finished run. ``judged``: by case the verdicts on how two interpreters compare; empty for
    one.
    """

    outcome: Outcome
    judged: Mapping[str, CaseVerdict]


def _measured(
    spec: CallSpec, first: Timing, plan: Plan, silence_s: float, listener: Listener
) -> _Measured:
    """Measure the statements in fresh processes, as the suite measures its own stacks. An
    interruption raises ``TimeInterrupted``, which keeps what was measured, else the ``first``
    answers.
    """
    # Not needed for the first answer, which comes sooner without this import.
    from overhead.comparing import compare

    # ``measure`` empties ``scratch``, so its journals are in a folder of their own.
    with handing_over_spec(spec), tempfile.TemporaryDirectory() as folder:
        request = RunRequest(
            # One stack, ``call``, with all its cases.
            ["call"],
            Choice(),
            "quick",
            plan,
            # The plugin file that registers this stack.
            [str(_STACK)],
            Path(folder),
            spec.pythons,
            limits=WorkerLimits(silence_s=silence_s),
        )
        try:
            outcome = measure(request, listener)
        except BadFile:
            raise UsageError(
                "the answers of a process cannot be read: the program writes to a file descriptor"
                " that it has not opened, or forks a child process that runs on (os.fork)"
            ) from None
        except Interrupted as stopped:
            # Its journals are in this folder, which ends with this block.
            raise TimeInterrupted(_until_interruption(first, stopped.journals)) from None
        except KeyboardInterrupt:
            raise TimeInterrupted(_until_interruption(first)) from None
        finally:
            # So that the next measurement in this process imports it again.
            unload_plugin(_STACK, "call")
        verdicts = compare(outcome, outcome.second).cases if outcome.second else ()
    return _Measured(outcome, {verdict.case: verdict for verdict in verdicts})


def _first_row(
    found: FoundCall, spec: CallSpec, labels: Sequence[str], varied: Mapping[str, str], number: int
) -> CallTiming:
    """The row of one case, a statement with one value of ``--vary``, before it is measured: with
    the first answer that its trial gave. ``number``: of the case; ``varied``: the interpreter or
    number of threads.
    """
    case = spec.cases[number]
    shown = labels or spec.calls
    return CallTiming(
        call=shown[case.position],
        varied={**varied, **case.assignment},
        libraries=found.libraries,
        taken=found.taken,
        returned=found.returned,
        status="noisy",  # one process tells nothing of others
        reason=found.first.reason if found.first else "",
        wait=found.said,
        on=found.adapter,
        # Nothing checks that CALL computes the right values.
        flags=["values-not-checked"],
        figures=[found.first] if found.first else [],
        division=found.division,
    )


def _until_interruption(first: Timing, journals: Sequence[Path] = ()) -> Timing:
    """What was measured before an interruption: the costs in the journals, which the run wrote
    while it measured, and first answers where there is none.
    """
    from overhead.loading.reduce import load

    records: list[Record] = []
    for journal in journals:
        with contextlib.suppress(UsageError):  # it ends before the first process did
            records += load(journal).records

    rows = list(first.calls)
    # Only then is it known which record belongs to which row: both are in the order of the cases.
    if len(records) == len(rows):
        for index, record in enumerate(records):
            if record.measured("complete") is not None:
                rows[index] = replace(rows[index], **_of_record(record))
    only_first = rows == first.calls
    if only_first:
        note = because("interrupted-with-first-answers")
    else:
        note = because("interrupted-with-fewer-processes")
    return replace(first, calls=rows, notes=[note], quick=only_first)


def _of_record(record: Record) -> dict[str, Any]:
    """What a row takes over from its record."""
    return {name: getattr(record, name) for name in _OF_RECORD}


class _ProcessKind(NamedTuple):
    """One kind of process of a measurement, and how to start such a process. ``varied``: what makes
    it different, as the column of the table and its value, such as ``threads`` and ``4``; empty
    where all processes are alike.
    """

    varied: dict[str, str]
    interpreter: Interpreter


def _process_kinds(spec: CallSpec) -> list[_ProcessKind]:
    """The kinds of processes to measure in: one for each number of library threads, or for each
    interpreter; else a single one.
    """
    if spec.threads:
        process_kinds = []
        for number in spec.threads:
            environment = dict.fromkeys(THREAD_VARIABLES, number)
            process_kinds.append(
                _ProcessKind({"threads": number}, Interpreter(environment=environment))
            )
        return process_kinds
    varied = [{"python": path} for path in spec.pythons] or [{}]
    interpreters = find_interpreters(spec.pythons)
    return [_ProcessKind(*each) for each in zip(varied, interpreters, strict=True)]


def sampling_plan(found: Sequence[FoundCall]) -> Plan:
    """How long to sample the statements, and in how many processes: 20 s of sampling in five
    processes; if calls are slow, three with at least 60 calls each. ``found``: what a trial found
    out about each statement, such as how long a call takes.
    """
    slowest_s = max(call.one_ns for call in found) / 1e9
    processes = _PROCESSES
    least_case_s = 0.0
    if slowest_s > _SLOW_CALL_S:
        processes = _SLOW_PROCESSES
        least_case_s = _SLOW_CALLS * slowest_s
    # Seconds for one statement in one process.
    case_s = max(_SAMPLED_S / processes / len(found), least_case_s)
    sampling_s = case_s * processes * len(found)
    return Plan(
        processes=processes,
        precision=_PRECISION,
        # A little more than the cases take together, so that rounding omits none of them.
        sampling_s=1.001 * sampling_s,
        # Slow statements lengthen the limit of the run too, to half as much again as they are
        # sampled for.
        wall_s=max(_WALL_S, 1.5 * sampling_s),
        case_s=case_s,
    )


def _notes_of_run(side: Fingerprint, wall_s: float | None) -> Iterator[Why]:
    """What disturbed a run, for the reader of ``overhead time``: the flags of the run, without the
    names that it has for its processes, which say nothing to this reader. ``wall_s``: the limit of
    the run.
    """
    died = any(codes_of(flag) & {"worker-died", "workers-died"} for flag in side.flags)
    for flag in side.flags:
        values = flag.values if isinstance(flag, Reason) else {}
        match code_of(flag):
            case "processes-measured":
                counts = {name: values[name] for name in ("measured", "planned")}
                # Fewer processes than planned: some died, or else the time was over.
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
    """The result of a finished run. Raises ``UsageError`` if a statement that must give a figure
    has none.

    ``first``: the result with the first answers, whose rows get the figures of the run. ``judged``:
    by case, how two interpreters compare. ``wall_s``: the limit of the run.
    """
    from overhead.reading.next_run import next_run

    # A fingerprint holds all results of one interpreter.
    sides = [outcome.fingerprint]
    if outcome.second:
        sides.append(outcome.second.fingerprint)
    records: list[Record] = []
    for side in sides:
        records += side.records
    _refuse_without_figure(records, others_may_fail=others_may_fail)

    rows = []
    for row, record in zip(first.calls, records, strict=True):
        # The range in which 9 of 10 other runs on this kind of machine should put the cost.
        found = next_run(record, first.machine)
        range_ns = [found.floor, found.ceiling] if found else None
        rows.append(replace(row, **_of_record(record), next_run=range_ns))  # replaces first answers

    notes: list[Why] = []
    for side in sides:
        notes += _notes_of_run(side, wall_s)
    notes = list(dict.fromkeys(notes))  # what holds for both sides is said once
    if len(sides) > 1:
        notes += _different_versions(*sides)
    ratios = [*_ratios_of_comparisons(sides), *_ratios_of_process_kinds(records, judged)]
    return replace(first, calls=rows, ratios=ratios, notes=notes, quick=False)


def _refuse_without_figure(records: Sequence[Record], *, others_may_fail: bool) -> None:
    """Raise ``UsageError`` for a statement that failed and has no figure at all; for the first one
    only, if the others may fail. ``records``: the results, one for each statement.
    """
    needed = records[:1] if others_may_fail else records
    for number, record in enumerate(needed, 1):
        failed = record.status in ("failed", "unavailable", "unverified")
        # A record that failed in one respect may have a figure all the same.
        if failed and not record.figures:
            which = f"statement {number}" if len(records) > 1 else ""
            raise UsageError(about(which, record.reason))


def _different_versions(first: Fingerprint, second: Fingerprint) -> list[Reason]:
    """One note with the versions of packages that differ between two interpreters, at most 32 of
    them; empty if none differ. They may be why the costs differ.
    """
    from overhead.comparing import changed_versions

    versions = [
        because("versions-of-both", field=changed.field, base=changed.base, new=changed.new)
        for changed in changed_versions(first, second)
    ]
    if not versions:
        return []
    return [because("versions-of-interpreters", versions=together(*versions[:_MOST_VERSIONS]))]


def _ratios_of_comparisons(sides: Sequence[Fingerprint]) -> Iterator[CallRatio]:
    """How the calls compare: of each interpreter (side), every call against the first one, as they
    were measured in turn in the same processes. Rows are numbered over both sides, from 1.
    """
    rows_before = 0
    for side in sides:
        row_of = {record.key: row for row, record in enumerate(side.records, rows_before + 1)}
        rows_before += len(side.records)
        for comparison in side.comparisons:
            if comparison.name != "call-ratio":
                continue
            figures = {figure.name: figure for figure in comparison.figures}
            yield CallRatio(
                position=row_of[comparison.of],
                against=row_of[comparison.against[0]],
                difference=figures["difference"],
                ratio=figures["ratio"],
            )


def _ratios_of_process_kinds(
    records: Sequence[Record], judged: Mapping[str, CaseVerdict]
) -> Iterator[CallRatio]:
    """How the same statement compares in processes of different kinds (another interpreter, or
    another number of threads): each against the first kind. ``records``: by row of the table.
    ``judged``: by case, how two interpreters compare.
    """
    # The parameters of a case are equal in all kinds of processes.
    first_row_of: dict[tuple[Scalar, ...], int] = {}
    for row, record in enumerate(records, 1):
        against = first_row_of.setdefault(tuple(record.params.values()), row)
        if against == row:
            continue
        verdict = judged.get(record.key)
        base = records[against - 1]  # rows count from 1
        without_cost = []
        if base.measured("complete") is None:
            without_cost.append(against)
        if record.measured("complete") is None:
            without_cost.append(row)

        # The verdict compares processes that alternated; for threads there is none.
        if verdict is not None:
            times = verdict.ratio
        else:
            times = ratio(record.measured("complete"), base.measured("complete"))
        reason = _why_without_cost(without_cost)
        if not reason and verdict is not None:
            reason = verdict.reason
        yield CallRatio(
            position=row,
            against=against,
            ratio=_ratio_figure(times, reason or because("ratio-not-formed")),
            verdict=verdict.verdict if verdict else "",
        )


def _ratio_figure(times: Value | None, reason: Why) -> Figure:
    """The ratio as a figure; without a value for this reason if there is none."""
    if times is None:
        return Figure(name="ratio", unit="ratio", status="unavailable", reason=reason)
    return Figure(name="ratio", unit="ratio", value=times.value, low=times.low, high=times.high)


def _why_without_cost(rows: Sequence[int]) -> Why:
    """Why there is no ratio of two rows: these of them have no cost; '' if both have one."""
    match rows:
        case [row]:
            return because("row-without-cost", row=row)
        case [first, second]:
            return because("rows-without-cost", first=first, second=second)
    return ""
