"""Count the launches and synchronisations of a block of PyTorch code, with the line of each."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overhead import scratch
from overhead.bounded_files import read_whole
from overhead.errors import BadFile, Unavailable, UsageError, first_line_of
from overhead.explain.chrome_trace import MOST_TRACE_BYTES, SITE_MARK, marked_sites, read_chrome_trace, torch_folders
from overhead.explain.steps import call_site
from overhead.explain.trace import HostCall, Trace

_NO_KERNEL = frozenset(
    {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "_local_scalar_dense", "alias"}
)
"""Operations that are no views and start no kernel."""
_INDEXING = frozenset({"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put"})
"""Operations that read the number of places on the host if an index is a mask."""
_WAITING = frozenset(
    {
        "_to_sparse", "_to_sparse_csr", "_to_sparse_csc", "_to_sparse_bsr", "_to_sparse_bsc", "_linalg_check_errors",
        "_linalg_svd", "_linalg_eigh",
    }
)  # fmt: skip
"""Operations that wait on CUDA, though no tag says so: seen in profiles of PyTorch 2.11 on an H200."""
_READS = ("tolist", "numpy", "__array__", "__repr__", "__reduce_ex__", "cpu", "__dlpack__")
"""Methods of a tensor that read its values without an operation."""
_READS_OF_ONE = ("item", "__bool__", "__int__", "__float__", "__index__", "__complex__")
"""Methods that read one value by an operation, which is seen in the thread of the block only."""
_HOST_COUNTERS = frozenset(
    f"{name}.py" for name in ("adadelta", "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop")
)
"""Optimisers of PyTorch that count steps in tensors of the host, also if the parameters are on a GPU. On an H200 none
of them waits, and launches of a step are fewer by the operations on these tensors. ASGD and Adafactor do wait."""
_COUNTERS = ("state_steps", "device_state_steps", "mu_products", "device_mu_products")
"""What these optimisers call the lists of such tensors."""
_DLPACK_CPU = 1
"""The number of the host's memory in the DLPack standard."""
_END = "the end of the block"


@dataclass
class BlockCounts:
    """``(name, line)`` of each launch and synchronisation of a block at its end.

    ``means``, ``means_wait``: what counts as a launch, and as a synchronisation; and what is not counted.
    """

    means: str = ""
    means_wait: str = ""
    launches: list[tuple[str, str]] = field(default_factory=list)
    synchronisations: list[tuple[str, str]] = field(default_factory=list)

    def over_budget(self, *, launches: int | None = None, synchronisations: int | None = None) -> str:
        """A text of what exceeds these limits, with its lines; empty if nothing does. None: no limit."""
        said = []
        for what, found, most in (
            (f"launches ({self.means})", self.launches, launches),
            (f"synchronisations ({self.means_wait})", self.synchronisations, synchronisations),
        ):
            if most is not None and len(found) > most:
                said.append(f"{what}: {len(found)}, the budget is {most}:")
                wide = max(len(name) for name, _ in found)
                counts = Counter(found).items()  # in the order of their first occurrence
                said += [f"{n:7} x  {name:{wide}}  {line or 'line unknown'}" for (name, line), n in counts]
        return "\n".join(said)


@contextlib.contextmanager
def count_block(folder: str = "") -> Iterator[BlockCounts]:
    """A context that counts the launches and synchronisations of its block. ``folder``: lines are relative to it.

    If torch has started CUDA, ``torch.profiler`` counts runtime calls in all threads. Else operations of this thread
    that would start a kernel on a GPU are counted, and reads of values in all threads, which would wait for it. Raises
    ``Unavailable`` if torch is missing or its profiler sees no call of the runtime.
    """
    folder = folder or os.getcwd()
    try:
        import torch
    except Exception as error:  # a torch that was built for another version may raise anything
        reason = f"only PyTorch is counted, and torch does not import: {first_line_of(error)}"
        raise Unavailable(reason, "pip install torch") from None
    found = BlockCounts()
    counting = _on_cuda if torch.cuda.is_available() and torch.cuda.is_initialized() else _operations
    with counting(torch, folder, found):
        yield found


@contextlib.contextmanager
def _operations(torch: Any, folder: str, found: BlockCounts) -> Iterator[None]:
    from unittest import mock

    from torch.utils._python_dispatch import TorchDispatchMode

    found.means = "operations of this thread that start a kernel on a GPU; those of other threads are not counted"
    found.means_wait = (
        "operations of this thread that wait for a GPU, and reads such as item() in all threads; other waits of other "
        "threads are not counted"
    )
    libraries = torch_folders(torch)
    number = None  # the tensor that PyTorch made last of a number of Python
    folder_of_torch = os.path.join(os.path.dirname(torch.__file__), "")
    own_thread = threading.get_ident()
    inside = _Inside()  # what a method that reads calls is part of it

    def line(frame: Any) -> str:
        site = call_site(frame, folder, libraries)
        return site.line or site.inside

    class Count(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal number
            kwargs = kwargs or {}
            result = func(*args, **kwargs)
            name, frame = func.overloadpacket.__name__, sys._getframe(1)
            if name == "lift_fresh":
                number = result
                return result
            if _is_host_counter(frame, folder_of_torch, args):
                return result
            if not func.is_view and name not in _NO_KERNEL and func.namespace != "profiler":
                found.launches.append((f"{func.namespace}::{name}", line(frame)))
            if not inside.depth and _reads_values(torch, func, args, kwargs, number):
                found.synchronisations.append((f"{func.namespace}::{name}", line(frame)))
            return result

    def reading(name: str) -> Callable[..., Any]:
        call = getattr(torch.Tensor, name)

        @functools.wraps(call)
        def read(*args: Any, **kwargs: Any) -> Any:
            seen = name in _READS_OF_ONE and threading.get_ident() == own_thread  # by its operation
            if seen or inside.depth or (name == "__dlpack__" and not _to_the_host(kwargs)):
                return call(*args, **kwargs)
            with inside:
                result = call(*args, **kwargs)
            # Only now: NumPy calls __array__ with an argument that PyTorch refuses, and then again without it.
            found.synchronisations.append((f"Tensor.{name}", line(sys._getframe(1))))
            return result

        return read

    readers: dict[str, Any] = {name: reading(name) for name in (*_READS, *_READS_OF_ONE)}
    with mock.patch.multiple(torch.Tensor, **readers), Count():
        yield


class _Inside(threading.local):
    """How many methods that read this thread is inside of, as a context."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


def _to_the_host(kwargs: Mapping[str, Any]) -> bool:
    """Whether ``__dlpack__`` is asked for memory of the host, as NumPy does; other libraries name no device."""
    device = kwargs.get("dl_device", ("another", 0))
    return device is None or device[0] == _DLPACK_CPU


def _is_host_counter(frame: Any, folder: str, args: Any) -> bool:
    """Whether an operation works on the counter of steps that an optimiser keeps on the host.

    ``frame``: of the operation's caller. ``folder``: of PyTorch.
    """
    first = args[0] if args else None
    target = first[0] if isinstance(first, list | tuple) and first else first
    optimisers = os.path.join(folder, "optim", "")
    while frame is not None and frame.f_code.co_filename.startswith((folder, __file__)):
        file = frame.f_code.co_filename
        if file.startswith(optimisers) and os.path.basename(file) in _HOST_COUNTERS:
            names = frame.f_locals
            lists = [names.get(name) or () for name in _COUNTERS]
            if any(target is counter for counters in lists for counter in counters):
                return not names.get("capturable", False)
        frame = frame.f_back
    return False


def _reads_values(torch: Any, func: Any, args: Any, kwargs: Any, number: Any) -> bool:
    """Whether an operation reads values of a tensor on the host if the tensor is on a CUDA device."""
    if func.overloadpacket.__name__ in _INDEXING:
        masks = [each.dtype in (torch.bool, torch.uint8) for each in args[1] if each is not None]
        if args[2:] and args[2] is number:
            return masks != [True]  # CUDA copies a number to the device, unless it fills one mask with it
        return any(masks)
    if func.overloadpacket.__name__ in _WAITING:
        return True
    tags = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
    return any(tag in func.tags for tag in tags) and kwargs.get("output_size") is None


@contextlib.contextmanager
def _on_cuda(torch: Any, folder: str, found: BlockCounts) -> Iterator[None]:
    from torch.profiler import ProfilerActivity, profile

    found.means = "calls of the CUDA runtime that start kernels or graphs, in all threads"
    found.means_wait = "calls of the CUDA runtime that wait, in all threads"
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
            trace = read_chrome_trace(read_whole(file, MOST_TRACE_BYTES), "the profile")
        except BadFile as error:
            raise Unavailable(str(error)) from None
    add_calls(found, trace)


def add_calls(found: BlockCounts, trace: Trace) -> None:
    """Add a profile's calls to ``found``, up to the wait that ends the block; ``Unavailable`` without that wait."""
    calls = [call for step in trace.steps for call in step.calls]
    end = next((call.start for call in calls if call.site.line == _END), None)
    if end is None:
        raise Unavailable("the profiler saw no call of the CUDA runtime; it may not be allowed to (CUPTI)")
    waits = [call for step in trace.steps for call in step.synchronisations]
    found.launches += [_entry(call) for call in calls if call.kind == "launch" and call.start < end]
    found.synchronisations += [_entry(call) for call in waits if call.start < end]


def _entry(call: HostCall) -> tuple[str, str]:
    name = f"{call.operation.name} ({call.name})" if call.operation is not None else call.name
    return name, call.site.line or call.site.inside


def check_limits(*limits: int | None) -> None:
    """Raise ``UsageError`` unless at least one limit is given, and all that are given are whole numbers from 0 on."""
    given = [most for most in limits if most is not None]
    if not given or any(type(most) is not int or most < 0 for most in given):
        raise UsageError("dispatch_budget: give launches=N, synchronisations=N, or both; N is a whole number from 0 on")
