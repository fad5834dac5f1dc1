"""The state that a step reaches: every array and every Python value, under the name by which the step reaches it."""

from __future__ import annotations

import functools
import itertools
import sys
import sysconfig
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

from overhead.errors import one_line

_MOST = 100_000
"""How many objects are visited. A step that reaches more is described in part."""
_HIDDEN = ("_parameters", "_buffers", "_modules")
"""Attributes of a PyTorch module that hold what the program reaches without them: ``model.weight``."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def reach(root: Any, unread: dict[str, str] | None = None) -> dict[str, Any]:
    """The arrays and plain Python values that a step or its result reaches, by name: ``model.weight``, ``self.count``.

    Visits closures, bound objects, containers, attributes, and the global variables that the program's own functions
    name, but not those of the standard library and of installed packages. A gradient is a part of its
    tensor. A random generator is described by its state. ``unread`` gets the objects whose parts raise when they are
    read, with the reason.
    """
    found: dict[str, Any] = {}
    seen = {id(root)}
    keep: list[Any] = [root]  # an object that was freed during the walk could give its id to another one
    todo = deque([("", root)])
    while todo and len(seen) < _MOST:
        name, value = todo.popleft()
        if isinstance(value, _PLAIN):
            found.setdefault(name, value)
            continue
        if is_array(value):
            found.setdefault(name, value)
        children, reason = _known_children(value)
        if reason and unread is not None:
            unread[name] = reason
        for part, child in children:
            if isinstance(child, _PLAIN) or id(child) not in seen:
                seen.add(id(child))
                keep.append(child)
                todo.append((name if part in _HIDDEN else f"{name}.{part}".strip("."), child))
    if todo and unread is not None:
        unread[todo[0][0]] = f"this and later parts are not visited: the step reaches over {_MOST:,} objects"
    return found


def why_unread(error: Exception) -> str:
    """Why a part of the state is not known: what the program's class raised."""
    return f"cannot be read: {one_line(error)[:200]}"


def is_array(value: Any) -> bool:
    """Whether this is an array of any library: NumPy, PyTorch, JAX, CuPy."""
    try:
        return hasattr(type(value), "__array__") and hasattr(value, "shape")
    except Exception:  # an attribute of the program's class may raise anything
        return False


def on_device(value: Any) -> bool:
    """Whether an array lies in the memory of a device, so that a graph of device work may change it."""
    return bool(getattr(value, "is_cuda", False)) or type(value).__module__.partition(".")[0] == "cupy"


def host_values(step: Callable[..., Any]) -> dict[str, Any]:
    """The part of the state that device work cannot change: Python values, and copies of arrays in host memory."""
    return {
        name: _copied(value) if is_array(value) else value
        for name, value in reach(step).items()
        if not (is_array(value) and on_device(value))
    }


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The names whose value differs between two results of ``host_values``, and those that only the second holds."""
    return [name for name, value in after.items() if name not in before or not _same(before[name], value)]


def _copied(value: Any) -> Any:
    try:
        return _copy(value)
    except Exception:  # the class of the program may raise anything
        return f"a {type(value).__name__} that cannot be read"


def _copy(value: Any) -> Any:
    import numpy as np

    return np.array(to_numpy(value))


def to_numpy(value: Any) -> Any:
    """An array of any library as a NumPy array. Floating point types that NumPy lacks become float32."""
    import numpy as np

    if hasattr(value, "detach"):  # PyTorch
        value = value.detach().cpu()
        try:
            return value.numpy()
        except TypeError:  # bfloat16 and the 8-bit types
            return value.float().numpy()
    if hasattr(value, "get") and type(value).__module__.startswith("cupy"):
        return value.get()
    array = np.asarray(value)
    return array if array.dtype.kind in "biufcSUOMm" or array.dtype.names else array.astype(np.float32)


def _same(first: Any, second: Any) -> bool:
    try:
        return _equal(first, second)
    except Exception:  # a comparison of the program's class may raise anything
        return False


def _equal(first: Any, second: Any) -> bool:
    import numpy as np

    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return (
            isinstance(first, np.ndarray)
            and isinstance(second, np.ndarray)
            and first.shape == second.shape
            and bool(np.array_equal(first, second, equal_nan=first.dtype.kind in "fc"))
        )
    return type(first) is type(second) and bool(first == second or (first != first and second != second))


def _known_children(value: Any) -> tuple[list[tuple[str, Any]], str]:
    """The parts of a value, at most ``_MOST``, until reading one of them raises; then also the reason."""
    found = []
    try:
        for part in itertools.islice(_children(value), _MOST):
            found.append(part)
    except Exception as error:  # the class of the program may raise anything
        return found, why_unread(error)
    return found, ""


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if is_array(value):
        gradient = getattr(value, "grad", None) if getattr(value, "is_leaf", False) else None
        if gradient is not None:
            yield "grad", gradient
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, types.MethodType):
        yield "self", value.__self__
        yield from _of_function(value.__func__)
    elif isinstance(value, functools.partial):
        yield "", value.func
        yield from ((str(index), each) for index, each in enumerate(value.args))
        yield from value.keywords.items()
    elif isinstance(value, types.GeneratorType):
        frame = value.gi_frame
        yield from ((("line", frame.f_lineno), *frame.f_locals.items()) if frame else ())
    elif isinstance(value, Mapping):
        for index, (key, each) in enumerate(value.items()):
            yield str(key) if isinstance(key, _PLAIN) else f"{type(key).__name__}{index}", each
    elif isinstance(value, Sequence | Set | deque) and not isinstance(value, range):
        yield from ((str(index), each) for index, each in enumerate(value))
    elif isinstance(value, types.ModuleType | type | types.BuiltinFunctionType):
        return
    else:
        yield from _of_object(value)


def _of_function(function: Any) -> Iterator[tuple[str, Any]]:
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    yield from ((f"default{index}", each) for index, each in enumerate(function.__defaults__ or ()))
    yield from (function.__kwdefaults__ or {}).items()
    for name in _names(code) if is_own_code(code) else ():
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")})


def is_own_code(code: types.CodeType) -> bool:
    """Whether code belongs to the program, and not to the standard library or an installed package."""
    return not code.co_filename.startswith((*_library_folders(), "<frozen"))


def _of_object(value: Any) -> Iterator[tuple[str, Any]]:
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.random.Generator):
        yield "state", repr(value.bit_generator.state)
    elif hasattr(value, "getstate") and type(value).__module__ == "random":
        yield "state", repr(value.getstate())
    elif hasattr(value, "__length_hint__") and hasattr(value, "__reduce__"):  # an iterator over a container
        yield "left", value.__length_hint__()
    yield from vars(value).items() if hasattr(value, "__dict__") else ()
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)
