"""Divide the CPU time of a call into parts: your Python, a library's Python, compiled code, the
operating system.

The data are samples of one process. A sample says where the thread was at a random moment of the
call. So a part that holds 30 % of the samples took about 30 % of the time.

Each sample gets a kind. Most kinds are parts of the answer; three kinds are given to parts
afterwards:

| kind | where the thread was | which part gets the sample | |---|---|---| | own-python | bytecode
of the user's files, or of CALL itself | the same | | library-python | bytecode of an installed
package or of the standard library | the same | | unknown-python | bytecode, but the interpreter
names no file | both Python parts, in proportion to their own samples | | interpreter | the
interpreter's functions, called by an instruction that runs compiled code | the binding | | shared |
``malloc`` and its like, called by such an instruction | all compiled parts, in proportion | |
binding | a file that Python imports, such as ``libtorch_python.so`` | the same, or
binding-and-library | | library | another file of compiled code, such as ``libtorch_cpu.so`` | the
same, or binding-and-library | | driver | a driver of a GPU, such as ``libcuda.so`` | the same | |
system | a call of the operating system, a wait too | the same |
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from overhead.results import Figure, Why, because
from overhead.timing.sampled_thread import SampledThread
from overhead.timing.thread_sampler import Sample

PartName = Literal[
    "own-python", "library-python", "binding", "library", "binding-and-library", "driver", "system"
]
_Kind = PartName | Literal["unknown-python", "interpreter", "shared"]
"""What a sample counts for: the table at the top of this file."""
PARTS: tuple[PartName, ...] = (
    "own-python", "library-python", "binding", "library", "binding-and-library", "driver", "system",
)  # fmt: skip
"""In the order in which a call passes them."""
_COMPILED_PARTS: tuple[PartName, ...] = ("binding-and-library", "binding", "library", "driver")
_PYTHON_PARTS: tuple[PartName, ...] = ("own-python", "library-python")
_OF_USER = ""
"""Stands for a package where the code is the user's own."""
STANDARD = "the standard library"
GENERATED = "generated code"
"""What machine code in no file is called: a compiler such as Numba's or XLA's made it while the
program ran.
"""

_FEWEST = 50
"""With fewer samples no part is named. With 50, the interval of a share of one half goes from 37 to
63 %.

The limit was 100 until a busy machine gave fewer in the 2 s for which a call is sampled.
"""
_Z = 1.96
"""Half-width of the normal distribution's 95 % interval, in standard deviations."""
_FOREIGN_SHARE = 0.05
"""An instruction runs compiled code of a library if the thread was in such code in this share of
its samples.

Measured: the share was 0 for instructions of the interpreter alone. The least share of an
instruction that does run compiled code was 23 %, of one that frees a tensor of PyTorch. 25 % was
tried first, and took that one for Python.
"""
_SEPARATE_FROM = 0.02
"""Binding and library are two parts if each has this share of the samples of both; else they are
one part.

Chosen, not measured: of 100 samples, a smaller part would hold one.
"""
_NAMED_SHARE = 0.05
"""A further package is named for a part if it has this share of all samples. Chosen, not
measured.
"""

_OWN_FILES = ("<overhead statement", "<ipython-input", "<stdin>", "<string>")
"""How the names begin that Python gives to code which the user typed: CALL and SETUP, a cell of
IPython, a prompt.
"""
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
"""How the names of files begin whose functions any code may call, such as ``malloc``.

``[`` begins the name of the code that the kernel puts into each process, ``[vdso]``."""
_DRIVERS = ("libcuda.", "libnvidia-", "libamdhip64", "libhsa-", "libze_", "libvulkan", "libGL")
"""How the files of drivers begin: of CUDA, HIP (AMD), Level Zero (Intel), Vulkan and OpenGL."""
_EXTENSION = re.compile(r"python|\.abi3\.|^_C\.", re.IGNORECASE)
"""Found only in the names of files that Python imports, or that connect a library to Python:
``libtorch_python.so``, ``_multiarray_umath.cpython-312-x86_64-linux-gnu.so``, ``_rust.abi3.so``,
``_C.so``.
"""


class CallPart(Struct, frozen=True, kw_only=True):
    """A part of the CPU time of a call. ``share``: from 0 to 1.

    ``of``: the package with most of the part, and those further ones that have 5 % of the time of
    the whole call. ``objects``: the files with the compiled code, each with its share of the time
    of the call.
    """

    name: PartName
    share: Figure
    of: list[str] = []
    objects: dict[str, float] = {}


class Division(Struct, frozen=True, kw_only=True):
    """How the CPU time of a call divides, in one process, until the call returns. The shares of
    ``parts`` add up to 1.

    ``samples``: how many the shares are from. ``reason``: why there are no parts.
    """

    parts: list[CallPart] = []
    samples: int = 0
    reason: Why = ""

    def part(self, name: PartName) -> CallPart | None:
        """The part with this name; None if the call has none."""
        return next((part for part in self.parts if part.name == name), None)


def divide(samples: Sequence[Sample], thread: SampledThread) -> Division:
    """Divide the CPU time of a call into parts, such as your Python and a library's compiled code,
    by the samples that were taken while it ran. ``thread``: tells whose a file is.

    Samples in the loop of this package are left out: the loop calls CALL, and is no part of it.
    """
    files = _Files(thread)
    kept = [sample for sample in samples if not files.is_of_this_package(sample.file)]
    if len(kept) < _FEWEST:
        return Division(
            samples=len(kept), reason=because("too-few-samples", samples=len(kept), fewest=_FEWEST)
        )
    # A sample alone does not tell whether its instruction calls compiled code: all of them do.
    calling_compiled = _instructions_calling_compiled(kept, files)
    counts = _Counts()
    for sample in kept:
        calls_compiled = sample.instruction in calling_compiled
        counts.add(_origin_of(sample, files, calls_compiled=calls_compiled))
    # In this order: each step divides in proportion to the samples that the steps before have given
    # to the parts.
    counts.share_out_unknown_python()
    counts.join_inseparable_parts()
    counts.give_interpreter_to_binding()
    counts.share_out_shared_functions()
    return Division(parts=counts.parts(len(kept)), samples=len(kept))


@dataclass(frozen=True)
class _Origin:
    """Where the thread was in one sample: what kind of code it ran, of which package, and the name
    of the file of compiled code (``object``). ``package``, ``object``: '' where the kind has none.
    """

    kind: _Kind
    package: str = ""
    object: str = ""


def _origin_of(sample: Sample, files: _Files, *, calls_compiled: bool) -> _Origin:
    """Which kind of code the thread ran in one sample, of which package and file.
    ``calls_compiled``: its bytecode instruction calls compiled code of a library, as other samples
    show.

    The interpreter's own machine code runs for every instruction. It is Python's time where the
    instruction is plain Python. Where the instruction calls compiled code, it is the time of the
    binding, which connects a library to Python.
    """
    if sample.in_system:  # whoever called it
        return _Origin("system")
    # Foreign: machine code of a library, neither the interpreter's nor the C library's.
    if files.is_foreign(sample.object):
        return _foreign_origin(sample.object, files)
    if calls_compiled:
        # Shared: the C library and its like, whose functions any code calls.
        is_shared = _file_name(sample.object).startswith(_SYSTEM_OBJECTS)
        return _Origin("shared" if is_shared else "interpreter")
    package = files.package_of_python(sample.file)
    if package is None:
        return _Origin("unknown-python")
    if package == _OF_USER:
        return _Origin("own-python")
    return _Origin("library-python", package)


def _foreign_origin(object: str, files: _Files) -> _Origin:
    """The part that this file of a library's machine code belongs to."""
    name = _file_name(object)
    if name.startswith(_DRIVERS):
        return _Origin("driver", name.partition(".so")[0], name)
    kind: PartName = "binding" if _EXTENSION.search(name) else "library"
    return _Origin(kind, files.package_of_object(object), name or GENERATED)


def _instructions_calling_compiled(samples: Sequence[Sample], files: _Files) -> set[int]:
    """The addresses of the bytecode instructions that run compiled code of a library. Such code is
    called foreign here: neither Python nor the interpreter. An instruction runs it if 5 % of its
    samples or more hit such code.
    """
    of_all = Counter(sample.instruction for sample in samples)
    of_foreign = Counter(
        sample.instruction for sample in samples if files.is_foreign(sample.object)
    )
    return {
        address
        for address, count in of_foreign.items()
        if count >= _FOREIGN_SHARE * of_all[address]
    }


class _Counts:
    """How many samples each kind of code has, and of which packages and files. The kinds without a
    part of their own in the answer are then divided among the parts; the methods do this.
    """

    def __init__(self) -> None:
        self._samples: dict[_Kind, float] = defaultdict(float)
        self._packages: dict[_Kind, Counter[str]] = defaultdict(Counter)
        self._objects: dict[_Kind, Counter[str]] = defaultdict(Counter)
        self._shared = 0.0
        self._before_shared: dict[PartName, float] = {}

    def add(self, origin: _Origin) -> None:
        """Count one sample."""
        self._samples[origin.kind] += 1
        if origin.package:
            self._packages[origin.kind][origin.package] += 1
        if origin.object:
            self._objects[origin.kind][origin.object] += 1

    def share_out_unknown_python(self) -> None:
        """Divide Python of no known file.

        While one function calls another, the interpreter names no file: the time is of either
        Python part.
        """
        self._share_out("unknown-python", _PYTHON_PARTS)

    def join_inseparable_parts(self) -> None:
        """Make one part of binding and library where nearly all samples of both are in one of them.
        The binding is the compiled code that connects a library to Python.

        One file may hold both, as in NumPy. Its name shows a binding, and most of its code is the
        library.
        """
        # The smaller one has more than 2 % of both, so the two are in files of their own.
        binding, library = self._samples["binding"], self._samples["library"]
        if min(binding, library) > _SEPARATE_FROM * (binding + library):
            return
        self._move("binding", "binding-and-library")
        self._move("library", "binding-and-library")

    def give_interpreter_to_binding(self) -> None:
        """Count the interpreter's functions in a compiled call for the binding, which calls them.

        They read the arguments of the call, and make the objects of its result.
        """
        has_binding = self._samples["binding"] > 0
        self._move("interpreter", "binding" if has_binding else "binding-and-library")

    def share_out_shared_functions(self) -> None:
        """Divide ``malloc`` and its like among the compiled parts, of which each may have called
        them.
        """
        self._shared = self._samples["shared"]
        self._before_shared = {part: self._samples[part] for part in _COMPILED_PARTS}
        self._share_out("shared", _COMPILED_PARTS)

    def parts(self, total: int) -> list[CallPart]:
        """The parts with a sample, in order. The user's own Python is always there: everybody asks
        for it.
        """
        named = [name for name in PARTS if self._samples[name] or name == "own-python"]
        return [self._part(name, total) for name in named]

    def _part(self, name: PartName, total: int) -> CallPart:
        """One part of the answer: its share of all samples, and whose code it is."""
        objects = self._objects[name].most_common()
        return CallPart(
            name=name,
            share=self._share(name, total),
            of=self._named_packages(name, total),
            objects={file: count / total for file, count in objects},
        )

    def _named_packages(self, name: PartName, total: int) -> list[str]:
        """The packages to name for a part: the one with most of its samples, and further ones that
        have 5 % of all samples, of the ``total``.
        """
        packages = self._packages[name].most_common()
        first = [package for package, _ in packages[:1]]
        further = [package for package, count in packages[1:] if count >= _NAMED_SHARE * total]
        return first + further

    def _share(self, name: PartName, total: int) -> Figure:
        """The share that a part has of ``total`` samples, with an interval.

        It is unknown which part called the shared functions, ``malloc`` and its like. Their samples
        were divided in proportion. So the interval reaches from none of them, if another part can
        have called them, to all of them.
        """
        count = least = most = self._samples[name]
        if self._shared and name in _COMPILED_PARTS:
            # What the part had before it got samples of the shared functions.
            certain = self._before_shared[name]
            # If no other compiled part has samples, this one made all calls of shared functions.
            is_only_caller = certain == sum(self._before_shared.values())
            least = count if is_only_caller else certain
            most = certain + self._shared
        # Beside what is unknown, samples hit a part by chance: the ends are those of intervals.
        low, _ = _interval(least, total)
        _, high = _interval(most, total)
        return Figure(
            name="share", unit="share", value=count / total, low=low, high=high, processes=1
        )

    def _share_out(self, kind: _Kind, parts: Sequence[PartName]) -> None:
        """Divide the samples of a kind among parts, in proportion to the samples that each part has
        already.

        Where no part has any, the first one gets all.
        """
        count = self._samples.pop(kind, 0.0)
        before = {part: self._samples[part] for part in parts}
        total = sum(before.values())
        if not total:
            self._samples[parts[0]] += count
            return
        for part, own in before.items():
            self._samples[part] += count * own / total

    def _move(self, kind: _Kind, to: PartName) -> None:
        """Count all samples of a kind for a part."""
        self._samples[to] += self._samples.pop(kind, 0.0)
        self._packages[to] += self._packages.pop(kind, Counter())
        self._objects[to] += self._objects.pop(kind, Counter())


def _interval(count: float, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share, here ``count / total``: how far off the share of so few
    samples may be.

    The usual interval, share ± 1.96 standard errors, has no width for a share of 0 or 1: it would
    say that a part is certainly not there because no sample hit it. Wilson's interval of 0 of 200
    samples reaches to 1.9 %.
    """
    share = count / total
    shrink = 1 + _Z**2 / total
    # The share as if z² more samples had been taken, of which half hit the part.
    middle = (share + _Z**2 / (2 * total)) / shrink
    variance = share * (1 - share) / total + _Z**2 / (4 * total**2)
    half_width = _Z / shrink * math.sqrt(variance)
    low = max(0.0, middle - half_width)
    high = min(1.0, middle + half_width)
    # Rounding can put an end on the wrong side of a share of 0 or 1.
    return min(share, low), max(share, high)


class _Files:
    """Whose a file of Python code or of machine code is: the user's, a package's, the
    interpreter's. The sampled ``thread`` tells the folders of packages.
    """

    def __init__(self, thread: SampledThread) -> None:
        self._thread = thread

    def is_of_this_package(self, file: str) -> bool:
        """Whether this Python file is of ``overhead``."""
        return file.startswith(f"{self._thread.suite}/")

    def package_of_python(self, file: str) -> str | None:
        """The package of a file of Python code; ``_OF_USER`` for code of the user.

        None where no file is named: ``""``, or a sign in place of it, such as ``<shim>``.
        """
        # Code that the user typed has no file, but a name that Python gives it.
        if file.startswith(_OWN_FILES):
            return _OF_USER
        if file.startswith("<frozen"):  # modules that are built into the interpreter
            return STANDARD
        if not file or file.startswith("<"):
            return None
        return self._installed(file)

    def package_of_object(self, file: str) -> str:
        """The package of a file of machine code, or else the file's own name.

        - ``…/site-packages/torch/lib/libtorch_cpu.so``: ``torch``
        - ``…/site-packages/numpy.libs/libscipy_openblas64_.so``: ``numpy``, since wheels put other
          libraries there
        - ``/usr/lib/libblas.so.3``: ``libblas``
        - ``""``: generated code
        """
        if not file:
            return GENERATED
        package = self._installed(file).partition(".libs")[0]
        return package or _file_name(file).partition(".so")[0]

    def is_foreign(self, file: str) -> bool:
        """Whether this machine code is of a library: not of the interpreter, and not of a file such
        as the C library, whose functions any code calls.

        Machine code in no file is foreign: a library has compiled it while the program ran. The
        interpreter and the C library are always in files.
        """
        if not file:
            return True
        name = _file_name(file)
        is_interpreter = name.startswith("libpython") or file == self._thread.executable
        return not is_interpreter and not name.startswith(_SYSTEM_OBJECTS)

    def _installed(self, file: str) -> str:
        """The package that a file was installed with; ``_OF_USER`` for a file elsewhere.

        - ``…/site-packages/torch/nn/modules/module.py``: ``torch``
        - ``…/site-packages/six.py``: ``six``
        - ``…/site-packages/_cffi_backend.cpython-312-x86_64-linux-gnu.so``: ``_cffi_backend``
        - ``/usr/lib/python3.12/json/encoder.py``: the standard library
        """
        for folder in self._thread.folders:
            if file.startswith(f"{folder}/"):
                top = file.removeprefix(f"{folder}/").partition("/")[0]
                return top.removesuffix(".py").partition(".cpython-")[0]
        is_standard = any(file.startswith(f"{folder}/") for folder in self._thread.standard)
        return STANDARD if is_standard else _OF_USER


def _file_name(file: str) -> str:
    return PurePosixPath(file).name
