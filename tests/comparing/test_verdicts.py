"""Test the comparison of two sets of runs: verdicts, refusals and reasons."""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.blocks.terminal import show
from overhead.comparing import Verdicts, compare, judge
from overhead.comparing.show import comparison_blocks, comparison_data
from overhead.errors import BadFile
from overhead.loading.folders import Loaded
from overhead.loading.reduce import load
from overhead.results import (
    LeftOut,
    MissingEntry,
    MissingStack,
    OmittedEntry,
    Target,
    Together,
    because,
    codes_of,
    encode_entry,
)
from overhead.words.comparing import OVER_ALL_ROUNDS, gate
from tests.fakes.machine import Disturbance
from tests.fakes.report import fingerprint
from tests.fakes.runs import CASES, COSTS, MACHINE, TARGET, Made


def by_case(found: Verdicts) -> dict[str, str]:
    return {case.case.rpartition("size=")[2]: case.verdict for case in found.cases}


def compared(
    folder: Path, base: Made, new: Made, fail_over: float | None = None, samples: bool = True
) -> Verdicts:
    """The comparison of two runs, written to ``a.json`` and ``b.json``."""
    paths = [
        made.write(folder / name, samples=samples)
        for made, name in ((base, "a.json"), (new, "b.json"))
    ]
    return compare(paths[0], paths[1], fail_over)


def runs(folder: Path, name: str, seeds: range, **changes: object) -> Path:
    """A folder with one run per seed."""
    (folder / name).mkdir()
    for seed in seeds:
        dataclasses.replace(Made(seed=seed), **changes).write(folder / name / f"{seed}.json")  # type: ignore[arg-type]
    return folder / name


def test_only_the_case_that_is_twice_as_slow_is_slower(tmp_path: Path) -> None:
    found = compared(tmp_path, Made(seed=1), Made(seed=2, costs={**COSTS, "middle": 10_000.0}))
    assert by_case(found)["middle"] == "slower"
    assert {by_case(found)[case] for case in ("small", "large")} <= {"same", "undecided"}
    slower = next(case for case in found.cases if case.verdict == "slower")
    assert slower.ratio is not None
    assert slower.ratio.floor < 2.0 < slower.ratio.ceiling
    assert slower.base_ns == pytest.approx(5_000, rel=0.02)
    assert slower.processes == (5, 5)


def test_several_runs_detect_a_shift_that_one_run_per_side_misses(tmp_path: Path) -> None:
    costs = {name: 1.035 * cost for name, cost in COSTS.items()}
    base, new = runs(tmp_path, "base", range(4)), runs(tmp_path, "new", range(10, 14), costs=costs)
    one = compare(base / "0.json", new / "10.json")
    many = compare(base, new)
    assert set(by_case(one).values()) == {"undecided"}
    assert set(by_case(many).values()) == {"slower"}
    assert one.yardstick.kind == "one-run"
    assert (many.yardstick.kind, many.yardstick.runs) == ("several-runs", (4, 4))
    for few, more in zip(one.cases, many.cases, strict=True):
        assert few.smallest is not None
        assert more.smallest is not None
        assert few.smallest > more.smallest


def test_a_noisy_case_without_a_shift_is_undecided_and_not_same(tmp_path: Path) -> None:
    quiet = compare(runs(tmp_path, "a", range(4)), runs(tmp_path, "b", range(10, 14)))
    noisy = {number: 1 + 0.1 * math.sin(number) for number in range(5)}
    assert set(by_case(quiet).values()) == {"same"}
    assert set(
        by_case(compared(tmp_path, Made(seed=21, drift=noisy), Made(seed=22, drift=noisy))).values()
    ) == {"undecided"}


def test_costs_that_follow_the_speed_of_the_processor_are_compared_at_the_same_speed(
    tmp_path: Path,
) -> None:
    """The speed varies by 10 % between processes; one case costs 10 % more."""
    varied = Disturbance(spread=0.1, preemptions=0.0)
    slower = Made(seed=22, disturbance=varied, costs={**COSTS, "large": 1.1 * COSTS["large"]})
    found = compared(tmp_path, Made(seed=21, disturbance=varied), slower)
    assert by_case(found)["large"] == "slower"
    assert {by_case(found)[case] for case in ("small", "middle")} <= {"same", "undecided"}
    large = next(case for case in found.cases if case.verdict == "slower")
    assert large.ratio is not None
    assert large.ratio.value == pytest.approx(1.1, rel=0.01)


def test_rounds_left_out_of_figures_are_left_out_and_a_differing_verdict_over_all_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = (
        Made(seed=s, costs={"small": c}).write(tmp_path / f"{s}.json")
        for s, c in ((1, 1_000.0), (2, 1_200.0))
    )
    samples = new.with_suffix(".samples.jsonl.gz")
    slowed = [json.loads(line) for line in gzip.decompress(samples.read_bytes()).splitlines()]
    for line in slowed:
        if line["type"] == "round" and line["round"] < 1 + line["process"] % 3:
            line["canary"] = [3 * ns for ns in line["canary"]]
            line["samples"] = [[n, *(3 * ns for ns in times)] for n, *times in line["samples"]]
    samples.write_bytes(gzip.compress(b"\n".join(json.dumps(line).encode() for line in slowed)))
    (case,) = compare(base, new).cases
    assert case.verdict == "slower"
    assert case.ratio is not None
    assert case.ratio.value == pytest.approx(1.2, rel=0.01)
    assert case.all_rounds is not None
    assert case.all_rounds.verdict == "undecided"
    (data,) = comparison_data(compare(base, new))["cases"]
    assert data["all_rounds"].keys() == {"verdict", "ratio", "low", "high"}
    show(comparison_blocks(compare(base, new)))
    assert OVER_ALL_ROUNDS in capsys.readouterr().out


def test_a_change_that_only_the_spread_between_runs_hides_is_named(tmp_path: Path) -> None:
    costs = {name: 1.03 * cost for name, cost in COSTS.items()}
    found = compared(tmp_path, Made(seed=1), Made(seed=2, costs=costs), 2)
    assert {case.verdict for case in found.cases} == {"undecided"}
    assert {codes_of(case.reason) for case in found.cases} == {frozenset({"only-between-runs"})}
    assert not found.failed
    assert not found.tested_enough()


def test_a_change_of_a_tenth_is_told_by_one_run_a_side(tmp_path: Path) -> None:
    costs = {name: 1.1 * cost for name, cost in COSTS.items()}
    found = compared(tmp_path, Made(seed=1), Made(seed=2, costs=costs), 10)
    assert {case.verdict for case in found.cases} == {"slower"}
    assert all(case.smallest is not None and case.smallest <= 0.1 for case in found.cases)


def test_cases_on_a_machine_at_half_its_speed_are_not_slower(tmp_path: Path) -> None:
    disturbance = Disturbance(spread=0.004, preemptions=0.0, slowdown=2.0)
    found = compared(
        tmp_path,
        Made(seed=1, disturbance=disturbance),
        Made(seed=2, disturbance=disturbance, slow=True),
        5,
    )
    assert set(by_case(found).values()) == {"undecided"}
    assert not found.failed
    assert all(
        c.base_ns and c.new_ns == pytest.approx(2 * c.base_ns, rel=0.05) for c in found.cases
    )


def test_fail_over_fails_a_case_only_if_its_whole_interval_is_over_the_limit(
    tmp_path: Path,
) -> None:
    base = Made(seed=1).write(tmp_path / "a.json")
    new = Made(seed=2, costs={**COSTS, "large": 1.3 * COSTS["large"]}).write(tmp_path / "b.json")
    large = next(c for c in compare(base, new).cases if c.verdict == "slower")
    found = compare(base, new, 5)
    assert [c.case for c in found.failed] == [large.case]
    assert json.loads(json.dumps(comparison_data(found), allow_nan=False))["failed"] == [large.case]
    assert compare(base, new, 29).failed == []
    assert compare(new, base, 5).failed == []
    assert compare(new, base, 0).failed == []
    for limit in (0.0, 5.0, 10.0, 20.0):
        beyond = large.ratio is not None and large.ratio.floor > 1 + limit / 100
        assert bool(compare(base, new, limit).failed) == beyond


def in_turn(
    folder: Path, common: int = 3, numbers: tuple[int, ...] = (), **changes: object
) -> tuple[Path, Path]:
    """Two runs taken together, on a machine whose speed changes by 20 % between processes.
    ``changes`` apply to NEW.
    """
    paths = []
    for seed, side in ((2 * common, "base"), (2 * common + 1, "new")):
        (folder / side).mkdir(exist_ok=True)
        drift = {number: 1 + 0.2 * math.sin(number + common) for number in range(9)}
        own = Together(id=f"{common:012d}", side=side)  # type: ignore[arg-type]
        made = Made(seed=seed, drift=drift, together=own)
        if side == "new":
            made = dataclasses.replace(made, **changes)  # type: ignore[arg-type]
        made = dataclasses.replace(made, numbers=numbers if side == "new" else ())
        paths.append(made.write(folder / side / f"{common}.json"))
    return paths[0], paths[1]


def test_runs_measured_in_turn_are_compared_by_pairs_of_processes(tmp_path: Path) -> None:
    slower = {name: 1.03 * cost for name, cost in COSTS.items()}
    base, new = in_turn(tmp_path, costs=slower)
    found = compare(base, new)
    assert set(by_case(found).values()) == {"slower"}
    assert found.yardstick.kind == "in-turn"
    assert 0 < found.yardstick.spread < 0.02
    assert found.base == ("base/3.json",)
    assert found.new == ("new/3.json",)
    assert all(c.smallest is not None and c.smallest < 0.03 for c in found.cases)
    assert [c.failed for c in compare(base, new, 1).cases] == [True] * 3
    assert set(by_case(compare(new, base)).values()) == {"faster"}


def test_runs_measured_in_turn_are_matched_by_their_id_and_not_by_file_name(tmp_path: Path) -> None:
    for common in (1, 2):
        in_turn(tmp_path, common)
    for old, new in (("1", "x"), ("2", "1"), ("x", "2")):
        for end in ("json", "samples.jsonl.gz"):
            (tmp_path / "new" / f"{old}.{end}").rename(tmp_path / "new" / f"{new}.{end}")
    found = compare(tmp_path / "base", tmp_path / "new")
    assert found.yardstick.kind == "in-turn"
    assert {c.processes for c in found.cases} == {(10, 10)}
    assert set(by_case(found).values()) == {"same"}
    (tmp_path / "new" / "1.json").unlink()
    assert compare(tmp_path / "base", tmp_path / "new").yardstick.kind != "in-turn"


def test_a_worker_process_that_died_does_not_change_the_other_pairs(tmp_path: Path) -> None:
    found = compare(*in_turn(tmp_path, numbers=(1, 2, 3, 4, 8)))
    assert {c.processes for c in found.cases} == {(5, 5)}
    (tmp_path / "less").mkdir()
    few = compare(*in_turn(tmp_path / "less", numbers=(1, 2, 4)))
    assert {c.processes for c in few.cases} == {(3, 3)}
    assert set(by_case(few).values()) <= {"same", "undecided"}


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
)
@pytest.mark.parametrize("samples", [True, False])
def test_cases_with_another_timed_window_or_kernel_are_refused_with_the_difference(
    tmp_path: Path, changes: dict[str, Any], code: str, values: dict[str, Any], samples: bool
) -> None:
    found = compared(tmp_path, Made(seed=1), Made(seed=2, **changes), samples=samples)
    assert {(c.verdict, c.ratio) for c in found.cases} == {("refused", None)}
    reason = because(code, **values, one="BASE", other="NEW")
    assert [c.reason for c in found.cases] == [reason] * 3


def test_runs_of_different_method_versions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"b\.json.* method_version .*99.*a\.json"):
        compared(tmp_path, Made(seed=1), Made(seed=2, method_version=99))


def test_runs_of_two_machines_on_one_side_are_refused(tmp_path: Path) -> None:
    base = Made(seed=1).write(tmp_path / "a.json")
    other = Made(seed=2, machine=msgspec.structs.replace(MACHINE, id="ba9876543210")).write(
        tmp_path / "b.json"
    )
    with pytest.raises(BadFile, match=r"machine ba9876543210\b.* 0123456789ab .*a\.json"):
        compare([base, other], base)


def test_runs_of_two_machines_get_ratios_without_a_test(tmp_path: Path) -> None:
    far = msgspec.structs.replace(MACHINE, id="ba9876543210", cpu="another CPU")
    renamed = Target(stack="fake", api="CPU", adapter="B")
    found = compared(
        tmp_path,
        Made(seed=1, versions={"torch": "2.13"}),
        Made(seed=2, machine=far, target=renamed, versions={"torch": "2.14"}),
        5,
    )
    assert not found.same_machine
    assert {c.verdict for c in found.cases} == {"not tested"}
    assert all(
        c.ratio and c.ratio.bounded and c.ratio.floor < c.ratio.value and c.p is None
        for c in found.cases
    )
    assert not found.failed
    assert not found.any_test
    assert gate(found) != gate(
        dataclasses.replace(found, cases=(dataclasses.replace(found.cases[0], smallest=1.0),))
    )
    assert str(len(found.cases)) in gate(found)
    assert [(d.field, d.base, d.new) for d in found.differences][:2] == [
        ("id", "0123456789ab", "ba9876543210"),
        ("cpu", "a CPU", "another CPU"),
    ]
    assert ("torch", "2.13", "2.14") in [(d.field, d.base, d.new) for d in found.differences]


def test_a_list_of_the_state_is_compared_as_text_with_commas() -> None:
    base = fingerprint(volatile={"gpu_celsius": ["44", "45"]})
    new = fingerprint(volatile={"gpu_celsius": ["41", "45"]})
    assert [(d.field, d.base, d.new) for d in judge._differences(base, new)] == [
        ("gpu_celsius", "44, 45", "41, 45")
    ]


def test_runs_without_raw_samples_get_ratios_and_no_verdict(tmp_path: Path) -> None:
    base = Made(seed=1).write(tmp_path / "a.json", samples=False)
    new = Made(seed=2).write(tmp_path / "b.json")
    found = compare(base, new)
    reason = because("no-raw-samples", file="a.json")
    assert [(c.verdict, c.reason) for c in found.cases] == [("not tested", reason)] * 3
    assert all(c.ratio and c.ratio.bounded for c in found.cases)


def test_a_run_beside_the_raw_samples_of_another_run_is_refused(tmp_path: Path) -> None:
    base, other = Made(seed=1).write(tmp_path / "a.json"), Made(seed=2).write(tmp_path / "b.json")
    (tmp_path / "a.samples.jsonl.gz").write_bytes((tmp_path / "b.samples.jsonl.gz").read_bytes())
    with pytest.raises(BadFile, match=r"a\.samples\.jsonl\.gz"):
        compare(base, other)


def test_a_case_that_only_one_side_has_is_listed(tmp_path: Path) -> None:
    base, new = ({"small": 1_000.0, other: 5_000.0} for other in ("middle", "large"))
    found = compared(tmp_path, Made(seed=1, costs=base), Made(seed=2, costs=new))
    assert by_case(found)["middle"] == "only in BASE"
    assert by_case(found)["large"] == "only in NEW"
    assert found.count("undecided") == 0


def test_a_case_that_one_side_could_not_measure_has_its_reason(tmp_path: Path) -> None:
    base = Made(seed=1).write(tmp_path / "a.json")
    lines = Made(seed=2, costs={"small": 1_000.0, "middle": 5_000.0}).lines()
    lines.append(
        OmittedEntry(left_out=LeftOut(target=TARGET.key, case=CASES["large"].key, reason="no time"))
    )
    journal = tmp_path / "b.jsonl"
    journal.write_bytes(b"".join(map(encode_entry, lines)))
    (lacking,) = (c for c in compare(base, journal).cases if c.reason)
    reason = because("side-lacks-case", side="NEW", why="no time")
    assert (lacking.verdict, lacking.reason) == ("only in BASE", reason)
    missing = MissingEntry(unavailable=MissingStack(stack="fake", reason="no library"))
    journal.write_bytes(encode_entry(lines[0]) + encode_entry(missing))
    found = compare(base, journal).cases
    reason = because("side-lacks-case", side="NEW", why="no library")
    assert [(c.verdict, c.reason) for c in found] == [("only in BASE", reason)] * 3


def test_a_run_with_unreadable_raw_samples_is_skipped_and_the_others_are_compared(
    tmp_path: Path,
) -> None:
    folder = runs(tmp_path, "base", range(3))
    new = Made(seed=9).write(tmp_path / "n.json")
    samples = folder / "1.samples.jsonl.gz"
    samples.write_bytes(samples.read_bytes()[:500])
    found = compare(folder, new)
    assert found.base == ("0.json", "2.json")
    assert [one.name for one in found.skipped] == ["1.json"]
    with pytest.raises(BadFile, match=r"1\.samples\.jsonl\.gz"):
        compare(folder / "1.json", new)


def test_a_run_in_memory_is_compared_without_its_fingerprint_being_read_again(
    tmp_path: Path,
) -> None:
    base = Made(seed=1).write(tmp_path / "a.json")
    new = Made(seed=2, costs={**COSTS, "middle": 10_000.0}).write(tmp_path / "b.json")
    from_files = compare(base, new)
    in_memory = [Loaded(path, load(path)) for path in (base, new)]
    base.unlink()
    new.unlink()
    assert compare(in_memory[0], in_memory[1]) == from_files
