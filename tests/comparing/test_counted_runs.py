"""Which runs and cases a comparison counts: proven ones, once each, of one kind, whatever their
files are called.
"""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.blocks.parts import Table, Text
from overhead.cli import main
from overhead.comparing import Verdicts, compare
from overhead.comparing.kernel_files import may_use
from overhead.comparing.show import comparison_blocks
from overhead.errors import BadFile
from overhead.loading import files
from overhead.loading.reduce import load
from overhead.results import (
    Gpu,
    Machine,
    OpenedEntry,
    PlannedEntry,
    Record,
    Status,
    Target,
    facts_of,
)
from tests.comparing.made_runs import by_size, in_turn, scaled, side, size_of
from tests.fakes.runs import COSTS, MACHINE, Made

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "reports" / "samples").glob("*.samples.jsonl.gz"))


def refuse(path: Path, status: str, sizes: Sequence[str] = tuple(COSTS)) -> None:
    """Refuse the figures of these cases in a fingerprint; its raw samples stay."""

    no_value = {"value": None, "low": None, "high": None, "status": status, "reason": "the reason"}

    def refused(record: Record) -> Record:
        if record.params["size"] not in sizes:
            return record
        figures = [msgspec.structs.replace(figure, **no_value) for figure in record.figures]
        return msgspec.structs.replace(record, status=status, figures=figures)

    change_records(path, refused)


def change_records(path: Path, change: Callable[[Record], Record]) -> None:
    """Write the fingerprint again with changed records."""
    run = load(path)
    records = [change(record) for record in run.records]
    files.write_fingerprint(path, msgspec.structs.replace(run, records=records))


@pytest.mark.parametrize("status", ["unverified", "failed"])
@pytest.mark.parametrize("bad_runs", [(10, 11), (11, 12), (12,)])
def test_a_case_that_did_not_do_its_work_in_a_run_is_not_faster_and_does_not_pass(
    tmp_path: Path, status: str, bad_runs: Sequence[int]
) -> None:
    base = side(tmp_path / "base", seeds=range(3))
    new = side(tmp_path / "new", seeds=(10, 11, 12), costs=scaled(by=0.6))
    assert set(by_size(compare(base, new)).values()) == {"faster"}
    for seed in bad_runs:
        refuse(new / f"{seed}.json", status, sizes=["small"])
    found = compare(base, new)
    assert by_size(found) == {"small": "not tested", "middle": "faster", "large": "faster"}
    not_everything_tested = 3
    for more in ([], ["--allow-missing"]):
        command = ["compare", str(base), str(new), "--fail-over", "10", *more]
        assert main(command) == not_everything_tested


@pytest.mark.parametrize("status", ["unverified", "failed"])
def test_a_case_that_is_refused_as_a_whole_proves_nothing_by_a_figure_that_it_still_has(
    tmp_path: Path, status: Status
) -> None:
    base = side(tmp_path / "base", seeds=[1, 2])
    new = side(tmp_path / "new", seeds=[5, 6], costs=scaled(by=0.6))

    def refused(record: Record) -> Record:
        if record.params["size"] != "small":
            return record
        return msgspec.structs.replace(record, status=status, reason="the reason")

    change_records(new / "6.json", refused)
    found = by_size(compare(base, new))
    assert found == {"small": "not tested", "middle": "faster", "large": "faster"}


@pytest.mark.parametrize("bad_run", [10, 11, 12])
def test_a_run_without_a_value_does_not_count_and_the_order_of_names_does_not_decide(
    tmp_path: Path, bad_run: int
) -> None:
    base = side(tmp_path / "base", seeds=range(3))
    p_values = set()
    for number, order in enumerate(itertools.permutations((10, 11, 12))):
        new = tmp_path / f"new{number}"
        new.mkdir()
        for name, seed in enumerate(order):
            path = Made(seed=seed, costs=scaled(by=1.3)).write(new / f"{name}.json")
            if seed == bad_run:
                refuse(path, "nonlinear")
        found = compare(base, new, fail_over=10)
        p_values.add(tuple(case.p for case in found.cases))
        for case in found.cases:
            assert case.verdict == "slower"
            assert case.failed
            assert case.runs == (3, 2), "one of the three of NEW has no value"
            assert case.left_out
    assert len(p_values) == 1, "the order of names decides"


@pytest.mark.parametrize("refused", ["base", "new"])
def test_of_runs_in_turn_a_pair_counts_only_if_both_sides_have_a_value(
    tmp_path: Path, refused: str
) -> None:
    for common in (1, 2, 3):
        in_turn(tmp_path, common)
    refuse(tmp_path / refused / "2.json", "nonlinear", sizes=["small"])
    found = compare(tmp_path / "base", tmp_path / "new")
    processes = {size_of(case): case.processes for case in found.cases}
    # Each run has five processes; of "small" two of the three pairs of runs count.
    assert processes == {"small": (10, 10), "middle": (15, 15), "large": (15, 15)}


def test_a_copy_with_another_date_is_no_other_run(tmp_path: Path) -> None:
    base = side(tmp_path / "base", seeds=[1, 2])
    new = side(tmp_path / "new", seeds=[5, 6])
    copy_with_date(base / "1.json", base / "copy.json")
    found = compare(base, new)
    assert len(found.base) == 2
    assert len(found.skipped) == 1


def test_a_copy_with_another_date_on_the_other_side_is_the_same_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = side(tmp_path / "base", seeds=[1, 2])
    new = side(tmp_path / "new", seeds=[5, 6])
    copy_with_date(base / "2.json", new / "copy.json")
    wrong_use = 2
    assert main(["compare", str(base), str(new), "--fail-over", "10"]) == wrong_use
    assert capsys.readouterr().err.count("\n") == 1
    assert set(by_size(compare(base, new)).values()) == {"not tested"}


def test_a_copy_with_another_date_and_fewer_cases_is_no_other_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = side(tmp_path / "base", seeds=[1, 2])
    new = side(tmp_path / "new", seeds=[5, 6])
    run = load(base / "2.json")
    part = msgspec.structs.replace(run, created="2026-11-30T00:00:00Z", records=run.records[:1])
    files.write_fingerprint(new / "part.json", part)
    wrong_use = 2
    assert main(["compare", str(base), str(new), "--fail-over", "10"]) == wrong_use
    assert str(base / "2.json") in capsys.readouterr().err


def copy_with_date(source: Path, target: Path) -> None:
    """Write a run again with another date, in the fingerprint and in the samples."""
    created = "2026-11-30T00:00:00Z"
    files.write_fingerprint(target, msgspec.structs.replace(load(source), created=created))
    samples = gzip.decompress(source.with_suffix(".samples.jsonl.gz").read_bytes())
    header, rest = samples.split(b"\n", 1)
    dated = json.dumps(json.loads(header) | {"created": created}).encode()
    target.with_suffix(".samples.jsonl.gz").write_bytes(gzip.compress(dated + b"\n" + rest))


def test_runs_of_two_versions_on_one_side_are_refused(tmp_path: Path) -> None:
    paths = []
    for seed, version in ((1, "1.26"), (2, "2.4"), (3, "1.26")):
        # The version of the kernel of the system may differ between runs.
        made = Made(seed=seed, versions={"numpy": version, "kernel": str(seed)})
        paths.append(made.write(tmp_path / f"{seed}.json"))
    old, new, old_again = paths
    with pytest.raises(BadFile, match=r"2\.json.* numpy 2\.4\b.* 1\.26 .*1\.json"):
        compare([old, new], old_again)
    assert compare([old, old_again], new).differences


def test_a_variable_that_one_run_of_a_side_sets_and_the_other_does_not_is_refused(
    tmp_path: Path,
) -> None:
    base = side(tmp_path / "base", seeds=[1, 2])
    new = side(tmp_path / "new", seeds=[5, 6])
    path = base / "2.json"
    set_in_one = msgspec.structs.replace(load(path), environment={"CUDA_LAUNCH_BLOCKING": "1"})
    files.write_fingerprint(path, set_in_one)
    for sides in ((base, new), (new, base)):
        with pytest.raises(BadFile, match="CUDA_LAUNCH_BLOCKING"):
            compare(*sides)
    assert compare(base / "1.json", new).base == ("1.json",)


def test_only_the_cases_of_a_changed_kernel_are_refused(tmp_path: Path) -> None:
    target = Target(stack="cuda-driver", api="CUDA", adapter="A GPU")
    paths = []
    for seed, acrobot in ((1, "bb"), (2, "cc")):
        # By the file of a kernel, the hash of its text.
        made = Made(seed=seed, target=target, kernels={"step.cu": "aa", "acrobot.cu": acrobot})
        paths.append(made.write(tmp_path / f"{acrobot}.json", samples=False))
    base, new = paths
    assert "refused" not in by_size(compare(base, new)).values(), "no case is of acrobot"

    def small_is_acrobot(record: Record) -> Record:
        if record.params["size"] != "small":
            return record
        return msgspec.structs.replace(record, workload="acrobot")

    change_records(base, small_is_acrobot)
    change_records(new, small_is_acrobot)
    found = by_size(compare(base, new))
    assert [size for size, verdict in found.items() if verdict == "refused"] == ["small"]


@pytest.mark.parametrize(
    ("names", "stacks"),
    [
        (("nvidia-h100-all", "nvidia-h100-stacks"), {"cuda-driver", "cuda-graph"}),
        (("nvidia-h100-default", "nvidia-h200-default"), {"triton"}),
    ],
)
def test_committed_runs_are_compared_although_one_kernel_changed(
    names: Sequence[str], stacks: set[str]
) -> None:
    base, new = (ROOT / "reports" / "data" / f"{name}.json" for name in names)
    found = compare(base, new)
    refused = [case for case in found.cases if case.verdict == "refused"]
    assert {case.case.partition("@")[0] for case in refused} <= stacks
    assert len(refused) <= 3
    with_ratio = [case for case in found.cases if case.ratio is not None]
    assert len(with_ratio) > 30
    assert found.count("undecided") == 0, "nothing was tested"


@pytest.mark.skipif(not SAMPLES, reason="the raw samples are not in this copy of the project")
@pytest.mark.slow
@pytest.mark.parametrize("path", SAMPLES, ids=[path.name for path in SAMPLES])
def test_the_kernel_files_that_a_case_used_are_among_those_that_it_may_use(path: Path) -> None:
    planned: dict[tuple[str, str], PlannedEntry] = {}
    opened: list[OpenedEntry] = []
    for entry in files.read_journal(path):
        if isinstance(entry, PlannedEntry):
            planned[entry.target.key, entry.case.key] = entry
        elif isinstance(entry, OpenedEntry) and entry.worker == entry.target:
            opened.append(entry)
    workloads = {entry.case.workload for entry in planned.values()}
    for used in opened:
        plan = planned[used.target, used.case]
        record: Any = _Planned(plan.target.stack, plan.case.workload)
        facts = facts_of(plan.target.stack)
        for file in used.kernels:
            assert may_use(record, facts, file, workloads), f"{used.target} {used.case}: {file}"


@dataclasses.dataclass(frozen=True)
class _Planned:
    stack: str
    workload: str


def two_machines(folder: Path) -> Verdicts:
    """The same stack on two devices; 30 versions differ."""
    paths = []
    for seed, gpu in ((1, "GPU One"), (2, "GPU Two")):
        machine = Machine(
            id=f"{seed:012d}", cpu=MACHINE.cpu, cores=2, memory_gib=24, gpus=[Gpu(name=gpu)]
        )
        target = Target(stack="fake", api="Vulkan", adapter=gpu)
        versions = {f"package-{number}": f"1.{seed}" for number in range(30)}
        made = Made(seed=seed, machine=machine, target=target, versions=versions)
        paths.append(made.write(folder / f"{seed}.json"))
    return compare(paths[0], paths[1])


def test_each_of_two_machines_is_named_as_what_it_is(tmp_path: Path) -> None:
    found = two_machines(tmp_path)
    base, new = found.machines
    assert [gpu.name for gpu in base.gpus] == ["GPU One"]
    assert [gpu.name for gpu in new.gpus] == ["GPU Two"]
    _, table, *_ = comparison_blocks(found)
    assert isinstance(table, Table)
    texts = [table.caption, *(str(row[0]) for row in table.rows)]
    for text in texts:
        names_first = "GPU One" in text
        names_second = "GPU Two" in text
        assert names_first == names_second, "a row names both devices or none"
    assert any("GPU One" in text for text in texts)


def test_the_result_and_the_table_come_before_what_changed_which_is_short(tmp_path: Path) -> None:
    found = two_machines(tmp_path)
    assert len(found.differences) > 30
    first, table, last = comparison_blocks(found)
    assert isinstance(first, Text)
    assert isinstance(table, Table)
    assert isinstance(last, Text)
    result = " ".join(first.paragraphs)
    # Short in characters: a few lines of a terminal each, although 30 versions differ.
    assert len(result) < 400
    assert max(map(len, last.paragraphs)) < 900
