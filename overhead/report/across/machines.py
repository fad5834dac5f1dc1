"""Which machines there are, with their main figures; and who takes the host's time on each."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.format import MICRO, count, micro_spread, plain
from overhead.reading.host_shares import TITLES, host_ns, host_shares, layer_text
from overhead.reading.key_figures import key_figures
from overhead.reading.view import CALLER_WORDS, View
from overhead.report.core.machines import Machines, machine_name
from overhead.report.core.registry import register_across

_KEY_FIGURE_COLUMNS = (
    "One operation, PyTorch, from Python",
    "One launch, CUDA driver, from Python",
    "One dispatch, raw Vulkan, from compiled code",
    "One dispatch, Dawn, from Python",
    "One dispatch, wgpu-native, from Python",
    "One dispatch, Chromium, from JavaScript",
    "One node of a CUDA graph, CUDA driver",
    "Python's share of the host's time, Dawn",
)


@register_across("machines", "The machines", 10)
def machines_table(machines: Machines) -> Iterator[Part]:
    """A row for each machine: its newest run, main figures, and a link to its page."""
    rows: list[list[str | Cell]] = []
    for view in machines.views:
        run = view.fingerprint
        cards = {card.label: card.text if card.measured else "" for card in view.once(key_figures)}
        figures = (cards.get(label, "") for label in _KEY_FIGURE_COLUMNS)
        rows.append([_name(machines, view), run.created[:10], run.profile, *figures])
    reasons = "A figure that is missing here has its reason on the machine's own page."
    yield Text([f"{count(len(rows), 'machine')}, the newest run of each. {reasons}"])
    columns = ["machine", "measured", "profile", *_KEY_FIGURE_COLUMNS]
    yield Table("The machines", columns, rows, numeric=range(3, 3 + len(_KEY_FIGURE_COLUMNS)))


def _name(machines: Machines, view: View) -> Cell:
    """The name of the machine, with a link to its page."""
    machine = view.fingerprint.machine
    return Cell(machine_name(machine) + (" (this)" if view is machines.own else ""), machine=machine.id)


@register_across("across-ladders", "Who takes the host's time, by machine", 30)
def shares_by_machine(machines: Machines) -> Iterator[Part]:
    """A table of the layers of the host's time: for each machine, stack and API the first case that is split."""
    found = [
        (view, each)
        for view in machines.views
        for each in {(e.target.stack, e.top.api): e for e in reversed(view.once(host_shares)) if e.is_split}.values()
    ]
    if not found:
        yield Text(["No machine ran the same calls by several callers in one worker."])
        return
    found.sort(key=lambda one: (one[1].target.stack, one[1].top.api, host_ns(one[1])))
    names = [name for name in TITLES if any(s.name == name for _, each in found for s in each.shares)]
    rows: list[list[str | Cell]] = []
    for view, each in found:
        shares = {share.name: layer_text(share) for share in each.shares}
        stack = Cell(plain(each.target.stack, 40) + (" (software)" if each.target.software else ""), each.target.stack)
        called = CALLER_WORDS[each.top.caller]
        cells = (shares.get(name, "") for name in names)
        rows.append(
            [_name(machines, view), stack, each.top.api, each.top.unit, called, micro_spread(each.host), *cells]
        )
    columns = ["machine", "stack", "API", "unit", "called", f"host, {MICRO}", *(TITLES[name] for name in names)]
    caption = f"The host's time, layer by layer: per cent of it, and {MICRO}"
    yield Table(caption, columns, rows, numeric=range(5, 6 + len(names)))
