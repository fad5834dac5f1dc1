"""What a bench says of its numbers: sentences that they bear out or don't."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console


@dataclass(frozen=True)
class Requirement:
    """A sentence that the numbers bear out or don't."""

    words: str
    holds: bool


def print_claims(claims: list[Requirement], console: Console) -> None:
    for claim in claims:
        console.print(f"{'holds ' if claim.holds else 'FAILS '} {claim.words}", highlight=False)
