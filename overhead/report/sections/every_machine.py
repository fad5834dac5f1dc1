"""Tables on every machine's own page: cost by stack, and who takes the host's time."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading import host_shares
from overhead.reading.format import MICRO, micro_spread
from overhead.reading.view import CALLER_WORDS, View
from overhead.report.core.registry import BRIEF_ONLY, register

_BASE_FIGURES = {"complete": "one more", "host": "host", "fixed": "fixed", "naive": "T(1)"}


@register("brief-ladder", "Who takes the time", 15, brief=True, page=BRIEF_ONLY)
def ladders(view: View) -> Iterator[Part]:
    found = [f for f in view.once(host_shares.ladders) if f.split]
    if found:
        yield Text(host_shares.ladder_sentences(found))


@register("brief-costs", "Cost by stack", 20, brief=True, page=BRIEF_ONLY)
def costs(view: View) -> Iterator[Part]:
    if not view.stacked:
        return
    rows: list[list[str | Cell]] = []
    for t in view.stacked:
        figures = [t.base.figure(name) for name in _BASE_FIGURES]
        numbers = [micro_spread(f) if f is not None else "" for f in figures]
        rows.append([Cell(t.label, t.stack), t.base.unit, CALLER_WORDS[t.base.caller], *numbers])
    yield Table(
        f"Base cases, {MICRO}", ["target", "unit", "called", *_BASE_FIGURES.values()], rows, numeric=range(3, 7)
    )
