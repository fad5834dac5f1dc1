"""Small modules in place of cuda.core, numba.cuda, CuTe DSL and torch. Their launches go to the
fake CUDA driver.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from overhead.probes.cuda import api, cuda_core, cute_dsl
from overhead.probes.cuda.launch import LAUNCH_DIMENSIONS
from overhead.probes.cuda.session import Arguments
from tests.fakes import cuda_driver

Launch = Callable[..., None]
DEFAULT_STREAM = SimpleNamespace(sync=lambda: wait(), synchronize=lambda: wait())
DEVICE = SimpleNamespace(set_current=lambda: None, default_stream=DEFAULT_STREAM)


def wait() -> None:
    api.driver().call("cuStreamSynchronize", 0)


def launch_on(words: Any) -> None:
    """Launch the step on an array, or on the words at an address."""
    address = words if isinstance(words, int) else words.__cuda_array_interface__["data"][0]
    driver, arguments = api.driver(), Arguments(address)
    module = driver.call_for_handle("cuModuleLoadData", b"fake")
    step = driver.call_for_handle("cuModuleGetFunction", module, b"step1")
    driver.call("cuLaunchKernel", step, *LAUNCH_DIMENSIONS, 0, arguments.address, None)


def core_launch(
    stream: Any, config: dict[str, int], kernel: tuple[str, str], *arguments: int
) -> None:
    """``cuda.core.launch``. A kernel is its text and its name."""
    text, name = kernel
    assert f"void {name}(" in text
    assert (name, config) == (
        f"step{len(arguments)}" if arguments else "fixed",
        {"grid": 4, "block": 64},
    )
    launch_on(arguments[0] if arguments else int(re.findall("WORDS (0x.*)", text)[0], 16))


class NumbaKernel:
    """What ``numba.cuda.jit(signature)`` makes of a function."""

    def __init__(self, step: Callable[..., None]) -> None:
        self.step = step

    def __getitem__(self, place: tuple[int, int]) -> Launch:
        def launch(*arrays: Any) -> None:
            assert (place, len(arrays)) == ((4, 64), len(inspect.signature(self.step).parameters))
            launch_on(arrays[0] if arrays else self.step.__globals__["x"])

        return launch


def cute_compile(count: int, *given: Any, options: str = "") -> Launch:
    """In place of ``cute.compile``: ``count`` is the number of tensors that the compiled function
    takes.

    Without tensors, or without TVM-FFI, the function also takes the stream, as in CuTe DSL.
    """

    def call(*arguments: Any) -> None:
        assert len(arguments) == count + (not count or not options)
        launch_on(arguments[0] if count else given[0])

    return call


def install(patch: pytest.MonkeyPatch) -> None:
    """Make the probes use the fake driver and these modules."""
    cuda_driver.install(patch)
    code = SimpleNamespace(
        from_cubin=lambda code: SimpleNamespace(get_kernel=lambda name: (code.decode(), name))
    )
    core = {
        "Device": lambda _: DEVICE,
        "ObjectCode": code,
        "LaunchConfig": dict,
        "launch": core_launch,
    }
    numba = {
        "select_device": bool,
        "default_stream": lambda: DEFAULT_STREAM,
        "as_cuda_array": lambda array: array,
    }
    runtime = SimpleNamespace(
        from_dlpack=lambda x, enable_tvm_ffi=False: SimpleNamespace(mark_layout_dynamic=lambda: x),
        make_fake_stream=lambda use_tvm_ffi_env_stream: None,
        make_fake_compact_tensor=lambda kind, shape: None,
    )
    cute = SimpleNamespace(compile=cute_compile, runtime=runtime, sym_int=lambda: None)
    modules: dict[str, dict[str, Any]] = {
        "cuda.core": {"__version__": "1", **core},
        "numba.cuda": {"implementation": "NVIDIA", "jit": lambda signature: NumbaKernel, **numba},
        "numba_cuda": {"__version__": "1"},
        "cutlass": {"__version__": "1", "Int32": int, "cute": cute},
        "tvm_ffi": {},
        "overhead.probes.kernels.step_cute": {
            "LAUNCHES": {count: count for count in (0, 1, 8, 16)}
        },
    }
    for name, content in modules.items():
        patch.setitem(sys.modules, name, SimpleNamespace(**content))
    on_torch = {"as_tensor": lambda words, device: words, "cuda": SimpleNamespace(set_device=bool)}
    patch.setattr(cuda_core, "machine_code_of", lambda name, text, architecture: text.encode())
    patch.setattr(cute_dsl, "bindings", cuda_driver.bindings)
    patch.setattr(cute_dsl, "cuda_torch", lambda: SimpleNamespace(device=str, **on_torch))
    patch.setattr(cute_dsl, "wait_action", lambda place, name: wait)
