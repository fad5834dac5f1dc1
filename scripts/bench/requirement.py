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
    for requirement in requirements:
        console.print(
            f"{'holds ' if requirement.holds else 'FAILS '} {requirement.words}", highlight=False
        )
