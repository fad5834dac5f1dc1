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

from overhead import results
from overhead.errors import UsageError
from overhead.loading import files
from overhead.loading.reduce import reduce_journal
from overhead.probes import load_plugin
from overhead.profiles import PROFILES
from overhead.results import Fingerprint, Pattern, Profile
from overhead.runner.campaign import Campaign
from overhead.runner.interpreter import interpreters
from overhead.runner.progress import Listener
from overhead.runner.schedule import Choice
from overhead.runner.start import SIDES, begin, go_on, known_stacks

DEFAULT_FOLDER = Path("reports/local")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: everything measured is in ``journals``, of which ``--resume`` takes the first."""

    def __init__(self, journals: Sequence[Path]) -> None:
        super().__init__(", ".join(map(str, journals)))
        self.journals = list(journals)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A finished run: the fingerprint and where it and its raw samples lie.

    ``beside``: the run under the second interpreter, where two were given.
    """

    fingerprint: Fingerprint
    path: Path
    samples: Path
    beside: Outcome | None = None

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
    pythons: Sequence[str] = (),
    listener: Listener | None = None,
) -> Outcome:
    """Measure this machine. Empty ``stacks`` means all but those measured only on request.

    Writes ``out`` (or ``reports/local/<time>.json``) and its raw samples beside it. ``pythons``: the interpreter of the
    workers, or two that take turns process by process; their files then lie in folders ``base`` and ``new`` beside each
    other. Raises ``UsageError`` on wrong use or a file that cannot be written, ``Interrupted`` on Ctrl-C; in both cases
    what was measured is in the journal.
    """
    listener = listener or Listener()
    for plugin in plugins:
        load_plugin(plugin)
    names = [str(p) for p in plugins]
    if len(pythons) > len(SIDES):
        raise UsageError(f"--python: {len(pythons)} interpreters; one measures, two are compared")
    with interpreters(pythons) as given:
        if resume is not None:
            plan, lanes = go_on(resume, given, names, listener)
        else:
            choice = Choice(frozenset(patterns), frozenset(workloads), software, full=profile == "thorough")
            plan, lanes = begin(
                known_stacks(stacks), choice, _profile(profile, patterns), journal_path(out), given, names, listener
            )
        journals = [lane.journal.path for lane in lanes]
        try:
            Campaign(lanes, plan, listener, names, random.Random(journals[0].name)).run()
        except KeyboardInterrupt:
            raise Interrupted(journals) from None
        finally:
            listener.end()
            for lane in lanes:
                lane.journal.close()
    first, *others = [finish(journal) for journal in journals]
    return dataclasses.replace(first, beside=others[0]) if others else first


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


def finish(journal: Path) -> Outcome:
    """Reduce the journal to the fingerprint and press the journal into the raw samples file."""
    fingerprint = reduce_journal(journal)
    path = journal.with_suffix(".json")
    samples = journal.with_suffix(".samples.jsonl.gz")
    try:
        files.write_fingerprint(path, fingerprint)
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
