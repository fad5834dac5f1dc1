"""What some steps computed: their results and the state they left, small enough to pass between two processes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from overhead.errors import file_text
from overhead.explain import state

_KEPT = 4096
"""How many elements of an array are kept, at equal distances. Its sums cover the others."""
_MOST_BYTES = 1 << 32
"""Arrays of the state beyond this many bytes in total are not compared."""
TOLERANCES = {"float64": 1e-9, "complex128": 1e-9, "float32": 1e-3, "complex64": 1e-3, "float": 1e-3}
"""The largest difference between two results, as a share of the largest value in the array. Integers must be
equal. A Python ``float`` may have been a float32 before it was read."""
_SMALL_FLOATS = 2e-2
"""The same for types of 16 and 8 bits."""


class StepValue(Struct, frozen=True, omit_defaults=True):
    """One array or plain value. ``elements``: at most 4,096 of an array, at equal distances, then its sum and the sum
    of its absolute values; as text for a value that is no number. ``scale``: the largest absolute element.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    elements: list[float] = []
    text: str = ""
    scale: float = 0.0


class StepOutcome(Struct, frozen=True):
    """``results``: of each step. ``state``: after the last one. ``left_out``: parts that are not compared, with the
    reason.
    """

    results: list[StepValue]
    state: list[StepValue]
    left_out: dict[str, str] = {}


class ValueDifference(Struct, frozen=True):
    """A value that two outcomes do not share. ``worst``: the largest difference as a share of the largest value."""

    name: str
    first: str
    second: str
    worst: float | None = None

    def sentence(self) -> str:
        share = f" (difference {self.worst:.1e} of the largest value)" if self.worst is not None else ""
        return f"{self.name}: {self.first} and {self.second}{share}"


def of_result(name: str, result: Any) -> tuple[list[StepValue], dict[str, str]]:
    """The values of one step's result, and the parts that are not compared, with the reason. Names begin with ``name``.

    The values are copies, so that a later step may reuse the memory.
    """
    unread: dict[str, str] = {}
    leaves = {_inside(name, part): leaf for part, leaf in state.reach(result, unread).items()}
    left_out = {_inside(name, part): reason for part, reason in unread.items()}
    return _readable(leaves, left_out), left_out


def _inside(name: str, part: str) -> str:
    return file_text(f"{name}.{part}".rstrip("."))


def of_state(step: Callable[..., Any]) -> tuple[list[StepValue], dict[str, str]]:
    """The arrays that a step reaches, and those that are not compared, with the reason."""
    unread: dict[str, str] = {}
    arrays = {file_text(name): leaf for name, leaf in state.reach(step, unread).items() if state.is_array(leaf)}
    left_out = {file_text(name): reason for name, reason in unread.items()}
    used = 0
    for name, array in list(arrays.items()):
        used += int(getattr(array, "nbytes", 0))
        if used > _MOST_BYTES:
            left_out[name] = "too large to compare"
            del arrays[name]
    return _readable(arrays, left_out), left_out


def _readable(leaves: Mapping[str, Any], left_out: dict[str, str]) -> list[StepValue]:
    """The values of these arrays and plain values. Adds those that cannot be read to ``left_out``."""
    values = []
    for name, leaf in leaves.items():
        try:
            values.append(_value(name, leaf))
        except Exception as error:  # the class of the program may raise anything
            left_out[name] = state.why_unread(error)
    return values


def _value(name: str, leaf: Any) -> StepValue:
    import numpy as np

    if not state.is_array(leaf) and not isinstance(leaf, bool | int | float):
        return StepValue(name, type(leaf).__name__, text=_text(leaf))
    array = state.to_numpy(leaf)
    dtype = type(leaf).__name__
    if state.is_array(leaf):
        dtype = str(getattr(leaf, "dtype", array.dtype)).removeprefix("torch.")
    if array.dtype.kind not in "biufc":
        return StepValue(name, dtype, tuple(array.shape), text=_text(array.tolist()))
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag])
    flat = array.reshape(-1).astype(np.float64)
    kept = flat[np.linspace(0, flat.size - 1, min(_KEPT, flat.size)).astype(int)] if flat.size else flat
    finite = flat[np.isfinite(flat)]
    scale = float(np.abs(finite).max()) if finite.size else 0.0
    elements = [*kept.tolist(), *([float(flat.mean()), float(np.abs(flat).mean())] if flat.size else [])]
    return StepValue(name, dtype, tuple(array.shape), elements, scale=scale)


def _text(value: Any) -> str:
    """A value that is no number as text; the end of a long text is replaced by a checksum of all of it."""
    text = repr(value)
    if len(text) > 200:
        text = f"{text[:180]}... {zlib.crc32(text.encode(errors='replace')):08x}"
    return file_text(text)


def differences(first: Sequence[StepValue], second: Sequence[StepValue]) -> list[ValueDifference]:
    """The values that differ by more than the tolerance of their type, and those that one side lacks."""
    theirs = {value.name: value for value in second}
    found = []
    for value in first:
        other = theirs.pop(value.name, None)
        if other is None:
            found.append(ValueDifference(value.name, _shown(value), "nothing"))
        elif difference := _difference(value, other):
            found.append(difference)
    return [*found, *(ValueDifference(value.name, "nothing", _shown(value)) for value in theirs.values())]


def _difference(first: StepValue, second: StepValue) -> ValueDifference | None:
    import numpy as np

    if (first.shape, first.text) != (second.shape, second.text) or (first.shape and first.dtype != second.dtype):
        return ValueDifference(first.name, _kind(first), _kind(second))
    ours, theirs = np.array(first.elements), np.array(second.elements)
    if np.array_equal(ours, theirs, equal_nan=True):
        return None
    tolerance = max(_tolerance(first.dtype), _tolerance(second.dtype))
    if np.array_equal(np.isfinite(ours), np.isfinite(theirs)):
        distance = np.abs(ours - theirs)[np.isfinite(ours)]
        scale = max(first.scale, second.scale)
        worst = float(distance.max() / scale) if distance.size and scale else float("inf")
        if worst <= tolerance:
            return None
        at = int(np.argmax(np.where(np.isfinite(ours), np.abs(ours - theirs), 0)))
    else:
        worst, at = float("inf"), int(np.argmax(np.isfinite(ours) != np.isfinite(theirs)))
    return ValueDifference(first.name, f"{ours[at]:.9g}", f"{theirs[at]:.9g}", worst if worst < float("inf") else None)


def _tolerance(dtype: str) -> float:
    return TOLERANCES.get(dtype, _SMALL_FLOATS if "float" in dtype else 0.0)


def _kind(value: StepValue) -> str:
    return value.text or f"{value.dtype}{list(value.shape)}"


def _shown(value: StepValue) -> str:
    return value.text or (f"{value.elements[0]:.9g}" if value.elements else _kind(value))
