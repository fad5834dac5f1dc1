"""Find the targets of each stack (its devices) in a separate worker process, because listing
adapters can crash.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import chain

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
    """The named stacks, or all stacks except those that are measured only on request. Raises
    ``UsageError``.
    """
    known = registry()
    for name in stacks:
        if name not in known:
            unknown = unknown_name("stack", name, known)
            broken = [about("unavailable", package.reason) for package in unavailable_packages()]
            raise UsageError(together(str(unknown), *broken)) if broken else unknown
    return list(dict.fromkeys(stacks)) or [
        name for name, probe in known.items() if not probe.on_request
    ]


def ask_stacks(
    stacks: Iterable[str],
    plugins: Sequence[str] = (),
    working: Callable[[RunStep], None] = lambda what: None,
    interpreter: Interpreter = HERE,
) -> list[tuple[str, dict[str, str], FoundTargets]]:
    """For each stack and each set of environment variables that it wants: its name, the variables,
    and its answer.

    ``working`` is called at the beginning and after each answer, with how many came and which are
    awaited.
    """
    pool = ThreadPoolExecutor(
        max_workers=min(8, (os.cpu_count() or 1) + 1)
    )  # a browser mostly waits
    asked = [(name, environment) for name in stacks for environment in _environments(name)]
    try:
        answers = [pool.submit(_ask, *one, plugins, interpreter) for one in asked]
        for count, _ in enumerate(chain([None], as_completed(answers))):
            now = [
                name for (name, _), answer in zip(asked, answers, strict=True) if answer.running()
            ]
            working(AnswersCame(count, len(asked), list(dict.fromkeys(now))))
        return [(*one, answer.result()) for one, answer in zip(asked, answers, strict=True)]
    finally:  # after Ctrl-C the threads end when their workers do
        pool.shutdown(wait=False, cancel_futures=True)


def discover(
    stacks: Iterable[str],
    plugins: Sequence[str] = (),
    working: Callable[[RunStep], None] = lambda what: None,
    interpreter: Interpreter = HERE,
) -> Discovery:
    """The targets of these stacks, each once, and what is missing. ``working``: as in
    ``ask_stacks``.
    """
    targets: dict[str, Target] = {}
    missing = []
    for name, environment, found in ask_stacks(stacks, plugins, working, interpreter):
        if not found.targets:
            reason = found.reason or because("no-device-found")
            missing.append(
                MissingStack(stack=name, reason=reason, mend=found.mend, environment=environment)
            )
        for target in found.targets:
            targets.setdefault(target.key, msgspec.structs.replace(target, environment=environment))
    return Discovery(list(targets.values()), missing)


def _environments(name: str) -> list[dict[str, str]]:
    try:
        return environments_of(registry()[name]) or [{}]
    except KeyboardInterrupt:
        raise
    except BaseException:  # an error of the stack; its worker meets and reports it
        return [{}]


def _ask(
    name: str, environment: dict[str, str], plugins: Sequence[str], interpreter: Interpreter
) -> FoundTargets:
    """The answer of a stack. A worker that dies, unless after a long silence, may be an accident:
    ask once more.
    """
    job, began, again = (
        Job(worker=f"discover {name}", stack=name, plugins=list(plugins)),
        time.monotonic(),
        False,
    )
    while True:
        worker = WorkerProcess(
            job, environment, interpreter, silence_s=_SILENCE_S, memory_bytes=_MEMORY_BYTES
        )
        try:
            answer = worker.receive()
            worker.release()
        except WorkerDied as death:
            if again or time.monotonic() - began > _SILENCE_S:
                return FoundTargets(reason=death.reason, mend=registry()[name].mend, failed=True)
            again = True
        else:
            nothing = FoundTargets(reason=because("worker-gave-no-answer"), failed=True)
            return answer if isinstance(answer, FoundTargets) else nothing
        finally:
            worker.end()
