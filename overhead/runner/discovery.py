"""Find the targets of each stack in a separate worker process, because listing adapters can crash."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from overhead.errors import UsageError, unknown
from overhead.probes import environments_of, registry, unavailable_packages
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


def known_stacks(stacks: Sequence[str]) -> list[str]:
    """The named stacks, or all stacks except those that are measured only on request. Raises ``UsageError``."""
    known = registry()
    for name in stacks:
        if name not in known:
            broken = "".join(f"; unavailable: {package.reason}" for package in unavailable_packages())
            raise UsageError(f"{unknown('stack', name, known)}{broken}")
    return list(dict.fromkeys(stacks)) or [name for name, probe in known.items() if not probe.on_request]


def discover(
    stacks: Iterable[str],
    plugins: Sequence[str] = (),
    working: Callable[[str], None] = lambda what: None,
    interpreter: Interpreter = HERE,
) -> Discovery:
    """The targets of these stacks. Several threads call ``working`` with the stack that they begin to ask."""
    asked = [(name, environment) for name in stacks for environment in _environments(name)]
    question = _Question(plugins, working, interpreter)
    with ThreadPoolExecutor(max_workers=min(8, (os.cpu_count() or 1) + 1)) as pool:  # a browser mostly waits
        try:
            answers = list(pool.map(lambda a: question.ask(*a), asked))
        except BaseException:  # Ctrl-C: the threads end as soon as their workers do
            pool.shutdown(wait=False, cancel_futures=True)
            question.end()
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


class _Question:
    """Asks stacks for their targets, each in a worker of its own. Several threads may ask at the same time."""

    def __init__(self, plugins: Sequence[str], working: Callable[[str], None], interpreter: Interpreter) -> None:
        self.plugins, self.working, self.interpreter = list(plugins), working, interpreter
        self._workers: list[WorkerProcess] = []
        self._ended = False

    def ask(self, name: str, environment: dict[str, str]) -> FoundTargets:
        """The answer of a stack. A worker that dies, unless after a long silence, may be an accident: ask once more."""
        began = time.monotonic()
        self.working(f"asking {name}")
        try:
            try:
                return self._ask(name, environment)
            except WorkerDied:
                if self._ended or time.monotonic() - began > _SILENCE_S:
                    raise
                return self._ask(name, environment)
        except WorkerDied as death:
            return FoundTargets(reason=death.reason, mend=registry()[name].mend)

    def end(self) -> None:
        """Kill all workers, and ask no more."""
        self._ended = True
        for worker in self._workers:
            worker.kill()

    def _ask(self, name: str, environment: dict[str, str]) -> FoundTargets:
        job = Job(worker=f"discover {name}", stack=name, plugins=self.plugins)
        worker = WorkerProcess(job, environment, self.interpreter, silence_s=_SILENCE_S, memory_bytes=_MEMORY_BYTES)
        self._workers.append(worker)
        if self._ended:
            worker.kill()
        try:
            answer = worker.listen()
            worker.release()
        finally:
            worker.end()
        return answer if isinstance(answer, FoundTargets) else FoundTargets(reason="the worker gave no answer")
