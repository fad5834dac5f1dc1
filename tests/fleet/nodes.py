"""A stand-in for overhead on a node, for a cluster whose nodes run on this machine, and what a
command collected.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from overhead.cli import main
from overhead.errors import UsageError
from overhead.fleet.collecting import END_S, Measure, Sent, run_program

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "example-fingerprint.json"
BOTH = {"2026-01-01T000000Z.json", "words.jsonl"}
OVERHEAD = """#!/bin/sh
for out; do :; done
mkdir "$out/node"
echo "$@" >"$out/node/words.jsonl"
echo "figures of the run"
case "$FAULT" in
    slow) sleep 2 ;;
    hangs) sleep 600 ;;
    fails) echo "nothing to measure" >&2; rm "$out/node/words.jsonl"; exit 2 ;;
    lacks) echo "required stack torch gave no figure" >&2; code=1 ;;
esac
cp "$EXAMPLE" "$out/node/2026-01-01T000000Z.json"
exit ${code:-0}
"""
"""Writes its arguments and a fingerprint, unless the variable ``FAULT`` says otherwise."""


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return path


@contextlib.contextmanager
def nodes_here(
    names: str, script: str, limit_s: float, sent: bytes = b""
) -> Iterator[Mapping[str, Measure]]:
    """Like ``ray_nodes``, but each node is a shell on this machine. ``names``: of the nodes, with
    spaces between them; each name is the ``FAULT`` of its node.

    The node ``down`` is dead, ``hostile`` sends the bytes ``sent``, and ``endless`` sends zeros
    without an end.
    """

    async def measure(name: str) -> Sent:
        if name == "down":
            raise UsageError("dead: the node was lost")
        if name == "hostile":
            return Sent(0, sent, b"")
        command = f"FAULT={name}; export FAULT; {script}"
        if name == "endless":
            command = "echo 'the files of overhead:'; cat /dev/zero"
        return await run_program(["sh", "-c", command], limit_s + END_S)

    yield {name: functools.partial(measure, name) for name in names.split()}


@dataclass(frozen=True)
class CollectedNodes:
    """What ``overhead run`` collected. ``files``: by node the names of its files. ``reasons``: by
    node what was wrong, as a code or a text that the program of the node wrote.
    """

    exit_code: int
    files: dict[str, set[str]]
    reasons: dict[str, str]


def collected(capsys: pytest.CaptureFixture[str], *words: str) -> CollectedNodes:
    """What ``overhead run`` collected with these arguments; what was wrong was printed too."""
    code = main(["run", "--json", *words])
    said = capsys.readouterr()
    files = {}
    reasons = {}
    for name, node in json.loads(said.out).items():
        files[name] = {Path(path).name for path in node["files"]}
        if node["reason"]:
            assert f"{name}: {node['reason']}" in said.err
            reasons[name] = node["reason_code"] or node["reason"]
    return CollectedNodes(code, files, reasons)
