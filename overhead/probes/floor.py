"""The lowest cost of a foreign call: one C function, called by ctypes and from a compiled loop.

It is ``Py_IncRef``, which every Python exports. It adds one to a word in memory, so the word shows how often it ran.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from typing import Any

from overhead.errors import install_command
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unsupported
from overhead.results import Caller, Case, Scalar, Target

_CALLERS: dict[str, Caller] = {"native": "native", "ctypes": "ffi"}
"""The caller in the record, by the kind of call that a unit makes."""


@register
class Floor(Probe):
    """The cost of a call that does nothing."""

    name = "floor"
    title = "foreign-call floor"
    mend = install_command("wgpu")
    distributions = ("numba",)
    cost = "cheap"

    def targets(self) -> list[Target]:
        return [Target(stack=self.name, api="CPU", adapter="CPU", versions={"python": sys.version.split()[0]})]

    def space(self, target: Target) -> Space:
        calls = [call for call in _CALLERS if call != "native" or importlib.util.find_spec("numba")]
        return Space(_case(calls[0]), extra=[_case(call) for call in calls[1:]])

    def open(self, target: Target, case: Case) -> Chain:
        call = str(case.params.get("call", ""))
        if case != _case(call):
            raise Unsupported(f"no {case.key} here: call is one of {', '.join(_CALLERS)}, and the caller follows")
        return Leaf(call)


def _case(call: str) -> Case:
    return Case(pattern="per-submit", caller=_CALLERS.get(call, "ffi"), unit="call", params={"call": call})


class Leaf(Chain):
    """Calls of ``Py_IncRef`` on an object without other references. Its reference count is the number of calls."""

    overlap = "serial"
    synchronous = True
    max_n = 1 << 24

    def __init__(self, call: str) -> None:
        from overhead.probes.common import native_loop

        self._object = object()
        self._word = ctypes.c_uint32.from_address(id(self._object) + (4 if sys.byteorder == "big" else 0))
        self._start = self._word.value
        self._done = 0
        address = native_loop.address_of(ctypes.pythonapi, "Py_IncRef")
        function, argument = _function(address), ctypes.c_void_p(id(self._object))
        program = native_loop.NativeProgram(
            body=(native_loop.NativeCall("Py_IncRef", function, address, (id(self._object),), ffi_args=(argument,)),)
        )
        self._loop = (native_loop.compile_native if call == "native" else native_loop.compile_ffi)(program)
        self._loop(3)
        if self.executed() != 3 or sys.getrefcount(self._object) != 2:
            raise Unsupported("this Python keeps no plain reference count in its objects")
        self._done = 0
        self.issue = self._loop  # type: ignore[assignment, method-assign]

    def issue(self, n: int) -> None:
        self._loop(n)

    def wait(self) -> None:
        return

    def window(self) -> dict[str, Scalar]:
        return {"operation": "Py_IncRef", "calls": 1}

    def executed(self) -> int:
        """The number of calls so far. It must be read at least every 2^31 calls, because the count has 32 bits."""
        self._done += self._word.value - self._start
        self._word.value = self._start
        return self._done

    def close(self) -> None:
        self._word.value = self._start


def _function(address: int) -> Any:
    """The function at the address as a ctypes callable."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
