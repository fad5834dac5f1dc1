"""The long description of a release: README.md with links that hold outside the repository. Hatchling runs it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(\]\()([^)\s]+)(\))")


class LongDescription(MetadataHookInterface):
    """Sets ``readme``. Without ``Repository`` in ``project.urls`` the links stay relative, and a release fails."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field in the metadata of the project."""
        text = Path(self.root, "README.md").read_text("utf-8")
        repository = metadata.get("urls", {}).get("Repository", "")
        if repository:
            text = with_absolute_links(text, repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_absolute_links(text: str, repository: str) -> str:
    """The Markdown text, in which links to files name the repository."""
    base = repository.rstrip("/")

    def absolute(link: re.Match[str]) -> str:
        target = link[2]
        if not is_relative(target):
            return link[0]
        is_picture = target.endswith((".png", ".svg"))
        return f"{link[1]}{base}/{'raw' if is_picture else 'blob'}/main/{target}{link[3]}"

    return LINK.sub(absolute, text)


def is_relative(target: str) -> bool:
    """Whether the target of a link is a file beside the text."""
    return "://" not in target and not target.startswith(("#", "mailto:"))


def relative_links(text: str) -> list[str]:
    """The targets of the links of a Markdown text that are files beside it."""
    return [target for _, target, _ in LINK.findall(text) if is_relative(target)]
