"""WebGPU chains on software adapters: counts of executed units, calls, and failures."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from overhead.probes import registry
from overhead.probes.base import Unsupported, Unverified
from overhead.probes.common import native_loop
from overhead.probes.common.loops import Issue
from overhead.probes.common.native_loop import NativeCall, NativeProgram, Store
from overhead.probes.vulkan import adapters
from overhead.probes.webgpu import library
from overhead.probes.webgpu.chain import WebGpuChain
from overhead.results import Case, Target
from tests.fakes.chains import run

LAVAPIPE = pytest.param(
    ("wgpu-native", "Vulkan"), marks=pytest.mark.needs("wgpu", "numba", "lavapipe"), id="lavapipe"
)
SWIFTSHADER = pytest.param(
    ("dawn", "Vulkan"),
    marks=pytest.mark.needs("wgpudawn", "numba", "swiftshader"),
    id="swiftshader",
)
CALLERS = ["binding", "ffi", "native"]


@pytest.fixture(params=[LAVAPIPE, SWIFTSHADER])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Target:
    """An adapter. A library reads the environment once per process, so each library has only one
    environment here.
    """
    stack, api = request.param
    return find(stack, api, monkeypatch)


def find(stack: str, api: str, monkeypatch: pytest.MonkeyPatch) -> Target:
    if stack == "dawn":
        for variable in adapters.DRIVER_VARIABLES:
            monkeypatch.setenv(variable, str(adapters.swiftshader_manifest()))
    of_api = [target for target in registry()[stack].targets() if target.api == api]
    return of_api[0]


@contextlib.contextmanager
def opened(target: Target, case: Case) -> Iterator[WebGpuChain]:
    chain = registry()[target.stack].open(target, case)
    assert isinstance(chain, WebGpuChain)
    try:
        yield chain
    finally:
        chain.close()


class Counting:
    """Counts the calls of webgpu.h by function name, for every caller."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.kept: list[Any] = []

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            self.calls[name] += 1
            return function(*args)

        return counted

    def program(self, program: NativeProgram) -> NativeProgram:
        return NativeProgram(
            head=tuple(map(self._step, program.head)),
            body=tuple(map(self._step, program.body)),
            tail=tuple(map(self._step, program.tail)),
            per=program.per,
        )

    def _step(self, step: NativeCall | Store) -> NativeCall | Store:
        if isinstance(step, Store):
            return step
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(step.args))
        callback = kind(self.wrap(step.name, kind(step.address)))
        self.kept.append(callback)
        address = ctypes.cast(callback, ctypes.c_void_p).value or 0
        return dataclasses.replace(
            step, function=self.wrap(step.name, step.function), address=address
        )

    def binding(self, device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Count the calls of the binding: in methods, in releases, and through the library handle
        of its module.
        """
        api = __import__(type(device).__module__, fromlist=["_"])
        for name, function in vars(api.libf).items():
            if name.startswith("wgpu"):
                monkeypatch.setattr(api.libf, name, self.wrap(name, function))
        classes: set[type] = set()
        for value in vars(api).values():
            if isinstance(value, type):
                classes.update(value.__mro__)
        for cls in classes:
            for name, function in list(vars(cls).items()):
                c_name = getattr(function, "__name__", "")
                if name.endswith("_function") and c_name.startswith("wgpu"):
                    monkeypatch.setattr(cls, name, staticmethod(self.wrap(c_name, function)))
        monkeypatch.setattr(api, "lib", _Proxy(self, api.lib))


class _Proxy:
    def __init__(self, counting: Counting, lib: Any) -> None:
        self._counting = counting
        self._lib = lib

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._lib, name)
        if name.startswith("wgpu"):
            return self._counting.wrap(name, attribute)
        return attribute


def calls_of(target: Target, case: Case, n: int) -> Counter[str]:
    """The calls that ``issue(n)`` makes, including the releases of all objects that it creates."""
    counting = Counting()
    with opened(target, case) as chain, pytest.MonkeyPatch.context() as monkeypatch:
        gc.disable()
        try:
            issue: Issue = chain.issue
            if isinstance(chain._loop, NativeProgram):
                program = counting.program(chain._loop)
                if case.caller == "native":
                    issue = native_loop.compile_native(program)
                else:
                    issue = native_loop.compile_ffi(program)
            else:
                counting.binding(chain.resources.device, monkeypatch)
            issue(n)
            calls = Counter(counting.calls)
        finally:
            gc.enable()
        chain.wait()
    return calls


@pytest.mark.parametrize(
    "case",
    [
        Case(pattern="per-submit"),
        Case(pattern="per-submit", params={"bindgroup": "rotated"}),
        Case(pattern="one-pass", dependency="independent", params={"bindgroup": "rotated"}),
        Case(pattern="per-k", params={"k": 4}),
        Case(pattern="per-pass"),
        Case(pattern="wait-each"),
    ],
    ids=lambda case: case.key,
)
def test_python_and_both_c_loops_make_the_same_calls_of_webgpu(target: Target, case: Case) -> None:
    calls = {}
    for caller in CALLERS:
        calls[caller] = calls_of(target, msgspec.structs.replace(case, caller=caller), 10)
    assert calls["ffi"] == calls["native"]
    # The chain binds its wait when it opens, so the calls of the wait are not counted for the
    # binding.
    for counted in calls.values():
        for name in ("wgpuDevicePoll", "wgpuQueueOnSubmittedWorkDone", "wgpuInstanceWaitAny"):
            counted.pop(name, None)
    assert calls["binding"] == calls["ffi"]
    assert calls["binding"].total() >= 10

    made = 0
    released = 0
    for name, count in calls["ffi"].items():
        if "Create" in name or "Begin" in name or "Finish" in name:
            made += count
        if name.endswith("Release"):
            released += count
    assert made == released


def test_executed_raises_unverified_for_an_error_that_only_the_library_reports(
    target: Target,
) -> None:
    with opened(target, Case(pattern="per-submit", caller="native")) as chain:
        run(chain, 3)
        queue = chain.resources.queue._internal
        buffer = chain.resources.data[0]._internal
        words = chain.library.ffi.new("uint32_t[1]")
        behind_its_end = 1 << 20
        chain.library.lib.wgpuQueueWriteBuffer(queue, buffer, behind_its_end, words, 4)
        with pytest.raises(Unverified, match=r"errors-reported \(errors=1,"):
            chain.executed()
        assert chain.executed() == 3


@pytest.mark.needs("wgpudawn", "numba", "swiftshader")
@pytest.mark.parametrize("caller", ["ffi", "native"])
def test_executed_raises_unverified_if_submissions_were_rejected(
    caller: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dawn only: wgpu-native ends the process when a submission is rejected."""
    target = find("dawn", "Vulkan", monkeypatch)
    with opened(target, Case(pattern="per-submit", caller=caller)) as chain:
        chain.resources.data[0].destroy()
        run(chain, 20)
        with pytest.raises(Unverified, match=r"errors-reported \(errors=20,"):
            chain.executed()


def test_executed_raises_unverified_if_a_buffer_contains_a_wrong_value(target: Target) -> None:
    with opened(target, Case(pattern="per-submit")) as chain:
        run(chain, 3)
        chain.resources.queue.write_buffer(chain.resources.data[0], 4 * 77, np.zeros(1, np.uint32))
        with pytest.raises(Unverified, match=r"values-disagree \(wrong=1, values=256"):
            chain.executed()


@pytest.mark.needs("wgpu", "numba", "lavapipe")
def test_the_python_loop_releases_all_webgpu_objects_that_it_creates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = find("wgpu-native", "Vulkan", monkeypatch)
    with opened(target, Case(pattern="per-submit", params={"bindgroup": "fresh"})) as chain:
        run(chain, 1)
        before = _alive(chain)
        run(chain, 300)
        after = _alive(chain)
    assert {name: count for name, count in after.items() if count > before[name]} == {}


def _alive(chain: WebGpuChain) -> dict[str, int]:
    chain.library.lib.wgpuDevicePoll(chain.resources.device._internal, 1, chain.library.ffi.NULL)
    hub = chain.library._helpers.generate_report()["hub"]
    return {name: int(counts["kept"]) for name, counts in hub.items()}


@pytest.fixture
def like_metal(monkeypatch: pytest.MonkeyPatch) -> Target:
    """lavapipe, waited for as on Metal."""
    target = find("wgpu-native", "Vulkan", monkeypatch)
    monkeypatch.setattr(library, "_sleeps_while_waiting", lambda device: True)
    return target


@pytest.mark.needs("wgpu", "numba", "lavapipe")
@pytest.mark.parametrize(
    "case",
    [
        Case(pattern="per-submit"),
        Case(pattern="one-pass", caller="native"),
        Case(pattern="wait-each"),
    ],
    ids=lambda case: case.key,
)
def test_after_the_polling_wait_for_metal_all_submitted_work_is_done(
    like_metal: Target, case: Case
) -> None:
    with opened(like_metal, case) as chain:
        assert chain.window()["wait"] == "poll without blocking"
        issued = run(chain, 1, 7, 2000)
        poll = chain.library.lib.wgpuDevicePoll
        assert poll(chain.resources.device._internal, 0, chain.library.ffi.NULL) & 0xFF == 1
        assert chain.executed() == issued


@pytest.mark.needs("wgpu", "numba", "lavapipe")
@pytest.mark.parametrize("caller", ["ffi", "native"])
def test_c_loops_with_the_wait_of_metal_are_unsupported(like_metal: Target, caller: Any) -> None:
    with (
        pytest.raises(Unsupported, match="metal-wait-in-steps"),
        opened(like_metal, Case(pattern="wait-each", caller=caller)),
    ):
        pass
