"""Count the launches and synchronisations of a block of PyTorch code, with the line of each."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from overhead import scratch
from overhead.bounded_files import read_whole
from overhead.errors import BadFile, Unavailable, UsageError, first_line_of
from overhead.explaining.marked_sites import call_site, marked_sites, torch_folders
from overhead.results import Why, because
from overhead.traces.chrome_trace import MOST_TRACE_BYTES, read_chrome_trace
from overhead.traces.marks import SITE_MARK
from overhead.traces.trace import HostCall, Trace

_NO_KERNEL = frozenset(
    {
        "empty",
        "empty_like",
        "empty_strided",
        "empty_permuted",
        "empty_quantized",
        "new_empty",
        "new_empty_strided",
        "_efficientzerotensor",
        "resize_",
        "resize_as_",
        "_resize_output_",
        "set_",
        "set_data",
        "_unsafe_view",
        "detach",
        "detach_",
        "alias",
        "lift",
        "rename_",
        "requires_grad_",
        "retain_grad",
        "_coalesced_",
        "_local_scalar_dense",
        "is_pinned",
        "is_set_to",
        "is_same_size",
        "record_stream",
        "_pin_memory",
        "_has_compatible_shallow_copy_type",
        "_has_same_storage_numel",
        "_debug_has_internal_overlap",
        "_fused_sdp_choice",
        "_use_cudnn_ctc_loss",
        "_use_cudnn_rnn_flatten_weight",
        "_use_miopen_ctc_loss",
        "_nnpack_available",
        "cudnn_is_acceptable",
        "_sparse_coo_tensor_unsafe",
        "_sparse_coo_tensor_with_dims",
        "_sparse_coo_tensor_with_dims_and_tensors",
        "_nnz",
        "sparse_dim",
        "dense_dim",
        "is_coalesced",
        "sparse_resize_",
        "sparse_resize_and_clear_",
    }
)
"""Operations that are no views and start no kernel: they make or change what describes a tensor, or
read that.
"""
_INDEXING = frozenset(
    {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put"}
)
"""Operations that read the number of places on the host if an index is a mask."""
_WAITING = frozenset(
    {
        "_to_sparse",
        "_to_sparse_csr",
        "_to_sparse_csc",
        "_to_sparse_bsr",
        "_to_sparse_bsc",
        "_linalg_check_errors",
        "_linalg_svd",
        "_linalg_eigh",
        "linalg_eig",
        "linalg_eigvals",
        "_linalg_eigvals",
        "linalg_lstsq",
        "linalg_pinv",
    }
)
"""Operations that wait on CUDA, though no tag says so: seen in profiles of PyTorch 2.11 on an H200.
Those of the last line check an error code on the host.
"""
_READ_ON_THE_HOST = {
    "index_fill.int_Tensor": (3,),
    "index_fill_.int_Tensor": (3,),
    "linspace.Scalar_Tensor": (1,),
    "linspace.Tensor_Scalar": (0,),
    "linspace.Tensor_Tensor": (0, 1),
    "logspace.Scalar_Tensor": (1,),
    "logspace.Tensor_Scalar": (0,),
    "logspace.Tensor_Tensor": (0, 1),
    "masked_fill.Tensor": (2,),
    "masked_fill_.Tensor": (2,),
    "normal.Tensor_Tensor": (1,),
    "normal.float_Tensor": (1,),
}
"""Operations that call ``item()`` on a tensor inside PyTorch, where the dispatcher does not show
it: the positions of these tensors among the arguments.
"""
_READS = ("tolist", "numpy", "__array__", "__repr__", "__reduce_ex__", "cpu", "__dlpack__")
"""Methods of a tensor that read its values without an operation."""
_READS_OF_ONE = ("item", "__bool__", "__int__", "__float__", "__index__", "__complex__")
"""Methods that read one value by an operation, which is seen in the thread of the block only."""
_HOST_COUNTERS = frozenset(
    f"{name}.py"
    for name in ("adadelta", "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop")
)
"""Optimisers of PyTorch that count steps in tensors of the host, also if the parameters are on a
GPU. On an H200 none of them waits, and launches of a step are fewer by the operations on these
tensors. ASGD and Adafactor do wait.
"""
_COUNTERS = ("state_steps", "device_state_steps", "mu_products", "device_mu_products")
"""What these optimisers call the lists of such tensors."""
_DLPACK_CPU = 1
"""The number of the host's memory in the DLPack standard."""
END_OF_BLOCK = "end-of-block"
"""What marks the wait for the device at the end of a block, in place of a line of the program."""


class CountedCall(NamedTuple):
    """One launch or synchronisation. ``name``: of the operation or the runtime call. ``line``: of
    the program; '' if it is not known.
    """

    name: str
    line: str


@dataclass(frozen=True)
class OverBudget:
    """More launches or synchronisations than a budget allows (``most``).

    ``means``: a sentence on what counts as one. ``found``: all of them, as name and line.
    """

    kind: Literal["launches", "synchronisations"]
    means: Why
    most: int
    found: Sequence[tuple[str, str]]


@dataclass
class BlockCounts:
    """The launches and synchronisations that a ``with`` block made, each as ``(name, line)``. It is
    filled at the end of the block.

    ``means``, ``means_wait``: a sentence on what counts as a launch, and as a synchronisation, and
    on what is not counted.
    """

    means: Why = ""
    means_wait: Why = ""
    launches: list[tuple[str, str]] = field(default_factory=list)
    synchronisations: list[tuple[str, str]] = field(default_factory=list)

    def over_budget(
        self, *, launches: int | None = None, synchronisations: int | None = None
    ) -> list[OverBudget]:
        """Which of the two limits the block exceeds: one result for each that it does. None: no
        limit.
        """
        # ``means``, ``means_wait``: sentences on what counts as a launch, and as a synchronisation.
        over: list[OverBudget] = []
        if launches is not None and len(self.launches) > launches:
            over.append(OverBudget("launches", self.means, launches, self.launches))
        if synchronisations is not None and len(self.synchronisations) > synchronisations:
            waits = self.synchronisations
            over.append(OverBudget("synchronisations", self.means_wait, synchronisations, waits))
        return over


@contextlib.contextmanager
def count_block(folder: str = "") -> Iterator[BlockCounts]:
    """A context that counts the launches and synchronisations of its block. ``folder``: lines are
    relative to it.

    If torch has started CUDA, ``torch.profiler`` counts runtime calls in all threads. Else
    operations of this thread that would start a kernel on a GPU are counted, and reads of values in
    all threads, which would wait for it. Raises ``Unavailable`` if torch is missing or its profiler
    sees no call of the runtime.
    """
    folder = folder or os.getcwd()
    try:
        import torch
    except Exception as error:  # a torch that was built for another version may raise anything
        reason = because("only-pytorch-is-counted", error=first_line_of(error))
        raise Unavailable(reason, "pip install torch") from None
    counts = BlockCounts()
    # A program that uses no GPU (yet) is counted by its operations.
    uses_cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
    counting = _count_runtime_calls if uses_cuda else _count_operations
    with counting(torch, folder, counts):
        yield counts


@contextlib.contextmanager
def _count_operations(torch: Any, folder: str, counts: BlockCounts) -> Iterator[None]:
    """A context that counts the operations of PyTorch in its block that would launch a kernel on a
    GPU, and the reads of values that would wait for it. It is used where no GPU is in use, so that
    a test can count on a machine without one.

    ``torch``: the module. ``folder``: lines are relative to it. ``counts`` gets what is counted.
    """
    from unittest import mock

    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    counts.means = because("operations-that-launch")
    counts.means_wait = because("operations-and-reads-that-wait")
    # Three ways to see what runs: operations of this thread, its methods of tensors, and methods in
    # other threads. ``counter`` decides for each of them whether it counts.
    counter = _Counter(torch, folder, counts)
    # The key of operations that only call others.
    composite = torch._C.DispatchKey.CompositeImplicitAutograd

    class CountOperations(TorchDispatchMode):  # type: ignore[misc]
        """PyTorch calls this in place of each operation of this thread."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            """Run an operation of PyTorch (``func``), and count it. One that only calls others is
            not counted itself.
            """
            kwargs = kwargs or {}
            if func.has_kernel_for_dispatch_key(composite):
                # Under inference_mode() PyTorch hands over an operation before it has taken it
                # apart, and item() and others inside it would not be seen.
                with self:
                    # ``_op_dk`` runs the operation as this key does: each one that it calls comes
                    # here in turn.
                    return func._op_dk(composite, *args, **kwargs)
            result = func(*args, **kwargs)
            # Frame 1 is of the caller, by which the line of the program is found.
            counter.count(func, args, kwargs, result, sys._getframe(1))
            return result

    class CountReads(TorchFunctionMode):  # type: ignore[misc]
        """PyTorch calls this in place of each method of a tensor in this thread. So it also sees a
        method that the program took from the class before this block (``read = Tensor.tolist``).
        """

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            """Call a method of a tensor, and count it if it reads values."""
            kwargs = kwargs or {}
            # The name of the method; '' for one that reads no values.
            name = counter.name_of_read(func)
            if not name:
                return func(*args, **kwargs)
            return counter.read(name, func, args, kwargs, sys._getframe(1))

    # The methods of the class are replaced for reads in other threads, which no mode sees.
    # ``_READS``: methods that no operation shows, such as ``tolist``; ``_READS_OF_ONE``: those that
    # read one value by an operation, such as ``item``.
    readers: dict[str, Any] = {name: counter.reading(name) for name in (*_READS, *_READS_OF_ONE)}
    with mock.patch.multiple(torch.Tensor, **readers), CountReads(), CountOperations():
        yield


class _Counter:
    """Counts operations of one thread, and methods of tensors that read values in all threads, into
    ``counts``.
    """

    def __init__(self, torch: Any, folder: str, counts: BlockCounts) -> None:
        """``torch``: the module. ``folder``: lines are relative to it. ``counts``: gets what is
        counted. Made in the thread whose operations are counted.
        """
        self._torch = torch
        self._folder = folder
        self._counts = counts
        # Folders by which a line of the program is told from one of PyTorch.
        self._libraries = torch_folders(torch)
        self._folder_of_torch = os.path.join(os.path.dirname(torch.__file__), "")
        # A number of Python becomes a tensor on the host, so reading that one waits for nothing.
        self._number: Any = None  # the tensor that PyTorch made last of a number of Python
        self._thread = threading.get_ident()
        # Whether a method that reads runs now: what it calls in turn is not counted again.
        self._inside = _Inside()
        # By ``id`` of a method, as PyTorch defines it: its name. Only of those that read without an
        # operation, such as ``tolist``: ``count`` sees the others.
        self._reads = {id(getattr(torch.Tensor, name)): name for name in _READS}

    def count(
        self, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any, frame: Any
    ) -> None:
        """Count an operation that has run: as a launch if it would start a kernel on a GPU, as a
        synchronisation if it would read values from there. ``func``: the operation, called with
        ``args`` and ``kwargs``. ``frame``: of its caller, from which the line follows.
        """
        name = func.overloadpacket.__name__
        if name == "lift_fresh":  # PyTorch makes a tensor of a number of Python
            self._number = result
            return
        if _is_host_counter(frame, self._folder_of_torch, args):
            return
        # First whether it launches, then whether it waits.
        full_name = f"{func.namespace}::{name}"
        # A view is another description of the same memory, which no kernel makes. Operations in
        # ``_NO_KERNEL``, such as ``empty``, only make such a description too; those of ``profiler``
        # are marks in a profile.
        starts_kernel = name not in _NO_KERNEL and func.namespace != "profiler"
        if starts_kernel and not func.is_view:
            self._counts.launches.append(CountedCall(full_name, self._line(frame)))
        if self._inside.depth:  # the method that called this operation is counted itself
            return
        if _reads_values(self._torch, func, args, kwargs, self._number):
            self._counts.synchronisations.append(CountedCall(full_name, self._line(frame)))

    def name_of_read(self, func: Any) -> str:
        """The name of a method that reads values, as PyTorch defines it; empty for any other
        function.
        """
        return self._reads.get(id(func), "")

    def reading(self, name: str) -> Callable[..., Any]:
        """What replaces a method of tensors during the block, one that reads values (``name``): it
        also counts the call.
        """
        call = getattr(self._torch.Tensor, name)

        @functools.wraps(call)
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            # ``_READS_OF_ONE``: ``item`` and others that read one value. They do so by an
            # operation, which ``count`` sees in the thread of the block: counted here as well, they
            # would count twice.
            by_operation = name in _READS_OF_ONE and threading.get_ident() == self._thread
            if by_operation:
                return call(*args, **kwargs)
            return self.read(name, call, args, kwargs, sys._getframe(1))

        return stand_in

    def read(
        self, name: str, call: Callable[..., Any], args: Any, kwargs: Mapping[str, Any], frame: Any
    ) -> Any:
        """Run a method that reads values (``call``), and count it as a synchronisation unless
        another such method has called it: the two are one read. ``frame``: of its caller.
        """
        # DLPack hands a tensor to another library, which may use it on the GPU.
        stays_on_device = name == "__dlpack__" and not _to_the_host(kwargs)
        counts = not self._inside.depth and not stays_on_device
        with self._inside:
            result = call(*args, **kwargs)
        # Noted only if the call succeeded: NumPy calls __array__ with an argument that PyTorch
        # refuses, and then again without it.
        if counts:
            self._counts.synchronisations.append(CountedCall(f"Tensor.{name}", self._line(frame)))
        return result

    def _line(self, frame: Any) -> str:
        """The line of the program that leads to a frame, else that of a library."""
        site = call_site(frame, self._folder, self._libraries)
        return site.line or site.inside


class _Inside(threading.local):
    """A context that counts how deep this thread is inside of methods that read values: 0 outside,
    more than 1 where one calls another.
    """

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


def _to_the_host(kwargs: Mapping[str, Any]) -> bool:
    """Whether ``__dlpack__`` is asked for memory of the host, as NumPy does; other libraries name
    no device.
    """
    device = kwargs.get("dl_device", ("another", 0))
    return device is None or device[0] == _DLPACK_CPU


def _is_host_counter(frame: Any, folder: str, args: Any) -> bool:
    """Whether an operation works on the counter of steps that an optimiser of PyTorch keeps in a
    tensor on the host. Such an operation launches nothing on a GPU, so it is not counted.

    A function of the optimiser has called it then, with the counter among its variables.
    ``frame``: of the operation's caller. ``folder``: of PyTorch. ``args``: of the operation.
    """
    first = args[0] if args else None
    # An operation on many tensors (``foreach``) gets them as a list.
    tensor = first[0] if isinstance(first, list | tuple) and first else first
    # ``_HOST_COUNTERS``: the files of those optimisers there that count on the host, as
    # ``adam.py``.
    optimisers = os.path.join(folder, "optim", "")
    # Look through the callers, up to the first one outside of PyTorch and of this file.
    while frame is not None and frame.f_code.co_filename.startswith((folder, __file__)):
        file = frame.f_code.co_filename
        if file.startswith(optimisers) and os.path.basename(file) in _HOST_COUNTERS:
            # ``names``: the variables of that function.
            names = frame.f_locals
            if _is_a_counter(tensor, names):
                # With ``capturable=True`` the optimiser keeps the counter on the GPU.
                return not names.get("capturable", False)
        frame = frame.f_back
    return False


def _is_a_counter(tensor: Any, names: Mapping[str, Any]) -> bool:
    """Whether a tensor is a counter of steps: it is in one of the lists of counters among the
    variables of an optimiser's function (``names``).
    """
    # ``_COUNTERS``: what PyTorch calls these lists. A tensor is found by identity: two counters
    # have equal values.
    for name in _COUNTERS:
        for counter in names.get(name) or ():
            if tensor is counter:
                return True
    return False


def _reads_values(torch: Any, func: Any, args: Any, kwargs: Any, number: Any) -> bool:
    """Whether an operation would read values from a CUDA device and so wait for it, if its tensors
    were there. What an operation does is known by its name, its arguments or PyTorch's own tags.

    ``number``: the tensor that PyTorch made last of a number of Python, which lies on the host.
    """
    name = func.overloadpacket.__name__
    # First operations with indices, as ``x[index]``, then those that wait though no tag of PyTorch
    # says so (``_WAITING``).
    if name in _INDEXING:
        return _indexing_reads_values(torch, args, number)
    if name in _WAITING:
        return True
    # Some operations read only with certain arguments. ``histc`` without a range finds it on the
    # host; ``segment_reduce`` checks given lengths there, unless it is told not to.
    if name == "histc":
        # Its third and fourth argument are the ends of the range.
        return _range_is_missing(*args[2:4], **kwargs)
    if name == "segment_reduce":
        return kwargs.get("lengths") is not None and not kwargs.get("unsafe", False)
    # The variant that writes into a given tensor (``_out``) reads as the one without.
    overload = func._overloadname.removesuffix("_out")
    # ``positions``: of the arguments that this operation reads on the host.
    positions = _READ_ON_THE_HOST.get(f"{name}.{overload}")
    if positions:
        given = [args[position] for position in positions if position < len(args)]
        # A number of Python is a tensor on the host already.
        return any(value is not number for value in given)
    reads = torch.Tag.data_dependent_output in func.tags
    # The shape of the result depends on values (``nonzero``), so they are read to allocate it,
    # unless the caller gives the size.
    finds_shape = torch.Tag.dynamic_output_shape in func.tags
    return (reads or finds_shape) and kwargs.get("output_size") is None


def _indexing_reads_values(torch: Any, args: Any, number: Any) -> bool:
    """Whether an operation with indices, as ``x[index]``, reads from the device. It does if an
    index is a mask: how many places a mask has is read on the host.

    ``args``: of the operation: the tensor, its indices, and the value for a write. ``number``: the
    tensor that PyTorch made last of a number of Python.
    """
    # None stands for a whole axis, as the ``:`` in ``x[:, index]``.
    indices = [index for index in args[1] if index is not None]
    # PyTorch takes bytes (``uint8``) for a mask too.
    are_masks = [index.dtype in (torch.bool, torch.uint8) for index in indices]
    writes_number = bool(args[2:]) and args[2] is number
    if writes_number:
        # CUDA copies a number to the device, which waits, unless it fills one mask with it
        # (``x[mask] = 0``), which waits for nothing.
        return are_masks != [True]
    return any(are_masks)


def _range_is_missing(min: Any = 0, max: Any = 0, **_: Any) -> bool:
    """Whether ``histc`` finds the range of its values itself, and reads it on the host. The names
    are PyTorch's.
    """
    return bool(min == max)


@contextlib.contextmanager
def _count_runtime_calls(torch: Any, folder: str, counts: BlockCounts) -> Iterator[None]:
    """A context that counts the calls of CUDA's runtime in its block, in all threads, from a trace
    of PyTorch's profiler. It is used where the program uses a GPU.

    ``torch``: the module. ``folder``: lines are relative to it. ``counts`` gets what is counted.
    """
    from torch.profiler import ProfilerActivity, profile

    counts.means = because("runtime-calls-that-launch")
    counts.means_wait = because("runtime-calls-that-wait")
    with scratch.subfolder() as place:
        file = Path(place) / "trace.json"
        # Work that was issued before the block ends before the profile begins.
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            # It writes the line of the program beside each operation and wait into the profile.
            with marked_sites(torch, folder):
                yield
            # The profiler must see the work end. This wait is not the program's: it is marked, so
            # that ``add_calls`` counts only what is before it.
            with torch.profiler.record_function(f"{SITE_MARK}{END_OF_BLOCK}|"):
                torch.cuda.synchronize()
        profiler.export_chrome_trace(str(file))
        try:
            trace = read_chrome_trace(read_whole(file, MOST_TRACE_BYTES), "the profile")
        except BadFile as error:
            raise Unavailable(error.why) from None
    add_calls(counts, trace)


def add_calls(counts: BlockCounts, trace: Trace) -> None:
    """Add the launches and synchronisations in the trace of a block to ``counts``, up to the marked
    wait that ends the block. Raises ``Unavailable`` if that wait is missing: then the profiler saw
    no call of the runtime.
    """
    calls: list[HostCall] = []
    waits: list[HostCall] = []
    for step in trace.steps:
        # ``calls``: all calls of the runtime; ``synchronisations``: those of them that wait.
        calls += step.calls
        waits += step.synchronisations
    # The first call with this mark as its line is the wait that ends the block.
    end = next((call.start for call in calls if call.site.line == END_OF_BLOCK), None)
    if end is None:
        raise Unavailable(because("no-runtime-call-seen"))
    launches = [call for call in calls if call.kind == "launch"]
    counts.launches += [_counted(call) for call in launches if call.start < end]
    counts.synchronisations += [_counted(call) for call in waits if call.start < end]


def _counted(call: HostCall) -> CountedCall:
    """A call of the runtime with its operation and its line."""
    name = f"{call.operation.name} ({call.name})" if call.operation is not None else call.name
    return CountedCall(name, call.site.line or call.site.inside)


def check_limits(*limits: int | None) -> None:
    """Raise ``UsageError`` unless at least one limit is given, and all that are given are whole
    numbers from 0 on.
    """
    given = [most for most in limits if most is not None]
    # The type must be ``int`` itself: ``True`` is an ``int`` too.
    if not given or any(type(most) is not int or most < 0 for most in given):
        raise UsageError(
            "dispatch_budget: give launches=N, synchronisations=N, or both; N is a whole number"
            " from 0 on"
        )
