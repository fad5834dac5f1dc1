"""A token of a language model in one row of the front page, with a link to the page of decoded tokens."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table
from overhead.decode.decoders import LARGE_BYTES, weight_bytes
from overhead.decode.lowering.fusions import FUSIONS
from overhead.decode.reading import DecodeArm, decoded, fastest_arm
from overhead.reading.format import percent_spread, positive_spread
from overhead.reading.view import View
from overhead.report.core.page_list import page_named
from overhead.report.core.registry import register


@register("a-token", "A token of a language model", 27, any_run=True)
def decode_summary(view: View) -> Iterator[Part]:
    rows = [(found.name, [fastest_arm(found, fusions) for fusions in (0, len(FUSIONS))]) for found in decoded(view)]
    timed = [(name, arms) for name, arms in rows if any(arms)]
    if not timed:
        return
    name, arms = max(timed, key=lambda row: (weight_bytes(row[0]) >= LARGE_BYTES, all(row[1])))
    cells: list[str | Cell] = [Cell(name, path=page_named("decode").path)]
    for arm in arms:
        cells += _cells(arm)
    columns = ["model", *(text for kind in ("unfused", "fused") for text in (f"{kind}, ms", "by", "host's share"))]
    yield Table("One token at batch 1, by the fastest arm", columns, [cells], numeric=[1, 3, 4, 6])


def _cells(arm: DecodeArm | None) -> list[str | Cell]:
    if arm is None or arm.complete is None:
        return ["", "", ""]
    share = arm.host_share
    way = f"{arm.target.short}, {arm.how.partition(', ')[2]}"
    shown = "too small to measure" if arm.host_below_resolution else ""
    shown = percent_spread(share) if share is not None else shown
    return [positive_spread(arm.complete / 1e6), Cell(way, arm.target.stack), shown]
