"""The tables of ``overhead list`` and ``overhead doctor``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from overhead.probes import load_plugin, registry, unavailable_packages
from overhead.reading.format import plain
from overhead.reading.missing_values import by_mend
from overhead.results import MissingStack, Target
from overhead.runner.discovery import discover, known_stacks
from overhead.terminal.console import terminal

if TYPE_CHECKING:
    from overhead.machine.doctor import DoctorCheck


class Listed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One stack, its targets on this machine, and for each environment without one the reason."""

    stack: str
    title: str
    on_request: bool = False
    targets: list[Target] = []
    missing: list[MissingStack] = []
    note: str = ""
    """The plugin file that replaces this stack, if an installed package has it too."""


def listing(
    plugins: Sequence[Path] = (), stacks: Sequence[str] = (), working: Callable[[str], None] = lambda what: None
) -> list[Listed]:
    """Every registered stack, or those with these names, with its targets on this machine.

    Installed packages that cannot be used come last. Several threads call ``working`` with the stacks that are being
    asked, in words. Raises ``UsageError``.
    """
    replaced = {name: sentence for plugin in plugins for name, sentence in load_plugin(plugin, trial=True).items()}
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
            note=replaced.get(name, ""),
        )
        for name, probe in probes.items()
    ]
    packages = unavailable_packages()
    return rows + [Listed(stack=m.stack, title="a package that cannot be used", missing=[m]) for m in packages]


def show_listing(rows: Sequence[Listed], console: Console | None = None) -> None:
    """Print the stacks, and what is missing with the command that adds it."""
    console = console or terminal()
    table = Table(title="Stacks on this machine", title_justify="left")
    for column in ("stack", "api", "device", "driver"):
        table.add_column(column, overflow="fold")
    for row in rows:
        for target in row.targets:
            kind = (
                " [dim](software)[/dim]" if target.software else "" if target.executes else " [dim](runs nothing)[/dim]"
            )
            table.add_row(row.stack, target.api, _safe(target.adapter) + kind, _safe(target.driver))
    console.print(table)
    absent = by_mend([missing for row in rows for missing in row.missing])
    if absent:
        console.print("\nNot available here:")
    for mend, stacks in absent.items():
        for missing in stacks:
            where = "".join(f" with {_safe(f'{k}={v}')}" for k, v in missing.environment.items())
            console.print(f"  [bold]{missing.stack}[/bold]{where}: {_safe(missing.reason)}")
        if mend:
            console.print(f"    to add {'it' if len(stacks) == 1 else 'them'}: {_safe(mend)}")
    for row in rows:
        if row.note:
            console.print(_safe(row.note))


def _safe(text: str) -> str:
    """The text without control characters and markup."""
    return escape(plain(text, 2000))


def show_checks(checks: Sequence[DoctorCheck], console: Console | None = None) -> None:
    """Print what would disturb a measurement and what to do about it."""
    console = console or terminal()
    colour = {"ok": "green", "warn": "yellow", "bad": "red"}
    table = Table(title="What would disturb a measurement here", title_justify="left")
    for column in ("", "check", "found", "advice"):
        table.add_column(column, overflow="fold")
    for check in checks:
        mark = f"[{colour[check.status]}]{check.status}[/]"
        table.add_row(mark, _safe(check.name), _safe(check.found), _safe(check.advice))
    console.print(table)
