"""What some steps computed: their results and the state they left, so that two processes can be compared."""

from __future__ import annotations

import contextlib
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from overhead.errors import file_text
from overhead.explain import state

MOST_BYTES = 1 << 31
"""The values of an outcome beyond this many bytes are not compared."""
_CHUNK = 1 << 20
TOLERANCES = {"float": 1e-3, "complex": 1e-3, "float32": 1e-3, "complex64": 1e-3}
TOLERANCES |= dict.fromkeys(("float64", "complex128", "float128", "complex256"), 1e-9)
"""The largest difference between two results, as a share of the largest value in the array. Integers must be
equal. A Python ``float`` may have been a float32 before it was read."""
_SMALL_FLOATS = 2e-2
"""The same for types of 16 and 8 bits."""
NotCompared = dict[str, tuple[int, str]]
"""Parts that are not compared: how many values, and the reason."""


class StepValue(Struct, frozen=True, omit_defaults=True):
    """One array or plain value. ``data``: all elements of type ``stored`` (NumPy's name), in order; ``text``: the value
    if it is no number. ``changed``: a part of the state that the steps changed.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    data: memoryview = memoryview(b"")
    stored: str = ""
    text: str = ""
    changed: bool = False

    @property
    def count(self) -> int:
        """How many values this is. ``None`` and an empty container are none."""
        return 0 if self.text in ("None", "{}", "[]", "()", "set()") else math.prod(self.shape)

    def elements(self) -> Any:
        """All elements as a flat NumPy array; for a complex type, the real and imaginary parts in turn."""
        import numpy as np

        flat = np.frombuffer(self.data, self.stored or "u1")
        return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


class StepOutcome(Struct, frozen=True):
    """``results``: of each step. ``state``: after the last one. ``left_out``: parts that are not compared."""

    results: list[StepValue]
    state: list[StepValue]
    left_out: NotCompared = {}


class ValueDifference(Struct, frozen=True):
    """A value that two outcomes do not share. ``worst``: the largest difference as a share of the largest value."""

    name: str
    first: str
    second: str
    worst: float | None = None

    def sentence(self) -> str:
        share = f" (difference {self.worst:.1e} of the largest value)" if self.worst is not None else ""
        return f"{self.name}: {self.first} and {self.second}{share}"


class OutcomeComparison(Struct, frozen=True):
    """Two outcomes. ``count``: of the values that were compared. ``left_out``: parts that were not compared.

    ``unknown``: why values that do not differ do not show that the results are the same.
    """

    differences: list[ValueDifference]
    count: int
    left_out: NotCompared = {}
    unknown: str = ""


def of_result(name: str, result: Any, room: int = MOST_BYTES) -> tuple[list[StepValue], NotCompared]:
    """The values of one step's result, and the parts that are not compared. Names begin with ``name``.

    The values are copies, so that a later step may reuse the memory. ``room``: how many bytes they may have.
    """
    unread: dict[str, str] = {}
    leaves = {_inside(name, part): leaf for part, leaf in state.reach(result, unread).items()}
    left_out = {_inside(name, part): (1, reason) for part, reason in unread.items()}
    return _readable(leaves, left_out, room), left_out


def _inside(name: str, part: str) -> str:
    return file_text(f"{name}.{part}".rstrip("."))


def of_state(
    step: Callable[..., Any], before: Mapping[str, int], room: int = MOST_BYTES
) -> tuple[list[StepValue], NotCompared]:
    """The arrays that a step reaches, and the parts that are not compared.

    ``before``: earlier checksums. ``room``: how many bytes the values may have; arrays that have changed come first.
    """
    unread: dict[str, str] = {}
    arrays = {file_text(name): leaf for name, leaf in state.reach(step, unread).items() if state.is_array(leaf)}
    left_out = {file_text(name): (1, reason) for name, reason in unread.items()}
    now = checksums(step)
    changed = {name for name in arrays if now.get(name) != before.get(name)}
    ordered = {name: arrays[name] for name in sorted(arrays, key=lambda name: name not in changed)}
    values = _readable(ordered, left_out, room)
    return [msgspec.structs.replace(value, changed=value.name in changed) for value in values], left_out


def checksums(step: Callable[..., Any]) -> dict[str, int]:
    """A checksum of each array that a step reaches and that can be read."""
    found = {}
    for name, leaf in state.reach(step).items():
        if state.is_array(leaf):
            with contextlib.suppress(Exception):  # the class of the program may raise anything
                found[file_text(name)] = zlib.crc32(_bytes(state.to_numpy(leaf)))
    return found


def _readable(leaves: Mapping[str, Any], left_out: NotCompared, room: int) -> list[StepValue]:
    """The values of these arrays and plain values. Adds those that cannot be read to ``left_out``."""
    values = []
    for name, leaf in leaves.items():
        try:
            if room < int(getattr(leaf, "nbytes", 0)):
                left_out[name] = (math.prod(leaf.shape), "too large to compare")
                continue
            if not state.is_array(leaf) and not state.is_plain(leaf):
                left_out[name] = (1, f"cannot be compared: {type(leaf).__module__}.{type(leaf).__qualname__}")
                continue
            values.append(_value(name, leaf))
            room -= values[-1].data.nbytes
        except Exception as error:  # the class of the program may raise anything
            left_out[name] = (1, state.why_unread(error))
    return values


def _value(name: str, leaf: Any) -> StepValue:
    import numpy as np

    array = None
    if state.is_array(leaf):
        array = state.to_numpy(leaf)
        dtype = str(getattr(leaf, "dtype", array.dtype)).removeprefix("torch.")
    elif isinstance(leaf, bool | int | float | complex):
        array, dtype = np.array(leaf), next(kind.__name__ for kind in (int, float, complex) if isinstance(leaf, kind))
    if array is None or (array.dtype.kind == "O" and not array.shape):  # an integer of over 64 bits
        return StepValue(name, type(leaf).__name__, text=_text(leaf))
    if array.dtype.kind == "O":
        raise TypeError(f"{dtype} holds objects")
    if array.dtype.kind not in "biufc":
        return StepValue(name, dtype, tuple(array.shape), text=_text(array.tolist()))
    return StepValue(name, dtype, tuple(array.shape), memoryview(_bytes(array).tobytes()), array.dtype.str)


def _bytes(array: Any) -> Any:
    import numpy as np

    return np.ascontiguousarray(array).reshape(-1).view("u1")


def _text(value: Any) -> str:
    """A value that is no number as text; the end of a long text is replaced by a checksum of all of it."""
    text = repr(value)
    if len(text) > 200:
        text = f"{text[:180]}... {zlib.crc32(text.encode(errors='replace')):08x}"
    return file_text(text)


def compared(first: StepOutcome, second: StepOutcome, *, own: bool = False) -> OutcomeComparison:
    """What two outcomes share. ``own``: the second is another program, whose state may have other names.

    Then the state that one of them changes is compared where both reach it. If nothing else can be compared, and the
    second one changes nothing, it is a difference that the first one changes its state.
    """
    left_out, unknown = first.left_out | second.left_out, ""
    results = [[one for one in each.results if one.name not in left_out] for each in (first, second)]
    ours, theirs = ({one.name: one for one in each.state if one.name not in left_out} for each in (first, second))
    found = differences(*results)
    if own:
        theirs = {name: msgspec.structs.replace(one, name=name) for name, one in _matched(ours, theirs).items()}
        gone = [one for name, one in ours.items() if one.changed and name not in theirs]
        both = [name for name, one in ours.items() if name in theirs and (one.changed or theirs[name].changed)]
        left_out |= {one.name: (one.count, "your alternative does not reach it") for one in gone}
        if gone and not both:
            unknown = "your alternative has no reference to an array that the step changes"
            if not any(one.count for one in results[0]) and not any(one.changed for one in theirs.values()):
                found.append(ValueDifference(gone[0].name, _shown(gone[0]), "nothing"))
        ours, theirs = {name: ours[name] for name in both}, {name: theirs[name] for name in both}
    found += differences(list(ours.values()), list(theirs.values()))
    count = sum(one.count for one in [*results[0], *ours.values()])
    return OutcomeComparison(found, count, left_out, unknown if count else "there are no values to compare")


def _matched(ours: Mapping[str, StepValue], theirs: Mapping[str, StepValue]) -> dict[str, StepValue]:
    """Their arrays by our names: ``step.model.weight`` of a step inside another function is ``model.weight``."""
    found = {}
    for name, one in theirs.items():
        same = [our for our in ours if our.endswith(f".{name}") or name.endswith(f".{our}")]
        found[same[0] if name not in ours and len(same) == 1 and same[0] not in theirs else name] = one
    return found


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

    ours, theirs = first.elements(), second.elements()
    other = (first.shape, first.text, ours.size) != (second.shape, second.text, theirs.size)
    if other or (first.shape and first.dtype != second.dtype):
        return ValueDifference(first.name, _kind(first), _kind(second))
    tolerance = max(_tolerance(first.dtype), _tolerance(second.dtype))
    scale = max(_scale(ours), _scale(theirs)) if tolerance else 0.0
    worst, at = -1.0, -1
    for start in range(0, ours.size, _CHUNK):
        part, other_part = ours[start : start + _CHUNK], theirs[start : start + _CHUNK]
        wrong = part != other_part
        if not wrong.any():
            continue
        wide = np.result_type(part, other_part, np.float64)
        near, far = part.astype(wide), other_part.astype(wide)
        if tolerance:
            wrong = ~np.isclose(near, far, rtol=0, atol=tolerance * scale, equal_nan=True)
        with np.errstate(invalid="ignore"):
            distance = np.where(wrong, np.nan_to_num(np.abs(near - far), nan=np.inf, posinf=np.inf), -1)
        if distance.max() > worst:
            worst, at = float(distance.max()), start + int(distance.argmax())
    if at < 0:
        return None
    share = worst / scale if scale and worst < math.inf else None
    return ValueDifference(first.name, _number(ours[at]), _number(theirs[at]), share)


def _scale(values: Any) -> float:
    """The largest absolute finite value."""
    import numpy as np

    parts = (values[start : start + _CHUNK].astype(np.float64) for start in range(0, values.size, _CHUNK))
    return max((float(np.abs(part[np.isfinite(part)]).max(initial=0)) for part in parts), default=0.0)


def _tolerance(dtype: str) -> float:
    return TOLERANCES.get(dtype, _SMALL_FLOATS if dtype.startswith(("float", "bfloat", "complex")) else 0.0)


def _number(value: Any) -> str:
    return f"{value:.9g}" if value.dtype.kind == "f" else str(value)


def _kind(value: StepValue) -> str:
    return value.text or (f"{value.dtype}{list(value.shape)}" if value.shape else _shown(value))


def _shown(value: StepValue) -> str:
    return value.text or (_number(value.elements()[0]) if value.data.nbytes else f"{value.dtype}{list(value.shape)}")
