"""The lowest cost of a foreign call: one C function, called by ctypes and from a compiled loop.

It is ``Py_IncRef``, which every Python exports. It adds one to a word in memory, so the word shows
how often it ran.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from typing import Any

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unsupported
from overhead.probes.common.native_loop import (
    NativeCall,
    NativeProgram,
    address_of,
    compile_ffi,
    compile_native,
)
from overhead.results import Caller, Case, Scalar, Target, because

_CALLERS: dict[str, Caller] = {"native": "native", "ctypes": "ffi"}
"""The caller in the record, by the kind of call that a unit makes."""


@register
class Floor(Probe):
    """The cost of a foreign call that does almost nothing. ``call``: ``ctypes`` or ``native``, from
    a compiled loop.
    """

    name = "floor"
    title = "foreign-call floor"
    mend = because("install-extras", extras="wgpu")
    distributions = ("numba",)
    cost = "cheap"
    same_calls = True

    def targets(self) -> list[Target]:
        """The CPU."""
        python = sys.version.split()[0]
        cpu = Target(stack=self.name, api="CPU", adapter="CPU", versions={"python": python})
        return [cpu]

    def space(self, target: Target) -> Space:
        """One case for each kind of call; none from a compiled loop without numba."""
        if importlib.util.find_spec("numba"):
            return Space(_case("native"), extra=[_case("ctypes")])
        return Space(_case("ctypes"))

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the calls. Raises ``Unsupported`` if the case has another caller or
        parameter.
        """
        call = str(case.params.get("call", ""))
        if case != _case(call):  # the case of this kind of call is the only one that there is
            raise Unsupported(
                because("no-such-foreign-call", case=case.key, calls=", ".join(_CALLERS))
            )
        # Its loop is of Python (ctypes) or compiled (``native``).
        return ForeignCalls(call)


def _case(call: str) -> Case:
    return Case(
        pattern="per-submit", caller=_CALLERS.get(call, "ffi"), unit="call", params={"call": call}
    )


class ForeignCalls(Chain):
    """Calls of ``Py_IncRef`` on an object without other references. Its reference count is the
    number of calls.
    """

    overlap = "serial"
    synchronous = True
    max_n = 1 << 24

    def __init__(self, call: str) -> None:
        """Make the loop that calls ``Py_IncRef``, from Python by ctypes or from compiled code, and
        try it. Raises ``Unsupported`` if the object's word in memory does not count the calls.
        """
        self._object = object()
        # The reference count is the first 64-bit word of an object. Its low half holds the count.
        object_address = id(self._object)
        low_half = object_address + 4 if sys.byteorder == "big" else object_address
        self._word = ctypes.c_uint32.from_address(low_half)
        # What the word shows before any call; ``executed`` sets it back to this. ``_done``: the
        # calls until then.
        self._start = self._word.value
        self._done = 0

        address = address_of(ctypes.pythonapi, "Py_IncRef")
        function = _function(address)
        argument = ctypes.c_void_p(object_address)
        # The compiled loop calls the address with the first argument, and the Python loop
        # ``function`` with ``ffi_args``.
        increment = NativeCall(
            "Py_IncRef", function, address, (object_address,), ffi_args=(argument,)
        )
        compile_loop = compile_native if call == "native" else compile_ffi
        self._loop = compile_loop(NativeProgram(body=(increment,)))

        # Not every Python counts references in this word. Three calls show whether this one does.
        # ``executed`` sets the count back. Then ``getrefcount`` must find two references: that of
        # this object, and its own argument.
        self._loop(3)
        if self.executed() != 3 or sys.getrefcount(self._object) != 2:
            raise Unsupported(because("no-plain-reference-count"))
        self._done = 0
        # The loop itself, because a method around it would be timed too.
        self.issue = self._loop  # type: ignore[assignment, method-assign]

    def issue(self, n: int) -> None:
        """Make n calls; returns when they are done."""
        self._loop(n)

    def wait(self) -> None:
        """Return at once: the work is done."""

    def window(self) -> dict[str, Scalar]:
        """What is timed: the function, and its calls in a unit."""
        return {"operation": "Py_IncRef", "calls": 1}

    def executed(self) -> int:
        """The number of calls so far. It must be read at least every 2^31 calls, because the count
        has 32 bits.
        """
        self._done += self._word.value - self._start
        self._word.value = self._start
        return self._done

    def close(self) -> None:
        """Set the reference count of the object back to what it was."""
        self._word.value = self._start


def _function(address: int) -> Any:
    """The function at the address as a ctypes callable."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
