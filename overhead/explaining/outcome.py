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
TOLERANCES = {
    **dict.fromkeys(("float", "complex", "float32", "complex64"), 1e-3),
    **dict.fromkeys(("float64", "complex128", "float128", "complex256"), 1e-9),
}
"""The largest difference between two results, as a share of the largest value in the array, by
type. Integers must be equal. A Python ``float`` may have been a float32 before it was read.

Chosen, not measured; docs/explain.md tells what they let pass: a learning rate that is 1 % higher
changes float32 parameters by 5e-4 in six steps.
"""
_SMALL_FLOATS = 2e-2
"""The same for floating point types of 16 and 8 bits. Chosen, not measured."""
_MOST_FACTORS, _MOST_DRAWN = 1 << 20, 1 << 24
"""An array of more elements is multiplied by one factor, and integers of a larger array are not
varied, since the copies would need as much memory. Chosen, not measured.
"""
_LONGEST_TEXT, _SHOWN_TEXT = 200, 180
_STRUCTURE = ("indptr", "indices", "row", "col")
"""Arrays of sparse matrices that say where the values are: with other ones a library may read
beyond its memory.
"""
NotCompared = dict[str, tuple[int, Why]]
"""Parts that are not compared: how many values, and the reason."""


class StepValue(Struct, frozen=True, omit_defaults=True):
    """A copy of one array or plain value that a step returned or can reach, to be compared in
    another process. ``name``: by which the step reaches it, such as ``model.weight``. ``dtype``:
    its type in the program. ``data``: all elements of type ``stored`` (NumPy's name), in order;
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
        if self.text in ("None", "{}", "[]", "()", "set()"):
            return 0
        return math.prod(self.shape)

    def elements(self) -> Any:
        """All elements as a flat NumPy array; for a complex type, the real and imaginary parts in
        turn.
        """
        flat = np.frombuffer(self.data, self.stored or "u1")
        is_complex = flat.dtype.kind == "c"
        return flat.view(flat.real.dtype) if is_complex else flat


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
    """Copies of the values in what a step returned (``result``), at most ``room`` bytes, and the
    parts that are left out, each with the reason. Names of parts begin with ``name``, as ``step 1``
    in ``step 1.loss``.
    """
    leaves, left_out = _reached(result, name)
    values = _readable(leaves, left_out, room)  # adds to ``left_out``
    return values, left_out


def _reached(root: Any, name: str = "") -> tuple[dict[str, Any], NotCompared]:
    """The arrays and plain values that an object reaches, by name (``model.weight``), and the parts
    that cannot be read, each as one value with the reason. Names begin with ``name``.
    """

    def full_name(part: str) -> str:
        # A dot between both; none where one is empty, as the part that is the object itself.
        # ``file_text`` cuts it and replaces what is no UTF-8: a key of the program may be any text,
        # and a file must hold it.
        return file_text(f"{name}.{part}".strip("."))

    unread: dict[str, Why] = {}
    # ``unread`` gets the name and the reason of each object that could not be read in full.
    values = state.reachable_values(root, unread)
    leaves = {full_name(part): leaf for part, leaf in values.items()}
    left_out = {full_name(part): (1, reason) for part, reason in unread.items()}
    return leaves, left_out


def state_values(
    step: Callable[..., Any], before: Mapping[str, int], room: int = MOST_BYTES
) -> tuple[list[StepValue], NotCompared]:
    """The state that a step leaves: copies of the arrays that it reaches, such as parameters, at
    most ``room`` bytes, and what is left out. ``before``: the ``checksums`` of these arrays before
    the steps ran; they tell which arrays have changed since.
    """
    leaves, left_out = _reached(step)
    # An array has changed if its checksum is another one, or if it was not there before.
    now = checksums(step)
    # Changed arrays come first, so that they are not those for which there is no room.
    changed_arrays: dict[str, Any] = {}
    other_arrays: dict[str, Any] = {}
    for name, leaf in leaves.items():
        if not state.is_array(leaf):
            continue
        is_changed = now.get(name) != before.get(name)
        arrays = changed_arrays if is_changed else other_arrays
        arrays[name] = leaf

    values = _readable({**changed_arrays, **other_arrays}, left_out, room)
    marked = []
    for value in values:
        is_changed = value.name in changed_arrays
        marked.append(msgspec.structs.replace(value, changed=is_changed))
    return marked, left_out


def checksums(step: Callable[..., Any]) -> dict[str, int]:
    """A checksum of each array that a step reaches and that can be read, by name. Two of them, from
    before and after a step, tell which arrays it changed, without a copy of them.
    """
    leaves, _ = _reached(step)
    checksums_by_name = {}
    for name, leaf in leaves.items():
        if state.is_array(leaf):
            with contextlib.suppress(Exception):  # the class of the program may raise anything
                checksums_by_name[name] = zlib.crc32(_bytes(state.to_numpy(leaf)))
    return checksums_by_name


def vary_values(root: Any, *, middle: bool) -> int:
    """Give the arrays and lists of numbers that an object (a step) reaches other values; returns
    how many were changed. A step that then returns the same as before returns a stored result.

    Numbers get others only if there is nothing else: a number may be a size or a limit. ``middle``:
    the ends keep their values, so that what goes by the first or last one alone sees no change.

    Floating point values are multiplied by one of seven factors up to 1.1, so that zeros and signs
    stay. Integers are replaced by others of the same array, so that an index stays one. What is
    done depends on the contents alone: two programs that hold the same values under other names get
    the same new ones, and those of two arrays differ.
    """
    holders: list[Any] = []  # the objects that hold values, such as lists and dicts
    # First arrays, then lists; numbers only if neither changed. ``reachable_values`` also fills
    # ``holders``.
    leaves = state.reachable_values(root, {}, holders)
    varied = 0
    for name, leaf in leaves.items():
        # ``_STRUCTURE``: names of the arrays of a sparse matrix that say where its values are; with
        # other ones a library may read beyond its memory.
        last_part = name.rpartition(".")[2]
        if state.is_array(leaf) and last_part not in _STRUCTURE:
            # The array may be read-only, or its class raises anything.
            with contextlib.suppress(Exception):
                if _vary_array(leaf, middle=middle):
                    varied += 1
    for holder in holders:
        if isinstance(holder, list) and _vary_list(holder, middle=middle):
            varied += 1
    if varied:
        return varied
    return sum(_vary_numbers(holder) for holder in holders)


def _vary_array(array: Any, *, middle: bool) -> bool:
    """Give an array other values in place, or only its middle along the first axis; returns whether
    a value changed. ``middle``: the first and the last quarter keep their values.
    """
    if not math.prod(array.shape):  # it has no elements
        return False
    # The part that changes: all, or the middle half of the first axis.
    part = array
    if middle and array.shape and array.shape[0] > 2:
        length = array.shape[0]
        quarter = max(1, length // 4)
        part = array[quarter : length - quarter]  # a view, so the array itself changes
    before = state.to_numpy(part).copy()
    dtype = str(getattr(array, "dtype", ""))
    if "float" in dtype or "complex" in dtype:
        _multiply(part, before)
    # Booleans and integers. They may be indices, so no new number may come in. ``_drawn``: values
    # drawn from the array itself. A huge array stays as it is, since a copy would need as much
    # memory.
    elif before.dtype.kind in "biu" and before.size <= _MOST_DRAWN:
        _write(part, _drawn(before))
    return not np.array_equal(before, state.to_numpy(part))


def _factor_of(number: Any) -> Any:
    """One of seven factors from 1 + 1/70 to 1.1, by the remainder of a whole number (or of an array
    of them).
    """
    return 1 + (number % 7 + 1) / 70


def _multiply(array: Any, before: Any) -> None:
    """Multiply the elements of an array in place by factors from 1.01 to 1.1. These depend on its
    contents (``before``) alone: two programs that hold the same array get the same new one.
    """
    checksum = zlib.crc32(_bytes(before))
    size = math.prod(array.shape)
    # One factor for a large array: an array of factors would need as much memory. ``_factor_of``:
    # one of seven factors, by the remainder of the number by 7.
    single = _factor_of(checksum)
    # An element's factor follows from its place and the checksum of the whole array.
    factors: Any = single
    if size <= _MOST_FACTORS:
        factors = _factor_of(np.arange(size).reshape(array.shape) + checksum)
    if hasattr(array, "detach"):  # PyTorch
        import torch

        # A tensor that was made in inference mode can only be written in inference mode.
        with torch.inference_mode(array.is_inference()), torch.no_grad():
            array.mul_(torch.as_tensor(factors).to(array.device, array.dtype))
    elif isinstance(array, np.ndarray):
        array *= np.asarray(factors, array.dtype)
    elif _is_of_cupy(array):
        # By one factor: an array of CuPy cannot be multiplied by one of NumPy.
        array *= single


def _is_of_cupy(array: Any) -> bool:
    return type(array).__module__.startswith("cupy")


def _drawn(values: Any) -> Any:
    """Values drawn from these, by their contents."""
    dice = np.random.default_rng(zlib.crc32(_bytes(values)))
    return dice.choice(values.reshape(-1), values.shape)


def _write(array: Any, values: Any) -> None:
    """Write these values into an array of PyTorch, NumPy or CuPy; another array stays as it is."""
    if hasattr(array, "detach"):  # PyTorch
        import torch

        # A tensor that was made in inference mode can only be written in inference mode.
        with torch.inference_mode(array.is_inference()), torch.no_grad():
            array.copy_(torch.as_tensor(values))
    elif isinstance(array, np.ndarray):
        array[...] = values
    elif _is_of_cupy(array):
        # CuPy's way to copy an array of the host to the GPU.
        array.set(values)


def _vary_list(values: list[Any], *, middle: bool) -> bool:
    """Give a list of numbers other values in place, or only its middle; returns whether a value
    changed. ``middle``: the first and the last quarter keep their values.
    """
    types_of_values = {type(value) for value in values}
    if not values or not types_of_values <= {int, float}:
        return False
    kept = max(1, len(values) // 4) if middle and len(values) > 2 else 0  # at each end
    part = values[kept : len(values) - kept]
    if types_of_values == {int}:
        # An integer may be an index, so it is replaced by another one of the list.
        dice = np.random.default_rng(zlib.crc32(repr(part).encode()))
        places = dice.integers(len(part), size=len(part)).tolist()
        new = [part[place] for place in places]
    else:
        # Integers between floating point numbers stay as they are.
        new = [value * _factor(value) if isinstance(value, float) else value for value in part]
    values[kept : len(values) - kept] = new
    return new != part


def _factor(value: float) -> float:
    """A factor that depends on the number alone, so that two programs that hold the same number
    change it alike.
    """
    factor: float = _factor_of(zlib.crc32(repr(value).encode()))
    return factor


def _vary_numbers(holder: Any) -> int:
    """Multiply the floating point numbers that ``holder`` holds (a dict, an object, or a function
    with its variables) by factors up to 1.1; returns how many there are.
    """
    if isinstance(holder, types.FunctionType):
        # A cell is a variable of the function around this one. ``_is_number``: it holds a floating
        # point number other than 0.
        cells = [cell for cell in holder.__closure__ or () if _is_number(cell)]
        for cell in cells:
            cell.cell_contents *= _factor(cell.cell_contents)
        # Each name once, though the code may use it often: else its number would be multiplied as
        # often.
        names = dict.fromkeys(state.named_globals(holder))
        return len(cells) + _vary_items(holder.__globals__, names)

    # Otherwise the numbers are the values of a dict, or the attributes of an object.
    named = holder if isinstance(holder, dict) else getattr(holder, "__dict__", None)
    # The variables of a module or a class are not those of this step alone.
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
    """Whether a variable of a closure holds a floating point number other than zero."""
    try:
        value = cell.cell_contents
    except ValueError:  # not assigned yet
        return False
    return type(value) is float and bool(value)


def _readable(leaves: Mapping[str, Any], left_out: NotCompared, room: int) -> list[StepValue]:
    """Copies of these arrays and plain values (``leaves``, by name), ``room`` bytes at most. Those
    that are too large or cannot be read are added to ``left_out``, with how many values they have
    and the reason.
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
                value = _value(name, leaf)
                values.append(value)
                room -= value.data.nbytes
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
    """A copy of an array or of a plain value, in a form that does not depend on its library. Raises
    ``_HoldsOtherThings`` for an array that holds no numbers and no text.
    """
    if state.is_array(leaf):
        array = state.to_numpy(leaf)
        # The type in the program, which NumPy may lack, such as bfloat16.
        dtype = str(getattr(leaf, "dtype", array.dtype)).removeprefix("torch.")
        return _value_of_array(name, dtype, array)
    for number_type in (int, float, complex):
        if isinstance(leaf, number_type):
            array = np.array(leaf)
            if array.dtype.kind == "O":  # an integer of over 64 bits
                return StepValue(name, number_type.__name__, text=_text(leaf))
            return _value_of_array(name, number_type.__name__, array)
    return StepValue(name, type(leaf).__name__, text=_text(leaf))


def _value_of_array(name: str, dtype: str, array: Any) -> StepValue:
    """A copy of a NumPy array: of texts as one text, of numbers as bytes. ``dtype``: the type that
    the program gave its values, which is another one if NumPy lacks it.
    """
    # NumPy's letter for the kind of values.
    kind = array.dtype.kind
    shape = tuple(array.shape)
    if kind in "SUMm":  # texts, dates and times
        return StepValue(name, dtype, shape, text=_text(array.tolist()))
    if kind not in "biufc":  # no booleans or numbers
        raise _HoldsOtherThings(dtype)
    # The bytes, and the type by which NumPy reads them again (``stored``).
    data = memoryview(_bytes(array).tobytes())
    return StepValue(name, dtype, shape, data, array.dtype.str)


def _bytes(array: Any) -> Any:
    """The elements of an array in order, as a flat array of bytes."""
    return np.ascontiguousarray(array).reshape(-1).view("u1")


def _text(value: Any) -> str:
    """A value that is no number as text, short enough for a file. The end of a long text is
    replaced by a checksum of all of it, so that two long texts still differ.
    """
    text = repr(value)
    if len(text) > _LONGEST_TEXT:
        # Of the whole text, also of the part that is cut.
        checksum = zlib.crc32(text.encode(errors="replace"))
        text = f"{text[:_SHOWN_TEXT]}... {checksum:08x}"
    return file_text(text)


def compare_outcomes(
    first: StepOutcome, second: StepOutcome, *, own: bool = False
) -> OutcomeComparison:
    """Compare what a step computed (``first``) with what an alternative to it computed
    (``second``): what they return, and the arrays that they leave behind (their state).

    ``own``: the alternative is a program of the user's own, whose state may have other names. Then
    only state that both reach and one changes is compared. If nothing else can be, and the second
    changes nothing, it is a difference that the first changes its state. If the first responds to
    other values of its arrays, the second must too.
    """
    # What one of the two could not read is not compared.
    left_out = first.left_out | second.left_out
    first_results = [value for value in first.results if value.name not in left_out]
    second_results = [value for value in second.results if value.name not in left_out]
    first_state = {value.name: value for value in first.state if value.name not in left_out}
    second_state = {value.name: value for value in second.state if value.name not in left_out}

    # First the results; then the state, which of a program of the user's own needs more care.
    different = differences(first_results, second_results)
    unknown: Why = ""  # why equal values do not prove that the two programs do the same
    remark: Why = ""
    if own:
        # ``shared``: state that both reach and one changes. ``lacking``: what the step changes and
        # the alternative does not reach.
        shared = _changed_in_both(first_state, second_state)
        lacking = _changed_in_first_alone(first_state, second_state)
        for value in lacking:
            left_out[value.name] = (value.count, because("not-reached-by-alternative"))
        if lacking and not shared:
            unknown = because("alternative-lacks-changed-array")
            # ``count``: how many values it is; None and empty containers are none.
            returns_something = any(value.count for value in first_results)
            second_changes = any(value.changed for value in second_state.values())
            # The step's only work is to change this state, and the alternative does nothing.
            if not returns_something and not second_changes:
                shown = _shown(lacking[0])
                different.append(because("value-only-of-step", name=lacking[0].name, value=shown))
        first_state = {name: first_state[name] for name in shared}
        second_state = {name: second_state[name] for name in shared}
        unknown = unknown or _doubt_of_later_steps(first, second)
        # If the step itself ignores its inputs, the alternative may do so too. ``responds``:
        # whether the step gave another result once its arrays had other values.
        if first.responds is False and not different:
            remark = because("step-does-not-vary")

    # Now only the state that is to be compared is left in both.
    compared_state = list(first_state.values())
    different += differences(compared_state, list(second_state.values()))
    unknown = _doubt_of_values(first_results, compared_state, unknown)
    # The remark is only said of a comparison that proves something.
    count = sum(value.count for value in [*first_results, *compared_state])
    return OutcomeComparison(different, count, left_out, unknown, "" if unknown else remark)


def _changed_in_first_alone(
    first_state: Mapping[str, StepValue], second_state: Mapping[str, StepValue]
) -> list[StepValue]:
    """The state that the first program changes and the second one does not reach."""
    changed = [value for value in first_state.values() if value.changed]
    return [value for value in changed if value.name not in second_state]


def _doubt_of_values(
    results: Sequence[StepValue], compared_state: Sequence[StepValue], known_doubt: Why
) -> Why:
    """Why it shows nothing if these values of a step and those of an alternative are the same:
    there are none, the step computes none of them, or none is finite. Else the doubt that is known
    already (``known_doubt``), or ''.
    """
    # ``count``: how many values it is; None and empty containers are none.
    if not any(value.count for value in [*results, *compared_state]):
        return because("no-values-to-compare")
    # An array that no step changes has the same values whatever the alternative does.
    changed = [value for value in compared_state if value.changed]
    computed = [value for value in [*results, *changed] if value.count]
    if not computed:
        return known_doubt or because("step-without-results")
    if not any(_is_finite(value) for value in computed):
        return because("results-not-finite")
    return known_doubt


def _changed_in_both(
    first_state: Mapping[str, StepValue], second_state: Mapping[str, StepValue]
) -> list[str]:
    """The names of the arrays that both programs reach (a step and the user's own alternative) and
    at least one of them changes: only these can show a difference.
    """
    names = []
    for name, value in first_state.items():
        other = second_state.get(name)
        if other is not None and (value.changed or other.changed):
            names.append(name)
    return names


def _doubt_of_later_steps(first: StepOutcome, second: StepOutcome) -> Why:
    """Why an alternative (``second``) may not do the work of the step (``first``) although its
    first results are the same: it may stop working in later steps, or return a stored result
    whatever its inputs are. '' if nothing says so.

    To find that out, both ran many steps, and then some more with other inputs (``LaterSteps``).
    """
    # ``later``: what was returned many steps later; ``responds``: whether other inputs gave another
    # result.
    ours = first.later
    theirs = second.later
    # The step has no arrays, lists or numbers that could be changed.
    if ours is not None and not ours.varied:
        return because("nothing-varied")
    if first.responds and second.responds is False:
        return because("alternative-does-not-vary-alike")
    if ours is None or theirs is None:
        return ""
    # ``soon``: after the same number of steps in both, so these compare.
    if ours.soon is not None and theirs.soon is not None and differences(ours.soon, theirs.soon):
        return because("alternative-stops-working")
    # The two made different numbers of steps since then. So the next results can be compared only
    # if those of the step do not change from step to step.
    if ours.soon is None or differences(ours.soon, ours.usual):
        return ""
    # ``usual``: the inputs as they were; ``middle``, ``whole``: with other values in the middle of
    # them, and in all.
    if differences(ours.usual, theirs.usual):
        return because("alternative-stops-working")
    if differences(ours.middle, theirs.middle) or differences(ours.whole, theirs.whole):
        return because("alternative-does-not-vary-alike")
    return ""


def _is_finite(value: StepValue) -> bool:
    """Whether a value can show a difference: text, or numbers of which one is finite."""
    return bool(value.text) or bool(np.isfinite(value.elements()).any())


def differences(first: Sequence[StepValue], second: Sequence[StepValue]) -> list[Reason]:
    """A reason for each value that differs between a step (``first``) and an alternative
    (``second``) by more than the tolerance of its type, and for each that one of the two lacks.
    Values with the same name are compared.
    """
    theirs = {value.name: value for value in second}
    reasons = []
    for value in first:
        # What has a partner is taken out, so that what only the alternative has is left.
        other = theirs.pop(value.name, None)
        if other is None:
            reasons.append(because("value-only-of-step", name=value.name, value=_shown(value)))
            continue
        difference = _difference(value, other)
        if difference is not None:
            reasons.append(difference)
    # What is left has no partner in the step.
    for value in theirs.values():
        reasons.append(because("value-only-of-alternative", name=value.name, value=_shown(value)))
    return reasons


def _difference(first: StepValue, second: StepValue) -> Reason | None:
    """How two values of one name differ: a reason that shows both numbers where they differ most.
    None if they do not differ by more than the tolerance of their type, which is a share of the
    largest number in the array.
    """
    ours = first.elements()
    theirs = second.elements()
    # Of one form: arrays of one type and shape, equal texts, or two numbers.
    if not _are_of_one_form(first, second, ours, theirs):
        return because("values-differ", name=first.name, first=_kind(first), second=_kind(second))

    # ``scale``: the largest number in both arrays, which the tolerance is a share of. The tolerance
    # is 0 for types that must be equal, such as integers and texts.
    tolerance = max(_tolerance(first.dtype), _tolerance(second.dtype))
    scale = max(_scale(ours), _scale(theirs)) if tolerance else 0.0
    # Only elements that are not equal need the comparison below.
    unequal = np.flatnonzero(ours != theirs)
    # Differences are computed in float64 at least, in which no difference of two float32 is lost.
    common = np.result_type(ours, theirs, np.float64)
    our_values = ours[unequal].astype(common)
    their_values = theirs[unequal].astype(common)
    if tolerance:
        allowed = tolerance * scale
        is_near = np.isclose(our_values, their_values, rtol=0, atol=allowed, equal_nan=True)
        unequal = unequal[~is_near]
        our_values = our_values[~is_near]
        their_values = their_values[~is_near]
    if not unequal.size:
        return None

    with np.errstate(invalid="ignore"):
        distance = np.abs(our_values - their_values)
    # A NaN on one side counts as the largest difference.
    distance = np.nan_to_num(distance, nan=np.inf, posinf=np.inf)
    worst = int(distance.argmax())
    # ``unequal`` holds places in the arrays; ``worst`` is an index into it.
    place = unequal[worst]
    shown = {"first": _number(ours[place]), "second": _number(theirs[place])}
    if scale > 0 and distance[worst] < math.inf:
        share = float(distance[worst] / scale)
        return because("values-differ-by-share", name=first.name, share=share, **shown)
    return because("values-differ", name=first.name, **shown)


def _are_of_one_form(first: StepValue, second: StepValue, ours: Any, theirs: Any) -> bool:
    """Whether the elements of two values can be compared one by one (``ours``, ``theirs``). Plain
    numbers may be of two types, arrays may not.
    """
    if first.shape != second.shape or first.text != second.text or ours.size != theirs.size:
        return False
    return not first.shape or first.dtype == second.dtype


def _scale(values: Any) -> float:
    """The largest absolute finite value; 0 if none is finite."""
    finite = values[np.isfinite(values)].astype(np.float64)
    return float(np.abs(finite).max(initial=0))


def _tolerance(dtype: str) -> float:
    """How far values of a type may differ, as a share of the largest one; 0 for those that must be
    equal.
    """
    if dtype in TOLERANCES:
        return TOLERANCES[dtype]
    return _SMALL_FLOATS if dtype.startswith(("float", "bfloat", "complex")) else 0.0


def _number(value: Any) -> str:
    return f"{value:.9g}" if value.dtype.kind == "f" else str(value)


def _kind(value: StepValue) -> str:
    """A value as it is shown beside one of another form: its text, the type and shape of an array,
    or its number.
    """
    if value.text or not value.shape:
        return _shown(value)
    return f"{value.dtype}{list(value.shape)}"


def _shown(value: StepValue) -> str:
    """A value as a sentence shows it, in a few characters: its text, or the first number of an
    array; for an empty array its type and shape.
    """
    if value.text:
        return value.text
    if value.data.nbytes:
        return _number(value.elements()[0])
    return f"{value.dtype}{list(value.shape)}"
