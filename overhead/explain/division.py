"""How the host's time of a call divides: your Python, a library's Python, its compiled code, the operating system.

It is formed from samples of one process: where its thread was, at random moments at which the call ran.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from overhead.explain.sampled_thread import SampledThread
from overhead.explain.thread_sampler import Sample
from overhead.results import Figure, Why, because

PartName = Literal["own-python", "library-python", "binding", "library", "binding-and-library", "driver", "system"]
_Counted = PartName | Literal["python", "interpreter", "either"]
"""What a sample counts for: a part, or what is given to parts later: Python code of no known file, functions of the
interpreter, and those that any code calls, in an instruction that runs compiled code of a library."""
PARTS: tuple[PartName, ...] = (
    "own-python", "library-python", "binding", "library", "binding-and-library", "driver", "system",
)  # fmt: skip
"""In the order in which a call passes them."""
_COMPILED_PARTS: tuple[PartName, ...] = ("binding-and-library", "binding", "library", "driver")
STANDARD = "the standard library"
_FEWEST = 50
"""With fewer samples nothing is said."""
_Z = 1.96
_FOREIGN_SHARE = 0.05
"""An instruction runs compiled code of a library if the thread was in such code in this share of its samples. The rest
are functions of the interpreter and of the C library that this code calls. To free a tensor of PyTorch is an
instruction with 23 % in such code, the least that was seen; an instruction of the interpreter alone has none."""
_SEPARATE_FROM = 0.02
"""A binding is told from its library if each is in this share of the samples of both."""
_NAMED_SHARE = 0.05
"""A further package is named for a part if it is in this share of all samples."""
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


class CallPart(Struct, frozen=True, kw_only=True):
    """A part of the host's time of a call. ``share``: from 0 to 1. ``of``: its packages, the largest first; further
    ones only with 5 % of the time of the call.

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

    parts: list[CallPart] = []
    samples: int = 0
    reason: Why = ""

    def part(self, name: PartName) -> CallPart | None:
        """The part with this name; None if the call has none."""
        return next((part for part in self.parts if part.name == name), None)


def divided(samples: Sequence[Sample], thread: SampledThread) -> Division:
    """The division of the samples that were taken while the statement ran."""
    names = _Names(thread)
    kept = [sample for sample in samples if not names.is_suite(sample.file)]
    if len(kept) < _FEWEST:
        return Division(samples=len(kept), reason=because("too-few-samples", samples=len(kept), fewest=_FEWEST))
    native_sites = _native_sites(kept, names)
    seen = _Seen()
    for sample in kept:
        seen.add(*_part_of(sample, names, native_sites), _file_name(sample.object) or GENERATED)
    seen.settle()
    return Division(parts=seen.parts(len(kept)), samples=len(kept))


def _part_of(sample: Sample, names: _Names, native_sites: Collection[int]) -> tuple[_Counted, str]:
    """What a sample counts for, and the package of its own code."""
    if sample.in_system:
        return "system", ""
    name = _file_name(sample.object)
    if names.is_foreign(sample.object):
        if name.startswith(_DRIVERS):
            return "driver", name.partition(".so")[0]
        return "binding" if _EXTENSION.search(name) else "library", names.package_of_object(sample.object)
    if sample.instruction in native_sites:
        return "either" if name.startswith(_SYSTEM_OBJECTS) else "interpreter", ""
    own = names.package_of_file(sample.file)
    if own is None:
        return "python", ""
    return ("library-python", own) if own else ("own-python", "")


def _native_sites(samples: Sequence[Sample], names: _Names) -> set[int]:
    """The addresses of the instructions that run compiled code of a library."""
    all_samples = Counter(sample.instruction for sample in samples)
    foreign = Counter(sample.instruction for sample in samples if names.is_foreign(sample.object))
    return {site for site, count in foreign.items() if count >= _FOREIGN_SHARE * all_samples[site]}


class _Seen:
    """How many samples count for each part."""

    def __init__(self) -> None:
        self._counts: dict[str, float] = defaultdict(float)
        self._either = 0.0
        self._packages: dict[str, Counter[str]] = defaultdict(Counter)
        self._objects: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, kind: _Counted, package: str, object: str) -> None:
        """Count one sample."""
        self._counts[kind] += 1
        if package:
            self._packages[kind][package] += 1
        if kind in _COMPILED_PARTS:
            self._objects[kind][object] += 1

    def settle(self) -> None:
        """Give to the parts what counts for none of them by itself."""
        # The thread ran between two functions of Python, and the interpreter keeps no file for that.
        self._share_out("python", ("own-python", "library-python"))
        extension, library = self._counts["binding"], self._counts["library"]
        if min(extension, library) <= _SEPARATE_FROM * (extension + library):
            for kind in ("binding", "library"):
                self._move(kind, "binding-and-library")
        is_separate = self._counts["binding"] > 0
        # Functions of the interpreter that take the arguments of a call and make the objects of its result.
        self._move("interpreter", "binding" if is_separate else "binding-and-library")
        self._either = self._counts["either"]
        self._share_out("either", _COMPILED_PARTS)

    def parts(self, whole: int) -> list[CallPart]:
        """The parts that any sample counts for, and the user's own Python, of which everybody asks."""
        return [
            CallPart(
                name=name,
                share=self._share(name, whole),
                of=self._named_packages(name, whole),
                objects={one: n / whole for one, n in self._objects[name].most_common()},
            )
            for name in PARTS
            if self._counts[name] or name == "own-python"
        ]

    def _named_packages(self, name: PartName, whole: int) -> list[str]:
        """The packages with the most samples of a part: the first one, and others with a share of the whole call."""
        ranked = self._packages[name].most_common()
        return [package for at, (package, count) in enumerate(ranked) if at == 0 or count >= _NAMED_SHARE * whole]

    def _share(self, name: PartName, whole: int) -> Figure:
        """The share, with all that the samples which count for any of several parts allow."""
        count = self._counts[name]
        least = most = count
        if self._either and name in _COMPILED_PARTS:
            all_of_these = sum(self._counts[one] for one in _COMPILED_PARTS)
            own = count * (1 - self._either / all_of_these)
            others = all_of_these - count
            least = own if others else count
            most = own + self._either
        low, high = _interval(least, whole)[0], _interval(most, whole)[1]
        return Figure(name="share", unit="share", value=count / whole, low=low, high=high, processes=1)

    def _share_out(self, kind: str, parts: tuple[PartName, ...]) -> None:
        """Divide what was counted for ``kind`` among parts as their own samples are; the first one if none is."""
        count = self._counts.pop(kind, 0.0)
        of_parts = {part: self._counts[part] for part in parts}
        own = sum(of_parts.values())
        self._packages.pop(kind, None)
        if not own:
            self._counts[parts[0]] += count
            return
        for part, seen in of_parts.items():
            self._counts[part] += count * seen / own

    def _move(self, kind: str, to: str) -> None:
        if kind not in self._counts:
            return
        self._counts[to] += self._counts.pop(kind)
        self._packages[to] += self._packages.pop(kind, Counter())
        self._objects[to] += self._objects.pop(kind, Counter())


def _interval(seen: float, whole: int) -> tuple[float, float]:
    """Wilson's interval of a share, which holds for shares near 0 and 1 too."""
    share = seen / whole
    middle = (share + _Z**2 / (2 * whole)) / (1 + _Z**2 / whole)
    half = _Z / (1 + _Z**2 / whole) * math.sqrt(share * (1 - share) / whole + _Z**2 / (4 * whole**2))
    return min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half))


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


def _file_name(file: str) -> str:
    return PurePosixPath(file).name
