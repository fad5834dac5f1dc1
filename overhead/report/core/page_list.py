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
    """

    name: str
    title: str
    path: str
    any_machine: bool = False
    parent: str = ""


def _page(name: str, title: str, *, any_machine: bool = False) -> ReportPage:
    return ReportPage(name, title, f"{PAGES_FOLDER}/{name}.html", any_machine)


FRONT = ReportPage("front", "Overview", "index.html", any_machine=True)
METHOD = _page("method", "Method", any_machine=True)
PAGES = (
    FRONT,
    _page("chains", "Chains and workloads"),
    _page("synchronisation", "Synchronisation"),
    _page("variants", "What one change does"),
    _page("cases", "All cases"),
    _page("machines", "All machines", any_machine=True),
    _page("claims", "Claims", any_machine=True),
    METHOD,
)


def page_named(name: str) -> ReportPage:
    """The page of that name. Raises ``UsageError`` if there is none."""
    found = next((page for page in PAGES if page.name == name), None)
    if found is None:
        raise UsageError(f"no page is named {name!r}; there are {', '.join(page.name for page in PAGES)}")
    return found


def subpage(parent: str, name: str, title: str) -> ReportPage:
    """A page below the page ``parent``, such as that of one workload. ``name``: letters, digits and hyphens."""
    return ReportPage(name, title, f"{PAGES_FOLDER}/{parent}-{name}.html", parent=parent)


def slug(name: str) -> str:
    """The name as lower-case letters, digits and hyphens, for files and ids: names may come from a fingerprint."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "unnamed"
