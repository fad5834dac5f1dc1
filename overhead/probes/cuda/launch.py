"""Launches and waits through the driver: with cuda-bindings (``bound``), with ctypes, or from a
compiled loop.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from ctypes import addressof, c_uint, c_void_p
from itertools import repeat
from typing import Any

from overhead.errors import first_line_of
from overhead.probes.base import Unavailable
from overhead.probes.common.loops import Action, Issue, in_sequence
from overhead.probes.common.native_loop import NativeCall, address_of
from overhead.probes.cuda.api import INSTALL_CUDA
from overhead.probes.cuda.session import CUDA_GRID, GROUP_SIZE, Arguments, CudaSession
from overhead.results import because

Launch = tuple[int, tuple[int, ...], int]
"""A function, its dimensions (see ``LAUNCH_DIMENSIONS``), and the address of its arguments."""
LAUNCH_DIMENSIONS = (CUDA_GRID, 1, 1, GROUP_SIZE, 1, 1, 0)
"""Grid, block and dynamic shared memory of every launch."""


def bindings() -> Any:
    """The driver module of cuda-bindings. Raises ``Unavailable`` if it does not import."""
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
    """The driver function ``name`` with these arguments, for the Python loop and the compiled loop.

    ``stage``: what the call does, for the times by stage. ``checked``: whether the loop collects
    its errors.
    """
    function = session.driver.library[
        name
    ]  # a new object without argtypes, so ctypes passes the values unchanged
    words = tuple(argument.value or 0 for argument in arguments)
    return NativeCall(
        name,
        function,
        address_of(session.driver.library, name),
        words,
        None,
        stage,
        arguments,
        checked,
    )


def launch_call(
    session: CudaSession, function: int, arguments: Arguments, *, checked: bool
) -> NativeCall:
    """A call of ``cuLaunchKernel`` for a kernel with 4 groups of 64 threads."""
    dimensions = map(c_uint, LAUNCH_DIMENSIONS)
    after = map(c_void_p, (session.stream, arguments.address, 0))
    return driver_call(
        session,
        "launch",
        "cuLaunchKernel",
        c_void_p(function),
        *dimensions,
        *after,
        checked=checked,
    )


def wait_calls(session: CudaSession, name: str, *, checked: bool) -> tuple[NativeCall, ...]:
    """The driver calls of the wait with this name: ``stream``, ``context``, ``event`` or
    ``event-blocking``.
    """
    stream = c_void_p(session.stream)
    if name == "context":
        return (driver_call(session, "wait", "cuCtxSynchronize", checked=checked),)
    if name == "stream":
        return (driver_call(session, "wait", "cuStreamSynchronize", stream, checked=checked),)
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
    """A loop that calls ``cuLaunchKernel`` of cuda-bindings. Its arguments are prepared only
    once.
    """
    driver = bindings()
    launch, stream, kernel = (
        driver.cuLaunchKernel,
        driver.CUstream(session.stream),
        driver.CUfunction(function),
    )
    address, groups, size = arguments.address, CUDA_GRID, GROUP_SIZE

    def issue(n: int) -> None:
        for _ in repeat(None, n):
            launch(kernel, groups, 1, 1, size, 1, 1, 0, stream, address, 0)

    return issue


def bound_wait(session: CudaSession, name: str) -> Action:
    """A function that waits through cuda-bindings. ``name``: as in ``wait_calls``."""
    driver = bindings()
    if name == "context":
        everything: Action = driver.cuCtxSynchronize
        return everything
    stream = driver.CUstream(session.stream)
    if name == "stream":
        return functools.partial(driver.cuStreamSynchronize, stream)
    event = driver.CUevent(session.event(blocking=name == "event-blocking"))
    record = functools.partial(driver.cuEventRecord, event, stream)
    return in_sequence(record, functools.partial(driver.cuEventSynchronize, event))


def bound_read(session: CudaSession) -> Action:
    """A function that copies the first word to the host through cuda-bindings."""
    driver, word = bindings(), session.word
    return functools.partial(
        driver.cuMemcpyDtoH, addressof(word), driver.CUdeviceptr(session.words), 4
    )


def bound_launches(session: CudaSession, launches: Iterable[Launch]) -> list[Action]:
    """One function for each launch, which calls ``cuLaunchKernel`` of cuda-bindings with prepared
    arguments.
    """
    driver = bindings()
    stream = driver.CUstream(session.stream)
    return [
        functools.partial(
            driver.cuLaunchKernel, driver.CUfunction(function), *dimensions, stream, arguments, 0
        )
        for function, dimensions, arguments in launches
    ]


def graph_launch(session: CudaSession, executable: int) -> Action:
    """A function that calls ``cuGraphLaunch`` of cuda-bindings for an executable graph, on the
    session's stream.
    """
    driver = bindings()
    return functools.partial(
        driver.cuGraphLaunch, driver.CUgraphExec(executable), driver.CUstream(session.stream)
    )


def driver_launches(session: CudaSession, launches: Iterable[Launch]) -> list[Action]:
    """One function for each launch, which launches through ctypes, for a capture. They raise
    ``CudaError``.
    """
    call, stream = session.driver.call, session.stream
    return [
        functools.partial(call, "cuLaunchKernel", function, *dimensions, stream, arguments, None)
        for function, dimensions, arguments in launches
    ]
