"""The raw samples of a run: where they are found, and the medians of its processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead.loading.reduce import load
from overhead.loading.samples import medians_by_record
from tests.fakes.runs import LADDER, Made


@pytest.mark.parametrize("place", ["data", "samples", "data/again/../../samples"])
def test_samples_are_found_beside_the_run_and_in_a_folder_beside_its_folder(
    tmp_path: Path, place: str
) -> None:
    folder = tmp_path / "data" / ("again" if "again" in place else "")
    for needed in (folder, tmp_path / "samples"):
        needed.mkdir(parents=True, exist_ok=True)
    path = Made().write(folder / "run.json")
    (folder / "run.samples.jsonl.gz").rename(tmp_path / place / "run.samples.jsonl.gz")
    run = load(path)
    found = medians_by_record(run, path)
    assert found.keys() == {record.key for record in run.records}
    for record in run.records:
        cost = record.value("complete") or 0.0
        assert len(found[record.key]) == 5, "one for each process"
        for process in found[record.key]:
            assert set(process.ladder) == {n for n in LADDER if n}
            assert (process.ladder[64] - process.ladder[1]) / 63 == pytest.approx(cost, rel=0.05)


def test_samples_of_another_run_under_the_same_name_are_not_used(tmp_path: Path) -> None:
    path, other = (
        Made().write(tmp_path / "run.json", samples=False),
        Made(seed=1).write(tmp_path / "other.json"),
    )
    other.with_suffix(".samples.jsonl.gz").rename(tmp_path / "run.samples.jsonl.gz")
    assert medians_by_record(load(path), path) == {}
