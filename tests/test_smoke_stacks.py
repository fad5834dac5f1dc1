"""The first-contact script: what it prints, and that a case that dies or hangs costs itself alone."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "smoke_stacks.py"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("smoke_stacks", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_stack_is_run_case_by_case() -> None:
    command = [sys.executable, str(SCRIPT), "numpy", "--case", "step per-submit binding"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.count("  ok  ") == 2
    assert "T(100)=" in done.stdout


def test_an_unknown_stack_is_named() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "nosuch"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no such stack: nosuch" in done.stderr


def test_cases_that_die_or_hang_cost_themselves_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    smoke = script()
    child = tmp_path / "child.py"
    child.write_text(
        "import json, os, sys, time\n"
        "first = int(sys.argv[sys.argv.index('--child') + 1])\n"
        "for index, act in enumerate(('ok', 'die', 'ok', 'hang', 'ok')):\n"
        "    if index < first: continue\n"
        "    print(json.dumps({'event': 'start', 'index': index, 'key': f'case {index}'}), flush=True)\n"
        "    if act == 'die': os.abort()\n"
        "    if act == 'hang': time.sleep(600)\n"
        "    print(json.dumps({'event': 'line', 'text': f'ran {index}', 'bad': False}), flush=True)\n"
    )
    monkeypatch.setattr(smoke, "__file__", str(child))
    began = time.monotonic()
    assert smoke.smoke("any", dict(os.environ), "", 2.0) == 2
    told = capsys.readouterr().out
    assert [f"ran {index}" in told for index in range(5)] == [True, False, True, False, True]
    assert "CRASH case 1: the process ended with" in told
    assert "CRASH case 3: no word for 2 s" in told
    assert time.monotonic() - began < 60
