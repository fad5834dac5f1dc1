"""What can run here: import a GPU library, tell its failures from mistakes, check the parameters of
a case, recognise adapters that run on the CPU.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import re
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from overhead.errors import (
    Unverified,
    UsageError,
    came_from_import,
    first_line_of,
    is_mistake_of_suite,
)
from overhead.probes.base import Probe, Unavailable, Unsupported
from overhead.probes.kernels import LLVMPIPE_TURNS
from overhead.results import Case, Reason, Scalar, Why, because, reason_given

AllowedValues = Mapping[str, Collection[Scalar] | None]
"""The allowed values of each parameter of a case; None if the stack checks the value elsewhere."""
CANNOT = because("library-cannot-do-this")
"""What is said where a stack's first case fails."""
_RENDERERS = re.compile(
    r"llvmpipe|lavapipe|softpipe|swiftshader|basic render|warp\b", re.IGNORECASE
)


def import_library(name: str, mend: Why) -> Any:
    """Import the module ``name`` of a GPU library and return it. Raises ``Unavailable`` if that
    fails, with ``mend``, the command that installs the library, so that a run reports the stack as
    missing and goes on.
    """
    try:
        return importlib.import_module(name)
    except Exception as error:  # a library built for another version may raise anything
        raise Unavailable(
            because("package-does-not-import", package=name, text=first_line_of(error)), mend
        ) from error


def cannot_here(error: Exception, probe: Probe, what: Reason) -> Unavailable | None:
    """An error of a stack (a ``probe``, which calls one GPU library) in its first attempt to run
    something, as ``Unavailable`` if this machine is the cause: a run then reports that the stack
    cannot be used here. None if the cause is unknown or a mistake in code, which is a failure.

    ``what``: what was attempted, for the message. ``mend`` of the stack: what a person can do about
    it. A library that cannot be imported is a matter of the machine on every stack. What a library
    or a driver raises later is so on the stacks of this package alone, whose code CI runs: a plugin
    may have called its library in a wrong way, and ``overhead check`` must find that.
    """
    # These errors say themselves what is wrong.
    if isinstance(error, Unavailable | Unsupported | Unverified | UsageError):
        return None
    # The module of the stack's class: that of a plugin does not begin with ``overhead.``.
    module = type(probe).__module__
    if came_from_import(error, module):
        return Unavailable(
            because("library-does-not-import", text=first_line_of(error)), probe.mend
        )
    if module.startswith("overhead.") and not is_mistake_of_suite(error):
        return Unavailable(because("about", what=what, why=_text_of_error(error)), probe.mend)
    return None


def _text_of_error(error: Exception) -> Why:
    """What to tell of an error: the reason that code of this suite gave it (a ``Reason``, with the
    name of the error's class), else the first line of its message.
    """
    # None if the error has a text, as those of libraries have.
    reason = reason_given(error)
    if reason is None:
        return first_line_of(error)
    if type(error) is RuntimeError:  # a class whose name would say nothing more
        return reason
    return because("raised", why=reason, kind=type(error).__name__)


def check_parameters(case: Case, allowed: AllowedValues) -> None:
    """Raise ``Unsupported`` if the case has a parameter or a value that is not ``allowed``. A case
    may leave out any parameter.
    """
    # ``allowed`` names all parameters that the stack has.
    unknown = set(case.params) - set(allowed)
    if unknown:
        raise Unsupported(because("no-such-parameter", parameters=", ".join(sorted(unknown))))
    for name, values in allowed.items():
        if values is None or name not in case.params:  # checked elsewhere, or left out
            continue
        value = case.params[name]
        if value not in values:
            raise Unsupported(because("no-such-parameter-value", parameter=name, value=value))


def is_accepted(check: Callable[[Case], object], case: Case) -> bool:
    """True if ``check(case)`` returns, False if it raises ``Unsupported``."""
    try:
        check(case)
    except Unsupported:
        return False
    return True


def names_software_renderer(*texts: str) -> bool:
    """True if one of the texts (an adapter's name, its driver) names a renderer that runs on the
    CPU.
    """
    return any(_RENDERERS.search(text) for text in texts)


@functools.cache
def under_wine() -> bool:
    """True if this program for Windows runs on Wine, which names a GPU of its own choice and
    translates D3D12.
    """
    if sys.platform == "win32":
        return hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")
    return False


def longest_fused_chain(adapter: str, turns: int = 1) -> int:
    """The most units that one fused dispatch, a single kernel that loops over all of its units, can
    run on the adapter (GPU) with this name. ``turns``: iterations of loops that a unit takes.

    llvmpipe, a driver that computes on the CPU, silently stops a kernel after ``LLVMPIPE_TURNS``
    iterations. No other limit is known; 2^26 (``1 << 26``) is far more than a sample needs.
    """
    if "llvmpipe" in adapter:
        return LLVMPIPE_TURNS // turns
    return 1 << 26
