"""What can run here: import a GPU library, check the parameters of a case, recognise adapters that run on the CPU."""

from __future__ import annotations

import ctypes
import functools
import importlib
import re
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from overhead.probes.base import Unavailable, Unsupported
from overhead.probes.kernels import LLVMPIPE_TURNS
from overhead.results import Case, Scalar

AllowedValues = Mapping[str, Collection[Scalar] | None]
"""The allowed values of each parameter of a case; None if the stack checks the value elsewhere."""
_LONGEST_REASON = 200
"""Most characters of the library's message that the reason quotes."""
_RENDERERS = re.compile(r"llvmpipe|lavapipe|softpipe|swiftshader|basic render|warp\b", re.IGNORECASE)


def import_library(name: str, mend: str) -> Any:
    """Import the module ``name`` and return it. ``mend``: the command that installs it. Raises ``Unavailable``."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # a library built for another version may raise anything
        reason = " ".join(str(error).split())[:_LONGEST_REASON]
        raise Unavailable(f"{name} does not import: {reason}", mend) from error


def check_parameters(case: Case, allowed: AllowedValues) -> None:
    """Raise ``Unsupported`` if the case has a parameter or a value that is not allowed."""
    unknown = set(case.params) - set(allowed)
    if unknown:
        raise Unsupported(f"no parameter {', '.join(sorted(unknown))} here")
    for name, values in allowed.items():
        if values is not None and name in case.params and case.params[name] not in values:
            raise Unsupported(f"{name} has no value {case.params[name]}")


def is_accepted(check: Callable[[Case], object], case: Case) -> bool:
    """True if ``check(case)`` returns, False if it raises ``Unsupported``."""
    try:
        check(case)
    except Unsupported:
        return False
    return True


def names_software_renderer(*texts: str) -> bool:
    """True if one of the texts (an adapter's name, its driver) names a renderer that runs on the CPU."""
    return any(_RENDERERS.search(text) for text in texts)


@functools.cache
def under_wine() -> bool:
    """True if this program for Windows runs on Wine, which names a GPU of its own choice and translates D3D12."""
    if sys.platform != "win32":
        return False
    return hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")


def longest_fused_chain(adapter: str, turns: int = 1) -> int:
    """Most units in one fused dispatch on the adapter with this name, if a unit takes ``turns`` loop iterations."""
    return LLVMPIPE_TURNS // turns if "llvmpipe" in adapter else 1 << 26
