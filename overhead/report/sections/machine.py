"""The machine, its state while it was measured, and the versions of everything below a figure."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.summary import speed_change
from overhead.reading.view import View
from overhead.report.core.registry import register
from overhead.results import Scalar


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
        ("measured", run.created),
        ("profile", run.profile),
        ("method and file version", f"{run.method_version}, {run.schema_version}"),
    ]
    yield Table("Identity", ["", ""], rows)
    yield Table("State while measuring", ["", ""], [(k, _said(v)) for k, v in sorted(run.volatile.items())])
    if moved := speed_change(view):
        yield Text([moved])
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
    return (
        {True: "yes", False: "no"}[value]
        if isinstance(value, bool)
        else f"{value:.6g}"
        if isinstance(value, float)
        else str(value)
    )
