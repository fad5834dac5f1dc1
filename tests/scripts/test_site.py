"""The static site: its menu has every document, and a broken link is an error."""

from __future__ import annotations

from scripts import site

DOCS = site.ROOT / "docs"


def test_the_menu_of_the_site_has_every_document_once_and_no_missing_page() -> None:
    home, measurements, measure, *sections, changes = site.navigation(
        (DOCS / "index.md").read_text("utf-8")
    )
    assert [*home, *measurements, *measure, *changes] == [
        "Home",
        "Measurements",
        "Measure this browser",
        "Changes",
    ]
    pages = [
        page
        for section in sections
        for entries in section.values()
        for entry in entries
        for page in entry.values()
    ]
    assert {f"docs/{path.name}" for path in DOCS.glob("*.md")} - {"docs/index.md"} <= set(pages)
    assert all((site.ROOT / page).is_file() for page in pages)
