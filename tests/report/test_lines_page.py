"""The page "Behind the figures": how many figures are sure, why others are not, and how precise
each is.
"""

from __future__ import annotations

from typing import Any

import pytest

from overhead.blocks.parts import Drawing, Part, Text
from overhead.reading.view import View
from overhead.report.sections.cases import records
from overhead.report.sections.lines import lines
from overhead.results import Record, because, together
from overhead.words.report.lines import why_noisy
from tests.fakes.report import fingerprint, record
from tests.report.report_page import numbers

WIDE = because("too-wide", share=0.3, target=0.1)
UNCHECKED = because("not-checked-beyond", units=20, why="no longer chain")


def noisy(reason: object, **fields: object) -> Record:
    return record(status="noisy", reason=reason, **fields)  # type: ignore[arg-type]


RUN = (
    record("torch", api="CUDA"),
    noisy(WIDE, stack="cupy", api="CUDA"),
    record("triton", api="CUDA", status="nonlinear"),
)


def parts_of(*records: Record) -> list[Part]:
    return list(lines(View(fingerprint(*records))))


def test_the_page_opens_with_how_many_cases_are_ok_and_how_many_are_not() -> None:
    first = parts_of(*RUN)[0]
    assert isinstance(first, Text)
    assert first.lead
    said = first.paragraphs[0]
    assert numbers(said)[:2] == ["1", "3"]
    assert "1 noisy" in said
    assert "1 nonlinear" in said


def test_a_noisy_case_is_counted_under_one_reason() -> None:
    both = noisy(together(WIDE, UNCHECKED))
    assert numbers(why_noisy([both])) == ["1"]
    assert numbers(why_noisy([both, noisy(WIDE), noisy(UNCHECKED)])) == ["2", "1"]
    assert numbers(why_noisy([noisy("a text of an older file")])) == ["1"]
    assert why_noisy([]) == ""


@pytest.mark.needs("matplotlib", "seaborn")
def test_the_picture_has_a_mark_for_each_cost_hollow_unless_it_is_ok() -> None:
    drawing = next(part for part in parts_of(*RUN) if isinstance(part, Drawing))
    ax: Any = drawing.draw().axes[0]
    marks = [line for line in ax.lines if line.get_marker() == "o"]
    percents = [line.get_xdata()[0] for line in marks]
    assert percents == pytest.approx([2.0] * len(marks)), "the fake has 2 % to both sides"
    filled = [line.get_markerfacecolor() == line.get_color() for line in marks]
    assert filled == [True, False], "a nonlinear case has no cost"


@pytest.mark.needs("matplotlib", "seaborn")
def test_the_noisiest_cases_are_drawn_on_the_first_page_too() -> None:
    drawings = [part for part in parts_of(*RUN) if isinstance(part, Drawing)]
    assert len(drawings) == 2, "how precise each is, and the noisy one"
    only_ok = [part for part in parts_of(RUN[0]) if isinstance(part, Drawing)]
    assert len(only_ok) == 1


def test_both_pages_count_the_same_cases_and_name_those_that_they_do_not_count() -> None:
    empty = record("floor", api="CPU", unit="call")
    run = (*RUN, empty)
    (on_lines,) = numbers_of_cases(parts_of(*run))
    (on_cases,) = numbers_of_cases(list(records(View(fingerprint(*run)))))
    for text in (on_lines, on_cases):
        assert "1 case of floor" in text
    assert numbers(on_lines)[:2] == ["1", "3"]
    assert numbers(on_cases)[:3] == ["3", "3", "1"]


def numbers_of_cases(parts: list[Part]) -> list[str]:
    """The first sentence of a page, with its numbers of cases."""
    return [part.paragraphs[0] for part in parts if isinstance(part, Text) and part.lead]
