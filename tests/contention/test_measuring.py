"""Peers in real processes and threads: what they ran is counted, faults have a reason, and the rest
is measured.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import json
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
    assert together[0].value("work")
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


def test_peers_are_bound_to_cores_of_their_own() -> None:
    usable = every_processor()
    if len(usable) < 2:
        pytest.skip("one processor")
    siblings = {
        f"/sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": str(n) for n in usable
    }
    targets = [Target(stack="torch", api="CUDA", adapter="A")] * 2
    assert processors_of_peers("free", targets) == [[], []]
    assert processors_of_peers("core", targets, FakeHost(siblings)) == [[usable[0]], [usable[1]]]
    whole = {name: ",".join(map(str, usable)) for name in siblings}
    assert processors_of_peers("core", targets, FakeHost(whole)) is None
    assert processors_of_peers("node", targets, FakeHost()) is None


def test_peers_are_bound_next_to_their_device() -> None:
    usable, bus = every_processor(), "0000:3b:00.0"
    if len(usable) < 2:
        pytest.skip("one processor")
    uuid = "00112233-4455-6677-8899-aabbccddeeff"
    target = Target(
        stack="torch",
        api="CUDA",
        adapter="A",
        device=device_id(bytes.fromhex(uuid.replace("-", ""))),
    )
    files = {f"/sys/bus/pci/devices/{bus}/local_cpulist": f"{usable[1]}\n"}
    gpus = {SMI.format("uuid,pci.bus_id"): f"GPU-{uuid}, 0000{bus}"}
    assert processors_of_peers("node", [target], FakeHost(files, gpus)) == [[usable[1]]]


def test_a_node_gets_the_seconds_that_its_gpus_need() -> None:
    node, cpu = scope_of("node"), Target(stack="numpy", api="CPU", adapter="CPU")
    gpus = []
    for number in range(4):
        for model in ("A", "B"):
            gpus.append(Target(stack="torch", api="CUDA", adapter=model, device=str(number)))
    software = [
        Target(stack="wgpu", api="Vulkan", adapter="cpu", device=str(n), software=True)
        for n in range(4)
    ]
    assert times_planned_seconds([], node) == 1
    assert times_planned_seconds([cpu, *software, *gpus[:2], *gpus[:2]], node) == 1
    assert times_planned_seconds(gpus, node) == 4
    assert times_planned_seconds([cpu, *gpus], node) == 4
    assert times_planned_seconds(gpus, scope_of("default")) == 1
    plan = profiles()["node"]
    assert (plan.sampling_s, plan.wall_s) == (10, 30)
    longer = plan.lengthened(4)
    assert (longer.sampling_s, longer.wall_s) == (40, 120)
