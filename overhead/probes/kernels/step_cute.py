"""The step in CuTe DSL, in place: words as int32, 4 blocks of 64 threads. Imported only when CuTe DSL is measured.

int32 overflows in the same way as the unsigned words of other stacks. Each argument of a ``launch`` function is a
parameter of its kernel, except for the stream.
"""

from __future__ import annotations

import cutlass
from cuda.bindings.driver import CUstream
from cutlass import cute
from cutlass.cute import Tensor

_PLACE = {"grid": [4, 1, 1], "block": [64, 1, 1]}


@cute.jit
def _advance(x: Tensor) -> None:
    i = cute.arch.block_idx()[0] * 64 + cute.arch.thread_idx()[0]
    x[i] = x[i] * 1664525 + 1013904223


@cute.kernel
def _step(x: Tensor, others: tuple[Tensor, ...]) -> None:
    _advance(x)


@cute.kernel
def _fixed(address: cutlass.Constexpr) -> None:
    words = cute.make_ptr(cutlass.Int32, address, cute.AddressSpace.gmem, assumed_align=4)
    _advance(cute.make_tensor(words, cute.make_layout(256)))


@cute.jit
def launch0(address: cutlass.Constexpr, stream: CUstream) -> None:
    """Launch a kernel without parameters: the address of the words is a constant of its code."""
    _fixed(address).launch(stream=stream, **_PLACE)


@cute.jit
def launch1(x: Tensor, stream: CUstream) -> None:
    """Launch the step."""
    _step(x, ()).launch(stream=stream, **_PLACE)


@cute.jit
def launch8(  # noqa: PLR0913
    x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor, f: Tensor, g: Tensor, stream: CUstream
) -> None:  # fmt: skip
    """Launch the step with 7 tensors that it does not use."""
    _step(x, (a, b, c, d, e, f, g)).launch(stream=stream, **_PLACE)


@cute.jit
def launch16(  # noqa: PLR0913
    x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor, f: Tensor, g: Tensor, h: Tensor,
    i: Tensor, j: Tensor, k: Tensor, m: Tensor, n: Tensor, o: Tensor, p: Tensor, stream: CUstream,
) -> None:  # fmt: skip
    """Launch the step with 15 tensors that it does not use."""
    _step(x, (a, b, c, d, e, f, g, h, i, j, k, m, n, o, p)).launch(stream=stream, **_PLACE)


LAUNCHES = {0: launch0, 1: launch1, 8: launch8, 16: launch16}
"""By the number of the kernel's parameters."""
