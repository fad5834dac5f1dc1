"""Colours in a terminal: they come from the fact that a presenter judged, and no wording changes
them.
"""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from overhead.blocks.parts import Cell, Part, StatusLine, Table, Tone
from overhead.blocks.terminal import show
from overhead.checking.findings import CheckFinding, CheckRow
from overhead.checking.show import row_blocks
from overhead.comparing.show import comparison_blocks
from overhead.words import comparing as words
from tests.terminal.test_goldens import compare_outcomes

CODES: dict[str, Tone] = {"31": "bad", "32": "good", "33": "unsure"}
"""How a terminal is told of a colour."""
PIECE = re.compile(r"\x1b\[(?:\d;)?(3[123])m([^\x1b]*)")


def coloured(*blocks: Part) -> dict[str, Tone]:
    """The texts that a terminal colours, and the tone of each."""
    out = io.StringIO()
    show(blocks, Console(file=out, width=160, color_system="standard", force_terminal=True))
    tones = {}
    for code, text in PIECE.findall(out.getvalue()):
        if text.strip():
            tones[text.strip()] = CODES[code]
    return tones


@pytest.mark.parametrize("tone", ["bad", "good", "unsure"])
def test_a_cell_and_a_status_have_the_colour_of_their_tone_whatever_they_say(tone: Tone) -> None:
    reworded = Cell("words of another year", tone=tone)
    table = Table("", ["what", "how"], [["ok", reworded], ["bad", "slower"]])
    assert coloured(table) == {"words of another year": tone}
    assert coloured(StatusLine("failed", "ok")) == {}
    inner = StatusLine("so so", "", tone=tone)
    assert coloured(StatusLine("fine", "", [inner])) == {"so so": tone}


def test_a_reworded_verdict_keeps_its_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = compare_outcomes()
    before = coloured(*comparison_blocks(outcomes))
    assert "slower" in [case.verdict for case in outcomes.cases if case.ratio]
    monkeypatch.setitem(words._AS_PRINTED, "slower", "takes longer")
    after = coloured(*comparison_blocks(outcomes))
    assert before
    assert sorted(after.values()) == sorted(before.values())
    assert any("takes longer" in text for text in after)


def test_a_check_is_coloured_by_its_result_and_by_the_level_of_its_findings() -> None:
    findings = [CheckFinding("warning", "build", "odd"), CheckFinding("error", "run", "no")]
    failed = CheckRow("the case", "failed", findings=findings)
    opened = CheckRow("the case", "opened")
    assert sorted(coloured(*row_blocks(failed, set())).values()) == ["bad", "bad", "unsure"]
    assert list(coloured(*row_blocks(opened, set())).values()) == ["good"]
