"""The static site: its menu has every document, and a broken link is an error."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts import site

DOCS = site.ROOT / "docs"


def test_the_menu_has_every_document_once_and_only_pages_that_exist() -> None:
    home, measurements, *sections, changes = site.navigation((DOCS / "index.md").read_text("utf-8"))
    assert [*home, *measurements, *changes] == ["Home", "Measurements", "Changes"]
    pages = [
        page for section in sections for entries in section.values() for entry in entries for page in entry.values()
    ]
    assert {f"docs/{path.name}" for path in DOCS.glob("*.md")} - {"docs/index.md"} <= set(pages)
    assert all((site.ROOT / page).is_file() for page in pages)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two documents, whose runs need not be drawn."""
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (root / "CHANGELOG.md").write_text("# Changes\n", "utf-8")
    (root / "README.md").write_text("# Home\n\n[One](docs/one.md#part)\n", "utf-8")
    (root / "docs" / "index.md").write_text("# Documents\n\nUsing it\n\n- [One](one.md): a page.\n", "utf-8")
    (root / "docs" / "one.md").write_text("# One\n\n## Part\n\n[Home](../README.md)\n", "utf-8")

    def draw(paths: list[Path], out: Path) -> None:
        out.mkdir()
        (out / "index.html").write_text("<html></html>", "utf-8")

    monkeypatch.setattr(site, "ROOT", root)
    monkeypatch.setattr(site, "COPIED", ("README.md", "CHANGELOG.md", "docs"))
    monkeypatch.setattr(site, "build", draw)
    return root


@pytest.mark.needs("material")
def test_the_site_has_the_documents_and_the_measurements(small: Path, tmp_path: Path) -> None:
    first = site.write(tmp_path / "out")
    assert 'href="report/index.html"' in first.read_text("utf-8")
    assert 'href="docs/one.html#part"' in first.read_text("utf-8")
    assert (first.parent / "report" / "index.html").is_file()


@pytest.mark.needs("material")
@pytest.mark.parametrize("link", ["docs/two.md", "docs/one.md#other"])
def test_a_broken_link_is_an_error(small: Path, tmp_path: Path, link: str) -> None:
    (small / "README.md").write_text(f"# Home\n\n[Broken]({link})\n", "utf-8")
    with pytest.raises(subprocess.CalledProcessError):
        site.write(tmp_path / "out")
