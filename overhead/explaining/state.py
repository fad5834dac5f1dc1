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
"""How many objects are visited. A step that reaches more is described in part."""
_HIDDEN = ("_parameters", "_buffers", "_modules")
"""Attributes of a PyTorch module that hold what the program reaches without them:
``model.weight``.
"""
_PLAIN = (bool, int, float, complex, str, bytes, bytearray, type(None), range, enum.Enum)
"""Types whose ``repr`` tells the value, and is the same in every process."""


def reachable_values(
    root: Any, unread: dict[str, Why] | None = None, holders: list[Any] | None = None
) -> dict[str, Any]:
    """What a step or its result reaches, by name (``model.weight``): arrays, plain values, objects
    without known parts.

    Visits closures, bound objects, containers, attributes, and the global variables that the
    program's own functions name, but not those of installed packages. A gradient is a part of its
    tensor, the state one of a random generator. ``unread`` gets the reason for each object whose
    parts are not all read, ``holders`` each object that is no value.
    """
    found: dict[str, Any] = {}
    seen = {id(root)}
    keep: list[Any] = [
        root
    ]  # an object that was freed during the walk could give its id to another one
    todo = deque([("", root)])
    while todo and len(seen) < _MOST:
        name, value = todo.popleft()
        if isinstance(value, _PLAIN):
            found.setdefault(name, value)
            continue
        children, reason = _known_children(value)
        if holders is not None and not is_array(value):
            holders.append(value)
        if is_array(value) or not (children or reason):
            found.setdefault(name, value)
        if reason and unread is not None:
            unread[name] = reason
        for part, child in children:
            if is_plain(child) or id(child) not in seen:
                seen.add(id(child))
                keep.append(child)
                todo.append((name if part in _HIDDEN else f"{name}.{part}".strip("."), child))
    if todo and unread is not None:
        unread[todo[0][0]] = because("reaches-too-many-objects", most=_MOST)
    return found


def is_plain(value: Any) -> bool:
    """Whether this is a value of a plain Python type, such as a number or a text, or an empty
    container.
    """
    try:
        return isinstance(value, _PLAIN) or (
            isinstance(value, Mapping | Sequence | Set) and not len(value)
        )
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
    arrays on the host.
    """
    found = {}
    for name, value in reachable_values(step).items():
        if is_array(value):
            if not (
                getattr(value, "is_cuda", False)
                or type(value).__module__.partition(".")[0] == "cupy"
            ):
                found[name] = _copied(value)
        elif is_plain(value):
            found[name] = value
    return found


def changed_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The names with another value in ``after`` than in ``before``, or only in ``after`` (both by
    ``host_values``).
    """
    return [
        name
        for name, value in after.items()
        if name not in before or not _same(before[name], value)
    ]


@dataclass(frozen=True)
class _Unreadable:
    """Stands for an array that cannot be read; equal to that of another array of this type."""

    type_name: str


def _copied(value: Any) -> Any:
    try:
        return np.array(to_numpy(value))
    except Exception:  # the class of the program may raise anything
        return _Unreadable(type(value).__name__)


def to_numpy(value: Any) -> Any:
    """An array of any library as a NumPy array. Floating point types that NumPy lacks become
    float32.
    """
    if hasattr(value, "detach"):  # PyTorch
        value = value.dequantize() if value.is_quantized else value
        try:
            return value.numpy(force=True)
        except TypeError:  # 16-bit complex, bfloat16 and the 8-bit types
            return (value.cfloat() if value.is_complex() else value.float()).numpy(force=True)
    if hasattr(value, "get") and type(value).__module__.startswith("cupy"):
        return value.get()
    array = np.asarray(value)
    return (
        array if array.dtype.kind in "biufcSUOMm" or array.dtype.names else array.astype(np.float32)
    )


def _same(first: Any, second: Any) -> bool:
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(
            first, second, equal_nan=first.dtype.kind in "fc"
        )
    try:
        return bool(first == second or (first != first and second != second))
    except Exception:  # a comparison of the program's class may raise anything
        return False


class _WithoutOrder(Exception):
    """A set of objects, which are in another order in another process."""


def _known_children(value: Any) -> tuple[list[tuple[str, Any]], Why]:
    """The parts of a value, and why they are not all of them: reading one raises, or there are over
    ``_MOST``.
    """
    found = []
    try:
        for part in itertools.islice(_children(value), _MOST + 1):
            found.append(part)
    except _WithoutOrder:
        return found, because("set-without-order")
    except Exception as error:  # the class of the program may raise anything
        return found, why_unread(error)
    if len(found) > _MOST:
        return found[:_MOST], because("too-many-parts", most=_MOST)
    return found, ""


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if is_array(value):
        gradient = getattr(value, "grad", None) if getattr(value, "is_leaf", False) else None
        yield from () if gradient is None else [("grad", gradient)]
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, types.MethodType):
        yield "self", value.__self__
        yield from _of_function(value.__func__)
    elif isinstance(value, functools.partial):
        yield "", value.func
        yield from _numbered(value.args)
        yield from value.keywords.items()
    elif isinstance(value, Mapping):
        yield from ((_named(key, index), each) for index, (key, each) in enumerate(value.items()))
    elif isinstance(value, Sequence):
        yield from _numbered(value)
    elif isinstance(value, Set):
        if not _is_key(tuple(value)):
            raise _WithoutOrder
        yield from _numbered(sorted(value, key=repr))
    elif not isinstance(value, types.ModuleType | type | types.BuiltinFunctionType):
        yield from _of_object(value)


def _numbered(values: Iterable[Any], name: str = "") -> Iterator[tuple[str, Any]]:
    return ((f"{name}{index}", each) for index, each in enumerate(values))


def _named(key: Any, index: int) -> str:
    return (
        key
        if isinstance(key, str)
        else f"[{key!r}]"
        if _is_key(key)
        else f"{type(key).__name__}{index}"
    )


def _is_key(value: Any) -> bool:
    return all(map(_is_key, value)) if isinstance(value, tuple) else isinstance(value, _PLAIN)


def _of_function(function: Any) -> Iterator[tuple[str, Any]]:
    code = getattr(function, "__code__", None)
    if code is None:
        return
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
    """The global variables that one of the program's own functions names; none for a function of a
    package.
    """
    code = function.__code__
    return (
        [name for name in _names(code) if name in function.__globals__] if is_own_code(code) else []
    )


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _of_object(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, types.GeneratorType) and value.gi_frame is not None:
        yield from {"line": value.gi_frame.f_lineno, **value.gi_frame.f_locals}.items()
    elif isinstance(value, np.random.Generator):
        yield "state", repr(value.bit_generator.state)
    elif hasattr(value, "getstate") and type(value).__module__ == "random":
        yield "state", repr(value.getstate())
    elif hasattr(value, "__length_hint__") and hasattr(
        value, "__reduce__"
    ):  # an iterator over a container
        yield "left", value.__length_hint__()
    yield from vars(value).items() if hasattr(value, "__dict__") else ()
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)
