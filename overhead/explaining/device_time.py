"""Where the device's time goes: its rows for the file, and what is said of several devices.
Pure.
"""

from __future__ import annotations

import dataclasses

from overhead.explaining.ranks import RankComparison
from overhead.explaining.record import MOST_ROWS, DeviceTimeRow
from overhead.results import Reason, because
from overhead.traces.device_split import DeviceSplit, TimeSplit, device_split
from overhead.traces.trace import Trace

_MOST_COPIES = 0.5
"""From this share of the device's time on, copies bound a step that the device bounds. Chosen, not
measured.
"""
_IN_TURN = 0.1
"""Devices work in turn if all of them together work for this share of a step more than the device
that works longest. Chosen, not measured.
"""


def split_of(trace: Trace, ranks: RankComparison | None) -> DeviceSplit:
    """Where the time of each device of the first rank goes. With the traces of several ranks, the
    waits in collectives are known in the steps that all traces have, and only these count.
    """
    if ranks is None or not ranks.collectives:
        return device_split(trace)
    steps = [step for index, step in enumerate(trace.steps) if step.key(index) in ranks.shared]
    return device_split(dataclasses.replace(trace, steps=steps), ranks.waits[0])


def device_time_rows(split: DeviceSplit, *, waits_known: bool) -> list[DeviceTimeRow]:
    """The rows as the file holds them: all devices, and of their streams those that work longest if
    there are too many.
    """
    streams = [row for row in split.rows if row.stream]
    room = max(0, MOST_ROWS - len(split.devices))
    longest = {id(row) for row in sorted(streams, key=lambda row: -row.busy)[:room]}
    kept = [row for row in split.rows if not row.stream or id(row) in longest]
    return [_row(row, waits_known=waits_known) for row in kept[:MOST_ROWS]]


def _row(time: TimeSplit, *, waits_known: bool) -> DeviceTimeRow:
    return DeviceTimeRow(
        device=time.device[:200],
        stream=time.stream[:200],
        step_ns=time.step,
        compute_ns=time.compute,
        collective_ns=time.collective,
        waiting_ns=time.waiting if waits_known else None,
        copy_ns=time.copy,
        fill_ns=time.fill,
        idle_ns=time.idle,
        collective_overlapped_ns=time.collective_overlapped,
        copy_overlapped_ns=time.copy_overlapped,
        fill_overlapped_ns=time.fill_overlapped,
    )


def devices_said(split: DeviceSplit) -> list[Reason]:
    """That several devices take part and which one the verdict is about; and that they work in
    turn, where together they are much busier than each of them.
    """
    devices = split.devices
    if len(devices) < 2 or split.step_ns <= 0:
        return []
    busiest = max(devices, key=lambda row: row.busy)
    busy = busiest.busy / split.step_ns
    together = split.together_ns / split.step_ns
    values = {"devices": len(devices), "device": busiest.device, "busy": busy}
    if together >= busy + _IN_TURN:
        return [because("devices-in-turn", together=together, **values)]
    return [because("several-devices", **values)]


def copies_said(split: DeviceSplit, trace: Trace) -> list[Reason]:
    """A reason if the device that works longest spends half of its time or more on copies alone,
    and what to do about it; else nothing.
    """
    busiest = max(split.devices, key=_busy_of, default=None)
    if busiest is None or busiest.busy <= 0:
        return []
    share = busiest.copy / busiest.busy
    if share < _MOST_COPIES:
        return []
    pageable_ns = all_ns = 0.0
    for step in trace.steps:
        for work in step.device:
            if work.kind == "copy":
                all_ns += work.end - work.start
                pageable_ns += work.end - work.start if work.blocks else 0.0
    values = {"share": share, "copy_ns": busiest.copy}
    if pageable_ns >= all_ns / 2:
        how = because("pinned-in-cuda")
        if trace.maker == "pytorch":
            how = because("pinned-in-pytorch")
        return [because("pageable-copies-take-the-device", how=how, **values)]
    return [because("copies-take-the-device", **values)]


def _busy_of(time: TimeSplit) -> float:
    return time.busy
