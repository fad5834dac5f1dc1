"""The example workload of CONTRIBUTING.md: loaded as a plugin and verified in every language that
runs here.
"""

from __future__ import annotations

import pytest

from overhead import probes
from overhead.probes.base import Space
from overhead.results import Case, Target
from tests.fakes.cuda_driver import install_compiling
from tests.fakes.plugins import EXAMPLES, forget_plugins_afterwards
from tests.workloads.workload_arms import counts


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the example for one test."""
    forget_plugins_afterwards(monkeypatch)
    probes.load_plugin(EXAMPLES / "my_workload.py")


def test_stacks_have_cases_of_the_example_workload() -> None:
    target = Target(stack="numpy", api="CPU", adapter="CPU")
    space: Space = probes.registry()["numpy"].space(target)
    assert "lorenz" in {case.workload for case in space.star()}


@pytest.mark.needs("cxx")
def test_the_example_workload_in_cuda_agrees_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    from overhead.probes.cuda import workload

    chosen = Case(pattern="fused", workload="lorenz", params={"elements": 100})
    counts(workload.open_case(install_compiling(monkeypatch), 0, chosen))


@pytest.mark.needs("wgpu", "lavapipe")
def test_the_example_workload_in_wgsl_agrees_with_numpy() -> None:
    from overhead.probes.webgpu import workload

    target = next(t for t in probes.registry()["wgpu-native"].targets() if t.api == "Vulkan")
    counts(
        workload.open_case(
            target, Case(pattern="fused", workload="lorenz", params={"elements": 100})
        )
    )
