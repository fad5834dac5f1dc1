"""A run: find the targets, plan, hand each worker the baton in turn, keep everything, reduce it to a fingerprint."""

from __future__ import annotations

import dataclasses
import gzip
import os
import random
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from overhead import machine, results
from overhead.errors import UsageError
from overhead.measure.planner import PROFILES, Plan
from overhead.probes import load_plugin, registry
from overhead.reduce import reduce_journal
from overhead.results import Fingerprint, Header, LeftOut, Missing, Omitted, Pattern, Planned, Profile, Target
from overhead.runner.campaign import Campaign
from overhead.runner.discover import discover
from overhead.runner.journal import Journal, Past
from overhead.runner.progress import Listener
from overhead.runner.redaction import redacted
from overhead.runner.schedule import Choice, Task, again, schedule

DEFAULT_FOLDER = Path("reports/local")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: everything measured is in ``journal``."""

    def __init__(self, journal: Path) -> None:
        super().__init__(str(journal))
        self.journal = journal


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A finished run: the fingerprint and where it and its raw samples lie."""

    fingerprint: Fingerprint
    path: Path
    samples: Path

    def without_figure(self, stacks: Iterable[str]) -> dict[str, str]:
        """Of these stacks those without any figure that carries a value, with the reason."""
        have = {r.stack for r in self.fingerprint.records if r.status in results.VALUED}
        return {name: _why(self.fingerprint, name) for name in stacks if name not in have}


def run(
    stacks: Sequence[str] = (),
    *,
    patterns: Sequence[str] = (),
    workloads: Sequence[str] = (),
    profile: str = "default",
    plugins: Sequence[Path] = (),
    software: bool = False,
    resume: Path | None = None,
    out: Path | None = None,
    listener: Listener | None = None,
) -> Outcome:
    """Measure this machine. Empty ``stacks`` means all but those measured only on request.

    Writes ``out`` (or ``reports/local/<time>.json``) and its raw samples beside it. Raises ``UsageError`` on wrong use
    or a file that cannot be written, ``Interrupted`` on Ctrl-C; in both cases what was measured is in the journal.
    """
    listener = listener or Listener()
    for plugin in plugins:
        load_plugin(plugin)
    names = [str(p) for p in plugins]
    if resume is not None:
        start = _go_on(resume, names, listener)
    else:
        choice = Choice(frozenset(patterns), frozenset(workloads), software, full=profile == "thorough")
        start = _begin(_stacks(stacks), choice, _profile(profile, patterns), journal_path(out), names, listener)
    try:
        campaign = Campaign(start.journal, start.plan, listener, names, random.Random(start.journal.path.name))
        campaign.run(start.tasks, start.past)
    except KeyboardInterrupt:
        raise Interrupted(start.journal.path) from None
    finally:
        listener.end()
        start.journal.close()
    return finish(start.journal.path)


@dataclasses.dataclass(frozen=True)
class _Start:
    """A journal open for writing and what is to be measured into it."""

    journal: Journal
    plan: Plan
    tasks: list[Task]
    past: Past | None = None


def _begin(
    stacks: Sequence[str], choice: Choice, profile: Profile, path: Path, plugins: Sequence[str], listener: Listener
) -> _Start:
    """A new run: discover, plan, and write the journal's head."""
    found = discover(stacks, plugins, lambda name: listener.working(f"asked {name}"))
    tasks, left_out = schedule(found.targets, choice, PROFILES[profile])
    if not tasks:
        raise UsageError(_nothing(found.missing))
    journal = Journal(path, append=False)
    journal.write([_header(profile, found.targets)])
    journal.write(redacted(Missing(unavailable=m)) for m in found.missing)
    journal.write(Omitted(left_out=omitted) for omitted in left_out)
    for task in tasks:
        journal.write(redacted(Planned(worker=task.target.key, target=a.target, case=a.case)) for a in task.assignments)
    journal.sync()
    _tell_left_out(listener, left_out)
    return _Start(journal, PROFILES[profile], tasks)


def _go_on(path: Path, plugins: Sequence[str], listener: Listener) -> _Start:
    """An interrupted run: what its journal planned and has not measured yet."""
    past = Past(path)
    plan = PROFILES[past.header.profile]
    found = discover(_stacks(sorted({p.target.stack for p in past.planned})), plugins)
    tasks, gone = again(((p.worker, p.target, p.case) for p in past.planned), found.targets, plan)
    for key in sorted(gone):
        listener.note(f"{key}: planned, but not found any more")
    return _Start(Journal(path, append=True), plan, tasks, past)


def _stacks(stacks: Sequence[str]) -> list[str]:
    known = registry()
    for name in stacks:
        if name not in known:
            raise UsageError(f"unknown stack {name!r}; known: {', '.join(sorted(known))}")
    return list(dict.fromkeys(stacks)) or [name for name, probe in known.items() if not probe.on_request]


def _profile(profile: str, patterns: Sequence[str]) -> Profile:
    """The profile's name, and a check of the patterns' names."""
    allowed = Pattern.__args__  # type: ignore[attr-defined]
    for name in patterns:
        if name not in allowed:
            raise UsageError(f"unknown pattern {name!r}; known: {', '.join(allowed)}")
    if profile not in PROFILES:
        raise UsageError(f"unknown profile {profile!r}; known: {', '.join(PROFILES)}")
    return cast(Profile, profile)


def journal_path(out: Path | None) -> Path:
    """``x.json`` is journalled in ``x.jsonl``; a folder gets files named by the time. Makes the folder."""
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"{out}: exists; measured results are not overwritten")
    if out is not None and out.suffix not in ("", ".json"):
        raise UsageError(f"{out}: neither a folder nor a name that ends in .json")
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ")
    path = out.with_suffix(".jsonl") if out and out.suffix else (out or DEFAULT_FOLDER) / f"{time}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent}: {error.strerror or error}") from None
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path.parent}: no permission to write here")
    return path


def _header(profile: Profile, targets: Sequence[Target]) -> Header:
    stacks = dict.fromkeys(t.stack for t in targets)
    distributions = sorted({d for name in stacks for d in registry()[name].distributions})
    versions = {k: v for t in targets for k, v in t.versions.items()} | machine.versions(distributions)
    return Header(
        schema_version=results.SCHEMA_VERSION,
        method_version=results.METHOD_VERSION,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        profile=profile,
        machine=machine.identity(),
        volatile=machine.volatile(),
        versions=versions,
    )


def _tell_left_out(listener: Listener, left_out: Sequence[LeftOut]) -> None:
    by_reason: dict[str, list[str]] = {}
    for one in left_out:
        by_reason.setdefault(one.reason, []).append(one.target if one.case == "all" else f"{one.target} {one.case}")
    for reason, names in by_reason.items():
        some = "; ".join(names[:3]) + (f"; and {len(names) - 3} more" if len(names) > 3 else "")
        listener.note(f"left out ({reason}): {some}")


def _nothing(missing: Sequence[results.Unavailable]) -> str:
    why = "; ".join(f"{m.stack}: {m.reason}" + (f" (mend: {m.mend})" if m.mend else "") for m in missing)
    return f"nothing to measure: {why or 'no case matches what was asked for'}"


def finish(journal: Path) -> Outcome:
    """Reduce the journal to the fingerprint and press the journal into the raw samples file."""
    fingerprint = reduce_journal(journal)
    path = journal.with_suffix(".json")
    samples = journal.with_suffix(".samples.jsonl.gz")
    try:
        results.write_fingerprint(path, fingerprint)
        part = samples.with_name(samples.name + ".part")
        with open(journal, "rb") as source, gzip.open(part, "wb") as packed:
            shutil.copyfileobj(source, packed)
        part.replace(samples)
        journal.unlink()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; everything measured is in {journal}") from None
    return Outcome(fingerprint, path, samples)


def _why(fingerprint: Fingerprint, stack: str) -> str:
    reasons = [m.reason for m in fingerprint.unavailable if m.stack == stack]
    reasons += [f"{r.status}: {r.reason}" for r in fingerprint.records if r.stack == stack]
    return reasons[0] if reasons else "not measured in this run"


__all__ = ["Interrupted", "Outcome", "run"]
