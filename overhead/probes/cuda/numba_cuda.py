"""numba-cuda: ``kernel[grid, block](*arrays)`` of a kernel in Python, with and without a given
signature.
"""

from __future__ import annotations

import warnings
from itertools import repeat
from typing import Any

import numpy as np

from overhead.probes import register
from overhead.probes.base import Unavailable
from overhead.probes.common.availability import import_library
from overhead.probes.common.loops import Action, Issue
from overhead.probes.cuda.library import DeviceWords, LibraryLaunches, LibraryProbe
from overhead.probes.cuda.session import CUDA_GRID, GROUP_SIZE
from overhead.probes.kernels import lcg
from overhead.results import because
from overhead.workloads.sources import sha256_of

STEP = "def step({}):\n    i = cuda.grid(1)\n    x[i] = x[i] * scale + shift\n"


class NumbaLaunches(LibraryLaunches):
    """Launches by numba-cuda. All arguments are the same array, and the kernel uses the first
    argument.
    """

    def make_wait(self) -> Action:
        """``synchronize`` of the default stream."""
        self.library.select_device(self.ordinal)
        wait: Action = self.library.default_stream().synchronize
        return wait

    def make_loop(self, count: int) -> Issue:
        """A function ``loop(n)`` that launches the step n times with ``count`` arrays as arguments.

        The parameter ``entry`` says how. ``configured``: the kernel is compiled now, for a given
        signature, and bound to its number of threads once. ``jit``: numba compiles at the first
        launch, and looks at the types of the arguments at each. ``STEP``: the text of the kernel,
        ``x[i] = x[i] * scale + shift``.
        """
        cuda = self.library
        words = DeviceWords(self.session)
        # Without an argument, the kernel uses the global name x.
        names = []
        if count:
            names = ["x", *[f"y{i}" for i in range(1, count)]]
        # Python text, because the number of parameters differs.
        text = STEP.format(", ".join(names))
        scope: dict[str, Any] = {
            "cuda": cuda,
            "x": words,
            "scale": np.uint32(lcg.MULTIPLIER),
            "shift": np.uint32(lcg.INCREMENT),
        }
        exec(text, scope)
        self.hashes = {"step_numba": sha256_of(text)}

        signature = None
        is_configured = self.case.params["entry"] == "configured"
        if is_configured:
            # Arrays of 32 bits in one dimension, one after another in memory.
            types = ", ".join(["uint32[::1]"] * count)
            signature = f"void({types})"
        kernel = cuda.jit(signature)(scope["step"])
        arrays = (cuda.as_cuda_array(words),) * count
        grid_and_block = (CUDA_GRID, GROUP_SIZE)
        with warnings.catch_warnings():
            # numba says once for each kernel that the grid is small.
            warnings.simplefilter("ignore")
            launch = kernel[grid_and_block]

        def configured(n: int) -> None:
            for _ in repeat(None, n):
                launch(*arrays)

        # Here the number of threads is given at each launch too.
        def by_jit(n: int) -> None:
            for _ in repeat(None, n):
                kernel[grid_and_block](*arrays)

        return configured if is_configured else by_jit


@register
class NumbaCudaProbe(LibraryProbe):
    """numba-cuda. ``entry=jit`` calls ``step[4, 64](x)``, which looks at the types of the arguments
    each time.

    For ``entry=configured`` the types are given when ``step`` is compiled, and ``launch = step[4,
    64]`` is made once; then the call is ``launch(x)``.
    """

    name = "numba-cuda"
    title = "numba-cuda"
    mend = because("install-numba-cuda", extras="numba-cuda")
    distributions = ("numba-cuda", "numba", "cuda-core", "cuda-bindings")
    package = "numba_cuda"
    chain = NumbaLaunches
    entries = ("jit", "configured")

    def library(self) -> Any:
        """The module ``numba.cuda`` of the package numba-cuda."""
        found = import_library("numba.cuda", self.mend)
        if getattr(found, "implementation", "") != "NVIDIA":
            raise Unavailable(because("numba-cuda-is-of-numba"), self.mend)
        return found
