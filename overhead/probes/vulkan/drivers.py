"""The SwiftShader driver that Chromium and related browsers install, and the environment that selects it.

This module only reads files, because the parent process uses it. All stacks that use the Vulkan loader share it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

DRIVER_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
"""Variables that list drivers for the loader: the name since loader 1.3.207, and the name for older loaders."""

_MANIFEST = "vk_swiftshader_icd.json"


def environments() -> list[dict[str, str]]:
    """Environment variables to add: none, and those with which the loader finds only SwiftShader.

    The second set is left out if SwiftShader is not installed, or if the environment already names drivers.
    """
    found: list[dict[str, str]] = [{}]
    manifest = swiftshader_icd()
    if manifest is not None and not any(os.environ.get(variable) for variable in DRIVER_VARIABLES):
        found.append({variable: str(manifest) for variable in DRIVER_VARIABLES})
    return found


def swiftshader_icd() -> Path | None:
    """The driver manifest of the first SwiftShader that is found, or None."""
    return next((path for path in _manifests() if path.is_file()), None)


def _manifests() -> Iterator[Path]:
    """The paths where Chromium, Chrome, Edge and Playwright install the manifest on Linux, macOS and Windows."""
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
