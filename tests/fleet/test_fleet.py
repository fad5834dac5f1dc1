"""``overhead fleet`` on made nodes: what is slow is named, and what cannot be told is not called
slow.
"""

from __future__ import annotations

import json
import shutil
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
    """Write the files of nodes, all healthy but for the changes."""
    for number in range(nodes):
        more = (changed or {}).get(number, {})
        write_node(folder, f"n{number}", *(node_run(number, run, **more) for run in range(runs)))


def judged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The answer of the command, and the nodes by name."""
    capsys.readouterr()
    assert main(["fleet", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return found, {node["name"]: node for group in found["groups"] for node in group["nodes"]}


def test_a_slow_host_a_slow_device_and_a_slow_stack_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(
        tmp_path, 12, changed={3: {"host": 1.6}, 5: {"device": 1.3}, 7: {"stacks": {"torch": 1.6}}}
    )
    found, nodes = judged(tmp_path, capsys)
    slow = {
        name: [(one["stack"], one["side"]) for one in node["slow"]]
        for name, node in nodes.items()
        if node["verdict"] == "slow"
    }
    assert slow == {"n3": [("", "host")], "n5": [("", "device")], "n7": [("torch", "host")]}
    assert {node["verdict"] for name, node in nodes.items() if name not in slow} == {"ok"}
    (host,) = nodes["n3"]["slow"]
    assert host["low"] < 0.6 < host["high"]
    assert host["chance"] < 0.001
    assert found["false_alarms"] == pytest.approx(0.012)
    assert 0 < nodes["n0"]["smallest"]["device"] < 0.3


def test_a_run_beyond_a_limit_makes_a_suspect_that_a_second_run_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, runs=1, changed={2: {"host": 1.7}, 4: {"host": 1.7}})
    assert main(["fleet", str(tmp_path), "--fail"]) == 3
    assert (
        f"overhead run --profile node --out {tmp_path / 'n2'}"
        in capsys.readouterr().out.replace("\n", "")
    )
    shutil.copy(tmp_path / "n2" / "0.json", tmp_path / "n2" / "copy.json")
    found, nodes = judged(tmp_path, capsys)
    assert [nodes[name]["verdict"] for name in ("n2", "n4", "n0")] == ["suspect", "suspect", "ok"]
    assert [Path(path).name for path in found["skipped"]] == ["copy.json"]

    write_node(tmp_path, "n2", node_run(2, 0, host=1.7), node_run(2, 1, host=1.7))
    write_node(tmp_path, "n4", node_run(4, 0, host=1.7), node_run(4, 1), node_run(4, 2))
    _, nodes = judged(tmp_path, capsys)
    assert [nodes[name]["verdict"] for name in ("n2", "n4")] == ["slow", "ok"]
    assert main(["fleet", str(tmp_path), "--fail"]) == 1


@pytest.mark.parametrize(
    ("version", "groups"), [("kernel", 1), ("os", 1), ("overhead", 1), ("torch", 12)]
)
def test_nodes_may_differ_in_what_does_not_make_them_another_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str, groups: int
) -> None:
    fleet(
        tmp_path,
        12,
        changed={number: {"versions": {version: f"6.{number}"}} for number in range(12)},
    )
    found, nodes = judged(tmp_path, capsys)
    assert len(found["groups"]) == groups
    assert {node["verdict"] for node in nodes.values()} == {"ok" if groups == 1 else "unknown"}


def test_a_healthy_fleet_passes_the_gate_and_too_few_nodes_do_not(tmp_path: Path) -> None:
    fleet(tmp_path)
    assert main(["fleet", str(tmp_path), "--fail"]) == 0
    fleet(tmp_path / "few", 4, changed={1: {"host": 3.0}})
    assert main(["fleet", str(tmp_path / "few"), "--fail"]) == 3
    assert main(["fleet", str(tmp_path / "absent"), "--fail"]) == 2


@pytest.mark.parametrize("what", ["host", "device"])
def test_nine_slow_nodes_of_ten_do_not_pass_and_the_fast_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    fleet(tmp_path, 10, changed={number: {what: 1.7} for number in range(1, 10)})
    found, nodes = judged(tmp_path, capsys)
    (divided,) = found["groups"][0]["divided"]
    assert (divided["stack"], divided["side"]) == ("", what)
    assert (divided["faster"], len(divided["slower"])) == (["n0"], 9)
    assert divided["low"] < 1.7 < divided["high"]
    assert "slow" not in {node["verdict"] for node in nodes.values()}
    assert main(["fleet", str(tmp_path), "--fail"]) == 3


def test_nodes_of_another_machine_or_version_are_apart_and_bad_files_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, 12, changed={number: {"versions": {"torch": "2.1"}} for number in range(12)})
    for number in (0, 1):
        write_node(
            tmp_path,
            f"n{number}",
            *(node_run(number, r, host=2.0, versions={"torch": "2.0"}) for r in (0, 1)),
        )
    (tmp_path / "alone.json").write_bytes(b"{}")
    (tmp_path / "n5" / "bad.json").write_bytes(b"{")
    write_node(tmp_path, "other", node_run(20, machine=OTHER))
    found, nodes = judged(tmp_path, capsys)
    assert {name for name, node in nodes.items() if node["verdict"] == "unknown"} == {
        "n0", "n1", "other", "alone", "n5",
    }  # fmt: skip
    assert {node["verdict"] for node in nodes.values()} == {"unknown", "ok"}
    kinds = [group["kind"] for group in found["groups"] if group["kind"]]
    assert [kind["versions"] for kind in kinds].count({"torch": "2.0"}) == 1
    assert {Path(path).name for path in found["skipped"]} == {"alone.json", "bad.json"}
    assert main(["fleet", str(tmp_path), "--markdown"]) == 0
    assert "bad.json" in capsys.readouterr().out


def test_the_settings_that_set_a_slow_node_apart_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = {"governor": "performance", "gpu_mhz_max": ["1980"], "smt": "off"}
    settings: dict[int, dict[str, Any]] = {
        n: {"volatile": {**usual, "load_1m": n / 10}} for n in range(10)
    }
    settings[6] = {"volatile": {**usual, "governor": "powersave", "load_1m": 90.0}, "host": 1.8}
    fleet(tmp_path, 10, changed=settings)
    _, nodes = judged(tmp_path, capsys)
    apart = [(one["name"], one["own"]) for one in nodes["n6"]["settings_apart"]]
    assert apart == [("governor", "powersave"), ("load_1m", "90.0")]
    assert len(nodes["n6"]["settings"]) == len(apart)


def test_made_nodes_of_committed_runs_give_few_false_alarms_and_the_committed_power() -> None:
    committed = json.loads(power.COMMITTED.read_text("utf-8"))
    for kind in power.RUNS:
        for rows in (committed[kind]["same"], committed[kind]["other"]):
            assert all(row["false"] <= 1 for row in rows.values())
            assert all(row["stated"] >= 0.95 for row in rows.values()), (
                "another fleet finds the smallest that is stated"
            )
            assert all(row["untold"]["sides"] <= 5 for row in rows.values()), (
                "of 1,000 healthy fleets"
            )
            assert all(
                share <= 0.01 for row in rows.values() for share in row["many pass"].values()
            )
            largest = rows[str(max(power.SIZES))]
            assert all(largest[what]["all"] >= 0.95 for what in ("host", "device", "stack"))
    pool = power.Pool.of("H200")
    assert power.power(pool, 30, "other", "host") == committed["H200"]["other"]["30"]["host"]
    assert power.false_alarms(pool, 100, "same", healthy=2_000) <= 2
    assert power.passing(pool, 10, "same", 0.4, fleets=50) == 0.0
    assert power.stated(pool, 10, "same", fleets=100) >= 0.9
