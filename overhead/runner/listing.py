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
from overhead.results import MissingStack, Target, Why
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
    """What ``overhead list`` shows: each registered stack, or those with these names, with the
    devices (targets) that it finds on this machine, or why it finds none.

    Installed packages with stacks that cannot be used come last. ``plugins``: files of the user
    that register stacks. ``working``: as in ``ask_stacks``. Raises ``UsageError``.
    """
    # By stack, that a plugin's stack of this name replaces that of an installed package.
    replaced: dict[str, Why] = {}
    for plugin in plugins:
        # ``trial``: imported in a child process first, because the file may hang or end its
        # process.
        replaced |= load_plugin(plugin, trial=True)
    probes = registry()
    if stacks:
        known_stacks(stacks)  # raises for an unknown name
        probes = {name: probes[name] for name in stacks}
    found = discover(probes, [str(plugin) for plugin in plugins], working)
    rows = []
    for name, probe in probes.items():
        rows.append(
            Listed(
                stack=name,
                title=probe.title,
                on_request=probe.on_request,
                targets=[target for target in found.targets if target.stack == name],
                missing=[missing for missing in found.missing if missing.stack == name],
                note=sentence(replaced.get(name, "")),
            )
        )
    for package in unavailable_packages():
        rows.append(Listed(stack=package.stack, title=words.UNUSABLE_PACKAGE, missing=[package]))
    return rows


def listing_blocks(rows: Sequence[Listed]) -> Iterator[Part]:
    """A table of the stacks on this machine, and what is missing with the command that adds it."""
    columns = ["stack", "api", "device", "driver"]
    cells: list[list[str]] = []
    missing: list[MissingStack] = []
    for row in rows:
        missing += row.missing
        for target in row.targets:
            cells.append([target.stack, target.api, words.device(target), words.driver(target)])
    if cells:
        # Where there is no room, a terminal hides the driver.
        driver = columns.index("driver")
        yield Table(words.STACKS_HERE, columns, cells, optional=(driver,))
    yield from missing_blocks(missing)
    notes = [row.note for row in rows if row.note]
    if notes:
        yield Text(notes)


def missing_blocks(missing: Sequence[MissingStack]) -> Iterator[Part]:
    """A line for each stack that this machine lacks, with the reason. Below the last of those that
    one command adds (their ``mend``) stands the command, so that it is there once.
    """
    if missing:
        yield Heading(words.NOT_HERE)
    # By ``mend``, the command that adds them; '' for those that nothing adds.
    for mend, stacks in by_mend(missing).items():
        for stack in stacks:
            variables = [f"with {name}={value}" for name, value in stack.environment.items()]
            name = " ".join([stack.stack, *variables]).rstrip()
            added = []
            if mend and stack is stacks[-1]:
                added = [words.to_add(len(stacks), mend)]
            # ``names``: a colon follows, because the first text is a name and not a status.
            yield StatusLine(name, sentence(stack.reason), added, names=True)
