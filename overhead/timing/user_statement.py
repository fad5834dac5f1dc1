"""A statement of the user: a trial of it, which finds out what it uses and takes, and a chain of
its calls.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import inspect
import os
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from overhead.child import ChildEnded, ChildLimits, ChildProcess, Send, serve
from overhead.errors import Unavailable, UsageError
from overhead.probes.base import DeviceTime
from overhead.probes.common.statements import StatementError, StatementLoop
from overhead.probes.held_chain import HeldChain
from overhead.results import Figure, Scalar, Why, about, because, together
from overhead.runner.interpreter import HERE, Interpreter
from overhead.timing.call_spec import CALLED_AS, FOUND_AS, CallSpec, FoundCall
from overhead.timing.call_syntax import read_only
from overhead.timing.division import Division, divide
from overhead.timing.sampled_thread import (
    OUTSIDE,
    OVER,
    RUNNING,
    Phase,
    SampledThread,
    this_thread,
)
from overhead.timing.steps import FoundStep, error_text, literals, program_line
from overhead.timing.thread_sampler import sampled
from overhead.timing.unfinished import Kept, Unfinished, unfinished_of
from overhead.timing.waits import (
    NOTHING,
    Wait,
    find_waits,
    joined_actions,
    libraries_seen,
    uses_package,
    wait_named,
)

SILENCE_S = 60.0
"""The longest that SETUP, or a call, may take in the trial. Chosen, not measured; a library that
compiles takes up to tens of seconds.
"""
LONGEST_CALL_S = 0.5
"""The longest call that is measured, s. Chosen, not measured; of longer ones too few fit into the
time of a run for a line.
"""
_PACKAGES = (
    "cupy-cuda12x", "cupy-cuda13x", "jax", "jaxlib", "mlx", "numba", "numpy", "torch", "triton",
    "wgpu", "wgpudawn",
)  # fmt: skip
"""Distributions whose versions belong in the record if the statement has imported them."""
_USUAL_NAMES = {
    "cp": "import cupy as cp",
    "F": "import torch.nn.functional as F",
    "jnp": "import jax.numpy as jnp",
    "mx": "import mlx.core as mx",
    "nn": "from torch import nn",
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "pl": "import polars as pl",
    "plt": "import matplotlib.pyplot as plt",
    "tl": "import triton.language as tl",
}
"""What the documentation of the libraries binds these names to."""
_CLOCKS = (
    "perf_counter",
    "perf_counter_ns",
    "monotonic",
    "monotonic_ns",
    "thread_time_ns",
    "process_time_ns",
)
_TRUE_CLOCKS = {name: getattr(time, name) for name in _CLOCKS if hasattr(time, name)}
"""The clocks that measure, as they are before a program runs."""
_FEWEST_CALLS = 4
_MOST_CALLS = 256
_MOST_AT_ONCE = 64
_ENOUGH_NS = 50_000_000
"""The trial makes at least the fewest calls, and ends after so many calls or so long; between two
waits it makes ``_MOST_AT_ONCE``. Chosen, not measured; the first calls may compile.
"""
_MOST_CALLS_PER_TICK = 1 << 20
"""So many calls must take longer than a step of the clock. Chosen, not measured."""
_forks: list[None] = []
"""An entry for each time that this process was forked."""
_MOST_TYPE = 200
"""Most characters of the name of a type."""
_MOST_TEXT = 2000
"""Most characters of a message that is passed on."""
_SHORT_CHAIN_NS = 1e6
_FEWEST_SLOPES = 3
"""The first answer is the median of so many slopes or more, between a chain of this length and one
three times as long. Chosen, not measured.
"""
_SAMPLED_S = 0.4
"""Seconds that a statement runs while it is sampled."""
_MOST_SAMPLED_S = 2.0
"""The same if a busy machine gives too few samples before."""
_BETWEEN_WAITS_NS = 1e6
"""The time of the calls between two waits: a device can queue so many calls without making the host
wait.
"""
_LONG_CALL_NS = 2_500_000
"""Of a longer call, the samples are longer too: four more calls must fit between the shortest and
the longest.
"""


class TrialRefused(Struct, frozen=True, tag="refused"):
    """A statement that cannot be measured, and why."""

    reason: Why


def refusal(error: UsageError, which: str = "") -> TrialRefused:
    """What a child process answers to its parent if a statement cannot be measured. ``which``: the
    statement, where there are several; the answer (``about``) names it before the reason.
    """
    why: Why = error.why
    # A text may quote a message of the user's program, of any length. A reason is no text but a
    # code with values.
    if isinstance(why, str):
        why = why[:_MOST_TEXT]
    return TrialRefused(about(which, why))


class DoesNext(Struct, frozen=True, tag="doing"):
    """What the child process does next."""

    what: Why


class NotSampled(Struct, frozen=True, tag="not-sampled"):
    """Why a thread cannot be sampled."""

    reason: Why


_Found = TypeVar("_Found")
_decode = msgspec.json.Decoder(
    DoesNext | TrialRefused | FoundCall | SampledThread | NotSampled
).decode


def try_statements(
    spec: CallSpec,
    interpreter: Interpreter = HERE,
    *,
    silence_s: float = SILENCE_S,
    longest_s: float = LONGEST_CALL_S,
) -> CallSpec:
    """The spec with what a trial of each case in a child process found out: how long a call takes,
    how to wait for its work, which libraries it uses. A case is a statement with one value of
    ``--vary``. Raises ``UsageError``, one line, for a statement that cannot be measured.
    """
    # The child runs this module, whose ``_answer`` sends what it finds out about each case.
    answers = child_answers(
        __name__, (spec, longest_s), _decode, silence_s, interpreter=interpreter
    )
    found_calls = []
    # Closing the answers ends the child, also after an error.
    with contextlib.closing(answers) as of_child:
        for _ in spec.cases:
            found = next(of_child)
            found_calls.append(_with_division(found, of_child, spec))
    return msgspec.structs.replace(spec, found=found_calls)


def _with_division(found: FoundCall, of_child: Iterator[Any], spec: CallSpec) -> FoundCall:
    """What the trial found out about a call, and how the time of the call divides into Python,
    libraries and so on, if a first answer is asked for.

    The child runs the call again for that, and its next answer (of ``of_child``) says where its
    thread can be sampled. A machine that does not allow this gives the reason instead.
    """
    # ``first``: a rough cost, the first answer, is wanted before the measurement.
    if not spec.first:
        return found
    # Of the thread that runs the call: where the parent finds it, to sample what it does.
    place: SampledThread | NotSampled = next(of_child)
    if isinstance(place, NotSampled):
        return msgspec.structs.replace(found, division=Division(reason=place.reason))
    try:
        # sampled(): where the thread was at random moments, until the child says that it has ended.
        division = divide(sampled(place), place)
    except Unavailable as error:
        division = Division(reason=error.reason)
    return msgspec.structs.replace(found, division=division)


def child_answers(
    module: str,
    job: object,
    decode: Callable[[bytes], Any],
    silence_s: float,
    doing: Callable[[Why], None] = lambda what: None,
    interpreter: Interpreter = HERE,
) -> Generator[Any]:
    """Yield what ``module``, run in a child process for this ``job``, answers. ``doing`` is called
    with what the child does next; an error names that if the child ends or is silent for longer
    than ``silence_s``. ``decode``: an answer from its bytes. ``interpreter``: the Python that runs
    the child, with its environment. Raises ``UsageError``.
    """
    step: Why = because("starting-a-process")
    try:
        with ChildProcess(
            module,
            job,
            decode,
            ChildLimits(silence_s),
            interpreter.environment,
            interpreter.python_command,
        ) as child:
            for answer in child:
                match answer:
                    case DoesNext(what):
                        step = what
                        doing(what)
                    case TrialRefused(reason):
                        raise UsageError(reason)
                    case _:
                        yield answer
    except ChildEnded as ended:
        raise UsageError(because("ended-while-doing", doing=step, why=ended.reason)) from None


class TriedCall(NamedTuple):
    """What the trial of a statement found out, the open statement, and what waits for its work."""

    found: FoundCall
    statement: StatementLoop
    finish: Callable[[], object]


def try_call(
    spec: CallSpec,
    call: str,
    longest_s: float,
    doing: Callable[[Why], None],
    names: tuple[str, str] = ("SETUP", "CALL"),
) -> TriedCall:
    """What a few runs of a statement find out, the open statement and its wait. Raises
    ``UsageError``.

    ``names``: of SETUP and CALL in errors.
    """
    setup_name, call_name = names
    doing(setup_name)
    statement = StatementLoop(call, spec.setup, before=spec.before, keep=True)
    with _refusing_forks(setup_name):
        _checked(statement, statement.open)
    doing(call_name)
    kept = Kept(statement.names)
    with _refusing_forks(call_name), _refusing_unawaited(call_name):
        _run_statement(statement, 1, 0, call_name)
    _check_clocks(setup_name, call_name)
    _refuse_uncalled_function(call, statement, call_name)

    returned = unfinished_of(list(statement.results))
    unfinished = returned or kept.running_since(statement.names)
    if unfinished is not None and not spec.wait:
        raise UsageError(_why_unfinished(unfinished, call_name, is_returned=returned is not None))

    libraries = libraries_seen(statement.names, statement.results)
    waits = _waits_of(spec, statement)
    finish = joined_actions([wait.make(statement.names, statement.results) for wait in waits])
    if spec.wait and not waits:  # a statement of the user waits
        statement.close()
        statement = StatementLoop(call, spec.setup, spec.wait, before=spec.before)
        _checked(statement, statement.open)
        finish = statement.wait
    if not any(wait.keeps for wait in waits):
        statement.drop_results()
    _checked(statement, finish)

    doing(call_name)
    one_ns = _rough_time_ns(statement, finish, longest_s, call_name)
    how_awaited = _how_awaited(spec.wait, waits)
    if unfinished is not None:
        doubt = because("kept-work-may-be-missing", what=unfinished.what)
        if returned is not None:
            doubt = because("returned-work-may-be-missing", what=unfinished.what)
        how_awaited = together(how_awaited, doubt)
    first = None
    if spec.first:
        first = _checked(statement, lambda: first_answer(statement.issue, finish, one_ns))
    on_device = _device_wait(waits)
    step = _found_step(call, statement)
    found = FoundCall(
        one_ns=one_ns,
        waits=[wait.name for wait in waits],
        said=how_awaited,
        api=on_device.api if on_device else "CPU",
        adapter=on_device.adapter if on_device else "CPU",
        first=first,
        packages=_packages_used(statement),
        libraries=libraries,
        taken=_taken(step),
        returned=step.returned[:_MOST_TYPE] if step else "",
    )
    return TriedCall(found, statement, finish)


def _refuse_uncalled_function(call: str, statement: StatementLoop, call_name: str) -> None:
    """Raise ``UsageError`` for a statement such as ``x.sum``, which reads a function and does not
    call it. Other attributes may compute when they are read, so they are measured. ``call``: the
    text of the statement, which has run; ``call_name``: what the error calls it.
    """
    attribute = read_only(call)  # '' if the statement is more than an attribute
    result = next(iter(statement.results), None)
    if attribute and inspect.isroutine(result):
        raise UsageError(f"{call_name} reads {attribute} and does not call it: write {attribute}()")


def _waits_of(spec: CallSpec, statement: StatementLoop) -> list[Wait]:
    """What waits for the work of a statement; empty if ``--wait`` gives a statement that does.

    Without ``--wait`` the libraries in use tell. Raises ``UsageError`` for a wait that needs a
    result (``keeps``) where the statement has none.
    """
    if spec.wait:
        # None for a text that is no known name: then it is a statement that waits.
        named = wait_named(spec.wait, statement.names, statement.results)
        waits = [named] if named else []
    else:
        waits = find_waits(statement.names, statement.results)
    # ``statement.keeps``: whether the statement has a result to keep.
    if any(wait.keeps for wait in waits) and not statement.keeps:
        raise UsageError(
            'CALL has no result to wait for: end it with an expression or "name = ...", or give'
            " --wait"
        )
    return waits


def _device_wait(waits: Sequence[Wait]) -> Wait | None:
    """The first wait for a device, else the first wait; None if there is none."""
    for wait in waits:
        if wait.api != "CPU":
            return wait
    return waits[0] if waits else None


def _found_step(call: str, statement: StatementLoop) -> FoundStep | None:
    """How the function of a call was found, if the call is a function that was named."""
    if not call.startswith(CALLED_AS):
        return None
    number = call.removeprefix(CALLED_AS).removesuffix("()")
    step: FoundStep | None = statement.names.get(f"{FOUND_AS}{number}")
    return step


def _taken(step: FoundStep | None) -> Literal["", "returned", "itself"]:
    """What of a function that was named is measured: what it returned, or the function itself."""
    if step is None:
        return ""
    return "returned" if step.is_returned else "itself"


def _packages_used(statement: StatementLoop) -> list[str]:
    """The packages that a statement uses, of those whose versions belong in the record; by the
    names under which they are installed.
    """
    used = []
    for distribution in _PACKAGES:
        package = distribution.partition("-")[0]  # cupy-cuda12x is imported as cupy
        if uses_package(package, statement.names, statement.results):
            used.append(distribution)
    return used


def _why_unfinished(unfinished: Unfinished, call_name: str, *, is_returned: bool) -> Why:
    """Why a call whose work is not done when it returns cannot be measured, and what to write
    instead. ``is_returned``: the call returns what stands for the work; else it keeps that in a
    variable.
    """
    values = {"call": call_name, "what": unfinished.what, "finish": unfinished.finish}
    why = because("keeps-unfinished-work", **values)
    if is_returned:
        why = because("returns-unfinished-work", **values)
    # Only the user of ``overhead time``, whose statement is called CALL, can give ``--wait none``.
    if call_name != "CALL":
        return why
    return together(why, because("wait-none-leaves-it-out"))


def _how_awaited(asked: str, waits: list[Wait]) -> Why:
    """How the end of the work is awaited, for the reader. ``asked``: the value of ``--wait``; if
    that is a statement, there are no known ``waits``.
    """
    if not waits:
        return because("waits-by-statement", statement=asked[:200])
    if asked and waits == [NOTHING]:  # ``--wait none``: a call is done when it returns
        return because("nothing-as-asked")
    how_awaited = waits[0].said  # the call that waits, such as ``torch.cuda.synchronize()``
    for wait in waits[1:]:
        how_awaited = because("waits-for-both", first=how_awaited, second=wait.said)
    return how_awaited


@contextlib.contextmanager
def _refusing_unawaited(part: str) -> Iterator[None]:
    """A ``with`` block that raises ``UsageError`` at its end if it made coroutines that nothing
    awaits: these have not run, and Python only warns of them. ``part``: what the block runs, for
    the error.
    """
    warned: list[str] = []
    usual = warnings.showwarning

    # It stands in for Python's function that prints a warning.
    def show(message: Warning | str, *more: Any, **named: Any) -> None:
        warned.append(str(message))
        usual(message, *more, **named)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual
    if any(text.endswith("was never awaited") for text in warned):
        raise UsageError(f"{part} makes a coroutine that does not run: write await before it")


def _check_clocks(setup_name: str, call_name: str) -> None:
    """Raise ``UsageError`` if SETUP or CALL, which have run, replaced a clock of the module
    ``time``: the figures would be those of that other clock. ``setup_name``, ``call_name``: what
    the error calls the two.
    """
    for name, clock in _TRUE_CLOCKS.items():  # as they were before the program ran
        if getattr(time, name, None) is not clock:
            raise UsageError(
                f"{setup_name} or {call_name} replaces time.{name}, the clock that measures: leave"
                " it as it is"
            )


def _definition_of(name: str) -> str:
    """What an error proposes to put into ``--setup`` for a name that a statement lacks: the usual
    import, such as ``import numpy as np``, a module of that name, or ``name = ...``.
    """
    if name in _USUAL_NAMES:
        return _USUAL_NAMES[name]
    with contextlib.suppress(ImportError, ValueError):  # as for ``__main__``
        if importlib.util.find_spec(name) is not None:
            return f"import {name}"
    return f"{name} = ..."


def _why_raised(error: BaseException, statement: StatementLoop) -> Why:
    """What a statement raised, and what to define if that is a name which CALL lacks."""
    text = error_text(error, statement.describe_error)
    is_of_call = not program_line(error) and statement.part_of_error(error) == "CALL"
    if isinstance(error, NameError) and error.name and is_of_call:
        return because("name-not-in-setup", error=text, example=_definition_of(error.name))
    return text


@contextlib.contextmanager
def _refusing_forks(part: str) -> Iterator[None]:
    """A ``with`` block whose code must not fork this process. In a copy that leaves the block it
    raises ``UsageError``, which the copy sends to the process that reads the answers. ``part``:
    what the block runs, for the error.
    """
    parent = os.getpid()
    forks = len(_forks)  # it has an entry for each fork of this process so far
    try:
        yield
    finally:
        if os.getpid() != parent:
            raise UsageError(
                f"{part} cannot be measured: it forks (os.fork); end the child inside {part}"
            )
        # This process waits, so that the copy can send its error first.
        if len(_forks) > forks:
            time.sleep(0.5)


def _checked(statement: StatementLoop, act: Callable[[], _Found]) -> _Found:
    """What ``act`` returns, which runs code of the user. Whatever it raises becomes a
    ``StatementError`` with the line of the program.
    """
    try:
        return act()
    except UsageError:
        raise
    except BaseException as error:  # sys.exit too
        raise StatementError(_why_raised(error, statement)) from None


def _run_statement(statement: StatementLoop, n: int, made: int, name: str) -> None:
    """Run the statement ``n`` times more, after it has run ``made`` times. ``name``: what an error
    calls it. Raises ``UsageError``.
    """
    try:
        _checked(statement, lambda: statement.issue(n))  # ``issue`` makes n calls, and no wait
    except StatementError as error:
        why = error.why
        # It did not raise before, so it is the repetition that fails.
        if made:
            why = because("call-not-repeatable", call=name, why=why)
        raise UsageError(why) from None


def _rough_time_ns(
    statement: StatementLoop, finish: Callable[[], object], longest_s: float, name: str
) -> float:
    """A rough time of one call with its wait (``finish``), ns. The shortest of several counts,
    because the first calls may compile. Raises ``UsageError`` if a call takes longer than
    ``longest_s``. ``name``: what an error calls the statement.
    """
    made = 1  # calls so far: the trial has made one before
    n = 1  # calls between two waits, which grow so that the wait weighs less in each
    best_ns = float("inf")
    began = time.perf_counter_ns()
    while made <= _MOST_CALLS:
        if made >= _FEWEST_CALLS and time.perf_counter_ns() - began >= _ENOUGH_NS:
            break
        took_ns = _time_of_calls_ns(statement, finish, n, made, name)
        best_ns = min(best_ns, took_ns / n)
        # The first time may be one of compiling, so it refuses nothing.
        if best_ns > longest_s * 1e9 and made > 1:
            raise UsageError(
                f"one call takes {best_ns / 1e9:.2g} s; calls of up to {longest_s:g} s are"
                " measured, because a longer one needs no method: time it with a clock"
            )
        made += n
        n = min(2 * n, _MOST_AT_ONCE)
    while not best_ns:  # the clock moves in steps that are longer than these calls
        if n > _MOST_CALLS_PER_TICK:
            raise UsageError(
                f"the clock of this machine does not move during {n:,} calls, so nothing can be"
                " timed"
            )
        best_ns = _time_of_calls_ns(statement, finish, n, made, name) / n
        made += n
        n *= 4  # until so many calls take longer than a step of the clock
    return best_ns


def _time_of_calls_ns(
    statement: StatementLoop, finish: Callable[[], object], n: int, made: int, name: str
) -> int:
    """The time of n calls and the wait for their work (``finish``), ns. ``made``: how many calls
    were made before; ``name``: what an error calls the statement. Raises ``UsageError``.
    """
    began = time.perf_counter_ns()
    _run_statement(statement, n, made, name)
    _checked(statement, finish)
    return time.perf_counter_ns() - began


def first_answer(
    issue: Callable[[int], None], wait: Callable[[], object], one_ns: float, seconds: float = 0.5
) -> Figure:
    """The cost of one more call with its work done, ns: the time of a long chain of calls less that
    of a short one, for each call that the long one has more; the median of many such pairs. What a
    chain costs once, such as its wait, cancels out.

    ``issue``: makes so many calls; ``wait``: waits for their work; ``one_ns``: about how long a
    call takes, by which the lengths of the chains are chosen.

    The two chains take about 1 and 3 ms, and alternate. The figure has no interval, so it counts as
    ``noisy``. An interval of one process says nothing of others: on a shared host with an H200,
    first answers of 16 statements with intervals of 1 to 5 % were 0.62 to 1.58 times what another
    process had met minutes before; on two processors that other programs kept busy, one was 8 times
    the cost of the whole run.
    """
    import numpy as np

    few = max(1, round(_SHORT_CHAIN_NS / one_ns))
    many = 3 * few

    def chain_ns(n: int) -> int:
        began = time.perf_counter_ns()
        issue(n)
        wait()
        return time.perf_counter_ns() - began

    slopes_ns: list[float] = []
    end_s = time.monotonic() + seconds
    while len(slopes_ns) < _FEWEST_SLOPES or time.monotonic() < end_s:
        longer_ns = chain_ns(many)
        shorter_ns = chain_ns(few)
        slopes_ns.append((longer_ns - shorter_ns) / (many - few))
    return Figure(
        name="complete",
        unit="ns",
        value=float(np.median(slopes_ns)),
        status="noisy",
        reason=because("first-answer", few=few, many=many),
        processes=1,
    )


def _spec_of_case(spec: CallSpec, number: int) -> CallSpec:
    """The spec with the statement of one case alone: the statement at its position, with one value
    of ``--vary``, which is assigned before SETUP runs.
    """
    case = spec.cases[number]
    lines = [f"{name} = {value!r}" for name, value in literals(case.assignment).items()]
    before = "\n".join([*lines, spec.before])
    found = spec.found[number : number + 1]  # a list of one; empty before the trial
    return msgspec.structs.replace(
        spec, calls=[spec.calls[case.position]], before=before, vary="", found=found
    )


class CallChain(HeldChain):
    """A chain of n calls of one of the cases, which is a statement of the user with one value of
    ``--vary``. The measurement times chains of different n. Raises ``StatementError`` if SETUP,
    CALL or the wait raises.
    """

    flags = ("values-not-checked",)  # the values of an unknown call prove nothing

    def __init__(self, spec: CallSpec, number: int) -> None:
        """Run SETUP and prepare to repeat the statement of case ``number``, with the wait that its
        trial found.
        """
        spec = _spec_of_case(spec, number)
        (found,) = spec.found
        waits_by_statement = not found.waits  # ``--wait`` gave a statement instead of a name
        self._statement = StatementLoop(
            spec.calls[0],
            spec.setup,
            spec.wait if waits_by_statement else "",
            before=spec.before,
            keep="jax" in found.waits,  # JAX alone waits by the results
        )
        _checked(self._statement, self._statement.open)
        names, results = self._statement.names, self._statement.results
        waits: list[Wait] = []
        for name in found.waits:
            wait = wait_named(name, names, results)
            if wait is not None:
                waits.append(wait)
        self._finish: Callable[[], object] = self._statement.wait
        if not waits_by_statement:
            self._finish = joined_actions([wait.make(names, results) for wait in waits])
        self._loop = self._statement.issue
        self._waits_for = ", ".join(found.waits) or spec.wait
        self._made = 0  # calls so far
        # The waits are of the surest library first, so its clock is taken.
        clocks = [wait.clock for wait in waits if wait.clock]
        self._clock = clocks[0] if clocks else None
        self._device_divisor = 1  # ``device`` measures an n-th of the calls, see there
        # Long calls need longer samples, else only one or two lengths would fit into a sample: the
        # longest chain must take four calls longer than the shortest.
        self.least_ns = int(4 * found.one_ns) if found.one_ns > _LONG_CALL_NS else 0
        # Without a wait a call counts as done when it returns, so calls do not overlap.
        self.synchronous = found.waits == [NOTHING.name]
        self.overlap = "serial" if self.synchronous else "pipelined"
        # A statement of the user may spin too; nothing tells.
        self.wait_spins = waits_by_statement or any(wait.spins for wait in waits)

    def issue(self, n: int) -> None:
        """Call the statement n times, without waiting for device work."""
        self._made += n
        try:
            self._loop(n)
        except BaseException as error:
            raise StatementError(error_text(error, self._statement.describe_error)) from None

    def wait(self) -> None:
        """Wait by the chosen wait until the work of all calls is done."""
        self._finish()

    def executed(self) -> int:
        """The number of calls made; whether their work was done is not known, because their values
        are unknown.
        """
        return self._made - self.aside

    def device(self, n: int) -> DeviceTime | None:
        """How long the device takes for n calls, by its own clock; None if the library has none.

        The device is held until all calls are in its queue, so that it need not wait for the host.
        If the queue cannot hold n calls, the result is of a part of them, and later ones too.
        """
        if self._clock is None:
            return None
        while True:
            # ``held``: the time of calls that were queued behind a kernel which holds the device.
            held = self.held(self._clock(), max(1, n // self._device_divisor))
            # Not busy: the queue was full before all calls were in it. Four fit into any queue.
            if held.busy or held.n <= 4:
                return held
            self._device_divisor *= 4

    def window(self) -> dict[str, Scalar]:
        """How the end of the work is awaited, for the record."""
        return {"wait": self._waits_for, "entry": "python"}

    def close(self) -> None:
        """End the statement and drop its results."""
        self._statement.close()


def _answer(job: tuple[CallSpec, float], send: Send) -> None:
    """Try each case in this child process, and send what was found: for each case a ``FoundCall``,
    and where its thread can be sampled, if first answers are asked for. ``job``: the statements,
    and the longest call, s.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the statements print
    # Each fork is noted, so that ``_refusing_forks`` can refuse a statement that forks.
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_parent=lambda: _forks.append(None))
    spec, longest_s = job
    spec.add_path()  # so that the statements can import what lies beside the user's program
    gc.disable()  # a collection in the middle of a call would count as its time
    for number in range(len(spec.cases)):
        which = f"statement {number + 1}" if len(spec.cases) > 1 else ""
        own = _spec_of_case(spec, number)

        def doing(what: Why, which: str = which) -> None:
            send(DoesNext(about(which, what)))

        try:
            found, statement, finish = try_call(own, own.calls[0], longest_s, doing)
            send(found)
            if spec.first:  # a first answer is asked for, which also divides the call's time
                _run_for_samples(statement, finish, found.one_ns, send)
        except UsageError as error:
            send(refusal(error, which))
            break  # the parent refuses all statements if one cannot be measured


def _run_for_samples(
    statement: StatementLoop, finish: Callable[[], object], one_ns: float, send: Send
) -> None:
    """Run the statement for 0.4 s or more while the parent process samples where this one is.
    ``phase``, in memory that the parent reads, tells it whether the statement runs: the waits
    between (``finish``) are not part of the call. ``one_ns``: about how long one call takes.
    """
    phase = Phase()
    calls_between_waits = max(1, round(_BETWEEN_WAITS_NS / one_ns))
    try:
        send(this_thread(phase))
    except Unavailable as error:
        send(NotSampled(error.reason))
        return
    began = time.monotonic()
    # What a call raises now is said by the measurement that follows, which makes more calls.
    with contextlib.suppress(BaseException):
        while True:
            # A busy machine may give the parent too few samples in the usual time.
            longest_s = _MOST_SAMPLED_S if phase.needs_more else _SAMPLED_S
            if time.monotonic() - began >= longest_s:
                break
            phase.set(RUNNING)
            statement.issue(calls_between_waits)
            phase.set(OUTSIDE)
            finish()
    phase.set(OVER)


if __name__ == "__main__":
    serve(tuple[CallSpec, float], _answer)
