"""What ``overhead fleet --fail`` passes, and what it does not: exit codes and verdicts on made
nodes.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.cli import main
from overhead.loading.files import read_fingerprint
from overhead.results import Fingerprint, HeaderEntry, MissingStack, Record, encode_entry
from tests.fakes.nodes import STACKS, node_run, write_node

OK, SLOW, WRONG, UNTESTED = 0, 1, 2, 3


def fleet(folder: Path, *, nodes: int = 10, slow: Sequence[int] = (), **slower: Any) -> None:
    """Write two runs of each node, healthy but for those in ``slow``."""
    for number in range(nodes):
        own = slower if number in slow else {}
        write_node(folder, f"n{number}", *(node_run(number, run, **own) for run in range(2)))


def edited(
    folder: Path,
    node: str,
    edit: Callable[[Record], Record | None],
    files: Sequence[str] = ("0", "1"),
) -> None:
    """Change or leave out the records of these runs of a node."""
    for name in files:
        path = folder / node / f"{name}.json"
        run = read_fingerprint(path)
        records = [new for record in run.records if (new := edit(record)) is not None]
        save(path, msgspec.structs.replace(run, records=records))


def save(path: Path, run: Fingerprint) -> None:
    path.write_bytes(msgspec.json.encode(run))


def refused(record: Record, status: str) -> Record:
    """The record with this status, as a real one: without values, but for two speeds, of which the
    first stands.
    """
    kept = {} if status == "bimodal" else {"value": None, "low": None, "high": None}
    figures = [
        msgspec.structs.replace(one, status=status, reason="a fault", **kept)
        for one in record.figures
    ]
    return msgspec.structs.replace(record, status=status, reason="a fault", figures=figures)


def gate(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, dict[str, Any]], dict[str, Any]]:
    """The exit code with ``--fail``, the nodes by name, and the whole answer."""
    capsys.readouterr()
    code = main(["fleet", str(folder), "--fail", "--json"])
    found = json.loads(capsys.readouterr().out)
    return code, {node["name"]: node for group in found["groups"] for node in group["nodes"]}, found


def verdicts(nodes: dict[str, dict[str, Any]], verdict: str) -> set[str]:
    return {name for name, node in nodes.items() if node["verdict"] == verdict}


def test_healthy_nodes_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet(tmp_path)
    code, nodes, _ = gate(tmp_path, capsys)
    assert code == OK
    assert verdicts(nodes, "ok") == {f"n{number}" for number in range(10)}


@pytest.mark.parametrize("slower", [{"host": 1.5}, {"device": 1.5}])
@pytest.mark.parametrize("many", [3, 4, 5, 6, 7])
def test_many_slow_nodes_are_two_groups_and_do_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], many: int, slower: dict[str, float]
) -> None:
    faults: dict[str, Any] = {**slower}
    fleet(tmp_path, slow=range(many), **faults)
    code, nodes, found = gate(tmp_path, capsys)
    assert code in (SLOW, UNTESTED)
    if code == UNTESTED:
        (side,) = slower
        divided = next(
            one
            for one in found["groups"][0]["divided"]
            if (one["stack"], one["side"]) == ("", side)
        )
        assert set(divided["slower"]) == {f"n{number}" for number in range(many)}
        assert divided["low"] < 1.5 < divided["high"]
        assert verdicts(nodes, "unknown") == nodes.keys()


def test_a_stack_that_is_slow_on_half_of_the_nodes_is_two_groups_at_this_stack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, slow=range(5), stacks={"torch": 3.0})
    code, nodes, found = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert [(one["stack"], one["side"]) for one in found["groups"][0]["divided"]] == [
        ("torch", "host")
    ]
    assert all(
        node["verdict"] == "partly ok" and "torch (host)" in node["not_judged"]
        for node in nodes.values()
    )


def test_nodes_that_all_differ_do_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(10):
        write_node(
            tmp_path, f"n{number}", *(node_run(number, run, host=1.15**number) for run in range(2))
        )
    assert gate(tmp_path, capsys)[0] == UNTESTED


@pytest.mark.parametrize("status", ["failed", "unverified", "bimodal", "nonlinear"])
@pytest.mark.parametrize("kept", [0, 1])
def test_a_node_whose_figures_are_refused_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: str, kept: int
) -> None:
    fleet(tmp_path)
    for run in ("0", "1"):
        left = iter([True] * kept)
        edited(
            tmp_path,
            "n3",
            lambda r, left=left: r if next(left, False) else refused(r, status),  # type: ignore[misc]
            [run],
        )
        path = tmp_path / "n3" / f"{run}.json"
        save(path, msgspec.structs.replace(read_fingerprint(path), contention=[]))
    code, nodes, _ = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert verdicts(nodes, "unknown") == {"n3"}
    assert status in json.dumps(nodes["n3"]["not_judged"])


@pytest.mark.parametrize("change", ["failed", "left out", "unavailable"])
@pytest.mark.parametrize("runs", [("0", "1"), ("1",)])
def test_a_stack_that_a_node_lacks_in_its_newest_run_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, runs: Sequence[str]
) -> None:
    fleet(tmp_path)
    edited(
        tmp_path,
        "n3",
        lambda r: r if r.stack != "torch" else refused(r, "failed") if change == "failed" else None,
        runs,
    )
    for run in runs:
        path = tmp_path / "n3" / f"{run}.json"
        found = read_fingerprint(path)
        missing = (
            [MissingStack(stack="torch", reason="no torch here")] if change == "unavailable" else []
        )
        others = [one for one in found.contention if one.target.stack != "torch"]
        save(path, msgspec.structs.replace(found, unavailable=missing, contention=others))
    code, nodes, _ = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert verdicts(nodes, "partly ok") == {"n3"}
    codes = {
        "failed": "cases-without-a-figure",
        "left out": "stack-not-measured",
        "unavailable": "",
    }
    assert nodes["n3"]["not_judged_codes"]["torch"] == codes[change]
    of_file = {"failed": "a fault", "left out": "", "unavailable": "no torch here"}
    assert of_file[change] in nodes["n3"]["not_judged"]["torch"]


@pytest.mark.parametrize("status", ["failed", "unverified"])
def test_a_node_on_which_one_case_did_not_do_its_work_is_partly_ok_if_the_others_have_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: str
) -> None:
    fleet(tmp_path)
    edited(
        tmp_path,
        "n3",
        lambda r: refused(r, status) if (r.stack, r.params["case"]) == ("torch", 2) else r,
        ["1"],
    )
    code, nodes, _ = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert verdicts(nodes, "partly ok") == {"n3"}
    assert [*nodes["n3"]["not_judged"]] == ["torch"]
    assert nodes["n3"]["not_judged_codes"] == {"torch": "case-without-its-work"}
    assert "a fault" in nodes["n3"]["not_judged"]["torch"]


def test_a_stack_of_half_of_the_nodes_is_judged_among_these(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, slow=[2], stacks={"torch": 3.0})
    for number in range(1, 10, 2):
        without_stack(tmp_path, f"n{number}", "torch")
    code, nodes, _ = gate(tmp_path, capsys)
    assert code == SLOW
    assert verdicts(nodes, "slow") == {"n2"}
    assert verdicts(nodes, "partly ok") == {f"n{number}" for number in range(1, 10, 2)}


def test_a_stack_that_no_node_has_is_no_fault_of_a_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    for path in tmp_path.glob("*/*.json"):
        run = read_fingerprint(path)
        absent = msgspec.structs.replace(refused(run.records[0], "unavailable"), stack="warp")
        save(path, msgspec.structs.replace(run, records=[*run.records, absent]))
    code, nodes, _ = gate(tmp_path, capsys)
    assert code == OK
    assert verdicts(nodes, "ok") == nodes.keys()


def test_a_stack_of_few_nodes_is_not_judged_on_these(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    for number in range(3, 10):
        without_stack(tmp_path, f"n{number}", "torch")
    code, nodes, _ = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert verdicts(nodes, "partly ok") == {"n0", "n1", "n2"}


def without_stack(folder: Path, node: str, stack: str) -> None:
    for path in (folder / node).glob("*.json"):
        run = read_fingerprint(path)
        records = [record for record in run.records if record.stack != stack]
        contention = [one for one in run.contention if one.target.stack != stack]
        save(path, msgspec.structs.replace(run, records=records, contention=contention))


def test_a_node_without_figures_of_all_devices_together_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    for path in (tmp_path / "n3").glob("*.json"):
        run = read_fingerprint(path)
        save(
            path,
            msgspec.structs.replace(
                run, contention=[one for one in run.contention if one.peers == 1]
            ),
        )
    code, nodes, _ = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert verdicts(nodes, "unknown") == {"n3"}
    assert [*nodes["n3"]["not_judged_codes"].values()] == [
        "stack-not-measured",
        "few-figures-of-test",
    ]
    assert "together" in nodes["n3"]["not_judged"]


def test_a_node_with_records_of_one_stack_alone_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    for stack in STACKS[1:]:
        without_stack(tmp_path, "n3", stack)
    code, nodes, _ = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert verdicts(nodes, "unknown") == {"n3"}
    assert {*STACKS[1:]} <= nodes["n3"]["not_judged"].keys()


@pytest.mark.parametrize(
    "left",
    [
        "nothing",
        "a journal",
        "samples",
        "a damaged journal",
        "a journal beside the folders",
        pytest.param(
            "a link to nothing",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX"),
        ),
    ],
)
def test_a_node_that_was_killed_is_counted_and_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], left: str
) -> None:
    fleet(tmp_path)
    (tmp_path / "dead").mkdir()
    names = {
        "a journal": "dead/run.jsonl",
        "samples": "dead/run.samples.jsonl.gz",
        "a damaged journal": "dead/a.jsonl",
    }
    if name := names.get(left):
        (tmp_path / name).write_bytes(journal() if left == "a journal" else b"{}\n")
    elif left == "a link to nothing":
        (tmp_path / "dead").rmdir()
        (tmp_path / "dead").symlink_to(tmp_path / "gone")
    elif left != "nothing":
        (tmp_path / "dead").rmdir()
        (tmp_path / "dead.jsonl").write_bytes(journal())
    code, nodes, _ = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert verdicts(nodes, "unknown") == {"dead"}
    assert nodes["dead"]["why"]


def journal(created: str = "2026-01-01T00:05:00Z") -> bytes:
    run = node_run(3)
    return encode_entry(
        HeaderEntry(
            schema_version=run.schema_version,
            method_version=run.method_version,
            created=created,
            profile="node",
            machine=run.machine,
        )
    )


@pytest.mark.parametrize("fault", ["cut off", "no text", "a journal"])
@pytest.mark.parametrize("newer", [True, False])
def test_old_runs_are_not_judged_in_place_of_newer_ones_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str, newer: bool
) -> None:
    fleet(tmp_path)
    created = "2026-01-01T00:05:00Z" if newer else "2025-12-01T00:00:00Z"
    whole = msgspec.json.encode(node_run(3, 9, host=3.0, created=created))
    contents = {
        "cut off": whole[: len(whole) // 2],
        "no text": b"\x00" * 100,
        "a journal": journal(created),
    }
    (tmp_path / "n3" / ("9.jsonl" if fault == "a journal" else "9.json")).write_bytes(
        contents[fault]
    )
    code, nodes, _ = gate(tmp_path, capsys)
    expected = UNTESTED if newer or fault == "no text" else OK
    assert code == expected
    assert verdicts(nodes, "unknown") == ({"n3"} if expected else set())


def test_a_slow_node_fails_the_gate_also_if_its_newest_file_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, slow=[3], host=1.8)
    (tmp_path / "n3" / "9.json").write_bytes(b"{")
    code, nodes, found = gate(tmp_path, capsys)
    assert code == SLOW
    assert verdicts(nodes, "slow") == {"n3"}
    assert [Path(path).name for path in found["skipped"]] == ["9.json"]


def test_a_copy_under_another_name_is_no_other_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    for number in range(5):
        shutil.copytree(tmp_path / "n3", tmp_path / f"of-n3-{number}")
    code, nodes, _ = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert len(verdicts(nodes, "unknown")) == 5
    assert verdicts(nodes, "unknown") < {"n3", *(f"of-n3-{number}" for number in range(5))}


def test_six_copies_of_one_file_are_one_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(6):
        save(tmp_path / f"n{number}.json", node_run(3))
    code, nodes, _ = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert len(nodes) == 6
    assert not verdicts(nodes, "ok")


def test_a_copy_with_another_date_is_no_second_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    slow = node_run(3, 0, host=1.8)
    for name in ("0", "1"):
        (tmp_path / "n3" / f"{name}.json").unlink()
    for number in range(3):
        save(
            tmp_path / "n3" / f"{number}.json",
            msgspec.structs.replace(slow, created=f"2026-01-01T00:0{number}:00Z"),
        )
    code, nodes, found = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert verdicts(nodes, "suspect") == {"n3"}
    assert {Path(path).name for path in found["skipped"]} == {"1.json", "2.json"}


@pytest.mark.parametrize("slower", [1.0, 1.8])
def test_runs_from_the_future_do_not_count_and_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], slower: float
) -> None:
    fleet(tmp_path)
    later = (datetime.now(UTC) + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for number, created in enumerate((later, "2099-01-01T00:00:00Z", "2026-99-99T00:00:00Z")):
        save(
            tmp_path / "n3" / f"late-{number}.json",
            node_run(3, 5 + number, host=slower, created=created),
        )
    code, nodes, found = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert verdicts(nodes, "unknown") == {"n3"}
    assert {Path(path).name for path in found["skipped"]} == {
        "late-0.json",
        "late-1.json",
        "late-2.json",
    }


def test_times_that_no_run_gives_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)

    def huge(record: Record) -> Record:
        figures = [
            msgspec.structs.replace(one, value=1e30, low=1e30, high=1e30) for one in record.figures
        ]
        return msgspec.structs.replace(record, figures=figures)

    edited(tmp_path, "n3", huge)
    code, nodes, found = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert verdicts(nodes, "unknown") == {"n3"}
    assert [Path(path).name for path in found["skipped"]] == ["0.json", "1.json"]
    assert set(found["skipped_codes"].values()) == {"impossible-figure"}


def test_one_time_that_no_run_gives_costs_a_file_its_other_times_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    path = tmp_path / "n3" / "1.json"
    run = read_fingerprint(path)
    first, *others = run.records
    figures = [
        msgspec.structs.replace(one, value=1e30, low=1e30, high=1e30) for one in first.figures
    ]
    save(
        path,
        msgspec.structs.replace(
            run, records=[msgspec.structs.replace(first, figures=figures), *others]
        ),
    )
    code, nodes, found = gate(tmp_path, capsys)
    assert code == UNTESTED
    assert verdicts(nodes, "unknown") == {"n3"}
    assert [Path(path).name for path in found["skipped"]] == ["1.json"]


def test_two_groups_are_not_seen_in_nodes_that_are_all_slow_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, slow=range(10), host=2.0)
    assert gate(tmp_path, capsys)[0] == OK, "docs/fleet.md says so"
