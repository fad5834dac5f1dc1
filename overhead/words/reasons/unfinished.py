"""Why ``overhead time`` refuses a call that returns before its work is done, and what to write
instead.
"""

from __future__ import annotations

TEMPLATES = {
    # What the result is.
    "idle-coroutine": "a coroutine that does not run",
    "idle-generator": "a generator that does not run",
    "idle-iterator": "an iterator ({type}) that does not run",
    "future-elsewhere": "a future, whose work another thread or process does",
    "result-of-another-process": "a result that another process computes",
    "task-of-an-event-loop": "a task of an event loop",
    "running-process": "a process that still runs",
    "running-thread-or-process": "a thread or process that still runs",
    "running-torch-work": "work of PyTorch that goes on",
    "lazy-dask": "a lazy collection of Dask",
    "lazy-mlx": "a lazy array of MLX",
    "meta-tensor": "a tensor on PyTorch's meta device, which computes nothing",
    "lazy-torch": "a lazy tensor of PyTorch ({kind})",
    "lazy-tinygrad": "a lazy tensor of tinygrad",
    "lazy-polars": "a lazy frame of Polars",
    "lazy-spark": "a lazy table of Spark",
    "lazy-ibis": "a lazy expression of Ibis",
    "lazy-duckdb": "a lazy relation of DuckDB",
    "ray-object": "an object that Ray computes elsewhere",
    # What to write, where it is more than a piece of Python.
    "tensors-on-a-real-device": "tensors on a real device",
    "sync-torch-xla": "its result and torch_xla.sync(wait=True)",
}
