"""One small program for each part of this machine that tests need: a part that is installed may
still not work.

``python tests/trials.py PART`` runs one in a process of its own, because a library that does not
fit the processor may end its process. It prints in one line why the part does not work; nothing if
it does.
"""

import contextlib
import ctypes
import importlib
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

from overhead.errors import first_line_of
from overhead.probes.vulkan.adapters import DRIVER_VARIABLES

MANIFESTS = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")
CHROMIUM_FOLDERS = ("/usr/lib/chromium", "/usr/lib/chromium-browser", "/opt/google/chrome")
TOOLS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
"""Where programs are that pip installs, also if the virtual environment is not active."""
_LONGEST_S = 120.0
"""No trial takes a tenth of it: Ray starts in 5 s, and Warp compiles its first kernel in 2."""


def why_not(part: str) -> str:
    """Why a part does not work here, in one line; empty if it works."""
    try:
        done = subprocess.run(
            [sys.executable, __file__, part],
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{part} gives no answer for {_LONGEST_S:.0f} s"
    if not done.returncode:
        return ""
    said = done.stdout.strip().splitlines()
    return said[-1] if said else f"trying {part} ended with exit code {done.returncode}"


def _opencl() -> None:
    """A program is built and run on a processor."""
    import numpy as np
    import pyopencl as cl

    found = [
        one for platform in cl.get_platforms() for one in platform.get_devices(cl.device_type.CPU)
    ]
    if not found:
        raise RuntimeError("OpenCL finds no processor: apt install pocl-opencl-icd")
    context = cl.Context(found[:1])
    queue = cl.CommandQueue(context)
    kernel = cl.Program(context, "kernel void one(global int *x) { x[0] = 1; }").build().one
    words = np.zeros(1, np.int32)
    there = cl.Buffer(context, cl.mem_flags.READ_WRITE, words.nbytes)
    kernel(queue, (1,), None, there)
    cl.enqueue_copy(queue, words, there)
    assert words[0] == 1


def _numba() -> None:
    import numba

    @numba.njit
    def plus_one(x):  # type: ignore[no-untyped-def]
        return x + 1

    assert plus_one(1) == 2


def _numba_cuda() -> None:
    from numba import cuda

    if getattr(cuda, "implementation", "") != "NVIDIA":
        raise RuntimeError("numba.cuda is the one of numba itself, not that of numba-cuda")


def _torch() -> None:
    import torch

    assert (torch.zeros(4) + 1).sum().item() == 4


def _torch_compile() -> None:
    """torch compiles C++ code that includes Python's headers, which are a package of their own on
    some systems.
    """
    _compile(f'#include "{sysconfig.get_path("include")}/Python.h"\n')


def _jax() -> None:
    import jax

    assert int((jax.numpy.zeros(4) + 1).sum()) == 4


def _mlx() -> None:
    import mlx.core as mx

    assert (mx.zeros(4) + 1).sum().item() == 4


def _warp() -> None:
    import warp as wp

    @wp.kernel
    def one(x: wp.array(dtype=wp.int32)):  # type: ignore[no-untyped-def,valid-type]
        x[0] = 1

    words = wp.zeros(1, dtype=wp.int32, device="cpu")
    wp.launch(one, dim=1, inputs=[words], device="cpu")
    assert words.numpy()[0] == 1


def _ray() -> None:
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    ray.shutdown()


def _wgpu() -> None:
    import wgpu.backends.wgpu_native  # noqa: F401


def _onnxruntime() -> None:
    import onnxruntime

    assert "CPUExecutionProvider" in onnxruntime.get_available_providers()


def _compiler() -> None:
    _compile("#include <vector>\n")


def _compile(head: str) -> None:
    program = next(filter(None, map(shutil.which, ("g++", "clang++"))), None)
    if program is None:
        raise RuntimeError("no program g++ or clang++ on PATH")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "one.cpp")
        source.write_text(f'{head}extern "C" int one() {{ return 1; }}\n')
        library = Path(folder, "one.so")
        command = [program, "-shared", "-fPIC", str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        if sys.platform != "win32":
            assert ctypes.CDLL(str(library)).one() == 1


def _cuda() -> None:
    driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    count = ctypes.c_int()
    for code in (driver.cuInit(0), driver.cuDeviceGetCount(ctypes.byref(count))):
        if code:
            raise RuntimeError(f"the NVIDIA driver does not start: error code {code}")
    if not count.value:
        raise RuntimeError("the NVIDIA driver finds no device")


def _vulkan_loader() -> ctypes.CDLL:
    return ctypes.CDLL(
        {"win32": "vulkan-1.dll", "darwin": "libvulkan.1.dylib"}.get(sys.platform, "libvulkan.so.1")
    )


def _load_vulkan() -> None:
    _vulkan_loader()


class _InstanceInfo(ctypes.Structure):
    """``VkInstanceCreateInfo``, all zero except for its type."""

    _fields_ = (("type", ctypes.c_int), ("rest", ctypes.c_uint64 * 7))


def _driver(pattern: str, *folders: str) -> None:
    """The Vulkan driver with such a manifest gives a device."""
    loader = _vulkan_loader()
    found = [path for folder in folders for path in sorted(Path(folder).glob(pattern))]
    if not found:
        raise RuntimeError(f"no {pattern} in {', '.join(folders)}")
    for name in DRIVER_VARIABLES:
        os.environ[name] = str(found[0])
    instance = ctypes.c_void_p()
    if code := loader.vkCreateInstance(
        ctypes.byref(_InstanceInfo(1)), None, ctypes.byref(instance)
    ):
        raise RuntimeError(f"the Vulkan loader makes no instance with {found[0]}: {code}")
    count = ctypes.c_uint32()
    code = loader.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
    if code or not count.value:
        raise RuntimeError(f"{found[0]} gives no device: {code}")


def _lavapipe() -> None:
    _driver("lvp_icd*.json", *MANIFESTS)


def _swiftshader() -> None:
    _driver("vk_swiftshader_icd.json", *CHROMIUM_FOLDERS)


def _starts(*names: str) -> None:
    """A program says its version. On Ubuntu a browser may be a script that only says which snap to
    install.
    """
    program = next(filter(None, (shutil.which(name, path=TOOLS) for name in names)), None)
    if program is None:
        raise RuntimeError(f"no program {' or '.join(names)} on PATH")
    done = subprocess.run(
        [program, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{program} does not start: {done.stderr or done.stdout}")


def _chromium() -> None:
    _starts("chromium", "chromium-browser", "google-chrome")


def _firefox() -> None:
    _starts("firefox-esr", "firefox")


def _shellcheck() -> None:
    _starts("shellcheck")


def _glslang() -> None:
    _starts("glslangValidator", "glslang")


TRIALS: dict[str, Callable[[], None]] = {
    "chromium": _chromium,
    "cuda": _cuda,
    "cxx": _compiler,
    "firefox": _firefox,
    "glslang": _glslang,
    "jax": _jax,
    "lavapipe": _lavapipe,
    "mlx": _mlx,
    "numba": _numba,
    "numba_cuda": _numba_cuda,
    "onnxruntime": _onnxruntime,
    "pyopencl": _opencl,
    "ray": _ray,
    "shellcheck": _shellcheck,
    "swiftshader": _swiftshader,
    "torch": _torch,
    "torch-compile": _torch_compile,
    "vulkan-loader": _load_vulkan,
    "warp": _warp,
    "wgpu": _wgpu,
}
"""By part what it must be able to do."""
IMPORTED = (
    "check_jsonschema", "cupy", "cutlass", "hatchling", "jinja2", "jsonschema", "material",
    "matplotlib", "onnxscript", "pandas", "pip", "scipy", "seaborn", "triton", "vulkan", "wgpudawn",
)  # fmt: skip
"""Parts of which it is enough that Python imports them."""
LIBRARIES = (
    "cffi", "cuda", "cupy", "cutlass", "jax", "llvmlite", "mlx", "numba", "onnxruntime", "pyopencl",
    "torch", "triton", "vulkan", "warp", "wgpu", "wgpudawn",
)  # fmt: skip
"""The modules of the libraries that stacks use, except NumPy, which the suite needs itself."""


def main(part: str) -> int:
    """Try a part; print why it does not work. What libraries print is kept away."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            TRIALS[part]() if part in TRIALS else importlib.import_module(part)
    except BaseException as error:  # a library may raise anything
        print(first_line_of(error))
        return 1
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stdout.flush()
    os._exit(code)  # exit handlers of libraries may take long
