"""Made steps on a simulated device and a made host: uploads, kernels of other libraries, Python, causes on the host."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from overhead.explain.chrome_trace import read_chrome_trace
from overhead.explain.explaining import explanation
from overhead.explain.host_work import PAGEABLE, HostTimes, step_counts, synchronisation_rows
from overhead.explain.record import Explanation
from overhead.explain.replay import step_parts
from overhead.explain.trace import Trace
from overhead.explain.verdict import check_replay, host_causes, judge, verdict_sentences
from overhead.results import Figure
from tests.fakes import profiled_program as known
from tests.fakes.explanations import DEVICE, SOURCE, profile_of, timing_of, trace_of
from tests.fakes.profiled_program import Launch, Python, Upload

UPLOADS: list[known.Part] = [
    Python(20_000),
    *[Launch(10_000, 30_000)] * 10,
    Upload(20_000, 400_000, line="train.py:4"),
    *[Launch(10_000, 30_000)] * 10,
]


def explained(parts: known.Parts, host: dict[str, float], trace: Trace | None = None) -> Explanation:
    """The explanation of a made-up step on a host with these shares."""
    made = profile_of(parts)
    step_ns = DEVICE.step_ns(parts)
    made = dataclasses.replace(made, trace=trace or made.trace, shares=host)
    return explanation(SOURCE, made, timing_of(step_ns, step_ns))


def test_an_upload_from_pageable_memory_is_named_with_its_line_cost_and_remedy() -> None:
    truth = DEVICE.step_ns(UPLOADS)
    trace = trace_of(UPLOADS)
    parts = step_parts(trace, DEVICE.host_times(UPLOADS))
    assert parts.step == pytest.approx(truth, rel=0.03)
    assert parts.device == pytest.approx(known.device_ns(UPLOADS), rel=0.01)
    free = [Launch(20_000, 400_000) if isinstance(part, Upload) else part for part in UPLOADS]
    assert parts.without_waits == pytest.approx(DEVICE.step_ns(free), rel=0.15)
    (row,) = synchronisation_rows(trace)
    assert (row.what.endswith(PAGEABLE), row.site.line, row.count) == (True, "train.py:4", 1)
    assert row.blocked_ns == pytest.approx(10 * 30_000 + 400_000 - 10 * 10_000, rel=0.15)
    said = explained(UPLOADS, {}).verdict.sentences
    assert any("train.py:4: use pin_memory() and non_blocking" in each for each in said)


def test_a_short_upload_and_one_from_pinned_memory_do_not_wait() -> None:
    pinned = DEVICE.trace(UPLOADS).replace(b"(Pageable -> Device)", b"(Pinned -> Device)")
    for trace in (read_chrome_trace(pinned), trace_of([Launch(10_000, 3000), Upload(20_000, 5000)])):
        assert [row for row in synchronisation_rows(trace) if row.blocked_ns or row.what.endswith(PAGEABLE)] == []


@pytest.mark.parametrize(("device_ns", "kind"), [(100_000, "device"), (1000, "host")])
def test_fifty_kernels_of_other_libraries_without_an_operation_count_as_device_work(device_ns: int, kind: str) -> None:
    parts: list[known.Part] = [Launch(8000, device_ns, "")] * 50
    bare = dataclasses.replace(DEVICE, operation_cost_ns=0)
    host = HostTimes(Trace([dataclasses.replace(step, operations=[]) for step in bare.alone(parts).steps]))
    for call, recorded in (("cuLaunchKernelEx", "cuda_driver"), ("cudaLaunchKernelExC", "cuda_runtime")):
        kept = [event for event in bare.run([parts] * 5).events if event["cat"] != "cpu_op"]
        for event in kept:
            event.update({"name": call, "cat": recorded} if event["cat"] == "cuda_runtime" else {})
        trace = read_chrome_trace(msgspec.json.encode(kept)).without_first_step()
        assert step_counts(trace).launches.value == 50
        found = step_parts(trace, host)
        assert found.step == pytest.approx(bare.step_ns(parts), rel=0.15)
        check = check_replay(found.step, Figure(name="measured", value=bare.step_ns(parts)))
        assert judge(found, check).kind == kind


def test_the_programs_own_python_is_told_from_the_launches() -> None:
    parts: list[known.Part] = [Python(2_900_000), *[Launch(10_000, 2000)] * 10]
    said = explained(parts, {"own_python": 0.99}).verdict.sentences
    assert any(each.startswith("2,900 of 3,000 µs of host work are your own Python") for each in said)
    assert not any("launches a step" in each for each in said)
    of_libraries = explained(parts, {"own_python": 0.05}).verdict.sentences
    assert any(each.startswith("2,900 of 3,000 µs") and "libraries" in each for each in of_libraries)
    launches = explained([Python(20_000), *[Launch(10_000, 2000)] * 50], {}).verdict.sentences
    assert any("50 launches a step: 10" in each for each in launches)


def test_the_time_in_a_data_loader_is_named() -> None:
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    parts: list[known.Part] = [Launch(300_000, 1000, loader), *[Launch(10_000, 2000)] * 10]
    before, after = (f'"cat":"{kind}","name":"{loader}'.encode() for kind in ("cpu_op", "user_annotation"))
    renamed = DEVICE.trace(parts).replace(before, after)
    assert renamed != DEVICE.trace(parts)
    trace = read_chrome_trace(renamed).without_first_step()
    said = explained(parts, {}, trace).verdict.sentences
    assert any(each.startswith("75 % of the host's time is the DataLoader's next") for each in said)


@pytest.mark.parametrize(
    "shares", [{"queued": 0.0}, {"queued": 0.4, "preemptions": 300.0}, {"queued": 0.1, "collector": 0.25}]
)
def test_a_time_that_is_not_resolved_is_never_led_with_and_the_measured_cause_follows(shares: dict[str, float]) -> None:
    wide = timing_of(1e6, 1e6)
    call = msgspec.structs.replace(
        wide.calls[0], figures=[Figure(name="complete", value=1e6, low=-1e6, high=7e6), *wide.calls[0].figures[1:]]
    )
    profile = dataclasses.replace(profile_of(UPLOADS), shares=shares)
    found = explanation(SOURCE, profile, msgspec.structs.replace(wide, calls=[call]))
    first, cause, *_ = verdict_sentences(found)
    assert first == "The time of a step is not resolved (−1,000 to 7,000 µs)."
    assert cause == (host_causes(shares) or [cause])[0]
    assert shares["queued"] or "overhead doctor" in cause
    assert verdict_sentences(found) == found.verdict.sentences
