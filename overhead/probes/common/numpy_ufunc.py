"""``np.add`` without Python: call the int32 inner loop of the ufunc by its address."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from overhead.probes.common.native_loop import NativeCall, NativeProgram, NativeUnavailable

if TYPE_CHECKING:
    from numpy import int32
    from numpy.typing import NDArray

_SIGNATURE = "ii->i"


class _Fields(ctypes.Structure):
    """The first fields of ``PyUFuncObject`` (see numpy/ufuncobject.h), after the Python object header."""

    _fields_ = (
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    )


class InnerLoop:
    """A C call that adds 1 to every element of ``x`` in place. Owns the memory that the call points to."""

    def __init__(self, x: NDArray[int32]) -> None:
        import numpy as np

        fields = _Fields.from_address(id(np.add) + object.__basicsize__)
        if (fields.nin, fields.nout, fields.nargs, fields.ntypes) != (2, 1, 3, len(np.add.types)):
            raise NativeUnavailable("np.add is not laid out as numpy/ufuncobject.h says")
        index = np.add.types.index(_SIGNATURE)
        address = fields.functions[index]
        if not address:
            raise NativeUnavailable(f"np.add has no inner loop for {_SIGNATURE}")
        self._one = np.ones(1, np.int32)
        self._arrays = np.array([x.ctypes.data, self._one.ctypes.data, x.ctypes.data], np.uintp)
        self._count = np.array([x.size], np.intp)
        self._strides = np.array([x.itemsize, 0, x.itemsize], np.intp)
        data = fields.data[index] if fields.data else None
        pointers = tuple(array.ctypes.data for array in (self._arrays, self._count, self._strides))
        prototype = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 4)
        add = NativeCall(name="add", function=prototype(address), address=address, args=(*pointers, data or 0))
        self.program = NativeProgram(body=(add,))
