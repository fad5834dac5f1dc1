"""Where Vulkan drivers may be found beside the system's own: SwiftShader in the folders of Chromium's relatives.

Files only, so that the parent may ask. Shared by every stack that sits on the Vulkan loader.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

DRIVER_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
"""The loader's list of drivers: the name since loader 1.3.207, and the older one, which older loaders alone know."""

_MANIFEST = "vk_swiftshader_icd.json"


def environments() -> list[dict[str, str]]:
    """The environment as it is and, unless it names drivers already, one that leads the loader to SwiftShader alone."""
    found: list[dict[str, str]] = [{}]
    manifest = swiftshader_icd()
    if manifest is not None and not any(os.environ.get(variable) for variable in DRIVER_VARIABLES):
        found.append({variable: str(manifest) for variable in DRIVER_VARIABLES})
    return found


def swiftshader_icd() -> Path | None:
    """The driver manifest of the first SwiftShader found, or None."""
    return next((path for path in _manifests() if path.is_file()), None)


def _manifests() -> Iterator[Path]:
    """Where Chromium, Chrome, Edge and Playwright put the manifest on Linux, macOS and Windows."""
    for folder in (
        "/usr/lib/chromium",
        "/usr/lib64/chromium-browser",
        "/usr/lib/chromium-browser",
        "/opt/google/chrome",
        "/opt/microsoft/msedge",
        "/snap/chromium/current/usr/lib/chromium-browser",
    ):
        yield Path(folder, _MANIFEST)
    yield from _newest(Path.home() / ".cache/ms-playwright", f"chromium-*/chrome-linux*/{_MANIFEST}")
    for name in ("Google Chrome", "Chromium", "Microsoft Edge"):
        framework = f"{name}.app/Contents/Frameworks/{name} Framework.framework"
        yield Path("/Applications", framework, "Versions/Current/Libraries", _MANIFEST)
    for variable in ("ProgramFiles", "ProgramFiles(x86)"):
        root = os.environ.get(variable)
        for product in ("Google/Chrome", "Chromium", "Microsoft/Edge") if root else ():
            yield from _newest(Path(str(root), product, "Application"), f"*/{_MANIFEST}")


def _newest(root: Path, pattern: str) -> list[Path]:
    return sorted(root.glob(pattern), reverse=True) if root.is_dir() else []
