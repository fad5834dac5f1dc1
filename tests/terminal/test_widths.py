"""Tables in terminals of any width: the answer stands there, each column is whole or named, over
all commands.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from rich.cells import cell_len
from rich.console import Console

from overhead.blocks.layout import Layout, broken_number, broken_text, laid_out, row_texts
from overhead.blocks.parts import Part, Table, column_name, columns_of, without_pictures
from overhead.blocks.terminal import columns_shown, show
from overhead.cli import main
from overhead.comparing import compare
from overhead.comparing.show import comparison_blocks
from overhead.explaining.show import explanation_blocks
from overhead.fleet.collecting import Collected
from overhead.fleet.show import collected_table
from overhead.loading.files import read_fingerprint
from overhead.reading.plain_text import plain
from overhead.report.brief import brief_blocks, end_blocks
from overhead.results import Target
from overhead.runner.listing import Listed, listing_blocks
from overhead.timing.show import timing_blocks
from overhead.words import comparing as words
from overhead.words.blocks import hidden_columns, more_rows, named_column
from tests.fakes.explanations import decode_explained
from tests.fakes.nodes import node_run, write_node
from tests.fakes.timings import two_calls
from tests.terminal.test_goldens import printed

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "reports" / "data"
COMPARED = ROOT / "docs" / "examples" / "compare"
NARROW = [60, 80]
"""Widths at which the answer of each table stands."""
LONGEST_WORD = 16
"""Words up to here are never broken in a terminal of 80 characters."""
JOINT = re.compile(r"[=._/:,-]")
"""Where a narrower terminal may break a word."""
FEW = (
    "nvidia-h100-all",
    "nvidia-h100-contention-processes",
    "nvidia-h100-contention-threads",
    "nvidia-h100-x4-contention-devices",
    "nvidia-h200-chromium",
    "nvidia-h200-decode-0.5b",
)
"""Runs with each kind of table."""

Command = tuple[str, list[Part]]
"""A command, and what it prints."""


def _of_runs(runs: Iterable[Path]) -> Iterator[Command]:
    for path in runs:
        run = read_fingerprint(path)
        yield f"show {path.stem}", list(brief_blocks(run))
        if path.stem in FEW:
            yield f"show --all {path.stem}", list(brief_blocks(run, all_cases=True))
        yield f"run {path.stem}", list(end_blocks(run))


def _printed_by(*words: object) -> Command:
    """What this command line prints."""
    parts: list[Part] = []
    line = [str(word) for word in words]
    with patch("overhead.blocks.terminal.show", parts.extend):
        main(line)
    return " ".join(line), parts


def _of_others() -> Iterator[Command]:
    h100, default = DATA / "nvidia-h100.json", DATA / "nvidia-h100-default.json"
    case = "torch@CPU:CPU step per-submit native chained alloc=in-place operand=tensor"
    yield _printed_by("show", h100, case)
    yield _printed_by(
        "compare", COMPARED / "numpy-1.26.json", COMPARED / "numpy-2.4.json", "--fail-over", 5
    )
    yield _printed_by("compare", h100, DATA / "nvidia-h200.json")
    yield _printed_by("compare", default, "--across", "pattern=per-submit,wait-each")
    few = [DATA / f"{name}.json" for name in FEW]
    yield _printed_by("claims", *few)
    yield _printed_by("claims", "-v", *few)
    yield _printed_by("doctor")
    for path in sorted((ROOT / "tests" / "data" / "explained").glob("*.json")):
        yield _printed_by("show", path)
    for path in sorted((ROOT / "tests" / "data" / "traces").glob("*.json.gz")):
        yield _printed_by("explain", "--trace", path)
    yield "explain", list(explanation_blocks(decode_explained()))
    yield "time", list(timing_blocks(two_calls()))
    yield "list", list(listing_blocks([_listed()]))
    with TemporaryDirectory() as folder:
        for number in range(12):
            changed = {"host": 1.6} if number == 3 else {}
            runs = [node_run(number, run, **changed) for run in range(2)]  # type: ignore[arg-type]
            write_node(Path(folder), f"n{number}", *runs)
        yield _printed_by("fleet", folder)
    yield "fleet collect", [collected_table(Path("nodes"), {"n1": Collected(["a.json", "b.json"])})]


def _listed() -> Listed:
    adapter, driver = "llvmpipe (LLVM 15.0.6, 256 bits)", "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"
    target = Target(
        stack="wgpu-native", api="Vulkan", adapter=adapter, driver=driver, software=True
    )
    return Listed(stack="wgpu-native", title="WebGPU by wgpu-native", targets=[target])


@functools.cache
def commands() -> list[Command]:
    """What the commands print of all committed runs, and of made-up answers."""
    found = [*_of_runs(sorted(DATA.rglob("*.json"))), *_of_others()]
    return [(name, list(without_pictures(parts))) for name, parts in found]


def tables(*names: str) -> list[tuple[str, Table]]:
    """The tables that are drawn as such, each with its command; ``names``: only of commands that
    end so.
    """
    found = []
    for command, parts in commands():
        if names and not command.endswith(names):
            continue
        for part in parts:
            if isinstance(part, Table) and not part.prose and not part.folded:
                found.append((command, part))
    return found


def in_terminal(blocks: Iterable[Part], width: int) -> list[str]:
    """The lines that a terminal without colours shows."""
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=True, color_system=None, legacy_windows=False
    )
    show(blocks, console)
    return out.getvalue().splitlines()


def layout_of(table: Table, width: int) -> Layout:
    return laid_out(table, row_texts(table), width)


def hidden_names(table: Table, kept: Iterable[int]) -> list[str]:
    """How a sentence names the columns that are not among these."""
    hidden = []
    for i, heading in enumerate(table.columns):
        if i not in kept:
            hidden.append(named_column(plain(column_name(heading)), i))
    return hidden


def column_texts(table: Table, layout: Layout, width: int) -> dict[int, str]:
    """What stands in each column that is shown, as it is printed, the heading first."""
    rows = len(row_texts(table))
    bare = dataclasses.replace(table, caption="", meanings={}, most=rows)
    lines = printed([bare], width).splitlines()
    drawn = [line for line in lines if line.startswith(" ") and "\u2500" not in line]
    texts = {}
    start = 1
    for i, column_width in zip(layout.shown, layout.widths, strict=True):
        end = start + column_width
        texts[i] = " ".join(line[start:end].strip() for line in drawn)
        start = end + layout.gap
    return texts


@pytest.mark.parametrize("width", NARROW)
def test_no_line_of_a_command_is_wider_than_the_terminal(width: int) -> None:
    for command, parts in commands():
        wide = [line for line in in_terminal(parts, width) if cell_len(line.rstrip()) > width]
        assert not wide, (command, wide)


@pytest.mark.parametrize("width", [*NARROW, 100, 120])
def test_every_cell_of_a_column_is_whole_and_no_word_is_broken(width: int) -> None:
    few = (*FEW, "compare", "claims", "explain", "time", "doctor")
    tested = tables() if width in NARROW else tables(*few)
    assert len(tested) > 20
    for command, table in tested:
        layout = layout_of(table, width)
        rows = row_texts(table)
        for i, text in column_texts(table, layout, width).items():
            heading = table.columns[i]
            cells = [plain(heading)]
            cells += [row[i] for row in rows]
            words_of_cells = " ".join(cells).split()
            assert "".join(text.split()) == "".join(words_of_cells), (command, heading)
            whole = {word for word in words_of_cells if stays_whole(word, width)}
            assert whole <= set(text.split()), (command, heading)


def stays_whole(word: str, width: int) -> bool:
    """Whether a word must not be broken in a terminal of this width."""
    if cell_len(word) > LONGEST_WORD:
        return False
    return width >= 80 or not JOINT.search(word)


@pytest.mark.parametrize("width", NARROW)
def test_the_answer_of_each_table_is_shown_and_what_is_hidden_is_named(width: int) -> None:
    for command, table in tables():
        shown = columns_shown(table, width)
        may_go: set[int] = set()
        for group in (*table.optional, *table.important):
            may_go.update(columns_of(group))
        answer = set(range(len(table.columns))) - may_go
        assert answer <= set(shown), (command, table.caption)
        assert 0 in shown
        assert all(table.columns[i] for i in may_go), "a column without a heading cannot be named"
        hidden = hidden_names(table, shown)
        if hidden:
            lines = printed([table], width).splitlines()
            assert hidden_columns(hidden) in lines, (command, table.caption)


def test_a_comparison_shows_both_sides_or_neither() -> None:
    pair = ROOT / "docs" / "examples" / "compare"
    blocks = comparison_blocks(compare(pair / "numpy-1.26.json", pair / "numpy-2.4.json"))
    (table,) = (block for block in blocks if isinstance(block, Table))
    base, new = (table.columns.index(heading) for heading in words.COMPARED_COLUMNS[3:5])
    for width in range(40, 200, 5):
        shown = columns_shown(table, width)
        assert (base in shown) == (new in shown), width


TABLE = Table(
    "A title that is a good deal longer than the table below it is wide",
    ["name", "first value", "second value", "why"],
    [["abc", "1.00", "2.00", "because"], ["de", "10.00", "20.00", "so"]],
    numeric=(1, 2),
    optional=(1,),
    important=(3,),
    meanings={1: "first value: the one before.", 2: "second value: the one after."},
)


def test_a_title_is_as_wide_as_the_terminal() -> None:
    assert in_terminal([TABLE], 100)[0] == TABLE.caption
    title = " ".join(line.strip() for line in in_terminal([TABLE], 40)[:2])
    assert title == TABLE.caption


def test_what_a_hidden_column_means_is_not_said() -> None:
    assert all(meaning in printed([TABLE], 100) for meaning in TABLE.meanings.values())
    narrow = printed([TABLE], 27)
    assert hidden_columns(["first value"]) in narrow
    assert TABLE.meanings[1] not in narrow
    assert TABLE.meanings[2] in narrow


def test_optional_columns_go_first_and_important_ones_only_if_narrow_text_does_not_help() -> None:
    name, cost, seen, why = range(4)
    table = Table(
        "",
        ["name", "cost", "seen", "why"],
        [["one", "1.00", "2", "some words " * 5]],
        numeric=(cost, seen),
        optional=(seen,),
        important=(why,),
    )
    assert columns_shown(table, 80) == [name, cost, seen, why]
    assert columns_shown(table, 36) == [name, cost, why]
    assert columns_shown(table, 18) == [name, cost]


def test_columns_of_one_group_go_together_and_a_small_one_stays_where_it_has_room() -> None:
    cells = ["name", "1.00 (0.90 to 1.10)", "2", "3.00 (2.90 to 3.10)"]
    table = Table("", ["name", "a", "b", "c"], [cells], numeric=(1, 2, 3))
    a_with_b = dataclasses.replace(table, optional=((1, 2), 3))
    assert columns_shown(a_with_b, 32) == [0, 3]
    b_before_c = dataclasses.replace(table, optional=(2, 3))
    assert columns_shown(b_before_c, 34) == [0, 1, 2]


def test_a_column_that_nobody_called_optional_goes_where_nothing_else_helps() -> None:
    assert columns_shown(TABLE, 8) == [0]


def test_rows_that_a_terminal_leaves_out_are_counted() -> None:
    whole = printed([TABLE], 100)
    one = printed([dataclasses.replace(TABLE, most=1)], 100)
    assert "because" in one
    assert "20.00" in whole
    assert "20.00" not in one
    assert more_rows(1) in one
    assert more_rows(1) not in whole


def test_a_text_breaks_between_words_and_a_longer_word_after_a_joint() -> None:
    assert broken_text("one two three", 8) == ["one two", "three"]
    assert broken_text("dependency=independent", 16) == ["dependency=", "independent"]
    assert broken_text("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert broken_text("", 4) == [""]


def test_an_interval_stands_below_its_number_where_both_are_too_long() -> None:
    assert broken_number("4.13 (4.06 to 4.20)", 19) == ["4.13 (4.06 to 4.20)"]
    assert broken_number("4.13 (4.06 to 4.20)", 18) == ["4.13", "(4.06 to 4.20)"]
