"""Launches and waits through the driver: with cuda-bindings (``bound``), with ctypes, or from a
compiled loop.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from ctypes import addressof, c_uint, c_void_p
from itertools import repeat
from typing import Any, NamedTuple

from overhead.errors import first_line_of
from overhead.probes.base import Unavailable
from overhead.probes.common.loops import Action, Issue, in_sequence
from overhead.probes.common.native_loop import NativeCall, address_of
from overhead.probes.cuda.api import INSTALL_CUDA
from overhead.probes.cuda.session import CUDA_GRID, GROUP_SIZE, Arguments, CudaSession
from overhead.results import because

LAUNCH_DIMENSIONS = (CUDA_GRID, 1, 1, GROUP_SIZE, 1, 1, 0)
"""Grid, block and dynamic shared memory of every launch of the step."""


class Launch(NamedTuple):
    """A kernel function by its handle, its dimensions (as ``LAUNCH_DIMENSIONS``), and the address
    of its arguments.
    """

    function: int
    dimensions: tuple[int, ...]
    arguments: int


def bindings() -> Any:
    """The module of cuda-bindings, NVIDIA's Python package, that has the functions of the CUDA
    driver. Raises ``Unavailable`` if it does not import.
    """
    try:
        from cuda.bindings import driver
    except Exception as error:  # a package that was built for another version may raise anything
        raise Unavailable(
            because("package-does-not-import", package="cuda-bindings", text=first_line_of(error)),
            INSTALL_CUDA,
        ) from error
    return driver


def driver_call(
    session: CudaSession, stage: str, name: str, *arguments: c_uint | c_void_p, checked: bool
) -> NativeCall:
    """A call of the driver function ``name`` with these arguments, to be put into a loop. A Python
    loop calls it through ctypes, and a compiled loop by its address.

    ``stage``: what the call does, for the times by stage. ``checked``: whether the loop collects
    its errors.
    """
    # A new object without argtypes, so that ctypes passes the values (of C types) unchanged. An
    # attribute of the library would be the shared object, which has argtypes.
    function = session.driver.library[name]
    return NativeCall(
        name,
        function,
        address_of(session.driver.library, name),
        # As numbers for the compiled loop; ``ffi_args`` are the C values for ctypes.
        args=tuple(argument.value or 0 for argument in arguments),
        stage=stage,
        ffi_args=arguments,
        checked=checked,
    )


def launch_call(
    session: CudaSession, function: int, arguments: Arguments, *, checked: bool
) -> NativeCall:
    """A call of ``cuLaunchKernel``, to be put into a loop, for the kernel with the handle
    ``function``: 4 groups of 64 threads on the session's stream. ``checked``: whether the loop
    collects its errors.
    """
    no_extra_options = c_void_p(0)
    return driver_call(
        session,
        "launch",
        "cuLaunchKernel",
        c_void_p(function),
        # Grid, block, and no dynamic shared memory.
        *map(c_uint, LAUNCH_DIMENSIONS),
        c_void_p(session.stream),
        c_void_p(arguments.address),
        no_extra_options,
        checked=checked,
    )


def wait_calls(session: CudaSession, name: str, *, checked: bool) -> tuple[NativeCall, ...]:
    """The driver calls, to be put into a loop, of the wait with this name: for the ``stream``, for
    the whole ``context``, or for an event that is recorded first (``event``; ``event-blocking``:
    the thread sleeps and does not spin). ``checked``: whether the loop collects their errors.
    """
    stream = c_void_p(session.stream)
    if name == "context":
        return (driver_call(session, "wait", "cuCtxSynchronize", checked=checked),)
    if name == "stream":
        return (driver_call(session, "wait", "cuStreamSynchronize", stream, checked=checked),)
    # Made once; each wait records it again behind the work so far.
    event = c_void_p(session.event(blocking=name == "event-blocking"))
    return (
        driver_call(session, "record", "cuEventRecord", event, stream, checked=checked),
        driver_call(session, "wait", "cuEventSynchronize", event, checked=checked),
    )


def calls_in_order(calls: tuple[NativeCall, ...]) -> Action:
    """A function that makes these one or two calls in order, from Python through ctypes."""
    bound = [functools.partial(call.function, *call.ffi_args) for call in calls]
    return bound[0] if len(bound) == 1 else in_sequence(*bound)


def bound_launch(session: CudaSession, function: int, arguments: Arguments) -> Issue:
    """A function ``issue(n)`` that launches a kernel n times by ``cuLaunchKernel`` of
    cuda-bindings, NVIDIA's Python package on the driver. ``function``: the handle of the kernel.
    All arguments are prepared here, because the loop is timed.
    """
    # ``bindings``: the module of cuda-bindings.
    driver = bindings()
    launch = driver.cuLaunchKernel
    stream = driver.CUstream(session.stream)
    kernel = driver.CUfunction(function)
    address = arguments.address
    groups = CUDA_GRID
    size = GROUP_SIZE

    def issue(n: int) -> None:
        # Grid, block, no dynamic shared memory, stream, arguments, no further options.
        for _ in repeat(None, n):
            launch(kernel, groups, 1, 1, size, 1, 1, 0, stream, address, 0)

    return issue


def bound_wait(session: CudaSession, name: str) -> Action:
    """A function that waits through cuda-bindings for the device. ``name``: what it waits for, the
    ``stream``, the whole ``context``, or an event that it records first (``event``;
    ``event-blocking``: the thread sleeps and does not spin).
    """
    driver = bindings()
    if name == "context":
        wait_for_context: Action = driver.cuCtxSynchronize
        return wait_for_context
    stream = driver.CUstream(session.stream)
    if name == "stream":
        return functools.partial(driver.cuStreamSynchronize, stream)
    # Made once; each wait records it again behind the work so far.
    event = driver.CUevent(session.event(blocking=name == "event-blocking"))
    record = functools.partial(driver.cuEventRecord, event, stream)
    return in_sequence(record, functools.partial(driver.cuEventSynchronize, event))


def bound_read(session: CudaSession) -> Action:
    """A function that copies the first word to the host through cuda-bindings."""
    driver = bindings()
    host_address = addressof(session.word)
    device_address = driver.CUdeviceptr(session.words)
    return functools.partial(driver.cuMemcpyDtoH, host_address, device_address, 4)


def bound_launches(session: CudaSession, launches: Iterable[Launch]) -> list[Action]:
    """For each launch (of the kernels of a workload), a function that makes it: it calls
    ``cuLaunchKernel`` of cuda-bindings with prepared arguments. ``launch.function``: the handle of
    the kernel; ``dimensions``: its grid, block and shared memory; ``arguments``: their address.
    """
    driver = bindings()
    stream = driver.CUstream(session.stream)
    no_extra_options = 0
    actions: list[Action] = []
    for launch in launches:
        kernel = driver.CUfunction(launch.function)
        given = (*launch.dimensions, stream, launch.arguments, no_extra_options)
        actions.append(functools.partial(driver.cuLaunchKernel, kernel, *given))
    return actions


def graph_launch(session: CudaSession, executable: int) -> Action:
    """A function that calls ``cuGraphLaunch`` of cuda-bindings for an executable graph, on the
    session's stream.
    """
    driver = bindings()
    # cuda-bindings wants handles as objects of its own types.
    graph = driver.CUgraphExec(executable)
    stream = driver.CUstream(session.stream)
    return functools.partial(driver.cuGraphLaunch, graph, stream)


def driver_launches(session: CudaSession, launches: Iterable[Launch]) -> list[Action]:
    """For each launch (handle of a kernel, dimensions, address of the arguments), a function that
    makes it through ctypes, for a capture into a CUDA graph. Unlike those of ``bound_launches``,
    which are timed, they raise ``CudaError`` if they fail.
    """
    call = session.driver.call
    no_extra_options = None
    actions: list[Action] = []
    for launch in launches:
        given = (*launch.dimensions, session.stream, launch.arguments, no_extra_options)
        actions.append(functools.partial(call, "cuLaunchKernel", launch.function, *given))
    return actions
