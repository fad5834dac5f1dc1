"""Count the launches and synchronisations of a block of PyTorch code, with the line of each."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
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
_READS = ("tolist", "numpy", "__array__", "__repr__", "__reduce_ex__", "cpu")
"""Methods of a tensor that read its values without an operation."""
_END = "the end of the block"


@dataclass
class BlockCounts:
    """``(name, line)`` of each launch and synchronisation of a block at its end. ``means``: what counts as a launch."""

    means: str = ""
    launches: list[tuple[str, str]] = field(default_factory=list)
    synchronisations: list[tuple[str, str]] = field(default_factory=list)

    def over_budget(self, *, launches: int | None = None, synchronisations: int | None = None) -> str:
        """A text of what exceeds these limits, with its lines; empty if nothing does. None: no limit."""
        said = []
        for what, found, most in (
            (f"launches ({self.means})", self.launches, launches),
            ("synchronisations", self.synchronisations, synchronisations),
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
    that would start a kernel on a GPU are counted, and its reads of values, which would wait for it. Raises
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

    found.means = "operations that start a kernel on a GPU"
    libraries = torch_folders(torch)
    number = None  # the tensor that PyTorch made last of a number of Python
    inside: list[str] = []  # the methods that read and have not returned: what they call is part of them

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
            elif not func.is_view and name not in _NO_KERNEL and func.namespace != "profiler":
                found.launches.append((f"{func.namespace}::{name}", line(frame)))
            if not inside and _reads_values(torch, func, args, kwargs, number):
                found.synchronisations.append((f"{func.namespace}::{name}", line(frame)))
            return result

    def reading(name: str) -> Callable[..., Any]:
        call = getattr(torch.Tensor, name)

        @functools.wraps(call)
        def read(*args: Any, **kwargs: Any) -> Any:
            if not inside:
                found.synchronisations.append((f"Tensor.{name}", line(sys._getframe(1))))
            inside.append(name)
            try:
                return call(*args, **kwargs)
            finally:
                inside.pop()

        return read

    readers: dict[str, Any] = {name: reading(name) for name in _READS}
    with mock.patch.multiple(torch.Tensor, **readers), Count():
        yield


def _reads_values(torch: Any, func: Any, args: Any, kwargs: Any, number: Any) -> bool:
    """Whether an operation reads values of a tensor on the host if the tensor is on a CUDA device."""
    if func.overloadpacket.__name__ in _INDEXING:
        masks = [each.dtype in (torch.bool, torch.uint8) for each in args[1] if each is not None]
        if args[2:] and args[2] is number:
            return masks != [True]  # CUDA copies a number to the device, unless it fills one mask with it
        return any(masks)
    tags = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
    return any(tag in func.tags for tag in tags) and kwargs.get("output_size") is None


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
