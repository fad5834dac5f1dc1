"""Compile CUDA C to machine code with NVRTC, through cuda-bindings."""

from __future__ import annotations

import functools
from typing import Any

from overhead.errors import install_command
from overhead.probes.base import Unavailable
from overhead.probes.kernels import source

INSTALL_CUDA = f"{install_command('cuda13')} (cuda12 where the driver is for CUDA 12)"


def machine_code(name: str, architecture: str) -> bytes:
    """Machine code of a kernel file for an architecture like ``sm_90``. Raises ``Unavailable`` if NVRTC is missing."""
    return machine_code_of(name, source(name)[0], architecture)


@functools.cache
def machine_code_of(name: str, text: str, architecture: str) -> bytes:
    """Machine code of CUDA C text for an architecture such as ``sm_90``. Raises ``Unavailable`` if NVRTC is missing."""
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise Unavailable(f"cuda-bindings does not import: {error}", INSTALL_CUDA) from error
    try:
        program = _done(nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []))
    except RuntimeError as error:  # cuda-bindings loads the library at the first call
        raise Unavailable(f"NVRTC does not load: {error}", INSTALL_CUDA) from error
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
    (code,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(code):
        log = b" " * _done(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(f"NVRTC refuses {name} for {architecture}: {log.decode(errors='replace').strip()}")
    binary = b" " * _done(nvrtc.nvrtcGetCUBINSize(program))
    _done(nvrtc.nvrtcGetCUBIN(program, binary))
    nvrtc.nvrtcDestroyProgram(program)
    return binary


def _done(result: tuple[Any, ...]) -> Any:
    code, *values = result
    if int(code):
        raise Unavailable(f"NVRTC: {code}", INSTALL_CUDA)
    return values[0] if values else None
