"""The machine in short, and the runs that the pages show."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.reading.format import count, plain, run_time
from overhead.reading.sources import boards_of
from overhead.reading.summary import speed_change
from overhead.reading.view import View
from overhead.report.core.parts import Part, Table, Text
from overhead.report.core.registry import register
from overhead.results import VALUED, Fingerprint

_VERSIONS = ("driver", "cuda", "torch", "wgpu", "wgpudawn", "python")


@register("this-machine", "This machine and its runs", 30)
def this_machine(view: View) -> Iterator[Part]:
    run = view.fingerprint
    hardware = [g.name for g in run.machine.gpus if not g.software]
    found = {key: value for key, value in run.versions.items() if key.lower() in _VERSIONS}
    rows = [
        ("GPUs", ", ".join(hardware) or "none"),
        ("processor", f"{run.machine.cpu}, {count(run.machine.cores, 'core')}, {run.machine.memory_gib} GiB"),
        ("versions", ", ".join(f"{key} {value}" for key, value in sorted(found.items()))),
        ("machine id", run.machine.id),
    ]
    yield Table("The machine", ["", ""], [row for row in rows if row[1]])
    if moved := speed_change(view):
        yield Text([moved])
    runs = [own.fingerprint for own in view.runs]
    columns = ["run", "profile", "GPU board", "what it measured", "cases", "with a figure"]
    yield Table(
        "The runs on these pages; the headline is from the first", columns, [_run(one) for one in runs], numeric=(4, 5)
    )
    yield Text(
        ["Versions, kernels and the state of the machine during the measurement are listed under All cases."],
        quiet=True,
    )


def _run(run: Fingerprint) -> list[str]:
    stacks = dict.fromkeys(r.stack for r in run.records if r.stack != "floor")
    works = dict.fromkeys(r.workload for r in run.records if r.workload != "step")
    what = ", ".join([*stacks, *works])
    valued = sum(r.status in VALUED for r in run.records)
    boards = ", ".join(boards_of(run))
    return [run_time(run.created), run.profile, boards, plain(what, 120), f"{len(run.records):,}", f"{valued:,}"]
