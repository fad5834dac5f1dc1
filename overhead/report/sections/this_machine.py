"""The machine and its run in short."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Part, Table, Text
from overhead.devices import is_board_id
from overhead.reading.format import count, run_time
from overhead.reading.summary import speed_change
from overhead.reading.view import View
from overhead.report.core.registry import register
from overhead.results import VALUED

_VERSIONS = ("driver", "cuda", "torch", "wgpu", "wgpudawn", "python")


@register("this-machine", "This machine and its run", 30)
def this_machine(view: View) -> Iterator[Part]:
    run = view.fingerprint
    hardware = [g.name for g in run.machine.gpus if not g.software]
    found = {key: value for key, value in run.versions.items() if key.lower() in _VERSIONS}
    rows = [
        ("GPUs", ", ".join(hardware) or "none"),
        ("processor", f"{run.machine.cpu}, {count(run.machine.cores, 'core')}, {run.machine.memory_gib} GiB"),
        ("versions", ", ".join(f"{key} {value}" for key, value in sorted(found.items()))),
        ("machine id", run.machine.id),
        ("run", f"{run_time(run.created)}, profile {run.profile}"),
        ("GPU board", ", ".join(dict.fromkeys(r.device for r in run.records if is_board_id(r.device)))),
        ("cases", f"{len(run.records):,}, {sum(r.status in VALUED for r in run.records):,} of them with a figure"),
    ]
    yield Table("The machine", ["", ""], [row for row in rows if row[1]])
    if moved := speed_change(view):
        yield Text([moved])
    yield Text(
        ["Versions, kernels and the state of the machine during the measurement are listed under All cases."],
        quiet=True,
    )
