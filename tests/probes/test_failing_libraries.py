"""Each stack's library fails at import, at the search for devices, at compile and at launch: the
stack is unavailable.

A plugin's mistakes, and failures of what has worked before, stay failures.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from overhead import probes
from overhead.checking import contract
from overhead.checking.findings import Findings
from overhead.cli import main
from overhead.errors import Unavailable
from overhead.measure.sampling.events import Settings
from overhead.probes.base import Chain, Probe, Space
from overhead.probes.cuda import api, cuda_core, session
from overhead.probes.vulkan import adapters, gpu, vulkan
from overhead.probes.webgpu import webgpu
from overhead.results import Case, FailedEntry, Target, codes_of
from overhead.runner.worker import Worker
from overhead.runner.workers import Assignment, FoundTargets, Job
from tests.fakes import cuda_driver, cuda_libraries, cupy, warp
from tests.fakes.of_step import of_step
from tests.fakes.workers import Parent

LOG = """the program does not build

Build on <device>:

error: unknown target CPU 'generic'
Device failed to build the program
(source saved as /tmp/tmpx7k2.cl)"""
SAID = "the program does not build: error: unknown target CPU 'generic'"
Patch = pytest.MonkeyPatch
Break = Callable[[Patch], object]


def broken(*arguments: Any, **named: Any) -> Any:
    """What a library's function does on a processor that is newer than its compiler."""
    raise RuntimeError(LOG)


class _Finder(importlib.abc.MetaPathFinder):
    """Raises this error for an import of the package ``name``, or of anything in it."""

    def __init__(self, name: str, error: Exception) -> None:
        self.name, self.error = name, error

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if f"{name}.".startswith(f"{self.name}."):
            raise self.error


def without(name: str, error: Exception) -> Break:
    """Let the import of a package fail."""

    def apply(patch: Patch) -> None:
        top, _, attribute = name.partition(".")
        imported = [module for module in sys.modules if f"{module}.".startswith(f"{name}.")]
        for module in imported:
            patch.delitem(sys.modules, module)
        if attribute and top in sys.modules:
            patch.delattr(sys.modules[top], attribute, raising=False)
        patch.setattr(sys, "meta_path", [_Finder(name, error), *sys.meta_path])

    return apply


def breaking(*paths: str) -> Break:
    """Let the functions at these places, such as ``torch.cuda.is_available``, fail."""

    def apply(patch: Patch) -> None:
        for path in paths:
            patch.setattr(path, broken)

    return apply


def nothing(patch: Patch) -> None:
    """The stack needs no preparation."""


def fake_cupy(patch: Patch) -> None:
    cuda_driver.install(patch)
    patch.setitem(sys.modules, "cupy", cupy.module())


def anew(patch: Patch, module: ModuleType, name: str) -> None:
    """Let a function that is called once in a process be called again, in this test."""
    patch.setattr(module, name, functools.cache(getattr(module, name).__wrapped__))


def anew_webgpu(patch: Patch) -> None:
    anew(patch, webgpu, "library")


@pytest.fixture(autouse=True)
def anew_vulkan(monkeypatch: Patch) -> None:
    for name in ("load", "adapters", "instance"):
        anew(monkeypatch, adapters, name)
    anew(monkeypatch, vulkan, "gpu")


@dataclass(frozen=True)
class Failure:
    """A stack whose library is made to fail. ``parts``: what the test needs to get as far as the
    failure.
    """

    stack: str
    fail: Break
    parts: tuple[str, ...] = ()
    prepare: Break = nothing
    api: str = ""
    said: str = SAID


def params(failures: Sequence[Failure]) -> list[Any]:
    return [
        pytest.param(one, id=f"{one.stack} {number}", marks=pytest.mark.needs(*one.parts))
        for number, one in enumerate(failures)
    ]


IMPORT_ERRORS = (
    ModuleNotFoundError("No module named 'it'", name="it"),
    ImportError("libit.so.1: cannot open shared object file: No such file or directory"),
    AttributeError("module 'numpy' has no attribute 'row_stack'"),
    OSError("libit.so.1: cannot open shared object file: No such file or directory"),
    RuntimeError(LOG),
)


@dataclass(frozen=True)
class Library:
    """The module of a stack's library, what must be there before the module is imported, and the
    parts for that.
    """

    module: str
    prepare: Break = nothing
    parts: tuple[str, ...] = ()


LIBRARIES = {
    "cuda-core": Library("cuda", cuda_libraries.install, ("cxx",)),
    "cupy": Library("cupy", cuda_driver.install, ("cxx",)),
    "cute-dsl": Library("cutlass", cuda_libraries.install, ("cxx",)),
    "dawn": Library("wgpudawn", anew_webgpu),
    "jax": Library("jax"),
    "mlx": Library("mlx"),
    "numba-cuda": Library("numba.cuda", cuda_libraries.install, ("cxx",)),
    "onnxruntime": Library("onnxruntime"),
    "pyopencl": Library("pyopencl"),
    "torch": Library("torch"),
    "torch-compile": Library("torch"),
    "triton": Library("torch", cuda_driver.install, ("cxx",)),
    "vulkan": Library("vulkan"),
    "warp": Library("warp"),
    "wgpu-native": Library("wgpu", anew_webgpu),
}
"""By stack."""
_SAID: dict[tuple[str, type[Exception]], str] = {
    ("dawn", ModuleNotFoundError): "package-not-installed",
    ("wgpu-native", ModuleNotFoundError): "package-not-installed",
    ("vulkan", OSError): "no-vulkan-loader",
}
"""What the reason of a stack says of an error, where it is not the beginning of its message."""


def import_failures() -> list[Failure]:
    """Each stack with each error of an import."""
    failures = []
    for stack, library in LIBRARIES.items():
        for error in IMPORT_ERRORS:
            first_line = str(error).splitlines()[0]
            said = _SAID.get((stack, type(error)), first_line[:40])
            fail = without(library.module, error)
            failures.append(Failure(stack, fail, library.parts, library.prepare, said=said))
    return failures


IMPORTS = import_failures()


def no_driver(patch: Patch) -> None:
    def load(name: str, *more: Any, **named: Any) -> Any:
        raise OSError(f"{name}: cannot open shared object file: No such file or directory")

    patch.setattr(api, "driver", functools.cache(api.driver.__wrapped__))
    patch.setattr("ctypes.CDLL", load)


def failing_driver(function: str) -> Break:
    """The fake CUDA driver, in which one function fails, as with an NVIDIA driver of another
    version.
    """

    def apply(patch: Patch) -> None:
        whole = api.CudaDriver.call

        def call(self: Any, name: str, *arguments: Any) -> None:
            if name == function:
                raise api.CudaError(name, 209, "CUDA_ERROR_NO_BINARY_FOR_GPU")
            whole(self, name, *arguments)

        patch.setattr(api.CudaDriver, "call", call)

    return apply


def failing_vulkan(patch: Patch) -> None:
    """A Vulkan driver that lists no devices."""
    patch.setattr(
        adapters, "_listed", lambda *arguments: adapters.check(-3, "vkEnumeratePhysicalDevices")
    )


def failing_pipeline(patch: Patch) -> None:
    """A Vulkan driver that makes no pipeline."""
    whole = gpu.VulkanGpu.device_call

    def device_call(self: Any, name: str, *arguments: Any) -> None:
        if name == "vkCreateComputePipelines":
            adapters.check(-3, name)
        whole(self, name, *arguments)

    patch.setattr(gpu.VulkanGpu, "device_call", device_call)


def failing_count(stack: str) -> Failure:
    """A library on the fake CUDA driver, which cannot count its devices."""
    fail = failing_driver("cuDeviceGetCount")
    return Failure(stack, fail, ("cxx",), cuda_libraries.install, said="returned 209")


FAILED = "VK_ERROR_INITIALIZATION_FAILED"
DEVICES = [
    Failure("cuda-driver", no_driver, said="no-nvidia-driver"),
    Failure("cuda-graph", no_driver, said="no-nvidia-driver"),
    Failure(
        "cuda-driver",
        failing_driver("cuInit"),
        ("cxx",),
        cuda_driver.install,
        said="cuInit returned 209",
    ),
    Failure(
        "cuda-driver",
        failing_driver("cuDeviceGetName"),
        ("cxx",),
        cuda_driver.install,
        said="returned 209",
    ),
    Failure(
        "cuda-graph",
        failing_driver("cuDeviceGetCount"),
        ("cxx",),
        cuda_driver.install,
        said="returned 209",
    ),
    Failure("cupy", failing_driver("cuDeviceGetCount"), ("cxx",), fake_cupy, said="returned 209"),
    *map(failing_count, ("cuda-core", "cute-dsl", "numba-cuda")),
    Failure("dawn", breaking("overhead.probes.webgpu.library.Library.adapters"), ("wgpudawn",)),
    Failure("jax", breaking("jax.devices"), ("jax",)),
    Failure("mlx", breaking("mlx.core.is_available"), ("mlx",)),
    Failure(
        "onnxruntime", breaking("overhead.decode.onnxruntime_chain.webgpu_device"), ("onnxruntime",)
    ),
    Failure("pyopencl", breaking("pyopencl.get_platforms"), ("pyopencl",)),
    Failure("torch", breaking("torch.cuda.is_available"), ("torch",)),
    Failure("torch-compile", breaking("torch.cuda.is_available"), ("torch",)),
    Failure("vulkan", failing_vulkan, ("vulkan", "lavapipe"), said=FAILED),
    Failure("warp", breaking("warp.get_devices"), ("warp",)),
    Failure("wgpu-native", breaking("overhead.probes.webgpu.library.Library.adapters"), ("wgpu",)),
]


def asked(stack: str) -> FoundTargets:
    """What a worker answers that looks for the devices of the stack."""
    parent = Parent()
    parent.__class__.__call__ = lambda self, answer: self.add(answer)  # type: ignore[method-assign]
    Worker(Job(worker="discover", stack=stack), parent).discover()
    (found,) = parent.answers
    assert isinstance(found, FoundTargets)
    return found


@pytest.mark.parametrize("failure", params([*IMPORTS, *DEVICES]))
def test_a_library_that_does_not_import_or_finds_no_devices_makes_its_stack_unavailable(
    failure: Failure, monkeypatch: Patch
) -> None:
    failure.prepare(monkeypatch)
    failure.fail(monkeypatch)
    found = asked(failure.stack)
    assert not found.targets
    assert not found.failed, found.reason
    assert failure.said in str(found.reason)
    assert found.mend
    assert "\n" not in str(found.reason) + str(found.mend)
    assert len(str(found.reason)) < 400


def failing_nvrtc(patch: Patch) -> None:
    """NVRTC is older than the GPU."""
    for module, name in ((session, "machine_code"), (cuda_core, "machine_code_of")):
        patch.setattr(module, name, broken)


def failing_numba(patch: Patch) -> None:
    """numba-cuda that fits another NumPy, as 0.30 under NumPy 2.5 does."""

    def jit(signature: str | None) -> Any:
        raise AttributeError("module 'numpy' has no attribute 'row_stack'")

    patch.setattr(sys.modules["numba.cuda"], "jit", jit)


def failing_cute(patch: Patch) -> None:
    patch.setattr(sys.modules["cutlass"].cute, "compile", broken)


def failing_core(patch: Patch) -> None:
    patch.setattr(sys.modules["cuda.core"], "launch", broken)


def failing_cupy(patch: Patch) -> None:
    """CuPy compiles a ufunc when it is called first."""
    patch.setattr(sys.modules["cupy"], "add", broken)


def failing_launch(patch: Patch) -> None:
    patch.setattr(cuda_libraries, "launch_on", broken)


def failing_opencl(patch: Patch) -> None:
    """PyOpenCL's real compiler refuses the program."""
    patch.setenv("PYOPENCL_BUILD_OPTIONS", "-mno-such-option")


def swiftshader(patch: Patch) -> None:
    for variable in adapters.DRIVER_VARIABLES:
        patch.setenv(variable, str(adapters.swiftshader_manifest()))


LIBRARY = cuda_libraries.install
FIRST_CASES = [
    # At compile.
    Failure("cuda-driver", failing_nvrtc, ("cxx", "numba"), cuda_driver.install),
    Failure("cuda-graph", failing_nvrtc, ("cxx", "numba"), cuda_driver.install),
    Failure("cuda-core", failing_nvrtc, ("cxx",), LIBRARY),
    Failure("cute-dsl", failing_cute, ("cxx",), LIBRARY),
    Failure("numba-cuda", failing_numba, ("cxx",), LIBRARY, said="has no attribute 'row_stack'"),
    Failure("cupy", failing_cupy, ("cxx",), fake_cupy),
    Failure(
        "dawn",
        breaking("wgpudawn.backends.dawn.GPUDevice.create_compute_pipeline"),
        ("wgpudawn", "swiftshader"),
        swiftshader,
    ),
    Failure("jax", breaking("jax.jit"), ("jax",)),
    Failure("pyopencl", failing_opencl, ("pyopencl",), said="clBuildProgram failed"),
    Failure("torch-compile", breaking("torch.compile"), ("torch", "torch-compile")),
    Failure("vulkan", failing_pipeline, ("vulkan", "lavapipe", "numba"), said="vkCreateComp"),
    Failure(
        "wgpu-native",
        breaking("wgpu.backends.wgpu_native.GPUDevice.create_compute_pipeline"),
        ("wgpu", "lavapipe"),
    ),
    # At the first launch.
    Failure("cuda-core", failing_core, ("cxx",), LIBRARY),
    Failure("cute-dsl", failing_launch, ("cxx",), LIBRARY),
    Failure("numba-cuda", failing_launch, ("cxx",), LIBRARY),
    Failure("pyopencl", breaking("pyopencl.enqueue_nd_range_kernel"), ("pyopencl",)),
    Failure("warp", breaking("warp.launch"), ("warp",)),
    Failure("warp", breaking("warp.launch"), (), warp.install),
    Failure("torch", breaking("torch.Tensor.add_"), ("torch",)),
    Failure("mlx", breaking("mlx.core.eval"), ("mlx",)),
]


@pytest.mark.parametrize("failure", params(FIRST_CASES))
def test_a_library_that_cannot_build_or_launch_its_first_kernel_makes_its_stack_unavailable(
    failure: Failure, monkeypatch: Patch
) -> None:
    failure.prepare(monkeypatch)
    probe = probes.registry()[failure.stack]
    targets = probes.targets_of(probe)
    target, *_ = [one for one in targets if one.software or one.api in ("CPU", "CUDA")]
    case, *_ = of_step(probes.space_of(probe, target).star())
    failure.fail(monkeypatch)
    findings = Findings()
    contract.check_case(findings, probe, target, case, is_first=True)
    assert [finding.message for finding in findings.found if finding.level == "error"] == []
    assert failure.said in str(findings.unavailable)
    assert "with-mend" in codes_of(findings.unavailable)
    assert len(str(findings.unavailable)) < 700


class Own(Probe):
    """A stack of another package. ``does`` is called in ``targets``, ``opens`` in ``open``."""

    name = "own"
    title = "a stack of another package"
    mend = "pip install its-library"

    def __init__(
        self, does: Callable[[], object] = bool, opens: Callable[[], object] = bool
    ) -> None:
        self.does = does
        self.opens = opens

    def targets(self) -> list[Target]:
        self.does()
        return [Target(stack=self.name, api="CPU", adapter="CPU")]

    def space(self, target: Target) -> Space:
        return Space(Case(pattern="per-submit"))

    def open(self, target: Target, case: Case) -> Chain:
        self.opens()
        raise NotImplementedError


def library_in(folder: Path, text: str, patch: Patch) -> Callable[[], object]:
    """A function that imports a library with this text."""
    (folder / "library_of_others.py").write_text(text)
    patch.syspath_prepend(folder)
    patch.delitem(sys.modules, "library_of_others", raising=False)
    return lambda: importlib.import_module("library_of_others")


@pytest.mark.parametrize(
    "text",
    [
        "import no_such_package_here",
        "import numpy; numpy.row_stack_of_another_version",
        "import ctypes; ctypes.CDLL('libnothere.so.1')",
        "def check():\n    raise RuntimeError('built for another processor')\ncheck()",
    ],
    ids=["package", "attribute", "shared library", "own check"],
)
def test_a_plugin_whose_library_does_not_import_is_unavailable(
    text: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    with pytest.raises(Unavailable, match=r"^library-does-not-import") as raised:
        probes.targets_of(Own(library_in(tmp_path, text, monkeypatch)))
    assert raised.value.mend == "pip install its-library"


def raising(error: Exception) -> Callable[[], object]:
    def call() -> None:
        raise error

    return call


MISTAKES = (
    RuntimeError("the library was called in a wrong way"),
    TypeError("one argument too many"),
    ImportError("cannot import name 'wrong' from 'os'"),
    OSError("no such file"),
)


@pytest.mark.parametrize("error", MISTAKES, ids=lambda error: type(error).__name__)
def test_any_other_error_of_a_plugin_stays_a_failure(error: Exception) -> None:
    with pytest.raises(type(error)):
        probes.targets_of(Own(raising(error)))
    probe = Own(opens=raising(error))
    (target,) = probe.targets()
    findings = Findings()
    contract.check_case(findings, probe, target, Case(pattern="per-submit"), is_first=True)
    assert findings.failed
    assert not findings.unavailable


@pytest.mark.parametrize(
    "error", [NameError("x"), TypeError("x"), KeyError("x")], ids=lambda error: type(error).__name__
)
def test_a_mistake_in_the_code_of_the_suite_stays_a_failure(
    error: Exception, monkeypatch: Patch
) -> None:
    """The frame that raises is one of the package."""
    probe = probes.registry()["numpy"]
    code = compile("def targets(self):\n    raise error", "numpy.py", "exec")
    scope = {"__name__": type(probe).__module__, "error": error}
    exec(code, scope)
    monkeypatch.setattr(type(probe), "targets", scope["targets"])
    with pytest.raises(type(error)):
        probes.targets_of(probe)
    assert asked("numpy").failed


def of_worker(process: int, method: str) -> list[FailedEntry]:
    """The failures of a worker that measures NumPy, in which this method of its chains fails."""
    probe = probes.registry()["numpy"]
    (target,) = probes.targets_of(probe)
    case = probes.space_of(probe, target).base
    job = Job(
        worker="numpy",
        process=process,
        assignments=[Assignment(target, case)],
        settings=Settings(0.0),
    )
    parent = Parent()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(probe.open(target, case)), method, broken)
        Worker(job, parent).open_and_measure()
    return [line for line in parent.answers if isinstance(line, FailedEntry)]


@pytest.mark.parametrize("method", ["__init__", "issue"])
def test_a_run_calls_a_stack_unavailable_if_the_first_unit_of_its_first_process_fails(
    method: str,
) -> None:
    (first,) = of_worker(0, method)
    assert first.status == "unavailable"
    assert codes_of(first.reason) == {"with-mend", "about", "library-cannot-do-this"}
    assert SAID in str(first.reason)
    (later,) = of_worker(1, method)
    assert later.status == "failed"
    assert "RuntimeError: the program does not build" in str(later.reason)


@pytest.mark.slow
@pytest.mark.needs("pyopencl")
def test_a_program_that_opencl_does_not_build_is_unavailable_in_a_run_and_a_check(
    tmp_path: Path, monkeypatch: Patch, capfd: pytest.CaptureFixture[str]
) -> None:
    failing_opencl(monkeypatch)
    out = tmp_path / "run.json"
    for words in (
        ["run", "-p", "pyopencl", "--profile", "quick", "--out", str(out)],
        ["check", "-p", "pyopencl"],
    ):
        assert main(words) == 1
        printed = "".join(capfd.readouterr())
        assert "unavailable" in printed
        assert "clBuildProgram failed" in printed
        assert "failed:" not in printed.replace("clBuildProgram failed:", "")
        assert "Traceback" not in printed
