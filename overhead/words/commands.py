"""What the commands say beside their answers."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.results import Why
from overhead.words.reasons import sentence


def interrupted(journals: Sequence[str], command: str) -> str:
    """Where everything is that an interrupted run has measured, and how to see it."""
    return f"interrupted; what was measured is in {' and '.join(journals)}; to see it: {command}"


def required_stack_missing(stack: str, reason: Why) -> str:
    """Why a stack that the run must measure gave no figure."""
    return f"the required stack {stack} gave no figure: {sentence(reason)}"


def nothing_measured(file: str) -> str:
    """Where to look when no case was measured."""
    return f"nothing was measured; overhead show {file} says why"


def page_is_at(path: str) -> str:
    """Where the page for a browser is, and what to do with it."""
    return (
        f"page: {path}; open it in a browser, let it measure, save its file, then: overhead browser"
        " --import FILE"
    )
