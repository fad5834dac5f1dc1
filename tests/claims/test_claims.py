"""Test that the registry is complete and consistent, and that records of our stacks give the right
verdicts.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from overhead.blocks.markdown import markdown
from overhead.blocks.terminal import show
from overhead.claims.findings import published_claims
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
from overhead.reading.findings import RunsAtHand
from overhead.reading.published import publications
from overhead.reading.view import View
from overhead.results import (
    Api,
    Case,
    Comparison,
    Fingerprint,
    Gpu,
    Machine,
    Params,
    Pattern,
    Record,
    Target,
    Value,
    Why,
    because,
)
from overhead.words import claims as words
from overhead.words.findings import finding_words
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
        # As in a model: each fusion leaves out 100 of its 881 dispatches.
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
    half_of_last_digit = 0.5000005 * 10.0**-digits  # and a little for rounding of floats
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
    assert bool(claim.mistake) == bool(claim.flaw and claim.flawed)
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


def alone_takes(times: float, stack: str = "wgpu-native", **kind: Any) -> Record:
    """A record for the claim ``naive-20x``, which says that a dispatch alone takes 20.9 times as
    long as one more in a chain. Here it takes ``times`` as long.
    """
    one_more_ns = 20_000.0
    return record(stack, each=one_more_ns, fixed=(times - 1) * one_more_ns, **kind)


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        (20.0, "reproduced"),
        (6.0, "partial"),
        (3.0, "refuted"),
        (1.05, "refuted"),
        (4.57, "inconclusive"),
    ],
)
def test_a_measured_figure_gets_the_verdict_of_the_rules(times: float, verdict: str) -> None:
    # The root of 20.9 is 4.57, the least ratio that is a part: its interval holds the limit.
    assert _verdict("naive-20x", alone_takes(times)) == verdict


def test_a_figure_of_a_software_adapter_decides_nothing() -> None:
    assert _verdict("naive-20x", alone_takes(20.0, software=True)) == "inconclusive"


def _claimed(value: float, unit: Unit) -> tuple[Claim, ClaimTest]:
    """The first claim with this unit, as if it had published this value."""
    for claim in CLAIMS:
        test = claim.test
        if test is None or test.unit != unit or test.no_effect or test.kind == "fails":
            continue
        return msgspec.structs.replace(claim, value=value), test
    raise AssertionError(f"no claim has the unit {unit}")


def _found(value: float, low: float, high: float) -> ClaimValue:
    """A measured value with its interval."""
    return ClaimValue(
        machine="A",
        cases=(),
        of="",
        against="",
        software=False,
        status="ok",
        measured=Value(value, low, high),
    )


@pytest.mark.parametrize(
    ("published_value", "low", "high", "expected"),
    [
        # Within a factor of 1.5, and the logarithm too; partly within 5 and 2.
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
    claim, test = _claimed(published_value, "ratio")
    found = _found((low * high) ** 0.5, low, high)
    assert verdict_on_value(claim, test, found) == expected


@pytest.mark.parametrize(
    ("published_value", "low", "high", "expected"),
    [(0.75, 0.65, 0.80, "reproduced"), (0.75, 0.45, 0.55, "partial"), (0.95, 0.60, 0.70, "refuted"),
     (0.05, 0.04, 0.07, "reproduced")],
)  # fmt: skip
def test_a_share_is_judged_by_what_it_leaves_too(
    published_value: float, low: float, high: float, expected: str
) -> None:
    claim, test = _claimed(published_value, "share")
    found = _found((low + high) / 2, low, high)
    assert verdict_on_value(claim, test, found) == expected


def test_a_range_of_shares_reaches_from_below_its_low_end_to_above_its_high_end() -> None:
    claim, test = _claimed(0.75, "share")
    wide = msgspec.structs.replace(claim, value=[0.2, 0.75])
    assert verdict_on_value(wide, test, _found(0.72, low=0.65, high=0.80)) == "reproduced"
    assert verdict_on_value(wide, test, _found(0.17, low=0.15, high=0.19)) == "reproduced"
    assert verdict_on_value(wide, test, _found(0.90, low=0.86, high=0.93)) == "partial"


def test_a_refuted_ratio_of_the_same_direction_says_whether_it_is_smaller_or_larger() -> None:
    claim, test = _claimed(2.0, "ratio")
    far_larger = _found(270.0, low=88.0, high=498.0)
    smaller = _found(1.2, low=1.15, high=1.25)
    larger = _found(5.0, low=4.0, high=6.0)
    opposite = _found(0.5, low=0.4, high=0.6)
    assert size_beside_published(claim, test, [far_larger]) == "larger"
    assert size_beside_published(claim, test, [smaller]) == "smaller"
    assert size_beside_published(claim, test, [opposite]) == ""
    assert size_beside_published(claim, test, [smaller, larger]) == "", "they disagree"


def test_a_refuted_ratio_below_1_is_a_larger_effect_the_smaller_it_is() -> None:
    claim, test = _claimed(0.5, "ratio")
    a_tenth = _found(0.1, low=0.09, high=0.11)
    near_1 = _found(0.8, low=0.75, high=0.85)
    assert size_beside_published(claim, test, [a_tenth]) == "larger"
    assert size_beside_published(claim, test, [near_1]) == "smaller"


@pytest.mark.parametrize("unit", [unit for unit in get_args(Unit) if unit != "dispatches"])
def test_a_range_names_its_unit_once_at_its_end(unit: Unit) -> None:
    test = ClaimTest(quantity="q", unit=unit)
    lowest = _found(0.39, low=0.3, high=0.4)
    highest = _found(0.46, low=0.4, high=0.5)
    low_end, _, high_end = words.measured_range(test, [lowest, highest]).partition(" to ")
    assert low_end.replace(".", "").isdecimal()
    assert high_end == words.measured_range(test, [highest])


def test_a_range_of_dispatches_is_of_whole_numbers() -> None:
    test = ClaimTest(quantity="q", unit="dispatches")
    found = [_found(0.39, low=0.3, high=0.4), _found(0.46, low=0.4, high=0.5)]
    assert words.measured_range(test, found) == words.measured_range(test, found[1:])


def _verdict(claim: str, *records: Record) -> str:
    return judged(claim, fingerprint(*records)).verdict


@pytest.mark.parametrize(
    ("times", "verdict", "size"),
    [(20.0, "reproduced", ""), (6.0, "partial", ""), (3.0, "refuted", "smaller")],
)
def test_only_a_refuted_ratio_is_said_to_be_smaller_or_larger(
    times: float, verdict: str, size: str
) -> None:
    found = judged("naive-20x", fingerprint(alone_takes(times)))
    assert found.verdict == verdict
    assert found.size == size


def test_a_claim_with_different_verdicts_on_two_targets_is_partial() -> None:
    far = alone_takes(20.0)
    near = alone_takes(1.05, "dawn")
    assert _verdict("naive-20x", far) == "reproduced"
    assert _verdict("naive-20x", near) == "refuted"
    assert _verdict("naive-20x", far, near) == "partial"


def compiled_loop(**outcome: Any) -> Record:
    """A record for the claim ``compile-fails-at-1000``: compiling a loop of 1,000 steps ends in a
    ``RecursionError``.
    """
    params: Params = {"mode": "default", "steps": 1000}
    made = record("torch-compile", api="CPU", adapter="CPU", params=params, **outcome)
    return msgspec.structs.replace(made, workload=UNROLLED)


def failed_loop(reason: Why) -> Record:
    return compiled_loop(each=None, status="failed", reason=reason)


STOPPED_BY_US = because(
    "raised", kind="CompileError", why=because("compile-time-limit", seconds=60.0, mib=900.0)
)


@pytest.mark.parametrize(
    ("loop", "verdict"),
    [
        (failed_loop("RecursionError"), "reproduced"),
        (compiled_loop(), "refuted"),
        (compiled_loop(each=None, status="unavailable", reason="no"), "inconclusive"),
        (failed_loop(STOPPED_BY_US), "inconclusive"),
        (failed_loop("CompileError: died with exit code -11"), "partial"),
    ],
    ids=["as claimed", "works", "unavailable", "stopped by our time limit", "by another error"],
)
def test_a_claim_that_a_case_fails_is_reproduced_by_a_case_that_fails(
    loop: Record, verdict: str
) -> None:
    assert _verdict("compile-fails-at-1000", loop) == verdict


@pytest.mark.parametrize(
    ("older", "newer", "verdict"),
    [
        (compiled_loop(), failed_loop("RecursionError"), "reproduced"),
        (failed_loop("RecursionError"), compiled_loop(), "refuted"),
    ],
    ids=["fails now", "works now"],
)
def test_that_a_case_fails_is_judged_by_the_newest_run_also_if_an_older_one_has_a_value(
    older: Record, newer: Record, verdict: str
) -> None:
    runs = [
        fingerprint(older, created="2026-01-01T00:00:00Z"),
        fingerprint(newer, created="2026-02-01T00:00:00Z"),
    ]
    assert judged("compile-fails-at-1000", *runs).verdict == verdict


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
    # The driver version in a name does not make it another device.
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
    old = fingerprint(alone_takes(1.05), created="2026-01-01T00:00:00Z")
    new = fingerprint(alone_takes(20.0), created="2026-02-01T00:00:00Z")
    far = fingerprint(
        alone_takes(20.0),
        machine=Machine(id="ba9876543210", cpu="B", cores=1, memory_gib=1, gpus=[Gpu(name="X")]),
    )
    one = judged("naive-20x", old, new)
    assert one.verdict == "reproduced"
    assert len(one.measured) == 1
    of_two_machines = judged("naive-20x", old, new, far)
    assert {value.machine for value, _ in of_two_machines.measured} == {"Fake GPU", "X"}


def test_a_run_with_environment_variables_is_used_only_if_there_is_no_other() -> None:
    plain = fingerprint(alone_takes(20.0), created="2026-01-01T00:00:00Z")
    changed = fingerprint(
        alone_takes(1.05),
        created="2026-02-01T00:00:00Z",
        environment={"WGPU_POWER_PREF": "low"},
    )
    assert judged("naive-20x", plain, changed).verdict == "reproduced"
    assert judged("naive-20x", changed).verdict == "refuted"


def test_a_claim_uses_an_older_run_with_a_value_if_the_newest_has_none() -> None:
    old = fingerprint(alone_takes(20.0), created="2026-01-01T00:00:00Z")
    new = fingerprint(
        record(each=None, status="failed", reason="withdrawn"), created="2026-02-01T00:00:00Z"
    )
    one = judged("naive-20x", old, new)
    assert one.verdict == "reproduced"
    assert len(one.measured) == 1
    alone = judged("naive-20x", new)
    assert alone.verdict == "inconclusive"
    without_value, _ = alone.measured[0]
    assert without_value.measured is None


def test_hostile_device_names_are_escaped_in_terminal_markdown_and_json(
    everything: Fingerprint, capsys: pytest.CaptureFixture[str]
) -> None:
    # HTML, the end of a cell and code in Markdown, a colour in a terminal.
    hostile = alone_takes(20.0, adapter="<img src=x>|`x`\x1b[31m")
    found = judge_runs([fingerprint(hostile), everything])
    text = markdown(verdict_blocks(found))
    assert "<img" not in text.replace("\\<", "")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    # Five columns.
    assert {row.replace("\\|", "").count("|") for row in rows} == {6}
    show(overview_blocks(found))
    assert "\x1b[31mx" not in capsys.readouterr().out
    decoded = json.loads(json.dumps([in_words(claim_data(one)) for one in found], allow_nan=False))
    assert {one["verdict"] for one in decoded} <= set(VERDICTS)
    assert len(decoded) == len(CLAIMS)


def test_judge_reads_files_and_folders_and_skips_bad_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_fingerprint(tmp_path / "a.json", fingerprint(alone_takes(20.0)))
    alone = judge([tmp_path / "a.json"])
    (tmp_path / "bad.json").write_text("{")
    assert judge([tmp_path]) == alone
    assert capsys.readouterr().err.startswith("overhead: skipped bad.json: ")
    with pytest.raises(BadFile):
        judge([tmp_path / "missing.json"])


def simulation(stack: str, pattern: Pattern, *, step_ns: float, wait_ns: float, api: Api) -> Record:
    params: Params = {"elements": 10_000}
    made = record(
        stack, pattern, step_ns, wait_ns, api=api, adapter=GPU, unit="step", params=params
    )
    return msgspec.structs.replace(made, workload="simulation")


def test_a_claim_about_n_steps_includes_the_wait_and_its_flaw_compares_unequal_step_counts() -> (
    None
):
    """The claim compares a step with a step. The source compared 5,000 steps of torch and a wait
    with 1,500 fused steps and a wait.
    """
    run = fingerprint(
        simulation("torch", "per-submit", step_ns=50_000.0, wait_ns=10_000.0, api="CUDA"),
        simulation("dawn", "fused", step_ns=500.0, wait_ns=90_000.0, api="Vulkan"),
    )
    one = judged("fuse-159x", run)
    measured = [value.measured.value for value, _ in one.measured if value.measured]
    assert measured == [pytest.approx(50_000 / 500)]
    (flawed,) = one.flawed
    assert flawed.measured is not None
    assert flawed.measured.value == pytest.approx(
        (10_000 + 5_000 * 50_000) / (90_000 + 1_500 * 500)
    )
    assert flawed.cases[1].pattern == "simulation fused elements=10000"


def elementwise(mode: str, ns: float) -> Record:
    """Five element-wise operations of torch, compiled in this mode, on a GPU."""
    params: Params = {"mode": mode, "ops": 5}
    return record("torch-compile", each=ns, api="CUDA", adapter=GPU, params=params)


def test_a_verdict_from_another_kind_of_hardware_names_both_kinds() -> None:
    """The published figure is from a CPU; the test is of CUDA graphs, so it needs a GPU."""
    eager = elementwise("eager", ns=20_000.0)
    graph = elementwise(
        "reduce-overhead", ns=40_000.0
    )  # slower, and published as 2.78 times faster
    one = judged("reduce-overhead-2.78x", fingerprint(eager, graph))
    assert one.verdict == "refuted"
    assert one.is_of_other_hardware
    assert one.claim.hardware in words.verdict(one)
    assert one.claim.hardware in words.explanation(one)
    assert words.verdict(one) in markdown(verdict_blocks([one]))


def test_a_verdict_from_the_same_kind_of_hardware_names_no_kind() -> None:
    both_gpus = judged("naive-20x", fingerprint(record(each=21_000.0, fixed=1_000.0)))
    assert words.verdict(both_gpus) == both_gpus.verdict == "refuted"


def test_a_software_adapter_is_another_kind_of_hardware() -> None:
    firefox = record("firefox", caller="browser", software=True)
    one = judged("firefox-1.04ms", fingerprint(firefox))
    assert one.is_of_other_hardware
    assert [value.on for value, _ in one.measured] == ["software"]


def test_a_compiled_loop_is_compared_with_the_same_number_of_eager_steps() -> None:
    params: Params = {"mode": "eager", "elements": 4096}
    place = {"api": "CPU", "adapter": "CPU"}
    # Of one eager step, and of one call of the loop of 500, in ns; ``fixed`` is the wait.
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
    measured = [value.measured.value for value, _ in one.measured if value.measured]
    assert measured == [pytest.approx((500 * 10_000 + 1_000) / (2_499_000 + 2_000))]
    assert one.verdict == "reproduced"


@pytest.mark.parametrize(
    ("reason", "failed_by"),
    [
        (
            because(
                "raised",
                kind="CompileError",
                why=because("compile-memory-limit", seconds=60.0, mib=900.0),
            ),
            "memory",
        ),
        (
            because("compile-failed", kind="RecursionError", seconds=1.0, mib=900.0),
            "RecursionError",
        ),
        (because("with-text", why=because("one-process"), text="CUDA out of memory"), "memory"),
        ("OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "memory"),
        ("no such thing", ""),
    ],
    ids=["our memory limit", "kind of error", "text beside a code", "text", "other text"],
)
def test_by_what_a_case_failed_is_told_by_codes_and_by_what_a_library_says(
    reason: Why, failed_by: str
) -> None:
    assert failure_of(reason) == failed_by


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
    triton = record("triton", each=10_000.0, api="CUDA", adapter=GPU, params={"entry": "jit"})
    one = judged("triton-13us", fingerprint(triton))
    value, _ = one.measured[0]
    assert value.measured is not None
    assert words.quantity(value.measured, "us") in words.explanation(one)
    assert value.machine in words.explanation(one)
    assert words.case_label(value) not in words.explanation(one)
    (row,) = values_table([one]).rows
    assert words.case_label(value) in row


def test_each_claim_has_a_reason_in_short_and_all_that_is_behind_it(
    everything: Fingerprint,
) -> None:
    for one in judge_runs([everything]):
        assert words.in_short(one)
        assert words.explanation(one) in " ".join(words.in_full(one))


def test_the_reason_in_short_reaches_as_far_as_the_intervals_over_the_published_value() -> None:
    # Published are 13 µs; measured are 39, with an interval of a quarter on both sides.
    triton = record("triton", api="CUDA", adapter=GPU, params={"entry": "jit"})
    cost = figure("complete", 39_000.0, width=0.25)
    one = judged("triton-13us", fingerprint(msgspec.structs.replace(triton, figures=[cost])))
    assert re.findall(r"[\d.]+", words.in_short(one))[:2] == ["2.2", "3.8"]


def test_the_first_page_and_the_page_of_claims_count_the_same_claims(
    everything: Fingerprint,
) -> None:
    finding = published_claims(RunsAtHand(View(everything)))
    assert finding is not None
    on_first_page = re.findall(r"(\d+) (\w+)", finding_words(finding).title)
    on_claims_page = re.findall(r"(\d+) (\w+)", words.summary(judge_runs([everything])))
    assert (str(len(CLAIMS)), "published") in on_first_page
    assert set(on_first_page) <= set(on_claims_page)
