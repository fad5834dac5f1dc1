"""Results whose work is not done when a call returns: generators, futures, and lazy values of
libraries.
"""

from __future__ import annotations

import asyncio
import csv
import itertools
import multiprocessing.pool
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from multiprocessing.pool import ThreadPool
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from overhead.timing.unfinished import unfinished_of


def numbers() -> Iterator[int]:
    yield 1


def of_library(module: str, name: str, **values: object) -> Any:
    """An object of a class of this name in another library."""
    kind = type(name, (), {"__module__": module})
    found = kind()
    vars(found).update(values)
    return found


def fake_mlx(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An MLX whose arrays write their graph as MLX does: with an edge for each operation that is
    not evaluated.
    """
    core: Any = ModuleType("mlx.core")
    core.array = type("array", (), {"__module__": "mlx.core", "evaluated": False})
    core.export_to_dot = lambda file, value: file.write(
        "digraph {}" if value.evaluated else "digraph { a -> b }"
    )
    package = ModuleType("mlx")
    package.core = core  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlx", package)
    monkeypatch.setitem(sys.modules, "mlx.core", core)
    return core


LAZY = {
    "a generator": lambda: numbers(),
    "map": lambda: map(abs, [1]),
    "itertools": lambda: itertools.chain([1], [2]),
    "matches of a pattern": lambda: re.finditer("a", "aa"),
    "a list backwards": lambda: reversed([1]),
    "a list in turn": lambda: iter([1]),
    "calls until a value": lambda: iter(lambda: 1, 1),
    "rows of a file": lambda: csv.reader(["a,b"]),
    "rows with names": lambda: csv.DictReader(["a,b"]),
    "results of a pool": lambda: multiprocessing.pool.IMapIterator(
        of_library("a pool", "Pool", _cache={})
    ),
    "a future": Future,
    "a future in a list": lambda: [1, Future()],
    "a generator in a dict": lambda: {"rows": (1, numbers())},
    "polars": lambda: of_library("polars.lazyframe.frame", "LazyFrame"),
    "pyspark": lambda: of_library("pyspark.sql.dataframe", "DataFrame"),
    "duckdb": lambda: of_library("_duckdb", "DuckDBPyRelation"),
    "work of torch": lambda: of_library("torch.distributed", "Work"),
    "ray": lambda: of_library("ray._raylet", "ObjectRef"),
    "torch xla": lambda: of_library("torch", "Tensor", device=SimpleNamespace(type="xla")),
    "torch meta": lambda: of_library("torch", "Tensor", device=SimpleNamespace(type="meta")),
    "tinygrad": lambda: of_library(
        "tinygrad.tensor", "Tensor", uop=SimpleNamespace(base=SimpleNamespace(realized=None))
    ),
}
DONE = {
    "nothing": lambda: None,
    "numbers": lambda: [1, 2.0, {"a": (3,)}],
    "a list": lambda: list(map(abs, [1])),
    "polars": lambda: of_library("polars.dataframe.frame", "DataFrame"),
    "torch": lambda: of_library("torch", "Tensor", device=SimpleNamespace(type="cuda")),
    "tinygrad": lambda: of_library(
        "tinygrad.tensor", "Tensor", uop=SimpleNamespace(base=SimpleNamespace(realized=3))
    ),
}


@pytest.mark.parametrize("what", LAZY)
def test_a_result_without_its_work_is_found_with_what_to_write(what: str) -> None:
    found = unfinished_of([LAZY[what]()])
    assert found is not None
    assert found.finish


@pytest.mark.parametrize("what", DONE)
def test_a_result_whose_work_is_done_is_not_called_unfinished(what: str) -> None:
    assert unfinished_of([DONE[what]()]) is None


def test_a_coroutine_is_unfinished() -> None:
    async def work() -> None: ...

    made = work()
    assert unfinished_of([made]) is not None
    made.close()


def test_a_process_and_a_thread_are_unfinished_until_they_end() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    thread = threading.Thread(target=process.wait)
    thread.start()
    assert unfinished_of([process]) is not None
    assert unfinished_of([thread]) is not None
    process.communicate()
    thread.join()
    assert unfinished_of([process, thread]) is None


def test_a_result_of_a_pool_is_unfinished_and_what_it_gives_is_not() -> None:
    with ThreadPool(1) as pool:
        result = pool.apply_async(abs, [-1])
        assert unfinished_of([result]) is not None
        assert unfinished_of([result.get()]) is None


def test_a_task_of_an_event_loop_is_unfinished() -> None:
    loop = asyncio.new_event_loop()
    assert unfinished_of([loop.create_future()]) is not None
    loop.close()


def test_a_collection_of_dask_is_unfinished_and_an_array_without_one_is_not() -> None:
    graphs: list[Any] = [{"a task": 1}, None]
    kinds = [
        type("Array", (), {"__dask_graph__": lambda self, graph=graph: graph}) for graph in graphs
    ]
    assert [unfinished_of([kind()]) is not None for kind in kinds] == [True, False]


def test_an_array_of_mlx_is_unfinished_until_it_is_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    array = fake_mlx(monkeypatch).array()
    assert unfinished_of([array]) is not None
    array.evaluated = True
    assert unfinished_of([array]) is None


@pytest.mark.needs("mlx")
def test_mlx_itself_tells_whether_an_array_is_evaluated() -> None:
    import mlx.core as mx

    array = mx.ones((4, 4)) @ mx.ones((4, 4))
    assert unfinished_of([array]) is not None
    mx.eval(array)
    assert unfinished_of([array]) is None
