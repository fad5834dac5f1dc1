"""Tables in terminals of any width: each column is whole or named, over everything that the commands print."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from rich.cells import cell_len

from overhead.blocks.parts import Part, Table, cell_text, column_name, without_pictures
from overhead.blocks.terminal import columns_shown
from overhead.claims.judging import judge
from overhead.claims.show import overview_blocks
from overhead.comparing import compare
from overhead.comparing.show import comparison_blocks
from overhead.explain.show import explanation_blocks, timing_blocks
from overhead.fleet.judging import judge_fleet
from overhead.fleet.show import fleet_blocks
from overhead.loading.files import read_fingerprint
from overhead.reading.plain_text import plain
from overhead.report.brief import brief_blocks, end_blocks
from overhead.words.blocks import hidden_columns, more_rows, named_column
from tests.fakes.explanations import decode_explained
from tests.fakes.nodes import node_run, write_node
from tests.fakes.timings import two_calls
from tests.terminal.test_goldens import printed

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "reports" / "data"
WIDTHS = [60, 80, 100, 120]


FEW = ("nvidia-h100-all", "nvidia-h100-contention-processes", "nvidia-h100-contention-threads",
       "nvidia-h100-x4-contention-devices", "nvidia-h200-chromium", "nvidia-h200-decode-0.5b")  # fmt: skip
"""Runs with each kind of table."""


def _of_runs(*, every: bool) -> Iterator[Part]:
    for path in sorted(DATA.rglob("*.json")):
        if every or path.stem in FEW:
            run = read_fingerprint(path)
            yield from brief_blocks(run, all_cases=every)
            if every:
                yield from brief_blocks(run)
                yield from end_blocks(run)


def _of_others() -> Iterator[Part]:
    pair = ROOT / "docs" / "examples" / "compare"
    yield from comparison_blocks(compare(pair / "numpy-1.26.json", pair / "numpy-2.4.json"))
    yield from comparison_blocks(compare(DATA / "nvidia-h100.json", DATA / "nvidia-h200.json"))
    yield from overview_blocks(judge([DATA / f"{name}.json" for name in FEW]))
    yield from explanation_blocks(decode_explained())
    yield from timing_blocks(two_calls())
    with TemporaryDirectory() as folder:
        for number in range(12):
            changed = {"host": 1.6} if number == 3 else {}
            write_node(Path(folder), f"n{number}", *(node_run(number, run, **changed) for run in range(2)))  # type: ignore[arg-type]
        yield from fleet_blocks(judge_fleet(Path(folder)))


@functools.cache
def tables(*, every: bool) -> list[Table]:
    """The tables of some runs and of each other command, or with ``every`` those of all committed runs."""
    blocks = _of_runs(every=True) if every else itertools.chain(_of_runs(every=False), _of_others())
    found = [block for block in without_pictures(blocks) if isinstance(block, Table)]
    return [table for table in found if not table.prose and not table.folded]


def hidden_names(table: Table, kept: list[int]) -> list[str]:
    """How a sentence names the columns that are not among these."""
    names = [plain(column_name(heading)) for heading in table.columns]
    return [named_column(name, i) for i, name in enumerate(names) if i not in kept]


def shown(table: Table, width: int) -> tuple[str, list[int], list[str]]:
    """What the terminal prints of a table, the columns that it shows, and the words of its head."""
    text, kept = printed([table], width), columns_shown(table, width)
    head = text.split("\u2500")[0].replace(table.caption, "", 1).split() if "\u2500" in text else []
    return text, kept, head


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_column_is_whole_or_named_and_no_line_is_too_wide(every: bool, width: int) -> None:
    assert len(tables(every=every)) > 20
    for table in tables(every=every):
        text, kept, head = shown(table, width)
        assert 0 in kept
        hidden = hidden_names(table, kept)
        said_hidden = hidden_columns(hidden) if hidden else ""
        assert said_hidden in text
        for i in kept:
            assert set(table.columns[i].split()) <= set(head), (table.caption, table.columns[i], text)
        rows = table.rows[: table.most or None]
        numbers = [cell_text(row[i]) for row in rows for i in kept if i in table.numeric]
        assert all(plain(number, 2000) in text for number in numbers), (table.caption, text)
        said = {table.caption, said_hidden, *table.meanings.values()}
        drawn = [line for line in text.splitlines() if line not in said]
        assert all(cell_len(line) <= width for line in drawn), (table.caption, text)


def test_a_comparison_shows_both_sides_or_neither() -> None:
    pair = ROOT / "docs" / "examples" / "compare"
    blocks = comparison_blocks(compare(pair / "numpy-1.26.json", pair / "numpy-2.4.json"))
    (table,) = (block for block in blocks if isinstance(block, Table))
    for width in range(40, 200, 5):
        kept = columns_shown(table, width)
        assert (1 in kept) == (2 in kept), width


TABLE = Table(
    "A title that is a good deal longer than the table below it is wide",
    ["name", "first value", "second value", "why"],
    [["abc", "1.00", "2.00", "because"], ["de", "10.00", "20.00", "so"]],
    numeric=(1, 2),
    optional={1: 1},
    meanings={1: "first value: the one before.", 2: "second value: the one after."},
)


def test_a_title_is_as_wide_as_the_terminal() -> None:
    assert printed([TABLE], 100).splitlines()[0] == TABLE.caption


def test_what_a_hidden_column_means_is_not_said() -> None:
    assert all(meaning in printed([TABLE], 100) for meaning in TABLE.meanings.values())
    narrow = printed([TABLE], 34)
    assert "`first value`" in narrow
    assert TABLE.meanings[1] not in narrow
    assert TABLE.meanings[2] in narrow


def test_columns_that_nobody_called_optional_go_last_first_and_are_named() -> None:
    text, kept, _ = shown(TABLE, 20)
    assert kept == [0, 2]
    assert "`why`" in text
    assert columns_shown(TABLE, 8) == [0]


def test_rows_that_a_terminal_leaves_out_are_counted() -> None:
    whole, one = printed([TABLE], 100), printed([dataclasses.replace(TABLE, most=1)], 100)
    assert "because" in one
    assert "20.00" in whole
    assert "20.00" not in one
    assert more_rows(1) in one
    assert more_rows(1) not in whole
