"""Made steps on a simulated device and a made host: uploads, kernels of other libraries, Python,
causes on the host.
"""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from overhead.explaining.alternatives import CUDA_GRAPH, PINNED, UNSYNCHRONISED
from overhead.explaining.explaining import explanation
from overhead.explaining.host_work import (
    FROM_PAGEABLE,
    HostTimes,
    step_counts,
    synchronisation_rows,
)
from overhead.explaining.profiling import StepProfile
from overhead.explaining.record import Alternative, Explanation
from overhead.explaining.replay import StepParts, step_parts
from overhead.explaining.show import explanation_blocks
from overhead.explaining.verdict import check_replay, host_causes, judge, verdict_reasons
from overhead.results import Figure, Reason, codes_of
from overhead.timing.call_spec import FoundCall
from overhead.traces.chrome_trace import read_chrome_trace
from overhead.traces.trace import Trace
from overhead.words.format import micro_or_why
from tests.fakes import profiled_program as known
from tests.fakes.explanations import (
    DEVICE,
    SOURCE,
    decode_explained,
    profile_of,
    timing_of,
    trace_of,
)
from tests.fakes.profiled_program import Launch, Python, Upload
from tests.fakes.reasons import by_code, first_code
from tests.terminal.test_goldens import printed

UPLOADS: list[known.Part] = [
    Python(host_ns=20_000),
    *[Launch(host_ns=10_000, device_ns=30_000)] * 10,
    Upload(host_ns=20_000, device_ns=400_000, line="train.py:4"),
    *[Launch(host_ns=10_000, device_ns=30_000)] * 10,
]


def explained(
    parts: known.Parts, host: dict[str, float], trace: Trace | None = None
) -> Explanation:
    """The explanation of a made-up step on a host with these shares."""
    made = profile_of(parts)
    step_ns = DEVICE.step_ns(parts)
    made = dataclasses.replace(made, trace=trace or made.trace, shares=host)
    return explanation(SOURCE, made, timing_of(wall_ns=step_ns, issue_ns=step_ns))


def test_an_upload_from_pageable_memory_is_named_with_its_line_cost_and_remedy() -> None:
    truth = DEVICE.step_ns(UPLOADS)
    trace = trace_of(UPLOADS)
    parts = step_parts(trace, DEVICE.host_times(UPLOADS))
    assert parts.step == pytest.approx(truth, rel=0.03)
    assert parts.device == pytest.approx(known.device_ns(UPLOADS), rel=0.01)
    free = [
        Launch(host_ns=20_000, device_ns=400_000) if isinstance(part, Upload) else part
        for part in UPLOADS
    ]
    assert parts.without_waits == pytest.approx(DEVICE.step_ns(free), rel=0.15)
    (row,) = synchronisation_rows(trace)
    assert FROM_PAGEABLE in codes_of(row.what)
    assert row.site.line == "train.py:4"
    assert row.count == 1
    # The host waits for the ten kernels before, which it launched meanwhile, and for the copy.
    assert row.blocked_ns == pytest.approx(10 * 30_000 - 10 * 10_000 + 400_000, rel=0.15)
    said = by_code(explained(UPLOADS, host={}).verdict.sentences)
    assert said["pageable-uploads"].values["line"] == "train.py:4"


def test_a_short_upload_and_one_from_pinned_memory_do_not_wait() -> None:
    pinned = DEVICE.trace(UPLOADS).replace(b"(Pageable -> Device)", b"(Pinned -> Device)")
    short = trace_of(
        [Launch(host_ns=10_000, device_ns=3000), Upload(host_ns=20_000, device_ns=5000)]
    )
    for trace in (read_chrome_trace(pinned), short):
        for row in synchronisation_rows(trace):
            assert not row.blocked_ns
            assert FROM_PAGEABLE not in codes_of(row.what)


@pytest.mark.parametrize(("device_ns", "kind"), [(100_000, "device"), (1000, "host")])
def test_fifty_kernels_of_other_libraries_without_an_operation_count_as_device_work(
    device_ns: int, kind: str
) -> None:
    parts: list[known.Part] = [Launch(host_ns=8000, device_ns=device_ns, name="")] * 50
    bare = dataclasses.replace(DEVICE, operation_cost_ns=0)
    alone = bare.alone(parts).steps
    host = HostTimes(Trace([dataclasses.replace(step, operations=[]) for step in alone]))
    of_driver = {"name": "cuLaunchKernelEx", "cat": "cuda_driver"}
    of_runtime = {"name": "cudaLaunchKernelExC", "cat": "cuda_runtime"}
    for call in (of_driver, of_runtime):
        kept = [event for event in bare.run([parts] * 5).events if event["cat"] != "cpu_op"]
        for event in kept:
            if event["cat"] == "cuda_runtime":
                event.update(call)
        trace = read_chrome_trace(msgspec.json.encode(kept)).without_first_step()
        assert step_counts(trace).launches.value == 50
        found = step_parts(trace, host)
        assert found.step == pytest.approx(bare.step_ns(parts), rel=0.15)
        check = check_replay(found.step, Figure(name="measured", value=bare.step_ns(parts)))
        assert judge(found, check).kind == kind


def test_the_programs_own_python_is_told_from_the_launches() -> None:
    parts: list[known.Part] = [
        Python(host_ns=2_900_000),
        *[Launch(host_ns=10_000, device_ns=2000)] * 10,
    ]
    own = by_code(explained(parts, host={"own_python": 0.99}).verdict.sentences)
    of_program = {"own_ns": 2_900_000, "whole_ns": 3_000_000}
    assert own["own-python"].values == pytest.approx(of_program, rel=0.002)
    assert "host-work-for-each-launch" not in own

    other = by_code(explained(parts, host={"own_python": 0.05}).verdict.sentences)
    of_libraries = {"outside_ns": 2_900_000, "whole_ns": 3_000_000}
    assert other["between-the-operations"].values == pytest.approx(of_libraries, rel=0.002)

    launching: list[known.Part] = [
        Python(host_ns=20_000),
        *[Launch(host_ns=10_000, device_ns=2000)] * 50,
    ]
    launches = by_code(explained(launching, host={}).verdict.sentences)
    of_launches = {"launches": 50, "each_ns": 10_000}
    assert launches["host-work-for-each-launch"].values == pytest.approx(of_launches, rel=0.05)


def test_the_time_in_a_data_loader_is_named() -> None:
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    parts: list[known.Part] = [
        Launch(host_ns=300_000, device_ns=1000, name=loader),
        *[Launch(host_ns=10_000, device_ns=2000)] * 10,
    ]
    operation = f'"cat":"cpu_op","name":"{loader}'.encode()
    annotation = f'"cat":"user_annotation","name":"{loader}'.encode()
    recorded = DEVICE.trace(parts)
    renamed = recorded.replace(operation, annotation)
    assert renamed != recorded
    trace = read_chrome_trace(renamed).without_first_step()
    said = by_code(explained(parts, host={}, trace=trace).verdict.sentences)
    loader_ns, launches_ns = 300_000, 10 * 10_000
    share = loader_ns / (loader_ns + launches_ns)
    assert said["data-loader"].values["share"] == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize(
    ("shares", "expected_cause"),
    [
        ({"queued": 0.0}, "no-cause-on-the-host"),
        ({"queued": 0.4, "preemptions": 300.0}, "waits-for-a-processor"),
        ({"queued": 0.1, "collector": 0.25}, "collects-garbage-freeze-it"),
    ],
    ids=["quiet host", "busy processors", "garbage collector"],
)
def test_a_time_that_is_not_resolved_is_never_led_with_and_the_measured_cause_follows(
    shares: dict[str, float], expected_cause: str
) -> None:
    wide = timing_of(wall_ns=DEVICE.step_ns(UPLOADS), issue_ns=1e6)
    complete = Figure(name="complete", value=1e6, low=-1e6, high=7e6)
    figures = [complete, *wide.calls[0].figures[1:]]
    call = msgspec.structs.replace(wide.calls[0], figures=figures)
    profile = dataclasses.replace(profile_of(UPLOADS), shares=shares)
    found = explanation(SOURCE, profile, msgspec.structs.replace(wide, calls=[call]))
    # First that it is not resolved, then the time by the profile in its place.
    first, instead, cause, *_ = verdict_reasons(found)
    time = by_code([first])["step-time-not-resolved"].values
    assert time["step_ns_low"] == 0, "no time is below zero"
    assert time["step_ns_high"] == 7e6
    assert isinstance(instead, Reason)
    assert instead.values["how"] == profile.step_rule
    assert codes_of(cause) == {expected_cause}
    assert not host_causes(shares) or cause == host_causes(shares)[0]
    assert verdict_reasons(found) == found.verdict.sentences


def gained(name: str, value: float, half: float = 0.05, kind: str = "measured") -> Alternative:
    """An alternative with a measured gain: how many times as fast it is, and the half-width of its
    interval.
    """
    gain = Figure(name="gain", unit="ratio", value=value, low=value - half, high=value + half)
    measured = decode_explained().alternatives[1]
    return msgspec.structs.replace(measured, name=name, kind=kind, gain=gain)


def with_alternatives(
    parts: known.Parts, *alternatives: Alternative, met: Figure | None = None
) -> Explanation:
    """The explanation of a made-up step with these alternatives. ``met``: its unpinned time."""
    step_ns = DEVICE.step_ns(parts)
    timing = timing_of(wall_ns=step_ns, issue_ns=step_ns)
    figures = [*timing.calls[0].figures]
    if met is not None:
        figures.append(met)
    call = msgspec.structs.replace(timing.calls[0], figures=figures)
    timing = msgspec.structs.replace(timing, calls=[call])
    return explanation(SOURCE, profile_of(parts), timing, alternatives)


WAITS: list[known.Part] = [
    Launch(host_ns=10_000, device_ns=10_000, line="a.py:3"),
    known.Read(host_ns=8000, line="a.py:4"),
] * 10
HOST: list[known.Part] = [Launch(host_ns=20_000, device_ns=2000)] * 20
ON_DEVICE: list[known.Part] = [Launch(host_ns=4000, device_ns=30_000)] * 20


@pytest.mark.parametrize("half", [0.02, 0.07])
def test_synchronisations_that_cost_nothing_as_measured_do_not_bound_a_step(half: float) -> None:
    assert with_alternatives(WAITS).verdict.kind == "synchronisation"
    agreed = with_alternatives(WAITS, gained(UNSYNCHRONISED, value=1.6, kind="bound"))
    assert agreed.verdict.kind == "synchronisation"
    found = with_alternatives(WAITS, gained(UNSYNCHRONISED, value=1.0, half=half, kind="bound"))
    assert found.verdict.kind == "unclear", "neither host nor device works all the time"
    gain = by_code(found.verdict.sentences[:1])["synchronisations-do-not-bound"].values
    assert gain["gain_low"] == 1 - half
    assert gain["gain_high"] == 1 + half
    assert "synchronisations-replayed" not in by_code(found.verdict.sentences), (
        "what they cost is measured"
    )
    assert found.verdict.factor is None


def test_a_replay_that_a_cuda_graph_contradicts_gives_no_verdict_on_host_or_device() -> None:
    """A graph spares the host its launches, so a host-bound step gains by it and no other."""
    gains_much, gains_nothing = gained(CUDA_GRAPH, value=3.0), gained(CUDA_GRAPH, value=1.0)
    assert with_alternatives(HOST).verdict.kind == "host"
    assert with_alternatives(HOST, gains_much).verdict.kind == "host"
    assert with_alternatives(HOST, gains_nothing).verdict.kind == "unclear"
    assert with_alternatives(ON_DEVICE, gains_nothing).verdict.kind == "device"


def test_a_device_bound_step_that_a_cuda_graph_makes_faster_is_mixed() -> None:
    parts = StepParts(step=1.3e6, host=8e5, device=1e6, without_waits=1.3e6)
    check = check_replay(parts.step, Figure(name="measured", value=parts.step))
    assert judge(parts, check).kind == "device"
    faster = judge(parts, check, gains={CUDA_GRAPH: gained(CUDA_GRAPH, value=1.25).gain})
    assert faster.kind == "mixed"
    assert "device-bound" not in by_code(faster.sentences)


def test_a_gain_with_a_wide_interval_contradicts_no_verdict() -> None:
    wide_graph = gained(CUDA_GRAPH, value=1.5, half=0.6)
    wide_bound = gained(UNSYNCHRONISED, value=1.5, half=0.6, kind="bound")
    assert with_alternatives(HOST, wide_graph).verdict.kind == "host"
    assert with_alternatives(WAITS, wide_bound).verdict.kind == "synchronisation"
    assert with_alternatives(ON_DEVICE, wide_graph).verdict.kind == "device"


def test_pinned_memory_is_recommended_as_far_as_it_was_measured_to_help() -> None:
    found = with_alternatives(UPLOADS, gained(PINNED, value=1.0))
    said = by_code(found.verdict.sentences)
    assert "pageable-uploads" not in said
    measured = said["pageable-uploads-pinned"].values
    assert [measured[name] for name in ("gain", "gain_low", "gain_high")] == [1.0, 0.95, 1.05]


@pytest.mark.parametrize(
    ("value", "half", "is_said"),
    [(1.5, 0.05, True), (1.2, 0.05, False), (1.5, 0.7, False), (0.5, 0.1, False)],
    ids=["large", "small", "not resolved", "a loss"],
)
@pytest.mark.parametrize("kind", ["measured", "condition", "bound"])
def test_a_large_gain_is_said_in_the_first_lines(
    value: float, half: float, is_said: bool, kind: str
) -> None:
    found = with_alternatives(HOST, gained("another way", value, half=half, kind=kind))
    places = []
    for place, reason in enumerate(found.verdict.sentences):
        if isinstance(reason, Reason) and reason.values.get("name") == "another way":
            places.append(place)
    # After the verdict, in the second place.
    assert places == ([1] if is_said else [])
    assert verdict_reasons(found) == found.verdict.sentences


def test_a_large_gain_of_a_condition_is_said_of_the_condition_with_its_numbers() -> None:
    condition = Reason("beside-busy-processes", {"number": 7})
    one = gained(condition.code, value=1.5, half=0.05, kind="condition")
    found = with_alternatives(HOST, msgspec.structs.replace(one, condition=condition))
    assert by_code(found.verdict.sentences)["large-gain"].values["name"] == condition


@pytest.mark.parametrize(
    ("times", "is_first"),
    [(8.0, True), (1.1, False), (0.5, True)],
    ids=["longer", "hardly longer", "shorter"],
)
def test_a_step_that_takes_another_time_where_nothing_is_left_out_says_so_first(
    times: float, is_first: bool
) -> None:
    step_ns = DEVICE.step_ns(HOST)
    # On any core, with all that the program does.
    met = Figure(
        name="met",
        value=times * step_ns,
        low=0.9 * times * step_ns,
        high=2 * times * step_ns,
        processes=3,
    )
    found = with_alternatives(HOST, met=met)
    assert (first_code(found.verdict.sentences) == "step-as-it-runs-is-apart") == is_first
    assert found.step.met.value == pytest.approx(times * step_ns)
    assert verdict_reasons(found) == found.verdict.sentences
    assert micro_or_why(found.step.met) in printed(explanation_blocks(found), 200)


def test_a_library_that_is_not_profiled_does_not_send_its_user_to_look_for_disturbances() -> None:
    on_jax = FoundCall(one_ns=1e6, waits=["jax"], said="", api="CUDA", adapter="NVIDIA H200")
    profile = StepProfile(
        on_jax, "jax", "NVIDIA H200", reason="jax is not profiled", shares={"queued": 0.0}
    )
    found = explanation(SOURCE, profile, timing_of(wall_ns=1_000_000, issue_ns=990_000))
    assert found.verdict.kind == "unclear"
    assert "no-cause-on-the-host" not in by_code(found.verdict.sentences)
