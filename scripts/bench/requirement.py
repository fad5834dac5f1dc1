"""A requirement that a bench checks against its results."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console


@dataclass(frozen=True)
class Requirement:
    """``words``: the requirement with the measured value. ``holds``: whether the value meets it."""

    words: str
    holds: bool


def print_requirements(requirements: list[Requirement], console: Console) -> None:
    """A line a requirement: whether it holds, and its measured value."""
    for requirement in requirements:
        verdict = "holds " if requirement.holds else "FAILS "
        console.print(f"{verdict} {requirement.words}", highlight=False)
