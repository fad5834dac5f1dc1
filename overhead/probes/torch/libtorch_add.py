"""torch's addition without Python: ``at::_ops::add__Tensor::call``, the function that
``Tensor.add_`` calls.

It uses the dispatcher, like a call from Python. ``aoti_torch_cpu_add_Tensor`` of the C shim does
not: it skips the dispatcher and its operand is a double. The handles here are those of the C shim.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from pathlib import Path
from typing import Any

from overhead.probes.common.native_loop import (
    NativeCall,
    NativeProgram,
    NativeUnavailable,
    Slot,
    address_of,
)
from overhead.results import because

_ITEM = "_ZN2at4_ops4item4callERKNS_6TensorE"
_ADD_IN_PLACE = "_ZN2at4_ops11add__Tensor4callERNS_6TensorERKS2_RKN3c106ScalarE"
_ADD = "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE"
_OPERATOR_NEW = "_Znwm"
_SIZE_OF_TENSOR = 8


class _Scalar(ctypes.Structure):
    """Memory for a ``c10::Scalar`` (32 bytes), which C++ functions return through a pointer."""

    _fields_ = (("storage", ctypes.c_uint64 * 16),)


class NativeAdd:
    """The C calls by which a compiled loop, without Python, runs torch's ``x.add_(one)`` or
    ``x = x + one``: ``program``. Owns the memory that the calls point to. ``entry``: the function
    of libtorch that adds, for the record.
    """

    def __init__(self, x: Any, one: Any, *, in_place: bool) -> None:
        """Find the functions in libtorch, and make their arguments. ``x``: 256 numbers; ``one``: a
        tensor with the number 1.

        Raises ``NativeUnavailable`` if libtorch lacks a function.
        """
        self._library = _library()
        self._tensors = (x, one)  # kept alive: the calls have only their addresses
        # ``_symbol`` finds a function of the library by its C++ name, of ``at::_ops::item::call``
        # here.
        item = self._symbol(_ITEM)
        item.restype = _Scalar
        item.argtypes = (ctypes.c_void_p,)
        # A Tensor is one pointer to a TensorImpl (``_cdata``): a word with this pointer is a
        # Tensor& while Python keeps the tensor.
        self._cells = (ctypes.c_uint64 * 2)(x._cdata, one._cdata)
        self._x = ctypes.addressof(self._cells)
        self._one = self._x + ctypes.sizeof(ctypes.c_uint64)
        # torch computes x + alpha * one. The item of the tensor ``one`` is a Scalar of 1.
        self._alpha = item(self._one)
        self._handle = ctypes.c_uint64(0)  # of x in the allocating loop
        if in_place:
            self.entry = "at::_ops::add__Tensor::call"
            calls = self._in_place_calls()
        else:
            self.entry = "at::_ops::add_Tensor::call"
            calls = self._allocating_calls()
        self.program = NativeProgram(body=calls)

    def _in_place_calls(self) -> tuple[NativeCall, ...]:
        alpha = ctypes.addressof(self._alpha)
        return (self._call(_ADD_IN_PLACE, (self._x, self._one, alpha), stage="add_"),)

    def _allocating_calls(self) -> tuple[NativeCall, ...]:
        """The C calls of ``x = x + one``: allocate memory for a Tensor ``y``, add into it, make x
        refer to its numbers, and delete ``y``. Here x is a handle, a Tensor of the loop that at
        first shares the numbers of Python's tensor; ``read`` copies the last result back.

        ``add`` returns a Tensor by value. On x86-64, C++ writes such a result to memory whose
        address is the first argument. The loop does not know how other processors do this.
        """
        if platform.machine().lower() not in ("x86_64", "amd64"):
            raise NativeUnavailable(because("tensor-return-unknown", processor=platform.machine()))
        # Now, not in the loop: makes the handle ``x`` of Python's tensor. The functions ``aoti_``
        # are torch's interface for C.
        self._run("aoti_torch_new_tensor_handle", self._x, ctypes.addressof(self._handle))
        alpha = ctypes.addressof(self._alpha)
        x = self._handle.value
        # A variable of the loop, which holds the address that ``new`` returns.
        y = Slot(0)
        return (
            # C++'s ``new``. A Tensor is one pointer, 8 bytes.
            self._call(_OPERATOR_NEW, (_SIZE_OF_TENSOR,), result=y, stage="new"),
            self._call(_ADD, (y, x, self._one, alpha), stage="add"),
            self._call("aoti_torch_assign_tensors", (y, x), stage="assign"),
            self._call("aoti_torch_delete_tensor_object", (y,), stage="delete"),
        )

    def read(self) -> None:
        """Copy the latest result of the allocating loop into ``x``."""
        if self._handle.value:
            self._run("aoti_torch_copy_", self._x, self._handle.value, 0)

    def close(self) -> None:
        """Release the handle."""
        if self._handle.value:
            self._run("aoti_torch_delete_tensor_object", self._handle.value)
            self._handle.value = 0

    def _run(self, name: str, *args: int) -> None:
        function = self._symbol(name)
        function.argtypes = (ctypes.c_void_p,) * len(args)
        if function(*args) != 0:
            raise NativeUnavailable(because("libtorch-call-failed", symbol=name))

    def _call(
        self, name: str, args: tuple[int | Slot, ...], *, stage: str, result: Slot | None = None
    ) -> NativeCall:
        """A call of a function of libtorch, run later by a loop. All its arguments are pointers or
        numbers of 64 bits. ``result``: the variable of the loop that keeps the result.
        """
        function = self._symbol(name)
        # For the loop in Python; the compiled one calls the address with words of 64 bits.
        function.restype = ctypes.c_uint64
        function.argtypes = (ctypes.c_uint64,) * len(args)
        address = address_of(self._library, name)
        # Twice: as the name of the call, in place of the long C++ one, and as its stage, the part
        # of a unit under which its time is reported.
        return NativeCall(stage, function, address, args, result, stage)

    def _symbol(self, name: str) -> Any:
        try:
            return self._library[name]
        except AttributeError:
            raise NativeUnavailable(because("libtorch-exports-no-symbol", symbol=name)) from None


def _library() -> ctypes.CDLL:
    """The C++ library libtorch_cpu, which torch has loaded. It contains the functions of all
    operators, for every device: they call the kernel of the device. Raises ``NativeUnavailable``.
    """
    import torch

    if sys.platform == "win32":  # the names of the functions there are others
        raise NativeUnavailable(because("windows-mangles-otherwise"))
    folder = Path(torch.__file__).parent / "lib"
    # On Linux, and on macOS.
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        if (folder / name).is_file():
            return ctypes.CDLL(str(folder / name))
    raise NativeUnavailable(because("no-libtorch-cpu", version=torch.__version__))
