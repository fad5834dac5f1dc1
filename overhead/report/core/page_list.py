"""The pages of a report, in the order of the navigation. Each section names the page that it stands on."""

from __future__ import annotations

import dataclasses
import re

from overhead.errors import UsageError

PAGES_FOLDER = "pages"


@dataclasses.dataclass(frozen=True)
class ReportPage:
    """A page. ``path``: its file in the folder of the report. ``parent``: the name of the page that it belongs to.

    ``any_machine``: it is about all machines or about none, so the pages of the other machines link to it too.
    ``answers``: a sentence at its top on what the page answers.
    """

    name: str
    title: str
    path: str
    any_machine: bool = False
    parent: str = ""
    answers: str = ""


def _page(name: str, title: str, answers: str, *, any_machine: bool = False) -> ReportPage:
    return ReportPage(name, title, f"{PAGES_FOLDER}/{name}.html", any_machine, answers=answers)


FRONT = ReportPage("front", "Overview", "index.html", any_machine=True)
METHOD = _page(
    "method",
    "Method",
    "How a cost is measured, why no total is divided by a count, and what must hold before a number is shown.",
    any_machine=True,
)
PAGES = (
    FRONT,
    _page("chains", "Chains and workloads", "Which way to run many dependent steps, by workload, size and length."),
    _page(
        "decode",
        "Decoding tokens",
        "What a token of a language model costs through each stack, what each fusion of dispatches saves, what one "
        "dispatch costs in a real program, and from which batch on overhead stops mattering.",
    ),
    _page(
        "synchronisation",
        "Synchronisation",
        "What it costs to wait for the device or to read a value back, and what that does to a step.",
    ),
    _page("operations", "Operations", "What an operation of PyTorch costs, by kind."),
    _page(
        "variants",
        "What one change does",
        "What a case costs when one thing about it changes: its caller, its arguments, its wait, its passes. Base "
        "case and variant of a comparison come from one run.",
    ),
    _page("cases", "All cases", "Every figure of this machine, how the figures check each other, and what is missing."),
    _page("machines", "All machines", "The same figures of every machine, side by side.", any_machine=True),
    _page("claims", "Claims", "What others published, and what these measurements say of it.", any_machine=True),
    METHOD,
)


def page_named(name: str) -> ReportPage:
    """The page of that name. Raises ``UsageError`` if there is none."""
    found = next((page for page in PAGES if page.name == name), None)
    if found is None:
        raise UsageError(f"no page is named {name!r}; there are {', '.join(page.name for page in PAGES)}")
    return found


def subpage(parent: str, name: str, title: str, answers: str = "") -> ReportPage:
    """A page below the page ``parent``, such as that of one workload. ``name``: letters, digits and hyphens."""
    return ReportPage(name, title, f"{PAGES_FOLDER}/{parent}-{name}.html", parent=parent, answers=answers)


def slug(name: str) -> str:
    """The name as lower-case letters, digits and hyphens, for files and ids: names may come from a fingerprint."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "unnamed"
