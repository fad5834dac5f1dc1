"""What an extra of this package adds, and the command that installs it.

The command names the packages themselves. So it works from a clone and from a wheel, and needs no index that holds
this package.
"""

from __future__ import annotations

import functools
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+(\[[\w.,-]+\])?)\s*(?P<versions>[^;]*?)\s*(;\s*(?P<marker>.*))?")
_ONLY_AT_LEAST = re.compile(r">=[\w.]+")
_NEEDS_NO_QUOTES = re.compile(r"[\w.-]+")
_OWN_NAME = "overhead"


@functools.cache
def install_command(*extras: str) -> str:
    """The command that adds the packages of these extras, in any shell: ``pip install numba "wgpu==0.32.*"``."""
    packages = dict.fromkeys(package for extra in extras for package in packages_of(extra))
    if not packages:  # whoever copied the folder left out what says it
        return f'pip install ".[{",".join(extras)}]"'
    return " ".join(["pip install", *(p if _NEEDS_NO_QUOTES.fullmatch(p) else f'"{p}"' for p in packages)])


def packages_of(extra: str) -> list[str]:
    """The packages of an extra on this machine, with their versions where the newest one may not serve."""
    found = []
    for requirement in sorted(_requirements(extra)):
        parts = _REQUIREMENT.fullmatch(requirement)
        assert parts is not None, requirement
        if _holds(parts["marker"] or "True", extra):
            versions = "" if _ONLY_AT_LEAST.fullmatch(parts["versions"]) else parts["versions"]
            found.append(parts["name"] + versions)
    return found


def _requirements(extra: str) -> Iterator[str]:
    """The requirements of an extra, as the clone or the metadata of the installed package has them."""
    folder = Path(__file__).resolve().parents[1]
    if (folder / "pyproject.toml").is_file():
        import tomllib

        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        yield from project["optional-dependencies"].get(extra, [])
        return
    from importlib.metadata import distributions

    for distribution in distributions(name=_OWN_NAME, path=[str(folder)]):
        yield from (each for each in distribution.requires or [] if "extra ==" in each)


def _holds(marker: str, extra: str) -> bool:
    """Whether the marker of a requirement holds here. Those of this package are expressions of Python too."""
    names = {
        "extra": extra,
        "platform_machine": platform.machine(),
        "python_version": f"{sys.version_info.major}.{sys.version_info.minor}",
        "sys_platform": sys.platform,
    }
    return bool(eval(marker, {"__builtins__": {}}, names))
