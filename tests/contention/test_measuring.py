"""Peers in real processes and threads: what they ran is counted, faults have a reason, and the rest
is measured.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from overhead.contention.measuring import measure_contention
from overhead.contention.placing import processors_of_peers
from overhead.contention.plan import ContentionPlan, cases_of
from overhead.measure.sampling.clock import every_processor
from overhead.probes.base import device_id
from overhead.profiles import profiles, scope_of
from overhead.results import Contention, Target
from overhead.runner.output import Outcome
from overhead.runner.progress import Listener
from overhead.runner.run import measure, request_of
from overhead.runner.schedule import times_planned_seconds
from tests.fakes.plugins import forget_plugins_afterwards
from tests.machine.test_machine import SMI, FakeHost

STACKS = Path(__file__).resolve().parents[1] / "fakes" / "stacks"
SHORT = ContentionPlan(
    numbers=(1, 2),
    sets=2,
    repeats=1,
    long_ns=80_000_000,
    each_ns=0,
    chain_ns=2_000_000,
    short_ns=20_000_000,
)
TWO_DEVICES = """
from overhead.probes import register
from overhead.results import Target
from tests.fakes.stacks.faulty import Faulty

@register
class Pair(Faulty):
    name = "pair"
    def targets(self):
        return [Target(stack="pair", api="CUDA", adapter="A", device=str(n)) for n in range(2)]
"""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_plugins_afterwards(monkeypatch)


def measured(
    out: Path, plan: ContentionPlan, stack: str = "faulty", plugin: Path = STACKS / "faulty.py"
) -> list[Contention]:
    return measured_run(out, plan, stack, plugin).fingerprint.contention


def measured_run(out: Path, plan: ContentionPlan, stack: str, plugin: Path) -> Outcome:
    """A run of the profile ``contention`` with this plan."""
    scope = dataclasses.replace(
        scope_of("contention"), after=functools.partial(measure_contention, plan)
    )
    request = request_of([stack], profile="contention", plugins=[plugin], out=out, scope=scope)
    return measure(request, Listener())


def test_each_way_gives_costs_of_each_number_of_peers(tmp_path: Path) -> None:
    """Beside busy processes (``busy``) one peer works, so it has one cost; ``peers`` counts these
    processes.
    """
    found = measured(tmp_path, dataclasses.replace(SHORT, ways=("processes", "threads", "busy")))
    assert {(one.way, one.peers) for one in found} >= {
        ("processes", 1),
        ("processes", 2),
        ("threads", 1),
        ("threads", 2),
    }
    assert {one.way for one in found if one.way == "busy" and one.peers} == {"busy"}
    assert all((one.value("cost") or 0) > 0 for one in found)
    assert all(len(one.costs) == (1 if one.way == "busy" else one.peers) for one in found)
    shared = [one for one in found if one.way != "busy" and one.peers == 2]
    assert all(one.value("slowdown") and one.value("work") for one in shared)


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("open", "failed"),
        ("unsupported", "unavailable"),
        ("issue", "failed"),
        ("kill", "failed"),
        ("exit", "failed"),
    ],
)
def test_a_case_that_fails_says_why(
    fault: str, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASE_FAULT", fault)
    found = measured(tmp_path, dataclasses.replace(SHORT, ways=("processes",), sets=1))
    assert found
    assert all(one.status == status and one.reason for one in found)


def test_a_peer_that_dies_once_costs_no_number_of_peers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASE_FAULT", "once")
    monkeypatch.setenv("FAULT_FILE", str(tmp_path / "died"))
    found = measured(tmp_path / "out", dataclasses.replace(SHORT, ways=("processes",), sets=1))
    assert (tmp_path / "died").exists()
    free = {one.peers: one for one in found if one.placement == "free"}
    assert sorted(free) == [1, 2]
    assert all(one.value("cost") for one in free.values())


@pytest.mark.parametrize("fault", ["kill", "issue"])
def test_each_number_of_peers_that_a_fault_leaves_out_has_a_reason(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASE_FAULT", fault)
    found = measured(
        tmp_path, dataclasses.replace(SHORT, ways=("processes",), numbers=(1, 2, 3), sets=2)
    )
    assert {one.peers for one in found if one.placement == "free"} == {1, 2, 3}
    assert all(one.reason for one in found)


def test_a_process_a_device_is_compared_with_each_device_alone(tmp_path: Path) -> None:
    plugin = tmp_path / "pair.py"
    plugin.write_text(TWO_DEVICES, encoding="utf-8")
    found = measured(
        tmp_path / "out", dataclasses.replace(SHORT, ways=("devices",), repeats=2), "pair", plugin
    )
    alone = [one for one in found if one.peers == 1]
    together = [one for one in found if one.peers == 2 and one.placement == "free"]
    assert sorted(one.devices for one in alone) == [["0"], ["1"]]
    assert [one.devices for one in together] == [["0", "1"]]
    assert together[0].value("work"), "what both do together, relative to each alone"
    (samples,) = (tmp_path / "out").glob("*.samples.jsonl.gz")
    lines = map(json.loads, gzip.decompress(samples.read_bytes()).splitlines())
    order = [line.get("alone", False) for line in lines if line["type"] == "window"]
    assert order[0], "alone is measured where windows together fail"
    assert order[-1], "windows alone must not all come first: early ones can be slow"


def test_what_does_not_fit_the_time_is_named(tmp_path: Path) -> None:
    plan = dataclasses.replace(SHORT, ways=("threads", "busy"), seconds=0.1)
    fingerprint = measured_run(tmp_path, plan, "faulty", STACKS / "faulty.py").fingerprint
    assert [one.case for one in fingerprint.left_out] == ["all, busy"]
    assert {one.way for one in fingerprint.contention} == {"threads"}


def test_stacks_with_a_compiled_caller_are_measured_from_both() -> None:
    torch = Target(stack="torch", api="CUDA", adapter="A")
    pair = cases_of(torch, twins=True)
    assert [case.caller for case in pair] == ["binding", "native"]
    assert pair[0].params == pair[1].params
    assert cases_of(torch, twins=False) == pair[:1]
    assert len(cases_of(Target(stack="numpy", api="CPU", adapter="CPU"), twins=True)) == 1


TORCH = Target(stack="torch", api="CUDA", adapter="A")


def thread_siblings(of_processor: Mapping[int, str]) -> FakeHost:
    """A host that tells for each processor which ones share its core."""
    path = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    return FakeHost({path.format(number): shared for number, shared in of_processor.items()})


def at_least_two_processors() -> list[int]:
    usable = every_processor()
    if len(usable) < 2:
        pytest.skip("one processor")
    return usable


def test_peers_are_bound_to_cores_of_their_own() -> None:
    usable = at_least_two_processors()
    each_a_core = thread_siblings({number: str(number) for number in usable})
    bound = processors_of_peers("core", [TORCH, TORCH], each_a_core)
    assert bound == [[usable[0]], [usable[1]]]


def test_free_peers_are_bound_to_no_processor() -> None:
    at_least_two_processors()
    assert processors_of_peers("free", [TORCH, TORCH]) == [[], []]


def test_peers_are_not_bound_where_there_are_too_few_cores_or_no_nodes_are_known() -> None:
    usable = at_least_two_processors()
    all_on_one_core = thread_siblings(dict.fromkeys(usable, ",".join(map(str, usable))))
    assert processors_of_peers("core", [TORCH, TORCH], all_on_one_core) is None
    host_without_files = FakeHost()
    assert processors_of_peers("node", [TORCH, TORCH], host_without_files) is None


def test_peers_are_bound_next_to_their_device() -> None:
    usable = at_least_two_processors()
    bus = "0000:3b:00.0"
    uuid = "00112233-4455-6677-8899-aabbccddeeff"
    gpu = device_id(bytes.fromhex(uuid.replace("-", "")))
    target = Target(stack="torch", api="CUDA", adapter="A", device=gpu)
    next_to_bus = {f"/sys/bus/pci/devices/{bus}/local_cpulist": f"{usable[1]}\n"}
    # The tool of the driver writes bus ids with eight digits in front.
    bus_of_gpu = {SMI.format("uuid,pci.bus_id"): f"GPU-{uuid}, 0000{bus}"}
    host = FakeHost(files=next_to_bus, commands=bus_of_gpu)
    assert processors_of_peers("node", [target], host) == [[usable[1]]]


CPU = Target(stack="numpy", api="CPU", adapter="CPU")
SOFTWARE = [
    Target(stack="wgpu", api="Vulkan", adapter="cpu", device=str(number), software=True)
    for number in range(4)
]


def gpus_of_torch(number_of_gpus: int) -> list[Target]:
    """Targets on so many GPUs, of two models in turn."""
    return [
        Target(stack="torch", api="CUDA", adapter="AB"[number % 2], device=str(number // 2))
        for number in range(number_of_gpus)
    ]


@pytest.mark.parametrize(
    ("targets", "times"),
    [
        ([], 1),
        ([CPU, *SOFTWARE, *gpus_of_torch(2), *gpus_of_torch(2)], 1),
        (gpus_of_torch(8), 4),
        ([CPU, *gpus_of_torch(8)], 4),
    ],
    ids=["no target", "the same two GPUs twice", "eight GPUs", "eight GPUs and a CPU"],
)
def test_a_node_gets_the_seconds_that_its_gpus_need(targets: list[Target], times: int) -> None:
    """The profile ``node`` is planned for two GPUs."""
    assert times_planned_seconds(targets, scope_of("node")) == times


def test_the_profile_default_gets_no_more_seconds_for_more_gpus() -> None:
    assert times_planned_seconds(gpus_of_torch(8), scope_of("default")) == 1


def test_a_plan_is_lengthened_in_all_of_its_times() -> None:
    plan = profiles()["node"]
    assert plan.sampling_s == 10
    assert plan.wall_s == 30
    longer = plan.lengthened(4)
    assert longer.sampling_s == 4 * 10
    assert longer.wall_s == 4 * 30
