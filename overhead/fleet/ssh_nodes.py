"""Measure hosts by ssh, which asks for no password."""

from __future__ import annotations

import asyncio
import functools
import re
import shlex
import shutil
from pathlib import Path

from overhead.bounded_files import read_whole
from overhead.errors import BadFile, UsageError
from overhead.fleet.collecting import END_S, Measure, Sent, run_program
from overhead.runner.output import folder_name

_AT_ONCE = 32
_SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20")
_HOST = re.compile(r"(?!-)([\w.+-]+@)?(?!-)[\w.:%-]+")


def ssh_nodes(path: Path, script: str, limit_s: float) -> dict[str, Measure]:
    """The hosts that a file names, one a line. ``script``: what each runs. Raises
    ``UsageError``.
    """
    if shutil.which("ssh") is None:
        raise UsageError("--hosts: no program ssh on PATH")
    found: dict[str, Measure] = {}
    slots = asyncio.Semaphore(_AT_ONCE)
    for number, line in enumerate(
        read_whole(path, 1_000_000).decode(errors="replace").splitlines(), 1
    ):
        host = line.partition("#")[0].strip()
        name = folder_name(host.rpartition("@")[2])
        if host and name in found:
            raise BadFile(f"line {number}: {host[:100]}: named twice", path)
        if host and not _HOST.fullmatch(host):
            raise BadFile(f"line {number}: {host[:100]}: no host: write host or user@host", path)
        if host:
            found[name] = functools.partial(_measure, slots, host, script, limit_s + END_S)
    if not found:
        raise BadFile("names no host", path)
    return found


async def _measure(slots: asyncio.Semaphore, host: str, script: str, limit_s: float) -> Sent:
    async with slots:
        # The login shell of the host may be any; all know exec and these quotes.
        return await run_program([*_SSH, host, f"exec sh -c {shlex.quote(script)}"], limit_s)
