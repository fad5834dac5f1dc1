"""Test how several runs of a machine become one: each workload from one run, missing cases from the next."""

from __future__ import annotations

import msgspec

from overhead.reading.joined_runs import (
    MeasuredCases,
    joined_run,
    measured_cases,
    not_joined,
    run_by_place,
    run_to_show,
)
from overhead.results import Comparison, Fingerprint, Pattern, Record
from tests.fakes.report import figure, fingerprint, record

GPU = {"adapter": "GPU"}


def _step(stack: str, workload: str, elements: int) -> Record:
    made = record(stack, each=9.0, **GPU)  # type: ignore[arg-type]
    return msgspec.structs.replace(made, workload=workload, params={"elements": elements}, unit="step")


def _joined(*runs: Fingerprint) -> Fingerprint:
    have = [measured_cases(run) for run in runs]
    head, places = run_to_show(have), run_by_place(have)
    return joined_run({i: runs[i] for i in sorted({head, *places.values()})}, head, places)


def _run(day: int, *records: Record) -> Fingerprint:
    return fingerprint(*records, created=f"2026-01-0{day}T00:00:00Z")


def test_a_workload_size_comes_from_the_newest_run_that_measured_it_completely() -> None:
    older = _run(1, *(_step(stack, "recurrence", n) for n in (1, 2) for stack in ("dawn", "jax", "torch")))
    newer = _run(
        2,
        record("dawn", each=5.0, **GPU),  # type: ignore[arg-type]
        _step("dawn", "recurrence", 1),
        _step("dawn", "recurrence", 2),
        _step("torch", "recurrence", 2),
    )
    newest = _run(3, *(_step("dawn", "simulation", n) for n in (1, 2)))
    page = _joined(newest, newer, older)
    assert page.created == newer.created
    taken = {(r.workload, r.params.get("elements"), r.stack) for r in page.records}
    assert len(taken) == len(page.records) == 9
    here = {(r.workload, r.params.get("elements"), r.stack) for r in newer.records}
    assert (
        taken - here
        == {
            *(("recurrence", 1, stack) for stack in ("dawn", "jax", "torch")),
            ("recurrence", 2, "jax"),
            ("simulation", 1, "dawn"),
            ("simulation", 2, "dawn"),
        }
        - here
    )
    assert [flag.split(":")[0] for flag in page.flags] == [
        "simulation of 1 and 2 elements",
        "recurrence of 1 element, recurrence by jax of 2 elements",
    ]


def test_a_missing_stack_comes_with_its_comparisons_from_another_run_once() -> None:
    both = [record(name, each=5.0, **GPU) for name in ("dawn", "torch")]  # type: ignore[arg-type]
    main = _run(1, *both)
    browser = record("chromium", each=50.0, caller="browser", **GPU)  # type: ignore[arg-type]
    tax = [
        Comparison(name="browser-tax", of=browser.key, against=[both[0].key]),
        Comparison(name="other", of=both[0].key, against=[both[1].key]),
    ]
    page = _joined(msgspec.structs.replace(_run(2, browser, both[0]), comparisons=tax), main)
    assert [r.stack for r in page.records].count("dawn") == 1
    assert {r.stack for r in page.records} == {"dawn", "torch", "chromium"}
    assert sum(c.name == "browser-tax" for c in page.comparisons) == 1


def test_a_missing_case_of_the_step_may_come_from_a_run_on_another_board() -> None:
    base, fused = (record("torch", pattern, each=5.0, **GPU) for pattern in ("per-submit", "fused"))  # type: ignore[arg-type]
    shown, other = _run(2, base), _run(1, *(record("torch", p, each=9.0, **GPU) for p in ("per-submit", "fused")))  # type: ignore[arg-type]
    assert [(r.pattern, r.figures[2].value) for r in _joined(shown, other).records] == [("per-submit", 5), ("fused", 9)]
    there = [msgspec.structs.replace(r, device="another") for r in (base, fused)]
    pair = Comparison(name="sync-cost", of=there[1].key, against=[there[1].key], worker=there[1].target_key)
    page = _joined(shown, msgspec.structs.replace(_run(1, *there), comparisons=[pair]))
    assert page.records == [base, fused]
    assert page.comparisons == [
        Comparison(name="sync-cost", of=fused.key, against=[fused.key], worker=fused.target_key)
    ]
    assert page.flags[-1].endswith("profile quick, on another GPU of that name")
    assert not any("another GPU" in flag for flag in _joined(shown, other).flags)


def test_pairs_and_the_fit_with_most_values_are_kept_unchanged() -> None:
    plain, act, fused = (record("torch", p, each=9.0, adapter="GPU") for p in ("per-submit", "read-each", "fused"))
    pair = Comparison(name="sync-cost", of=act.key, against=[plain.key])
    full = Comparison(name="marginal", of=plain.key, against=[act.key, fused.key])
    older = msgspec.structs.replace(_run(1, plain, act, fused), comparisons=[pair, full])
    mine = record("torch", each=5.0, adapter="GPU")
    newer = _run(2, mine, *(record(stack, each=5.0, adapter="GPU") for stack in ("jax", "dawn")))
    small = Comparison(name="marginal", of=plain.key, against=[mine.key])
    page = _joined(msgspec.structs.replace(newer, comparisons=[small]), older)
    assert page.created == newer.created
    assert [r.value("complete") for r in page.records] == [5, 5, 5, 9, 9]
    assert page.comparisons == [pair, full]


def test_a_comparison_of_two_stacks_is_kept_if_another_run_has_more_cases_of_one() -> None:
    vulkan, dawn, floor = (record(stack, each=5.0, adapter="GPU") for stack in ("vulkan", "dawn", "floor"))
    shares = [
        Comparison(name="driver-share", of=vulkan.key, against=[floor.key]),
        Comparison(name="api-share", of=dawn.key, against=[vulkan.key]),
    ]
    usual = msgspec.structs.replace(_run(1, vulkan, dawn, floor), comparisons=shares)
    patterns: tuple[Pattern, ...] = ("per-submit", "per-k", "one-pass", "fused")
    page = _joined(_run(2, *(record("vulkan", p, each=9.0, adapter="GPU") for p in patterns)), usual)
    assert page.created == usual.created
    assert page.comparisons == shares
    assert {r.pattern for r in page.records if r.stack == "vulkan"} == set(patterns)


def test_the_fit_with_more_values_is_shown_and_validation_is_no_separate_share() -> None:
    plain, act, fused = (record("dawn", p, each=9.0, adapter="GPU") for p in ("per-submit", "per-k", "fused"))
    none = Comparison(
        name="marginal", of=plain.key, against=[act.key, fused.key], figures=[figure("per_submit", None, "unavailable")]
    )
    good = Comparison(name="marginal", of=plain.key, against=[act.key], figures=[figure("per_submit", 4.0)])
    validation = Comparison(name="validation-share", of=plain.key, against=[act.key])
    older = msgspec.structs.replace(_run(1, plain, act, fused), comparisons=[none, validation])
    newer = msgspec.structs.replace(_run(2, plain, act), comparisons=[good])
    assert _joined(newer, older).comparisons == [good, validation]


def test_missing_cases_come_from_the_same_board_first_and_a_ladder_from_one_run() -> None:
    def on(board: str, *records: Record) -> list[Record]:
        return [msgspec.structs.replace(r, device=board * 12) for r in records]

    usual = [record(stack, each=5.0, adapter="GPU") for stack in ("torch", "vulkan", "dawn")]
    deep = [
        record("vulkan", "per-k", each=1.0, adapter="GPU", caller="ffi"),
        record("vulkan", "per-k", each=2.0, adapter="GPU", caller="native"),
    ]
    lone = msgspec.structs.replace(deep[1], figures=[figure("complete", 7.0)])
    other = [msgspec.structs.replace(r, figures=[figure("complete", 9.0)]) for r in deep]
    shown, newest = _run(3, *on("a", *usual)), _run(4, *on("b", *other))
    page = _joined(newest, shown, _run(2, *on("a", lone)), _run(1, *on("a", *deep)))
    assert page.created == shown.created
    assert [r.value("complete") for r in page.records] == [5, 5, 5, 1, 2]


def test_a_stack_from_another_run_keeps_its_base_case_first() -> None:
    full = _run(1, *(record("vulkan", p, each=5.0, adapter="GPU") for p in ("per-submit", "per-k", "fused")))
    newer = _run(2, record("vulkan", "wait-each", each=7.0, adapter="GPU"))
    page = _joined(_run(3, *(record(stack, each=5.0, adapter="GPU") for stack in ("torch", "jax"))), newer, full)
    assert [r.pattern for r in page.records if r.stack == "vulkan"] == ["per-submit", "per-k", "fused", "wait-each"]


def test_a_run_with_few_stacks_or_one_pattern_is_not_shown() -> None:
    def run(day: int, stacks: tuple[str, ...], patterns: tuple[Pattern, ...]) -> MeasuredCases:
        return measured_cases(_run(day, *(record(s, p, each=5.0, adapter="GPU") for s in stacks for p in patterns)))

    many: tuple[Pattern, ...] = ("per-submit", "per-k", "per-pass", "one-pass", "fused", "replay", "wait-each")
    usual = run(1, ("torch", "jax", "dawn", "cupy"), ("per-submit", "fused", "replay"))
    assert run_to_show([run(3, ("torch", "jax", "dawn"), ("wait-each",)), run(2, ("torch",), many), usual]) == 2
    assert run_to_show([run(2, ("torch",), many), usual]) == 1
    assert run_to_show([run(4, ("torch", "jax"), many), usual]) == 0
    assert run_to_show([run(4, ("torch",), many), run(3, ("jax",), many), run(2, ("dawn",), many), usual]) == 3
    assert run_to_show([run(9, ("torch",), ("fused",)), run(8, ("torch",), ("fused",))]) == 0
    stepping = measured_cases(_run(9, *(_step(stack, "stepping", 1) for stack in ("torch", "jax", "dawn", "cupy"))))
    assert run_to_show([stepping, usual]) == 1
    assert run_to_show([stepping]) == 0


def test_a_base_case_without_a_figure_comes_from_another_run_and_stays_first() -> None:
    base, fused = (record("torch", pattern, each=5.0, **GPU) for pattern in ("per-submit", "fused"))  # type: ignore[arg-type]
    failed = msgspec.structs.replace(base, status="failed", figures=[], reason="crashed")
    page = _joined(_run(2, failed, fused, record("dawn", each=5.0, **GPU)), _run(1, base))  # type: ignore[arg-type]
    assert [(r.stack, r.pattern, r.status) for r in page.records] == [
        ("torch", "per-submit", "ok"),
        ("torch", "fused", "ok"),
        ("dawn", "per-submit", "ok"),
    ]


def test_two_devices_with_one_name_are_not_mixed() -> None:
    one = record("vulkan", each=5.0, **GPU)  # type: ignore[arg-type]
    two = [msgspec.structs.replace(one, device=name) for name in ("first", "second")]
    shown = _run(2, *two)
    assert _joined(shown, _run(1, msgspec.structs.replace(one, device="third"))).records == two


def test_a_comparison_is_kept_only_with_its_records() -> None:
    binding, ffi, native = (record("dawn", each=5.0, caller=caller, **GPU) for caller in ("binding", "ffi", "native"))  # type: ignore[arg-type]
    shares = [
        Comparison(name="binding-share", of=binding.key, against=[ffi.key]),
        Comparison(name="interpreter-share", of=ffi.key, against=[native.key]),
    ]
    whole = msgspec.structs.replace(_run(1, binding, ffi, native), comparisons=shares)
    assert _joined(_run(2, binding, native), whole).comparisons == []
    assert _joined(whole).comparisons == shares
    odd = msgspec.structs.replace(_run(2, binding), comparisons=shares[:1])
    assert _joined(odd).comparisons == shares[:1]


def test_a_case_without_a_value_in_any_run_stays_as_in_the_shown_run() -> None:
    failed = record("dawn", status="failed", reason="it crashed", **GPU)  # type: ignore[arg-type]
    fine = record("dawn", each=5.0, **GPU)  # type: ignore[arg-type]
    torch = record("torch", each=5.0, **GPU)  # type: ignore[arg-type]
    assert [r.status for r in _joined(_run(2, torch, failed)).records] == ["ok", "failed"]
    assert [r.status for r in _joined(_run(2, torch, failed), _run(1, fine)).records] == ["ok", "ok"]


def test_runs_of_method_versions_1_and_2_are_joined() -> None:
    dawn, torch = (record(stack, each=5.0, **GPU) for stack in ("dawn", "torch"))  # type: ignore[arg-type]
    old = msgspec.structs.replace(_run(1, torch), method_version=1)
    shown = msgspec.structs.replace(_run(2, dawn), method_version=2)
    assert [r.stack for r in _joined(shown, old).records] == ["dawn", "torch"]


def test_runs_with_another_method_version_are_ignored() -> None:
    steps = [_step(stack, "recurrence", 1) for stack in ("dawn", "jax", "torch")]
    old = msgspec.structs.replace(_run(1, *steps), method_version=1_000)
    shown = _run(2, record("dawn", each=5.0, **GPU), steps[0])  # type: ignore[arg-type]
    assert _joined(shown, old).records == shown.records


def test_runs_with_other_environment_variables_are_not_joined() -> None:
    dawn, torch = (record(stack, each=5.0, **GPU) for stack in ("dawn", "torch"))  # type: ignore[arg-type]
    changed = msgspec.structs.replace(_run(3, dawn, torch), environment={"WGPU_POWER_PREF": "low"})
    older = msgspec.structs.replace(_run(1, torch), environment={"WGPU_POWER_PREF": "low"})
    plain = _run(2, dawn)
    assert _joined(older, plain).records == [dawn]
    assert [r.stack for r in _joined(changed, older).records] == ["dawn", "torch"]
    both = _run(2, dawn, torch)
    assert _joined(changed, both).created == both.created, "of two complete runs the one without variables is shown"


def test_a_flag_names_the_variables_of_the_runs_that_are_not_joined() -> None:
    torch = record("torch", each=5.0, **GPU)  # type: ignore[arg-type]
    runs = [msgspec.structs.replace(_run(1, torch), environment={"A": str(n)} if n else {}) for n in range(6)]
    have = [measured_cases(run) for run in runs]
    assert not_joined(have[:1] * 2, 0) == ""
    assert not_joined(have[:2], 0) == "1 run is not shown here, because of other environment variables: A=1"
    assert not_joined(have, 1).endswith(
        "5 runs are not shown here, because of other environment variables: none; A=2; A=3; others"
    )
