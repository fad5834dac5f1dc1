"""A fingerprint in the terminal: key figures, costs by target, the host's time by layer, what is missing."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from overhead.reading.browser_tax import Tax, first_of_each, tax_sentence, taxes
from overhead.reading.format import MICRO, between, factor_spread, has_value, in_micro, micro_spread, plain, valued
from overhead.reading.host_shares import HostShares, ladder_sentences, ladders, share_of_host
from overhead.reading.key_figures import key_figures
from overhead.reading.missing_values import why
from overhead.reading.next_run import NEXT_RUN_SENTENCE
from overhead.reading.summary import left_out, opening
from overhead.reading.view import TargetView, View, by_patterns
from overhead.results import Fingerprint, Record

_FIGURES = ("complete", "host", "fixed", "naive")


def show(fingerprint: Fingerprint, console: Console | None = None) -> None:
    """Print the most important tables; ``overhead report`` draws all of them."""
    console = console or Console()
    view = View(fingerprint)
    machine = fingerprint.machine
    gpus = [g.name + (" (software)" if g.software else "") for g in machine.gpus]
    head = f"{machine.cpu}, {machine.cores} cores, {machine.memory_gib} GiB, {', '.join(gpus) or 'no GPU'}"
    _say(console, head)
    _say(console, f"measured {fingerprint.created}, profile {fingerprint.profile}, machine {machine.id}")
    show_key_figures(fingerprint, console)
    for sentence in opening(view):
        _say(console, sentence)
    for target in view.targets:
        console.print()
        console.print(_costs(target))
    found = [each for each in ladders(view) if each.split]
    if found:
        console.print()
        console.print(_ladders(found))
        for sentence in ladder_sentences(found):
            _say(console, sentence)
    if taxed := taxes(view):
        for label in dict.fromkeys(t.target.label for t in taxed):
            console.print()
            console.print(_taxes([t for t in taxed if t.target.label == label]))
        for tax in first_of_each(taxed):
            _say(console, tax_sentence(tax))
    console.print()
    _missing(view, console)


def show_key_figures(fingerprint: Fingerprint, console: Console | None = None) -> None:
    """Print the key figures alone, as at the end of a run."""
    console = console or Console()
    figures = key_figures(fingerprint)
    table = _table("Key figures", ["", "", f"next run, {MICRO}", ""], right=(1, 2))
    for k in figures:
        caution = k.reason if k.value is None else k.reason.partition(":")[0]
        detail = "; ".join(part for part in (k.of, caution) if part)
        table.add_row(
            _text(k.label), Text(k.text, style="dim" if k.value is None else "bold"), _text(k.next_run),
            Text(plain(detail), "dim"),
        )  # fmt: skip
    console.print(table)
    if any(k.next_run for k in figures):
        _say(console, NEXT_RUN_SENTENCE)


def _costs(target: TargetView) -> Table:
    names = list(_FIGURES)
    if any(r.figure("met") for r in target.records):  # a run of an earlier version has none
        names.insert(1, "met")
    columns = ["pattern", "caller", "unit", *(f"{n}, {MICRO}" for n in names), "remark"]
    table = _table(plain(target.label), columns, right=range(3, 3 + len(names)))
    for r in by_patterns(target.records):
        numbers = [_met(r) if n == "met" else _number(r, n) for n in names]
        table.add_row(*map(_text, [target.pattern_label(r), r.caller, r.unit, *numbers, _remark(r)]))
    return table


def _ladders(found: list[HostShares]) -> Table:
    """A table with a block for each case and a line for each layer."""
    table = _table("Who takes the host's time", ["target", "pattern", "layer", "share", MICRO, ""], right=(3, 4))
    for each in found:
        host = micro_spread(each.host) if each.host else "missing"
        table.add_row(*map(_text, [each.target.label, each.case, "host, all of it", "", host, ""]))
        for s in each.shares:
            table.add_row(*map(_text, ["", "", s.title, share_of_host(each, s), micro_spread(s.figure), s.doubt]))
        if each.minimal is not None:
            minimal = ["", "", "a minimal Vulkan program", "", micro_spread(each.minimal), "no layer"]
            table.add_row(*map(_text, minimal))
        table.add_section()
    return table


def _taxes(found: list[Tax]) -> Table:
    """A table of one browser: a block for each case, with a line for it and one for each caller of its library."""
    names = ("complete", "fixed", "naive")
    columns = ["case", "through", *(f"{n}, {MICRO}" for n in names), "browser's slope is", "remark"]
    table = _table(f"What the browser adds: {found[0].target.label}", columns, right=range(2, 6))
    for tax in found:
        case = [tax.target.pattern_label(tax.record), "browser"]
        table.add_row(*map(_text, [*case, *(_number(tax.record, n) for n in names), "", _remark(tax.record)]))
        for caller in sorted({*tax.against, *tax.refused}):
            record, times = tax.against.get(caller), tax.times(caller)
            numbers = [_number(record, n) if record is not None else "" for n in names]
            ratio = "" if times is None else factor_spread(*times.over(1))
            table.add_row(*map(_text, ["", f"{tax.library}, {caller}", *numbers, ratio, tax.refused.get(caller, "")]))
        table.add_section()
    return table


def _missing(view: View, console: Console) -> None:
    run = view.fingerprint
    for u in run.unavailable:
        mend = f" Mend: {u.mend}" if u.mend else ""
        _say(console, f"{u.stack} is not available: {u.reason.removesuffix('.')}.{mend}")
    for flag in run.flags:
        _say(console, f"Flag: {flag}")
    _say(console, left_out(len(run.left_out)))


def _number(record: Record, name: str) -> str:
    figure = record.figure(name)
    return micro_spread(figure) if figure is not None and valued(figure) is not None else ""


def _met(record: Record) -> str:
    """The range of the met cost over the processes: ``29 to 70 (5 processes)``; empty where it has no value."""
    figure = record.figure("met")
    if figure is None or not has_value(figure):
        return ""
    value, low, high = in_micro(figure)
    processes = f"{figure.processes} process" + "es" * (figure.processes != 1)
    return f"{between(value if low is None else low, value if high is None else high)} ({processes})"


def _remark(record: Record) -> str:
    if record.value("complete") is None:
        return why(record, "complete")
    return record.status if record.status != "ok" else ""


def _table(title: str, columns: list[str], right: range | tuple[int, ...] = ()) -> Table:
    table = Table(title=Text(title, "bold"), title_justify="left", show_header=any(columns), box=SIMPLE_HEAD,
                  pad_edge=False)  # fmt: skip
    for index, column in enumerate(columns):
        table.add_column(
            column, justify="right" if index in right else "left", overflow="fold", no_wrap=not columns[0] and index < 2
        )
    return table


def _text(text: str) -> Text:
    """Text from a file, without markup and control characters."""
    return Text(plain(text))


def _say(console: Console, text: str) -> None:
    console.print(Text(plain(text, 1000)))
