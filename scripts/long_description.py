"""The long description of a release: README.md with links that hold outside the repository.

An index of packages shows it on the page of the release. Hatchling runs this file at each build,
also at that of an sdist by ``pip install .``: ``tool.hatch.metadata.hooks.custom`` in
pyproject.toml names it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)\s]+)(?P<after>\))")
"""The end of a link or of a picture: ``](docs/time.md)``."""


class LongDescription(MetadataHookInterface):
    """Sets ``readme`` in the metadata.

    Without ``Repository`` in ``project.urls`` the links stay relative. A build from a copy of the
    folder works then, and the checks of a release fail (``scripts/release.py``).
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field in the metadata of the project."""
        text = Path(self.root, "README.md").read_text("utf-8")
        repository = metadata.get("urls", {}).get("Repository", "")
        if repository:
            text = with_absolute_links(text, repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_absolute_links(text: str, repository: str) -> str:
    """The Markdown text, in which links to files name the repository.

    ``[time](docs/time.md)`` gets ``https://…/blob/main/docs/time.md``, the page that shows the
    file; a picture gets ``https://…/raw/main/docs/explain.svg``, the file itself, since a page is
    no picture.
    """
    base = repository.rstrip("/")

    def absolute(link: re.Match[str]) -> str:
        target = link["target"]
        if not is_relative(target):
            return link[0]
        is_picture = target.endswith((".png", ".svg"))
        kind = "raw" if is_picture else "blob"
        return f"{link['before']}{base}/{kind}/main/{target}{link['after']}"

    return LINK.sub(absolute, text)


def is_relative(target: str) -> bool:
    """Whether the target of a link is a file beside the text."""
    return "://" not in target and not target.startswith(("#", "mailto:"))


def relative_links(text: str) -> list[str]:
    """The targets of the links of a Markdown text that are files beside it."""
    targets = [link["target"] for link in LINK.finditer(text)]
    return [target for target in targets if is_relative(target)]
