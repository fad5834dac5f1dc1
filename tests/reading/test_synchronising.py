"""Test which cases synchronise, and their labels."""

from __future__ import annotations

from overhead.reading.synchronising import synchronises, varied_for_label, wait_of
from overhead.reading.view import View
from overhead.results import Record
from tests.fakes.report import fingerprint, record


def acting(sync: str, every: int, each: float | None = 30_000.0) -> Record:
    return record(
        "torch",
        each=each,
        api="CUDA",
        params={"sync": sync, "every": every},
        status="ok" if each else "failed",
    )


BASE = record("torch", each=20_000.0, api="CUDA")
VIEW = View(fingerprint(BASE, acting("item", 10), acting("cpu", 1, None), acting("item", 1)))
TARGET = VIEW.targets[0]


def test_the_label_of_a_case_omits_that_it_synchronises_after_every_step() -> None:
    assert varied_for_label(TARGET, TARGET.records[3]) == {"sync": "item"}
    assert varied_for_label(TARGET, TARGET.records[1]) == {"sync": "item", "every": 10}
    assert [synchronises(r) for r in TARGET.records] == [False, True, True, True]
    assert [wait_of(r) for r in TARGET.records] == [None, "item", "cpu", "item"]
