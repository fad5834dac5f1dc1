"""The page of synchronisation: what it opens with, the picture of all stacks, and its tables."""

from __future__ import annotations

import msgspec
import pytest

from overhead.blocks.parts import Drawing, Part, Table, Text
from overhead.reading.synchronising import empty_waits, item_after_each, wait_costs
from overhead.reading.view import View
from overhead.report.sections.waiting import waits
from overhead.results import Record
from tests.fakes.report import figure, fingerprint, record
from tests.report.report_page import numbers


def base(stack: str, each: float, empty_ns: float, **more: float) -> Record:
    """A launch with the time of an empty wait, and more figures by name."""
    given = [figure(name, value) for name, value in {"empty_wait": empty_ns, **more}.items()]
    made = record(stack, each=each, api="CUDA")
    names = {one.name for one in given}
    others = [one for one in made.figures if one.name not in names]
    return msgspec.structs.replace(made, figures=[*others, *given])


def waited(stack: str, each: float) -> Record:
    return record(stack, "wait-each", each=each, api="CUDA", more=(figure("p50", each),))


def item(each: float) -> Record:
    return record("torch", each=each, api="CUDA", params={"sync": "item", "every": 1})


TORCH = base("torch", 5_000.0, 2_000.0, naive=11_000.0, naive_idle=90_000.0)
CUPY = base("cupy", 7_000.0, 3_000.0, naive=9_000.0)
TRITON = base("triton", 9_000.0, 2_500.0, naive=15_000.0)
VULKAN = base("vulkan", 14_000.0, 80_000.0, naive=99_000.0)


def parts_of(*records: Record) -> list[Part]:
    return list(waits(View(fingerprint(*records))))


def test_the_page_opens_with_what_item_adds_and_what_an_empty_wait_costs() -> None:
    first = parts_of(TORCH, item(15_000.0), CUPY, TRITON, VULKAN)[0]
    assert isinstance(first, Text)
    assert first.lead
    added, empty = first.paragraphs
    assert numbers(added)[0] == "10.0", "15 us with it, 5 us without"
    shown = {float(number) for number in numbers(empty)}
    assert {2.0, 3.0, 80.0} <= shown, "the shortest, the longest of most, and the one far beyond"


def test_a_stack_whose_empty_wait_is_far_longer_is_named_apart() -> None:
    found = empty_waits(View(fingerprint(TORCH, CUPY, TRITON, VULKAN)))
    assert [target.stack for target, _ in found.near] == ["torch", "triton", "cupy"]
    assert [target.stack for target, _ in found.far] == ["vulkan"]


def test_the_empty_wait_of_a_stack_is_the_shortest_of_its_cases() -> None:
    after_each = msgspec.structs.replace(
        waited("cupy", 9_000.0), figures=[figure("empty_wait", 1_500.0), figure("p50", 9_000.0)]
    )
    found = empty_waits(View(fingerprint(TORCH, CUPY, after_each)))
    shortest = {target.stack: wait.value for target, wait in found.near}
    assert shortest["cupy"] == 1_500.0


def test_item_that_adds_nothing_clear_is_not_what_the_page_opens_with() -> None:
    assert item_after_each(View(fingerprint(TORCH, item(15_000.0)))) is not None
    assert item_after_each(View(fingerprint(TORCH, item(5_000.0)))) is None


def test_a_stack_has_its_cost_without_a_wait_with_one_and_of_a_single_unit() -> None:
    run = View(fingerprint(TORCH, waited("torch", 12_000.0), CUPY, TRITON))
    found = wait_costs(run)
    assert [costs.target.stack for costs in found] == ["cupy", "torch", "triton"], "by single-shot"
    values = [each.value if each is not None else None for each in found[1].figures]
    assert values == [5_000.0, 12_000.0, 11_000.0, 90_000.0]


@pytest.mark.needs("matplotlib", "seaborn")
def test_every_stack_that_waits_is_a_row_of_the_picture() -> None:
    drawings = [part for part in parts_of(TORCH, CUPY, VULKAN) if isinstance(part, Drawing)]
    (drawing,) = drawings
    (ax,) = drawing.draw().axes
    assert len([label for label in ax.get_yticklabels() if label.get_text()]) == 3
    assert drawing.draw_narrow is not None
    assert drawing.draw_narrow().get_figwidth() == 3.0


def test_waits_that_were_timed_one_by_one_have_a_table_of_their_own() -> None:
    parts = parts_of(TORCH, waited("torch", 12_000.0))
    (table,) = [part for part in parts if isinstance(part, Table)]
    assert len(table.rows) == 1
    (drawing,) = [part for part in parts if isinstance(part, Drawing)]
    assert drawing.table is not None
    assert len(drawing.table.rows) == 2


def test_a_noisy_time_is_a_range_in_the_picture() -> None:
    from overhead.words.report.waiting import time_or_range

    clear = figure("naive", 11_000.0)
    noisy = msgspec.structs.replace(clear, status="noisy", low=5_000.0, high=17_000.0)
    assert numbers(time_or_range(clear)) == ["11.0"]
    assert numbers(time_or_range(noisy)) == ["5", "17"]


def test_item_on_the_cpu_is_not_what_the_page_opens_with() -> None:
    on_cpu = [
        msgspec.structs.replace(each, api="CPU", adapter="") for each in (TORCH, item(15_000.0))
    ]
    run = View(fingerprint(*on_cpu, base("torch", 6_000.0, 2_000.0), item(9_000.0)))
    found = item_after_each(run)
    assert found is not None
    assert found.record.api == "CUDA"
