"""From journal lines to the fingerprint: what the worker wrote reaches the reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from overhead import results
from overhead.loading.reduce import reduce_journal
from overhead.results import EndedEntry, JournalEntry, OneOffEntry, Why, because
from tests.fakes.reasons import values_of
from tests.fakes.runs import CASES, TARGET, Made


def once(process: int, name: str, values: list[float], reason: Why) -> OneOffEntry:
    return OneOffEntry(
        target=TARGET.key,
        case=CASES["small"].key,
        worker=TARGET.key,
        process=process,
        name=name,
        values=values,
        reason=reason,
    )


def reduced(
    tmp_path: Path, *more: tuple[str, list[float], Why], at: Sequence[float] = ()
) -> results.Record:
    """The record of the small case, whose every process also wrote these one-off values."""
    lines: list[JournalEntry] = []
    for line in Made().lines():
        if isinstance(line, EndedEntry):
            lines += [
                msgspec.structs.replace(once(line.process, *one), at=list(at)) for one in more
            ]
        lines.append(line)
    journal = tmp_path / "r.jsonl"
    journal.write_bytes(b"".join(map(results.encode_entry, lines)))
    return next(r for r in reduce_journal(journal).records if r.params["size"] == "small")


def test_a_single_value_that_is_missing_has_its_reason_in_the_fingerprint(tmp_path: Path) -> None:
    figure = reduced(tmp_path, ("device_span", [], "no timestamp queries here")).figure(
        "device_span"
    )
    assert figure is not None
    assert figure.status == "unavailable"
    assert figure.reason == "no timestamp queries here"
    assert figure.value is None


def test_a_single_value_of_one_process_replaces_the_reason_of_another(tmp_path: Path) -> None:
    record = reduced(tmp_path, ("naive", [], "too long"), ("naive", [5000.0], ""))
    assert record.value("naive") == 5000.0


def test_every_slope_says_why_its_largest_n_is_small(tmp_path: Path) -> None:
    record = reduced(tmp_path, ("ladder", [1.0, 16.0, 64.0], because("n-is-bounded", most=64)))
    for name in ("issue", "complete"):
        figure = record.figure(name)
        assert figure is not None
        assert values_of(figure.rule, "ladder-too-short") == {
            "why": because("n-is-bounded", most=64)
        }


def test_a_fingerprint_has_the_met_cost_as_a_spread_over_processes(tmp_path: Path) -> None:
    # Each of five processes met both costs, in ns, and a first one of 5 ms that does not count.
    record = reduced(
        tmp_path, ("met", [29_000.0], ""), ("met", [31_000.0], ""), ("met_first", [5e6], "")
    )
    met, within = record.figure("met"), record.figure("met_rounds")
    assert met is not None
    assert within is not None
    assert met.value == 30_000.0, "the middle of the two"
    assert met.low == 30_000.0, "the same in every process"
    assert met.high == 30_000.0
    assert met.processes == 5
    assert met.unit == "ns"
    assert within.value == 31 / 29, "the largest over the smallest cost in one process"
    assert record.figure("met_first") is None


def test_a_fingerprint_of_an_older_journal_has_the_met_cost_on_each_processor(
    tmp_path: Path,
) -> None:
    # 1 us on processor 4, 2 us on processor 6, which serves the interrupts of the GPU.
    interrupts = ("interrupt_processors", [6.0], "")
    costs_ns = ("met_by_processor", [1e3, 2e3], "")
    record = reduced(tmp_path, costs_ns, interrupts, at=[4, 6])
    on_4, on_6 = record.by_processor
    assert on_4.cpu == 4
    assert on_4.ns == 1e3
    assert not on_4.serves_interrupts
    assert on_6.cpu == 6
    assert on_6.ns == 2e3
    assert on_6.serves_interrupts
