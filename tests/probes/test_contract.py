"""The contract of stacks: checked on all stacks of this machine, on fakes of CUDA, and on the example plugin."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from overhead import probes
from overhead.probes._support.common.library_import import import_library
from overhead.probes._support.vulkan import drivers
from overhead.probes.base import Chain, DeviceTime, Probe, Unavailable, Unsupported
from overhead.results import Api, Case, Scalar, Target
from tests.fakes import cuda_driver, cupy
from tests.fakes.of_step import of_step
from tests.fakes.plugins import EXAMPLES, forget_plugins_afterwards

UNITS = (0, 1, 7, 1)
MANY_UNITS = 1001
"""Issued too where a unit takes well under a microsecond."""


def _nothing(patch: pytest.MonkeyPatch) -> None:
    """The stack needs no preparation."""


def _swiftshader(patch: pytest.MonkeyPatch) -> None:
    for variable in drivers.DRIVER_VARIABLES:
        patch.setenv(variable, str(drivers.swiftshader_icd()))


def _dawn_null(patch: pytest.MonkeyPatch) -> None:
    _swiftshader(patch)
    patch.setenv("WGPU_BACKEND_TYPE", "Null")


def _fake_cupy(patch: pytest.MonkeyPatch) -> None:
    cuda_driver.install(patch)
    patch.setitem(sys.modules, "cupy", cupy.module())


def _never(case: Case) -> bool:
    return False


def _like_another(case: Case) -> bool:
    """The other callers and k = 16 run the same code."""
    return case.caller == "ffi" or case.params.get("k", 16) != 16


@dataclass(frozen=True)
class Subject:
    """A stack, the target on which it is tested, and the requirements of the test."""

    stack: str
    api: Api = "CPU"
    parts: tuple[str, ...] = ()
    """Names of parts in ``tests/conftest.py``."""
    prepare: Callable[[pytest.MonkeyPatch], None] = _nothing
    without: Callable[[Case], bool] = _never
    """Cases that cannot run on this target."""
    slow: Callable[[Case], bool] = _never
    window: Mapping[str, Scalar] = field(default_factory=dict)
    """Part of the window of every case."""
    plugin: bool = False
    executes: bool = True

    @property
    def declared(self) -> Target:
        """A target of this kind, made without loading the stack's library."""
        return Target(stack=self.stack, api=self.api, adapter="any", executes=self.executes)

    def needs(self, case: Case) -> tuple[str, ...]:
        """The optional parts that the case needs, including numba if it is called from compiled code."""
        cffi = case.params.get("call") == "cffi"  # the package vulkan brings cffi
        return (*self.parts, *(["numba"] if case.caller == "native" else []), *(["vulkan"] if cffi else []))


_SOFTWARE_ADAPTERS = (
    Subject("wgpu-native", "Vulkan", ("wgpu", "numba", "lavapipe"), slow=_like_another),
    Subject("dawn", "Vulkan", ("wgpudawn", "numba", "swiftshader"), _swiftshader, slow=_like_another),
    Subject("dawn", "Null", ("wgpudawn", "numba"), _dawn_null, executes=False),
    Subject("vulkan", "Vulkan", ("vulkan", "numba", "lavapipe")),
)
_FAKES = (
    Subject("cuda-driver", "CUDA", ("cxx", "numba"), cuda_driver.install),
    Subject("cuda-graph", "CUDA", ("cxx", "numba"), cuda_driver.install,
            without=lambda case: case.params["maker"] == "torch"),
    Subject("cupy", "CUDA", ("cxx",), _fake_cupy),
)  # fmt: skip
SUBJECTS = (
    Subject("floor"),
    Subject("numpy", window={"precision": "int32"}),
    Subject("jax", parts=("jax",), window={"wait": "block_until_ready", "precision": "uint32"}),
    Subject("torch", parts=("torch",), window={"threads": 1}),
    Subject("torch-compile", parts=("torch", "cxx"), slow=lambda case: case.params["mode"] == "default"),
    Subject("sqlite", plugin=True),
    *_SOFTWARE_ADAPTERS,
    *_FAKES,
)


@pytest.fixture(scope="module", autouse=True)
def example_plugin() -> Iterator[None]:
    """Register the example stack for this test file only."""
    with pytest.MonkeyPatch.context() as patch:
        forget_plugins_afterwards(patch)
        probes.load_plugin(EXAMPLES / "my_stack.py")
        yield


def probe_of(subject: Subject) -> Probe:
    return probes.registry()[subject.stack]


def cases_of(subject: Subject) -> list[Case]:
    """The cases of the stack's step, found without importing its library. The plugin has a separate test."""
    return [case for case in of_step(probe_of(subject).space(subject.declared).star()) if not subject.without(case)]


def target_of(subject: Subject) -> Target:
    return next(target for target in probe_of(subject).targets() if target.api == subject.api)


def every_case() -> list[Any]:
    """A pytest parameter for each stack and case, with marks for the parts that it needs."""
    found = []
    for subject in SUBJECTS:
        if subject.plugin:
            continue
        for case in cases_of(subject):
            marks = [pytest.mark.needs(*subject.needs(case)), *([pytest.mark.slow] if subject.slow(case) else [])]
            found.append(pytest.param(subject, case, id=f"{subject.stack} {subject.api} {case.key}", marks=marks))
    return found


def every_subject(*, installed: bool) -> list[Any]:
    """A pytest parameter for each stack. ``installed``: skip the test if the library of the stack is missing."""
    return [
        pytest.param(
            subject,
            id=f"{subject.stack} {subject.api}",
            marks=pytest.mark.needs(*subject.parts) if installed else (),
        )
        for subject in SUBJECTS
    ]


def run(chain: Chain, n: int) -> None:
    chain.prepare(n)
    chain.issue(n)
    chain.wait()


def check_counts(chain: Chain, units: tuple[int, ...]) -> None:
    """Check that n issued units increase ``executed`` by exactly n, and that reading it twice changes nothing."""
    before = chain.executed()
    for n in units:
        run(chain, n)
        after = chain.executed()
        if chain.executes:
            assert after - before == n
            assert chain.executed() == after
        before = after


def check_device_time(chain: Chain) -> None:
    """Check two device times of a few units (or None twice), and that units are still counted exactly afterwards."""
    try:
        found = [chain.device(4), chain.device(4)]
    except Unsupported:
        found = [None, None]
    assert [type(time) for time in found] in ([DeviceTime] * 2, [type(None)] * 2)
    for time in filter(None, found):
        assert 1 <= time.n <= chain.held_n
        assert time.span > 0
        assert time.quantum >= 0
        assert time.method
    check_counts(chain, (3,))


def check_stages(chain: Chain) -> None:
    """Check the durations by stage, and that their units count as executed. Without stages no units must run."""
    before = chain.executed()
    stages = chain.stages(5)
    if stages:
        assert {"clock"} < set(stages)
        assert all(duration >= 0 for durations in stages.values() for duration in durations)
    chain.wait()
    if chain.executes:
        assert chain.executed() - before == (5 if stages else 0)


def check_description(chain: Chain, case: Case) -> None:
    """Check that everything that goes into the record has the types of the file format."""
    assert chain.unit == case.unit
    assert chain.overlap in ("pipelined", "serial")
    assert chain.max_n >= max(UNITS)
    assert msgspec.convert(chain.window(), dict[str, Scalar]) == chain.window()
    assert all(len(name) <= 200 for name in chain.window())
    assert all(len(digest) == 64 and int(digest, 16) >= 0 for digest in chain.kernels().values())
    assert msgspec.convert(dict(chain.opening()), dict[str, float]) == chain.opening()


def check_case(probe: Probe, target: Target, case: Case, window: Mapping[str, Scalar]) -> None:
    """Check the whole contract of a chain."""
    chain = probe.open(target, case)
    try:
        check_counts(chain, (*UNITS, MANY_UNITS) if probe.cost == "cheap" else UNITS)
        check_description(chain, case)
        assert chain.window().items() >= window.items()
        check_device_time(chain)
        check_stages(chain)
    finally:
        chain.close()


@pytest.mark.parametrize(("subject", "case"), every_case())
def test_every_case_fulfils_the_contract(subject: Subject, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    subject.prepare(monkeypatch)
    check_case(probe_of(subject), target_of(subject), case, subject.window)


def test_every_case_of_the_example_plugin_fulfils_the_contract() -> None:
    probe = probes.registry()["sqlite"]
    (target,) = probe.targets()
    cases = list(probe.space(target).star())
    assert {case.params["values"] for case in cases} == {1, 8}
    for case in cases:
        check_case(probe, target, case, {})


@pytest.mark.parametrize("subject", every_subject(installed=True))
def test_targets_are_valid_and_have_different_keys(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    subject.prepare(monkeypatch)
    found = probe_of(subject).targets()
    assert len({target.key for target in found}) == len(found)
    for target in found:
        assert msgspec.json.decode(msgspec.json.encode(target), type=Target) == target
        assert target.stack == subject.stack
        assert target.versions


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("subject", every_subject(installed=False))
def test_cases_are_valid_and_each_occurs_once(subject: Subject, crossed: bool) -> None:
    space = probe_of(subject).space(subject.declared)
    cases = list(space.cross() if crossed else space.star())
    assert cases[0].key == space.base.key
    assert len({case.key for case in cases}) == len(cases)
    for case in cases:
        assert msgspec.json.decode(msgspec.json.encode(case), type=Case) == case


@pytest.mark.parametrize("name", ["cupy", "jax", "torch", "triton"])
def test_a_failed_import_makes_the_stack_unavailable_with_a_reason(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Unavailable, match=f"^{name} does not import: ") as caught:
        import_library(name, "pip install it")
    assert caught.value.mend == "pip install it"


def test_every_stack_of_this_package_is_tested_here_or_elsewhere() -> None:
    elsewhere = {"triton", "chromium", "firefox", "safari"}
    assert {subject.stack for subject in SUBJECTS} | elsewhere >= set(probes.registry()) - {"wandering", "steady"}
