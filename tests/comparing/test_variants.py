"""Test the comparison of variants inside one run."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import msgspec
import pytest

from overhead.cli import main
from overhead.comparing import compare
from overhead.comparing.verdicts import SkippedRun
from overhead.errors import UsageError
from overhead.loading import files
from overhead.loading.reduce import load
from overhead.results import Record, because
from tests.fakes.runs import Made

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "compare" / "numpy-2.4.json"
COSTS = {"small": 1_000.0, "middle": 1_020.0, "large": 1_000.0}


def made(folder: Path, *, samples: bool = True, **changes: object) -> Path:
    """A run whose processes differ by 20 %, and in which ``middle`` costs 2 % more than the
    others.
    """
    drift = {number: 1 + 0.2 * math.sin(number) for number in range(9)}
    run = dataclasses.replace(Made(seed=1, costs=COSTS, drift=drift), **changes)  # type: ignore[arg-type]
    return run.write(folder / "run.json", samples=samples)


def changed(path: Path, size: str, **changes: object) -> Path:
    """The same file with other fields in the record of one size."""
    run = load(path)
    records: list[Record] = []
    for record in run.records:
        if record.params["size"] == size:
            record = msgspec.structs.replace(record, **changes)
        records.append(record)
    files.write_fingerprint(path, msgspec.structs.replace(run, records=records))
    return path


def test_variants_are_tested_pair_by_pair_against_the_first(tmp_path: Path) -> None:
    found = compare(made(tmp_path), across="size=small,middle,large")
    assert found.base == ("size=small",)
    assert found.new == ("size=middle", "size=large")
    assert found.inside == ("run.json",)
    assert found.yardstick.kind == "same-processes"
    middle, large = found.cases
    for case in (middle, large):
        assert case.target.text == "fake"
        assert case.pattern == "per-submit"
        assert case.caller == "binding"
        assert case.against.endswith("size=small")
    assert middle.variant == "size=middle"
    assert middle.case.endswith("size=middle")
    assert middle.verdict == "slower"
    assert middle.ratio is not None
    assert middle.ratio.value == pytest.approx(1.02, rel=0.005)
    assert middle.processes == (5, 5)
    assert middle.runs == (1, 1)
    assert large.variant == "size=large"
    assert large.verdict == "same"


def test_variants_are_pairs_of_cases_that_differ_on_the_named_axis_alone() -> None:
    found = compare(EXAMPLE, across="caller=binding,native,ffi")
    assert [case.case for case in found.cases] == [
        "numpy@CPU:CPU step per-submit native chained alloc=in-place"
    ]
    assert found.new == ("caller=native",)
    assert found.skipped == (
        SkippedRun("caller=ffi", because("variant-alone", base="caller=binding")),
    )
    with pytest.raises(UsageError, match=r"caller=binding .*caller=ffi"):
        compare(EXAMPLE, across="caller=binding,ffi")


def test_variants_with_different_units_are_refused(tmp_path: Path) -> None:
    path = changed(made(tmp_path), "middle", unit="10 launches")
    middle, large = compare(path, across="size").cases
    assert middle.verdict == "refused"
    assert middle.ratio is None
    names = {"one": "size=small", "other": "size=middle"}
    assert middle.reason == because("unit-differs", **names, mine="dispatch", theirs="10 launches")
    assert large.verdict == "same"


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("sizes=small,large", ["'sizes'", "'size'"]),
        ("size=small,larg", ["'larg'", "'large'", "large, middle, small"]),
        ("size=small", ["--across size=small"]),
        ("size=small,small", ["--across size=small,small"]),
        ("", ["''", "size"]),
    ],
)
def test_a_wrong_axis_or_value_is_refused_in_one_line_with_exit_code_2(
    asked: str, named: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(made(tmp_path)), "--across", asked]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert all(name in said for name in named)


def test_compare_across_prints_json_and_exits_with_1_over_the_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["compare", str(made(tmp_path)), "--across", "size=small,middle"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inside"] == ["run.json"]
    assert found["cases"][0]["verdict"] == "slower"
    assert main([*asked, "--fail-over", "1"]) == 1
    assert main([*asked, "--fail-over", "5"]) == 0
