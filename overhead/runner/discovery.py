"""Find the targets of each stack in a separate worker process, because listing adapters can crash."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from overhead.probes import environments_of, registry
from overhead.results import MissingStack, Target
from overhead.runner.interpreter import HERE, Interpreter
from overhead.runner.protocol import FoundTargets, Job
from overhead.runner.workers import WorkerDied, WorkerProcess

_SILENCE_S = 60.0
_MEMORY_BYTES = 8 << 30


@dataclasses.dataclass(frozen=True)
class Discovery:
    """All targets found, and the reason for each stack (and environment) without a target."""

    targets: list[Target]
    missing: list[MissingStack]


def discover(
    stacks: Iterable[str],
    plugins: Sequence[str] = (),
    answered: Callable[[str], None] = lambda name: None,
    interpreter: Interpreter = HERE,
) -> Discovery:
    """The targets of these stacks.

    Several threads call ``answered`` with the name of a stack when that stack has answered.
    """
    asked = [(name, environment) for name in stacks for environment in _environments(name)]
    workers: list[WorkerProcess] = []
    with ThreadPoolExecutor(max_workers=max(1, min(8, os.cpu_count() or 1))) as pool:
        try:
            answers = list(pool.map(lambda a: _ask(a[0], a[1], plugins, answered, interpreter, workers), asked))
        except BaseException:  # Ctrl-C: the threads end as soon as their workers do
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.kill()
            raise
    targets: dict[str, Target] = {}
    missing = []
    for (name, environment), found in zip(asked, answers, strict=True):
        if not found.targets:
            missing.append(
                MissingStack(stack=name, reason=found.reason or "no device", mend=found.mend, environment=environment)
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
    name: str,
    environment: dict[str, str],
    plugins: Sequence[str],
    answered: Callable[[str], None],
    interpreter: Interpreter,
    workers: list[WorkerProcess],
) -> FoundTargets:
    job = Job(worker=f"discover {name}", stack=name, plugins=list(plugins))
    worker = WorkerProcess(job, environment, interpreter=interpreter, silence_s=_SILENCE_S, memory_bytes=_MEMORY_BYTES)
    workers.append(worker)
    try:
        answer = worker.listen()
        worker.release()
        return answer if isinstance(answer, FoundTargets) else FoundTargets(reason="the worker gave no answer")
    except WorkerDied as death:
        return FoundTargets(reason=death.reason, mend=registry()[name].mend)
    finally:
        worker.end()
        answered(name)
