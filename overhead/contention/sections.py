"""The page of contention: what each way of running many callers at once costs. Each way may come
from another run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from overhead.blocks.parts import Heading, Part, Table, Text
from overhead.contention.figure import drawing
from overhead.contention.rows import rows_of
from overhead.contention.show import way_blocks
from overhead.reading.view import View
from overhead.report.core.machines import Machines
from overhead.report.core.page_list import register_page
from overhead.report.core.registry import register, register_across
from overhead.results import Contention, Way
from overhead.words.contention import peers as words
from overhead.words.contention.peers import PEER_WORDS
from overhead.words.report.machines import machine_name

register_page("contention", words.PAGE_TITLE, 40, words.ABOUT_MANY_AT_ONCE)


def section_of(way: Way) -> Callable[[View], Iterable[Part]]:
    """A function that makes the section of the page about one way to run many peers at once: its
    sentences and its table, for processes and threads with a figure above the table.
    """

    def build(view: View) -> Iterator[Part]:
        """The parts of the section, from this run."""
        for block in way_blocks(view, way):
            # The figure holds its table. Without a line to draw there is no figure.
            if isinstance(block, Table) and way in ("processes", "threads"):
                block = drawing(way, rows_of(view, way), block) or block
            yield block
        # Such a case adds a tensor in each unit. The first page has none of them, so a remark in
        # small type tells the difference.
        if any(_adds_a_tensor(row.first) for row in rows_of(view, way)):
            yield Text([words.ADDS_A_TENSOR], quiet=True)

    return build


def _adds_a_tensor(record: Contention) -> bool:
    """Whether the case adds a tensor, as no case of the first page does."""
    return record.case.params.get("operand") == "tensor"


for _order, (_way, _words) in enumerate(PEER_WORDS.items()):
    if _way != "devices":
        register(f"contention-{_way}", _words.title, 10 * _order, page="contention", any_run=True)(
            section_of(_way)
        )


@register_across("contention-devices", PEER_WORDS["devices"].title, 50, page="contention", gpu=True)
def devices(machines: Machines) -> Iterator[Part]:
    """What a process for each device costs: of each machine the newest run that measured it."""
    # ``machines.own``: the run of the machine that is shown in full; ``runs``: those of all
    # machines.
    # By machine: a later run takes the place of an earlier one.
    newest: dict[str, View] = {}
    for run in sorted(machines.runs, key=lambda run: run.fingerprint.created):
        if rows_of(run, "devices"):
            newest[run.fingerprint.machine.id] = run
    for run in newest.values():
        yield Heading(
            f"{machine_name(run.fingerprint.machine)}, measured {run.fingerprint.created[:10]}"
        )
        yield from way_blocks(run, "devices")
