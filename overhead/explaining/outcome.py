"""What some steps computed: their results and the state they left, so that two processes can be
compared.
"""

from __future__ import annotations

import contextlib
import math
import types
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from overhead.errors import file_text
from overhead.explaining import state
from overhead.results import Reason, Why, because

MOST_BYTES = 1 << 31
"""The values of an outcome beyond this many bytes are not compared."""
TOLERANCES = dict.fromkeys(("float", "complex", "float32", "complex64"), 1e-3)
TOLERANCES |= dict.fromkeys(("float64", "complex128", "float128", "complex256"), 1e-9)
_SMALL_FLOATS = 2e-2
"""The largest difference between two results, as a share of the largest value in the array, by
type; of 16 and 8 bits. Integers must be equal. A Python ``float`` may have been a float32 before it
was read.
"""
_MOST_FACTORS, _MOST_DRAWN = 1 << 20, 1 << 24
_STRUCTURE = ("indptr", "indices", "row", "col")
"""Arrays of sparse matrices that say where the values are: with other ones a library may read
beyond its memory.
"""
NotCompared = dict[str, tuple[int, Why]]
"""Parts that are not compared: how many values, and the reason."""


class StepValue(Struct, frozen=True, omit_defaults=True):
    """One array or plain value. ``data``: all elements of type ``stored`` (NumPy's name), in order;
    ``text``: the value if it is no number. ``changed``: a part of the state that the steps changed.
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
        """All elements as a flat NumPy array; for a complex type, the real and imaginary parts in
        turn.
        """
        flat = np.frombuffer(self.data, self.stored or "u1")
        return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


class LaterSteps(Struct, frozen=True):
    """What a step returns many steps later, when an alternative may have stopped working.

    ``soon``: after a fixed number of steps; None if there was no time for so many. ``usual``: after
    all of them. ``middle``, ``whole``: then, once the middle of the arrays and lists that it
    reaches, and all of them, had other values. ``varied``: how many arrays, lists and numbers these
    were.
    """

    soon: list[StepValue] | None
    usual: list[StepValue]
    middle: list[StepValue]
    whole: list[StepValue]
    varied: int


class StepOutcome(Struct, frozen=True):
    """What some steps computed: their ``results``, the ``state`` after the last one; ``left_out``
    is not compared.

    ``responds``: whether a later step gave another result, or changed its state in another way,
    once the arrays that it reaches had other values; None if this was not tried.
    """

    results: list[StepValue]
    state: list[StepValue]
    left_out: NotCompared = {}
    responds: bool | None = None
    later: LaterSteps | None = None


class OutcomeComparison(Struct, frozen=True):
    """Two outcomes. ``differences``: of values. ``count``: of the values that were compared.
    ``left_out``: the others.

    ``unknown``: why the results may differ although these values do not; empty if they are the
    same. ``remark``: what this comparison could not see.
    """

    differences: list[Reason]
    count: int
    left_out: NotCompared = {}
    unknown: Why = ""
    remark: Why = ""


def result_values(
    name: str, result: Any, room: int = MOST_BYTES
) -> tuple[list[StepValue], NotCompared]:
    """Copies of the values in a step's result, at most ``room`` bytes, and the parts left out, as
    ``name.part``.
    """
    leaves, left_out = _reached(result, name)
    return _readable(leaves, left_out, room), left_out


def _reached(root: Any, name: str = "") -> tuple[dict[str, Any], NotCompared]:
    """What an object reaches, by name, and the parts that cannot be read."""
    unread: dict[str, Why] = {}
    found = state.reachable_values(root, unread)
    leaves = {file_text(f"{name}.{part}".strip(".")): leaf for part, leaf in found.items()}
    return leaves, {
        file_text(f"{name}.{part}".strip(".")): (1, reason) for part, reason in unread.items()
    }


def state_values(
    step: Callable[..., Any], before: Mapping[str, int], room: int = MOST_BYTES
) -> tuple[list[StepValue], NotCompared]:
    """A step's arrays up to ``room`` bytes, those changed since ``before`` first, and what is left
    out.
    """
    leaves, left_out = _reached(step)
    now = checksums(step)
    arrays = {name: leaf for name, leaf in leaves.items() if state.is_array(leaf)}
    changed = {name for name in arrays if now.get(name) != before.get(name)}
    ordered = {name: arrays[name] for name in sorted(arrays, key=lambda name: name not in changed)}
    values = _readable(ordered, left_out, room)
    return [
        msgspec.structs.replace(value, changed=value.name in changed) for value in values
    ], left_out


def checksums(step: Callable[..., Any]) -> dict[str, int]:
    """A checksum of each array that a step reaches and that can be read, by name."""
    found = {}
    for name, leaf in _reached(step)[0].items():
        if state.is_array(leaf):
            with contextlib.suppress(Exception):  # the class of the program may raise anything
                found[name] = zlib.crc32(_bytes(state.to_numpy(leaf)))
    return found


def vary_values(root: Any, *, middle: bool) -> int:
    """Give the arrays and lists of numbers that an object reaches other values; how many were
    changed.

    Numbers get others only if there is nothing else: a number may be a size or a limit. ``middle``:
    the ends keep their values, so that what goes by the first or last one alone sees no change.

    Floating point values are multiplied by one of seven factors up to 1.1, so that zeros and signs
    stay. Integers are replaced by others of the same array, so that an index stays one. What is
    done depends on the contents alone: two programs that hold the same values under other names get
    the same new ones, and those of two arrays differ.
    """
    holders: list[Any] = []
    leaves = state.reachable_values(root, {}, holders)
    varied = 0
    for name, leaf in leaves.items():
        if state.is_array(leaf) and name.rpartition(".")[2] not in _STRUCTURE:
            with contextlib.suppress(
                Exception
            ):  # it cannot be written, or its class raises anything
                varied += _vary_array(leaf, middle=middle)
    for holder in holders:
        if isinstance(holder, list):
            varied += _vary_list(holder, middle=middle)
    if not varied:
        for holder in holders:
            varied += _vary_numbers(holder)
    return varied


def _vary_array(array: Any, *, middle: bool) -> bool:
    """Change an array, or its middle along the first axis; whether that was possible."""
    if not math.prod(array.shape):
        return False
    part = array
    if middle and array.shape and array.shape[0] > 2:
        end = max(1, array.shape[0] // 4)
        part = array[end : array.shape[0] - end]
    before = state.to_numpy(part).copy()
    kind = str(getattr(array, "dtype", ""))
    if "float" in kind or "complex" in kind:
        _multiply(part, before)
    elif before.dtype.kind in "biu" and before.size <= _MOST_DRAWN:
        _write(part, _drawn(before))
    return not np.array_equal(before, state.to_numpy(part))


def _multiply(array: Any, before: Any) -> None:
    number, size = zlib.crc32(_bytes(before)), math.prod(array.shape)
    # One factor for a large array: an array of factors would need as much memory.
    one = 1 + (number % 7 + 1) / 70
    factors: Any = one
    if size <= _MOST_FACTORS:
        factors = 1 + ((np.arange(size).reshape(array.shape) + number) % 7 + 1) / 70
    if hasattr(array, "detach"):  # PyTorch
        import torch

        with torch.inference_mode(array.is_inference()), torch.no_grad():
            array.mul_(torch.as_tensor(factors).to(array.device, array.dtype))
    elif isinstance(array, np.ndarray):
        array *= np.asarray(factors, array.dtype)
    elif type(array).__module__.startswith("cupy"):
        array *= one


def _drawn(values: Any) -> Any:
    """Values drawn from these, by their contents."""
    dice = np.random.default_rng(zlib.crc32(_bytes(values)))
    return dice.choice(values.reshape(-1), values.shape)


def _write(array: Any, values: Any) -> None:
    if hasattr(array, "detach"):  # PyTorch
        import torch

        with torch.inference_mode(array.is_inference()), torch.no_grad():
            array.copy_(torch.as_tensor(values))
    elif isinstance(array, np.ndarray):
        array[...] = values
    elif type(array).__module__.startswith("cupy"):
        array.set(values)


def _vary_list(values: list[Any], *, middle: bool) -> bool:
    """Change a list of numbers, or its middle; whether that was possible."""
    kinds = {type(value) for value in values}
    if not values or not kinds <= {int, float}:
        return False
    end = max(1, len(values) // 4) if middle and len(values) > 2 else 0
    part = values[end : len(values) - end]
    if kinds == {int}:
        number = zlib.crc32(repr(part).encode())
        new = [
            part[at]
            for at in np.random.default_rng(number).integers(len(part), size=len(part)).tolist()
        ]
    else:
        new = [value * _factor(value) if isinstance(value, float) else value for value in part]
    values[end : len(values) - end] = new
    return new != part


def _factor(value: float) -> float:
    return 1 + (zlib.crc32(repr(value).encode()) % 7 + 1) / 70


def _vary_numbers(holder: Any) -> int:
    """Change the floating point numbers in a dict, an object or the variables of a function; how
    many.
    """
    if isinstance(holder, types.FunctionType):
        cells = [cell for cell in holder.__closure__ or () if _is_number(cell)]
        for cell in cells:
            cell.cell_contents *= _factor(cell.cell_contents)
        names = dict.fromkeys(state.named_globals(holder))
        return len(cells) + _vary_items(holder.__globals__, names)
    named = holder if isinstance(holder, dict) else getattr(holder, "__dict__", None)
    if not isinstance(named, dict) or isinstance(holder, types.ModuleType | type):
        return 0
    return _vary_items(named, list(named))


def _vary_items(named: dict[Any, Any], names: Iterable[Any]) -> int:
    """Change the floating point numbers of these names; how many."""
    numbers = [name for name in names if type(named[name]) is float and named[name]]
    for name in numbers:
        named[name] *= _factor(named[name])
    return len(numbers)


def _is_number(cell: Any) -> bool:
    with contextlib.suppress(ValueError):  # not assigned yet
        return type(cell.cell_contents) is float and bool(cell.cell_contents)
    return False


def _readable(leaves: Mapping[str, Any], left_out: NotCompared, room: int) -> list[StepValue]:
    """The values of these arrays and plain values. Adds those that cannot be read to
    ``left_out``.
    """
    values = []
    for name, leaf in leaves.items():
        try:
            if room < int(getattr(leaf, "nbytes", 0)):
                left_out[name] = (math.prod(leaf.shape), because("part-too-large"))
            elif not state.is_array(leaf) and not state.is_plain(leaf):
                kind = f"{type(leaf).__module__}.{type(leaf).__qualname__}"
                left_out[name] = (1, because("part-of-unknown-type", type=kind))
            else:
                values.append(_value(name, leaf))
                room -= values[-1].data.nbytes
        except _HoldsOtherThings as error:
            left_out[name] = (1, because("part-holds-other-things", type=error.dtype))
        except Exception as error:  # the class of the program may raise anything
            left_out[name] = (1, state.why_unread(error))
    return values


class _HoldsOtherThings(Exception):
    """An array of other things than numbers and text. ``dtype``: its type."""

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype)
        self.dtype = dtype


def _value(name: str, leaf: Any) -> StepValue:
    if state.is_array(leaf):
        array = state.to_numpy(leaf)
        dtype = str(getattr(leaf, "dtype", array.dtype)).removeprefix("torch.")
    else:
        numbers = (kind for kind in (int, float, complex) if isinstance(leaf, kind))
        dtype = next(numbers, type(leaf)).__name__
        array = np.array(leaf) if dtype in ("int", "float", "complex") else np.array(None)
        if array.dtype.kind == "O":  # no number, or an integer of over 64 bits
            return StepValue(name, dtype, text=_text(leaf))
    if array.dtype.kind not in "biufcSUMm":
        raise _HoldsOtherThings(dtype)
    if array.dtype.kind in "SUMm":
        return StepValue(name, dtype, tuple(array.shape), text=_text(array.tolist()))
    return StepValue(
        name, dtype, tuple(array.shape), memoryview(_bytes(array).tobytes()), array.dtype.str
    )


def _bytes(array: Any) -> Any:
    return np.ascontiguousarray(array).reshape(-1).view("u1")


def _text(value: Any) -> str:
    """A value that is no number as text; the end of a long text is replaced by a checksum of all of
    it.
    """
    text = repr(value)
    if len(text) > 200:
        text = f"{text[:180]}... {zlib.crc32(text.encode(errors='replace')):08x}"
    return file_text(text)


def compare_outcomes(
    first: StepOutcome, second: StepOutcome, *, own: bool = False
) -> OutcomeComparison:
    """Compare two outcomes. ``own``: the second is another program, whose state may have other
    names.

    Then only state that both reach and one changes is compared. If nothing else can be, and the
    second changes nothing, it is a difference that the first changes its state. If the first
    responds to other values of its arrays, the second must too.
    """
    left_out = first.left_out | second.left_out
    unknown: Why = ""
    remark: Why = ""
    results = [
        [one for one in each.results if one.name not in left_out] for each in (first, second)
    ]
    ours, theirs = (
        {one.name: one for one in each.state if one.name not in left_out}
        for each in (first, second)
    )
    found = differences(*results)
    if own:
        gone = [one for name, one in ours.items() if one.changed and name not in theirs]
        both = [
            name
            for name, one in ours.items()
            if name in theirs and (one.changed or theirs[name].changed)
        ]
        left_out |= {one.name: (one.count, because("not-reached-by-alternative")) for one in gone}
        if gone and not both:
            unknown = because("alternative-lacks-changed-array")
            if not any(one.count for one in results[0]) and not any(
                one.changed for one in theirs.values()
            ):
                found.append(
                    because("value-only-of-step", name=gone[0].name, value=_shown(gone[0]))
                )
        ours, theirs = {name: ours[name] for name in both}, {name: theirs[name] for name in both}
        unknown = unknown or _doubt_of_later_steps(first, second)
        if first.responds is False and not found:
            remark = because("step-does-not-vary")
    found += differences(list(ours.values()), list(theirs.values()))
    compared = [*results[0], *ours.values()]
    count = sum(one.count for one in compared)
    changed = [one for one in ours.values() if one.changed]
    computed = [one for one in [*results[0], *changed] if one.count]
    if not count:
        unknown = because("no-values-to-compare")
    elif not computed:
        unknown = unknown or because("step-without-results")
    elif not any(map(_is_finite, computed)):
        unknown = because("results-not-finite")
    return OutcomeComparison(found, count, left_out, unknown, "" if unknown else remark)


def _doubt_of_later_steps(first: StepOutcome, second: StepOutcome) -> Why:
    """Why the second may not do the work of the first in later steps, or with other values; '' if
    nothing says so.
    """
    ours, theirs = first.later, second.later
    if ours is not None and not ours.varied:
        return because("nothing-varied")
    if first.responds and second.responds is False:
        return because("alternative-does-not-vary-alike")
    if ours is None or theirs is None:
        return ""
    if ours.soon is not None and theirs.soon is not None and differences(ours.soon, theirs.soon):
        return because("alternative-stops-working")
    # The two made different numbers of steps since then. That is no matter if the results do not
    # change with them.
    if ours.soon is None or differences(ours.soon, ours.usual):
        return ""
    if differences(ours.usual, theirs.usual):
        return because("alternative-stops-working")
    if differences(ours.middle, theirs.middle) or differences(ours.whole, theirs.whole):
        return because("alternative-does-not-vary-alike")
    return ""


def _is_finite(value: StepValue) -> bool:
    """Whether a value can show a difference: text, or numbers of which one is finite."""
    return bool(value.text) or bool(np.isfinite(value.elements()).any())


def differences(first: Sequence[StepValue], second: Sequence[StepValue]) -> list[Reason]:
    """The values that differ by more than the tolerance of their type, and those that one side
    lacks.
    """
    theirs = {value.name: value for value in second}
    found = []
    for value in first:
        other = theirs.pop(value.name, None)
        if other is None:
            found.append(because("value-only-of-step", name=value.name, value=_shown(value)))
        elif (difference := _difference(value, other)) is not None:
            found.append(difference)
    for value in theirs.values():
        found.append(because("value-only-of-alternative", name=value.name, value=_shown(value)))
    return found


def _difference(first: StepValue, second: StepValue) -> Reason | None:
    """Both values where they differ most; None if they do not differ."""
    ours, theirs = first.elements(), second.elements()
    other = (first.shape, first.text, ours.size) != (second.shape, second.text, theirs.size)
    if other or (first.shape and first.dtype != second.dtype):
        return because("values-differ", name=first.name, first=_kind(first), second=_kind(second))
    tolerance = max(_tolerance(first.dtype), _tolerance(second.dtype))
    scale = max(_scale(ours), _scale(theirs)) if tolerance else 0.0
    at = np.flatnonzero(ours != theirs)
    near, far = (
        each[at].astype(np.result_type(ours, theirs, np.float64)) for each in (ours, theirs)
    )
    if tolerance:
        wrong = ~np.isclose(near, far, rtol=0, atol=tolerance * scale, equal_nan=True)
        at, near, far = at[wrong], near[wrong], far[wrong]
    if not at.size:
        return None
    with np.errstate(invalid="ignore"):
        distance = np.nan_to_num(np.abs(near - far), nan=np.inf, posinf=np.inf)
    worst = int(distance.argmax())
    shown = {"first": _number(ours[at[worst]]), "second": _number(theirs[at[worst]])}
    if scale > 0 and distance[worst] < math.inf:
        share = float(distance[worst] / scale)
        return because("values-differ-by-share", name=first.name, share=share, **shown)
    return because("values-differ", name=first.name, **shown)


def _scale(values: Any) -> float:
    """The largest absolute finite value."""
    return float(np.abs(values[np.isfinite(values)].astype(np.float64)).max(initial=0))


def _tolerance(dtype: str) -> float:
    return TOLERANCES.get(
        dtype, _SMALL_FLOATS if dtype.startswith(("float", "bfloat", "complex")) else 0.0
    )


def _number(value: Any) -> str:
    return f"{value:.9g}" if value.dtype.kind == "f" else str(value)


def _kind(value: StepValue) -> str:
    return value.text or (f"{value.dtype}{list(value.shape)}" if value.shape else _shown(value))


def _shown(value: StepValue) -> str:
    return value.text or (
        _number(value.elements()[0]) if value.data.nbytes else f"{value.dtype}{list(value.shape)}"
    )
