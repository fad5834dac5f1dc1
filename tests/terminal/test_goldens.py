"""What the commands print holds what it held: blocks, rows, filled columns, tones and numbers,
without the words.

``tests/data/terminal`` has these facts of some made-up answers. After an intended change of what is
shown: ``python -m tests.terminal.test_goldens``. That the renderers leave nothing out is tested
below.
"""

from __future__ import annotations

import functools
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from rich.console import Console

from overhead.blocks.markdown import escaped, markdown
from overhead.blocks.parts import (
    Cell,
    GroupedAdvice,
    Heading,
    Listing,
    Part,
    StatusLine,
    Table,
    Text,
    cell_text,
    without_pictures,
)
from overhead.blocks.terminal import show
from overhead.claims.judging import Judged, judge_runs
from overhead.claims.rules import VERDICTS
from overhead.claims.show import overview_blocks, verdict_blocks
from overhead.comparing import Verdicts, compare
from overhead.comparing.show import comparison_blocks
from overhead.explaining.show import explanation_blocks
from overhead.reading.plain_text import plain
from overhead.report.brief import brief_blocks
from overhead.results import Target
from overhead.timing.show import timing_blocks
from tests.fakes.explanations import decode_explained
from tests.fakes.report import crowded
from tests.fakes.runs import COSTS, Made
from tests.fakes.timings import two_calls
from tests.report.report_page import numbers

GOLDENS = Path(__file__).parents[1] / "data" / "terminal"
WIDTH = 160
NO_WRAP = 4_000
"""Characters a line, so that no text of these answers wraps."""


def printed(blocks: Iterable[Part], width: int = WIDTH) -> str:
    """What a console without colours prints of the blocks; spaces at line ends removed."""
    out = io.StringIO()
    show(blocks, Console(file=out, width=width, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def judged() -> list[Judged]:
    """The first claim of each verdict, judged from a made-up run, and one that its own figures
    refute.
    """
    found = judge_runs([crowded()])
    first_by_verdict = {claim.verdict: claim for claim in reversed(found)}
    firsts = [first_by_verdict[name] for name in VERDICTS if name in first_by_verdict]
    implied = [one for one in found if one.claim.test and one.claim.test.kind == "implied"]
    return [*firsts, implied[0]]


def compare_outcomes() -> Verdicts:
    """Two made-up runs in which one case became twice as slow and one is missing; the adapter's
    name is hostile.
    """
    hostile = Target(
        stack="fake", api="Vulkan", adapter="<script>alert(1)</script>|[x](javascript:1)\x1b[31m"
    )
    with TemporaryDirectory() as folder:
        base = Made(seed=1, target=hostile).write(Path(folder) / "a.json")
        costs = {"small": COSTS["small"], "middle": 2 * COSTS["middle"]}
        new = Made(seed=2, target=hostile, costs=costs).write(Path(folder) / "b.json")
        return compare(base, new, 5)


ANSWERS: dict[str, Callable[[], Iterable[Part]]] = {
    "show": lambda: brief_blocks(crowded()),
    "compare": lambda: comparison_blocks(compare_outcomes()),
    "claims": lambda: overview_blocks(judged()),
    "verdicts": lambda: verdict_blocks(judged()),
    "explain": lambda: explanation_blocks(decode_explained()),
    "time": lambda: timing_blocks(two_calls()),
}


@functools.cache
def blocks_of(name: str) -> tuple[Part, ...]:
    return tuple(without_pictures(ANSWERS[name]()))


def facts(block: Part) -> dict[str, Any]:
    """What a block holds: how much of it, what is good or bad, and its numbers."""
    match block:
        case Table():
            return facts_of_table(block)
        case Listing():
            items = [sorted_numbers(f"{title} {detail}") for title, detail in block.items]
            return {"kind": block.kind, "numbers": items}
        case GroupedAdvice():
            items = []
            for group in block.groups:
                for advice in (*group.first, *group.more):
                    items.append(sorted_numbers(f"{advice.title} {advice.detail}"))
            return {"kind": block.kind, "numbers": items}
        case StatusLine():
            return {"kind": block.kind, "tone": block.tone, "details": len(block.details)}
        case Text():
            paragraphs = sorted(sorted_numbers(paragraph) for paragraph in block.paragraphs)
            return {"kind": block.kind, "folded": bool(block.folded), "numbers": paragraphs}
        case _:
            return {"kind": block.kind}


def sorted_numbers(text: str) -> str:
    """The numbers of a text in one order, since another wording may move them."""
    return " ".join(sorted(numbers(text)))


def facts_of_table(table: Table) -> dict[str, Any]:
    """How many cells of each column are filled, how many cells have each tone, and the numbers of
    each row.
    """
    filled = [0] * len(table.columns)
    tones: Counter[str] = Counter()
    rows = []
    for row in table.rows:
        for i, cell in enumerate(row):
            if cell_text(cell):
                filled[i] += 1
            if isinstance(cell, Cell) and cell.tone:
                tones[cell.tone] += 1
        numbers_of_row: list[str] = []
        for i in table.numeric:
            numbers_of_row += numbers(cell_text(row[i]))
        rows.append(" ".join(numbers_of_row))
    return {
        "kind": table.kind,
        "filled": filled,
        "tones": dict(sorted(tones.items())),
        "numbers": rows,
    }


def held(name: str) -> str:
    """The facts of an answer, one line a block, except that a table has a line for each row."""
    lines: list[Any] = []
    for block in blocks_of(name):
        of_block = facts(block)
        rows = of_block.pop("numbers", []) if isinstance(block, Table) else []
        lines += [of_block, *rows]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_holds_the_recorded_facts(name: str) -> None:
    assert held(name) == (GOLDENS / f"{name}.jsonl").read_text(encoding="utf-8")


def texts_of_advice(block: GroupedAdvice) -> Iterator[str]:
    for group in block.groups:
        yield group.reader
        for advice in (*group.first, *group.more):
            yield advice.title
            yield advice.detail


def shown_texts(block: Part) -> Iterator[str]:
    """Every text of a block that a terminal shows."""
    match block:
        case Heading():
            yield block.text
        case Text():
            if not block.folded:
                yield from block.paragraphs
        case Listing():
            for title, detail in block.items:
                yield title
                yield detail
        case GroupedAdvice():
            yield from texts_of_advice(block)
        case StatusLine():
            yield block.head
            yield block.text
            for line in block.details:
                yield from [line] if isinstance(line, str) else shown_texts(line)
        case Table():
            yield from shown_texts_of_table(block)


def shown_texts_of_table(table: Table) -> Iterator[str]:
    """Every text of a table that a terminal shows; of a table of prose only the cells."""
    if table.folded and not table.prose:
        return
    if not table.prose:
        yield table.caption
        yield from table.meanings.values()
        if table.rows:
            yield from table.columns
    for row in table.rows[: table.most or None]:
        yield from map(cell_text, row)


def all_shown_texts(name: str) -> list[str]:
    texts: list[str] = []
    for block in blocks_of(name):
        texts += shown_texts(block)
    return texts


@pytest.mark.parametrize("name", ANSWERS)
def test_a_terminal_prints_every_text_of_the_blocks(name: str) -> None:
    text = printed(blocks_of(name), NO_WRAP)
    wanted = [plain(shown, 2000) for shown in all_shown_texts(name)]
    assert len(wanted) > 5
    assert [shown for shown in wanted if shown not in text] == []


@pytest.mark.parametrize("name", ["compare", "verdicts", "claims"])
def test_markdown_has_every_text_of_the_blocks(name: str) -> None:
    text = markdown(blocks_of(name))
    wanted = [escaped(shown) for shown in all_shown_texts(name)]
    assert [shown for shown in wanted if shown not in text] == []


@pytest.mark.parametrize("name", ANSWERS)
def test_no_renderer_writes_control_characters_or_markup_of_a_file(name: str) -> None:
    assert "\x1b" not in printed(blocks_of(name))
    text = markdown(blocks_of(name))
    assert "\x1b" not in text
    assert "<script" not in text.replace("\\<", "")


if __name__ == "__main__":
    for name in ANSWERS:
        (GOLDENS / f"{name}.jsonl").write_text(held(name), encoding="utf-8")
