"""Results whose work is not done when a call returns, and that no wait finishes: lazy arrays,
generators, futures.

A call that returns one of these would be timed without its work.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import io
import itertools
import multiprocessing.pool
import multiprocessing.process
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from overhead.results import Reason, Why, because

_LOOKED_AT = 200
"""The most values of a result that are looked at. Chosen, not measured: more take longer in each
call.
"""
_OF_ITERATORS = (
    "builtins",
    "itertools",
    "csv",
    "_csv",
    "re",
    "multiprocessing.pool",
    "nt",
    "posix",
)
"""Modules whose iterators do their work when they are read. Files, cursors and objects of programs
may be iterators too, and return themselves when their work is done.
"""
_NO_WORK = ("lazy", "xla", "meta")
"""Kinds of devices of PyTorch on which an operation returns before it is computed, or is never
computed.
"""


@dataclass(frozen=True)
class Unfinished:
    """A result without its work. ``what``: what it is. ``finish``: what to write to get the work, a
    code or Python.
    """

    what: Reason
    finish: Why


def unfinished_of(results: Iterable[Any]) -> Unfinished | None:
    """A result of a call whose work is not done yet, such as a lazy table: the call would be timed
    without its work. None if all work is done.

    Values inside lists, tuples and dicts count as results too; at most 200 values are looked at.
    """
    left = list(results)  # the values that are still to be looked at
    for _ in range(_LOOKED_AT):
        if not left:
            return None
        value = left.pop()
        if isinstance(value, list | tuple):
            left += value[:_LOOKED_AT]
        elif isinstance(value, dict):
            left += list(value.values())[:_LOOKED_AT]
        else:
            unfinished = _unfinished_value(value)
            if unfinished:
                return unfinished
    return None


class Kept:
    """What the variables of a statement hold before a call, to find what the call puts into them: a
    future, for instance, stands for work that goes on after the call.
    """

    def __init__(self, names: Mapping[str, Any]) -> None:
        # Kept, so that no other object gets the identity of one of them.
        self._before = list(_held_by(names))
        self._known = {id(value) for value in self._before}

    def running_since(self, names: Mapping[str, Any]) -> Unfinished | None:
        """The first value that was not there before the call, and stands for work that goes on;
        None if there is none. ``names``: the variables after the call.
        """
        for value in _held_by(names):
            # ``_known``: the identities of the values before the call.
            if id(value) in self._known:
                continue
            unfinished = _unfinished_work_elsewhere(value)
            if unfinished:
                return unfinished
        return None


def _held_by(names: Mapping[str, Any]) -> Iterator[Any]:
    """The values of variables, and what the containers among them hold: the last 200 values of
    lists and tuples, where new ones are appended, and the first 200 of dicts, sets and queues,
    which have no slice.
    """
    for value in names.values():
        yield value
        if isinstance(value, list | tuple):
            yield from value[-_LOOKED_AT:]
        elif isinstance(value, dict | set | deque):
            items = value.values() if isinstance(value, dict) else value
            yield from itertools.islice(items, _LOOKED_AT)


def _unfinished_value(value: Any) -> Unfinished | None:
    """What is unfinished about one value, and what to write to get its work; None if its work is
    done. The value may be of Python, such as a generator, or of a known library.

    ``because``: the reason with this code, whose sentence is in ``overhead.words.reasons``.
    """
    if inspect.iscoroutine(value):
        return Unfinished(because("idle-coroutine"), "await ...")
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return Unfinished(because("idle-generator"), "list(...)")
    # Iterators of these modules work when they are read. Others, such as files, may have done their
    # work.
    if isinstance(value, Iterator) and type(value).__module__ in _OF_ITERATORS:
        return Unfinished(because("idle-iterator", type=type(value).__name__), "list(...)")
    return _unfinished_work_elsewhere(value) or _unfinished_of_library(value)


def _unfinished_work_elsewhere(value: Any) -> Unfinished | None:
    """What is unfinished about a value that stands for work in another thread, process or event
    loop, and how to wait for it; None for any other value. A future counts even if it is done; a
    process or thread only while it runs.
    """
    if isinstance(value, concurrent.futures.Future):
        return Unfinished(because("future-elsewhere"), "(...).result()")
    if isinstance(value, multiprocessing.pool.AsyncResult):
        return Unfinished(because("result-of-another-process"), "(...).get()")
    if asyncio.isfuture(value):
        return Unfinished(because("task-of-an-event-loop"), "await ...")
    if isinstance(value, subprocess.Popen) and value.poll() is None:
        return Unfinished(because("running-process"), "(...).wait()")
    is_runner = isinstance(value, threading.Thread | multiprocessing.process.BaseProcess)
    if is_runner and value.is_alive():
        return Unfinished(because("running-thread-or-process"), "(...).join()")
    return None


def _unfinished_of_library(value: Any) -> Unfinished | None:
    """What is unfinished about an array or a table of a library that computes later; None if it is
    computed, or of no such library.
    """
    # A collection of Dask, or an array of xarray.
    if callable(getattr(type(value), "__dask_graph__", None)):
        if not value.__dask_graph__():  # an empty graph: nothing is left to compute
            return None
        return Unfinished(because("lazy-dask"), "(...).compute()")
    # ``_OF_LIBRARY``: by the name of a library the function that looks at its values.
    library = type(value).__module__.partition(".")[0]
    if library not in _OF_LIBRARY:
        return None
    return _OF_LIBRARY[library](value)


def _mlx(value: Any) -> Unfinished | None:
    """What is unfinished about an array of MLX that is not evaluated; None if it is. MLX notes
    operations in a graph, and computes them only when somebody needs the values.
    """
    import mlx.core as mx

    if not isinstance(value, mx.array):
        return None
    # MLX tells in no other way whether an array is evaluated. The graph of one that is has no edge.
    graph = io.StringIO()
    mx.export_to_dot(graph, value)
    if "->" not in graph.getvalue():
        return None
    return Unfinished(because("lazy-mlx"), "mx.eval(...)")


def _torch(value: Any) -> Unfinished | None:
    """What is unfinished about a value of PyTorch: work that goes on, or a tensor on a device that
    computes later (``lazy``, ``xla``) or never (``meta``); None for any other.
    """
    if type(value).__name__ in ("Future", "Work"):
        return Unfinished(because("running-torch-work"), "(...).wait()")
    kind = getattr(getattr(value, "device", None), "type", "")
    # ``_NO_WORK``: the three kinds above.
    if kind not in _NO_WORK:
        return None
    if kind == "meta":
        return Unfinished(because("meta-tensor"), because("tensors-on-a-real-device"))
    return Unfinished(because("lazy-torch", kind=kind), because("sync-torch-xla"))


def _tinygrad(value: Any) -> Unfinished | None:
    """What is unfinished about a tensor of tinygrad that is not computed; None if it is. Versions
    of the library tell that by different attributes.
    """
    if type(value).__name__ != "Tensor":
        return None
    graph = getattr(value, "uop", None) or getattr(value, "lazydata", None)
    # A view has no numbers of its own: its base is computed or not.
    base = getattr(graph, "base", graph)
    realized = getattr(base, "is_realized", None)
    if realized is None:  # without that attribute, ``realized`` is None until it is computed
        realized = getattr(base, "realized", None) is not None
    return None if realized else Unfinished(because("lazy-tinygrad"), "(...).realize()")


def _of_classes(
    names: tuple[str, ...], what: Reason, finish: str
) -> Callable[[Any], Unfinished | None]:
    """A function that finds values of a library's lazy classes, which compute later, by the names
    of the classes; also of classes that are derived from them. The library need not be imported for
    that. ``what``, ``finish``: what it says of such a value, and how to get its work.
    """

    def find(value: Any) -> Unfinished | None:
        """What is unfinished about a value of one of these classes; None of any other class."""
        classes = {kind.__name__ for kind in type(value).__mro__}
        if classes.isdisjoint(names):
            return None
        return Unfinished(what, finish)

    return find


_DUCKDB = because("lazy-duckdb")
_OF_LIBRARY: dict[str, Callable[[Any], Unfinished | None]] = {
    "mlx": _mlx,
    "torch": _torch,
    "torch_xla": _torch,
    "tinygrad": _tinygrad,
    "polars": _of_classes(("LazyFrame",), because("lazy-polars"), "(...).collect()"),
    "pyspark": _of_classes(("DataFrame", "RDD"), because("lazy-spark"), "(...).collect()"),
    "ibis": _of_classes(("Expr",), because("lazy-ibis"), "(...).execute()"),
    "duckdb": _of_classes(("DuckDBPyRelation",), _DUCKDB, "(...).fetchall()"),
    "_duckdb": _of_classes(("DuckDBPyRelation",), _DUCKDB, "(...).fetchall()"),
    "ray": _of_classes(("ObjectRef",), because("ray-object"), "ray.get(...)"),
}
"""By the top-level package of a value's class: what is unfinished about the value."""
