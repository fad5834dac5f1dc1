"""The fake CUDA driver in ``cuda/libcuda.c``: built, and used instead of the real one."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead import scratch
from tests.fakes import kernels

SOURCE = Path(__file__).parent / "cuda" / "libcuda.c"
LAUNCH_NS = 1000
"""Device time of a launch on the fake device."""


@functools.cache
def library() -> ctypes.CDLL:
    """The fake driver, compiled once a test process."""
    compiler = next(filter(None, map(shutil.which, ("g++", "clang++"))))
    built = Path(tempfile.mkdtemp(dir=scratch.folder())) / "libcuda.so.1"
    subprocess.run(
        [compiler, "-x", "c", "-O1", "-shared", "-fPIC", "-o", built, SOURCE, "-ldl"], check=True
    )
    return ctypes.CDLL(str(built))


def calls(action: Callable[[], object]) -> list[int]:
    """How often the action reached cuLaunchKernel, cuGraphLaunch and the four waits of the fake
    driver.
    """
    counts = (ctypes.c_uint * 6).in_dll(library(), "fake_calls")
    before = list(counts)
    action()
    return [now - then for now, then in zip(counts, before, strict=True)]


def bindings() -> Any:
    """The part of cuda-bindings' driver module that the probes use: results are tuples, handles are
    objects.
    """
    found = library()

    def function(name: str) -> Any:
        call = getattr(ctypes.CDLL(found._name), name)

        def bound(*arguments: Any) -> tuple[int]:
            return (call(*(ctypes.c_void_p(getattr(a, "handle", a)) for a in arguments)),)

        return bound

    names = (
        "cuLaunchKernel",
        "cuGraphLaunch",
        "cuStreamSynchronize",
        "cuEventRecord",
        "cuEventSynchronize",
    )
    calls = {name: function(name) for name in (*names, "cuCtxSynchronize")}
    kinds = dict.fromkeys(
        ("CUstream", "CUfunction", "CUevent", "CUgraphExec", "CUdeviceptr"), _Handle
    )
    return SimpleNamespace(cuMemcpyDtoH=function("cuMemcpyDtoH_v2"), **calls, **kinds)


class _Handle:
    def __init__(self, handle: int) -> None:
        self.handle = handle


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the probes use the fake driver, without NVRTC and cuda-bindings."""
    from overhead.probes.cuda import api, launch, session

    monkeypatch.setattr(api, "open_library", library)
    monkeypatch.setattr(api, "driver", functools.cache(api.driver.__wrapped__))
    monkeypatch.setattr(session, "machine_code", lambda name, architecture: b"fake")
    monkeypatch.setattr(launch, "bindings", bindings)


def install_compiling(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The fake driver, which also runs generated CUDA C, compiled by g++."""
    from overhead.probes.cuda import api, session

    install(monkeypatch)
    monkeypatch.setattr(session, "machine_code_of", kernels.machine_code_of)
    return api.driver()
