"""Run each statement a few times in a child process: what it uses, how long it takes, and what is wrong with it."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from overhead.child import ChildEnded, ChildLimits, ChildProcess, Send, serve
from overhead.errors import UsageError
from overhead.explain.call_spec import CallSpec, FoundCall
from overhead.explain.steps import said
from overhead.explain.waits import find_waits, in_turn, uses, wait_named
from overhead.probes.common.statements import StatementError, StatementLoop

SILENCE_S = 60.0
"""The longest that SETUP, or a call, may take in the trial."""
LONGEST_CALL_S = 0.5
"""The longest call that is measured, s."""
_PACKAGES = ("cupy-cuda12x", "cupy-cuda13x", "jax", "jaxlib", "numba", "numpy", "torch", "triton", "wgpu", "wgpudawn")
"""Distributions whose versions belong in the record if the statement has imported them."""
_ENOUGH_NS = 50_000_000
_MOST_CALLS = 256
_EXIT_S = 5.0
_COPY_S = 0.5
"""How long a forked copy may take to go on."""
_forks = [0]


class TrialStep(Struct, frozen=True, tag="step"):
    """The next step, which may hang."""

    what: str


class TrialFound(Struct, frozen=True, tag="found"):
    """What was found out about the next statement."""

    call: FoundCall


class TrialRefused(Struct, frozen=True, tag="refused"):
    """A statement that cannot be measured, and why."""

    reason: str


_Answer = TrialStep | TrialFound | TrialRefused
_decode = msgspec.json.Decoder(_Answer).decode


def tried(spec: CallSpec, *, silence_s: float = SILENCE_S, longest_s: float = LONGEST_CALL_S) -> CallSpec:
    """The spec with what a child process found out about each statement.

    ``longest_s``: the longest call that is accepted. Raises ``UsageError`` with one line for a statement that raises,
    exits, crashes, hangs, takes too long, or works once and cannot be repeated.
    """
    step = "starting"
    found: list[FoundCall] = []
    try:
        with ChildProcess("overhead.explain.trial", (spec, longest_s), _decode, ChildLimits(silence_s)) as child:
            while len(found) < len(spec.calls):
                match child.receive():
                    case TrialStep(what):
                        step = what
                    case TrialFound(call):
                        found.append(call)
                    case TrialRefused(reason):
                        raise UsageError(reason)
    except ChildEnded as ended:
        raise UsageError(f"{step}: {ended}") from None
    return msgspec.structs.replace(spec, found=found)


def try_call(
    spec: CallSpec, call: str, longest_s: float, doing: Callable[[str], None], steps_before: int = 0
) -> FoundCall:
    """Run one statement a few times. ``steps_before``: how often it, a step, has run. Raises ``UsageError``."""
    doing("SETUP")
    statement = StatementLoop(call, spec.setup, keep=True)
    with _no_copy("SETUP"):
        _checked(statement, statement.open)
    doing("CALL")
    with _no_copy("CALL"):
        _checked(statement, lambda: statement.issue(1))
    named = wait_named(spec.wait, statement.names, statement.results) if spec.wait else None
    by_text = bool(spec.wait) and named is None
    waits = [named] if named else [] if by_text else find_waits(statement.names, statement.results)
    if any(wait.keeps for wait in waits) and not statement.keeps:
        raise UsageError(
            'CALL has no result to wait for: end it with an expression or "name = ...", or give --wait "..."'
        )
    finish = in_turn([wait.make(statement.names, statement.results) for wait in waits])
    if by_text:
        statement.close()
        statement = StatementLoop(call, spec.setup, spec.wait)
        _checked(statement, statement.open)
        finish = statement.wait
    before = _printed_bytes()
    one_ns = _time(statement, finish, longest_s, steps_before)
    first = next((wait for wait in waits if wait.api != "CPU"), waits[0] if waits else None)
    return FoundCall(
        one_ns=one_ns,
        waits=[wait.name for wait in waits],
        said=" and ".join(wait.said for wait in waits) if waits else spec.wait[:200],
        api=first.api if first else "CPU",
        adapter=first.adapter if first else "CPU",
        prints=_printed_bytes() > before,
        packages=[name for name in _PACKAGES if uses(name.partition("-")[0], statement.names, statement.results)],
    )


@contextlib.contextmanager
def _no_copy(part: str) -> Iterator[None]:
    """Raise ``UsageError`` if a forked copy of this process goes on behind the block; end the copy.

    A copy that ends inside, such as a worker of ``multiprocessing``, is no fault.
    """
    parent, forks = os.getpid(), _forks[0]
    tells, told = os.pipe()
    try:
        yield
    finally:
        if os.getpid() != parent:
            os.write(told, b"!")
            os._exit(0)
        os.close(told)
        copied = _forks[0] > forks and bool(select.select([tells], [], [], _COPY_S)[0]) and bool(os.read(tells, 1))
        os.close(tells)
        if copied:
            raise UsageError(
                f"{part} cannot be measured: it forks (os.fork), and the child runs on; end it inside {part}"
            )


def _count_fork() -> None:
    _forks[0] += 1


def _checked(statement: StatementLoop, act: Callable[[], object]) -> None:
    try:
        act()
    except BaseException as error:  # sys.exit too
        raise StatementError(said(error, statement.said)) from None


def _printed_bytes() -> int:
    sys.stdout.flush()
    return os.fstat(1).st_size


def _time(statement: StatementLoop, finish: Callable[[], object], longest_s: float, before: int) -> float:
    """A rough time of one call with its wait, ns; the first calls may compile. Raises ``UsageError``."""
    _checked(statement, finish)
    made, n, best, began = 1, 1, float("inf"), time.perf_counter_ns()
    while made < _MOST_CALLS and (made < 4 or time.perf_counter_ns() - began < _ENOUGH_NS):
        t0 = time.perf_counter_ns()
        try:
            statement.issue(n)
            finish()
        except BaseException as error:
            made += before
            worked = "the first call works" if made == 1 else f"the first {made} calls work"
            what = f"{'the step' if before else 'CALL'} cannot be repeated"
            raise UsageError(f"{what}: {worked}, then {said(error, statement.said)}") from None
        best = min(best, (time.perf_counter_ns() - t0) / n)
        if best > longest_s * 1e9 and made > 1:
            raise UsageError(
                f"one call takes {best / 1e9:.2g} s; calls of up to {longest_s:g} s are measured, because a longer one "
                "needs no method: time it with a clock"
            )
        made, n = made + n, min(2 * n, 64)
    return best


def _answer(job: tuple[CallSpec, float], send: Send) -> None:
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 1)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_parent=_count_fork)
    spec, longest_s = job
    spec.add_path()
    for number, call in enumerate(spec.calls, 1):
        which = f"statement {number}: " if len(spec.calls) > 1 else ""

        def doing(what: str, which: str = which) -> None:
            send(TrialStep(f"{which}{what}"))

        try:
            send(TrialFound(try_call(spec, call, longest_s, doing)))
        except UsageError as error:
            send(TrialRefused(f"{which}{error}"))
            break


if __name__ == "__main__":
    serve(tuple[CallSpec, float], _answer)
