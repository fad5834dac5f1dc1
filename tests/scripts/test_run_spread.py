"""Test the spread between runs of one machine: which runs are compared, and what is printed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from overhead.errors import UsageError
from overhead.loading.files import write_fingerprint
from overhead.results import Fingerprint
from scripts import run_spread
from tests.fakes.report import fingerprint, record


def run(created: str, slow: float) -> Fingerprint:
    host = msgspec.structs.replace(record("numpy", each=1_000.0 * slow), bound="host")
    device = msgspec.structs.replace(record("torch", each=2_000.0, status="ok"), bound="device")
    unsure = msgspec.structs.replace(record("vulkan", each=500.0 * slow**2, status="noisy"), bound="host")
    found = fingerprint(host, device, unsure, record("dawn", each=None, status="failed", reason="lost"))
    return msgspec.structs.replace(found, created=created)


FIRST, SECOND = run("2026-01-01T00:00:00Z", 1.0), run("2026-01-01T01:00:00Z", 1.01)


def test_a_spread_is_the_largest_value_divided_by_the_smallest() -> None:
    found = {s.record.stack: s for s in run_spread.spreads([FIRST, SECOND], "complete")}
    assert set(found) == {"numpy", "torch", "vulkan"}
    assert found["numpy"].wide == pytest.approx(0.01)
    assert found["torch"].wide == 0
    assert (found["numpy"].ok, found["vulkan"].ok) == (True, False)
    assert [s.record.stack for s in run_spread.spreads([FIRST, SECOND], "complete", ["torch"])] == ["torch"]


def test_the_table_separates_host_from_device_and_ok_from_noisy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, one in zip(paths, (FIRST, SECOND), strict=True):
        write_fingerprint(path, one)
    assert run_spread.main([str(path) for path in paths]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "| host-bound | 2 | 1.5% | 2.0% | 1 | 1.0% | 1.0% | - | - |" in lines
    assert "| device-bound | 1 | 0.0% | 0.0% | 1 | 0.0% | 0.0% | - | - |" in lines
    assert "1 of 2 host-bound records lie within 2%." in lines


def test_the_common_shift_is_separated_from_the_remaining_spread() -> None:
    found = [run_spread.Spread(record("numpy"), (1.0, 1.1 * extra), True) for extra in (0.98, 1.0, 1.0, 1.0, 1.02)]
    *_, shift, left = run_spread.by_bound(found)[2].strip("| ").split(" | ")
    assert (shift, left) == ("+10.0%", "0.0%")


def test_the_processor_speed_is_printed_for_all_runs_or_none() -> None:
    told = {"canary_us": 60.0, "canary_us_least": 58.5, "canary_us_most": 71.0}
    known = msgspec.structs.replace(FIRST, volatile={**FIRST.volatile, **told})
    line = "60.0 us (by process 58.5 to 71.0)"
    assert run_spread.paces([known, known]) == [f"The canary took {line}, {line}.", ""]
    assert run_spread.paces([known, msgspec.structs.replace(FIRST, volatile={})]) == []


def test_the_report_counts_gpus_of_the_same_name_but_no_processors() -> None:
    def on(*places: tuple[str, str, str]) -> Fingerprint:
        made = record("jax", each=1_000.0)
        return fingerprint(
            *(msgspec.structs.replace(made, api=api, adapter=name, device=device) for api, name, device in places)
        )

    runs = [on(("CPU", "CPU", "0"), ("CUDA", "GPU", board)) for board in ("a", "b")]
    said = [
        line for line in run_spread.report(runs, "complete", run_spread.spreads(runs, "complete")) if "GPUs" in line
    ]
    assert said == ["They ran on 2 GPUs of that name."]


def test_runs_of_different_machines_or_profiles_are_refused(tmp_path: Path) -> None:
    other = msgspec.structs.replace(SECOND, profile="thorough")
    for runs, words in (([FIRST], "two runs"), ([FIRST, FIRST], "the same run"), ([FIRST, other], "profile")):
        with pytest.raises(UsageError, match=words):
            run_spread.refuse(runs)
    assert run_spread.main([str(tmp_path / "nothing.json")]) == 2
