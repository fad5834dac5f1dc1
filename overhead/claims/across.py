"""Published claims and what these measurements say of them; and the published points with their sources."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.claims.judging import gather_evidence, judge_evidence
from overhead.claims.registry import citation, published_points, sources
from overhead.claims.show import verdict_blocks
from overhead.report.core.machines import Machines
from overhead.report.core.page_list import register_page
from overhead.report.core.registry import register_across

register_page("claims", "Claims", 80, "What others published, and what these measurements say of it.")


@register_across("claims", "Published claims, judged", 70, page="claims")
def claim_verdicts(machines: Machines) -> Iterator[Part]:
    """The verdict on each claim from all runs, with its reasons."""
    yield from verdict_blocks(judge_evidence([gather_evidence(run) for run in machines.runs]))


@register_across("points", "Published points", 80, page="claims")
def point_table(machines: Machines) -> Iterator[Part]:
    """A table of the published points with their sources, and what their contracts mean."""
    yield Text(
        [
            "What others published, nearly all of it of hardware that was not measured here. Each holds what its "
            "contract says, so none enters a fit or a ratio with ours."
        ]
    )
    rows: list[list[str | Cell]] = [
        [
            f"[{i}] {p.vendor} {p.adapter}",
            f"{p.api}, {p.platform}",
            p.implementation,
            p.quantity,
            f"{p.value:,.10g} {'µs' if p.unit == 'us' else p.unit}",
            p.contract,
            p.note,
            citation(sources()[p.source]),
        ]
        for i, p in enumerate(published_points(), 1)
    ]
    columns = ["hardware", "API, platform", "implementation", "quantity", "value", "contract", "note", "source"]
    yield Table("Published points and their sources", columns, rows, numeric=(4,), folded=True, prose=True)
    yield Text(
        [
            "Contracts: sequential: 100 dispatches, a submission each, and one wait, over 100. Single: one dispatch "
            "and its wait, as the source waits. Slope: fitted to totals over several counts. Back to back: many empty "
            "kernels in a stream or graph, per kernel. Host call: the time until one call returns, nothing waited for."
        ],
        quiet=True,
    )
