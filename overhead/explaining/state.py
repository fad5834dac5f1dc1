"""The state that a step reaches: every array and every Python value, under the name by which the
step reaches it.
"""

from __future__ import annotations

import enum
import functools
import itertools
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from overhead.errors import one_line
from overhead.results import Reason, Why, because
from overhead.timing.own_code import is_own_code

_MOST = 100_000
"""How many objects are visited. A step that reaches more is described in part. Chosen, not
measured: a higher number takes longer for a step that reaches a large data set.
"""
_HIDDEN = ("_parameters", "_buffers", "_modules")
"""Attributes of a PyTorch module that hold what the program reaches without them:
``model.weight``.
"""
_PLAIN = (bool, int, float, complex, str, bytes, bytearray, type(None), range, enum.Enum)
"""Types whose ``repr`` tells the value, and is the same in every process."""


def reachable_values(
    root: Any, unread: dict[str, Why] | None = None, holders: list[Any] | None = None
) -> dict[str, Any]:
    """What a step (a function) or its result reaches, by the name of the way to it
    (``model.weight``): arrays, plain values such as numbers, and objects without known parts. By it
    the state of a step is compared before and after, and between two processes.

    Visits closures, bound objects, containers, attributes, and the global variables that the
    program's own functions name, but not those of installed packages. A gradient is a part of its
    tensor, the state one of a random generator. ``unread`` gets the reason for each object whose
    parts are not all read, ``holders`` each object that is no value, such as a list.
    """
    values: dict[str, Any] = {}
    seen = {id(root)}
    # An object that was freed during the walk could give its id to another one.
    keep: list[Any] = [root]
    # The nearest come first, so an object has the shortest of its names.
    todo = deque([("", root)])
    while todo and len(seen) < _MOST:
        name, value = todo.popleft()
        if isinstance(value, _PLAIN):
            values.setdefault(name, value)
            continue
        # ``children``: its parts by name; ``why_not_all``: why some are missing, '' if none are.
        children, why_not_all = _known_children(value)
        if holders is not None and not is_array(value):
            holders.append(value)
        # An array is a value, but may have a gradient as its part.
        has_known_parts = bool(children or why_not_all)
        if is_array(value) or not has_known_parts:
            values.setdefault(name, value)
        if why_not_all and unread is not None:
            unread[name] = why_not_all
        for part, child in children:
            # An object is visited once, under its first name. Equal plain values may be one object,
            # and each has its own name.
            if is_plain(child) or id(child) not in seen:
                seen.add(id(child))
                keep.append(child)
                # ``_name_of_part``: both names with a dot; what PyTorch keeps in ``_parameters``
                # and the like is named as the program reaches it, ``model.weight``.
                todo.append((_name_of_part(name, part), child))
    # What is left to visit is beyond the limit; its first name stands for all.
    if todo and unread is not None:
        first_unvisited, _ = todo[0]
        unread[first_unvisited] = because("reaches-too-many-objects", most=_MOST)
    return values


def _name_of_part(name: str, part: str) -> str:
    """The name of a part of what ``name`` is: both with a dot between them. An attribute in which a
    PyTorch module keeps its parts has no name of its own.
    """
    if part in _HIDDEN:
        return name
    return f"{name}.{part}".strip(".")


def is_plain(value: Any) -> bool:
    """Whether this is a value of a plain Python type, such as a number or a text, or an empty
    container: it has no parts to look at, and can be compared as it is.
    """
    try:
        if isinstance(value, _PLAIN):
            return True
        return isinstance(value, Mapping | Sequence | Set) and not len(value)
    except Exception:  # the class of the program may raise anything
        return False


def why_unread(error: Exception) -> Reason:
    """Why a part of the state is not known: what the class of the program raised."""
    return because("part-unreadable", error=one_line(error)[:200])


def is_array(value: Any) -> bool:
    """Whether this is an array of any library: NumPy, PyTorch, JAX, CuPy."""
    try:
        return hasattr(type(value), "__array__") and hasattr(value, "shape")
    except Exception:  # an attribute of the program's class may raise anything
        return False


def host_values(step: Callable[..., Any]) -> dict[str, Any]:
    """The state of a step that device work cannot change, by name: Python values, and copies of
    arrays on the host. A step that changes such a value each time cannot be captured as a CUDA
    graph, which repeats the device work alone.
    """
    values = {}
    for name, value in reachable_values(step).items():
        if is_array(value):
            if not _is_on_device(value):
                values[name] = _copied(value)
        elif is_plain(value):
            values[name] = value
    return values


def _is_on_device(array: Any) -> bool:
    """Whether an array of PyTorch or CuPy lies in the memory of a GPU."""
    is_cupy = type(array).__module__.partition(".")[0] == "cupy"
    return bool(getattr(array, "is_cuda", False)) or is_cupy


def changed_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The names of the values that a step changed, or that only exist after it. ``before``,
    ``after``: what ``host_values`` gave before and after the step.
    """
    changed = []
    for name, value in after.items():
        if name not in before or not _same(before[name], value):
            changed.append(name)
    return changed


@dataclass(frozen=True)
class _Unreadable:
    """Stands for an array that cannot be read; equal to that of another array of this type."""

    type_name: str


def _copied(value: Any) -> Any:
    """A copy of an array, to compare later values with."""
    try:
        return np.array(to_numpy(value))
    except Exception:  # the class of the program may raise anything
        return _Unreadable(type(value).__name__)


def to_numpy(value: Any) -> Any:
    """An array of any library as a NumPy array, so that all are compared alike. Floating point
    types that NumPy lacks become float32.
    """
    if hasattr(value, "detach"):  # PyTorch
        return _tensor_to_numpy(value)
    if hasattr(value, "get") and type(value).__module__.startswith("cupy"):
        return value.get()
    # Other libraries hand their values to NumPy themselves (``__array__``).
    array = np.asarray(value)
    # Types of NumPy itself, or of records. Another one, such as bfloat16 of JAX, has a kind of its
    # own.
    if array.dtype.kind in "biufcSUOMm" or array.dtype.names:
        return array
    return array.astype(np.float32)


def _tensor_to_numpy(tensor: Any) -> Any:
    """A tensor of PyTorch as a NumPy array, also one on a GPU or of a type that NumPy lacks."""
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    try:
        return tensor.numpy(force=True)
    except TypeError:  # 16-bit complex, bfloat16 and the 8-bit types
        wider = tensor.cfloat() if tensor.is_complex() else tensor.float()
        return wider.numpy(force=True)


def _same(first: Any, second: Any) -> bool:
    """Whether two values of a step's state are equal. A NaN is equal to a NaN."""
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        # NumPy looks for a NaN only in numbers; of other types it would raise.
        may_hold_nan = first.dtype.kind in "fc"
        return first.dtype == second.dtype and np.array_equal(first, second, equal_nan=may_hold_nan)
    try:
        if first == second:
            return True
        are_both_nan = first != first and second != second  # only a NaN differs from itself
        return bool(are_both_nan)
    except Exception:  # a comparison of the program's class may raise anything
        return False


class _WithoutOrder(Exception):
    """Raised for a set of objects, which are in another order in another process: none of them has
    a name by which it is found there.
    """


def _known_children(value: Any) -> tuple[list[tuple[str, Any]], Why]:
    """The parts of a value by name, such as the items of a list, as far as they can be read; and
    why these are not all ('' if they are): reading one raises, or there are too many.
    """
    children = []
    try:
        # One by one, so that those before an error are known; and one more than may be, to see that
        # there are too many.
        for child in itertools.islice(_children(value), _MOST + 1):
            children.append(child)
    except _WithoutOrder:
        return children, because("set-without-order")
    except Exception as error:  # the class of the program may raise anything
        return children, why_unread(error)
    if len(children) > _MOST:
        return children[:_MOST], because("too-many-parts", most=_MOST)
    return children, ""


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a value by name: what it holds or refers to, such as the variables of a function
    or the items of a list. None for a kind of value that has none, or whose parts are not known.
    Raises ``_WithoutOrder`` for a set without an order, and whatever the class of the program
    raises.
    """
    # The first kind that fits: arrays, functions, containers; last any other object.
    if is_array(value):
        yield from _of_array(value)
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, types.MethodType):
        yield "self", value.__self__
        yield from _of_function(value.__func__)
    elif isinstance(value, functools.partial):
        # "": what the function reaches has the same names as without the ``partial`` around it.
        yield "", value.func
        yield from _numbered(value.args)
        yield from value.keywords.items()
    elif isinstance(value, Mapping):
        yield from _of_mapping(value)
    elif isinstance(value, Sequence):
        yield from _numbered(value)
    elif isinstance(value, Set):
        # The text of an item that is not plain, such as of an object, may hold its address.
        if not _is_plain_key(tuple(value)):
            raise _WithoutOrder
        # In the order of their texts, which is the same in every process.
        yield from _numbered(sorted(value, key=repr))
    # A module or a class is no state of the step.
    elif not isinstance(value, types.ModuleType | type | types.BuiltinFunctionType):
        yield from _of_object(value)


def _numbered(values: Iterable[Any], name: str = "") -> Iterator[tuple[str, Any]]:
    """The values in order, each named after its place."""
    for index, value in enumerate(values):
        yield f"{name}{index}", value


def _of_array(array: Any) -> Iterator[tuple[str, Any]]:
    """The gradient of an array, if it has one."""
    # PyTorch warns where a tensor that is no leaf is asked for its gradient.
    gradient = getattr(array, "grad", None) if getattr(array, "is_leaf", False) else None
    if gradient is not None:
        yield "grad", gradient


def _of_mapping(mapping: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """The values of a mapping, each named after its key."""
    for index, (key, value) in enumerate(mapping.items()):
        yield _name_of_key(key, index), value


def _name_of_key(key: Any, index: int) -> str:
    """The name of the value under a key of a mapping, the same in every process. The text of some
    keys is not, such as that of an object, which holds its address; these are named by their type
    and place (``index``).
    """
    if isinstance(key, str):
        return key
    if _is_plain_key(key):
        return f"[{key!r}]"
    return f"{type(key).__name__}{index}"


def _is_plain_key(value: Any) -> bool:
    """Whether this is a plain value, or a tuple of them on all levels."""
    if isinstance(value, tuple):
        return all(_is_plain_key(part) for part in value)
    return isinstance(value, _PLAIN)


def _of_function(function: Any) -> Iterator[tuple[str, Any]]:
    """The variables that a function of Python reaches, by name: those of the functions around it
    (its closure), its default arguments, and global ones. None for a function that is not Python's.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return
    # ``co_freevars``: the names of the variables of functions around it, in the order of the cells.
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    yield from _numbered(function.__defaults__ or (), "default")
    yield from (function.__kwdefaults__ or {}).items()
    for name in named_globals(function):
        yield name, function.__globals__[name]


def named_globals(function: Any) -> list[str]:
    """The names of the global variables that one of the program's own functions uses; none for a
    function of an installed package, whose globals are not the program's.
    """
    code = function.__code__
    if not is_own_code(code):
        return []
    return [name for name in _names(code) if name in function.__globals__]


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names in the code of a function and of the functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _of_object(value: Any) -> Iterator[tuple[str, Any]]:
    """The state of an object of any class, by name: its attributes and its slots. Some kinds have a
    state that is in neither, which is read first: generators, random generators and iterators.
    """
    if isinstance(value, types.GeneratorType) and value.gi_frame is not None:
        frame = value.gi_frame  # None in a generator that has ended
        # Where it stands, and its variables: both change when it goes on.
        yield from {"line": frame.f_lineno, **frame.f_locals}.items()
    elif isinstance(value, np.random.Generator):
        # As one text, so that two states are compared as one value.
        yield "state", repr(value.bit_generator.state)
    elif hasattr(value, "getstate") and type(value).__module__ == "random":
        yield "state", repr(value.getstate())
    elif hasattr(value, "__length_hint__") and hasattr(value, "__reduce__"):
        yield "left", value.__length_hint__()  # an iterator over a container
    if hasattr(value, "__dict__"):
        yield from vars(value).items()
    # Slots: of the class and of those that it inherits from.
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        names = [slots] if isinstance(slots, str) else slots  # a text names one slot
        for name in names:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)
