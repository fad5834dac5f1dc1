"""Results whose work is not done when a call returns, and that no wait finishes: lazy arrays, generators, futures.

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

_LOOKED_AT = 200
"""The most values of a result that are looked at."""
_OF_ITERATORS = ("builtins", "itertools", "csv", "_csv", "re", "multiprocessing.pool", "nt", "posix")
"""Modules whose iterators do their work when they are read. Files, cursors and objects of programs may be iterators
too, and return themselves when their work is done."""
_NO_WORK = ("lazy", "xla", "meta")
"""Kinds of devices of PyTorch on which an operation returns before it is computed, or is never computed."""


@dataclass(frozen=True)
class Unfinished:
    """A result without its work. ``what``: what it is, for the reader. ``finish``: what to write to get the work."""

    what: str
    finish: str


def unfinished_of(results: Iterable[Any]) -> Unfinished | None:
    """The first result, or part of one, whose work is not done; None if all is done, or waits for a known library."""
    left = list(results)
    for _ in range(_LOOKED_AT):
        if not left:
            return None
        value = left.pop()
        if isinstance(value, list | tuple):
            left += value[:_LOOKED_AT]
        elif isinstance(value, dict):
            left += list(value.values())[:_LOOKED_AT]
        elif found := _of_value(value):
            return found
    return None


class Kept:
    """What the variables of a statement hold before a call: a call may put a future into one of them."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._before = list(_held_by(names))  # kept, so that no other object gets the identity of one of them
        self._known = set(map(id, self._before))

    def running_since(self, names: Mapping[str, Any]) -> Unfinished | None:
        """The first value that is there now, and stands for work that goes on."""
        for value in _held_by(names):
            if id(value) not in self._known and (found := _running(value)):
                return found
        return None


def _held_by(names: Mapping[str, Any]) -> Iterator[Any]:
    """The values of variables, and the last ones of the lists, tuples, sets and dicts among them."""
    for value in names.values():
        yield value
        if isinstance(value, list | tuple):
            yield from value[-_LOOKED_AT:]
        elif isinstance(value, dict | set | deque):
            items = value.values() if isinstance(value, dict) else value
            yield from itertools.islice(items, _LOOKED_AT)


def _of_value(value: Any) -> Unfinished | None:
    if inspect.iscoroutine(value):
        return Unfinished("a coroutine that does not run", 'asyncio.run(...), with --setup "import asyncio"')
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return Unfinished("a generator that does not run", "list(...)")
    if isinstance(value, Iterator) and type(value).__module__ in _OF_ITERATORS:
        return Unfinished(f"an iterator ({type(value).__name__}) that does not run", "list(...)")
    return _running(value) or _of_library(value)


def _running(value: Any) -> Unfinished | None:
    """What is unfinished about work that goes on in another thread, process or event loop."""
    if isinstance(value, concurrent.futures.Future):
        return Unfinished("a future, whose work another thread or process does", "(...).result()")
    if isinstance(value, multiprocessing.pool.AsyncResult):
        return Unfinished("a result that another process computes", "(...).get()")
    if asyncio.isfuture(value):
        return Unfinished("a task of an event loop", "asyncio.run(...) around all of it")
    if isinstance(value, subprocess.Popen) and value.poll() is None:
        return Unfinished("a process that still runs", "(...).wait()")
    if isinstance(value, threading.Thread | multiprocessing.process.BaseProcess) and value.is_alive():
        return Unfinished("a thread or process that still runs", "(...).join()")
    return None


def _of_library(value: Any) -> Unfinished | None:
    if callable(getattr(type(value), "__dask_graph__", None)):  # a collection of Dask, or an array of xarray
        return Unfinished("a lazy collection of Dask", "(...).compute()") if value.__dask_graph__() else None
    library = type(value).__module__.partition(".")[0]
    return _OF_LIBRARY[library](value) if library in _OF_LIBRARY else None


def _mlx(value: Any) -> Unfinished | None:
    import mlx.core as mx

    if not isinstance(value, mx.array):
        return None
    # MLX tells in no other way whether an array is evaluated. The graph of one that is has no edge.
    graph = io.StringIO()
    mx.export_to_dot(graph, value)
    return Unfinished("a lazy array of MLX", "mx.eval(...)") if "->" in graph.getvalue() else None


def _torch(value: Any) -> Unfinished | None:
    if type(value).__name__ in ("Future", "Work"):
        return Unfinished("work of PyTorch that goes on", "(...).wait()")
    kind = getattr(getattr(value, "device", None), "type", "")
    if kind not in _NO_WORK:
        return None
    if kind == "meta":
        return Unfinished("a tensor on PyTorch's meta device, which computes nothing", "tensors on a real device")
    return Unfinished(f"a lazy tensor of PyTorch ({kind})", "its result and torch_xla.sync(wait=True)")


def _tinygrad(value: Any) -> Unfinished | None:
    if type(value).__name__ != "Tensor":
        return None
    graph = getattr(value, "uop", None) or getattr(value, "lazydata", None)
    base = getattr(graph, "base", graph)
    realized = getattr(base, "is_realized", None)
    if realized is None:
        realized = getattr(base, "realized", None) is not None
    return None if realized else Unfinished("a lazy tensor of tinygrad", "(...).realize()")


def _named(names: tuple[str, ...], what: str, finish: str) -> Callable[[Any], Unfinished | None]:
    """Finds the lazy classes of a library by their names."""

    def find(value: Any) -> Unfinished | None:
        own = {kind.__name__ for kind in type(value).__mro__}
        return Unfinished(what, finish) if own.intersection(names) else None

    return find


_OF_LIBRARY: dict[str, Callable[[Any], Unfinished | None]] = {
    "mlx": _mlx,
    "torch": _torch,
    "torch_xla": _torch,
    "tinygrad": _tinygrad,
    "polars": _named(("LazyFrame",), "a lazy frame of Polars", "(...).collect()"),
    "pyspark": _named(("DataFrame", "RDD"), "a lazy table of Spark", "(...).collect()"),
    "ibis": _named(("Expr",), "a lazy expression of Ibis", "(...).execute()"),
    "duckdb": _named(("DuckDBPyRelation",), "a lazy relation of DuckDB", "(...).fetchall()"),
    "_duckdb": _named(("DuckDBPyRelation",), "a lazy relation of DuckDB", "(...).fetchall()"),
    "ray": _named(("ObjectRef",), "an object that Ray computes elsewhere", "ray.get(...)"),
}
"""By the top-level package of a value's class: what is unfinished about the value."""
