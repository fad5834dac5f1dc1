"""The column of the met cost in ``overhead show``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from overhead.loading.reduce import load
from overhead.report.brief import brief_blocks
from overhead.results import Figure, Fingerprint
from tests.fakes.runs import Made
from tests.terminal.test_goldens import printed


def shown(run: Fingerprint) -> str:
    return printed(brief_blocks(run))


def test_the_range_over_processes_stands_beside_complete(tmp_path: Path) -> None:
    run = load(Made().write(tmp_path / "run.json"))
    assert "met, " not in shown(run)
    met = Figure(name="met", value=56e3, low=29e3, high=70e3, processes=5)
    first, *others = run.records
    with_met = msgspec.structs.replace(first, figures=[*first.figures, met])
    text = shown(msgspec.structs.replace(run, records=[with_met, *others]))
    heads = next(line for line in text.splitlines() if "complete, " in line)
    assert heads.index("complete, ") < heads.index("met, ") < heads.index("host, ")
    assert "29 to 70 (5" in text
