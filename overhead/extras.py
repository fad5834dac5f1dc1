"""What an extra of this package adds, and the command that installs it.

The command names the packages that an extra adds, and not this package with its extra. So it works
from a clone and from a wheel, and needs no index that holds this package.
"""

from __future__ import annotations

import functools
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# The name, the versions and the marker of a requirement such as: mlx[cpu]==0.32.*; sys_platform ==
# 'linux'
_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+(\[[\w.,-]+\])?)\s*(?P<versions>[^;]*?)\s*(;\s*(?P<marker>.*))?"
)
_ONLY_AT_LEAST = re.compile(r">=[\w.]+")
"""Versions that the newest one fulfils, so that they need not be in a command."""
_NEEDS_NO_QUOTES = re.compile(r"[\w.-]+")
"""A package that no shell reads as something else: one without ``*``, ``<`` or ``[``."""
_OWN_NAME = "overhead"


@functools.cache
def install_command(*extras: str) -> str:
    """The command that installs the packages of these extras (the optional sets of packages that
    this one can use), in any shell: ``pip install numba "wgpu==0.32.*"``.
    """
    packages: list[str] = []
    for extra in extras:
        packages += packages_of(extra)
    if not packages:  # a copied folder without pyproject.toml or metadata, which say the packages
        return f'pip install ".[{",".join(extras)}]"'
    # ``_quoted``: in quotes if a shell would read a character of it as something else.
    each_once = dict.fromkeys(packages)
    return " ".join(["pip install", *map(_quoted, each_once)])


def _quoted(package: str) -> str:
    return package if _NEEDS_NO_QUOTES.fullmatch(package) else f'"{package}"'


def packages_of(extra: str) -> list[str]:
    """The packages of an extra on this machine, with their versions where the newest one may not
    serve.

    - ``mlx[cpu]==0.32.*; sys_platform == 'linux'``: ``mlx[cpu]==0.32.*`` on Linux, nothing
      elsewhere
    - ``jax>=0.5``: ``jax``, since pip installs the newest
    """
    found = []
    for requirement in sorted(_requirements(extra)):
        parts = _REQUIREMENT.fullmatch(requirement)
        assert parts is not None, requirement
        marker = parts["marker"]  # says on which systems the package is needed
        if marker and not _holds(marker, extra):
            continue
        serves_newest = _ONLY_AT_LEAST.fullmatch(parts["versions"]) is not None
        versions = "" if serves_newest else parts["versions"]
        found.append(parts["name"] + versions)
    return found


def extra_with(module: str) -> str:
    """The first extra (optional set of packages) that installs this module on this machine; ''
    if there is none. Only names are compared: a package counts as that of a module if it has the
    same name, ``-`` and ``_`` aside.
    """
    # Of a module inside a package, the package.
    wanted = module.partition(".")[0].lower()
    for extra in _extras():
        for package in packages_of(extra):
            name = re.split(r"[^\w.-]", package)[0]  # without its versions
            if name.replace("-", "_").lower() == wanted:
                return extra
    return ""


def _extras() -> list[str]:
    """The names of all extras, in the order of ``pyproject.toml``."""
    of_clone = _extras_of_clone()
    if of_clone is not None:
        return list(of_clone)
    # Outside of a clone, each requirement in the metadata of the package names its extra.
    names: list[str] = []
    # The argument changes nothing here: all requirements come.
    for requirement in _requirements(""):
        names += re.findall(r"extra == [\"']([\w.-]+)", requirement)
    return list(dict.fromkeys(names))


def _folder() -> Path:
    """The folder that holds this package: a clone, or the folder of installed packages."""
    return Path(__file__).resolve().parents[1]


def _extras_of_clone() -> dict[str, list[str]] | None:
    """The requirements of each extra by its name, from ``pyproject.toml``; None where this package
    was installed and not cloned, so that there is no such file.
    """
    file = _folder() / "pyproject.toml"
    if not file.is_file():
        return None
    import tomllib

    project = tomllib.loads(file.read_text("utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return extras


def _requirements(extra: str) -> Iterator[str]:
    """The requirements of an extra: of ``pyproject.toml`` in a clone, else of the metadata of the
    installed package.

    The metadata has those of all extras, each with a marker such as ``extra == "torch"``;
    ``_holds`` chooses.
    """
    of_clone = _extras_of_clone()
    if of_clone is not None:
        yield from of_clone.get(extra, [])
        return
    from importlib.metadata import distributions

    # Only in this folder: elsewhere another version of this package may be installed too.
    for distribution in distributions(name=_OWN_NAME, path=[str(_folder())]):
        for requirement in distribution.requires or []:
            is_of_an_extra = "extra ==" in requirement
            if is_of_an_extra:
                yield requirement


def _holds(marker: str, extra: str) -> bool:
    """Whether the marker of a requirement holds here: ``sys_platform == "linux" and extra ==
    "mlx"``.

    The markers of this package are also Python expressions of these four names, so ``eval`` reads
    them. The package ``packaging``, which reads all markers, is no dependency of this one.
    """
    names = {
        "extra": extra,
        "platform_machine": platform.machine(),
        "python_version": f"{sys.version_info.major}.{sys.version_info.minor}",
        "sys_platform": sys.platform,
    }
    # Without builtins the marker can name these four values and nothing else.
    return bool(eval(marker, {"__builtins__": {}}, names))
