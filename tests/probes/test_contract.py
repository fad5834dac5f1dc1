"""The contract of stacks: checked on all stacks of this machine and on fakes of CUDA."""

from __future__ import annotations

import contextlib
import itertools
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from overhead import probes
from overhead.checking import contract
from overhead.checking.findings import Findings
from overhead.probes.base import Probe
from overhead.probes.vulkan import adapters
from overhead.results import Api, Case, Scalar, Target
from tests.fakes import cuda_driver, cuda_libraries, cupy, warp
from tests.fakes.of_step import of_step
from tests.trials import LIBRARIES


def _nothing(patch: pytest.MonkeyPatch) -> None:
    """The stack needs no preparation."""


def _swiftshader(patch: pytest.MonkeyPatch) -> None:
    for variable in adapters.DRIVER_VARIABLES:
        patch.setenv(variable, str(adapters.swiftshader_manifest()))


def _fake_cupy(patch: pytest.MonkeyPatch) -> None:
    cuda_driver.install(patch)
    patch.setitem(sys.modules, "cupy", cupy.module())


def _fake_warp(patch: pytest.MonkeyPatch) -> None:
    warp.install(patch)


def _never(case: Case) -> bool:
    return False


def _like_another(case: Case) -> bool:
    """The callers make the same calls, and each k runs the same code; rotated bind groups take long
    to make.
    """
    if case.caller == "ffi":
        return True
    if case.caller == "native" and case.pattern != "per-submit":
        return True
    return case.params.get("k", 16) != 16 or case.params.get("bindgroup") == "rotated"


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

    @property
    def declared(self) -> Target:
        """A target of this kind, made without loading the stack's library."""
        return Target(stack=self.stack, api=self.api, adapter="any")

    def needs(self, case: Case) -> tuple[str, ...]:
        """The optional parts that the case needs, including numba if it is called from compiled
        code.
        """
        if case.caller == "native":
            return (*self.parts, "numba")
        return self.parts


SUBJECTS = (
    Subject("floor"),
    Subject("numpy", window={"precision": "int32"}),
    Subject("jax", parts=("jax",), window={"wait": "block_until_ready", "precision": "uint32"}),
    Subject("torch", parts=("torch",), window={"threads": 1}),
    Subject(
        "torch-compile",
        parts=("torch", "torch-compile"),
        slow=lambda case: case.params["mode"] == "default",
    ),
    Subject("wgpu-native", "Vulkan", ("wgpu", "numba", "lavapipe"), slow=_like_another),
    Subject(
        "dawn", "Vulkan", ("wgpudawn", "numba", "swiftshader"), _swiftshader, slow=_like_another
    ),
    Subject("vulkan", "Vulkan", ("vulkan", "numba", "lavapipe")),
    Subject("cuda-driver", "CUDA", ("cxx", "numba"), cuda_driver.install),
    Subject(
        "cuda-graph",
        "CUDA",
        ("cxx", "numba"),
        cuda_driver.install,
        without=lambda case: case.params["maker"] == "torch",
    ),
    Subject("cupy", "CUDA", ("cxx",), _fake_cupy),
    Subject("cuda-core", "CUDA", ("cxx",), cuda_libraries.install),
    Subject("cute-dsl", "CUDA", ("cxx",), cuda_libraries.install),
    Subject("numba-cuda", "CUDA", ("cxx",), cuda_libraries.install),
    Subject("warp", parts=("warp",), window={"precision": "uint32"}),
    Subject("warp", "CUDA", prepare=_fake_warp),
    Subject("pyopencl", "OpenCL", ("pyopencl",), window={"precision": "uint32"}),
    Subject("mlx", parts=("mlx",), window={"precision": "int32"}),
)


def probe_of(subject: Subject) -> Probe:
    return probes.registry()[subject.stack]


def cases_of(subject: Subject) -> list[Case]:
    """The cases of the stack's step, found without importing its library."""
    space = probe_of(subject).space(subject.declared)
    return [case for case in of_step(space.star()) if not subject.without(case)]


def target_of(subject: Subject) -> Target:
    """The first target of this kind; of OpenCL's, where a GPU may come first, the processor that
    the part is.
    """
    targets = [target for target in probe_of(subject).targets() if target.api == subject.api]
    if not targets:
        # torch.compile has no target on the processor where there is a GPU.
        pytest.skip(f"{subject.stack} has no device with {subject.api} on this machine")
    if subject.api == "OpenCL":
        targets = [target for target in targets if target.software]
    return targets[0]


def every_case() -> list[Any]:
    """A pytest parameter for each stack and case, with marks for the parts that it needs."""
    parameters = []
    for subject in SUBJECTS:
        for case in cases_of(subject):
            marks = [pytest.mark.needs(*subject.needs(case))]
            if subject.slow(case):
                marks.append(pytest.mark.slow)
            name = f"{subject.stack} {subject.api} {case.key}"
            parameters.append(pytest.param(subject, case, id=name, marks=marks))
    return parameters


INSTALLED = [
    pytest.param(one, id=one.stack, marks=pytest.mark.needs(*one.parts)) for one in SUBJECTS
]
"""Every stack, skipped where its library is missing."""


def check(probe: Probe, target: Target, case: Case, window: Mapping[str, Scalar]) -> None:
    """Check the whole contract of a case. ``window``: part of its window."""
    cases = list(probe.space(target).star())
    found = Findings()
    contract.check_case(found, probe, target, case, contract.varied_parameters(cases, case))
    assert not found.unavailable
    errors = [finding for finding in found.found if finding.level == "error"]
    assert errors == []
    if window:
        with contextlib.closing(probe.open(target, case)) as chain:
            assert chain.window().items() >= window.items()


@pytest.mark.parametrize(("subject", "case"), every_case())
def test_every_case_of_every_stack_passes_overhead_check(
    subject: Subject, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject.prepare(monkeypatch)
    check(probe_of(subject), target_of(subject), case, subject.window)


@pytest.mark.parametrize("subject", INSTALLED)
def test_the_targets_of_a_stack_have_different_keys_and_carry_what_it_declares(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject.prepare(monkeypatch)
    targets = probes.targets_of(probe_of(subject))
    assert len({target.key for target in targets}) == len(targets)
    for target in targets:
        assert target.stack == subject.stack
        assert target.versions
        assert target.same_calls == probe_of(subject).same_calls


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: one.stack)
def test_a_stack_lists_each_case_once_with_the_base_case_first(subject: Subject) -> None:
    space = probe_of(subject).space(subject.declared)
    for cases in (list(space.star()), list(itertools.islice(space.cross(), 100))):
        assert cases[0].key == space.base.key
        assert len({case.key for case in cases}) == len(cases)


def test_a_stack_lists_its_cases_without_importing_its_gpu_library() -> None:
    code = f"""
import sys
from overhead.probes import registry
from overhead.results import Target
options = {{'device': 'cuda:0', 'platform': 'gpu', 'ordinal': 0}}
for name, probe in registry().items():
    target = Target(stack=name, api='CUDA', adapter='x', options=options)
    list(probe.space(target).star())
    probe.environments()
print({set(LIBRARIES)!r} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "set()", done.stderr


def test_the_table_of_callers_has_each_stack_with_several_and_says_whether_a_share_is_formed() -> (
    None
):
    text = (Path(__file__).parents[2] / "docs" / "callers.md").read_text(encoding="utf-8")
    in_table = {}
    for stacks, share in re.findall(r"^\| (`[^|]*`) \|.*\| (yes|no) \|$", text, re.MULTILINE):
        for stack in re.findall(r"`([^`]+)`", stacks):
            in_table[stack] = share == "yes"
    options: dict[str, Scalar] = {"device": "cuda:0", "platform": "gpu", "ordinal": 0}
    with_several_callers = {}
    for name, probe in probes.registry().items():
        target = Target(stack=name, api="CUDA", adapter="x", options=options)
        callers = {case.caller for case in probes.space_of(probe, target).star()}
        if len(callers) > 1:
            with_several_callers[name] = probe.same_calls
    assert in_table == with_several_callers


def test_every_stack_of_the_package_has_tests() -> None:
    tested_here = {subject.stack for subject in SUBJECTS}
    tested_elsewhere = {"triton", "chromium", "firefox", "onnxruntime"}
    fakes_of_tests = {"wandering", "steady"}
    stacks_of_package = set(probes.registry()) - fakes_of_tests
    assert stacks_of_package <= tested_here | tested_elsewhere
