"""A script that completes the commands, options and names of ``overhead`` in a shell. It runs nothing when used."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from overhead.errors import UsageError
from overhead.probes import registry
from overhead.results import Pattern
from overhead.workloads import stack_works, workloads


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for this shell. Raises ``UsageError`` if the package ``shtab``, which writes it, is missing."""
    try:
        shtab: Any = importlib.import_module("shtab")
    except ImportError:
        raise UsageError("completion needs the package shtab: pip install shtab") from None
    names = {
        "STACK": sorted(registry()),
        "PATTERN": get_args(Pattern),
        "WORKLOAD": sorted({*stack_works(), *workloads()}),
    }
    for action in _actions(parser):
        if action.metavar in names:
            action.choices = names[str(action.metavar)]
        elif action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell=shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
