"""Test the comparison of two sets of runs: verdicts, refusals and reasons."""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.blocks.terminal import show
from overhead.comparing import Difference, Verdicts, compare, judge
from overhead.comparing.show import comparison_blocks, comparison_data
from overhead.errors import BadFile
from overhead.loading.folders import Loaded
from overhead.loading.reduce import load
from overhead.results import (
    JournalEntry,
    LeftOut,
    MissingEntry,
    MissingStack,
    OmittedEntry,
    Target,
    because,
    codes_of,
    encode_entry,
)
from overhead.words.comparing import OVER_ALL_ROUNDS, gate
from tests.comparing.made_runs import by_size, compared, in_turn, scaled, side, with_cost
from tests.fakes.machine import Disturbance
from tests.fakes.report import fingerprint
from tests.fakes.runs import CASES, MACHINE, TARGET, Made


def test_only_the_case_that_is_twice_as_slow_is_slower(tmp_path: Path) -> None:
    twice = with_cost("middle", ns=10_000.0)
    found = compared(tmp_path, Made(seed=1), Made(seed=2, costs=twice))
    assert by_size(found)["middle"] == "slower"
    assert {by_size(found)[size] for size in ("small", "large")} <= {"same", "undecided"}
    (slower,) = (case for case in found.cases if case.verdict == "slower")
    assert slower.ratio is not None
    assert slower.ratio.floor < 2.0 < slower.ratio.ceiling
    assert slower.base_ns == pytest.approx(5_000, rel=0.02)
    assert slower.processes == (5, 5)


def test_several_runs_detect_a_shift_that_one_run_per_side_misses(tmp_path: Path) -> None:
    base = side(tmp_path / "base", seeds=range(4))
    new = side(tmp_path / "new", seeds=range(10, 14), costs=scaled(by=1.035))
    one_run_each = compare(base / "0.json", new / "10.json")
    four_runs_each = compare(base, new)
    assert set(by_size(one_run_each).values()) == {"undecided"}
    assert set(by_size(four_runs_each).values()) == {"slower"}
    assert one_run_each.yardstick.kind == "one-run"
    assert four_runs_each.yardstick.kind == "several-runs"
    assert four_runs_each.yardstick.runs == (4, 4)
    for few, more in zip(one_run_each.cases, four_runs_each.cases, strict=True):
        assert few.smallest is not None
        assert more.smallest is not None
        assert few.smallest > more.smallest


def test_a_noisy_case_without_a_shift_is_undecided_and_not_same(tmp_path: Path) -> None:
    quiet = compare(
        side(tmp_path / "a", seeds=range(4)),
        side(tmp_path / "b", seeds=range(10, 14)),
    )
    assert set(by_size(quiet).values()) == {"same"}
    # The five processes of a run are up to 10 % faster or slower.
    drift = {number: 1 + 0.1 * math.sin(number) for number in range(5)}
    noisy = compared(tmp_path, Made(seed=21, drift=drift), Made(seed=22, drift=drift))
    assert set(by_size(noisy).values()) == {"undecided"}


def test_costs_that_follow_the_speed_of_the_processor_are_compared_at_the_same_speed(
    tmp_path: Path,
) -> None:
    """The speed varies by 10 % between processes; one case costs 22,000 ns, 10 % more."""
    varied = Disturbance(spread=0.1, preemptions=0.0)
    base = Made(seed=21, disturbance=varied)
    new = Made(seed=22, disturbance=varied, costs=with_cost("large", ns=22_000.0))
    found = compared(tmp_path, base, new)
    assert by_size(found)["large"] == "slower"
    assert {by_size(found)[size] for size in ("small", "middle")} <= {"same", "undecided"}
    (large,) = (case for case in found.cases if case.verdict == "slower")
    assert large.ratio is not None
    assert large.ratio.value == pytest.approx(1.1, rel=0.01)


def slow_down_first_rounds(samples: Path) -> None:
    """Make all times of the first one to three rounds of each process three times as long, with
    that of the reference loop.
    """
    entries = [json.loads(row) for row in gzip.decompress(samples.read_bytes()).splitlines()]
    for entry in entries:
        if entry["type"] == "round" and entry["round"] < 1 + entry["process"] % 3:
            entry["canary"] = [3 * ns for ns in entry["canary"]]
            slow_samples = []
            for n, *times in entry["samples"]:
                slow_samples.append([n, *(3 * ns for ns in times)])
            entry["samples"] = slow_samples
    rows = [json.dumps(entry).encode() for entry in entries]
    samples.write_bytes(gzip.compress(b"\n".join(rows)))


def test_rounds_left_out_of_figures_are_left_out_and_a_differing_verdict_over_all_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = Made(seed=1, costs={"small": 1_000.0}).write(tmp_path / "1.json")
    new = Made(seed=2, costs={"small": 1_200.0}).write(tmp_path / "2.json")
    slow_down_first_rounds(new.with_suffix(".samples.jsonl.gz"))
    (case,) = compare(base, new).cases
    assert case.verdict == "slower"
    assert case.ratio is not None
    assert case.ratio.value == pytest.approx(1_200 / 1_000, rel=0.01)
    assert case.all_rounds is not None, "the verdict with the slow rounds differs"
    assert case.all_rounds.verdict == "undecided"
    (data,) = comparison_data(compare(base, new))["cases"]
    assert data["all_rounds"].keys() == {"verdict", "ratio", "low", "high"}
    show(comparison_blocks(compare(base, new)))
    assert OVER_ALL_ROUNDS in capsys.readouterr().out


def test_a_change_that_only_the_spread_between_runs_hides_is_named(tmp_path: Path) -> None:
    found = compared(tmp_path, Made(seed=1), Made(seed=2, costs=scaled(by=1.03)), fail_over=2)
    assert {case.verdict for case in found.cases} == {"undecided"}
    assert {codes_of(case.reason) for case in found.cases} == {frozenset({"only-between-runs"})}
    assert not found.failed
    assert not found.tested_enough()


def test_a_change_of_a_tenth_is_told_by_one_run_a_side(tmp_path: Path) -> None:
    found = compared(tmp_path, Made(seed=1), Made(seed=2, costs=scaled(by=1.1)), fail_over=10)
    assert {case.verdict for case in found.cases} == {"slower"}
    for case in found.cases:
        assert case.smallest is not None
        assert case.smallest <= 0.1


def test_cases_on_a_machine_at_half_its_speed_are_not_slower(tmp_path: Path) -> None:
    # All of the new run is at half speed (``slow``), the reference loop too.
    disturbance = Disturbance(spread=0.004, preemptions=0.0, slowdown=2.0)
    base = Made(seed=1, disturbance=disturbance)
    new = Made(seed=2, disturbance=disturbance, slow=True)
    found = compared(tmp_path, base, new, fail_over=5)
    assert set(by_size(found).values()) == {"undecided"}
    assert not found.failed
    for case in found.cases:
        assert case.base_ns
        assert case.new_ns == pytest.approx(2 * case.base_ns, rel=0.05)


def test_fail_over_fails_a_case_only_if_its_whole_interval_is_over_the_limit(
    tmp_path: Path,
) -> None:
    base = Made(seed=1).write(tmp_path / "a.json")
    new = Made(seed=2, costs=with_cost("large", ns=26_000.0)).write(tmp_path / "b.json")
    (large,) = (case for case in compare(base, new).cases if case.verdict == "slower")
    found = compare(base, new, fail_over=5)
    # It costs 26,000 ns in place of 20,000: 30 % more, with an interval around it.
    assert [case.case for case in found.failed] == [large.case]
    data = json.loads(json.dumps(comparison_data(found), allow_nan=False))
    assert data["failed"] == [large.case]
    assert compare(base, new, fail_over=29).failed == []
    assert large.ratio is not None
    for limit in (0.0, 5.0, 10.0, 20.0):
        is_beyond = large.ratio.floor > 1 + limit / 100
        assert bool(compare(base, new, fail_over=limit).failed) == is_beyond


@pytest.mark.parametrize("limit", [0, 5])
def test_fail_over_fails_no_case_that_is_faster(tmp_path: Path, limit: float) -> None:
    slow = Made(seed=2, costs=with_cost("large", ns=26_000.0))
    assert compared(tmp_path, slow, Made(seed=1), fail_over=limit).failed == []


def test_runs_measured_in_turn_are_compared_by_pairs_of_processes(tmp_path: Path) -> None:
    # The speed of the machine changes by 20 % between processes, for both of a pair alike.
    runs = in_turn(tmp_path, costs=scaled(by=1.03))
    found = compare(runs.base, runs.new)
    assert set(by_size(found).values()) == {"slower"}
    assert found.yardstick.kind == "in-turn"
    assert 0 < found.yardstick.spread < 0.02
    assert found.base == ("base/3.json",)
    assert found.new == ("new/3.json",)
    for case in found.cases:
        assert case.smallest is not None
        assert case.smallest < 0.03
    assert len(compare(runs.base, runs.new, fail_over=1).failed) == len(found.cases) == 3
    assert set(by_size(compare(runs.new, runs.base)).values()) == {"faster"}


def test_runs_measured_in_turn_are_matched_by_their_id_and_not_by_file_name(tmp_path: Path) -> None:
    for common in (1, 2):
        in_turn(tmp_path, common)
    # The files of NEW swap their names.
    for old, new in (("1", "x"), ("2", "1"), ("x", "2")):
        for end in ("json", "samples.jsonl.gz"):
            (tmp_path / "new" / f"{old}.{end}").rename(tmp_path / "new" / f"{new}.{end}")
    found = compare(tmp_path / "base", tmp_path / "new")
    assert found.yardstick.kind == "in-turn"
    assert {case.processes for case in found.cases} == {(10, 10)}, "five in each of two runs"
    assert set(by_size(found).values()) == {"same"}


def test_runs_are_in_turn_only_if_every_run_has_its_partner(tmp_path: Path) -> None:
    for common in (1, 2):
        in_turn(tmp_path, common)
    (tmp_path / "new" / "1.json").unlink()
    assert compare(tmp_path / "base", tmp_path / "new").yardstick.kind != "in-turn"


def test_a_worker_process_that_died_does_not_change_the_other_pairs(tmp_path: Path) -> None:
    # Process 0 of NEW died, and process 8 ran in its place.
    runs = in_turn(tmp_path, numbers=(1, 2, 3, 4, 8))
    found = compare(runs.base, runs.new)
    assert {case.processes for case in found.cases} == {(5, 5)}


def test_processes_without_a_partner_do_not_count(tmp_path: Path) -> None:
    runs = in_turn(tmp_path, numbers=(1, 2, 4))
    found = compare(runs.base, runs.new)
    assert {case.processes for case in found.cases} == {(3, 3)}
    assert set(by_size(found).values()) <= {"same", "undecided"}


@pytest.mark.parametrize(
    ("changes", "code", "values"),
    [
        (
            {"window": {"submits": 16}},
            "window-differs",
            {"field": "submits", "mine": 1, "theirs": 16},
        ),
        (
            {"kernels": {"step": "bb"}},
            "kernel-differs",
            {"file": "step", "mine": "aa", "theirs": "bb"},
        ),
    ],
    ids=["window", "kernel"],
)
@pytest.mark.parametrize("samples", [True, False], ids=["raw samples", "no raw samples"])
def test_cases_with_another_timed_window_or_kernel_are_refused_with_the_difference(
    tmp_path: Path, changes: dict[str, Any], code: str, values: dict[str, Any], samples: bool
) -> None:
    found = compared(tmp_path, Made(seed=1), Made(seed=2, **changes), samples=samples)
    reason = because(code, **values, one="BASE", other="NEW")
    assert len(found.cases) == 3
    for case in found.cases:
        assert case.verdict == "refused"
        assert case.ratio is None
        assert case.reason == reason


def test_runs_of_different_method_versions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"b\.json.* method_version .*99.*a\.json"):
        compared(tmp_path, Made(seed=1), Made(seed=2, method_version=99))


def test_runs_of_two_machines_on_one_side_are_refused(tmp_path: Path) -> None:
    base = Made(seed=1).write(tmp_path / "a.json")
    other_machine = msgspec.structs.replace(MACHINE, id="ba9876543210")
    other = Made(seed=2, machine=other_machine).write(tmp_path / "b.json")
    with pytest.raises(BadFile, match=r"machine ba9876543210\b.* 0123456789ab .*a\.json"):
        compare([base, other], base)


def of_two_machines(folder: Path) -> Verdicts:
    """Runs of one stack on two machines, whose adapters have other names."""
    base = Made(seed=1, versions={"torch": "2.13"})
    other_machine = msgspec.structs.replace(MACHINE, id="ba9876543210", cpu="another CPU")
    renamed = Target(stack="fake", api="CPU", adapter="B")
    new = Made(seed=2, machine=other_machine, target=renamed, versions={"torch": "2.14"})
    return compared(folder, base, new, fail_over=5)


def test_runs_of_two_machines_get_ratios_without_a_test(tmp_path: Path) -> None:
    found = of_two_machines(tmp_path)
    assert not found.same_machine
    assert {case.verdict for case in found.cases} == {"not tested"}
    for case in found.cases:
        assert case.ratio
        assert case.ratio.bounded
        assert case.ratio.floor < case.ratio.value
        assert case.p is None
    assert not found.failed
    assert not found.any_test


def test_the_gate_says_that_no_case_of_two_machines_was_tested(tmp_path: Path) -> None:
    found = of_two_machines(tmp_path)
    tested = dataclasses.replace(found.cases[0], smallest=1.0)
    with_a_test = dataclasses.replace(found, cases=(tested,))
    assert gate(found) != gate(with_a_test)
    assert str(len(found.cases)) in gate(found)


def test_what_differs_between_two_machines_is_listed(tmp_path: Path) -> None:
    differences = of_two_machines(tmp_path).differences
    assert differences[0] == Difference("id", "0123456789ab", "ba9876543210")
    assert differences[1] == Difference("cpu", "a CPU", "another CPU")
    assert Difference("torch", "2.13", "2.14") in differences


def test_a_list_of_the_state_is_compared_as_text_with_commas() -> None:
    base = fingerprint(volatile={"gpu_celsius": ["44", "45"]})
    new = fingerprint(volatile={"gpu_celsius": ["41", "45"]})
    assert judge._differences(base, new) == (Difference("gpu_celsius", "44, 45", "41, 45"),)


def test_runs_without_raw_samples_get_ratios_and_no_verdict(tmp_path: Path) -> None:
    base = Made(seed=1).write(tmp_path / "a.json", samples=False)
    new = Made(seed=2).write(tmp_path / "b.json")
    found = compare(base, new)
    reason = because("no-raw-samples", file="a.json")
    assert len(found.cases) == 3
    for case in found.cases:
        assert case.verdict == "not tested"
        assert case.reason == reason
        assert case.ratio
        assert case.ratio.bounded


def test_a_run_beside_the_raw_samples_of_another_run_is_refused(tmp_path: Path) -> None:
    base = Made(seed=1).write(tmp_path / "a.json")
    other = Made(seed=2).write(tmp_path / "b.json")
    (tmp_path / "a.samples.jsonl.gz").write_bytes((tmp_path / "b.samples.jsonl.gz").read_bytes())
    with pytest.raises(BadFile, match=r"a\.samples\.jsonl\.gz"):
        compare(base, other)


def test_a_case_that_only_one_side_has_is_listed(tmp_path: Path) -> None:
    base = Made(seed=1, costs={"small": 1_000.0, "middle": 5_000.0})
    new = Made(seed=2, costs={"small": 1_000.0, "large": 5_000.0})
    found = compared(tmp_path, base, new)
    assert by_size(found)["middle"] == "only in BASE"
    assert by_size(found)["large"] == "only in NEW"
    assert found.count("undecided") == 0


def journal_of(path: Path, entries: Sequence[JournalEntry]) -> Path:
    path.write_bytes(b"".join(map(encode_entry, entries)))
    return path


def test_a_case_that_one_side_left_out_has_its_reason(tmp_path: Path) -> None:
    base = Made(seed=1).write(tmp_path / "a.json")
    without_large = Made(seed=2, costs={"small": 1_000.0, "middle": 5_000.0})
    left_out = LeftOut(target=TARGET.key, case=CASES["large"].key, reason="no time")
    entries = [*without_large.lines(), OmittedEntry(left_out=left_out)]
    found = compare(base, journal_of(tmp_path / "b.jsonl", entries))
    (lacking,) = (case for case in found.cases if case.reason)
    assert lacking.verdict == "only in BASE"
    assert lacking.reason == because("side-lacks-case", side="NEW", why="no time")


def test_all_cases_of_a_stack_that_one_side_lacks_have_its_reason(tmp_path: Path) -> None:
    base = Made(seed=1).write(tmp_path / "a.json")
    header = Made(seed=2).lines()[0]
    missing = MissingEntry(unavailable=MissingStack(stack="fake", reason="no library"))
    found = compare(base, journal_of(tmp_path / "b.jsonl", [header, missing]))
    assert len(found.cases) == 3
    for case in found.cases:
        assert case.verdict == "only in BASE"
        assert case.reason == because("side-lacks-case", side="NEW", why="no library")


def test_a_run_with_unreadable_raw_samples_is_skipped_and_the_others_are_compared(
    tmp_path: Path,
) -> None:
    folder = side(tmp_path / "base", seeds=range(3))
    new = Made(seed=9).write(tmp_path / "n.json")
    samples = folder / "1.samples.jsonl.gz"
    cut_off = samples.read_bytes()[:500]
    samples.write_bytes(cut_off)
    found = compare(folder, new)
    assert found.base == ("0.json", "2.json")
    assert [skipped.name for skipped in found.skipped] == ["1.json"]
    with pytest.raises(BadFile, match=r"1\.samples\.jsonl\.gz"):
        compare(folder / "1.json", new)


def test_a_run_in_memory_is_compared_without_its_fingerprint_being_read_again(
    tmp_path: Path,
) -> None:
    base = Made(seed=1).write(tmp_path / "a.json")
    new = Made(seed=2, costs=with_cost("middle", ns=10_000.0)).write(tmp_path / "b.json")
    from_files = compare(base, new)
    base_run = Loaded(base, load(base))
    new_run = Loaded(new, load(new))
    base.unlink()
    new.unlink()
    assert compare(base_run, new_run) == from_files
