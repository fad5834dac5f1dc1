"""One interface to wgpu-native and Dawn: modules, C functions, errors, waits.

Both have the API of wgpu-py and webgpu.h. This module uses private attributes of the bindings
(handles, C library, error handler), so ``pyproject.toml`` limits their versions.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from overhead.errors import first_line_of
from overhead.probes.base import Unavailable, Unsupported, Unverified, device_id
from overhead.probes.common.native_loop import (
    Cycle,
    NativeCall,
    NativeUnavailable,
    Slot,
    Store,
    address_of,
)
from overhead.results import because

_FOREVER = 2**64 - 1


class _Binding(NamedTuple):
    """The Python package of a library, and the module of its backend."""

    package: str
    backend: str


_BINDINGS = {
    "wgpu-native": _Binding("wgpu", "wgpu.backends.wgpu_native"),
    "dawn": _Binding("wgpudawn", "wgpudawn.backends.dawn"),
}


class Library:
    """A loaded WebGPU library, wgpu-native or Dawn (``stack``), with its binding, the Python
    package over it. ``webgpu``: the package; ``ffi`` and ``lib``: cffi and the C functions, which
    are called without the package's objects; ``versions``: by package and library.
    """

    def __init__(self, stack: str) -> None:
        """Import the binding, and collect all errors that the library reports from now on."""
        # Without this variable, the EGL of Mesa prints an error for every adapter.
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
        binding = _BINDINGS[stack]
        self.stack = stack
        self.webgpu = importlib.import_module(binding.package)
        self.extras = importlib.import_module(f"{binding.backend}.extras")
        c_module = importlib.import_module(f"{binding.backend}._ffi")
        self.ffi = c_module.ffi
        self.lib = c_module.lib
        # It has the instance, the root object of the library, on which a wait of Dawn waits.
        self._helpers = importlib.import_module(f"{binding.backend}._helpers")

        handler = importlib.import_module(f"{binding.backend}._api").error_handler
        self._errors: list[str] = []
        # The default handler logs only the first ten errors of each kind.
        handler.log_error = self._errors.append
        # The binding of Dawn stores errors that occur outside a Python call.
        self._pending: list[tuple[str, str]] = getattr(handler, "pending", [])
        self.versions = {
            binding.package: str(self.webgpu.__version__),
            self.stack: ".".join(map(str, c_module.lib_version_info)),
        }

    @property
    def is_dawn(self) -> bool:
        """True for Dawn, False for wgpu-native."""
        return self.stack == "dawn"

    def adapters(self) -> list[Any]:
        """All adapters of this machine. The binding of Dawn itself lists only one of several of the
        same model.
        """
        try:
            return list(self.webgpu.gpu._enumerate_all_adapters())
        except (AttributeError, TypeError):  # wgpu-native, or Dawn built without its list
            return list(self.webgpu.gpu.enumerate_adapters_sync())

    def device_of(self, adapter: Any) -> str:
        """The id of the adapter's device, as of ``base.device_id``; empty where the library does
        not tell it.
        """
        try:
            properties = self.extras.get_adapter_properties(adapter)
            uuid = properties["vulkan_uuids"]["device_uuid"]
        # In this order: wgpu-native, another API than Vulkan, or a build without these properties.
        except (AttributeError, KeyError, RuntimeError):
            return ""
        return device_id(uuid)

    def forget_errors(self) -> list[str]:
        """Return and clear the messages of the errors that the library reported since the previous
        call, so that those of another chain are not blamed on this one.
        """
        messages = [*self._errors]
        # A pair is the kind of an error and its message.
        messages += [message for _, message in self._pending]
        self._errors.clear()
        self._pending.clear()
        return messages

    def raise_errors(self) -> None:
        """Raise ``Unverified`` if the library reported an error since the last call.

        A rejected submission raises no Python error, so only this check finds it. The error tells
        their number and the first of them.
        """
        messages = self.forget_errors()
        if not messages:
            return
        first = " ".join(messages[0].split())[:500]
        raise Unverified(
            because("errors-reported", errors=len(messages), stack=self.stack, text=first)
        )

    def symbol(self, name: str) -> tuple[Callable[..., Any], int]:
        """The C function of the library with this name: as a Python callable, and its address, for
        compiled code. Raises ``NativeUnavailable`` if the library has none.
        """
        try:
            function = getattr(self.lib, name)
            pointer = self.ffi.addressof(self.lib, name)
        except AttributeError:
            raise NativeUnavailable(
                because("stack-exports-no-symbol", stack=self.stack, symbol=name)
            ) from None
        return function, self.address(pointer)

    def address(self, pointer: Any) -> int:
        """A handle or pointer as an integer."""
        return int(self.ffi.cast("uintptr_t", pointer))

    def call(self, name: str, *args: Any, stage: str, result: Slot | None = None) -> NativeCall:
        """A call of a C function, run later by a loop. Arguments: numbers, slots, cffi objects, or
        a ``Cycle``.
        """
        function, address = self.symbol(name)
        words = tuple(self._word(argument) for argument in args)
        return NativeCall(name, function, address, words, result=result, stage=stage, ffi_args=args)

    def _word(self, argument: Any) -> Any:
        """The argument as the compiled loop passes it: a number, a slot, or a cycle of them."""
        if isinstance(argument, Cycle):
            return Cycle(tuple(map(self._word, argument.values)))
        if isinstance(argument, int | Slot):
            return argument
        return self.address(argument)

    def waiter(self, device: Any, queue: Any) -> Callable[[], None]:
        """A function that waits for all submitted work in the cheapest way: a blocking poll of
        wgpu-native, or for Dawn a wait for a future, the end of the work so far. Its arguments are
        prepared here, because waits are timed.
        """
        if not self.is_dawn:
            poll = self.lib.wgpuDevicePoll
            # On Metal a blocking poll would sleep, so the device is asked again and again.
            if _sleeps_while_waiting(device):
                return functools.partial(_poll_until_empty, poll, device._internal, self.ffi.NULL)
            # 1: the call returns when all submitted work is done.
            return functools.partial(poll, device._internal, 1, self.ffi.NULL)
        # Each wait of Dawn first gets a new future, and puts it into the memory that the wait
        # reads.
        # ``_futures``: the struct with the future that ``wait_any`` reads. 1: it is one future.
        future_of_end = self.lib.wgpuQueueOnSubmittedWorkDone
        wait_any = self.lib.wgpuInstanceWaitAny
        instance = self._helpers.get_wgpu_instance()
        handle = queue._internal
        info = self._done_info
        futures = self._futures

        def wait() -> None:
            futures.future = future_of_end(handle, info)
            wait_any(instance, 1, futures, _FOREVER)

        return wait

    def wait_name(self, device: Any) -> str:
        """The name of the wait of ``waiter``, for the record."""
        if self.is_dawn:
            return "wait-any"
        return "poll without blocking" if _sleeps_while_waiting(device) else "poll"

    def wait_calls(self, device: Any, queue: Any) -> tuple[NativeCall | Store, ...]:
        """The wait of ``waiter``, for all submitted work, as C calls that a loop makes after each
        unit. Raises ``Unsupported`` for wgpu-native on Metal, whose wait is a loop of polls.

        For Dawn, raises it unless the processor is an x86-64: its wait takes a struct by value.
        """
        if not self.is_dawn:
            if _sleeps_while_waiting(device):
                raise Unsupported(because("metal-wait-in-steps"))
            # 1: the call returns when all submitted work is done.
            return (self.call("wgpuDevicePoll", device._internal, 1, self.ffi.NULL, stage="wait"),)
        if platform.machine().lower() not in ("x86_64", "amd64"):
            raise Unsupported(because("struct-by-value-unknown"))

        # Dawn gives a future for the end of the work. It is put into the memory of the wait.
        name = "wgpuQueueOnSubmittedWorkDone"
        handle = queue._internal
        info = self._done_info
        future = Slot(7)  # a variable of the loop, with a number that no other call uses
        function, address = self.symbol(name)
        done = NativeCall(
            name,
            function,
            address,
            self._words_with_struct(handle, info),
            result=future,
            stage="wait",
            ffi_args=(handle, info),
        )
        futures = self._futures
        put = functools.partial(setattr, futures, "future")
        # ``put`` writes it in the Python loop, the address serves the compiled one.
        store = Store("future", put, self.address(futures), future, "wait")
        instance = self._helpers.get_wgpu_instance()
        wait = self.call("wgpuInstanceWaitAny", instance, 1, futures, _FOREVER, stage="wait")
        return (done, store, wait)

    def _words_with_struct(self, handle: Any, info: Any) -> tuple[int, ...]:
        """The arguments of a C function that takes a handle and a struct of 40 bytes by value
        (``info``), as the words of 64 bits that compilers for x86-64 make of them. A compiled loop
        can pass only words.
        """
        pointer = self.ffi.addressof(info)
        if sys.platform == "win32":
            # Windows passes a struct of more than eight bytes as a pointer to it.
            return (self.address(handle), self.address(pointer))
        # System V passes the first six words in registers, and the struct as five words on the
        # stack. So zeros fill the five registers that the handle leaves.
        fields = self.ffi.unpack(self.ffi.cast("uint64_t *", pointer), 5)
        return (self.address(handle), 0, 0, 0, 0, 0, *[int(word) for word in fields])

    @functools.cached_property
    def _done_info(self) -> Any:
        """The argument with which ``wgpuQueueOnSubmittedWorkDone`` returns a future to wait for:
        the mode ``WaitAnyOnly``, and a callback that does nothing, which Dawn calls in the wait.
        """
        pointer = self.ffi.new("WGPUQueueWorkDoneCallbackInfo *")
        pointer.mode = self.lib.WGPUCallbackMode_WaitAnyOnly
        # ``labs``: the absolute value of a long.
        # Dawn calls the callback even if it is NULL. Any C function without side effects works,
        # because on every ABI in native_loop.ABIS the caller removes the arguments.
        c_library = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
        pointer.callback = self.ffi.cast("WGPUQueueWorkDoneCallback", address_of(c_library, "labs"))
        self._done_pointer = pointer  # kept alive: what is returned refers to its memory
        return pointer[0]

    @functools.cached_property
    def _futures(self) -> Any:
        return self.ffi.new("WGPUFutureWaitInfo *")


@functools.cache
def library(stack: str) -> Library:
    """The WebGPU library of the stack with this name (``wgpu-native`` or ``dawn``), loaded at the
    first call. Raises ``Unavailable`` if it is missing or cannot be loaded.
    """
    try:
        return Library(stack)
    except ModuleNotFoundError as error:
        raise Unavailable(
            because("package-not-installed", package=error.name),
            because("install-extras", extras="wgpu"),
        ) from None
    # RuntimeError, OSError, AttributeError: the binding does not match its library.
    except Exception as error:
        reason = because(
            "package-does-not-load", package=_BINDINGS[stack].package, text=first_line_of(error)
        )
        raise Unavailable(reason, because("install-extras", extras="wgpu")) from error


def wait_call(stack: str) -> str:
    """The call by which ``Library.waiter`` waits, for a reader."""
    return "wgpuInstanceWaitAny" if stack == "dawn" else "wgpuDevicePoll(device, wait=1)"


def _sleeps_while_waiting(device: Any) -> bool:
    """True if a blocking poll of wgpu-native sleeps a millisecond between two looks at the device.

    So it is on Metal up to wgpu 29 (gfx-rs/wgpu issue 8119), where it may also miss the end of long
    work (issue 9531).
    """
    return bool(device.adapter_info["backend_type"] == "Metal")


def _poll_until_empty(poll: Callable[..., int], device: Any, null: Any) -> None:
    # wgpu-native 29 returns a Rust bool where its header says uint32_t: only the low byte has a
    # value.
    while not poll(device, 0, null) & 0xFF:
        pass


@contextlib.contextmanager
def captured_stderr() -> Iterator[list[str]]:
    """A context that collects the lines that C code, such as a driver, prints to standard error.
    The list is filled at its end. C code writes to the file descriptor 2, not to ``sys.stderr``: so
    the descriptor itself points to a file meanwhile.
    """
    lines: list[str] = []
    sys.stderr.flush()  # what Python printed before belongs to the real one
    with tempfile.TemporaryFile() as file:
        real_stderr = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(real_stderr, 2)
            os.close(real_stderr)
            file.seek(0)
            lines += file.read().decode(errors="replace").splitlines()
