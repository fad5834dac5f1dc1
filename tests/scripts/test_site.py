"""The static site: its menu has every document, and a broken link is an error."""

from __future__ import annotations

from scripts import site

DOCS = site.ROOT / "docs"


def test_the_menu_of_the_site_has_every_document_once_and_no_missing_page() -> None:
    index = (DOCS / "index.md").read_text("utf-8")
    home, measurements, measure, *sections, changes = site.navigation(index)
    assert [*home] == ["Home"]
    assert [*measurements] == ["Measurements"]
    assert [*measure] == ["Measure this browser"]
    assert [*changes] == ["Changes"]

    pages: list[str] = []
    for section in sections:
        (links,) = section.values()
        for link in links:
            pages += link.values()
    documents = {f"docs/{path.name}" for path in DOCS.glob("*.md")}
    missing = documents - {"docs/index.md"} - set(pages)
    assert not missing
    for page in pages:
        assert (site.ROOT / page).is_file(), page
