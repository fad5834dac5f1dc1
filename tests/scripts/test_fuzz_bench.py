"""Test the fuzzer: a failing check is counted."""

from __future__ import annotations

import io
import json
from argparse import Namespace
from pathlib import Path

import pytest
from hypothesis import strategies as st
from rich.console import Console

from scripts.bench import fuzz as fuzzing


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_fuzzer_counts_examples_and_prints_each_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(folder: Path, data: st.DataObject) -> None:
        assert data.draw(st.integers(0, 9)) < 5, "a lost reason"

    def passes(folder: Path, data: st.DataObject) -> None:
        assert folder.is_dir()

    monkeypatch.setattr(fuzzing, "FUZZED", {"good": passes, "bad": fails})
    console = Console(file=io.StringIO(), width=200)
    assert not fuzzing.fuzz(Namespace(examples=20, json=True), console)
    text = printed(console)
    assert "a lost reason" in text
    rows = json.loads(text.splitlines()[-1])
    assert rows["good"]["failures"] == 0
    assert rows["bad"]["failures"] == 1
    assert rows["bad"]["examples"] > 1
