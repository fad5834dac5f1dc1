"""One complete run: find the targets, plan, measure, store all samples, reduce them to a fingerprint."""

from __future__ import annotations

import dataclasses
import gzip
import os
import random
import shutil
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from overhead import results
from overhead.errors import UsageError, unknown
from overhead.loading import files
from overhead.loading.reduce import reduce_journal
from overhead.probes import load_plugin
from overhead.profiles import PROFILES, Plan
from overhead.reading.missing_values import missing_stack
from overhead.results import Fingerprint, Pattern, Profile
from overhead.runner.campaign import Campaign
from overhead.runner.interpreter import interpreters
from overhead.runner.progress import Listener
from overhead.runner.schedule import Choice
from overhead.runner.start import SIDES, begin, known_stacks, resume_run

DEFAULT_FOLDER = Path("reports/local")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. Everything measured is in ``journals``. ``--resume`` accepts the first of them."""

    def __init__(self, journals: Sequence[Path]) -> None:
        super().__init__(", ".join(map(str, journals)))
        self.journals = list(journals)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A finished run: the fingerprint, its path, and the path of its raw samples.

    ``second``: the run under the second interpreter, if two were given.
    """

    fingerprint: Fingerprint
    path: Path
    samples: Path
    second: Outcome | None = None

    def without_figure(self, stacks: Iterable[str]) -> dict[str, str]:
        """For each of these stacks without a figure with a value, the reason."""
        have = {r.stack for r in self.fingerprint.records if r.status in results.VALUED}
        return {name: missing_stack(self.fingerprint, name).text for name in stacks if name not in have}


def run(
    stacks: str | Sequence[str] = (),
    *,
    patterns: str | Sequence[str] = (),
    workloads: str | Sequence[str] = (),
    profile: str = "default",
    plugins: str | Path | Sequence[str | Path] = (),
    software: bool = False,
    resume: str | Path | None = None,
    out: str | Path | None = None,
    pythons: str | Sequence[str] = (),
    listener: Listener | None = None,
    plan: Plan | None = None,
    campaign: Callable[..., Campaign] = Campaign,
) -> Outcome:
    """Measure this machine and return the finished run.

    Each list may also be one name or path. ``stacks``: empty for all stacks except those that are measured only on
    request. Writes ``out`` (or ``reports/local/<time>.json``), and the raw samples next to it. ``pythons``: the
    interpreter of the workers, or two interpreters, whose processes alternate and whose files go to the folders
    ``base`` and ``new``. ``plan`` replaces the plan of the profile. ``campaign`` makes the campaign. Raises
    ``UsageError`` for wrong use or if a file cannot be
    written, and ``Interrupted`` on Ctrl-C. In both cases the journal contains everything measured.
    """
    listener = listener or Listener()
    names = [str(plugin) for plugin in _listed(plugins)]
    stacks, patterns, workloads, pythons = map(_listed, (stacks, patterns, workloads, pythons))
    for name in names:
        for sentence in load_plugin(Path(name)).values():
            listener.note(sentence)
    if len(pythons) > len(SIDES):
        raise UsageError(f"--python: {len(pythons)} interpreters given; give one, or two to compare")
    with interpreters(pythons) as given:
        if resume is not None:
            plan, runs = resume_run(Path(resume), given, names, listener, plan)
        else:
            choice = Choice(frozenset(patterns), frozenset(workloads), software, full=profile == "thorough")
            known, profile_name = known_stacks(stacks), _profile(profile, patterns)
            journal = journal_path(None if out is None else Path(out))
            plan, runs = begin(known, choice, profile_name, journal, given, names, listener, plan)
        journals = [one.journal.path for one in runs]
        try:
            campaign(runs, plan, listener, names, random.Random(journals[0].name)).run()
        except KeyboardInterrupt:
            raise Interrupted(journals) from None
        finally:
            listener.end()
            for one in runs:
                one.journal.close()
    first, *others = [finish(journal) for journal in journals]
    return dataclasses.replace(first, second=others[0]) if others else first


def _listed(given: str | Path | Sequence[Any]) -> list[Any]:
    """One name or path, or several, as a list."""
    return [given] if isinstance(given, str | Path) else list(given)


def _profile(profile: str, patterns: Sequence[str]) -> Profile:
    """The name of the profile. Raises ``UsageError`` if the profile or a pattern is unknown."""
    allowed = Pattern.__args__  # type: ignore[attr-defined]
    for name in patterns:
        if name not in allowed:
            raise unknown("pattern", name, allowed)
    if profile not in PROFILES:
        raise unknown("profile", profile, PROFILES)
    return cast(Profile, profile)


def journal_path(out: Path | None) -> Path:
    """The path of the journal: ``x.jsonl`` for ``x.json``, or a name from the time if ``out`` is a folder.

    Creates the folder.
    """
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"{out}: exists already; choose another name, results are never overwritten")
    if out is not None and out.suffix not in ("", ".json"):
        raise UsageError(f"{out}: must be a folder or a file name that ends in .json")
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
    """Reduce the journal to a fingerprint, and compress the journal to the file of raw samples."""
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


__all__ = ["Interrupted", "Outcome", "run"]
