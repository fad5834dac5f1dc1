"""How the host's time of a call divides: your Python, a library's Python, its compiled code, the operating system.

It is formed from samples of one process: where its thread was, at random moments at which the call ran.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from overhead.explain.sampled_thread import SampledThread
from overhead.explain.thread_sampler import Sample
from overhead.results import Figure, Why, because

PartName = Literal["own-python", "library-python", "binding", "library", "binding-and-library", "driver", "system"]
PARTS: tuple[PartName, ...] = (
    "own-python", "library-python", "binding", "library", "binding-and-library", "driver", "system",
)  # fmt: skip
"""In the order in which a call passes them."""
_COMPILED = ("binding", "library", "driver")
STANDARD = "the standard library"
_FEWEST = 100
"""With fewer samples nothing is said."""
_Z = 1.96
_FOREIGN_SHARE = 0.25
"""An instruction runs compiled code of a library if the thread was in such code in this share of its samples. The rest
are functions of the interpreter and of the C library that this code calls."""
_SEPARATE_FROM = 0.02
"""A binding is told from its library if each is in this share of the samples of both."""
_OWN_FILES = ("<overhead statement", "<ipython-input", "<stdin>", "<string>")
_SYSTEM_OBJECTS = (
    "[",
    "ld-",
    "ld.",
    "libc.",
    "libc-",
    "libgcc_s",
    "libm.",
    "libm-",
    "libmvec",
    "libpthread",
    "libstdc++",
)
"""How the names of objects begin that any code calls."""
_DRIVERS = ("libcuda.", "libnvidia-", "libamdhip64", "libhsa-", "libze_", "libvulkan", "libGL")
_EXTENSION = re.compile(r"python|\.abi3\.|^_C\.", re.IGNORECASE)
"""What only the names of objects have that Python imports, or that are its interface to a library."""
GENERATED = "generated code"
"""What machine code in no file is called: a compiler made it while the program ran."""


class Part(Struct, frozen=True, kw_only=True):
    """A part of the host's time of a call. ``share``: from 0 to 1. ``of``: the packages, the largest first.

    ``objects``: the files with the compiled code, each with its share of the time of the call.
    """

    name: PartName
    share: Figure
    of: list[str] = []
    objects: dict[str, float] = {}


class Division(Struct, frozen=True, kw_only=True):
    """How the host's time of a call divides; the shares of ``parts`` add up to 1.

    It is that of one process, until the call returns. ``reason``: why there are no parts.
    """

    parts: list[Part] = []
    samples: int = 0
    reason: Why = ""

    def part(self, name: PartName) -> Part | None:
        """The part with this name; None if the call has none."""
        return next((part for part in self.parts if part.name == name), None)


def divided(samples: Sequence[Sample], thread: SampledThread) -> Division:
    """The division of the samples that were taken while the statement ran."""
    names = _Names(thread)
    kept = [sample for sample in samples if not names.is_suite(sample.file)]
    if len(kept) < _FEWEST:
        return Division(samples=len(kept), reason=because("too-few-samples", samples=len(kept), fewest=_FEWEST))
    owner_of_site = _native_sites(kept, names)
    found: dict[PartName, Counter[str]] = defaultdict(Counter)
    objects: dict[PartName, Counter[str]] = defaultdict(Counter)
    unknown = 0
    for sample in kept:
        name, package = _part_of(sample, names, owner_of_site)
        if package is None:
            unknown += 1
            continue
        found[name][package] += 1
        if name in _COMPILED and names.is_foreign(sample.object):
            objects[name][_file_name(sample.object) or GENERATED] += 1
    _join_if_one(found, objects)
    return Division(parts=_parts(found, objects, unknown), samples=len(kept))


def _part_of(sample: Sample, names: _Names, owner_of_site: Mapping[int, str]) -> tuple[PartName, str | None]:
    """The part of one sample, and its package; None for a package that is not known."""
    if sample.in_system:
        return "system", ""
    package = owner_of_site.get(sample.instruction)
    if package is None and names.is_foreign(sample.object):
        package = names.package_of_object(sample.object)
    if package is None:
        own = names.package_of_file(sample.file)
        return ("own-python" if own == "" else "library-python"), own
    if _is_driver(sample.object):
        return "driver", _file_name(sample.object)
    if names.is_foreign(sample.object) and not _EXTENSION.search(_file_name(sample.object)):
        return "library", package
    return "binding", package


def _native_sites(samples: Iterable[Sample], names: _Names) -> dict[int, str]:
    """By the address of an instruction that runs compiled code of a library: the package of that code."""
    counted: dict[int, Counter[str]] = defaultdict(Counter)
    for sample in samples:
        is_foreign = names.is_foreign(sample.object)
        counted[sample.instruction][names.package_of_object(sample.object) if is_foreign else ""] += 1
    found = {}
    for instruction, packages in counted.items():
        of_others = packages.pop("", 0)
        if packages and packages.total() >= _FOREIGN_SHARE * (packages.total() + of_others):
            found[instruction] = packages.most_common(1)[0][0]
    return found


def _join_if_one(found: dict[PartName, Counter[str]], objects: dict[PartName, Counter[str]]) -> None:
    """Make one part of binding and library where they cannot be told apart, as in an object that is both."""
    binding, library = found["binding"].total(), found["library"].total()
    least = _SEPARATE_FROM * (binding + library)
    if library > least and objects["binding"].total() > least:
        return
    for kind in ("binding", "library"):
        found["binding-and-library"] += found.pop(kind)
        objects["binding-and-library"] += objects.pop(kind, Counter())


def _parts(
    found: Mapping[PartName, Counter[str]], objects: Mapping[PartName, Counter[str]], unknown: int
) -> list[Part]:
    """The parts that any sample is of. Those of unknown Python code are shared out as the known ones of Python are."""
    python = sum(found[name].total() for name in ("own-python", "library-python") if name in found)
    whole = sum(packages.total() for packages in found.values()) + unknown
    parts = []
    for name in PARTS:
        packages = found.get(name) or Counter()
        seen = float(packages.total())
        if unknown and name in ("own-python", "library-python"):
            seen += unknown * (seen / python if python else float(name == "own-python"))
        if seen:
            parts.append(
                Part(
                    name=name,
                    share=_share(seen, whole),
                    of=[package for package, _ in packages.most_common() if package],
                    objects={one: n / whole for one, n in objects.get(name, Counter()).most_common()},
                )
            )
    return parts


def _share(seen: float, whole: int) -> Figure:
    """The share with Wilson's interval, which holds for shares near 0 and 1 too."""
    share = seen / whole
    middle = (share + _Z**2 / (2 * whole)) / (1 + _Z**2 / whole)
    half = _Z / (1 + _Z**2 / whole) * (share * (1 - share) / whole + _Z**2 / (4 * whole**2)) ** 0.5
    low, high = min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half))
    return Figure(name="share", unit="share", value=share, low=low, high=high, processes=1)


class _Names:
    """Which package a file of Python code, or of machine code, belongs to."""

    def __init__(self, thread: SampledThread) -> None:
        self._thread = thread

    def is_suite(self, file: str) -> bool:
        """Whether this is code of the suite, which calls the statement."""
        return file.startswith(f"{self._thread.suite}/")

    def package_of_file(self, file: str) -> str | None:
        """The package of Python code; '' for the user's own, None where it is not known."""
        if file.startswith(_OWN_FILES):
            return ""
        if file.startswith("<frozen"):
            return STANDARD
        if not file or file.startswith("<"):
            return None
        return self._installed(file)

    def package_of_object(self, file: str) -> str:
        """The package of machine code, or the name of its file."""
        if not file:
            return GENERATED
        return self._installed(file).partition(".libs")[0] or _file_name(file).partition(".so")[0]

    def is_foreign(self, file: str) -> bool:
        """Whether this machine code is a library's: neither the interpreter's nor what any code calls."""
        name = _file_name(file)
        if not file:
            return True
        is_interpreter = name.startswith("libpython") or file == self._thread.executable
        return not is_interpreter and not name.startswith(_SYSTEM_OBJECTS)

    def _installed(self, file: str) -> str:
        """The package that is installed there; '' for other files."""
        for folder in self._thread.folders:
            if file.startswith(f"{folder}/"):
                return file.removeprefix(f"{folder}/").partition("/")[0].removesuffix(".py").partition(".cpython-")[0]
        is_standard = any(file.startswith(f"{folder}/") for folder in self._thread.standard)
        return STANDARD if is_standard else ""


def _is_driver(file: str) -> bool:
    return _file_name(file).startswith(_DRIVERS)


def _file_name(file: str) -> str:
    return PurePosixPath(file).name
