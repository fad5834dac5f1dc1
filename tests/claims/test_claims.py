"""Test that the registry is complete and consistent, and that records of our stacks give the right
verdicts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from overhead.blocks.markdown import markdown
from overhead.blocks.terminal import show
from overhead.claims.judging import Judged, judge, judge_runs
from overhead.claims.measured import ClaimValue, against_of, failure_of
from overhead.claims.registry import Claim, ClaimTest, Selector, Unit, claims, sources
from overhead.claims.rules import (
    VERDICTS,
    bounds,
    evaluate,
    published,
    size_beside_published,
    verdict_on_value,
)
from overhead.claims.show import claim_data, overview_blocks, values_table, verdict_blocks
from overhead.errors import BadFile
from overhead.loading.files import write_fingerprint
from overhead.named_comparisons import comparable_pairs
from overhead.probes import registry, space_of
from overhead.reading.published import publications
from overhead.results import (
    Case,
    Comparison,
    Fingerprint,
    Gpu,
    Machine,
    Params,
    Record,
    Target,
    Value,
    because,
)
from overhead.words import claims as words
from overhead.words.reasons import in_words
from overhead.workloads import UNROLLED
from tests.fakes.report import figure, fingerprint, record, share

CLAIMS = claims()
APIS = {
    "numpy": "CPU",
    "torch": "CPU CUDA",
    "torch-compile": "CPU CUDA",
    "cuda-driver": "CUDA",
    "cuda-graph": "CUDA",
    "cupy": "CUDA",
    "triton": "CUDA",
    "jax": "CPU CUDA",
    "vulkan": "Vulkan",
    "wgpu-native": "Vulkan",
    "dawn": "Vulkan",
    "chromium": "Vulkan",
    "firefox": "Vulkan",
    "onnxruntime": "WebGPU",
}
GPU = "NVIDIA H200"


def a_run_of_everything() -> Fingerprint:
    """A run with all cases of all stacks on a machine with an NVIDIA GPU. Every case has every
    figure.
    """
    records: list[Record] = []
    comparisons: list[Comparison] = []
    for stack, apis in APIS.items():
        for api in apis.split():
            adapter = "CPU" if api == "CPU" else GPU
            target = Target(stack=stack, api=api, adapter=adapter, options={"device": "cuda:0"})
            cases = list(space_of(registry()[stack], target).star())
            made = {case.key: _record(target, case) for case in cases}
            records += made.values()
            # No comparison is between two workloads.
            for workload in sorted({case.workload for case in cases}):
                of_workload = [(target, case) for case in cases if case.workload == workload]
                for named, (_, of), (_, against) in comparable_pairs(of_workload):
                    comparisons.append(share(named.name, made[of.key], made[against.key], 1_000.0))
    return fingerprint(*records, comparisons=comparisons)


def _record(target: Target, case: Case) -> Record:
    made = record(
        target.stack,
        case.pattern,
        caller=case.caller,
        api=target.api,
        adapter=target.adapter,
        unit=case.unit,
        params=dict(case.params),
        dependency=case.dependency,
        more=tuple(figure(f"stage:{name}", 3_000.0) for name in ("finish", "submit")),
    )
    window: Params = {}
    if "fusions" in case.params:
        window["dispatches"] = (
            881 - 100 * int(case.params["fusions"]) + int(case.params.get("padding", 0))
        )
    return msgspec.structs.replace(made, workload=case.workload, window=window)


def judged(claim: str, *runs: Fingerprint) -> Judged:
    return next(one for one in judge_runs(runs) if one.claim.id == claim)


@pytest.fixture(scope="module")
def everything() -> Fingerprint:
    return a_run_of_everything()


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.formula], ids=lambda c: c.id)
def test_the_formula_of_a_claim_gives_its_published_value(claim: Claim) -> None:
    assert isinstance(claim.value, int | float)
    digits = len(repr(claim.value).partition(".")[2])
    half_of_last_digit = 0.5000005 * 10.0**-digits
    value = evaluate(claim.formula, claim.parts)
    assert value == pytest.approx(claim.value, abs=half_of_last_digit)


def test_the_registry_has_25_claims_with_unique_ids_and_all_sources() -> None:
    ids = [claim.id for claim in CLAIMS]
    assert len(set(ids)) == len(ids) >= 25
    points = publications().point
    assert len({point.id for point in points}) == len(points)
    assert {p.source for p in points} == set(publications().source)
    assert {p.contract for p in points} == set(publications().contract)
    cited = {claim.source for claim in CLAIMS} | {point.source for point in points}
    assert cited == set(sources())


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_the_fields_of_a_claim_agree_with_each_other(claim: Claim) -> None:
    assert (claim.test is None) == bool(claim.untested)
    low, high = published(claim)
    assert low <= high
    if claim.attribution:
        assert claim.attribution.test.unit == "share"
    for test in (claim.test, claim.flawed):
        if test is None or test.kind in ("implied", "fails"):
            continue
        assert test.unit == claim.unit
        if test.kind in ("ratio", "share") and not test.via:
            assert test.against is not None
    if claim.test is None or claim.test.kind in ("implied", "fails"):
        return
    within = bounds(claim, claim.test)
    inner, outer = within.reproduced, within.partial
    assert outer.low <= inner.low <= inner.high <= outer.high
    assert inner.low <= low <= high <= inner.high, (
        "the published figure itself must count as reproduced"
    )


def test_our_stacks_measure_at_least_25_claims(everything: Fingerprint) -> None:
    found = judge_runs([everything])
    resting: list[str] = []
    for one in found:
        if any(judged.value.measured for judged in one.measured):
            resting.append(one.claim.id)
    assert len(resting) >= 25, resting
    missing = [one.claim for one in found if one.verdict == "not testable here"]
    for claim in missing:
        selectors = _selectors(claim.test)
        elsewhere = any(s.api == "Metal" for s in selectors)
        only_in_older_runs = any(s.workload == UNROLLED for s in selectors)
        assert claim.untested or elsewhere or only_in_older_runs, claim.id


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.flawed], ids=lambda c: c.id)
def test_a_published_mistake_is_measured_on_the_same_targets_as_its_claim(
    claim: Claim, everything: Fingerprint
) -> None:
    one = judged(claim.id, everything)
    assert bool(one.measured) == bool([m for m in one.flawed if m.measured])


def _selectors(test: ClaimTest | None) -> list[Selector]:
    return [] if test is None else [s for s in (test.of, against_of(test)) if s is not None]


def test_a_measured_figure_gets_the_verdict_of_the_rules() -> None:
    def verdict(naive: float, each: float, **kind: object) -> str:
        made = record(each=each, fixed=naive - each, **kind)  # type: ignore[arg-type]
        return _verdict("naive-20x", made)

    assert verdict(400_000.0, 20_000.0) == "reproduced"
    assert verdict(120_000.0, 20_000.0) == "partial"
    assert verdict(60_000.0, 20_000.0) == "refuted"
    assert verdict(21_000.0, 20_000.0) == "refuted"
    assert verdict(91_400.0, 20_000.0) == "inconclusive"
    assert verdict(400_000.0, 20_000.0, software=True) == "inconclusive"


def _claimed(value: float, unit: Unit) -> tuple[Claim, ClaimTest]:
    """The first claim with this unit, as if it had published this value."""
    for claim in CLAIMS:
        test = claim.test
        if test is None or test.unit != unit or test.no_effect or test.kind == "fails":
            continue
        return msgspec.structs.replace(claim, value=value), test
    raise AssertionError(f"no claim has the unit {unit}")


def _found(value: float, low: float, high: float) -> ClaimValue:
    return ClaimValue(
        "A", (), "", "", software=False, status="ok", measured=Value(value, low, high)
    )


@pytest.mark.parametrize(
    ("published_value", "low", "high", "expected"),
    [
        (1.53, 1.45, 1.60, "reproduced"),
        (1.53, 1.26, 1.42, "partial"),
        (1.53, 1.16, 1.42, "inconclusive"),
        (1.53, 1.01, 1.20, "refuted"),
        (1.53, 0.60, 0.70, "refuted"),
        (2.0, 88.0, 498.0, "refuted"),
        (2.0, 3.1, 3.9, "partial"),
        (159.0, 120.0, 220.0, "reproduced"),
        (159.0, 33.0, 38.0, "partial"),
        (159.0, 20.0, 28.0, "refuted"),
        (0.5, 0.45, 0.60, "reproduced"),
        (0.5, 0.26, 0.30, "partial"),
        (0.5, 0.80, 0.90, "refuted"),
    ],
)
def test_a_ratio_is_judged_by_its_logarithm_too(
    published_value: float, low: float, high: float, expected: str
) -> None:
    assert (
        verdict_on_value(
            *_claimed(published_value, "ratio"), _found((low * high) ** 0.5, low, high)
        )
        == expected
    )


@pytest.mark.parametrize(
    ("published_value", "low", "high", "expected"),
    [(0.75, 0.65, 0.80, "reproduced"), (0.75, 0.45, 0.55, "partial"), (0.95, 0.60, 0.70, "refuted"),
     (0.05, 0.04, 0.07, "reproduced")],
)  # fmt: skip
def test_a_share_is_judged_by_what_it_leaves_too(
    published_value: float, low: float, high: float, expected: str
) -> None:
    assert (
        verdict_on_value(*_claimed(published_value, "share"), _found((low + high) / 2, low, high))
        == expected
    )


def test_a_range_of_shares_reaches_from_below_its_low_end_to_above_its_high_end() -> None:
    claim, test = _claimed(0.75, "share")
    wide = msgspec.structs.replace(claim, value=[0.2, 0.75])
    assert verdict_on_value(wide, test, _found(0.72, 0.65, 0.80)) == "reproduced"
    assert verdict_on_value(wide, test, _found(0.17, 0.15, 0.19)) == "reproduced"
    assert verdict_on_value(wide, test, _found(0.90, 0.86, 0.93)) == "partial"


def test_a_refuted_ratio_of_the_same_direction_says_whether_it_is_smaller_or_larger() -> None:
    claim, test = _claimed(2.0, "ratio")
    assert size_beside_published(claim, test, [_found(270.0, 88.0, 498.0)]) == "larger"
    assert size_beside_published(claim, test, [_found(1.2, 1.15, 1.25)]) == "smaller"
    assert size_beside_published(claim, test, [_found(0.5, 0.4, 0.6)]) == ""
    assert (
        size_beside_published(claim, test, [_found(1.2, 1.15, 1.25), _found(5.0, 4.0, 6.0)]) == ""
    )
    less = msgspec.structs.replace(claim, value=0.5)
    assert size_beside_published(less, test, [_found(0.1, 0.09, 0.11)]) == "larger"
    assert size_beside_published(less, test, [_found(0.8, 0.75, 0.85)]) == "smaller"


@pytest.mark.parametrize("unit", get_args(Unit))
def test_a_range_names_its_unit_once_at_its_end(unit: Unit) -> None:
    test = ClaimTest(quantity="q", unit=unit)
    text = words.measured_range(test, [_found(0.39, 0.3, 0.4), _found(0.46, 0.4, 0.5)])
    alone = words.measured_range(test, [_found(0.46, 0.4, 0.5)])
    if unit != "dispatches":
        low, _, high = text.partition(" to ")
        assert low.replace(".", "").isdecimal()
        assert high == alone


def _verdict(claim: str, *records: Record) -> str:
    return judged(claim, fingerprint(*records)).verdict


@pytest.mark.parametrize(
    ("naive", "verdict", "size"),
    [(400, "reproduced", ""), (120, "partial", ""), (60, "refuted", "smaller")],
)
def test_only_a_refuted_ratio_is_said_to_be_smaller_or_larger(
    naive: float, verdict: str, size: str
) -> None:
    found = judged("naive-20x", fingerprint(record(each=20_000.0, fixed=1e3 * naive - 20_000.0)))
    assert (found.verdict, found.size) == (verdict, size)


def test_a_claim_with_different_verdicts_on_two_targets_is_partial() -> None:
    far, near = record(each=20_000.0, fixed=380_000.0), record("dawn", each=20_000.0, fixed=1_000.0)
    assert _verdict("naive-20x", far) == "reproduced"
    assert _verdict("naive-20x", near) == "refuted"
    assert _verdict("naive-20x", far, near) == "partial"


def test_a_claim_that_a_case_fails_is_reproduced_by_a_case_that_fails() -> None:
    params: Params = {"mode": "default", "steps": 1000}
    broken = record(
        "torch-compile",
        each=None,
        api="CPU",
        adapter="CPU",
        params=params,
        status="failed",
        reason="RecursionError",
    )
    works = record("torch-compile", api="CPU", adapter="CPU", params=params)
    missing = record(
        "torch-compile",
        each=None,
        api="CPU",
        adapter="CPU",
        params=params,
        status="unavailable",
        reason="no",
    )
    ended = because(
        "raised", kind="CompileError", why=because("compile-time-limit", seconds=60.0, mib=900.0)
    )
    slow = msgspec.structs.replace(broken, reason=ended)
    other = msgspec.structs.replace(broken, reason="CompileError: died with exit code -11")
    looped = [
        msgspec.structs.replace(r, workload=UNROLLED) for r in (broken, works, missing, slow, other)
    ]
    found = [_verdict("compile-fails-at-1000", r) for r in looped]
    assert found == ["reproduced", "refuted", "inconclusive", "inconclusive", "partial"]


def test_that_a_case_fails_is_judged_by_the_newest_run_also_if_an_older_one_has_a_value() -> None:
    params: Params = {"mode": "default", "steps": 1000}
    works = record("torch-compile", api="CPU", adapter="CPU", params=params)
    broken = record(
        "torch-compile",
        each=None,
        api="CPU",
        adapter="CPU",
        params=params,
        status="failed",
        reason="RecursionError",
    )
    dates = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")
    for both, expected in (((works, broken), "reproduced"), ((broken, works), "refuted")):
        looped = [msgspec.structs.replace(one, workload=UNROLLED) for one in both]
        runs = [
            fingerprint(one, created=created) for one, created in zip(looped, dates, strict=True)
        ]
        assert judged("compile-fails-at-1000", *runs).verdict == expected


def test_a_claim_without_a_record_names_the_command_that_measures_it() -> None:
    found = {one.claim.id: one for one in judge_runs([fingerprint()])}
    assert found["graph-1.6x"].verdict == "not testable here"
    command = "overhead run -p cuda-driver -p cuda-graph --pattern per-submit --pattern replay"
    assert found["graph-1.6x"].measuring.command == command
    assert found["safari-2.2x"].measuring.apis == ("Metal",)
    assert "--workload acrobot" in found["acrobot-jax-172x"].measuring.command


def test_a_claim_on_a_compiled_loop_names_no_command_because_this_version_measures_none() -> None:
    found = {one.claim.id: one for one in judge_runs([fingerprint()])}
    assert found["compile-fails-at-1000"].measuring.command == ""
    assert "no longer measures it" in words.explanation(found["compile-fails-at-1000"])


def test_a_claimed_ratio_is_formed_only_from_records_of_one_device_and_machine() -> None:
    chromium = record("chromium", caller="browser", adapter="NVIDIA H200 (driver 1)")
    dawn = record("dawn", caller="native", adapter="NVIDIA H200")
    other = record("dawn", caller="native", adapter="AMD Radeon")
    software = record("dawn", caller="native", adapter="NVIDIA H200", software=True)
    assert _measured("browser-tax-1.92x", chromium, dawn) == 1
    assert _measured("browser-tax-1.92x", chromium, other) == 0
    assert _measured("browser-tax-1.92x", chromium, software) == 0
    elsewhere = fingerprint(
        dawn, machine=Machine(id="ba9876543210", cpu="B", cores=1, memory_gib=1)
    )
    assert judged("browser-tax-1.92x", fingerprint(chromium), elsewhere).measured == ()


def _measured(claim: str, *records: Record) -> int:
    return len(judged(claim, fingerprint(*records)).measured)


def test_a_claim_is_judged_by_the_newest_run_of_each_machine() -> None:
    old = fingerprint(record(each=20_000.0, fixed=1_000.0), created="2026-01-01T00:00:00Z")
    new = fingerprint(record(each=20_000.0, fixed=380_000.0), created="2026-02-01T00:00:00Z")
    far = fingerprint(
        record(each=20_000.0, fixed=380_000.0),
        machine=Machine(id="ba9876543210", cpu="B", cores=1, memory_gib=1, gpus=[Gpu(name="X")]),
    )
    one = judged("naive-20x", old, new)
    assert (one.verdict, len(one.measured)) == ("reproduced", 1)
    both = judged("naive-20x", old, new, far)
    assert {m.machine for m, _ in both.measured} == {"Fake GPU", "X"}


def test_a_run_with_environment_variables_is_used_only_if_there_is_no_other() -> None:
    plain = fingerprint(record(each=20_000.0, fixed=380_000.0), created="2026-01-01T00:00:00Z")
    changed = fingerprint(
        record(each=20_000.0, fixed=1_000.0),
        created="2026-02-01T00:00:00Z",
        environment={"WGPU_POWER_PREF": "low"},
    )
    assert judged("naive-20x", plain, changed).verdict == "reproduced"
    assert judged("naive-20x", changed).verdict == "refuted"


def test_a_claim_uses_an_older_run_with_a_value_if_the_newest_has_none() -> None:
    old = fingerprint(record(each=20_000.0, fixed=380_000.0), created="2026-01-01T00:00:00Z")
    new = fingerprint(
        record(each=None, status="failed", reason="withdrawn"), created="2026-02-01T00:00:00Z"
    )
    one = judged("naive-20x", old, new)
    assert (one.verdict, len(one.measured)) == ("reproduced", 1)
    alone = judged("naive-20x", new)
    assert (alone.verdict, alone.measured[0][0].measured) == ("inconclusive", None)


def test_hostile_device_names_are_escaped_in_terminal_markdown_and_json(
    everything: Fingerprint, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = record(each=20_000.0, fixed=380_000.0, adapter="<img src=x>|`x`\x1b[31m")
    found = judge_runs([fingerprint(hostile), everything])
    text = markdown(verdict_blocks(found))
    assert "<img" not in text.replace("\\<", "")
    assert {
        line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("|")
    } == {6}
    show(overview_blocks(found))
    assert "\x1b[31mx" not in capsys.readouterr().out
    decoded = json.loads(json.dumps([in_words(claim_data(one)) for one in found], allow_nan=False))
    assert {one["verdict"] for one in decoded} <= set(VERDICTS)
    assert len(decoded) == len(CLAIMS)


def test_judge_reads_files_and_folders_and_skips_bad_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_fingerprint(tmp_path / "a.json", fingerprint(record(each=20_000.0, fixed=380_000.0)))
    alone = judge([tmp_path / "a.json"])
    (tmp_path / "bad.json").write_text("{")
    assert judge([tmp_path]) == alone
    assert capsys.readouterr().err.startswith("overhead: skipped bad.json: ")
    with pytest.raises(BadFile):
        judge([tmp_path / "missing.json"])


def test_a_claim_about_n_steps_includes_the_wait_and_its_flaw_compares_unequal_step_counts() -> (
    None
):
    def made(stack: str, pattern: str, each: float, fixed: float, api: str) -> Record:
        params: Params = {"elements": 10_000}
        found = record(
            stack,
            pattern,  # type: ignore[arg-type]
            each,
            fixed,
            api=api,
            adapter=GPU,
            unit="step",
            params=params,
        )
        return msgspec.structs.replace(found, workload="simulation")

    run = fingerprint(
        made("torch", "per-submit", 50_000.0, 10_000.0, "CUDA"),
        made("dawn", "fused", 500.0, 90_000.0, "Vulkan"),
    )
    one = judged("fuse-159x", run)
    assert [m.measured.value for m, _ in one.measured if m.measured] == [pytest.approx(100.0)]
    (flawed,) = one.flawed
    assert flawed.measured is not None
    assert flawed.measured.value == pytest.approx(
        (10_000 + 5_000 * 50_000) / (90_000 + 1_500 * 500)
    )
    assert flawed.cases[1].pattern == "simulation fused elements=10000"


def test_a_verdict_from_another_kind_of_hardware_names_both_kinds() -> None:
    """The published figure is from a CPU; the test is of CUDA graphs, so it needs a GPU."""
    eager, graph = (
        record("torch-compile", each=each, api="CUDA", adapter=GPU, params={"mode": mode, "ops": 5})
        for each, mode in ((20_000.0, "eager"), (40_000.0, "reduce-overhead"))
    )
    one = judged("reduce-overhead-2.78x", fingerprint(eager, graph))
    assert one.verdict == "refuted"
    assert one.is_of_other_hardware
    assert one.claim.hardware in words.verdict(one)
    assert one.claim.hardware in words.explanation(one)
    assert words.verdict(one) in markdown(verdict_blocks([one]))
    alike = judged("naive-20x", fingerprint(record(each=21_000.0, fixed=1_000.0)))
    assert words.verdict(alike) == alike.verdict == "refuted"
    software = judged(
        "firefox-1.04ms", fingerprint(record("firefox", caller="browser", software=True))
    )
    assert software.is_of_other_hardware
    assert [value.on for value, _ in software.measured] == ["software"]


def test_a_compiled_loop_is_compared_with_the_same_number_of_eager_steps() -> None:
    params: Params = {"mode": "eager", "elements": 4096}
    place = {"api": "CPU", "adapter": "CPU"}
    eager = record("torch-compile", each=10_000.0, fixed=1_000.0, params=params, **place)  # type: ignore[arg-type]
    loop = record(
        "torch-compile",
        each=2_499_000.0,
        fixed=2_000.0,
        **place,  # type: ignore[arg-type]
        params={"mode": "default", "elements": 4096, "steps": 500},
    )
    run = fingerprint(*(msgspec.structs.replace(r, workload=UNROLLED) for r in (eager, loop)))
    one = judged("compile-2x-at-500", run)
    assert [m.measured.value for m, _ in one.measured if m.measured] == [
        pytest.approx(5_001_000 / 2_501_000)
    ]
    assert one.verdict == "reproduced"


def test_by_what_a_case_failed_is_told_by_codes_and_by_what_a_library_says() -> None:
    memory = because(
        "raised", kind="CompileError", why=because("compile-memory-limit", seconds=60.0, mib=900.0)
    )
    loop = because("compile-failed", kind="RecursionError", seconds=1.0, mib=900.0)
    assert failure_of(memory) == "memory"
    assert failure_of(loop) == "RecursionError"
    assert (
        failure_of(because("with-text", why=because("one-process"), text="CUDA out of memory"))
        == "memory"
    )
    assert failure_of("OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB") == "memory"
    assert failure_of("no such thing") == ""


def all_tests(claim: Claim) -> list[ClaimTest]:
    """All tests of a claim: of its number, with the source's mistake, and of its attribution."""
    found = [claim.test, claim.flawed]
    if claim.attribution is not None:
        found.append(claim.attribution.test)
    return [one for one in found if one is not None]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_sentence_of_each_test_has_one_place_for_the_value(claim: Claim) -> None:
    for test in all_tests(claim):
        assert test.quantity.count(words.VALUE) == 1


def test_each_run_has_a_sentence_with_its_machine_and_value_and_the_cases_stand_in_the_table() -> (
    None
):
    one = judged(
        "triton-13us",
        fingerprint(
            record("triton", each=10_000.0, api="CUDA", adapter=GPU, params={"entry": "jit"})
        ),
    )
    value, _ = one.measured[0]
    assert value.measured is not None
    assert words.quantity(value.measured, "us") in words.explanation(one)
    assert value.machine in words.explanation(one)
    assert words.case_label(value) not in words.explanation(one)
    (row,) = values_table([one]).rows
    assert words.case_label(value) in row
