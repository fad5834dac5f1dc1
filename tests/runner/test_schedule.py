"""The plan: hardware first, companions next to the case that they are compared with, left-out cases
with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from overhead.errors import UsageError
from overhead.probes.base import Chain, Probe, Space
from overhead.profiles import Plan
from overhead.results import Case, Target, codes_of
from overhead.runner import schedule as schedule_module
from overhead.runner.schedule import Choice, Scheduled, Task, choose_targets, schedule
from overhead.runner.workers import Assignment

BASE = Case(pattern="per-submit")
NATIVE = Case(pattern="per-submit", caller="native")


class _Stack(Probe):
    name, title = "fake", "fake"

    def __init__(self, base: Case, patterns: tuple[str, ...] = ()) -> None:
        self.base, self.patterns = base, patterns

    def targets(self) -> list[Target]:
        raise NotImplementedError

    def space(self, target: Target) -> Space:
        return Space(self.base, {"pattern": self.patterns}, [NATIVE])

    def open(self, target: Target, case: Case) -> Chain:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "dawn": _Stack(BASE, ("one-pass", "fused")),
        "vulkan": _Stack(NATIVE, ("one-pass",)),
        "fake": _Stack(BASE),
    }
    monkeypatch.setattr(schedule_module, "registry", lambda: known)


def target(stack: str, adapter: str = "GPU", **more: object) -> Target:
    return Target(**{"stack": stack, "api": "Vulkan", "adapter": adapter, **more})  # type: ignore[arg-type]


def plan(sampling_s: float | None = 1000.0) -> Plan:
    return Plan(processes=3, precision=0.1, sampling_s=sampling_s, wall_s=None, case_s=1.0)


def scheduled(targets: Sequence[Target], choice: Choice, plan: Plan) -> Scheduled:
    """What a run plans for these targets, which may be left out as a whole."""
    chosen = choose_targets(targets, choice)
    tasks, left_out = schedule(chosen.targets, choice, plan)
    return Scheduled(tasks, [*chosen.left_out, *left_out])


def test_a_companion_follows_the_case_that_it_is_compared_with() -> None:
    tasks, left_out = scheduled([target("dawn"), target("vulkan")], Choice(), plan())
    dawn = next(t for t in tasks if t.target.stack == "dawn")
    stacks = [(a.target.stack, a.case.pattern, a.case.caller) for a in dawn.assignments]
    at = stacks.index(("dawn", "per-submit", "native"))
    assert stacks[at + 1] == ("vulkan", "per-submit", "native")
    assert stacks[0] == ("dawn", "per-submit", "binding")
    assert not left_out


def test_a_companion_has_the_same_adapter_and_environment() -> None:
    elsewhere = target("vulkan", environment={"VK_DRIVER_FILES": "x.json"})
    for other in (target("vulkan", "another GPU"), elsewhere):
        tasks, _ = scheduled([target("dawn"), other], Choice(), plan())
        dawn = next(t for t in tasks if t.target.stack == "dawn")
        assert {a.target.stack for a in dawn.assignments} == {"dawn"}


def test_on_a_machine_with_a_gpu_software_adapters_are_measured_only_on_request() -> None:
    both = [target("fake", "soft", software=True), target("fake", "GPU")]
    tasks, left_out = scheduled(both, Choice(), plan())
    assert [t.target.adapter for t in tasks] == ["GPU"]
    assert codes_of(left_out[0].reason) == {"software-beside-gpu"}
    assert len(scheduled(both, Choice(software=True), plan())[0]) == 2
    assert len(scheduled(both[:1], Choice(), plan())[0]) == 1


def test_every_target_gets_its_first_case_and_cases_over_the_budget_are_listed() -> None:
    targets = [target("dawn", f"GPU {i}") for i in range(4)]
    tasks, left_out = scheduled(targets, Choice(), plan(sampling_s=15.0))
    assert [t.assignments[0].case for t in tasks] == [BASE] * 4
    assert left_out
    assert all(codes_of(one.reason) == {"over-budget"} for one in left_out)


def test_only_the_chosen_patterns_are_planned() -> None:
    tasks, _ = scheduled([target("dawn")], Choice(patterns=frozenset({"fused"})), plan())
    assert [(a.case.pattern, a.case.unit) for a in tasks[0].assignments] == [("fused", "step")]


def test_cases_of_several_workloads_are_planned_in_turn() -> None:
    of_a = [Case(pattern="fused", workload="a", params={"elements": n}) for n in range(3)]
    of_b = [Case(pattern="fused", workload="b", params={"elements": n}) for n in range(3)]
    named = Choice(workloads=frozenset("ab")).select([BASE, *of_a, *of_b])
    assert named == [of_a[0], of_b[0], of_a[1], of_b[1], of_a[2], of_b[2]]
    assert Choice().select([NATIVE, BASE]) == [NATIVE, BASE]


def test_an_unknown_workload_is_a_usage_error_if_there_is_a_target() -> None:
    with pytest.raises(UsageError, match="unknown workload 'mine'; known: acrobot"):
        scheduled([target("dawn")], Choice(workloads=frozenset({"mine", "step"})), plan())
    assert scheduled([], Choice(workloads=frozenset({"mine"})), plan())[0] == []


def test_a_target_that_is_alone_and_has_few_cases_has_the_unpinned_cost_of_each() -> None:
    (task,), _ = scheduled([target("dawn")], Choice(), plan())
    assert task.unpinned(alone=True) == tuple(a.key for a in task.own)
    assert task.unpinned(alone=False) == task.staged


def test_beside_its_gpu_the_host_of_a_stack_is_measured_only_on_request() -> None:
    host = target("fake", "CPU", api="CPU")
    on_gpu = [target("fake"), host, target("vulkan", "CPU", api="CPU")]
    tasks, _ = scheduled(on_gpu, Choice(), plan())
    assert [t.target.key for t in tasks] == [on_gpu[0].key, on_gpu[2].key]
    assert len(scheduled(on_gpu, Choice(software=True), plan())[0]) == 3


def test_a_target_with_many_cases_has_the_unpinned_cost_of_the_first_case_of_each_caller() -> None:
    cases = []
    for n in range(3):
        cases.append(Case(pattern="per-submit", caller="binding", params={"n": n}))
        cases.append(Case(pattern="per-submit", caller="native", params={"n": n}))
    own = [Assignment(target("dawn"), case) for case in cases]
    task = Task(target("dawn"), tuple(own), 1.0, 2)
    first_of_binding, first_of_native, *_ = own
    first_of_each = (first_of_binding.key, first_of_native.key)
    assert task.staged == first_of_each
    assert task.unpinned(alone=True) == first_of_each


def test_a_stack_that_raises_as_it_lists_its_cases_is_left_out_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def misspelt(target: Target) -> Space:
        return Space(Case(pattern="per-submt"))  # type: ignore[arg-type]

    monkeypatch.setattr(schedule_module.registry()["vulkan"], "space", misspelt)  # type: ignore[attr-defined]
    tasks, (left_out,) = scheduled([target("dawn"), target("vulkan")], Choice(), plan())
    assert {task.target.stack for task in tasks} == {"dawn"}
    assert left_out.target == "vulkan@Vulkan:GPU"
    assert left_out.case == "all"
    assert isinstance(left_out.reason, str)
    assert "'per-submt'" in left_out.reason
    assert "(test_schedule.py:" in left_out.reason
