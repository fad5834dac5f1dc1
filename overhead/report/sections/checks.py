"""Do the parts agree with the whole? What could have come out otherwise, counted, and every exception named."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading import checks
from overhead.reading.checks import agreement_words
from overhead.reading.format import MICRO, number
from overhead.reading.view import CALLER_WORDS, View
from overhead.report.core.registry import register

_CHECK_TITLES = {
    "pipelined": "complete is the larger of host and device (pipelined)",
    "serial": "complete is host and device together (serial)",
    "fused": "complete is the device alone (one call for all steps)",
    "stages": "the calls timed one by one add up to issue",
    "null": "Dawn from compiled code costs what its Null backend and a minimal Vulkan program do together",
}
_NULL_NOTE = (
    "On Null, Dawn does without its Vulkan backend, which records the commands a second time and makes some three "
    "driver calls a submission (fences, pools) that the minimal program on raw Vulkan does without: where the last "
    "kind disagrees, the residual is the cost of that backend."
)


@register("checks", "Do the parts add up", 80, page="cases")
def parts_add_up(view: View) -> Iterator[Part]:
    """How many checks of each kind agree, and a table of all checks; nothing without a check."""
    found = list(checks.all_checks(view))
    if not found:
        return
    counts = []
    for kind, words in _CHECK_TITLES.items():
        of_kind = [f.check for f in found if f.kind == kind]
        if of_kind:
            counts.append(f"{words}: {sum(c.agrees for c in of_kind)} of {len(of_kind)}")
    lines = [f"Within the larger of 5 % and the combined interval: {'; '.join(counts)}."]
    if any(f.kind == "null" and not f.check.agrees for f in found):
        lines.append(_NULL_NOTE)
    yield Text(lines)
    rows: list[list[str | Cell]] = []
    for f in sorted(found, key=lambda f: f.check.agrees):
        case = [f.target.pattern_label(f.record), CALLER_WORDS[f.record.caller], _CHECK_TITLES[f.kind]]
        times = [number(ns / 1e3) for ns in (f.check.measured, f.check.predicted)]
        rows.append([Cell(f.target.short, f.target.stack), *case, *times, agreement_words(f.check)])
    columns = ["target", "pattern", "called", "check", f"measured, {MICRO}", f"by its parts, {MICRO}", "verdict"]
    yield Table("Every check, those that disagree first", columns, rows, numeric=(4, 5), folded=True)
