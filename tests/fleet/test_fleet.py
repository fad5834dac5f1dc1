"""``overhead fleet`` on made nodes: what is slow is named, and what cannot be told is not called
slow.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from overhead.cli import main
from overhead.results import Gpu, Machine
from tests.fakes.nodes import node_run, write_node
from tests.fleet import power

OTHER = Machine(
    id="0123456789ab", cpu="Fake CPU", cores=2, memory_gib=8, gpus=[Gpu(name="Another GPU")]
)


def fleet(
    folder: Path, nodes: int = 8, runs: int = 2, changed: dict[int, dict[str, Any]] | None = None
) -> None:
    """Write the files of nodes, all healthy but for ``changed``: by the number of a node, what
    takes how many times as long, or other fields of its runs.
    """
    for number in range(nodes):
        changes = (changed or {}).get(number, {})
        files = [node_run(number, run, **changes) for run in range(runs)]
        write_node(folder, f"n{number}", *files)


@dataclass(frozen=True)
class Judged:
    """The answer of the command as data, and the nodes by name."""

    data: dict[str, Any]
    nodes: dict[str, dict[str, Any]]

    @property
    def verdicts(self) -> dict[str, str]:
        """By node the verdict."""
        return {name: node["verdict"] for name, node in self.nodes.items()}

    @property
    def skipped(self) -> list[str]:
        """The names of the files that do not count."""
        return [Path(path).name for path in self.data["skipped"]]


def judged(folder: Path, capsys: pytest.CaptureFixture[str]) -> Judged:
    capsys.readouterr()
    assert main(["fleet", str(folder), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    nodes = {}
    for group in data["groups"]:
        for node in group["nodes"]:
            nodes[node["name"]] = node
    return Judged(data, nodes)


def slow_at(node: dict[str, Any]) -> list[tuple[str, str]]:
    """The stack and the side of each test in which the node is slow."""
    return [(test["stack"], test["side"]) for test in node["slow"]]


def test_a_slow_host_a_slow_device_and_a_slow_stack_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed: dict[int, dict[str, Any]] = {
        3: {"host": 1.6},
        5: {"device": 1.3},
        7: {"stacks": {"torch": 1.6}},
    }
    fleet(tmp_path, nodes=12, changed=changed)
    found = judged(tmp_path, capsys)
    verdicts = found.verdicts
    assert [verdicts.pop(name) for name in ("n3", "n5", "n7")] == ["slow"] * 3
    assert set(verdicts.values()) == {"ok"}
    assert slow_at(found.nodes["n3"]) == [("", "host")]
    assert slow_at(found.nodes["n5"]) == [("", "device")]
    assert slow_at(found.nodes["n7"]) == [("torch", "host")]


def test_a_slow_node_has_an_interval_and_the_chance_of_a_healthy_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, nodes=12, changed={3: {"host": 1.6}})
    found = judged(tmp_path, capsys)
    (host,) = found.nodes["n3"]["slow"]
    assert host["low"] < 0.6 < host["high"], "60 % slower"
    assert host["chance"] < 0.001, "of a healthy node to be as slow"
    one_healthy_node_in = 1_000
    assert found.data["false_alarms"] == pytest.approx(12 / one_healthy_node_in)
    # The smallest slowdown that is found: the made noise is 1 %, so 30 % is plenty.
    assert 0 < found.nodes["n0"]["smallest"]["device"] < 0.3


def test_a_run_beyond_a_limit_makes_a_suspect_and_names_the_command_for_a_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, runs=1, changed={2: {"host": 1.7}, 4: {"host": 1.7}})
    assert main(["fleet", str(tmp_path), "--fail"]) == 3
    printed = capsys.readouterr().out.replace("\n", "")
    assert f"overhead run --profile node --out {tmp_path / 'n2'}" in printed
    shutil.copy(tmp_path / "n2" / "0.json", tmp_path / "n2" / "copy.json")
    found = judged(tmp_path, capsys)
    assert found.verdicts["n2"] == "suspect", "a copy of its run is no second one"
    assert found.verdicts["n4"] == "suspect"
    assert found.verdicts["n0"] == "ok"
    assert found.skipped == ["copy.json"]


def test_a_second_run_decides_on_a_suspect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, runs=1)
    write_node(tmp_path, "n2", node_run(2, run=0, host=1.7), node_run(2, run=1, host=1.7))
    shutil.copy(tmp_path / "n2" / "0.json", tmp_path / "n2" / "copy.json")
    write_node(tmp_path, "n4", node_run(4, run=0, host=1.7), node_run(4, run=1), node_run(4, run=2))
    found = judged(tmp_path, capsys)
    # Both runs of n2 are slow; of n4 the two later ones are healthy.
    assert found.verdicts["n2"] == "slow"
    assert found.verdicts["n4"] == "ok"
    assert found.skipped == ["copy.json"], "a copy of a run is no third one"
    assert main(["fleet", str(tmp_path), "--fail"]) == 1


@pytest.mark.parametrize(
    ("version", "groups"), [("kernel", 1), ("os", 1), ("overhead", 1), ("torch", 12)]
)
def test_nodes_may_differ_in_what_does_not_make_them_another_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str, groups: int
) -> None:
    changed = {number: {"versions": {version: f"6.{number}"}} for number in range(12)}
    fleet(tmp_path, nodes=12, changed=changed)
    found = judged(tmp_path, capsys)
    assert len(found.data["groups"]) == groups
    # In a group of its own each node has nothing to be compared with.
    assert set(found.verdicts.values()) == {"ok" if groups == 1 else "unknown"}


def test_a_healthy_fleet_passes_the_gate(tmp_path: Path) -> None:
    fleet(tmp_path)
    assert main(["fleet", str(tmp_path), "--fail"]) == 0


def test_too_few_nodes_or_none_do_not_pass_the_gate(tmp_path: Path) -> None:
    fleet(tmp_path / "few", nodes=4, changed={1: {"host": 3.0}})
    assert main(["fleet", str(tmp_path / "few"), "--fail"]) == 3
    assert main(["fleet", str(tmp_path / "absent"), "--fail"]) == 2


@pytest.mark.parametrize("what", ["host", "device"])
def test_nine_slow_nodes_of_ten_do_not_pass_and_the_fast_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    fleet(tmp_path, nodes=10, changed={number: {what: 1.7} for number in range(1, 10)})
    found = judged(tmp_path, capsys)
    (divided,) = found.data["groups"][0]["divided"]
    assert divided["stack"] == ""
    assert divided["side"] == what
    assert divided["faster"] == ["n0"]
    assert len(divided["slower"]) == 9
    assert divided["low"] < 1.7 < divided["high"]
    assert "slow" not in found.verdicts.values()
    assert main(["fleet", str(tmp_path), "--fail"]) == 3


def test_nodes_of_another_machine_or_version_are_apart_and_bad_files_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(
        tmp_path, nodes=12, changed={number: {"versions": {"torch": "2.1"}} for number in range(12)}
    )
    for number in (0, 1):
        old_torch: dict[str, Any] = {"host": 2.0, "versions": {"torch": "2.0"}}
        files = [node_run(number, run, **old_torch) for run in (0, 1)]
        write_node(tmp_path, f"n{number}", *files)
    (tmp_path / "alone.json").write_bytes(b"{}")
    (tmp_path / "n5" / "bad.json").write_bytes(b"{")
    write_node(tmp_path, "other", node_run(20, machine=OTHER))
    found = judged(tmp_path, capsys)
    unknown = {name for name, verdict in found.verdicts.items() if verdict == "unknown"}
    with_bad_files = {"alone", "n5"}
    assert unknown == {"n0", "n1", "other", *with_bad_files}
    assert set(found.verdicts.values()) == {"unknown", "ok"}
    kinds = [group["kind"] for group in found.data["groups"] if group["kind"]]
    assert [kind["versions"] for kind in kinds].count({"torch": "2.0"}) == 1
    assert {*found.skipped} == {"alone.json", "bad.json"}
    assert main(["fleet", str(tmp_path), "--markdown"]) == 0
    assert "bad.json" in capsys.readouterr().out


def test_the_settings_that_set_a_slow_node_apart_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = {"governor": "performance", "gpu_mhz_max": ["1980"], "smt": "off"}
    changed: dict[int, dict[str, Any]] = {}
    for number in range(10):
        changed[number] = {"volatile": {**usual, "load_1m": number / 10}}
    apart_settings = {"governor": "powersave", "load_1m": 90.0}
    changed[6] = {"volatile": {**usual, **apart_settings}, "host": 1.8}
    fleet(tmp_path, nodes=10, changed=changed)
    node = judged(tmp_path, capsys).nodes["n6"]
    apart = [(setting["name"], setting["own"]) for setting in node["settings_apart"]]
    assert apart == [("governor", "powersave"), ("load_1m", "90.0")]
    assert len(node["settings"]) == len(apart), "each of them has a sentence"


COMMITTED_POWER = json.loads(power.COMMITTED.read_text("utf-8"))


@pytest.mark.parametrize("second", ["same", "other"])
@pytest.mark.parametrize("kind", power.RUNS)
def test_the_committed_errors_and_power_of_made_nodes_keep_the_promises(
    kind: str, second: str
) -> None:
    rows = COMMITTED_POWER[kind][second]
    for row in rows.values():
        assert row["false"] <= 1, "of 1,000 healthy nodes"
        assert row["stated"] >= 0.95, "another fleet finds the smallest that is stated"
        assert row["untold"]["sides"] <= 5, "of 1,000 healthy fleets"
        assert max(row["many pass"].values()) <= 0.01, "share of fleets with many slow nodes"
    largest_fleet = rows[str(max(power.SIZES))]
    for what in ("host", "device", "stack"):
        assert largest_fleet[what]["all"] >= 0.95, "share of the slow nodes that are found"


def test_made_nodes_of_committed_runs_give_few_false_alarms_and_the_committed_power() -> None:
    pool = power.Pool.of("H200")
    committed = COMMITTED_POWER["H200"]["other"]["30"]["host"]
    assert power.power(pool, 30, "other", "host") == committed
    assert power.false_alarms(pool, 100, "same", healthy=2_000) <= 2
    assert power.passing(pool, 10, "same", 0.4, fleets=50) == 0.0
    assert power.stated(pool, 10, "same", fleets=100) >= 0.9
