"""One complete run: find the targets, plan, measure, store all samples, reduce them to a fingerprint."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from overhead import scratch
from overhead.errors import UsageError
from overhead.locks import check_device_lock
from overhead.probes import load_plugin
from overhead.profiles import PROFILES, Plan
from overhead.results import Pattern, Profile
from overhead.runner.campaign import Campaign
from overhead.runner.ending import ending_on_signals
from overhead.runner.interpreter import interpreters
from overhead.runner.output import Outcome, finish, reserve
from overhead.runner.progress import Listener
from overhead.runner.schedule import Choice
from overhead.runner.start import SIDES, begin, known_stacks, reopen, resume_run


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or a signal that ends the run. Everything measured is in ``journals``; ``--resume`` accepts the first."""

    def __init__(self, journals: Sequence[Path]) -> None:
        super().__init__(", ".join(map(str, journals)))
        self.journals = list(journals)


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
    plan: Plan | None = None,
    campaign: Callable[..., Campaign] = Campaign,
) -> Outcome:
    """Measure this machine and return the finished run.

    ``stacks``: empty for all stacks except those that are measured only on request. Writes ``out`` (or
    ``reports/local/<time>.json``), and the raw samples next to it. ``pythons``: the interpreter of the workers, or two
    interpreters, whose processes alternate and whose files go to the folders ``base`` and ``new``. ``plan`` replaces
    the plan of the profile. ``campaign`` makes the campaign. Raises ``UsageError`` for wrong use or if a file cannot be
    written, and ``Interrupted`` on Ctrl-C and the like. In both cases the journal contains everything measured.
    """
    listener = listener or Listener()
    if len(pythons) > len(SIDES):
        raise UsageError(f"--python: {len(pythons)} interpreters; one measures, two are compared")
    sides = SIDES if len(pythons) == len(SIDES) else ("",)
    choice = Choice(frozenset(patterns), frozenset(workloads), software, full=profile == "thorough")
    names = [str(p) for p in plugins]
    with ending_on_signals(), contextlib.ExitStack() as stack:
        stack.callback(scratch.sweep)  # workers that had to be killed leave folders
        stack.callback(scratch.remove)
        scratch.sweep()
        check_device_lock()
        for plugin in plugins:
            load_plugin(plugin)
        if resume is None:
            known, known_profile = known_stacks(stacks), _profile(profile, patterns)
        given = interpreters(pythons)
        journals = reserve(out, sides) if resume is None else reopen(resume, len(sides))
        for journal in journals:
            stack.callback(journal.close)
        try:
            if resume is None:
                plan, runs = begin(known, choice, known_profile, journals, given, names, listener, plan)
            else:
                plan, runs = resume_run(journals, given, names, listener, plan)
            try:
                campaign(runs, plan, listener, names, random.Random(journals[0].path.name)).run()
            finally:
                listener.end()
            return finish(journals)
        except KeyboardInterrupt:
            if kept := [journal.path for journal in journals if journal.can_be_resumed]:
                raise Interrupted(kept) from None
            raise


def _profile(profile: str, patterns: Sequence[str]) -> Profile:
    """The name of the profile. Raises ``UsageError`` if the profile or a pattern is unknown."""
    allowed = Pattern.__args__  # type: ignore[attr-defined]
    for name in patterns:
        if name not in allowed:
            raise UsageError(f"unknown pattern {name!r}; known: {', '.join(allowed)}")
    if profile not in PROFILES:
        raise UsageError(f"unknown profile {profile!r}; known: {', '.join(PROFILES)}")
    return cast(Profile, profile)


__all__ = ["Interrupted", "Outcome", "run"]
