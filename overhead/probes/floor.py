"""The lowest cost of a foreign call: an empty loop, an empty Python function, and one C function.

The C function is called by ctypes, by cffi and from a compiled loop. It is ``Py_IncRef``, which every Python exports.
It adds one to a word in memory, so the word shows how often it ran.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

from overhead.errors import install
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unsupported
from overhead.results import Caller, Case, Scalar, Target

_CALLERS: dict[str, Caller] = {
    "native": "native",
    "cffi": "ffi",
    "ctypes": "ffi",
    "python": "binding",
    "loop": "binding",
}
"""The caller in the record, by the kind of call that a unit makes."""


@register
class Floor(Probe):
    """The cost of a call that does nothing."""

    name = "floor"
    title = "foreign-call floor"
    mend = install("wgpu")
    distributions = ("cffi", "numba")
    cost = "cheap"

    def targets(self) -> list[Target]:
        return [Target(stack=self.name, api="CPU", adapter="CPU", versions={"python": sys.version.split()[0]})]

    def space(self, target: Target) -> Space:
        needs = {"native": "numba", "cffi": "cffi"}
        base, *others = (call for call in _CALLERS if call not in needs or importlib.util.find_spec(needs[call]))
        return Space(_case(base), extra=[_case(call) for call in others])

    def open(self, target: Target, case: Case) -> Chain:
        call = str(case.params.get("call", ""))
        if case != _case(call):
            raise Unsupported(
                f"no {case.key} here: params hold call, one of {', '.join(_CALLERS)}, and the caller follows"
            )
        return PythonLoop(call) if _CALLERS[call] == "binding" else Leaf(call)


def _case(call: str) -> Case:
    return Case(pattern="per-submit", caller=_CALLERS.get(call, "binding"), unit="call", params={"call": call})


class _CountedCalls(Chain):
    overlap = "serial"
    synchronous = True
    max_n = 1 << 24

    def __init__(self, operation: str, calls: int) -> None:
        self._window: dict[str, Scalar] = {"operation": operation, "calls": calls}

    def wait(self) -> None:
        return

    def window(self) -> dict[str, Scalar]:
        return self._window


class PythonLoop(_CountedCalls):
    """A Python loop that does nothing, or that calls an empty Python function. The loop counts its iterations."""

    def __init__(self, call: str) -> None:
        operations = {"loop": ("pass", 0), "python": ("a Python function that does nothing", 1)}
        super().__init__(*operations[call])
        self._run: Callable[[int], int] = _empty if call == "loop" else _calling
        self._done = 0

    def issue(self, n: int) -> None:
        self._done += self._run(n)

    def executed(self) -> int:
        return self._done


def _empty(n: int) -> int:
    i = -1
    for i in range(n):  # noqa: B007 - the last value is the count
        pass
    return i + 1


def _calling(n: int, *, nothing: Callable[[], None] = lambda: None) -> int:
    i = -1
    for i in range(n):  # noqa: B007
        nothing()
    return i + 1


class Leaf(_CountedCalls):
    """Calls of ``Py_IncRef`` on an object without other references. Its reference count is the number of calls."""

    def __init__(self, call: str) -> None:
        from overhead.probes.common import native_loop

        super().__init__("Py_IncRef", 1)
        self._object = object()
        self._word = ctypes.c_uint32.from_address(id(self._object) + (4 if sys.byteorder == "big" else 0))
        self._start = self._word.value
        self._done = 0
        address = native_loop.address_of(ctypes.pythonapi, "Py_IncRef")
        function, argument = _callables(call, address, id(self._object))
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

    def executed(self) -> int:
        """The number of calls so far. It must be read at least every 2^31 calls, because the count has 32 bits."""
        self._done += self._word.value - self._start
        self._word.value = self._start
        return self._done

    def close(self) -> None:
        self._word.value = self._start


def _callables(call: str, address: int, pointer: int) -> tuple[Any, Any]:
    """The function at the address as a cffi or ctypes callable, and its converted argument."""
    if call != "cffi":
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address), ctypes.c_void_p(pointer)
    try:
        import cffi
    except ImportError as error:
        raise Unsupported(f"cffi does not import: {error}") from error
    ffi = cffi.FFI()
    return ffi.cast("void (*)(void *)", address), ffi.cast("void *", pointer)
