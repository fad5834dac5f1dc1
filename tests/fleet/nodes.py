"""A stand-in for overhead on a node, and what a command collected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overhead.cli import main

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


def collected(
    capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, dict[str, set[str]], dict[str, str]]:
    """The exit code of ``overhead run``; by node the names of its files; and what was wrong, which
    was printed too.

    What was wrong is a code, or a text that the program of a node wrote.
    """
    code = main(["run", "--json", *words])
    said = capsys.readouterr()
    found = json.loads(said.out)
    wrong = {name: node for name, node in found.items() if node["reason"]}
    assert all(f"{name}: {node['reason']}" in said.err for name, node in wrong.items())
    reasons = {name: node["reason_code"] or node["reason"] for name, node in wrong.items()}
    return (
        code,
        {name: {Path(path).name for path in node["files"]} for name, node in found.items()},
        reasons,
    )
