"""What ``overhead list`` finds and shows: the stacks with their targets here, and what is
missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from overhead.blocks.parts import Heading, Part, StatusLine, Table, Text
from overhead.probes import load_plugin, registry, unavailable_packages
from overhead.reading.missing_values import by_mend
from overhead.results import MissingStack, Target
from overhead.runner.discovery import discover, known_stacks
from overhead.runner.events import RunStep
from overhead.words import runner as words
from overhead.words.reasons import sentence


class Listed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One stack, its targets on this machine, and for each set of environment variables without one
    the reason.
    """

    stack: str
    title: str
    on_request: bool = False
    targets: list[Target] = []
    missing: list[MissingStack] = []
    note: str = ""
    """The plugin file that replaces this stack, if an installed package has it too."""


def list_stacks(
    plugins: Sequence[Path] = (),
    stacks: Sequence[str] = (),
    working: Callable[[RunStep], None] = lambda what: None,
) -> list[Listed]:
    """Find the targets of every registered stack, or of those with these names, on this machine.

    Installed packages that cannot be used come last. ``working``: as in ``ask_stacks``. Raises
    ``UsageError``.
    """
    replaced = {
        name: why for plugin in plugins for name, why in load_plugin(plugin, trial=True).items()
    }
    probes = registry()
    if stacks:
        known_stacks(stacks)
        probes = {name: probes[name] for name in stacks}
    found = discover(probes, [str(p) for p in plugins], working)
    rows = [
        Listed(
            stack=name,
            title=probe.title,
            on_request=probe.on_request,
            targets=[t for t in found.targets if t.stack == name],
            missing=[m for m in found.missing if m.stack == name],
            note=sentence(replaced.get(name, "")),
        )
        for name, probe in probes.items()
    ]
    packages = unavailable_packages()
    return rows + [
        Listed(stack=m.stack, title=words.UNUSABLE_PACKAGE, missing=[m]) for m in packages
    ]


def listing_blocks(rows: Sequence[Listed]) -> Iterator[Part]:
    """A table of the stacks on this machine, and what is missing with the command that adds it."""
    targets = []
    for t in (target for row in rows for target in row.targets):
        targets.append([t.stack, t.api, words.device(t), words.driver(t)])
    if targets:
        _, _, _, driver = range(4)
        yield Table(
            words.STACKS_HERE, ["stack", "api", "device", "driver"], targets, optional=(driver,)
        )
    yield from missing_blocks([one for row in rows for one in row.missing])
    if notes := [row.note for row in rows if row.note]:
        yield Text(notes)


def missing_blocks(missing: Sequence[MissingStack]) -> Iterator[Part]:
    """A line for each missing stack; the last of those that one command adds has the command below
    it.
    """
    if missing:
        yield Heading(words.NOT_HERE)
    for mend, stacks in by_mend(missing).items():
        for one in stacks:
            where = "".join(
                f"with {key}={value} " for key, value in one.environment.items()
            ).rstrip()
            name = f"{one.stack} {where}".rstrip()
            added = [words.to_add(len(stacks), mend)] if mend and one is stacks[-1] else []
            yield StatusLine(name, sentence(one.reason), added, names=True)
