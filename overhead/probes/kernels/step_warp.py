"""The step as kernels of Warp with 1, 8 and 16 arrays. Each changes the first array. Imported only
with Warp.
"""

# ruff: noqa: PLR0913
# mypy: ignore-errors

import warp as wp

_Words = wp.array[wp.uint32]
wp.set_module_options({"enable_backward": False})


@wp.func
def advance(x: _Words, i: int):
    x[i] = x[i] * wp.uint32(1664525) + wp.uint32(1013904223)


@wp.kernel
def step1(x: _Words):
    advance(x, wp.tid())


@wp.kernel
def step8(x: _Words, a: _Words, b: _Words, c: _Words, d: _Words, e: _Words, f: _Words, g: _Words):
    advance(x, wp.tid())


@wp.kernel
def step16(
    x: _Words, a: _Words, b: _Words, c: _Words, d: _Words, e: _Words, f: _Words, g: _Words,
    h: _Words, i: _Words, j: _Words, k: _Words, m: _Words, n: _Words, o: _Words, p: _Words,
):  # fmt: skip
    advance(x, wp.tid())


@wp.kernel
def spin(x: _Words, turns: int):
    """Keeps a stream busy. A turn takes more than three cycles; the exclusive or prevents that
    turns are combined.
    """
    value = x[0]
    for turn in range(turns):
        value = (value ^ wp.uint32(turn)) * wp.uint32(1664525)
    x[0] = value
