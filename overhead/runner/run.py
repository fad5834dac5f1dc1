"""One complete run: find the targets, plan, measure, store all samples, reduce them to a fingerprint."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from overhead import scratch
from overhead.errors import UsageError, unknown
from overhead.locks import check_device_lock
from overhead.probes import load_plugin
from overhead.profiles import PROFILES, Plan
from overhead.results import Pattern, Profile
from overhead.runner.campaign import Campaign
from overhead.runner.ending import ending_on_signals
from overhead.runner.interpreter import interpreters
from overhead.runner.output import SIDES, Outcome, finish, finish_half, reserve
from overhead.runner.progress import Listener
from overhead.runner.schedule import Choice
from overhead.runner.start import begin, check_required, known_stacks, reopen, resume_run
from overhead.runner.variables import with_variables


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or a signal that ends the run. Everything measured is in ``journals``; ``--resume`` accepts the first."""

    def __init__(self, journals: Sequence[Path]) -> None:
        super().__init__(", ".join(map(str, journals)))
        self.journals = list(journals)


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
    env: str | Sequence[str] = (),
    env_new: str | Sequence[str] = (),
    require: str | Sequence[str] = (),
    listener: Listener | None = None,
    plan: Plan | None = None,
    campaign: Callable[..., Campaign] = Campaign,
) -> Outcome:
    """Measure this machine and return the finished run.

    ``stacks``: empty for all stacks except those that are measured only on request. Writes ``out`` (or
    ``reports/local/<time>.json``), and the raw samples next to it. ``pythons``: the interpreter of the workers, or two
    interpreters, whose processes alternate and whose files go to the folders ``base`` and ``new``. ``env``: variables
    (``NAME=VALUE``) for the workers. ``env_new``: variables for ``new`` only; its workers then alternate with workers
    without them. ``require``: stacks that the run must measure. ``plan`` replaces the plan of the profile. ``campaign``
    makes the campaign.

    Raises ``UsageError`` for wrong use or if a file cannot be written, and ``Interrupted`` on Ctrl-C and the like. In
    both cases the journal contains everything measured.
    """
    listener = listener or Listener()
    names = [str(plugin) for plugin in _listed(plugins)]
    stacks, patterns, workloads, pythons = map(_listed, (stacks, patterns, workloads, pythons))
    env, env_new = _listed(env), _listed(env_new)
    if len(pythons) > len(SIDES):
        raise UsageError(f"--python: {len(pythons)} interpreters given; give one, or two to compare")
    sides = SIDES if env_new or len(pythons) == len(SIDES) else ("",)
    choice = Choice(frozenset(patterns), frozenset(workloads), software, full=profile == "thorough")
    with ending_on_signals(), contextlib.ExitStack() as stack:
        stack.callback(scratch.sweep)  # workers that had to be killed leave folders
        stack.callback(scratch.remove)
        scratch.sweep()
        check_device_lock()
        if resume is not None and (ended := finish_half(Path(resume))):
            return ended
        for name in names:
            for sentence in load_plugin(Path(name), trial=True).values():
                listener.note(sentence)
        if resume is None:
            known, known_profile = known_stacks(stacks), _profile(profile, patterns)
        check_required(_listed(require), known if resume is None else _listed(require))
        given = with_variables(interpreters(pythons), env, env_new)
        if resume is None:
            journals = reserve(None if out is None else Path(out), sides)
        else:
            journals = reopen(Path(resume), len(sides))
        for journal in journals:
            stack.callback(journal.close)
        try:
            if resume is None:
                plan, runs = begin(known, choice, known_profile, journals, given, names, listener, plan)
            else:
                plan, runs = resume_run(journals, given, names, listener, plan)
            try:
                campaign(runs, plan, listener, names, random.Random(os.fsencode(journals[0].path.name))).run()
            finally:
                listener.end()
            return finish(journals)
        except BaseException as error:
            kept = [journal.path for journal in journals if journal.can_be_resumed]
            if kept and isinstance(error, KeyboardInterrupt):
                raise Interrupted(kept) from None
            if kept and not isinstance(error, UsageError):
                listener.note(f"everything measured is in {' and '.join(map(str, kept))}; run --resume goes on with it")
            raise


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


__all__ = ["Interrupted", "Outcome", "run"]
