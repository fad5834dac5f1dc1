"""Find the targets of each stack (its devices) in a separate worker process, because listing
adapters can crash.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import NamedTuple

import msgspec

from overhead.errors import UsageError, unknown_name
from overhead.probes import environments_of, registry, unavailable_packages
from overhead.results import MissingStack, Target, about, because, together
from overhead.runner.events import AnswersCame, RunStep
from overhead.runner.interpreter import HERE, Interpreter
from overhead.runner.workers import FoundTargets, Job, WorkerDied, WorkerProcess

_SILENCE_S = 60.0
_MEMORY_BYTES = 8 << 30


@dataclasses.dataclass(frozen=True)
class Discovery:
    """All targets found, and the reason for each stack (and environment) without a target."""

    targets: list[Target]
    missing: list[MissingStack]


def known_stacks(stacks: Sequence[str]) -> list[str]:
    """The stacks of a run: the named ones, each once, or without names all except those that are
    measured only on request. Raises ``UsageError`` for a name that no stack has, with the packages
    whose stacks could not be loaded, as the name may be that of one of them.
    """
    known = registry()
    for name in stacks:
        if name not in known:
            unknown = unknown_name("stack", name, known)
            broken = [about("unavailable", package.reason) for package in unavailable_packages()]
            raise UsageError(together(str(unknown), *broken)) if broken else unknown
    if stacks:
        return list(dict.fromkeys(stacks))
    # ``on_request``: measured only where the user names it.
    return [name for name, probe in known.items() if not probe.on_request]


class StackAnswer(NamedTuple):
    """What a stack answered with these environment variables."""

    stack: str
    environment: dict[str, str]
    found: FoundTargets


@dataclasses.dataclass(frozen=True)
class _Question:
    """A stack that is asked for its targets with these environment variables."""

    stack: str
    environment: dict[str, str]
    answer: Future[FoundTargets]


def ask_stacks(
    stacks: Iterable[str],
    plugins: Sequence[str] = (),
    working: Callable[[RunStep], None] = lambda what: None,
    interpreter: Interpreter = HERE,
) -> list[StackAnswer]:
    """Ask each stack, in a worker process of its own, which devices it finds (its targets); once
    for each set of environment variables that it wants. The answers, in this order.

    ``working`` is called at the beginning and after each answer, with how many came and which are
    awaited.
    """
    # One more than processors, because a browser mostly waits.
    pool = ThreadPoolExecutor(max_workers=min(8, (os.cpu_count() or 1) + 1))
    questions: list[_Question] = []
    try:
        for name in stacks:
            for environment in _environments(name):
                answer = pool.submit(_ask, name, environment, plugins, interpreter)
                questions.append(_Question(name, environment, answer))
        # All questions are in the pool; now progress is told as the answers come.
        working(_answers_came(0, questions))
        for count, _ in enumerate(as_completed([each.answer for each in questions]), 1):
            working(_answers_came(count, questions))
        # All have come, so ``result`` does not wait.
        return [
            StackAnswer(each.stack, each.environment, each.answer.result()) for each in questions
        ]
    finally:  # after Ctrl-C the threads end when their workers do
        pool.shutdown(wait=False, cancel_futures=True)


def _answers_came(answered: int, questions: Sequence[_Question]) -> AnswersCame:
    """How many have answered, and which stacks are asked now, each once."""
    running = [question.stack for question in questions if question.answer.running()]
    return AnswersCame(answered, len(questions), list(dict.fromkeys(running)))


def discover(
    stacks: Iterable[str],
    plugins: Sequence[str] = (),
    working: Callable[[RunStep], None] = lambda what: None,
    interpreter: Interpreter = HERE,
) -> Discovery:
    """The targets of these stacks (the devices that they find), each once, and the stacks that have
    none with the reason. ``working``: as in ``ask_stacks``.
    """
    targets: dict[str, Target] = {}
    missing = []
    for stack, environment, found in ask_stacks(stacks, plugins, working, interpreter):
        if not found.targets:
            reason = found.reason or because("no-device-found")
            missing.append(
                MissingStack(stack=stack, reason=reason, mend=found.mend, environment=environment)
            )
        for target in found.targets:
            # Its workers get the variables with which it was found. Where several sets find a
            # target, the first counts.
            placed = msgspec.structs.replace(target, environment=environment)
            targets.setdefault(placed.key, placed)
    return Discovery(list(targets.values()), missing)


def _environments(name: str) -> list[dict[str, str]]:
    """The sets of environment variables with which the stack of this name is asked for its devices;
    one empty set if it wants none.
    """
    try:
        return environments_of(registry()[name]) or [{}]
    except KeyboardInterrupt:
        raise
    except BaseException:  # an error of the stack; its worker meets and reports it
        return [{}]


def _ask(
    name: str, environment: dict[str, str], plugins: Sequence[str], interpreter: Interpreter
) -> FoundTargets:
    """The devices (targets) that the stack of this name finds with these variables, asked in a
    worker process: listing devices can crash. If the worker dies, the answer says why.

    A worker that dies, unless after a long silence, may be an accident: it is asked once more.
    """
    job = Job(worker=f"discover {name}", stack=name, plugins=list(plugins))
    # The silence is measured over both tries together.
    began_s = time.monotonic()
    is_second = False
    while True:
        worker = WorkerProcess(
            job, environment, interpreter, silence_s=_SILENCE_S, memory_bytes=_MEMORY_BYTES
        )
        try:
            answer = worker.receive()
            worker.release()
        except WorkerDied as death:
            was_silent = time.monotonic() - began_s > _SILENCE_S
            if is_second or was_silent:
                # ``failed``: something went wrong, and it is not just that there is no device.
                return FoundTargets(reason=death.reason, mend=registry()[name].mend, failed=True)
            is_second = True
        else:
            if isinstance(answer, FoundTargets):
                return answer
            return FoundTargets(reason=because("worker-gave-no-answer"), failed=True)
        finally:
            worker.end()
