"""numba intrinsics for compiled loops: a C call by address, and a store. Only generated code
imports this.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_WORD = ir.IntType(64)


@intrinsic
def call(typing_context: Any, address: Any, arguments: Any) -> Any:
    """Call ``address(*arguments)`` with the C calling convention of the platform. Arguments and
    result are int64.

    The address is an argument, because numba cannot cache a function whose code contains an
    address.
    """

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        words = cgutils.unpack_tuple(builder, values[1])
        function = ir.FunctionType(_WORD, [_WORD] * len(words)).as_pointer()
        return builder.call(builder.inttoptr(values[0], function), words)

    return types.int64(types.int64, arguments), build


@intrinsic
def store(typing_context: Any, pointer: Any, value: Any) -> Any:
    """Write one int64 to memory."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[1], builder.inttoptr(values[0], _WORD.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), build
