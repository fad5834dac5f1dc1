"""Hosts by ssh: a program ``ssh`` on PATH runs the commands of the hosts on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import psutil
import pytest

from overhead.cli import main
from overhead.loading.files import read_fingerprint
from tests.cli.test_missing_extra import hide
from tests.fleet.nodes import BOTH, EXAMPLE, OVERHEAD, collected, program

SSH = """#!/bin/sh
for command; do host=$at; at=$command; done
case "$host" in
    down) echo "ssh: connect to host down port 22: Connection refused" >&2; exit 255 ;;
    hostile) cat "$SENT" ;;
    endless) echo "the files of overhead:"; cat /dev/zero ;;
    *) echo "welcome to $host"; FAULT=${host#*@} PATH="$HOSTS:$PATH" exec /bin/sh -c "$command" ;;
esac
"""
pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the stand-ins for programs are shell scripts"
)


@pytest.fixture(autouse=True)
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh, overhead = (
        program(tmp_path / "here" / "ssh", SSH),
        program(tmp_path / "hosts" / "overhead", OVERHEAD),
    )
    monkeypatch.setenv("PATH", f"{ssh.parent}{os.pathsep}{os.environ['PATH']}")
    for name, path in (
        ("HOSTS", overhead.parent),
        ("EXAMPLE", EXAMPLE),
        ("SENT", tmp_path / "sent"),
    ):
        monkeypatch.setenv(name, str(path))


def words_for(folder: Path, *hosts: str) -> list[str]:
    """The arguments of ``overhead run`` for these lines of a file."""
    (folder / "hosts.txt").write_text("\n".join(hosts), "utf-8")
    return ["--hosts", str(folder / "hosts.txt"), "--out", str(folder / "out")]


def test_every_host_is_measured_and_those_without_files_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words_for(
        tmp_path,
        "# the rack",
        "n1.example",
        "",
        "me@n2  # by name",
        "down",
        "hangs",
        "fails",
        "lacks",
    )
    words += ["-p", "torch", "--software", "--require", "torch", "--node-limit", "1"]
    code, files, reasons = collected(capsys, *words)
    assert code == 1, "not every node measured what is required"
    complete = dict.fromkeys(["n1.example", "n2", "lacks"], BOTH)
    assert files == {**complete, "hangs": {"words.jsonl"}, "down": set(), "fails": set()}
    for name, words_of_reason in {
        "down": "Connection refused",
        "hangs": "node-not-done",
        "fails": "nothing to measure",
        "lacks": "no figure",
    }.items():
        assert words_of_reason in reasons.pop(name)
    assert reasons == {}
    assert read_fingerprint(tmp_path / "out" / "n1.example" / "2026-01-01T000000Z.json").records
    passed = (tmp_path / "out" / "n2" / "words.jsonl").read_text().split()
    assert {"--profile=node", "--probe=torch", "--software", "--require=torch"} <= {*passed}


def test_a_command_of_the_shell_can_call_overhead_and_no_file_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*words_for(tmp_path, "n1", "down"), "--profile", "quick", "--remote-command"]
    assert collected(capsys, *words, "no-such-program")[0] == 1
    assert collected(capsys, *words, "FAULT='it is' && cd / && overhead")[0] == 0
    written = tmp_path / "out" / "n1" / "words.jsonl"
    assert "--profile=quick" in written.read_text()
    written.write_text("measured before")
    assert collected(capsys, *words, "overhead")[0] == 1
    assert written.read_text() == "measured before"


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.size, found.linkname = kind, size, "/etc/passwd"
    return found


HOSTILE = {
    "outside": [member("../evil.json")],
    "absolute": [member("/tmp/evil.json")],
    "symbolic link": [member("evil.json", tarfile.SYMTYPE)],
    "hard link": [member("evil.json", tarfile.LNKTYPE)],
    "pipe": [member("evil.json", tarfile.FIFOTYPE)],
    "program": [member("evil.sh")],
    "too large": [member("evil.json", size=1 << 40)],
    "no archive": [],
    "too many": [member(f"evil{number}.json") for number in range(100)],
}


@pytest.mark.parametrize("kind", [*HOSTILE, "endless"])
def test_nothing_of_a_hostile_archive_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    with tarfile.open(tmp_path / "sent", mode="w") as archive:
        for one in [member("good.json"), *HOSTILE.get(kind, [])]:
            archive.addfile(one)
    content = (tmp_path / "sent").read_bytes()
    (tmp_path / "sent").write_bytes(
        b"the files of overhead:\n" + (b"x" * 2000 if kind == "no archive" else content)
    )
    words = words_for(tmp_path, "endless" if kind == "endless" else "hostile", "n1")
    before = {path for path in tmp_path.rglob("*") if "out" not in path.parts}
    code, files, reasons = collected(capsys, *words)
    assert code == 0
    assert [name for name in files if name not in reasons] == ["n1"]
    assert {path.parent.name for path in (tmp_path / "out").glob("*/*")} == {"n1"}
    assert {path.name for path in (tmp_path / "out").iterdir()} - {"n1"} == reasons.keys(), (
        "an empty folder for each"
    )
    assert {path for path in tmp_path.rglob("*") if "out" not in path.parts} == before


def test_an_interrupt_keeps_what_arrived_and_ends_the_rest(tmp_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    command = [sys.executable, "-m", "overhead", "run", *words_for(tmp_path, "n1", "hangs")]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while (
        len(list(tmp_path.glob("out/n1/*"))) < len(BOTH)
        or len(psutil.Process(run.pid).children(True)) < 2
    ):
        assert run.poll() is None
        time.sleep(0.05)
    started = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=30)[0]
    assert run.returncode == 130
    assert "interrupted" in said
    assert {path.name for path in tmp_path.glob("out/n1/*")} == BOTH
    assert not psutil.wait_procs(started, timeout=10)[1]


@pytest.mark.parametrize(
    "words",
    [
        "--hosts hosts.txt --ray --out out",
        "--hosts hosts.txt",
        "--hosts hosts.txt --out out.json",
        "--hosts hosts.txt --out out --plugin mine.py",
        "--hosts hosts.txt --out out --ray-address auto",
        "--hosts missing.txt --out out",
        "--hosts option.txt --out out",
        "--hosts twice.txt --out out",
        "--ray",
        "--ray --out out",
        "--remote-command overhead",
    ],
)
def test_wrong_use_or_no_ray_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    hide("ray", monkeypatch)
    monkeypatch.chdir(tmp_path)
    texts = {"hosts": "n1", "option": "n1\n-oProxyCommand=touch${IFS}evil", "twice": "a@n1\nb@n1"}
    for name, text in texts.items():
        Path(f"{name}.txt").write_text(text)
    assert main(["run", *words.split()]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not Path("out").exists()
