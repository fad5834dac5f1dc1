"""Published claims and what these measurements say of them; and the published points with their sources."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.claims.judging import Judged, gather, judge_evidence, ordered, summary
from overhead.claims.registry import cited, published_points, sources
from overhead.claims.rules import TOLERANCE
from overhead.claims.sentences import publication
from overhead.report.core.across_registry import register_across
from overhead.report.core.machines import Machines
from overhead.report.core.page_list import register_page
from overhead.report.core.parts import Cell, Part, Table, Text
from overhead.report.core.registry import keeps

register_page("claims", "Claims", 80, "What others published, and what these measurements say of it.", any_machine=True)
keeps("claims", gather)


@register_across("claims", "Published claims, judged", 70, page="claims")
def claims(machines: Machines) -> Iterator[Part]:
    found = ordered(judge_evidence([kept["claims"] for kept in machines.kept]))
    yield Text(
        [
            summary(found),
            TOLERANCE,
        ]
    )
    columns = ["claim", "published", "verdict", "why"]
    for title, open_ones in (("Claims with a verdict", True), ("Claims that these files cannot judge", False)):
        rows: list[list[str | Cell]] = [
            [one.claim.said, publication(one.claim, one.source), _verdicts(one), one.sentence]
            for one in found
            if (one.verdict != "not testable here") is open_ones
        ]
        if rows:
            yield Table(title, columns, rows, folded=not open_ones, prose=True)


def _verdicts(one: Judged) -> str:
    """The verdict on the number, on the number by the published method, and on its attribution."""
    published = f"; {one.as_published} with the published method" if one.as_published else ""
    return one.told + published + (f"; attribution {one.attribution}" if one.attribution else "")


@register_across("points", "Published points", 80, page="claims")
def points(machines: Machines) -> Iterator[Part]:
    yield Text(
        [
            "What others published, nearly all of it of hardware that was not measured here. Each holds what "
            "its contract "
            "says, so none enters a fit or a ratio with ours."
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
            cited(sources()[p.source]),
        ]
        for i, p in enumerate(published_points(), 1)
    ]
    columns = ["hardware", "API, platform", "implementation", "quantity", "value", "contract", "note", "source"]
    yield Table("Published points and their sources", columns, rows, numeric=(4,), folded=True, prose=True)
    yield Text(
        [
            "Contracts: sequential: 100 dispatches, a submission each, and one wait, over 100. Single: one "
            "dispatch and "
            "its wait, as the source waits. Slope: fitted to totals over several counts. Back to back: many "
            "empty kernels "
            "in a stream or graph, per kernel. Host call: the time until one call returns, nothing waited for."
        ],
        quiet=True,
    )
