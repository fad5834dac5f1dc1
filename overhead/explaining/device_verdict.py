"""Verdicts on a trace from the recorded time of its device, whatever its replay says: a device that
never idles, several that work in turn, one that only copies. Pure; ns.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from overhead.explaining.device_time import copies_said
from overhead.explaining.record import StepVerdict
from overhead.explaining.trace_sentences import ADVICE_OF_A_STEP, with_causes
from overhead.explaining.verdict import WITHIN
from overhead.results import Reason, Why, because, code_of
from overhead.traces.device_split import DeviceSplit, TimeSplit
from overhead.traces.trace import Trace

_LITTLE = 0.1
"""Collectives count from this share of a step on, as operations do."""
_ALWAYS = 0.95
"""A device that works for such a share of a step bounds it: anything else saves the rest at most.
Chosen, not measured.
"""
_BOUND_BY_REPLAY = {
    "bound-by-synchronisation",
    "device-bound",
    "mixed",
    "mixed-without-synchronisations-host",
    "mixed-without-synchronisations-device",
    "synchronisations-replayed",
}
"""What the replay says of waits."""
_MOST_FEW_LAUNCHES = 3
"""So many launches are no program to be judged. Chosen, not measured."""


def never_idle(verdict: StepVerdict, split: DeviceSplit) -> StepVerdict:
    """The verdict that the device bounds the step if it works almost all the time: then neither
    waits nor work of the host cost much. The same verdict if it does not, or may wait for others.
    """
    busiest = max(split.devices, key=_busy_of, default=None)
    if busiest is None or split.step_ns <= 0:
        return verdict
    share = min(1.0, busiest.busy / split.step_ns)
    may_wait = busiest.collective + busiest.waiting > _LITTLE * split.step_ns
    if share < _ALWAYS or may_wait:
        return verdict
    bound = because(
        "device-bound-as-recorded", device_ns=busiest.busy, step_ns=split.step_ns, share=share
    )
    kept = [each for each in verdict.sentences if code_of(each) not in _BOUND_BY_REPLAY]
    kept = [each for each in kept if code_of(each) not in ADVICE_OF_A_STEP]
    return msgspec.structs.replace(verdict, kind="device", factor=None, sentences=[bound, *kept])


def in_turn(
    verdict: StepVerdict, said: Sequence[Why], of_devices: list[Reason], split: DeviceSplit
) -> tuple[StepVerdict, list[Why], list[Reason]]:
    """The verdict and its sentences where several devices work in turn. The replay does not know
    that one of them waits for the other, so what it predicts without waits is wrong: if one of them
    works almost all the time, they bound the step.
    """
    kept = [each for each in said if code_of(each) not in ("predicted-gains", "device-is-idle")]
    together = split.together_ns / split.step_ns
    if verdict.kind not in ("synchronisation", "mixed", "device") or together < 1 - WITHIN:
        return verdict, kept, of_devices
    rest = [each for each in kept if code_of(each) not in _BOUND_BY_REPLAY]
    busiest = max(row.busy for row in split.devices)
    bound = because(
        "device-bound-in-turn",
        devices=len(split.devices),
        step_ns=split.step_ns,
        busy=busiest / split.step_ns,
        together=together,
    )
    verdict = msgspec.structs.replace(verdict, kind="device", factor=None)
    return verdict, [bound, *rest], []


def with_device_causes(said: list[Why], trace: Trace, split: DeviceSplit) -> list[Why]:
    """The sentences of a verdict that the device bounds the step. They also say so if copies take
    most of the device's time, and which steps do not fit.
    """
    of_copies = copies_said(split, trace)
    if of_copies:
        said = [each for each in said if code_of(each) != "pageable-uploads"]
    return with_causes(said, of_copies)


def too_few_launches(verdict: StepVerdict, trace: Trace) -> Reason | None:
    """Why a recording of one step tells nothing of what bounds the program: it holds almost no
    launches, and the host did something else. None if it does. A graph is many launches.
    """
    called = []
    for step in trace.steps:
        called += [call.name for call in step.calls if call.kind == "launch"]
    launches = len(called)
    is_one = len(trace.steps) == 1
    if verdict.kind == "device" or launches > _MOST_FEW_LAUNCHES or not is_one:
        return None
    if any("Graph" in name for name in called):
        return None
    if not launches:
        return because("no-launches")
    return because("too-few-launches", launches=launches)


def _busy_of(device: TimeSplit) -> float:
    return device.busy
