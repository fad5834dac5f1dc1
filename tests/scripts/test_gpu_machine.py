"""The parts of a reference machine: what they name exists, and a limit ends a part, which keeps what it has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from overhead.decode.decoders import DECODERS
from scripts.agreement import gpu_machine
from scripts.agreement.gpu_machine import PARTS, ROOT, MachinePart


def test_every_part_names_what_exists() -> None:
    text = (ROOT / "scripts" / "explain_programs.py").read_text()
    for name, part in PARTS.items():
        first = part.arguments[0]
        assert first == "-m" or (ROOT / first).is_file(), name
        if name.startswith("explain-"):
            assert f"def {name.removeprefix('explain-')}(" in text
        if "--workload" in part.arguments:
            assert part.arguments[part.arguments.index("--workload") + 1] in DECODERS


@pytest.mark.parametrize(("text", "code"), [("print('done')", 0), ("raise SystemExit(3)", 3)])
def test_a_part_leaves_a_log_and_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int
) -> None:
    monkeypatch.setitem(PARTS, "quick", MachinePart(("-c", text), 60))
    assert gpu_machine.main(["--out", str(tmp_path), "--part", "quick"]) == (1 if code else 0)
    assert (tmp_path / "quick.log").read_text() == ("done\n" if not code else "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_part_at_its_limit_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import time\ntry:\n time.sleep(60)\nexcept KeyboardInterrupt:\n print('kept')"
    monkeypatch.setitem(PARTS, "quick", MachinePart(("-c", text), 2))
    assert gpu_machine.perform("quick", tmp_path)[0] == 0
    assert (tmp_path / "quick.log").read_text() == "kept\n"
