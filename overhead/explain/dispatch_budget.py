"""Count the launches and synchronisations of a block of PyTorch code, with the line of each."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overhead import scratch
from overhead.bounded_files import read_whole
from overhead.errors import BadFile, Unavailable, UsageError
from overhead.explain.call_sites import marked_sites, torch_folders
from overhead.explain.steps import call_site
from overhead.explain.trace import SITE_MARK, HostCall, Trace, read_chrome_trace

_MOST_TRACE_BYTES = 1 << 30
_MOST_LINES = 40
_NO_KERNEL = frozenset(
    {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "_local_scalar_dense", "alias"}
)
"""Operations that are no views and start no kernel."""
_WAITS = frozenset(
    {"equal", "allclose", "aten.normal.Tensor_Tensor", "aten.normal.float_Tensor", "_to_sparse", "_coalesce",
     "segment_reduce", "aten._ctc_loss.Tensor", "_linalg_check_errors", "_linalg_svd", "_linalg_eigh",
     "_linalg_eigvals", "linalg_eig", "linalg_lstsq", "linalg_pinv", "linalg_matrix_exp", "cholesky", "_unique"}
)  # fmt: skip
"""Operations that make the host wait for a value on CUDA, although no tag in PyTorch says so."""
_INDEXING = frozenset({"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put"})
"""Operations that read the number of places on the host if an index is a mask."""
_READS = ("tolist", "numpy", "__array__", "__repr__", "__reduce_ex__", "cpu")
"""Methods of a tensor that read its values without an operation."""
_END = "the end of the block"
_OURS = "overhead counts this thread"
_one_observer = threading.Lock()


@dataclass
class BlockCounts:
    """What a block did: one entry, ``(name, line)``, for each launch and synchronisation.

    ``means``: what was counted as a launch. The lists are filled when the block ends. ``uncounted``: the operations of
    threads that ran before the block began, which are in neither list.
    """

    means: str = ""
    launches: list[tuple[str, str]] = field(default_factory=list)
    synchronisations: list[tuple[str, str]] = field(default_factory=list)
    uncounted: list[tuple[str, str]] = field(default_factory=list)

    def over(self, *, launches: int | None = None, synchronisations: int | None = None) -> str:
        """What exceeds the budget or was not counted, with its lines; empty if nothing. None: no limit."""
        said = []
        if self.uncounted:
            said.append("Not counted: operations in threads that were started before the block.")
            said += _listed(self.uncounted)
        for name, found, most in (
            ("launch", self.launches, launches),
            ("synchronisation", self.synchronisations, synchronisations),
        ):
            if most is not None and len(found) > most:
                what = f" ({self.means})" if name == "launch" else ""
                plural = "es" if name == "launch" else "s"
                said.append(f"{len(found)} {name}{plural if len(found) != 1 else ''}{what}, the budget is {most}:")
                said += _listed(found)
        return "\n".join(said)


def _listed(found: Sequence[tuple[str, str]]) -> list[str]:
    """One line for each name and line, in the order of their first occurrence."""
    counts = Counter(found)
    wide = max(len(name) for name, _ in counts)
    lines = [f"{number:7} x  {name:{wide}}  {line or 'line unknown'}" for (name, line), number in counts.items()]
    hidden = len(lines) - _MOST_LINES
    return lines if hidden <= 0 else [*lines[:_MOST_LINES], f"        and {hidden} more lines"]


@contextlib.contextmanager
def counted(folder: str = "") -> Iterator[BlockCounts]:
    """Count what the block does. ``folder``: lines are written relative to it.

    If torch has started CUDA, calls of the CUDA runtime are counted, by ``torch.profiler``, in all threads. Else the
    operations that would each start at least one kernel on a GPU are counted, and the calls that would wait for it, in
    this thread and in those that the block starts. Raises ``Unavailable`` if torch is missing or its profiler sees no
    call of the runtime.
    """
    folder = folder or os.getcwd()
    try:
        import torch
    except ImportError as error:
        raise Unavailable(f"only PyTorch is counted, and torch does not import: {error}", "pip install torch") from None
    found = BlockCounts()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        with _on_cuda(torch, folder, found):
            yield found
    else:
        with _operations(torch, folder, found):
            yield found


@contextlib.contextmanager
def _operations(torch: Any, folder: str, found: BlockCounts) -> Iterator[None]:
    from torch.utils._python_dispatch import TorchDispatchMode

    found.means = "operations that start a kernel on a GPU"
    libraries = torch_folders(torch)
    here = threading.local()
    over = threading.Event()
    number = None
    """The tensor that PyTorch made last of a number of Python."""

    def waits(name: str, frame: Any) -> None:
        site = call_site(frame, folder, libraries)
        line = site.line or site.inside
        last = found.synchronisations[-1:]
        if not getattr(here, "inside", False) and (name == "Tensor.cpu" or last != [("Tensor.cpu", line)]):
            found.synchronisations.append((name, line))

    class Count(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal number
            result = func(*args, **(kwargs or {}))
            if over.is_set() or func.namespace == "profiler":
                return result
            name, frame = func.overloadpacket.__name__, sys._getframe(1)
            if name == "lift_fresh":
                number = result
            elif not func.is_view and name not in _NO_KERNEL:
                site = call_site(frame, folder, libraries)
                found.launches.append((f"{func.namespace}::{name}", site.line or site.inside))
            if _reads_values(torch, func, args, kwargs or {}, result, number):
                waits(f"{func.namespace}::{name}", frame)
            return result

    @contextlib.contextmanager
    def counting() -> Iterator[None]:
        with torch.profiler.record_function(_OURS):
            pass
        with Count():
            yield

    def reading(name: str, call: Callable[..., Any], reads: Callable[..., bool]) -> Callable[..., Any]:
        @functools.wraps(call)
        def read(*args: Any, **kwargs: Any) -> Any:
            if getattr(here, "inside", False) or not reads(*args, **kwargs):
                return call(*args, **kwargs)
            here.inside = True
            try:
                result = call(*args, **kwargs)
            finally:
                here.inside = False
            waits(name, sys._getframe(1))
            return result

        return read

    def of_tensors(*args: Any, **kwargs: Any) -> bool:
        return any(_holds(torch.Tensor, each) for each in (*args, *kwargs.values()) if isinstance(each, list | tuple))

    def at_tensor(given: Any, *args: Any, **kwargs: Any) -> bool:
        return any(isinstance(each, torch.Tensor) for each in (*args, *kwargs.values()))

    reads = [(torch.Tensor, name, lambda *_, **__: True) for name in _READS]
    reads += [(owner, "tensor_split", at_tensor) for owner in (torch, torch.Tensor)]
    reads += [(torch, "tensor", of_tensors), (torch, "as_tensor", of_tensors), (torch.Tensor, "new_tensor", of_tensors)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(_uncounted(torch, found))
        stack.callback(over.set)
        for owner, name, condition in reads:
            called = reading(f"{owner.__name__}.{name}", getattr(owner, name), condition)
            stack.enter_context(_replaced(owner, name, called))
        stack.enter_context(_in_new_threads(counting))
        stack.enter_context(counting())
        yield


def _reads_values(torch: Any, func: Any, args: Any, kwargs: Any, result: Any, number: Any) -> bool:
    """Whether an operation reads values of a tensor on the host if the tensor is on a CUDA device."""
    name = func.overloadpacket.__name__
    if name in _INDEXING:
        masks = [each.dtype in (torch.bool, torch.uint8) for each in args[1] if each is not None]
        if args[2:] and args[2] is number:
            return masks != [True]  # CUDA copies a number to the device, unless it fills one mask with it
        return any(masks)
    if name == "repeat_interleave":
        return kwargs.get("output_size") is None
    if name == "histc":
        return bool(args[2:3] == args[3:4])  # without bounds, they are those of the values
    if name in ("_to_copy", "copy_"):
        devices = {each.device.type for each in args if isinstance(each, torch.Tensor)} - {"cpu", "meta"}
        return bool(devices) and result.device.type == "cpu" and not kwargs.get("non_blocking", False)
    tags = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
    return name in _WAITS or str(func) in _WAITS or any(tag in func.tags for tag in tags)


def _holds(kind: type, value: Any) -> bool:
    return isinstance(value, kind) or (isinstance(value, list | tuple) and any(_holds(kind, each) for each in value))


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    own, before = name in vars(owner), getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before) if own else delattr(owner, name)


def _in_new_threads(counting: Callable[[], Any]) -> contextlib.AbstractContextManager[None]:
    """Run each thread that is started meanwhile in this context."""
    start = threading.Thread.start

    def starting(thread: threading.Thread) -> None:
        run = thread.run

        def counted_run() -> None:
            with counting():
                run()

        thread.run = counted_run  # type: ignore[method-assign]
        start(thread)

    return _replaced(threading.Thread, "start", starting)


@contextlib.contextmanager
def _uncounted(torch: Any, found: BlockCounts) -> Iterator[None]:
    """Find the operations of threads that do not count them, which only an observer of the whole process sees."""
    with contextlib.ExitStack() as stack:
        if not _one_observer.acquire(blocking=False):
            yield  # this block is within another one, which observes
            return
        stack.callback(_one_observer.release)
        file = Path(stack.enter_context(scratch.subfolder())) / "operations.json"
        observer = torch.profiler.ExecutionTraceObserver().register_callback(str(file))
        observer.start()
        try:
            yield
        finally:
            observer.stop()
            observer.unregister_callback()
        if not file.is_file():
            raise Unavailable("another ExecutionTraceObserver of PyTorch is in use; only one can be")
        try:
            nodes = json.loads(read_whole(file, _MOST_TRACE_BYTES))["nodes"]
        except BadFile as error:
            raise Unavailable(str(error)) from None
    operations = [(each["name"], {a["name"]: a["value"] for a in each["attrs"]}["tid"]) for each in nodes]
    ours = {thread for name, thread in operations if name == _OURS}
    found.uncounted += [(name, "") for name, thread in operations if thread not in ours and name.startswith("aten::")]


@contextlib.contextmanager
def _on_cuda(torch: Any, folder: str, found: BlockCounts) -> Iterator[None]:
    from torch.profiler import ProfilerActivity, profile

    found.means = "calls of the CUDA runtime that start kernels or graphs"
    with scratch.subfolder() as place:
        file = Path(place) / "trace.json"
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            with marked_sites(torch, folder):
                yield
            with torch.profiler.record_function(f"{SITE_MARK}{_END}|"):
                torch.cuda.synchronize()
        profiler.export_chrome_trace(str(file))
        try:
            trace = read_chrome_trace(read_whole(file, _MOST_TRACE_BYTES), "the profile")
        except BadFile as error:
            raise Unavailable(str(error)) from None
    add_calls(found, trace)


def add_calls(found: BlockCounts, trace: Trace) -> None:
    """Add the launches and synchronisations of a profile up to the wait that ends the block.

    Raises ``Unavailable`` if the profile does not have that wait.
    """
    calls = [call for step in trace.steps for call in step.calls]
    end = next((call.start for call in calls if call.site.line == _END), None)
    if end is None:
        raise Unavailable("the profiler saw no call of the CUDA runtime; it may not be allowed to (CUPTI)")
    waits = [call for step in trace.steps for call in step.synchronisations]
    found.launches += [_entry(call) for call in calls if call.kind == "launch" and call.start < end]
    found.synchronisations += [_entry(call) for call in waits if call.start < end]


def _entry(call: HostCall) -> tuple[str, str]:
    name = f"{call.operation.name} ({call.name})" if call.operation is not None else call.name
    site = call.site if call.site.line or call.operation is None else call.operation.site
    return name, site.line or site.inside


def check_limits(launches: int | None, synchronisations: int | None) -> None:
    """Raise ``UsageError`` for limits that are no budget."""
    given = {"launches": launches, "synchronisations": synchronisations}
    if all(most is None for most in given.values()):
        raise UsageError("dispatch_budget: give launches=N, synchronisations=N, or both")
    for name, most in given.items():
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 0):
            raise UsageError(f"dispatch_budget: {name} is {most!r}; it must be a whole number from 0 on")
