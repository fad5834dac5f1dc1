"""Nodes of a stand-in for a cluster: what they send is checked and saved, and what is wrong is
named.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import psutil
import pytest

from overhead.cli import main
from overhead.fleet import ray_nodes
from overhead.loading.files import read_fingerprint
from tests.cli.test_missing_extra import hide
from tests.fleet.nodes import BOTH, EXAMPLE, OVERHEAD, collected, nodes_here, program

ROOT = Path(__file__).resolve().parents[2]
RUN_WITH_NODES = """
import sys
from overhead.cli import main
from overhead.fleet import ray_nodes
from tests.fleet.nodes import nodes_here
ray_nodes.ray_nodes = nodes_here
sys.exit(main(sys.argv[1:]))
"""
SSH = """#!/bin/sh
for command; do host=$at; at=$command; done
[ "$host" = down ] && echo "ssh: connect to host down port 22: Connection refused" >&2 && exit 255
PATH="$HOSTS:$PATH" exec /bin/sh -c "$command"
"""
OVERHEAD_TO_A_FILE = """#!/bin/sh
for out; do :; done
echo "figures of the run"
cp "$EXAMPLE" "$out"
echo "$@" >"${out%.json}.words.jsonl"
"""
pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the stand-ins for programs are shell scripts"
)


@pytest.fixture(autouse=True)
def overhead_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overhead = program(tmp_path / "bin" / "overhead", OVERHEAD)
    monkeypatch.setenv("PATH", f"{overhead.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("EXAMPLE", str(EXAMPLE))
    monkeypatch.setattr(ray_nodes, "ray_nodes", nodes_here)


def words_for(out: Path, nodes: str) -> list[str]:
    """The arguments of ``overhead run`` for these nodes."""
    return ["--ray", "--ray-address", nodes, "--remote-command", "overhead", "--out", str(out)]


def test_every_node_is_measured_and_those_without_files_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Each name is the fault of its node.
    words = words_for(tmp_path / "out", "n1 n2 down hangs fails lacks")
    words += ["-p", "torch", "--software", "--require", "torch", "--node-limit", "1"]
    found = collected(capsys, *words)
    assert found.exit_code == 1, "not every node measured what is required"
    complete = dict.fromkeys(["n1", "n2", "lacks"], BOTH)
    assert found.files == {**complete, "hangs": {"words.jsonl"}, "down": set(), "fails": set()}
    assert found.reasons.keys() == {"down", "hangs", "fails", "lacks"}
    assert "the node was lost" in found.reasons["down"]
    assert found.reasons["hangs"] == "node-not-done"
    assert "nothing to measure" in found.reasons["fails"]
    assert "no figure" in found.reasons["lacks"]
    assert read_fingerprint(tmp_path / "out" / "n1" / "2026-01-01T000000Z.json").records


def test_a_node_gets_the_options_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words_for(tmp_path / "out", "n1")
    collected(capsys, *words, "-p", "torch", "--software", "--require", "torch")
    passed = (tmp_path / "out" / "n1" / "words.jsonl").read_text().split()
    assert {"--profile=node", "--probe=torch", "--software", "--require=torch"} <= {*passed}


def test_a_command_of_the_shell_can_call_overhead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*words_for(tmp_path / "out", "n1 down"), "--profile", "quick", "--remote-command"]
    assert collected(capsys, *words, "no-such-program").exit_code == 1
    assert collected(capsys, *words, "FAULT='it is' && cd / && overhead").exit_code == 0
    assert "--profile=quick" in (tmp_path / "out" / "n1" / "words.jsonl").read_text()


def test_no_file_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "out" / "n1" / "words.jsonl"
    written.parent.mkdir(parents=True)
    written.write_text("measured before")
    assert collected(capsys, *words_for(tmp_path / "out", "n1")).exit_code == 1
    assert written.read_text() == "measured before"


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type = kind
    found.size = size
    found.linkname = "/etc/passwd"
    return found


HOSTILE = {
    "outside": [member("../evil.json")],
    "absolute": [member("/tmp/evil.json")],
    "symbolic link": [member("evil.json", tarfile.SYMTYPE)],
    "hard link": [member("evil.json", tarfile.LNKTYPE)],
    "pipe": [member("evil.json", tarfile.FIFOTYPE)],
    "program": [member("evil.sh")],
    "too large": [member("evil.json", size=1 << 40)],
    "too many": [member(f"evil{number}.json") for number in range(100)],
}


def hostile_archive(folder: Path, kind: str) -> bytes:
    """What a hostile node sends: a good file first, then what must not be written."""
    if kind == "no archive":
        return b"x" * 2000
    with tarfile.open(folder / "sent", mode="w") as archive:
        for each in [member("good.json"), *HOSTILE.get(kind, [])]:
            archive.addfile(each)
    content = (folder / "sent").read_bytes()
    (folder / "sent").unlink()
    return content


@pytest.mark.parametrize("kind", [*HOSTILE, "no archive", "endless"])
def test_nothing_of_a_hostile_archive_is_written(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    sent = b"the files of overhead:\n" + hostile_archive(tmp_path, kind)
    monkeypatch.setattr(ray_nodes, "ray_nodes", functools.partial(nodes_here, sent=sent))
    bad_node = "endless" if kind == "endless" else "hostile"
    before = {path for path in tmp_path.rglob("*") if "out" not in path.parts}
    found = collected(capsys, *words_for(tmp_path / "out", f"{bad_node} n1"))
    assert found.exit_code == 0
    assert found.reasons.keys() == {bad_node}
    assert found.files == {bad_node: set(), "n1": BOTH}
    assert {path.parent.name for path in (tmp_path / "out").glob("*/*")} == {"n1"}
    folders = {path.name for path in (tmp_path / "out").iterdir()}
    assert folders == {bad_node, "n1"}, "an empty folder for the node without files"
    assert {path for path in tmp_path.rglob("*") if "out" not in path.parts} == before


def test_an_interrupt_keeps_what_arrived_and_ends_the_rest(tmp_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    command = [
        sys.executable,
        "-c",
        RUN_WITH_NODES,
        "run",
        *words_for(tmp_path / "out", "n1 hangs"),
    ]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    program_of_run = psutil.Process(run.pid)
    # Until both files of n1 have their names (one that is being written has another).
    while {path.name for path in tmp_path.glob("out/n1/*")} != BOTH or len(
        program_of_run.children(recursive=True)
    ) < 2:
        assert run.poll() is None
        time.sleep(0.05)
    started = program_of_run.children(recursive=True)
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=30)[0]
    interrupted = 128 + signal.SIGINT
    assert run.returncode == interrupted
    assert "interrupted" in said
    assert {path.name for path in tmp_path.glob("out/n1/*")} == BOTH
    _, still_alive = psutil.wait_procs(started, timeout=10)
    assert not still_alive


@pytest.mark.parametrize(
    "words",
    [
        "--ray",
        "--ray --out out.json",
        "--ray --out out --plugin mine.py",
        "--ray --out out --node-limit 0",
        "--ray --out out",
        "--remote-command overhead",
        "--ray-address auto",
    ],
)
def test_wrong_use_or_no_ray_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    monkeypatch.undo()  # the real cluster, which needs Ray
    hide("ray", monkeypatch)
    monkeypatch.chdir(tmp_path)
    wrong_use = 2
    assert main(["run", *words.split()]) == wrong_use
    assert capsys.readouterr().err.count("\n") == 1
    assert not Path("out").exists()


def test_the_documented_lines_for_ssh_give_each_host_a_folder_and_a_dead_one_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "fleet.md").read_text("utf-8")
    after_ssh = page.partition("**ssh.**")[2]
    documented = re.search(r"((?:    .+\n)+)", after_ssh)
    assert documented is not None
    program(tmp_path / "bin" / "ssh", SSH)
    overhead = program(tmp_path / "hosts" / "overhead", OVERHEAD_TO_A_FILE)
    monkeypatch.setenv("HOSTS", str(overhead.parent))
    (tmp_path / "HOSTS").write_text("n1\nme@n2\ndown\n")
    done = subprocess.run(
        ["sh", "-c", documented.group(1)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    folder = tmp_path / "DIR"
    assert {path.name for path in folder.iterdir()} == {"n1", "me@n2", "down"}, done.stderr
    assert not list((folder / "down").iterdir())
    for host in ("n1", "me@n2"):
        (run,) = (folder / host).glob("*.json")
        assert read_fingerprint(run).records
        (words,) = (folder / host).glob("*.words.jsonl")
        assert words.read_text().startswith("run --profile node --out ")
