"""The pages of a report, in the order of the navigation. Each section names the page that it stands
on.
"""

from __future__ import annotations

import dataclasses
import re

from overhead.errors import UsageError
from overhead.slices import of_features

PAGES_FOLDER = "pages"


@dataclasses.dataclass(frozen=True)
class ReportPage:
    """A page. ``path``: its file in the folder of the report. ``parent``: the name of the page that
    it belongs to.

    ``order``: its place in the navigation. ``answers``: a sentence at its top on what the page
    answers.
    """

    name: str
    title: str
    path: str
    order: int = 0
    parent: str = ""
    answers: str = ""

    @property
    def id(self) -> str:
        """The name of the page among all pages: one of a stack may have the name of another page,
        so it is told apart by the page that it belongs to.
        """
        return slug(f"{self.parent} {self.name}" if self.parent else self.name)


_pages: dict[str, ReportPage] = {}


def register_page(name: str, title: str, order: int, answers: str) -> ReportPage:
    """Add a page to the navigation, sorted by ``order``, and return it. A slice does so where its
    sections are.
    """
    _pages[name] = ReportPage(name, title, f"{PAGES_FOLDER}/{name}.html", order, answers=answers)
    return _pages[name]


FRONT = _pages["front"] = ReportPage("front", "Overview", "index.html")
register_page(
    "chains",
    "CUDA graph or fused kernel",
    10,
    "Which variant runs many dependent steps fastest: a CUDA graph, or one fused kernel"
    " (megakernel)?",
)
register_page(
    "synchronisation",
    "Synchronisation",
    30,
    "What it costs to wait for the GPU or to read a value back, and what that does to a step.",
)
register_page(
    "lines", "Behind the figures", 55, "The times behind each figure, and why some are noisy."
)
register_page("cases", "All cases", 60, "Every figure of this machine, and what is missing.")
register_page(
    "machines",
    "Machines and vendors",
    70,
    "What a kernel launch costs on the devices of every vendor.",
)
METHOD = register_page(
    "method",
    "Method and terms",
    90,
    "How a cost is measured, what must hold before a number is shown, and what each term means.",
)


def pages() -> list[ReportPage]:
    """All pages in the order of the navigation, those of slices too."""
    for kind in ("sections", "across"):
        of_features(kind)
    return sorted(_pages.values(), key=lambda page: page.order)


def page_named(name: str) -> ReportPage:
    """The page that is registered with this name. Raises ``UsageError`` if there is none."""
    if name not in _pages:
        raise UsageError(f"no page is named {name!r}; there are {', '.join(_pages)}")
    return _pages[name]


def subpage(parent: str, name: str, title: str) -> ReportPage:
    """A page below the page named ``parent``, such as that of one workload. ``name``: letters,
    digits and hyphens.
    """
    return ReportPage(name, title, f"{PAGES_FOLDER}/{parent}-{name}.html", parent=parent)


def slug(name: str) -> str:
    """The name as lower-case letters, digits and hyphens, safe for files and ids; "unnamed" if
    nothing is left.
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "unnamed"
