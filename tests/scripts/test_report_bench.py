"""Test what the bench of the report draws: other machines, and a file with many records."""

from __future__ import annotations

from scripts.bench.report import large, machine
from tests.fakes.report import fingerprint, record


def test_each_copy_is_another_machine_with_the_same_records() -> None:
    run = fingerprint(record())
    copies = [machine(run, number) for number in range(3)]
    assert len({copy.machine.id for copy in copies}) == 3
    assert all(copy.records == run.records for copy in copies)


def test_a_large_file_has_so_many_records_with_keys_of_their_own() -> None:
    run = fingerprint(record("dawn"), record("torch"), record("numpy"))
    made = large(run, 100)
    assert len({r.key for r in made.records}) == 100
    assert made.records[:3] == run.records
