"""What cuda.core, numba-cuda and CuTe DSL share: a library launches the step on memory of the CUDA
driver.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from overhead.probes.base import Chain, Space, Unsupported, vary
from overhead.probes.common.availability import import_library
from overhead.probes.common.loops import Issue, alternating
from overhead.probes.cuda import api
from overhead.probes.cuda.chains import CudaChain
from overhead.probes.cuda.cuda_driver import DriverProbe
from overhead.probes.cuda.session import CudaSession
from overhead.results import Case, Scalar, Target, because

_ARGUMENTS = (8, 16, 0)
"""Numbers of kernel arguments besides 1."""


class DeviceWords:
    """The device memory of a session, an array of words (numbers of 32 bits), in a form that other
    libraries can use as an array of their own (CUDA Array Interface). ``kind``: the type of a word,
    as in NumPy.
    """

    def __init__(self, session: CudaSession, kind: str = "<u4") -> None:
        """Describe the memory in the attribute that the other library looks for. The form is that
        of version 3 of the CUDA Array Interface; ``strides`` None: the words lie next to each
        other.
        """
        is_read_only = False
        self.__cuda_array_interface__ = {
            "shape": session.seeds.shape,
            "data": (session.words, is_read_only),
            "strides": None,
            "typestr": kind,
            "version": 3,
        }


class LibraryLaunches(CudaChain):
    """n launches of the step, a small kernel, by a Python library such as cuda.core, on the default
    stream. In the pattern ``wait-each`` a wait follows each launch. A subclass makes the loop.

    In a kernel without arguments the address of the memory is a constant. ``hashes``: SHA-256 by
    kernel file.
    """

    may_own_stream = False
    hashes: Mapping[str, str] = {}

    def __init__(self, library: Any, ordinal: int, case: Case) -> None:
        self.library = library
        self.ordinal = ordinal
        super().__init__(api.driver(), ordinal, case)

    def make_loop(self, count: int) -> Issue:
        """A function ``loop(n)`` that launches the step n times with ``count`` arguments."""
        raise NotImplementedError

    def build(self) -> None:
        """Make the loop of the case's pattern. Its first launch compiles the step in some
        libraries; so it is made here, and not counted as a unit.
        """
        if self.case.pattern not in ("per-submit", "wait-each"):
            raise Unsupported(because("stack-has-no-pattern", pattern=self.case.pattern))
        loop = self.make_loop(int(self.case.params["arguments"]))
        loop(1)
        self.session.reset()  # the memory, from whose values the units are counted
        self.latency = self.case.pattern == "wait-each"
        self.overlap = "serial" if self.latency else "pipelined"
        self._issue = loop
        if self.latency:
            launch_once = functools.partial(loop, 1)
            # ``_wait``: the wait of the case, as after a whole chain.
            self._issue = alternating(launch_once, self._wait)
        self.details = {**self.case.params, "stream": "default", "precision": "uint32"}

    def issue(self, n: int) -> None:
        """Launch n times; returns before the device has run the kernels, unless each launch is
        waited for.
        """
        self._issued = self._issue(n)

    def kernels(self) -> dict[str, str]:
        """SHA-256 of each kernel file in use."""
        return {**super().kernels(), **self.hashes}


class LibraryProbe(DriverProbe):
    """A library that launches kernels on the devices of the driver. ``arguments``: number of the
    kernel's arguments.

    ``package``: the module with the ``__version__`` of the first of ``distributions``. ``entries``:
    the ways into the library, the usual one first, which are the values of the parameter ``entry``;
    none if there is only one way.
    """

    package: ClassVar[str]
    chain: ClassVar[type[LibraryLaunches]]
    entries: ClassVar[tuple[str, ...]] = ()

    def targets(self) -> list[Target]:
        """The devices of the driver, each with the version of the library, which the record of a
        run names. Raises ``Unavailable`` if the library cannot be used.
        """
        devices = super().targets()
        package = import_library(self.package, self.mend)
        self.library()  # may find more that is missing
        targets = []
        for device in devices:
            # ``distributions[0]``: the name of the library's package.
            versions = {**device.versions, self.distributions[0]: str(package.__version__)}
            targets.append(msgspec.structs.replace(device, versions=versions))
        return targets

    def library(self) -> Any:
        """The module of the library. Raises ``Unavailable`` if it cannot be used."""
        return import_library(self.package, self.mend)

    def space(self, target: Target) -> Space:
        """The cases, ways to launch a kernel, that are measured. ``base`` has the usual way into
        the library (``entry``) and one kernel argument. Every way is measured with every number of
        arguments; every run measures the ``early`` cases: each way with one argument, and a wait
        after each launch.
        """
        params: dict[str, Scalar] = {"arguments": 1, "wait": "stream"}
        if self.entries:
            # A library with a single way has no parameter for it.
            params = {"entry": self.entries[0], **params}
        base = Case(pattern="per-submit", unit="launch", params=params)
        other_entries = [vary(base, "entry", name) for name in self.entries[1:]]
        extra = list(other_entries)
        # ``_ARGUMENTS``: the numbers besides 1. ``axes`` varies the base alone, so the other ways
        # get their numbers of arguments here.
        for case in other_entries:
            extra += [vary(case, "arguments", count) for count in _ARGUMENTS]
        early = [vary(base, "pattern", "wait-each"), *other_entries]
        # ``allows``: False for cases that the library cannot run.
        return Space(base, {"arguments": _ARGUMENTS}, extra, self.allows, early)

    def allows(self, case: Case) -> bool:
        """Whether the library has such a case."""
        return True

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the case, on the device of the target."""
        return self.chain(self.library(), int(target.options["ordinal"]), case)
