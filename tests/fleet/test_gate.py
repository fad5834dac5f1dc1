"""What ``overhead fleet --fail`` passes, and what it does not: exit codes and verdicts on made
nodes.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.cli import main
from overhead.loading.files import read_fingerprint
from overhead.results import Fingerprint, HeaderEntry, MissingStack, Record, encode_entry
from tests.fakes.nodes import STACKS, node_run, write_node

OK, SLOW, UNTESTED = 0, 1, 3
"""Exit codes of ``overhead fleet --fail``."""


def fleet(folder: Path, *, nodes: int = 10, slow: Sequence[int] = (), **slower: Any) -> None:
    """Write two runs of each node, healthy but for those in ``slow``; ``slower`` says what of these
    takes how many times as long.
    """
    for number in range(nodes):
        faults = slower if number in slow else {}
        runs = [node_run(number, run, **faults) for run in range(2)]
        write_node(folder, f"n{number}", *runs)


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
        records = []
        for record in run.records:
            new = edit(record)
            if new is not None:
                records.append(new)
        save(path, msgspec.structs.replace(run, records=records))


def save(path: Path, run: Fingerprint) -> None:
    path.write_bytes(msgspec.json.encode(run))


def refused(record: Record, status: str) -> Record:
    """The record with this status, as a real one: without values, but for two speeds, of which the
    first stands.
    """
    no_value = {} if status == "bimodal" else {"value": None, "low": None, "high": None}
    figures = []
    for figure in record.figures:
        without_value = msgspec.structs.replace(figure, **no_value)
        figures.append(msgspec.structs.replace(without_value, status=status, reason="a fault"))
    return msgspec.structs.replace(record, status=status, reason="a fault", figures=figures)


def impossible(record: Record) -> Record:
    """The record with times of 1e30 ns."""
    figures = []
    for figure in record.figures:
        figures.append(msgspec.structs.replace(figure, value=1e30, low=1e30, high=1e30))
    return msgspec.structs.replace(record, figures=figures)


@dataclass(frozen=True)
class GateAnswer:
    """The exit code with ``--fail``, the nodes by name, and the whole answer as data."""

    exit_code: int
    nodes: dict[str, dict[str, Any]]
    data: dict[str, Any]

    def named(self, verdict: str) -> set[str]:
        """The names of the nodes with this verdict."""
        return {name for name, node in self.nodes.items() if node["verdict"] == verdict}

    @property
    def skipped(self) -> list[str]:
        """The names of the files that do not count."""
        return [Path(path).name for path in self.data["skipped"]]

    @property
    def divided(self) -> list[dict[str, Any]]:
        """The tests by which the first group of nodes is two groups."""
        divided: list[dict[str, Any]] = self.data["groups"][0]["divided"]
        return divided


def gate(folder: Path, capsys: pytest.CaptureFixture[str]) -> GateAnswer:
    capsys.readouterr()
    code = main(["fleet", str(folder), "--fail", "--json"])
    data = json.loads(capsys.readouterr().out)
    nodes = {}
    for group in data["groups"]:
        for node in group["nodes"]:
            nodes[node["name"]] = node
    return GateAnswer(code, nodes, data)


def names(numbers: Iterable[int]) -> set[str]:
    """The names of these nodes."""
    return {f"n{number}" for number in numbers}


def test_healthy_nodes_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet(tmp_path)
    found = gate(tmp_path, capsys)
    assert found.exit_code == OK
    assert found.named("ok") == names(range(10))


@pytest.mark.parametrize("side", ["host", "device"])
@pytest.mark.parametrize("many", [3, 4, 5, 6, 7])
def test_many_slow_nodes_are_two_groups_and_do_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], many: int, side: str
) -> None:
    times_as_slow = 1.5
    fleet(tmp_path, nodes=10, slow=range(many), **{side: times_as_slow})
    found = gate(tmp_path, capsys)
    assert found.exit_code in (SLOW, UNTESTED)
    # Few slow nodes may be judged by the others. Of two groups none tells which is healthy.
    if found.exit_code == UNTESTED:
        (divided,) = (one for one in found.divided if not one["stack"] and one["side"] == side)
        assert set(divided["slower"]) == names(range(many))
        assert divided["low"] < times_as_slow < divided["high"]
        assert found.named("unknown") == found.nodes.keys()


def test_a_stack_that_is_slow_on_half_of_the_nodes_is_two_groups_at_this_stack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, slow=range(5), stacks={"torch": 3.0})
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    (divided,) = found.divided
    assert divided["stack"] == "torch"
    assert divided["side"] == "host"
    for node in found.nodes.values():
        assert node["verdict"] == "partly ok"
        assert "torch (host)" in node["not_judged"]


def test_nodes_that_all_differ_do_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(10):
        # Each node is 15 % slower than the one before.
        runs = [node_run(number, run, host=1.15**number) for run in range(2)]
        write_node(tmp_path, f"n{number}", *runs)
    assert gate(tmp_path, capsys).exit_code == UNTESTED


@pytest.mark.parametrize("status", ["failed", "unverified", "bimodal", "nonlinear"])
@pytest.mark.parametrize("kept", [0, 1], ids=["every record", "every record but one"])
def test_a_node_whose_figures_are_refused_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: str, kept: int
) -> None:
    fleet(tmp_path)
    for run in ("0", "1"):
        path = tmp_path / "n3" / f"{run}.json"
        written = read_fingerprint(path)
        records = written.records[:kept]
        records += [refused(record, status) for record in written.records[kept:]]
        save(path, msgspec.structs.replace(written, records=records, contention=[]))
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert found.named("unknown") == {"n3"}
    assert status in json.dumps(found.nodes["n3"]["not_judged"])


@dataclass(frozen=True)
class Lack:
    """A node lacks the stack ``torch``. ``code``, ``said``: why it is not judged; codes are empty
    where only the file has a reason.
    """

    is_failed: bool = False
    unavailable: Sequence[MissingStack] = ()
    code: str = ""
    said: str = ""


LACKS = {
    "failed": Lack(is_failed=True, code="cases-without-a-figure", said="a fault"),
    "left out": Lack(code="stack-not-measured"),
    "unavailable": Lack(
        unavailable=[MissingStack(stack="torch", reason="no torch here")], said="no torch here"
    ),
}


@pytest.mark.parametrize("lack", LACKS.values(), ids=LACKS)
@pytest.mark.parametrize("runs", [("0", "1"), ("1",)], ids=["in both runs", "in the newest run"])
def test_a_stack_that_a_node_lacks_in_its_newest_run_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lack: Lack, runs: Sequence[str]
) -> None:
    fleet(tmp_path)

    def changed(record: Record) -> Record | None:
        if record.stack != "torch":
            return record
        return refused(record, "failed") if lack.is_failed else None

    edited(tmp_path, "n3", changed, runs)
    for run in runs:
        path = tmp_path / "n3" / f"{run}.json"
        written = read_fingerprint(path)
        others = [one for one in written.contention if one.target.stack != "torch"]
        unavailable = list(lack.unavailable)
        save(path, msgspec.structs.replace(written, unavailable=unavailable, contention=others))
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert found.named("partly ok") == {"n3"}
    assert found.nodes["n3"]["not_judged_codes"]["torch"] == lack.code
    assert lack.said in found.nodes["n3"]["not_judged"]["torch"]


@pytest.mark.parametrize("status", ["failed", "unverified"])
def test_a_node_on_which_one_case_did_not_do_its_work_is_partly_ok_if_the_others_have_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: str
) -> None:
    fleet(tmp_path)

    def changed(record: Record) -> Record:
        is_one_case = record.stack == "torch" and record.params["case"] == 2
        return refused(record, status) if is_one_case else record

    edited(tmp_path, "n3", changed, files=["1"])
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert found.named("partly ok") == {"n3"}
    assert [*found.nodes["n3"]["not_judged"]] == ["torch"]
    assert found.nodes["n3"]["not_judged_codes"] == {"torch": "case-without-its-work"}
    assert "a fault" in found.nodes["n3"]["not_judged"]["torch"]


def test_a_stack_of_half_of_the_nodes_is_judged_among_these(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, slow=[2], stacks={"torch": 3.0})
    odd_numbers = range(1, 10, 2)
    for number in odd_numbers:
        without_stack(tmp_path, f"n{number}", "torch")
    found = gate(tmp_path, capsys)
    assert found.exit_code == SLOW
    assert found.named("slow") == {"n2"}
    assert found.named("partly ok") == names(odd_numbers)


def test_a_stack_that_no_node_has_is_no_fault_of_a_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    for path in tmp_path.glob("*/*.json"):
        run = read_fingerprint(path)
        # A record of a stack beside the usual ones, without figures.
        absent = msgspec.structs.replace(refused(run.records[0], "unavailable"), stack="warp")
        save(path, msgspec.structs.replace(run, records=[*run.records, absent]))
    found = gate(tmp_path, capsys)
    assert found.exit_code == OK
    assert found.named("ok") == found.nodes.keys()


def test_a_stack_of_few_nodes_is_not_judged_on_these(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    for number in range(3, 10):  # three nodes keep it, too few to compare
        without_stack(tmp_path, f"n{number}", "torch")
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert found.named("partly ok") == {"n0", "n1", "n2"}


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
        # One peer is one device alone; the records with 8 are of all devices together.
        alone = [one for one in run.contention if one.peers == 1]
        save(path, msgspec.structs.replace(run, contention=alone))
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert found.named("unknown") == {"n3"}
    codes = [*found.nodes["n3"]["not_judged_codes"].values()]
    assert codes == ["stack-not-measured", "few-figures-of-test"]
    assert "together" in found.nodes["n3"]["not_judged"]


def test_a_node_with_records_of_one_stack_alone_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    for stack in STACKS[1:]:
        without_stack(tmp_path, "n3", stack)
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert found.named("unknown") == {"n3"}
    assert {*STACKS[1:]} <= found.nodes["n3"]["not_judged"].keys()


def leave(folder: Path, left: str) -> None:
    """Leave in the folder of all nodes what a killed run of the node ``dead`` left behind."""
    files = {
        "a journal": ("dead/run.jsonl", journal()),
        "samples": ("dead/run.samples.jsonl.gz", b"{}\n"),
        "a damaged journal": ("dead/a.jsonl", b"{}\n"),
        "a journal beside the folders": ("dead.jsonl", journal()),
    }
    if left == "a link to nothing":
        (folder / "dead").symlink_to(folder / "gone")
        return
    if left != "a journal beside the folders":
        (folder / "dead").mkdir()
    if left != "nothing":
        name, content = files[left]
        (folder / name).write_bytes(content)


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
    leave(tmp_path, left)
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert found.named("unknown") == {"dead"}
    assert found.nodes["dead"]["why"]


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


NEWER, OLDER = "2026-01-01T00:05:00Z", "2025-12-01T00:00:00Z"
"""Dates after and before those of the usual runs."""


def write_unreadable(folder: Path, fault: str, created: str) -> None:
    """Write a run of this date that has no figures that can be read."""
    whole = msgspec.json.encode(node_run(3, 9, host=3.0, created=created))
    contents = {
        "cut off": whole[: len(whole) // 2],
        "no text": b"\x00" * 100,
        "a journal": journal(created),
    }
    (folder / ("9.jsonl" if fault == "a journal" else "9.json")).write_bytes(contents[fault])


@pytest.mark.parametrize(
    ("fault", "created"),
    [
        ("cut off", NEWER),
        ("a journal", NEWER),
        ("no text", NEWER),
        ("no text", OLDER),  # a file without text does not tell its date
    ],
)
def test_old_runs_are_not_judged_in_place_of_newer_ones_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str, created: str
) -> None:
    fleet(tmp_path)
    write_unreadable(tmp_path / "n3", fault, created)
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert found.named("unknown") == {"n3"}


@pytest.mark.parametrize("fault", ["cut off", "a journal"])
def test_an_older_run_that_cannot_be_read_does_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    fleet(tmp_path)
    write_unreadable(tmp_path / "n3", fault, OLDER)
    found = gate(tmp_path, capsys)
    assert found.exit_code == OK
    assert found.named("unknown") == set()


def test_a_slow_node_fails_the_gate_also_if_its_newest_file_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, slow=[3], host=1.8)
    (tmp_path / "n3" / "9.json").write_bytes(b"{")
    found = gate(tmp_path, capsys)
    assert found.exit_code == SLOW
    assert found.named("slow") == {"n3"}
    assert found.skipped == ["9.json"]


def test_a_copy_under_another_name_is_no_other_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    for number in range(5):
        shutil.copytree(tmp_path / "n3", tmp_path / f"of-n3-{number}")
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    # One of the six with the same files counts; it may be any.
    assert len(found.named("unknown")) == 5
    assert found.named("unknown") < {"n3", *(f"of-n3-{number}" for number in range(5))}


def test_six_copies_of_one_file_are_one_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(6):
        save(tmp_path / f"n{number}.json", node_run(3))
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert len(found.nodes) == 6, "each is listed"
    assert not found.named("ok"), "one node has nothing to be compared with"


def test_a_copy_with_another_date_is_no_second_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    slow = node_run(3, 0, host=1.8)
    for name in ("0", "1"):
        (tmp_path / "n3" / f"{name}.json").unlink()
    for number in range(3):
        copy = msgspec.structs.replace(slow, created=f"2026-01-01T00:0{number}:00Z")
        save(tmp_path / "n3" / f"{number}.json", copy)
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert found.named("suspect") == {"n3"}, "only a second run makes it slow"
    assert {*found.skipped} == {"1.json", "2.json"}


@pytest.mark.parametrize("slower", [1.0, 1.8], ids=["healthy", "slow"])
def test_runs_from_the_future_do_not_count_and_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], slower: float
) -> None:
    fleet(tmp_path)
    later = (datetime.now(UTC) + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    no_date = "2026-99-99T00:00:00Z"
    for number, created in enumerate((later, "2099-01-01T00:00:00Z", no_date)):
        late = node_run(3, 5 + number, host=slower, created=created)
        save(tmp_path / "n3" / f"late-{number}.json", late)
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert found.named("unknown") == {"n3"}
    assert {*found.skipped} == {"late-0.json", "late-1.json", "late-2.json"}


def test_times_that_no_run_gives_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    edited(tmp_path, "n3", impossible)
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert found.named("unknown") == {"n3"}
    assert found.skipped == ["0.json", "1.json"]
    assert set(found.data["skipped_codes"].values()) == {"impossible-figure"}


def test_one_time_that_no_run_gives_costs_a_file_its_other_times_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path)
    path = tmp_path / "n3" / "1.json"
    run = read_fingerprint(path)
    first, *others = run.records
    save(path, msgspec.structs.replace(run, records=[impossible(first), *others]))
    found = gate(tmp_path, capsys)
    assert found.exit_code == UNTESTED
    assert found.named("unknown") == {"n3"}
    assert found.skipped == ["1.json"]


def test_two_groups_are_not_seen_in_nodes_that_are_all_slow_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, slow=range(10), host=2.0)
    assert gate(tmp_path, capsys).exit_code == OK, "docs/fleet.md says so"
