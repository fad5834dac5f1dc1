"""Which libraries a statement uses, and how to wait for each of them."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.metadata
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from overhead.errors import Unavailable, UsageError, unknown_name
from overhead.results import Why, about, because, own_stacks, stacks_in
from overhead.timing.own_code import is_in_packages

Names = Mapping[str, Any]
_SAME_LIBRARY = {"jaxlib": "jax"}
_NOT_NAMED = ("overhead", "cloudpickle", "msgspec")
"""Packages that the suite itself uses to run a statement."""
_LOOKED_AT = 200
"""The most values of the statement that are looked at."""


@dataclass(frozen=True)
class Wait:
    """A way to wait for all work of a statement. ``name``: the value of ``--wait``. ``said``: the
    call that waits, as a text, or a code where the reader must know more.

    ``api``, ``adapter``: of the device. ``make``: a function that waits, from the names of the
    statement and its kept results. ``spins``: it keeps the processor busy. ``keeps``: it needs the
    results of CALL. ``clock``: makes the clock of the device (a ``StreamHolder``); None if there is
    none.
    """

    name: str
    said: Why
    api: str
    adapter: str
    make: Callable[[Names, Iterable[Any]], Callable[[], object]] = lambda names, results: (
        lambda: None
    )
    spins: bool = False
    keeps: bool = False
    clock: Callable[[], Any] | None = None


NOTHING = Wait("none", because("nothing-to-wait-for"), "CPU", "CPU")


def wait_named(name: str, names: Names, results: Iterable[Any]) -> Wait | None:
    """The wait with a name of ``KNOWN_WAITS``, such as ``torch``; None for any other text, which is
    a statement that waits. Raises ``UsageError`` if the wait cannot be used. ``names``,
    ``results``: the variables and results of the statement that is measured.
    """
    if name not in KNOWN_WAITS:
        # A single word would wait for nothing as a statement, so it is a wrong name.
        if name.isidentifier():
            raise unknown_name("wait", name, KNOWN_WAITS)
        return None
    asked = True  # by the user, so that a library which cannot be used is an error
    try:
        return KNOWN_WAITS[name](names, list(results), asked)
    except Unavailable as error:
        raise UsageError(about(f"--wait {name}", error.reason)) from None


def find_waits(names: Names, results: Iterable[Any]) -> list[Wait]:
    """The waits of all libraries that the statement seems to use, the surest first; ``NOTHING``
    alone if there are none. ``names``, ``results``: the variables and results of the statement.
    """
    values = list(results)
    waits: list[Wait] = []
    asked = False  # a library that the statement does not use gives no wait then
    for make in KNOWN_WAITS.values():
        wait = make(names, values, asked)
        if wait is not None:
            waits.append(wait)

    # ``api``: that of the device whose work the wait waits for. So: no wait is for a GPU.
    if all(wait.api == "CPU" for wait in waits) and has_cuda_context():
        # No library shows how the statement uses CUDA, so the wait is for the whole device.
        torch = sys.modules.get("torch")
        name = "torch" if torch is not None and torch.cuda.is_available() else "cuda"
        asked = True  # so that it is there, though no value of the statement shows the library
        of_device = KNOWN_WAITS[name](names, values, asked)
        if of_device is not None:
            waits.insert(0, of_device)

    # Each of these waits for the whole CUDA device, so the first of them waits for the others' work
    # too. A wait that needs the results of the statement (``keeps``) waits for these alone.
    whole_device = [wait for wait in waits if wait.api == "CUDA" and not wait.keeps]
    needless = [*whole_device[1:], NOTHING]
    return [wait for wait in waits if wait not in needless] or [NOTHING]


def joined_actions(actions: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """A function that runs all of these, one after another: the waits of all libraries that a
    statement uses. A single one is returned itself.
    """
    if len(actions) == 1:
        return actions[0]

    def run_all() -> None:
        for action in actions:
            action()

    return run_all


def _imported(name: str, asked: bool) -> Any:
    """The module if the statement has imported it; None if not. If the user ``asked`` for its wait,
    it is imported here, and ``Unavailable`` is raised if it is not installed.
    """
    if asked and name not in sys.modules:
        from overhead.probes.common.availability import import_library

        return import_library(name, f"pip install {name}")
    return sys.modules.get(name)


def _torch(kind: str, names: Names, results: list[Any], asked: bool) -> Wait | None:
    """The wait of PyTorch for the devices of a kind: ``cuda`` (also AMD's), ``xpu`` or ``mps``.
    None if the statement does not use them and nobody ``asked`` for it.
    """
    torch = _imported("torch", asked)
    if torch is None or not hasattr(torch, kind):
        return None
    module = getattr(torch, kind)
    # ``torch.mps`` has no such function of its own.
    if asked and not getattr(module, "is_available", torch.backends.mps.is_available)():
        raise Unavailable(because("torch-without-device", version=torch.__version__, kind=kind))
    if not asked and not _torch_uses(torch, kind, [*names.values(), *results]):
        return None
    adapter = "Apple GPU" if kind == "mps" else str(module.get_device_name())
    called = f"torch.{kind}.synchronize()"

    # Every library's ``make`` is given the statement's variables and results; torch needs neither.
    def make(names: Names, results: Iterable[Any]) -> Callable[[], object]:
        synchronize: Callable[[], object] = module.synchronize
        return synchronize

    # ``spins``: the wait keeps the processor busy. ``clock``: measures the time of the device.
    if kind == "xpu":
        return Wait("xpu", called, "LevelZero", adapter, make)
    if kind == "mps":
        return Wait("mps", called, "MPS", adapter, make)
    if torch.version.hip:
        return Wait("torch", called, "HIP", adapter, make, spins=True)
    from overhead.probes.torch.chains import TorchClock

    return Wait("torch", called, "CUDA", adapter, make, spins=True, clock=TorchClock)


def _torch_uses(torch: Any, kind: str, values: Iterable[Any]) -> bool:
    """Whether the statement uses a kind of devices: torch has started it, or a tensor or the
    parameters of a module among these ``values`` are there.
    """
    # ``bool`` stands for a module without this function: it returns False.
    if getattr(getattr(torch, kind), "is_initialized", bool)():
        return True
    for value in _with_inner_values(values):
        if isinstance(value, torch.nn.Module):
            tensors = list(value.parameters())
        elif isinstance(value, torch.Tensor):
            tensors = [value]
        else:
            continue
        if any(tensor.device.type == kind for tensor in tensors):
            return True
    return False


def _cupy(names: Names, results: list[Any], asked: bool) -> Wait | None:
    """The wait of CuPy, which waits for all work of its current device. None if the statement has
    not imported CuPy and nobody ``asked`` for the wait. Raises ``Unavailable`` if it cannot be
    imported.
    """
    cupy = _imported("cupy", asked)
    if cupy is None:
        return None
    from overhead.probes.cuda.cupy import CupyClock

    device, said = cupy.cuda.Device(), "cupy.cuda.Device().synchronize()"
    adapter = cupy.cuda.runtime.getDeviceProperties(device.id)["name"].decode()
    clock = functools.partial(CupyClock, cupy)  # makes a clock when it is called
    return Wait(
        "cupy",
        said,
        "CUDA",
        adapter,
        lambda names, results: device.synchronize,
        spins=True,
        clock=clock,
    )


def has_cuda_context() -> bool:
    """Whether this process has started a CUDA device, by any library, as CUDA's driver tells. A
    statement that runs a kernel without arrays has no value that shows a library of the GPU.
    """
    from overhead.probes.cuda.api import CudaDriver, CudaError, open_library

    # CUDA writes into both. Only ``active`` is read: whether the device's context exists.
    flags, active = ctypes.c_uint(), ctypes.c_int()
    with contextlib.suppress(
        Unavailable, CudaError
    ):  # CUDA is not there, or nothing has initialised it
        driver = CudaDriver(open_library())
        for device in range(driver.call_for_number("cuDeviceGetCount")):
            driver.call(
                "cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active)
            )
            if active.value:
                return True
    return False


def _cuda(names: Names, results: list[Any], asked: bool) -> Wait | None:
    """The wait of CUDA's driver for the first device, whatever library issued the work; only if it
    is ``asked`` for.
    """
    if not asked:  # ``find_waits`` asks where no library is known that has started the device
        return None
    from overhead.probes.cuda.api import driver

    cuda = driver()
    device = cuda.devices()[0]

    def make(names: Names, results: Iterable[Any]) -> Callable[[], object]:
        # The wait is for the context that is current; libraries share the primary one of a device.
        cuda.call(
            "cuCtxSetCurrent", cuda.call_for_handle("cuDevicePrimaryCtxRetain", device.ordinal)
        )
        return functools.partial(cuda.call, "cuCtxSynchronize")

    return Wait("cuda", "cuCtxSynchronize()", "CUDA", device.name, make, spins=True)


def _jax(names: Names, results: list[Any], asked: bool) -> Wait | None:
    """The wait of JAX, which waits until arrays are ready: those among the results of the
    statement, else all. None if the statement does not use JAX and nobody ``asked`` for the wait.
    """
    jax = _imported("jax", asked)
    if jax is None:
        return None
    arrays = _jax_arrays(jax, [*results, *_with_inner_values(names.values())])
    # Started: JAX has opened a device, so work may run though no array shows it.
    is_used = bool(arrays) or _jax_has_started()
    if not is_used and not asked:
        return None
    if arrays:
        device = next(iter(arrays[0].devices()))
    else:
        device = jax.devices()[0]
    api = _API_OF_JAX.get(device.platform, device.platform.upper())

    def make(names: Names, results: Iterable[Any]) -> Callable[[], object]:
        """A function that waits. It looks into ``results`` each time: calls add to them."""

        def wait() -> None:
            """Wait for the arrays among the results; without any, for all that JAX has."""
            found = _jax_arrays(jax, list(results))
            if not found:
                jax.effects_barrier()  # waits for effects such as prints, which give no array
                found = jax.live_arrays()
            for array in found:
                # An array that was given away to a later call ("donated") is ready when that call's
                # result is.
                if not array.is_deleted():
                    array.block_until_ready()

        return wait

    said = because("waits-for-results-of-jax")
    if results and not _jax_arrays(jax, results):
        said = because("waits-for-kept-arrays-of-jax")
    on_device = device.platform != "cpu"
    adapter = device.device_kind if on_device else "CPU"
    return Wait("jax", said, api, adapter, make, spins=on_device, keeps=True)


_API_OF_JAX = {"cpu": "CPU", "cuda": "CUDA", "gpu": "CUDA", "rocm": "HIP"}
"""By JAX's name of a platform. Other platforms have their own name."""


def _jax_arrays(jax: Any, values: list[Any]) -> list[Any]:
    return [leaf for leaf in jax.tree_util.tree_leaves(values) if isinstance(leaf, jax.Array)]


def _jax_has_started() -> bool:
    """Whether JAX has opened its devices in this process; to ask JAX itself would open them."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(getattr(bridge, "backends_are_initialized", bool)())


def _mlx(names: Names, results: list[Any], asked: bool) -> Wait | None:
    """The wait of MLX, which waits for the arrays that are being evaluated on its default device.
    None if the statement has not imported MLX and nobody ``asked`` for the wait.
    """
    mx = _imported("mlx.core", asked)
    if mx is None:
        return None
    on_cpu = mx.default_device() == mx.Device(mx.cpu, 0)
    if on_cpu:
        api = adapter = "CPU"
    else:  # MLX has two builds for GPUs
        api = "Metal" if mx.metal.is_available() else "CUDA"
        adapter = str(mx.device_info(mx.default_device())["device_name"])
    return Wait(
        "mlx",
        because("waits-for-evaluated-arrays-of-mlx"),
        api,
        adapter,
        lambda names, results: mx.synchronize,
    )


def _webgpu(module: str, stack: str, names: Names, results: list[Any], asked: bool) -> Wait | None:
    """The wait for the queue of a WebGPU device that the statement holds in a variable. ``module``,
    ``stack``: the library, and what the suite calls it. None if the statement has no such device
    and nobody ``asked`` for the wait.
    """
    wgpu = _imported(module, asked)
    if wgpu is None:
        return None
    values = _with_inner_values([*names.values(), *results])
    devices = [value for value in values if isinstance(value, wgpu.GPUDevice)]
    if not devices:
        if asked:
            raise Unavailable(because("setup-without-webgpu-device"))
        return None
    device = devices[0]

    from overhead.probes.webgpu.library import library, wait_call

    def make(names: Names, results: Iterable[Any]) -> Callable[[], object]:
        # The device among the variables that ``make`` is given.
        own = next(
            value
            for value in _with_inner_values(names.values())
            if isinstance(value, wgpu.GPUDevice)
        )
        return library(stack).waiter(own, own.queue)

    info = device.adapter.info
    api, adapter = str(info["backend_type"]), str(info["device"])
    return Wait(stack, wait_call(stack), api, adapter[:200], make)


def _with_inner_values(values: Iterable[Any]) -> list[Any]:
    """The values, those inside lists, tuples and dicts among them, and those that the callables
    hold or name: a function may keep a tensor in its closure. At most 200 are looked at; they show
    which libraries a statement uses.
    """
    found: list[Any] = []
    seen: set[int] = set()
    left = list(values)
    while left and len(found) < _LOOKED_AT:
        value = left.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        found.append(value)
        if isinstance(value, list | tuple):
            left += value[:_LOOKED_AT]
        elif isinstance(value, dict):
            left += list(value.values())[:_LOOKED_AT]
        elif callable(value):
            left += _held_by(value)
    return found


def _held_by(function: Any) -> list[Any]:
    """The values that a callable can use: those of its closure, its attributes, and the globals
    that its code names.
    """
    # The suite defines functions for the statement, which are no part of what the user wrote.
    if str(getattr(function, "__module__", "")).partition(".")[0] == "overhead":
        return []
    found = list(getattr(function, "__dict__", {}).values())[:_LOOKED_AT]
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # an empty cell
            found.append(cell.cell_contents)
    scope = getattr(function, "__globals__", {})
    names = getattr(getattr(function, "__code__", None), "co_names", ())
    found += [scope[name] for name in names if name in scope]
    return found


def uses_package(package: str, names: Names, results: Iterable[Any]) -> bool:
    """Whether the statement uses the package. The suite itself imports NumPy, so one of its values
    must be there.
    """
    if package != "numpy":
        return package in sys.modules
    return package in libraries_seen(names, results)


def libraries_seen(names: Names, results: Iterable[Any]) -> dict[str, str]:
    """The installed packages whose modules, functions or objects the statement uses, with their
    versions.

    Those of its results come first: a title names the first one.
    """
    found: dict[str, str] = {}
    for value in [*_with_inner_values(results), *_with_inner_values(names.values())]:
        module = value.__name__ if isinstance(value, ModuleType) else _module_of(value)
        package = module.partition(".")[0]
        package = _SAME_LIBRARY.get(package, package)  # such as jaxlib, which is part of jax
        if package not in found and _is_installed(package):
            found[package] = _version_of(package)
    return found


def _module_of(value: Any) -> str:
    """The module of a function or a class, or of an object's class."""
    own = getattr(value, "__module__", None)
    return own if isinstance(own, str) else type(value).__module__


def _is_installed(package: str) -> bool:
    """Whether a package is one that somebody installed, and whose version is worth naming: not the
    user's program, the standard library, or what the suite itself needs.
    """
    # The script itself: __main__, or as a worker runs it again.
    is_program = package.startswith("__")
    if is_program or package in _NOT_NAMED or package in sys.stdlib_module_names:
        return False
    module = sys.modules.get(package)
    places = [str(getattr(module, "__file__", None) or "")]
    # A package without an ``__init__.py`` has folders only.
    places += [str(folder) for folder in getattr(module, "__path__", ())]
    return any(is_in_packages(place) for place in places)


def _version_of(package: str) -> str:
    """The version of an imported package: as it says itself, else as it was installed; empty if
    neither tells one.
    """
    version = getattr(sys.modules[package], "__version__", None)
    if isinstance(version, str):
        return version[:40]
    try:
        return importlib.metadata.version(package)[:40]
    except importlib.metadata.PackageNotFoundError:
        return ""


KNOWN_WAITS: Mapping[str, Callable[[Names, list[Any], bool], Wait | None]] = {
    "torch": functools.partial(_torch, "cuda"),
    "xpu": functools.partial(_torch, "xpu"),
    "mps": functools.partial(_torch, "mps"),
    "cupy": _cupy,
    "cuda": _cuda,
    "jax": _jax,
    "mlx": _mlx,
    **{
        stack: functools.partial(_webgpu, own_stacks()[stack].module, stack)
        for stack in stacks_in("webgpu")
    },
    "none": lambda names, results, asked: NOTHING if asked else None,
}
"""By the value of ``--wait``: the wait from the names and results of a statement, and whether the
user asked for it; None where the statement does not use the library. Raises ``Unavailable``.
"""
