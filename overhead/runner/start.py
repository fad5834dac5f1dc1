"""How a run starts: targets and cases under each interpreter, and the heads of new journals or what old ones lack."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from overhead import machine, results
from overhead.errors import UsageError
from overhead.probes import registry
from overhead.profiles import PROFILES, Plan
from overhead.results import HeaderLine, LeftOut, MissingLine, OmittedLine, PlannedLine, Profile, Target, Together
from overhead.runner.campaign import Lane
from overhead.runner.discover import Discovery, discover
from overhead.runner.interpreter import Interpreter
from overhead.runner.journal import Journal, Past
from overhead.runner.progress import Listener
from overhead.runner.redaction import redacted
from overhead.runner.schedule import Choice, Task, again, schedule

SIDES: tuple[Literal["base", "new"], Literal["base", "new"]] = ("base", "new")


@dataclasses.dataclass(frozen=True)
class _Prepared:
    """What will be measured under one interpreter."""

    interpreter: Interpreter
    found: Discovery
    tasks: list[Task]
    left_out: list[LeftOut]


def begin(
    stacks: Sequence[str],
    choice: Choice,
    profile: Profile,
    path: Path,
    given: Sequence[Interpreter],
    plugins: Sequence[str],
    listener: Listener,
) -> tuple[Plan, list[Lane]]:
    """A new run: discover and plan under each interpreter, then write the heads of the journals."""
    prepared = [_prepared(stacks, choice, profile, one, plugins, listener) for one in given]
    header = HeaderLine(
        schema_version=results.SCHEMA_VERSION,
        method_version=results.METHOD_VERSION,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        profile=profile,
        machine=machine.identity(),
        volatile=machine.volatile(),
    )
    sides = _together(len(given))
    paths = [_side_path(path, together.side) if together else path for together in sides]
    lanes = []
    for one, together, journal_path in zip(prepared, sides, paths, strict=True):
        versions = _versions(one.found.targets, one.interpreter)
        own = msgspec.structs.replace(header, versions=versions, together=together)
        lanes.append(Lane(_head(journal_path, own, one), one.tasks, interpreter=one.interpreter, together=together))
    _tell_left_out(listener, dict.fromkeys(left for one in prepared for left in one.left_out))
    return PROFILES[profile], lanes


def _prepared(
    stacks: Sequence[str],
    choice: Choice,
    profile: Profile,
    interpreter: Interpreter,
    plugins: Sequence[str],
    listener: Listener,
) -> _Prepared:
    found = discover(stacks, plugins, lambda name: listener.working(f"asked {name}"), interpreter)
    tasks, left_out = schedule(found.targets, choice, PROFILES[profile])
    if not tasks:
        raise UsageError(_nothing(found.missing))
    return _Prepared(interpreter, found, tasks, left_out)


def _together(count: int) -> Sequence[Together | None]:
    if count == 1:
        return [None]
    common = secrets.token_hex(6)
    return [Together(id=common, side=side) for side in SIDES]


def _side_path(path: Path, side: str) -> Path:
    """A side's journal, in a folder of its own. Makes the folder."""
    own = path.parent / side / path.name
    if own.with_suffix(".json").exists():
        raise UsageError(f"{own.with_suffix('.json')}: exists; measured results are not overwritten")
    try:
        own.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"{own.parent}: {error.strerror or error}") from None
    return own


def _head(path: Path, header: HeaderLine, prepared: _Prepared) -> Journal:
    journal = Journal(path, append=False)
    journal.write([header])
    journal.write(redacted(MissingLine(unavailable=m)) for m in prepared.found.missing)
    journal.write(OmittedLine(left_out=omitted) for omitted in prepared.left_out)
    for task in prepared.tasks:
        key = task.target.key
        journal.write(
            redacted(PlannedLine(worker=key, target=a.target, case=a.case, processes=task.processes))
            for a in task.assignments
        )
    journal.sync()
    return journal


def go_on(
    path: Path, given: Sequence[Interpreter], plugins: Sequence[str], listener: Listener
) -> tuple[Plan, list[Lane]]:
    """An interrupted run: what its journal, or both of two, planned and have not measured yet."""
    pasts = [(journal, Past(journal)) for journal in _with_other(path, len(given))]
    plan = PROFILES[pasts[0][1].header.profile]
    lanes = []
    for (journal, past), interpreter in zip(pasts, given, strict=True):
        asked = sorted({p.target.stack for p in past.planned})
        found = discover(known_stacks(asked), plugins, interpreter=interpreter).targets
        _same_builds(journal, past.header, found, interpreter)
        tasks, gone = again(past.planned, past.header.profile, found)
        for key in sorted(gone):
            listener.note(f"{key}: planned, but not found any more")
        lanes.append(Lane(Journal(journal, append=True), tasks, past, interpreter, past.header.together))
    return plan, lanes


def _with_other(path: Path, count: int) -> list[Path]:
    """The journal, and that of the other side where two were measured together: BASE first."""
    together = Past(path).header.together
    if together is None and count == 1:
        return [path]
    if together is None:
        raise UsageError(f"{path}: measured under one interpreter; two cannot go on with it")
    if count == 1:
        raise UsageError(f"{path}: one of two measured together; give both again: --python BASE --python NEW")
    both = [path.parent.parent / side / path.name for side in SIDES]
    for journal in both:
        other = Past(journal).header.together
        if other is None or other.id != together.id:
            raise UsageError(f"{journal}: not measured together with {path}")
    return both


def _same_builds(path: Path, header: HeaderLine, targets: Sequence[Target], interpreter: Interpreter) -> None:
    """One file holds one build of each package. Raises ``UsageError``."""
    now = _versions(targets, interpreter)
    for name in ("python", *_distributions(targets)):
        if name in now and name in header.versions and header.versions[name] != now[name]:
            raise UsageError(f"{path}: begun with {name} {header.versions[name]}, here it is {now[name]}")


def known_stacks(stacks: Sequence[str]) -> list[str]:
    """The stacks to ask: those named, or all but those measured on request. Raises ``UsageError``."""
    known = registry()
    for name in stacks:
        if name not in known:
            raise UsageError(f"unknown stack {name!r}; known: {', '.join(sorted(known))}")
    return list(dict.fromkeys(stacks)) or [name for name, probe in known.items() if not probe.on_request]


def _distributions(targets: Sequence[Target]) -> list[str]:
    return sorted({d for name in {t.stack for t in targets} for d in registry()[name].distributions})


def _versions(targets: Sequence[Target], interpreter: Interpreter) -> dict[str, str]:
    of_targets = {k: v for t in targets for k, v in t.versions.items()}
    return of_targets | interpreter.versions(_distributions(targets))


def _tell_left_out(listener: Listener, left_out: Iterable[LeftOut]) -> None:
    by_reason: dict[str, list[str]] = {}
    for one in left_out:
        by_reason.setdefault(one.reason, []).append(one.target if one.case == "all" else f"{one.target} {one.case}")
    for reason, names in by_reason.items():
        some = "; ".join(names[:3]) + (f"; and {len(names) - 3} more" if len(names) > 3 else "")
        listener.note(f"left out ({reason}): {some}")


def _nothing(missing: Sequence[results.MissingStack]) -> str:
    why = "; ".join(f"{m.stack}: {m.reason}" + (f" (mend: {m.mend})" if m.mend else "") for m in missing)
    return f"nothing to measure: {why or 'no case matches what was asked for'}"
