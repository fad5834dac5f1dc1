"""The machine, its state while it was measured, and the versions of everything below a figure."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.view import View, boards_of
from overhead.report.core.registry import register
from overhead.results import VALUED, Scalar


@register("machine", "The machine", 90, page="cases", brief=True)
def machine(view: View) -> Iterator[Part]:
    run = view.fingerprint
    gpus = [g.name + (" (software)" if g.software else "") for g in run.machine.gpus]
    rows: list[tuple[str, str]] = [
        ("processor", run.machine.cpu),
        ("cores", str(run.machine.cores)),
        ("memory", f"{run.machine.memory_gib} GiB"),
        ("GPUs", ", ".join(gpus) or "none"),
        ("machine id", run.machine.id),
        ("GPU boards", ", ".join(boards_of(run.records)) or "not known"),
        ("measured", run.created),
        ("profile", run.profile),
        ("cases", f"{len(run.records):,}, {sum(r.status in VALUED for r in run.records):,} of them with a figure"),
        ("method and file version", f"{run.method_version}, {run.schema_version}"),
    ]
    yield Table("Identity", ["", ""], rows)
    yield Table("State while measuring", ["", ""], [(k, _said(v)) for k, v in sorted(run.volatile.items())])
    if run.flags:
        yield Text([f"To know of this run: {'; '.join(run.flags)}."])
    targets: list[list[str | Cell]] = [
        [
            Cell(t.label, t.stack),
            t.first.api,
            t.first.adapter,
            t.first.device,
            _kind(t.software, t.executes),
            " ".join(f"{k}={v}" for k, v in t.first.environment.items()),
        ]
        for t in view.targets
    ]
    yield Table("Targets", ["target", "API", "adapter", "device", "kind", "environment"], targets)
    yield Table("Versions", ["what", "version"], sorted(run.versions.items()), folded=True)
    yield Table("Kernel sources (SHA-256)", ["kernel", "hash"], sorted(run.kernels.items()), folded=True)


def _kind(software: bool, executes: bool) -> str:
    return "runs nothing" if not executes else "software" if software else "hardware"


def _said(value: Scalar | list[str]) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
